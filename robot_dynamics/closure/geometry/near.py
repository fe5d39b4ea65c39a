# SPDX-License-Identifier: Apache-2.0
"""How well configurations match the assembly mode that a description's `near` specifies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...mechanism import Pose
from ...scalar import Floats, rotation_vector, shortest_turn
from .loop_geometry import LoopGeometry


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
        self._geometry, self._column_scale, self._size = geometry, column_scale, size

    def __bool__(self) -> bool:
        return bool(self._joints or self._links)

    def miss(self, q: Floats) -> float:
        """The largest difference of q_r (n_r,) from `near`, rad or a fraction of the size."""
        off = [0.0]
        for (i, value), turns in zip(self._joints, self._turns, strict=True):
            way = float(q[i]) - value
            # joints that differ by whole turns are in the same position
            way = float(shortest_turn(np.asarray(way))) if turns else way / self._column_scale[i]
            off.append(abs(way))
        found = self._geometry.poses(q) if self._links else {}
        for name, meant in self._links.items():
            here = found[name]
            if isinstance(meant, Pose):
                off.append(float(np.linalg.norm(rotation_vector(here.rotation @ meant.rotation.T))))
                meant = meant.translation
            off.append(float(np.linalg.norm(here.translation - np.asarray(meant))) / self._size)
        return max(off)
