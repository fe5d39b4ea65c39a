# SPDX-License-Identifier: Apache-2.0
"""A robot's equations with gravity and payloads as arguments, for programs in other languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..chains.kernel_parameters import KernelParameters
from ..chains.open_chain import OpenChain
from ..closure import Subsystems
from ..closure.dynamics.control_model import ClosedModel
from ..closure.dynamics.kernels import ModelFunctions
from ..formulations.equations import Equations
from ..formulations.options import Options
from ..mechanism import Mechanism
from ..scalar import Floats

F = TypeVar("F", OpenChain, ModelFunctions)


@dataclass(frozen=True, eq=False)
class Loadable(Generic[F]):
    """The equations of a robot, as functions of a vector of parameters, and these parameters as a
    function of gravity and payloads."""

    mechanism: Mechanism
    functions: F
    """The functions by name, whose last argument are the parameters"""
    equations: Equations
    """The equations of the tree, or of the legs of a robot with loops"""
    values: Callable[[Mechanism], Floats]
    """The parameters of a mechanism of the same geometry"""

    def parameters(self, links: Iterable[str]) -> KernelParameters:
        """The parameters as a function of gravity and of payloads on these links."""
        return KernelParameters.of(self.mechanism, self.values, links)


def loadable(mechanism: Mechanism, options: Options) -> Loadable[OpenChain]:
    """The equations of a robot without loops; `options` are those of `InverseDynamics`."""
    chain = OpenChain(mechanism, options)
    return Loadable(mechanism, chain, chain.described, lambda robot: chain.over(robot).parameters)


def loadable_model(
    mechanism: Mechanism, options: Options, model: ClosedModel
) -> Loadable[ModelFunctions]:
    """The equations of a robot with loops, given a model of the same geometry, with any options."""

    def parts(robot: Mechanism) -> Subsystems:
        return Subsystems.of(model.geometry.over(robot), *options.of_equations)

    described = parts(mechanism)
    functions = ModelFunctions(model.over(described))
    return Loadable(mechanism, functions, described.legs, lambda of: functions.values(parts(of)))
