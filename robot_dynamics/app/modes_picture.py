# SPDX-License-Identifier: Apache-2.0
"""A drawing of the assembly modes of a robot, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..closure import AssemblyMode
from ..mechanism import Mechanism
from ..scalar import Floats
from . import plots

FLAT = 1e-3
"""Share of its extent by which a robot may be off a plane that is looked at straight"""
WIDTH = 2.7
"""Inches, of one picture"""
ABREAST = 4
"""Pictures in a row"""
OBLIQUE = (0.45, 0.3)
"""How far to the right and up the eye is, where the robot is not in a plane"""


@plots.style()
def draw(path: Path, mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> Path:
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
        for link, ends in skeleton.lines.items():
            flat = np.stack([ends @ across, ends @ up], axis=-1)
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
        f"{mechanism.name}: assembly modes with the motors as they are\n"
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
        for name, ends in held.items():
            if name == mechanism.base:
                continue
            pairs = [point for end in ends for point in (hubs[name], end)]
            # a plate is drawn around, too
            pairs += [point for pair in pairwise(ends) for point in pair]
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
