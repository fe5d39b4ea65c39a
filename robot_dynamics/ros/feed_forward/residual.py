# SPDX-License-Identifier: Apache-2.0
"""What the model does not explain of the measured torques: collisions, payloads, a wrong model."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .derivative import Derivatives
from .joint_states import all_finite, places
from .refusal import RefusedError
from .stamps import SECOND
from .states import States
from .torque_model import Model


class Residual:
    """r = τ_measured - τ(q, q̇, q̈), behind a low-pass of the first order.

    q̈ is the derivative of the rates that one publisher tells, without a filter of its own: half a
    period late, and as noisy as they are, which the filter of the residual evens out.

    Attributes:
        value: (n,) N·m or N, of the model's joints; None: not known yet.
        at: ns, of the newest state where that state has one.
    """

    def __init__(self) -> None:
        self.value: Floats | None = None
        self.at: int | None = None
        self._time = 0
        self._rates = Derivatives()
        self._qdd = np.zeros(0)
        self._names: list[str] | None = None
        self._places = np.zeros(0, dtype=np.intp)

    @property
    def norm(self) -> float:
        """√Σr²; zero where it is not known."""
        return 0.0 if self.value is None else float(np.linalg.norm(self.value))

    def update(
        self,
        states: States,
        model: Model,
        time: int,
        constant: float,
        known: Floats | float = 0.0,
    ) -> None:
        """Take another state into account.

        Args:
            states: with the measured torques.
            model: that of the robot.
            time: of the state, ns.
            constant: of the filter, s.
            known: (n,) N·m or N, what else the torques have to have, as by a wrench from outside.

        Raises:
            RefusedError: a joint has no measured torque.
            RobotDynamicsError: the mechanism cannot have this state.
        """
        measured = self._measured(states, model)
        if not self._moved(states, model):
            return
        if np.isnan(self._qdd).any():
            self.value = None
            return
        new = measured - model(states.q, states.qd, self._qdd) - known
        if not all_finite(new):
            return
        # T dr/dt + r = τ_measured - τ, by the backward Euler rule
        h = max(time - self._time, 0) / SECOND
        share = h / (constant + h) if h else 0.0
        old = new if self.value is None else self.value
        self.value, self.at, self._time = old + share * (new - old), time, max(time, self._time)

    def _moved(self, states: States, model: Model) -> bool:
        """Take the newest rates into the accelerations; is there anything new in them?"""
        if len(self._qdd) != len(model.joints):
            self._qdd = np.full(len(model.joints), np.nan)
        told = states.told
        columns = [model.joints.index(name) for name in told]
        names, qd = tuple(told), states.qd[columns]
        new = self._rates.next(names, qd, states.time, 0.0, stamped=states.stamped)
        self._qdd[columns] = np.nan if new.value is None else new.value
        return self._rates.keep(names, new)

    def _measured(self, states: States, model: Model) -> Floats:
        names, effort = states.whole.name, states.whole.effort
        if len(effort) != len(names):
            raise RefusedError(
                "no effort",
                f"{len(effort)} efforts for {len(names)} names: the residual needs the measured "
                "torque of every joint; let the driver publish it, or set residual to false",
            )
        if names != self._names:
            self._places, self._names = places(names, model.joints, "name"), list(names)
        measured = np.frombuffer(effort)[self._places]
        if not all_finite(measured):
            k = int(np.argmin(np.isfinite(measured)))
            raise RefusedError(
                "no effort",
                f"effort of {model.joints[k]!r} is {measured[k]}: the residual needs the measured "
                "torque of every joint; let the driver publish it, or set residual to false",
            )
        return measured
