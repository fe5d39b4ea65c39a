# SPDX-License-Identifier: Apache-2.0
"""Finds a `home` in which a description's loops are closed, and draws all such homes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..closure import AssemblyMode, assembly_modes, undecided
from ..description import load
from ..description.files import find, is_yaml, read_text, write_text
from ..description.yaml_home import rounded, with_home
from ..errors import InputError, counted, listed, wrong
from ..mechanism import Mechanism
from ..outputs import COUNT, FILES, MATRIX, NULLABLE, NUMBER, ROBOT, TEXT, Output, record
from ..scalar import Floats, roll_pitch_yaw
from . import plots
from .tables import table

MOST_TIPS = 4
"""Number of links whose positions are printed; all of them are in the JSON"""
STILL = 1e-9
"""rad or m: a joint that moved by less than this has not moved"""
FLAT = 1e-3
"""Fraction of its extent by which a robot may deviate from a plane that is viewed
perpendicularly"""
WIDTH = 2.7
"""The width of one picture, inches"""
ABREAST = 4
"""Number of pictures in a row"""
OBLIQUE = (0.45, 0.3)
"""How far the viewpoint is to the right and up if the robot is not planar"""

_MODE = record(
    home=NUMBER.by_name("rad or m"),
    distance=NUMBER("from home, rad or fractions of the robot's size"),
    condition=NULLABLE,
    poses=MATRIX.by_name("4 × 4 in the base frame: the platform, and tip links"),
)
MODES = _MODE.listed("the assembly modes with the motors at home")
OUTPUT = record(
    robot=ROBOT,
    home=NUMBER.by_name("rad or m, of the requested mode"),
    moved=NUMBER.by_name("rad or m, from the given home"),
    assembly_modes=MODES,
    mode=COUNT("number of the one that is home, from 1"),
    warnings=TEXT.listed(),
    files=FILES.maybe(),
)


def close(
    source: str, *, out: str | None = None, mode: int | None = None, picture: str | None = None
) -> Output:
    """Find a closed home of a description with loops, and all assembly modes for these motor
    positions.

    Joints that `home` does not contain start at 0.

    Args:
        source: a YAML file.
        out: the file for the description with the closed home, which may be `source` itself; None:
            it is not written.
        mode: the number of the assembly mode, counted from 1; None: the first, which is the one
            nearest to `near`, or, without `near`, the one found from the given home.
        picture: the file for a drawing of all modes side by side (PNG, SVG, PDF); None: none.

    Raises:
        DescriptionError, ClosureError: the loops cannot be closed, or not with these motors.
        InputError: there are no loops or no such mode, or a file cannot be written.
        BackendError: a picture is requested, but matplotlib is not installed.
    """
    if picture is not None:
        plots.check(Path(picture))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = load(source)
    if not mechanism.loops:
        raise InputError(f"{source}: nothing to close: it has no `loops`", name=source)
    modes = assembly_modes(mechanism)
    chosen = 1 if mode is None else mode
    if not 1 <= chosen <= len(modes):
        raise wrong(InputError, "mode", mode, f"1 to {len(modes)}")
    home = rounded({name: modes[chosen - 1].home[name] for name in mechanism.joint_names})
    # the joints that move most come first
    moved = {name: value - mechanism.home_of(name) for name, value in home.items()}
    listed_modes = listing(mechanism, modes)
    alike = undecided(mechanism, modes) if mode is None else ()
    doubts = [undecided_note(mechanism, alike)] if alike else []
    lines = [
        f"{counted(len(modes), 'assembly mode')} found",
        *modes_table(listed_modes),
        *(f"warning: {words}" for words in doubts),
        f"home (mode {chosen}):",
        *(f"  {name}: {value:.12g}" for name, value in home.items()),
    ]
    far = [name for name in moved if abs(moved[name]) > STILL]
    far = sorted(far, key=lambda name: -abs(moved[name]))[:5]
    said = ", ".join(f"{name} by {moved[name]:.4g}" for name in far)
    lines.append(f"moved most: {said}" if far else "nothing moved: the loops were already closed")
    files = {}
    if picture is not None:
        files["picture"] = str(_draw(Path(picture), mechanism, modes))
    if out is not None:
        _write(source, out, home)
        files["description"] = out
    lines += [f"wrote {place}" for place in files.values()]
    result = OUTPUT.read(
        robot=mechanism.name,
        home=home,
        moved=moved,
        assembly_modes=listed_modes,
        mode=chosen,
        warnings=doubts,
        files=files or None,
    )
    return Output(result, "\n".join(lines))


def listing(mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> list[dict[str, Any]]:
    """The assembly modes for JSON, with the poses of the platform and of the tip links."""
    platform = [] if mechanism.platform is None else [mechanism.platform]
    names = dict.fromkeys([*platform, *tips(mechanism)])
    return [
        _MODE.read(each, poses={name: each.poses[name].homogeneous() for name in names})
        for each in modes
    ]


def modes_table(modes: Sequence[dict[str, Any]]) -> list[str]:
    """A table of all modes, as from `listing`, with the positions of the platform and the tips: of
    those that tell the modes apart if there are many."""
    first, *others = modes[0]["poses"]
    # also the orientation of the first link, which is the platform if there is one
    titles = {first: f"{first} at, m | roll, pitch, yaw, °"} | {x: f"{x} at, m" for x in others}
    places: list[dict[str, str]] = []
    for each in modes:
        found = {name: _place(np.array(pose)) for name, pose in each["poses"].items()}
        places.append(
            {name: xyz for name, (xyz, _) in found.items()} | {first: " | ".join(found[first])}
        )
    shown: list[str] = []
    while len(shown) < min(MOST_TIPS, len(titles)):
        left = [name for name in titles if name not in shown]
        apart = [
            len({tuple(place[x] for x in (*shown, name)) for place in places}) for name in left
        ]
        shown.append(left[int(np.argmax(apart))])
    shown.sort(key=list(titles).index)
    rows = [["mode", "from home", "condition number", *(titles[name] for name in shown)]]
    for k, (each, place) in enumerate(zip(modes, places, strict=True), start=1):
        number = f"{k}. home" if each["distance"] == 0 else f"{k}."
        told = (f"{each['distance']:.3g}", f"{each['condition']:.3g}")
        rows.append([number, *told, *(place[name] for name in shown)])
    return table(rows)


def _place(pose: Floats) -> tuple[str, str]:
    """(xyz in m, rpy in degrees) of a pose (4, 4)."""
    turns = np.degrees(roll_pitch_yaw(pose[:3, :3]))

    def said(values: Floats, digits: int) -> str:
        return ", ".join(f"{round(float(x), digits) + 0.0:g}" for x in values)

    return said(pose[:3, 3], 3), said(turns, 1)


def undecided_note(mechanism: Mechanism, alike: Sequence[int]) -> str:
    """A note that the description does not distinguish between modes, and what to do.

    Args:
        mechanism: the robot.
        alike: the numbers of these modes, counted from 1.
    """
    which = f"modes {listed(map(str, alike), 8)}"
    doubt = (
        f"near: {which} match it about equally well"
        if mechanism.near
        else f"home: {which} are equally near to it"
    )
    return (
        f"{doubt}; draw them with --picture FILE and choose one with --mode N, or set `near` to "
        "the approximate position of a passive joint or a link on the real machine"
    )


def _write(source: str, out: str, home: dict[str, float]) -> None:
    file, target = find(source), Path(out)
    if not is_yaml(file):
        raise wrong(InputError, "FILE", file.name, "a YAML file: a URDF has no home")
    if target.parent.resolve() != file.parent.resolve():
        # paths in the description are relative to its folder
        raise wrong(InputError, "--out", out, f"a file in {file.parent}")
    write_text(target, with_home(read_text(file), home, file.name))


@plots.style()
def _draw(path: Path, mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> Path:
    """Draw links as lines from joint to joint, seen along the direction of their least extent.

    Raises:
        BackendError: matplotlib is not installed.
        InputError: the file cannot be written.
    """
    pictures = [_Skeleton(mechanism, mode) for mode in modes]
    points = np.concatenate([each.points for each in pictures])
    across, up = _view(mechanism, points)
    columns = min(len(modes), ABREAST)
    rows = -(-len(modes) // columns)
    shape = np.ptp(points @ up) / max(float(np.ptp(points @ across)), 1e-9)
    height = WIDTH * float(np.clip(shape, 0.3, 2.0)) + 0.6
    drawing, axes = plots.figure(
        rows, columns, width=WIDTH * columns, height=height * rows + 0.6, sharex=True, sharey=True
    )
    for axis in axes.ravel():
        axis.set_axis_off()
    for k, (axis, mode, skeleton) in enumerate(zip(axes.ravel(), modes, pictures, strict=False), 1):
        axis.set_aspect("equal")
        axis.set_title(f"mode {k}\ncondition number {mode.condition:.3g}")
        for link, strokes in skeleton.lines.items():
            flat = np.stack([strokes @ across, strokes @ up], axis=-1)
            is_its = link == mechanism.platform
            for one, other in zip(flat[:-1:2], flat[1::2], strict=True):
                axis.plot(
                    *np.stack([one, other], axis=-1),
                    color=plots.COLOURS[1] if is_its else plots.BLACK,
                    linewidth=3.0 if is_its else 1.6,
                )
        for spots, marker, size, colour in (
            (skeleton.ground, "^", 12, "#dddddd"),
            (skeleton.passive, "o", 5, "white"),
            (skeleton.closures, "D", 5, "white"),
            (skeleton.motors, "o", 6, plots.COLOURS[0]),
        ):
            if spots:
                flat = np.array(spots)
                axis.plot(
                    flat @ across, flat @ up, marker, markersize=size, zorder=3,
                    markerfacecolor=colour, markeredgecolor=plots.BLACK, markeredgewidth=0.8,
                )  # fmt: skip
    drawing.suptitle(
        f"{plots.words(mechanism.name)}: assembly modes for these motor positions\n"
        "orange: motors · white: passive joints · diamonds: where loops close · triangles: the base"
        + (" · blue: the platform" if mechanism.platform else ""),
        fontsize=8,
    )
    return plots.save(drawing, path)


class _Skeleton:
    """The lines and points that are drawn for one mode, (3,) in the base frame."""

    def __init__(self, mechanism: Mechanism, mode: AssemblyMode):
        poses = mode.poses
        self.lines: dict[str, Floats] = {}
        """Pairs of points (2 m, 3), by link"""
        self.motors: list[Floats] = []
        self.passive: list[Floats] = []
        self.closures: list[Floats] = []
        self.ground: list[Floats] = []
        hubs = {name: pose.translation for name, pose in poses.items()}
        held: dict[str, list[Floats]] = {name: [] for name in poses}
        for link in mechanism.links:
            place = (poses[link.parent] @ link.joint.origin).translation
            hubs[link.name] = place if link.joint.turns else poses[link.name].translation
            held[link.parent].append(hubs[link.name])
            held[link.name].append(poses[link.name].translation)
            if link.joint.moves:
                driven = link.joint.name in mechanism.actuated_names
                (self.motors if driven else self.passive).append(hubs[link.name])
            if link.parent == mechanism.base:
                self.ground.append(hubs[link.name])
        for loop in mechanism.loops:
            for end in (loop.predecessor, loop.successor):
                held[end.link].append((poses[end.link] @ end.pose).translation)
            self.closures.append(held[loop.predecessor.link][-1])
        for name, points in held.items():
            if name == mechanism.base:
                continue
            pairs = [point for end in points for point in (hubs[name], end)]
            # also draw the outline of a plate
            pairs += [point for pair in pairwise(points) for point in pair]
            self.lines[name] = np.array(pairs, dtype=float).reshape(-1, 3)
        self.points = np.concatenate([*self.lines.values(), np.array(self.ground).reshape(-1, 3)])


def _view(mechanism: Mechanism, points: Floats) -> tuple[Floats, Floats]:
    """Directions (3,) to the right and up."""
    _, spread, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    normal = axes[2]
    upwards = -np.asarray(mechanism.gravity, dtype=float)
    if not np.linalg.norm(np.cross(upwards, normal)) > 0.1 * np.linalg.norm(upwards):
        # gravity is along the line of sight
        upwards = axes[1]
    up = upwards - normal * (normal @ upwards)
    up = up / np.linalg.norm(up)
    across = np.cross(up, normal)
    if across[int(np.argmax(abs(across)))] < 0:
        across, normal = -across, -normal
    if spread[2] <= FLAT * spread[0]:
        return across, up
    eye = normal + OBLIQUE[0] * across + OBLIQUE[1] * up
    eye = eye / np.linalg.norm(eye)
    across = np.cross(up, eye)
    across = across / np.linalg.norm(across)
    return across, np.cross(eye, across)


def tips(mechanism: Mechanism) -> list[str]:
    """The links that carry no other."""
    parents = {link.parent for link in mechanism.links}
    return [link.name for link in mechanism.links if link.name not in parents]
