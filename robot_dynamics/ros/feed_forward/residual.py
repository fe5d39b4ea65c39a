"""What the model does not explain of the measured torques: collisions, payloads, a wrong model."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .derivative import Derivative
from .joint_states import all_finite, places
from .model import Model
from .refusal import RefusedError
from .stamps import SECOND


class Residual:
    """r = τ_measured - τ(q, q̇, q̈), behind a low-pass of the first order.

    q̈ is the difference of the rates over that of the times: half a period late, and as noisy as
    they are, which the filter evens out.

    Attributes:
        value: (n,) N·m or N, of the model's joints; None: not known yet.
        at: ns, of the newest state where that state has one.
    """

    def __init__(self) -> None:
        self.value: Floats | None = None
        self.at: int | None = None
        self._rates: Derivative | None = None
        self._names: list[str] | None = None
        self._places = np.zeros(0, dtype=np.intp)

    @property
    def norm(self) -> float:
        """√Σr²; zero where it is not known."""
        return 0.0 if self.value is None else float(np.linalg.norm(self.value))

    def update(
        self,
        names: list[str],
        effort: Floats,
        model: Model,
        q: Floats,
        qd: Floats,
        time: int,
        constant: float,
        known: Floats | float = 0.0,
    ) -> None:
        """Take another state into account.

        Args:
            names: of the measured torques.
            effort: the measured torques, N·m or N.
            model: that of the robot.
            q, qd: (k,) of what the model reads.
            time: of the state, ns.
            constant: of the filter, s.
            known: (n,) N·m or N, what else the torques have to have, as by a wrench from outside.

        Raises:
            RefusedError: a joint has no measured torque.
            RobotDynamicsError: the mechanism cannot have this state.
        """
        measured = self._measured(names, effort, model)
        before = self._rates
        self._rates = rates = Derivative(qd, time) if before is None else before.next(qd, time, 0.0)
        if before is None or rates is before:
            return
        if rates.value is None:
            self.value = None
            return
        new = measured - model(q, qd, rates.value[: len(model.joints)]) - known
        if not all_finite(new):
            return
        # T dr/dt + r = τ_measured - τ, by the backward Euler rule
        h = (time - before.time) / SECOND
        share = 1.0 if self.value is None else h / (constant + h)
        old = new if self.value is None else self.value
        self.value, self.at = old + share * (new - old), time

    def _measured(self, names: list[str], effort: Floats, model: Model) -> Floats:
        if len(effort) != len(names):
            raise RefusedError(
                "no effort",
                f"{len(effort)} efforts for {len(names)} names: the residual needs the measured "
                "torque of every joint; let the driver publish it, or set residual to false",
            )
        if names != self._names:
            self._places, self._names = places(names, model.joints, "name"), list(names)
        return np.frombuffer(effort)[self._places]
