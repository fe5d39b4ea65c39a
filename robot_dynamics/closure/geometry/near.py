# SPDX-License-Identifier: Apache-2.0
"""Poses of links at a configuration, and the assembly mode that a description means by `near`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...mechanism import Attachment, Loop, Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Floats
from .loop_geometry import LoopGeometry
from .rotation import rotation_vector
from .tree_motion import FrameMotion, TreeMotion

TURNS = 1e-6
"""Rates of rotation below this fraction of the motion count as zero"""


class LinkPlaces:
    """Poses of links in the base frame at any configuration.

    Args:
        geometry: of the mechanism.
        links: names of the links.
    """

    def __init__(self, geometry: LoopGeometry, links: Iterable[str]):
        self.links = tuple(links)
        mechanism = geometry.mechanism
        ends = tuple(
            Loop(name, "fixed", Attachment(mechanism.base), Attachment(name)) for name in self.links
        )
        bare = replace(mechanism, rotors=(), armatures=(), loops=ends, platform=None)
        self._tree = standard_form(bare)
        self._coordinates = geometry.constraints.coordinates

    def at(self, q: Floats) -> dict[str, Pose]:
        """The poses at q_r (n_r,), by the link's name."""
        return {name: Pose(frame.rotation, frame.point) for name, frame in self._frames(q).items()}

    def axes(self, q: Floats, way: Floats) -> dict[str, tuple[Floats, Floats]]:
        """(a point, the direction) of the axis about which each link turns when q_r moves along
        `way` (n_r,), in the link's own frame. Links that don't turn are left out."""
        found = {}
        for name, frame in self._frames(q).items():
            v, w = np.asarray(frame.V @ way, dtype=float), np.asarray(frame.W @ way, dtype=float)
            turning = float(w @ w)
            if turning > TURNS**2 * float(way @ way):
                # p + ω × v / ω² is at rest, or slides along the axis
                back = np.asarray(frame.rotation, dtype=float).T
                found[name] = (back @ np.cross(w, v) / turning, back @ w / np.sqrt(turning))
        return found

    def _frames(self, q: Floats) -> dict[str, FrameMotion]:
        motion = TreeMotion(self._tree, self._coordinates, q)
        frames = [motion.frame(end.successor) for end in self._tree.loops]
        return dict(zip(self.links, frames, strict=True))


class Near:
    """How far configurations are from the description's `near`.

    Args:
        geometry: of the mechanism.
        column_scale: (n_r,), the mechanism's size for prismatic joints, 1 for revolute ones.
        size: the mechanism's size, m, by which lengths are divided.
    """

    def __init__(self, geometry: LoopGeometry, column_scale: Floats, size: float):
        meant: Mapping[str, object] = geometry.described.near
        places = dict(zip(geometry.names, range(len(geometry.names)), strict=True))
        self._joints = [
            (places[name], value) for name, value in meant.items() if isinstance(value, float)
        ]
        self._links = {n: value for n, value in meant.items() if not isinstance(value, float)}
        self._turns = [geometry.mechanism.joint(geometry.names[i]).turns for i, _ in self._joints]
        self._column_scale, self._size = column_scale, size
        self._places = LinkPlaces(geometry, self._links)

    def __bool__(self) -> bool:
        return bool(self._joints or self._links)

    def miss(self, q: Floats) -> float:
        """The largest difference of q_r (n_r,) from `near`, rad or a fraction of the size."""
        off = [0.0]
        for (i, value), turns in zip(self._joints, self._turns, strict=True):
            way = float(q[i]) - value
            # joints that differ by whole turns are in the same position
            off.append(
                abs((way + np.pi) % (2 * np.pi) - np.pi)
                if turns
                else abs(way) / self._column_scale[i]
            )
        found = self._places.at(q) if self._links else {}
        for name, meant in self._links.items():
            here = found[name]
            if isinstance(meant, Pose):
                off.append(float(np.linalg.norm(rotation_vector(here.rotation @ meant.rotation.T))))
                meant = meant.translation
            off.append(float(np.linalg.norm(here.translation - np.asarray(meant))) / self._size)
        return max(off)


def ends(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the platform and of the links that carry no other."""
    parents = {link.parent for link in mechanism.links}
    last = [link.name for link in mechanism.links if link.name not in parents]
    first = [] if mechanism.platform is None else [mechanism.platform]
    return tuple(dict.fromkeys([*first, *last]))
