# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of a closed model, with gravity, friction and inertias as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...chains.functions import FUNCTIONS, Signature
from ...codegen import Function, Kernel
from ...codegen.differentiate import slopes
from ...codegen.recorder import record
from ...errors import InputError
from ...formulations.layout import Layout, Recompile, is_bare
from ...inputs import as_floats
from ...mechanism.base_parameters import Moments
from ...mechanism.bodies import body_from, body_numbers
from ...scalar import Array, Floats
from .control_model import ClosedModel
from .platform import platform_links
from .subsystems import Subsystems


class ParameterVector:
    """The vector of gravity (3,), the platform's moments (10,), and the parameters of the legs.

    In the model of the legs the platform's link has no body; the same holds for the links added for
    a free platform.
    """

    def __init__(self, parts: Subsystems):
        self._parts = parts
        mechanism, tree = parts.geometry.mechanism, parts.legs.mechanism
        free = parts.geometry.free
        # links that never have a body (on the platform, that of a reflected rotor) nor receive one
        # by regrouping, which moves bodies inwards
        added = {*platform_links(mechanism), *(free.added if free else ())}
        bare = {each.name for each in tree.links if each.name in added and is_bare(each.inertial)}
        carrying = {
            each for link in tree.links if link.name not in bare for each in tree.path(link.name)
        }
        self._legs = Layout(tree, mechanism.index(), bare - carrying)
        self.size = 13 + self._legs.size

    @property
    def content(self) -> Any:
        """Everything that is compiled into the kernels."""
        legs = self._parts.legs
        choices = (legs.method.name, legs.terms, legs.friction_smoothing, legs.rotors)
        return self._parts.geometry.content, choices, self._legs.content

    def values(self, parts: Subsystems) -> Floats:
        """The parameter vector of a mechanism of the same geometry."""
        body = parts.body
        moments = body_numbers(body.mass, body.first_moment, body.inertia_about_origin)
        legs = self._legs.values(parts.legs.mechanism)
        return np.array([*parts.gravity_vector, *moments, *legs], dtype=float)

    def filled(self, p: Array) -> Subsystems:
        """The subsystems with these parameters (size,), of any scalar."""
        return replace(
            self._parts,
            gravity_vector=p[:3],
            body=body_from(Moments, p[3:13]),
            legs=replace(self._parts.legs, mechanism=self._legs.filled(p[13:])),
        )


_QUICK = ("at_once", "disagreement", "consistent_torques")
"""The kernels that continue from the memory of the previous state"""
_GEOMETRIC = (
    "closing", "motors_closing", "disagreement", "sensed_accelerations", "motion", "on_motors",
)  # fmt: skip
"""The kernels without parameters, the same for all robots of the same geometry"""
_OF_BATCHES = ("torques",)
"""The kernels for batches alone, of whose single states `at_once` takes care"""

_MOVING = ("q_r", "qd", "qdd")
_OF_CHAINS = ("torques", "gravity", "forward", "mass_matrix", "coriolis_matrix")
SIGNATURES = {
    name: Signature(
        tuple("q_r" if x == "q" else x for x in FUNCTIONS[name].arguments), FUNCTIONS[name].result
    )
    for name in _OF_CHAINS
} | {
    "at_once": Signature(("q", "qd", "qdd", "memory"), ("memory",)),
    "closing": Signature(("q", "u"), ("closed",)),
    "motors_closing": Signature(("q_a", "u_a"), ("closed",)),
    "disagreement": Signature(("q", "memory"), ("compared",)),
    "consistent_torques": Signature(("q", "qd", "qdd_a", "memory"), ("checked",)),
    "sensed_accelerations": Signature(("q_r", "qd", "qdd_a"), ("qdd_s",)),
    "motion": Signature(_MOVING, (2, "q_r")),
    "on_motors": Signature(("q_r",), ("tau", "q_r")),
    "generalised_forces": Signature(_MOVING, ("forces",)),
    "coriolis_column": Signature(("q_r", "qd", "w"), ("tau",)),
    "slopes": Signature((*_MOVING, "w"), (3, "tau")),
}
"""The functions of `ClosedModel`, and `slopes`. Those of all chains take q_r here, the joints of a
closed configuration."""


