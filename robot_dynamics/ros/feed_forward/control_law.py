# SPDX-License-Identifier: Apache-2.0
"""The control law: feed-forward torques of a desired state, with feedback if gains are set.

τ = model(q, q̇, q̈_d) - Σ Jᵀ w + K_p (q_d - q) + K_d (q̇_d - q̇)

q and q̇ are the measured or the desired ones. The base has its current motion, except for torques
that are held after the node stops, which are computed for a base at rest. With more motors than
degrees of freedom, the torques are those of least norm.
"""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .base import Base
from .joint_states import all_finite
from .limits import check_added, check_torques
from .motion import Desired
from .parameters import Settings
from .states import States
from .torque_model import Model
from .wrenches import Wrenches


class ControlLaw:
    """Computes torques from the newest states, wrenches and base motion.

    Args:
        states, wrenches, base: the inputs, which always hold the newest values.

    Attributes:
        last_q: (k,) rad or m, the positions of the last computed torques, at which the robot can
            be left at rest; None: no torques yet.
    """

    def __init__(self, states: States, wrenches: Wrenches, base: Base):
        self._states, self._wrenches, self._base = states, wrenches, base
        self.last_q: Floats | None = None

    def following(self, model: Model, settings: Settings, desired: Desired, now: int) -> Floats:
        """Torques (m,) of a desired state, N·m or N.

        Args:
            model: the robot's model.
            settings: the current settings.
            desired: the desired state.
            now: the clock, ns.

        Raises:
            RefusedError: a state or the base's motion is missing, or the torques exceed what the
                robot can need.
            RobotDynamicsError: the mechanism cannot have this state.
        """
        states = self._states
        q, qd = states.q, states.qd
        if not settings.measured:
            q, qd = self._desired_state(desired, now, settings.max_age)
        self._base.move(model, settings, now)
        torques = model(q, qd, desired.qdd)
        largest = settings.max_acceleration
        if largest and not model.is_slow(qd, largest) and all_finite(torques):
            check_torques(model, largest, q, qd, desired.qdd, torques)
        if self._wrenches.on:
            torques = torques + self._wrenches.torques(model, q, now, settings)
        if model.feedback is not None:
            n = len(model.joints)
            forces = model.feedback.torques(desired.q, desired.qd, q[:n], qd[:n])
            shared = model.shared(q, forces)
            if largest and model.unlimited.any():
                added = np.where(model.unlimited, shared, 0.0)
                check_added(model, largest, q, added, "feedback (p_gains, d_gains)")
            torques = torques + shared
        self.last_q = q
        return torques

    def _desired_state(self, desired: Desired, now: int, max_age: float) -> tuple[Floats, Floats]:
        """q, qd (k,): the desired ones, then the measured ones of joints that are not driven."""
        assert desired.q is not None
        assert desired.qd is not None
        q, qd = self._states.undriven(now, max_age)
        if not len(q):
            return desired.q, desired.qd
        return np.concatenate([desired.q, q]), np.concatenate([desired.qd, qd])

    def resting(self, model: Model, settings: Settings, q: Floats, now: int) -> Floats:
        """Torques (m,) that hold the robot at rest on a base that may move, N·m or N.

        Args:
            model: the robot's model.
            settings: the current settings.
            q: (k,) positions, rad or m.
            now: the clock, ns.

        Raises:
            RefusedError: the base's motion is missing.
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self._base.move(model, settings, now)
        torques = model.at_rest(q)
        self.last_q = q
        return torques

    def final_torques(self, model: Model, settings: Settings) -> Floats:
        """The last torques (m,) before the output stops, N·m or N: those at rest at the last
        position, or zero if `on_timeout` is stop.

        Args:
            model: the robot's model.
            settings: the current settings.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        if settings.on_timeout == "stop" or self.last_q is None:
            return np.zeros(len(model.outputs))
        self._base.leave(model)
        return model.at_rest(self.last_q)

    def limited_final_torques(self, model: Model, settings: Settings) -> Floats | None:
        """The torques (m,) of `final_torques`, within the limits; may be called from any thread.

        Args:
            model: the robot's model.
            settings: the current settings.

        Returns:
            the torques, N·m or N, or None if they are not finite.
        """
        q = self.last_q
        if settings.on_timeout == "stop" or q is None:
            return np.zeros(len(model.outputs))
        still = np.zeros((1, len(q)))
        base = self._base.still(model) if model.moved else None
        torques = model.along(q[None], still, still[:, : len(model.joints)], base)[0]
        return np.clip(torques, -model.limits, model.limits) if all_finite(torques) else None
