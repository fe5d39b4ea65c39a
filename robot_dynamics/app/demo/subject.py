# SPDX-License-Identifier: Apache-2.0
"""A demo's robot, with its gains and initial positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...description import load
from ...dynamics import InverseDynamics
from ...mechanism import Mechanism
from ...scalar import Floats
from ...simulation.tracking import pd_gains
from .robots import GRAVITY, Demo


@dataclass(frozen=True, eq=False)
class Subject:
    """The robot of a demo.

    q has its actuated joints, and `whole` all joints, including passive ones.
    """

    demo: Demo
    mechanism: Mechanism
    dynamics: InverseDynamics

    @classmethod
    def of(cls, demo: Demo) -> Subject:
        """The robot of a demo, loaded from its description."""
        mechanism = load(demo.description)
        dynamics = InverseDynamics(mechanism)
        if not np.any(dynamics.gravity(demo.motion.start)):
            # gravity compensation would be the same as PD alone
            demo = replace(demo, runs=tuple(run for run in demo.runs if run is not GRAVITY))
        return cls(demo, mechanism, dynamics)

    @property
    def joints(self) -> tuple[str, ...]:
        """The actuated joints, in the order of the motion."""
        return self.dynamics.actuated_names

    @property
    def units(self) -> list[str]:
        """The units of the joints, rad or m."""
        return [self.mechanism.joint(name).unit for name in self.joints]

    @cached_property
    def places(self) -> list[int]:
        """The indices of the actuated joints among all joints."""
        return [self.mechanism.joint_names.index(name) for name in self.joints]

    @cached_property
    def gains(self) -> dict[str, list[float]]:
        """`p_gains`, N·m/rad or N/m, and `d_gains`, N·m·s/rad or N·s/m; each joint by itself is
        critically damped at the start."""
        p, d = pd_gains(self.dynamics, self.demo.motion.start, self.demo.bandwidth)
        return {"p_gains": p.tolist(), "d_gains": d.tolist()}

    def whole(self, q: ArrayLike) -> Floats:
        """The positions (…, n_all) of all `joint_names` of the mechanism, with closed loops.

        Args:
            q: (…, n) positions of the actuated joints, rad or m.
        """
        closed = self.dynamics.closed
        if closed is None:
            return np.asarray(q, dtype=float)
        order = [closed.coordinate_names.index(name) for name in self.mechanism.joint_names]
        closed.reset()
        return np.asarray(closed.forward_kinematics(q).q_r[..., order])

    @cached_property
    def start(self) -> list[float]:
        """The positions of all joints at the beginning of the motion, rad or m."""
        return [float(x) for x in self.whole(self.demo.motion.start)]

    def platform(self, whole: Floats) -> Floats | None:
        """The position (…, 3) of the platform in the base frame, m; None: there is no platform.

        Args:
            whole: (…, n_all) positions of all joints, rad or m.
        """
        closed = self.dynamics.closed
        if closed is None or self.mechanism.platform is None:
            return None
        order = [self.mechanism.joint_names.index(name) for name in closed.coordinate_names]
        pose = closed.closer.state(whole[..., order]).platform_pose
        return np.asarray(pose[..., :3, 3])

    def platform_error(self, time: Sequence[float] | Floats, whole: Floats) -> Floats | None:
        """The distance (t,) of the platform from its desired position, m; None: no platform.

        Args:
            time: (t,) s since the beginning of the motion.
            whole: (t, n_all) positions of all joints, rad or m.
        """
        found = self.platform(whole)
        if found is None:
            return None
        wanted = self.platform(self.whole(self.demo.motion(time)[0]))
        assert wanted is not None
        return np.asarray(np.linalg.norm(found - wanted, axis=-1))
