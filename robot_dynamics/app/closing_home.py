# SPDX-License-Identifier: Apache-2.0
"""A description with a `home` in which its loops are closed, and a drawing of all such homes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..closure import AssemblyMode, assembly_modes, undecided
from ..closure.geometry.near import ends
from ..description import load
from ..description.files import find, read_text, write_text
from ..description.yaml_home import rounded, with_home
from ..errors import InputError, listed, wrong
from ..mechanism import Mechanism
from ..scalar import Floats
from . import plots
from .tables import table

MOST_TIPS = 4
"""Links whose places are printed; all of them are in the JSON"""
STILL = 1e-9
"""rad or m: what moved by less did not"""
FLAT = 1e-3
"""Share of its extent by which a robot may be off a plane that is looked at straight"""
WIDTH = 2.7
"""Inches, of one picture"""
ABREAST = 4
"""Pictures in a row"""
OBLIQUE = (0.45, 0.3)
"""How far to the right and up the eye is, where the robot is not in a plane"""


def close(
    source: str, *, out: str | None = None, mode: int | None = None, picture: str | None = None
) -> dict[str, Any]:
    """A closed home of a description with loops, and the others with the motors as they are.

    Joints that `home` leaves out begin at 0.

    Args:
        source: a YAML file.
        out: where to write the description with that home (the file itself, too); None: nowhere.
        mode: which of the assembly modes, from 1 on; None: the first, which is the one nearest to
            what `near` says or else the one that is found from the home as it is.
        picture: where to draw all modes side by side (PNG, SVG, PDF); None: nowhere.

    Raises:
        DescriptionError, ClosureError: it can't be closed, or not by these motors.
        InputError: no loops, no such mode, or a place where a file can't be written.
        BackendError: a picture without matplotlib.
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
    moved = {name: value - mechanism.home.get(name, 0.0) for name, value in home.items()}
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "home": home,
        "moved": moved,
        "assembly_modes": listing(mechanism, modes),
        "mode": chosen,
        "warnings": [],
    }
    lines = [f"{len(modes)} assembly mode{'s' * (len(modes) != 1)} found"]
    lines += modes_table(result["assembly_modes"], "mode")
    if mode is None and (alike := undecided(mechanism, modes)):
        result["warnings"] = [undecided_note(mechanism, alike)]
        lines += [f"warning: {words}" for words in result["warnings"]]
    lines += [
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
    if files:
        result["files"] = files
        lines += [f"wrote {place}" for place in files.values()]
    return {**result, "text": "\n".join(lines)}


def listing(mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> list[dict[str, Any]]:
    """For JSON, with the poses of the platform and of the tip links."""
    return [
        {
            "home": dict(each.home),
            "distance": each.distance,
            "condition": each.condition,
            "poses": {name: each.poses[name].homogeneous().tolist() for name in ends(mechanism)},
        }
        for each in modes
    ]


def modes_table(modes: Sequence[dict[str, Any]], counted: str) -> list[str]:
    """A table of all modes with the positions of the platform and the tips."""
    names = list(modes[0]["poses"])[:MOST_TIPS]
    # of the first, which is the platform where there is one, the orientation as well
    columns = [f"{name} at, m" for name in names]
    columns[0] += " | roll, pitch, yaw, °"
    rows = [[counted, "from home", "condition number", *columns]]
    for k, each in enumerate(modes, start=1):
        found = [_place(np.array(each["poses"][name])) for name in names]
        places = [" | ".join(found[0]), *(place for place, _ in found[1:])]
        number = f"{k}. home" if each["distance"] == 0 else f"{k}."
        rows.append([number, f"{each['distance']:.3g}", f"{each['condition']:.3g}", *places])
    return table(rows)


def _place(pose: Floats) -> tuple[str, str]:
    """(xyz in m, rpy in degrees) of a pose (4, 4)."""
    R, point = pose[:3, :3], pose[:3, 3]
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    turns = np.degrees([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])

    def said(values: Floats, digits: int) -> str:
        return ", ".join(f"{round(float(x), digits) + 0.0:g}" for x in values)

    return said(point, 3), said(turns, 1)


def undecided_note(mechanism: Mechanism, alike: Sequence[int]) -> str:
    """A note that the description does not distinguish these modes, and what to do."""
    which = f"modes {listed(map(str, alike), 8)}"
    doubt = (
        f"near: {which} fit it about equally well"
        if mechanism.near
        else f"home: {which} are equally near to it"
    )
    return (
        f"{doubt}; draw them with --picture FILE and choose one with --mode N, or say with `near` "
        "roughly where a passive joint or a link is on the real machine"
    )


def _write(source: str, out: str, home: dict[str, float]) -> None:
    file, target = find(source), Path(out)
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise wrong(InputError, "FILE", file.name, "a YAML: a URDF has no home")
    if target.parent.resolve() != file.parent.resolve():
        # what it refers to stands beside it
        raise wrong(InputError, "--out", out, f"a file in {file.parent}")
    write_text(target, with_home(read_text(file), home, file.name))


@plots.style()
def _draw(path: Path, mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> Path:
    """Links as lines from joint to joint, seen along the direction in which they spread least.

    Raises:
        BackendError: matplotlib is not installed.
        InputError: it can't be written there.
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
        f"{mechanism.name}: assembly modes for these motor positions\n"
        "orange: motors · white: passive joints · diamonds: where loops close · triangles: the base"
        + (" · blue: the platform" if mechanism.platform else ""),
        fontsize=8,
    )
    return plots.save(drawing, path)


class _Skeleton:
    """What is drawn of one mode, points (3,) in the base frame."""

    def __init__(self, mechanism: Mechanism, mode: AssemblyMode):
        poses = mode.poses
        self.lines: dict[str, Floats] = {}
        """By link, pairs of points (2 m, 3)"""
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
            # a plate is drawn around, too
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
