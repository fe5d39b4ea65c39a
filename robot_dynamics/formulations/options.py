# SPDX-License-Identifier: Apache-2.0
"""The options of the numerical dynamics, the same for open and closed chains."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.kernel import checked_threads
from ..inputs import flag, number
from ..mechanism import Mechanism
from ..mechanism.dynamic_parameters import standard_parameters
from .terms import TERMS, effective_rotors

CONDITION_LIMIT = 1e3
"""Largest condition number of the passive Jacobian; beyond it torques may be a hundred times as
large as usual"""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `InverseDynamics`, under the same names.

    The names of formulations, rotor models, terms and backends are checked where they are used.

    Raises:
        InputError: another option is not what it should be.
    """

    formulation: str = "newton_euler"
    rotors: str = "full"
    terms: tuple[str, ...] = TERMS
    friction_smoothing: float = 0.0
    sensed: bool = False
    condition_limit: float = CONDITION_LIMIT
    backend: str = "auto"
    threads: int | None = None
    batches: bool = False

    def __post_init__(self) -> None:
        for name, value in (
            ("friction_smoothing", number("friction_smoothing", self.friction_smoothing, 0.0)),
            ("sensed", flag("sensed", self.sensed)),
            ("condition_limit", number("condition_limit", self.condition_limit, 1.0)),
            ("threads", checked_threads(self.threads)),
            ("batches", flag("batches", self.batches)),
        ):
            object.__setattr__(self, name, value)

    @property
    def of_equations(self) -> tuple[str, str, tuple[str, ...], float]:
        """The options that determine the equations, in the order of `Equations.of`."""
        return self.formulation, self.rotors, self.terms, self.friction_smoothing

    @property
    def effective_rotors(self) -> str:
        """The rotor model that these terms need; see `terms.effective_rotors`."""
        return effective_rotors(self.rotors, self.terms)

    def parameters(self, mechanism: Mechanism) -> dict[str, float]:
        """The standard parameters π of a mechanism by name, for these rotors and terms."""
        return standard_parameters(mechanism, self.effective_rotors, "friction" in self.terms)
