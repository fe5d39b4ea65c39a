# SPDX-License-Identifier: Apache-2.0
"""The compiled dynamics of an open chain, with gravity, friction and inertias as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..formulations.equations import Equations
from ..formulations.form import FLOATING, STANDING, Form
from ..formulations.layout import Layout, shaped
from ..mechanism import Mechanism
from ..scalar import Array, Floats, array, zeros
from .inputs import Options


class OpenChain:
    """The functions of `Equations` over floats. It never changes, so any thread may use it.

    Gravity, friction and the links' inertias are parameters of the kernels: `over` returns the
    same chain with other values and compiles nothing. Geometry, rotors and the choice of terms are
    compiled in.

    Args:
        mechanism: without loops, or whose loops are left open.
        formulation, rotors, terms, friction_smoothing, backend, threads: as in `InverseDynamics`.

    Raises:
        InputError, BackendError: see `InverseDynamics`.
    """

    form: ClassVar[Form] = STANDING

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str,
        rotors: str,
        terms: Iterable[str],
        friction_smoothing: float = 0.0,
        backend: str = "auto",
        threads: int | None = None,
    ):
        choices = (formulation, rotors, frozenset(terms), friction_smoothing)
        self._choices = choices
        self.mechanism = mechanism
        """The robot from which the first chain was made"""
        equations = shaped(self.form.equations.of(mechanism, *choices))
        self.joint_names = mechanism.joint_names
        self.actuated_names = mechanism.actuated_names
        self._backend, self._threads = backend, threads
        self._layout = Layout(equations.mechanism, {link.name for link in mechanism.links})
        self._equations = equations
        self._robot = mechanism.name
        self._built: dict[str, Kernel] = {}  # shared with every chain that `over` returns
        self._bind(equations)

    @classmethod
    def by(cls, options: Options, mechanism: Mechanism) -> OpenChain:
        """The chain of a mechanism with the options of `InverseDynamics`."""
        return cls(
            mechanism,
            options.formulation,
            options.rotors,
            options.terms,
            options.friction_smoothing,
            options.backend,
            options.threads,
        )

    def _bind(self, equations: Equations) -> None:
        self.parameters = self._layout.values(equations.mechanism)
        """The values of the kernels' parameters, in the order that `function` expects"""
        self._kernels: dict[str, Kernel] = {}

    @property
    def torques(self) -> Callable[..., Floats]:
        """(q, qd, qdd) -> tau, the kernel itself without any overhead."""
        return self.kernel("torques").call

    def over(self, mechanism: Mechanism) -> OpenChain:
        """The same chain with the gravity, friction and inertias of another mechanism.

        Args:
            mechanism: of the same geometry.

        Raises:
            Recompile: it has a kind of friction that is not compiled in.
        """
        other = copy(self)
        other._bind(shaped(self.form.equations.of(mechanism, *self._choices)))
        return other

    @property
    def backend(self) -> str:
        """The backend that computes the torques, and the reason if it is not the first choice."""
        return self.kernel("torques").description

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n, n) at q (…, n), kg·m² (kg·m or kg for prismatic joints)."""
        return self.kernel("mass_matrix").call(q)

    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n) at q (…, n): the torques that hold the robot at rest, N·m or N."""
        return self.kernel("gravity").call(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n, n) of Christoffel symbols at q, qd (…, n)."""
        return self.kernel("coriolis_matrix").call(q, qd)

    @property
    def positions(self) -> int:
        """The length of q."""
        return len(self.joint_names) + self.form.extra

    def _size(self, argument: str) -> int:
        return self.positions if argument == "q" else len(self.joint_names)

    def kernel(self, name: str) -> Kernel:
        """The kernel of one of the functions, built on first use."""
        kernel = self._kernels.get(name)
        if kernel is None:
            # two threads may both get here: they build the same kernel
            if name not in self._built:
                function = self.function(name)
                self._built[name] = Kernel(function, self.parameters, self._backend, self._threads)
            kernel = self._kernels[name] = self._built[name].at(self.parameters)
        return kernel

    def function(self, name: str) -> Function:
        """A function of `Equations`, or `inertia`, D(q) qdd, in the form that the compiler
        needs."""
        n = len(self.joint_names)
        arguments = _ARGUMENTS[name]
        shape: tuple[int, ...] = (n, n) if name.endswith("matrix") else (n,)
        shape = {"derivatives": (3, n, n), "kinetic_energy": ()}.get(name, shape)
        pick = _PICKS.get(name, np.ravel)
        e, layout = self._equations, self._layout

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            bound = replace(e, mechanism=layout.filled(p))
            if name in ("inertia", "kinetic_energy"):
                tau = bound.motion(states[0], zeros(n), states[1])
                # K = ½ q̇·(D q̇)
                return tau if name == "inertia" else [array(states[1]) @ tau / 2]
            # derivatives and forward require the equations of newton_euler
            of = getattr(self.form, name, None)
            found: Iterable[Any] = pick(of(bound, *states) if of else getattr(bound, name)(*states))
            return found

        content = (
            layout.content, e.method.name, e.terms, e.friction_smoothing, e.rotors,
            self.form.equations,
        )  # fmt: skip
        return Function(
            name,
            arguments,
            tuple(self._size(argument) for argument in arguments),
            shape,
            layout.size,
            equations,
            content,
            self._robot,
        )


_ARGUMENTS = {
    "torques": ("q", "qd", "qdd"),
    "inertia": ("q", "qdd"),
    "bias": ("q", "qd"),
    "coriolis_matrix": ("q", "qd"),
    "mass_matrix": ("q",),
    "gravity": ("q",),
    "kinetic_energy": ("q", "qd"),
    "derivatives": ("q", "qd", "qdd"),
    "forward": ("q", "qd", "tau"),
}


class FloatingChain(OpenChain):
    """The functions of `Floating` over floats, for a tree on six joints: q is (…, n + 1)."""

    form = FLOATING


def _symmetric(D: Array) -> list[Any]:
    """The entries of D, all from its lower triangle: torques at or beyond the accelerated joint."""
    n = len(D)
    return [D[max(i, j), min(i, j)] for i in range(n) for j in range(n)]


_PICKS: dict[str, Callable[[Array], Any]] = {"mass_matrix": _symmetric}
