"""The dynamics of an open chain as kernels, with what may change while they run as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .codegen import Function, Kernel
from .codegen.kernel import as_floats
from .equations import Equations
from .errors import InputError, wrong
from .mechanism import Friction, Inertial, Link, Mechanism
from .mechanism.base_parameters import Moments, compact
from .scalar import Array, array, zeros

Floats = NDArray[np.float64]

LINEAR = frozenset({"newton_euler"})
"""Formulations that read a body's moments alone, so that they may be regrouped"""

STRAIGHT_LINE = 16
"""Joints up to which a matrix is one program. Programs grow with the square of the joints; beyond,
the columns are a batch of torques."""


class OpenChain:
    """The functions of `Equations` over floats.

    Gravity, friction and the links' inertias are parameters of the kernels: `update` changes
    them and compiles nothing. Geometry, rotors and the choice of terms are compiled in.
    """

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
        self._brought = lambda mechanism: Equations.of(mechanism, *choices)
        equations = self._brought(mechanism)
        self.joint_names = mechanism.joint_names
        self.actuated_names = mechanism.actuated_names
        self._backend, self._threads = backend, threads
        self._is_linear = equations.method.name in LINEAR
        self._layout = Layout(self._shaped(equations), {link.name for link in mechanism.links})
        self._equations = equations
        self._robot = mechanism.name
        self._kernels: dict[str, Kernel] = {}
        self.parameters = self._layout.values(self._shaped(equations))
        """What the kernels get beside the state, as `function` takes it"""

    @property
    def torques(self) -> Callable[..., Floats]:
        """(q, qd, qdd) -> tau, with nothing in between."""
        return self.kernel("torques").call

    def _shaped(self, equations: Equations) -> Mechanism:
        return compact(equations.mechanism) if self._is_linear else equations.mechanism

    def update(self, mechanism: Mechanism) -> None:
        """Take over gravity, friction and inertias of a mechanism of the same geometry."""
        equations = self._brought(mechanism)
        self.parameters = self._layout.values(self._shaped(equations))
        self._equations = equations
        for kernel in self._kernels.values():
            kernel.parameters = self.parameters

    @property
    def backend(self) -> str:
        """Which backend runs the torques, and why where it is not the first choice."""
        return self.kernel("torques").description

    def mass_matrix(self, q: ArrayLike) -> Floats:
        if self._is_short:
            return self.kernel("mass_matrix").call(q)
        # D e_j: the torques of unit accelerations
        n = len(self.joint_names)
        rows = self.kernel("inertia")(_beside(q, "q", n), np.eye(n))
        return (rows + np.swapaxes(rows, -1, -2)) / 2

    def gravity(self, q: ArrayLike) -> Floats:
        return self.kernel("gravity").call(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        if self._is_short:
            return self.kernel("coriolis_matrix").call(q, qd)
        # C e_j = ¼ [b(qd + e_j) - b(qd - e_j)]  (see Equations)
        n = len(self.joint_names)
        bias, units = self.kernel("bias"), np.eye(n)
        q, qd = _beside(q, "q", n), _beside(qd, "qd", n)
        rows = (bias(q, qd + units) - bias(q, qd - units)) / 4
        return np.ascontiguousarray(np.swapaxes(rows, -1, -2))

    @property
    def _is_short(self) -> bool:
        return len(self.joint_names) <= STRAIGHT_LINE

    def kernel(self, name: str) -> Kernel:
        """The kernel of one of the functions; it is built when it is first asked for."""
        if name not in self._kernels:
            function = self.function(name)
            self._kernels[name] = Kernel(function, self.parameters, self._backend, self._threads)
        return self._kernels[name]

    def function(self, name: str) -> Function:
        """One of the functions of `Equations`, or `inertia`, D(q) qdd, as a function to compile."""
        n = len(self.joint_names)
        arguments = _ARGUMENTS[name]
        shape = (n, n) if name.endswith("matrix") else (n,)
        pick = _PICKS.get(name, np.ravel)

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            bound = replace(self._equations, mechanism=self._layout.filled(p))
            if name == "inertia":
                bound = replace(bound, terms=frozenset({"inertia"}))
                return bound.torques(states[0], zeros(n), states[1])
            return pick(getattr(bound, name)(*states))

        e = self._equations
        content = (self._layout.content, e.method.name, e.terms, e.friction_smoothing)
        return Function(
            name,
            arguments,
            (n,) * len(arguments),
            shape,
            self._layout.size,
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
}


def _beside(state: ArrayLike, name: str, n: int) -> Floats:
    """(…, 1, n), to go with the rows of a matrix (n, n)."""
    array = as_floats(name, state)
    if array.ndim == 0 or array.shape[-1] != n:
        raise wrong(InputError, name, array.shape, f"shape (…, {n}): one entry a joint")
    return array[..., None, :]


def _symmetric(D: Array) -> list[Any]:
    """D from its lower triangle alone: joints behind the one that is accelerated."""
    n = len(D)
    return [D[max(i, j), min(i, j)] for i in range(n) for j in range(n)]


_PICKS: dict[str, Callable[[Array], Any]] = {"mass_matrix": _symmetric}


class Layout:
    """Where gravity, friction and inertias are in the vector of parameters.

    gravity (3,); then for each link that has them its joint's viscous and Coulomb friction and
    its inertial numbers, in the form that the formulation reads.
    """

    def __init__(self, mechanism: Mechanism, links: set[str]):
        self._mechanism = mechanism
        self._links = [link for link in mechanism.links if link.name in links]
        self.size = 3 + sum(2 + len(_entries(link)) for link in self._links)

    @cached_property
    def content(self) -> Any:
        """What is compiled in: the mechanism without the values of its parameters."""
        variable = {link.name for link in self._links}
        links = [
            (link.name, link.parent, link.joint.coupling, _entries(link))
            if link.name in variable
            else link
            for link in self._mechanism.links
        ]
        joints = [replace(link.joint, friction=Friction()) for link in self._mechanism.links]
        m = self._mechanism
        return (links, joints, m.base, m.rotors, m.armatures)

    def values(self, mechanism: Mechanism) -> Floats:
        """The parameters of a mechanism of this geometry."""
        values = [*mechanism.gravity]
        for link in self._links:
            same = mechanism.link(link.name)
            values += [same.joint.friction.viscous, same.joint.friction.coulomb]
            values += [_numbers(same.inertial)[k] for k in _entries(link)]
        return np.array(values, dtype=float)

    def filled(self, p: Array) -> Mechanism:
        """The mechanism with these parameters (size,), of any scalar."""
        rest = iter(p)
        gravity = array([next(rest) for _ in range(3)])
        new: dict[str, Link] = {}
        for link in self._links:
            friction = Friction(next(rest), next(rest))
            numbers: list[Any] = [0.0] * 10
            for k in _entries(link):
                numbers[k] = next(rest)
            new[link.name] = replace(
                link,
                joint=replace(link.joint, friction=friction),
                inertial=_body(type(link.inertial), numbers),
            )
        links = tuple(new.get(link.name, link) for link in self._mechanism.links)
        return replace(self._mechanism, links=links, gravity=gravity)


def _entries(link: Link) -> tuple[int, ...]:
    """Which of a body's ten numbers may be other than zero.

    mass 0; first moment (or centre of mass) 1, 2, 3; inertia xx yy zz xy xz yz 4 … 9
    """
    if not isinstance(link.inertial, Moments):
        return tuple(range(10))
    # what regrouping leaves (see base_parameters)
    return (1, 2, 4, 6, 7, 8, 9) if link.joint.turns else (0, 1, 2, 3)


def _numbers(body: Inertial | Moments) -> list[Any]:
    if isinstance(body, Moments):
        point, I = body.first_moment, body.inertia_about_origin
    else:
        point, I = body.center_of_mass, body.inertia
    return [body.mass, *point, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def _body(kind: type, numbers: list[Any]) -> Inertial:
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers
    inertia = array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return cast(Inertial, kind(m, array([x, y, z]), inertia))
