# SPDX-License-Identifier: Apache-2.0
"""A PD loop around the motion, for robots that have only an effort interface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...scalar import Floats, shortest_turn


class Feedback:
    """τ = K_p (q_d - q) + K_d (q̇_d - q̇), joint by joint.

    Args:
        p, d: (n,) gains, N·m/rad and N·m·s/rad, or N/m and N·s/m.
        periodic: (n,) which joints are continuous; their error is the shortest way round.
    """

    def __init__(self, p: Floats, d: Floats, periodic: NDArray[np.bool_]):
        self._p, self._d, self._periodic = p, d, periodic

    def torques(self, q_d: Floats | None, qd_d: Floats | None, q: Floats, qd: Floats) -> Floats:
        """The feedback torques (n,), N·m or N.

        Args:
            q_d: (n,) desired positions, rad or m; None: only rates are damped.
            qd_d: (n,) desired rates, rad/s or m/s; None: zero.
            q: (n,) measured positions, rad or m.
            qd: (n,) measured rates, rad/s or m/s.
        """
        error: float | Floats = 0.0
        if q_d is not None:
            error = np.where(self._periodic, shortest_turn(q_d - q), q_d - q)
        rate = -qd if qd_d is None else qd_d - qd
        return np.asarray(self._p * error + self._d * rate)
