# SPDX-License-Identifier: Apache-2.0
"""The part of the measured torques that the model does not explain, due to collisions, payloads or
a wrong model."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .derivative import Derivatives, following
from .joint_states import all_finite, places
from .refusal import RefusedError
from .stamps import SECOND
from .states import States
from .torque_model import Model


class Residual:
    """r = τ_measured - τ(q, q̇, q̈), smoothed by a first-order low-pass filter.

    q̈ is the unfiltered derivative of the rates from one publisher: it is delayed by half a period
    and amplifies their noise, which the residual's filter smooths.

    Attributes:
        value: (n,) N·m or N, for the model's joints; None: not known yet.
        at: the time of the newest state, ns; None: that state has no residual.
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
        """√Σr², N·m or N; zero if the residual is not known."""
        return 0.0 if self.value is None else float(np.linalg.norm(self.value))

    def update(
        self,
        states: States,
        model: Model,
        time: int,
        constant: float,
        known: Floats | float = 0.0,
    ) -> None:
        """Update the residual with another state.

        Args:
            states: the newest state, with measured torques.
            model: the robot's model.
            time: the time of the state, ns.
            constant: the filter's time constant, s.
            known: (n,) N·m or N, other known contributions to the torques, such as an external
                wrench.

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
        # merged states come from several publishers, and their times may go back a little
        self._time = time if self.value is None else max(time, self._time)
        self.value, self.at = old + share * (new - old), time

    def _moved(self, states: States, model: Model) -> bool:
        """Update the accelerations with the newest rates; returns whether they are new."""
        if len(self._qdd) != len(model.joints):
            self._qdd = np.full(len(model.joints), np.nan)
        told = states.reported
        columns = [model.joints.index(name) for name in told]
        names, qd = tuple(told), states.qd[columns]
        new = following(self._rates.get(names), qd, states.sampled, 0.0, stamped=states.stamped)
        self._qdd[columns] = np.nan if new.value is None else new.value
        return self._rates.keep(names, new)

    def _measured(self, states: States, model: Model) -> Floats:
        names, effort = states.whole.name, states.whole.effort
        if len(effort) != len(names):
            raise RefusedError(
                "no effort",
                f"the number of efforts is {len(effort)}, expected that of names, {len(names)}: "
                "the residual needs the measured torque of every joint; let the driver publish it, "
                "or set residual to false",
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