def _lengths(m: ClosedModel) -> dict[str, int]:
    """The lengths of the vectors in `SIGNATURES`."""
    a, t, k, n = m.geometry.actuated, m.motors, m.known, len(m.geometry.names)
    return {
        **dict.fromkeys(("q", "qd", "qdd", "w"), k),
        **dict.fromkeys(("q_a", "qdd_a"), a),
        "q_r": n,
        "qdd_s": m.geometry.sensed,
        "u": n - k,
        "u_a": n - a,
        "tau": t,
        "memory": m.memory_size,
        "closed": n + 3,
        "compared": m.memory_size + k + n,
        "checked": t + 1,
        "forces": n + (0 if m.geometry.pose_constraints is None else 6),
    }


class ModelFunctions:
    """`ClosedModel`'s functions, with gravity, friction and inertias as their last argument.

    Args:
        model: gives the geometry, the terms and the kinds of friction.
    """

    def __init__(self, model: ClosedModel):
        self._model, self._layout = model, ParameterVector(model.parts)

    def values(self, parts: Subsystems) -> Floats:
        """The parameters of a mechanism of the same geometry, of which `parts` are the parts.

        Raises:
            Recompile: it has a kind of friction that the model does not have.
        """
        return self._layout.values(parts)

    def filled(self, p: Array) -> ClosedModel:
        """The model with other parameters.

        Args:
            p: the parameters of any scalar, in the order of `values`.
        """
        return self._model.over(self._layout.filled(p))

    def function(self, name: str) -> Function:
        """One of the functions in the form that the compiler needs.

        Args:
            name: one of `SIGNATURES`.
        """
        m, signature, geometric = self._model, SIGNATURES[name], name in _GEOMETRIC
        lengths = _lengths(m)

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            if name == "slopes":
                return self._slopes(states, p)
            return np.ravel(getattr(m if geometric else self.filled(p), name)(*states))

        shared = () if m.sharing is None else (m.sharing.motors, m.sharing.alike)
        rows = m.closure
        scales = (rows.row_scale, rows.column_scale)
        choices = (m.sensed, rows.kept, *scales, rows.pivots, m.condition_limit, *shared)
        return Function(
            name,
            signature.arguments,
            signature.sizes(lengths),
            signature.shape(lengths),
            0 if geometric else self._layout.size,
            equations,
            (choices, m.geometry.content if geometric else self._layout.content),
            m.geometry.mechanism.name,
        )

    def _slopes(self, states: Sequence[Array], p: Array) -> list[Any]:
        """∂τ/∂q w, ∂τ/∂q̇ w and ∂τ/∂q̈ w."""
        q_r, qd, qdd, w = states

        def torques(q_r: Array, qd: Array, qdd: Array, p: Array) -> Array:
            return self.filled(p).developed.torques(q_r, qd, qdd)

        program = record(torques, (len(q_r), len(qd), len(qdd), len(p)))
        # the other joints follow q: dq_r = T_q dq
        way = self.filled(p).rates(q_r, w)
        return [x for each in slopes(program, (q_r, qd, qdd, p), (way, w, w)) for x in each]


class ModelKernels(ModelFunctions):
    """`ClosedModel`'s functions over floats. They never change, so any thread may use them.

    A kernel is built when it is first used. Gravity, friction and inertias are parameters of those
    that depend on them: `over` returns the same kernels with other values, and recompiles only if
    a joint gets a kind of friction that it did not have.
    """

    def __init__(
        self, model: ClosedModel, backend: str, threads: int | None, batches: bool = False
    ):
        super().__init__(model)
        self._options = (backend, threads, batches)
        self._built: dict[str, Kernel] = {}  # shared with all that `over` returns
        self._bind(model)

    def _bind(self, model: ClosedModel) -> None:
        self.model = model
        self._values = self.values(model.parts)
        self._kernels: dict[str, Kernel] = {}
        *_, batches = self._options
        self.at_once = self._first if batches else self["at_once"].call
        """The kernel that nearly every call uses"""

    def _first(self, *states: ArrayLike) -> Any:
        """`at_once` until the first single state comes, where batches are expected."""
        if np.ndim(states[0]) > 1:
            return None
        self.at_once = self["at_once"].call
        return self.at_once(*states)

    @property
    def has_at_once(self) -> bool:
        """Has `at_once` been built?"""
        return "at_once" in self._built

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
            values = () if name in _GEOMETRIC else self._values
            if name not in self._built:
                kind, function = QuickKernel if name in _QUICK else Kernel, self.function(name)
                backend, threads, batches = self._options
                batches = name in _OF_BATCHES or (batches and name not in _QUICK)
                self._built[name] = kind(function, values, backend, threads, batches)
            kernel = self._kernels[name] = self._built[name].at(values)
        return kernel


class QuickKernel(Kernel):
    """A kernel for single states; it returns None for any other arguments."""

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
