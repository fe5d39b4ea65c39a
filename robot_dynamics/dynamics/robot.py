# SPDX-License-Identifier: Apache-2.0
"""A robot as it is now, and the functions that follow from those of its chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..chains.chain import Chain
from ..chains.companion import Companion
from ..codegen.kernel import batch_shape
from ..errors import InputError, wrong
from ..formulations.form import STANDING
from ..formulations.options import Options
from ..inputs import as_floats
from ..mechanism import Inertial, Mechanism
from ..mechanism.transform import with_payload
from ..scalar import Floats
from .base_motion import BaseMotion, MovingBase
from .motors import MotorSide, MotorTorques


class Robot:
    """A robot with its present gravity, friction and payloads; a call of `InverseDynamics` uses the
    same one from start to end. The functions are those of `InverseDynamics`, which documents their
    arguments and errors.

    Args:
        chain: the robot as a chain, without payloads.
        options: those of `InverseDynamics`.
        lock: to be held by a chain that is changed in place.
    """

    def __init__(self, chain: Chain, options: Options, lock: AbstractContextManager[Any]):
        chain.share_lock(lock)
        self.bare, self.payloads = chain.mechanism, dict[str, Inertial]()
        """The robot without payloads; the payloads by link"""
        self._moving: Companion[Robot, MovingBase] = Companion(
            lambda robot: MovingBase(robot.chain.tree, robot.chain.mechanism, options),
            lambda moving, robot: moving.over(robot.chain.tree, robot.chain.mechanism),
        )
        self._motors: Companion[Robot, MotorSide] = Companion(
            lambda robot: MotorSide(robot.chain.mechanism, options, chain.form),
            lambda side, robot: side.over(robot.chain.mechanism),
        )
        self._use(chain)

    def _use(self, chain: Chain) -> None:
        self.chain, self.torques = chain, chain.torques

    def over(self, bare: Mechanism, payloads: Mapping[str, Inertial]) -> Robot:
        """The robot with other gravity, friction and payloads; if the chain is changed in place, so
        is the robot.

        Args:
            bare: of the same geometry, without payloads.
            payloads: by link.
        """
        loaded = bare
        for link, body in payloads.items():
            loaded = with_payload(loaded, link, body)
        chain = self.chain.over(loaded)
        other = self if chain is self.chain else copy(self)
        other.bare, other.payloads = bare, dict(payloads)
        other._moving, other._motors = self._moving.after(), self._motors.after()
        other._use(chain)
        return other

    def copy(self, lock: AbstractContextManager[Any]) -> Robot:
        """A copy without shared mutable state.

        Args:
            lock: to be held by a chain that is changed in place.
        """
        other, chain = copy(self), self.chain.copy()
        chain.share_lock(lock)
        other._use(chain)
        return other

    def _moved_by(self, motion: BaseMotion) -> MovingBase:
        """The torques with a prescribed motion of the base."""
        if not isinstance(motion, BaseMotion):
            raise wrong(InputError, "base_motion", type(motion).__name__, "a BaseMotion")
        if self.chain.form is not STANDING:
            raise wrong(InputError, "base_motion", "a floating base", "none: it is in q, v and a")
        return self._moving.of(self)

    def tree_state(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """(q, q̇, q̈) (…, n) of the mechanism's joints."""
        names, k = ("q", "qd", "qdd"), len(self.chain.joint_names)
        sizes = (k + self.chain.form.extra, k, k)
        given = [as_floats(name, x) for name, x in zip(names, (q, qd, qdd), strict=True)]
        batch = batch_shape(names, sizes, given)
        # copies, which share no memory with the arguments
        q, qd, qdd = (
            np.broadcast_to(x, (*batch, size)).copy() for x, size in zip(given, sizes, strict=True)
        )
        with self.chain.lock:
            return self.chain.at(q, regular=True).state(qd, qdd, self.chain.mechanism.joint_names)

    def under_wrenches(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, Floats]
    ) -> Floats:
        """The torques with external wrenches, tau = … - Σ Jᵀ w."""
        with self.chain.lock:
            tau, at = self.chain.torques_and_configuration(q, qd, qdd)
            for link, wrench in wrenches.items():
                tau = tau - at.wrench_torques(link, wrench)
            return tau

    def wrench_torques(self, q: ArrayLike, wrenches: Mapping[str, Floats], axes: str) -> Floats:
        """Σ Jᵀ w (…, n_m); the axes are `base`, or `link` for those of each wrench's own link."""
        with self.chain.lock:
            at = self.chain.at(q, regular=True)
            tau = np.zeros((*at.q.shape[:-1], len(self.chain.actuated_names)))
            for link, wrench in wrenches.items():
                if axes == "link":
                    R = at.pose(link)[..., :3, :3]
                    both = np.stack([wrench[..., :3], wrench[..., 3:]], axis=-1)
                    wrench = np.concatenate(np.moveaxis(R @ both, -1, 0), axis=-1)
                tau = tau + at.wrench_torques(link, wrench)
            return tau

    def on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """The torques on a moving base."""
        with self.chain.lock:
            moving = self._moved_by(motion)
            tau = moving.torques(self.chain.at(q, regular=True), qd, qdd, motion)
            return tau + self.torques(q, qd, qdd) if moving.adds else tau

    def gravity_on_moving_base(self, q: ArrayLike, motion: BaseMotion) -> Floats:
        """g (…, n_m) on a tilted base"""
        with self.chain.lock:
            return self._moved_by(motion).gravity(self.chain.at(q, regular=True), motion)

    def derivatives_on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n, n) on a moving base."""
        self._refuse_loops("derivatives")
        moving = self._moved_by(motion)
        found = moving.derivatives(q, qd, qdd, motion)
        return found + self.chain.derivatives(q, qd, qdd) if moving.adds else found

    def regressor_on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion, names: Sequence[str]
    ) -> Floats:
        """Y (…, n, p) on a moving base; names (p,)."""
        self._refuse_loops("regressor")
        moving = self._moved_by(motion)
        known, Y = moving.regressor(q, qd, qdd, motion)
        if not moving.adds:
            return np.ascontiguousarray(Y[..., [known.index(name) for name in names]])
        standing = self.chain.regressor(q, qd, qdd)
        batch = np.broadcast_shapes(Y.shape[:-1], standing.shape[:-1])
        total: Floats = np.broadcast_to(standing, (*batch, len(names))).copy()
        shared = [k for k, name in enumerate(names) if name in known]
        total[..., shared] += Y[..., [known.index(names[k]) for k in shared]]
        return total

    def _refuse_loops(self, what: str) -> None:
        if self.chain.mechanism.loops:
            raise wrong(InputError, f"{what}: base_motion", "loops", "a robot without loops")

    def motor_torques(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion | None
    ) -> MotorTorques:
        """(drive, gear) (…, m) on a fixed or a moving base."""
        with self.chain.lock:
            if motion is not None:
                moving = self._moved_by(motion)
                at = self.chain.at(q, regular=True)
                found = moving.motor_torques(at, qd, qdd, motion, self.chain.actuated_names)
                if not moving.adds:
                    return found
                standing = self.motor_torques(q, qd, qdd, None)
                return MotorTorques(standing.drive + found.drive, standing.gear + found.gear)
            tau, at = self.chain.torques_and_configuration(q, qd, qdd)
            names, side = self.chain.mechanism.joint_names, self._motors.of(self)
            actuated = [names.index(name) for name in self.chain.actuated_names]
            state = at.state(qd, qdd, names)
            return side.torques(actuated, tau, *state, self.chain.mechanism.gravity)
