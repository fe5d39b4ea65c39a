# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of a closed model, with gravity, friction and inertias as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...codegen import Function, Kernel
from ...codegen.differentiate import pushforward
from ...codegen.kernel import as_floats
from ...codegen.recorder import record
from ...errors import InputError
from ...formulations.layout import Recompile
from ...scalar import Array, zeros
from .control_model import ClosedModel
from .parameter_vector import ParameterVector
from .subsystems import Subsystems

_QUICK = ("at_once", "disagreement", "consistent_torques")
"""The kernels that continue from the memory of the previous state"""


class ModelKernels:
    """`ClosedModel`'s functions over floats. They never change, so any thread may use them.

    A kernel is built when it is first used. Gravity, friction and inertias are parameters: `over`
    returns the same kernels with other values, and recompiles only if a joint gets a kind of
    friction that it did not have.
    """

    def __init__(self, model: ClosedModel, backend: str, threads: int | None):
        self._layout = ParameterVector(model.parts)
        self._options = (backend, threads)
        self._built: dict[str, Kernel] = {}  # shared with all that `over` returns
        self._bind(model)

    def _bind(self, model: ClosedModel) -> None:
        self.model = model
        self._values = self._layout.values(model.parts)
        self._kernels: dict[str, Kernel] = {}
        self.at_once = self["at_once"].call
        """The kernel that nearly every call uses"""

    def over(self, parts: Subsystems) -> ModelKernels:
        """These kernels with the gravity, friction and inertias of other parts.

        Args:
            parts: of a mechanism of the same geometry.
        """
        other, model = copy(self), self.model.over(parts)
        try:
            other._bind(model)
        except Recompile:
            return ModelKernels(model, *self._options)
        return other

    def __getitem__(self, name: str) -> Kernel:
        kernel = self._kernels.get(name)
        if kernel is None:
            # two threads may both get here: they build the same kernel
            if name not in self._built:
                kind = QuickKernel if name in _QUICK else Kernel
                self._built[name] = kind(self.function(name), self._values, *self._options)
            kernel = self._kernels[name] = self._built[name].at(self._values)
        return kernel

    def function(self, name: str) -> Function:
        """The description, for the compiler, of one of the model's functions.

        Args:
            name: of a method of `ClosedModel`, or `slopes`.
        """
        m = self.model
        a, t, k, n = m.geometry.actuated, m.motors, m.known, len(m.geometry.names)
        memory = m.memory_size
        sizes = {"q": k, "qd": k, "qdd": k, "w": k, "q_r": n, "u": n - k, "memory": memory}
        sizes |= {"q_a": a, "qdd_a": a, "u_a": n - a}
        platform = 0 if m.geometry.pose_constraints is None else 6
        arguments, shape = {
            "at_once": (("q", "qd", "qdd", "memory"), (memory,)),
            "closing": (("q", "u"), (n + 3,)),
            "motors_closing": (("q_a", "u_a"), (n + 3,)),
            "disagreement": (("q", "memory"), (memory + k + n,)),
            "consistent_torques": (("q", "qd", "qdd_a", "memory"), (t + 1,)),
            "sensed_accelerations": (("q_r", "qd", "qdd_a"), (m.geometry.sensed,)),
            "motion": (("q_r", "qd", "qdd"), (2, n)),
            "on_motors": (("q_r",), (t, n)),
            "torques": (("q_r", "qd", "qdd"), (t,)),
            "generalised_forces": (("q_r", "qd", "qdd"), (n + platform,)),
            "gravity": (("q_r",), (t,)),
            "mass_matrix": (("q_r",), (t, k)),
            "coriolis_matrix": (("q_r", "qd"), (t, k)),
            "coriolis_column": (("q_r", "qd", "w"), (t,)),
            "slopes": (("q_r", "qd", "qdd", "w"), (3, t)),
        }[name]

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            if name == "slopes":
                return self._slopes(states, p)
            return np.ravel(getattr(m.over(self._layout.filled(p)), name)(*states))

        shared = () if m.sharing is None else (m.sharing.motors, m.sharing.alike)
        rows = m.closure
        scales = (rows.row_scale, rows.column_scale)
        choices = (m.sensed, rows.kept, *scales, rows.pivots, m.condition_limit, *shared)
        return Function(
            name,
            arguments,
            tuple(sizes[x] for x in arguments),
            shape,
            self._layout.size,
            equations,
            (choices, self._layout.content),
            m.geometry.mechanism.name,
        )

    def _slopes(self, states: Sequence[Array], p: Array) -> list[Any]:
        """∂τ/∂q w, ∂τ/∂q̇ w and ∂τ/∂q̈ w."""
        q_r, qd, qdd, w = states

        def torques(q_r: Array, qd: Array, qdd: Array, p: Array) -> Array:
            return self.model.over(self._layout.filled(p)).torques(q_r, qd, qdd)

        program = record(torques, (len(q_r), len(qd), len(qdd), len(p)))
        # the other joints follow q: dq_r = T_q dq
        way = self.model.over(self._layout.filled(p)).rates(q_r, w)
        still = [zeros(len(x)) for x in (q_r, qd, qdd, p)]
        slopes: list[Any] = []
        for k, direction in enumerate((way, w, w)):
            directions = [*still[:k], direction, *still[k + 1 :]]
            slopes += pushforward(program, (q_r, qd, qdd, p), directions)[1]
        return slopes


class QuickKernel(Kernel):
    """A kernel for single states, which returns None for anything else."""

    def _any(self, *states: ArrayLike, out: Any = None) -> Any:  # noqa: ARG002
        try:
            arrays = [
                as_floats(name, state)
                for name, state in zip(self.function.arguments, states, strict=True)
            ]
        except InputError:
            return None
        if any(x.shape != (size,) for x, size in zip(arrays, self.function.sizes, strict=True)):
            return None
        return self._machine.one(arrays)
