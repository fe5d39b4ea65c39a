# SPDX-License-Identifier: Apache-2.0
"""A robot as straight-line programs, from which the C code is generated.

One program computes the torques of all terms except friction together, and one for each of these
terms computes its torques alone; the torques of some terms are sums of these. Friction has two
programs: with the sign of the rate, and with its smooth replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..chains.kernel_parameters import KernelParameters
from ..closure import ClosedChain
from ..closure.dynamics.continuation import FARTHEST, SHORT_STRIDE, SHORTEST_STRIDE
from ..codegen.c_code import C99, CCode
from ..codegen.recorder import Program, record
from ..dynamics.loadable import Loadable, loadable, loadable_model
from ..formulations.options import Options
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from ..scalar import Array, Floats, array

READ = "read_"
SMOOTHING = (("smoothing", 1),)
"""The further argument of the kernels of smoothed friction"""


@dataclass(frozen=True)
class CFunction:
    """One C function: `name(arguments…, out)`."""

    name: str
    arguments: tuple[str, ...]
    program: Program
    parameters: int
    """The index of the vector of parameters that it takes as its last argument"""

    @property
    def code(self) -> CCode:
        """Its C source."""
        return CCode(self.program, C99, f"{self.name}_")

    @property
    def outputs(self) -> int:
        """The number of its results."""
        return len(self.program.outputs)

    @property
    def does_nothing(self) -> bool:
        """Are its results zero for all arguments?"""
        return all(not isinstance(end, int) and end == 0.0 for end in self.program.outputs)


@dataclass(frozen=True)
class ClosureNumbers:
    """The numbers that a robot with loops needs in addition to its kernels."""

    memory: tuple[float, ...]
    """The memory at home"""
    scale: tuple[float, ...]
    """The scales of the joints that q consists of, rad or m"""
    stride: float
    shortest: float
    farthest: float
    all_joints: int
    """n_r: the number of joints in q_r"""
    known: int
    """k: the number of control coordinates among them"""


@dataclass(frozen=True)
class Programs:
    """All kernels of one robot, and the vectors of parameters that they take."""

    joints: tuple[str, ...]
    """The order of q, qd, qdd"""
    motors: tuple[str, ...]
    """The order of the torques"""
    kernels: dict[str, CFunction]
    parameters: tuple[KernelParameters, ...]
    closure: ClosureNumbers | None = None
    sensed: tuple[str, ...] = ()
    """The passive joints with a sensor"""
    reading: ClosureNumbers | None = None
    """The numbers for the model of readings [q_a; q_s], whose kernels' names begin with `READ`"""


@dataclass(frozen=True)
class Request:
    """The robot whose C code is to be generated, and the choices."""

    mechanism: Mechanism
    """The names of its joints have all been checked"""
    prefix: str
    """Prefix of all generated names"""
    formulation: str
    """As in `InverseDynamics`"""
    rotors: str
    """As in `InverseDynamics`"""
    about: tuple[str, ...] = ()
    """The lines at the beginning of each file"""

    def options(self, terms: Iterable[str]) -> Options:
        """The options for some of the terms."""
        return Options(self.formulation, self.rotors, tuple(terms))


def programs(request: Request, links: Iterable[str]) -> Programs:
    """The programs of a robot.

    Args:
        request: the robot and the choices.
        links: the names of the links that may carry a payload.

    Raises:
        InputError: an unknown formulation or rotor model.
        DescriptionError, ClosureError: the loops are not closed at home.
    """
    kind = _of_closed_chain if request.mechanism.loops else _of_tree
    return kind(request, tuple(links))


class _Collected:
    """Collects kernels by name, and the different vectors of parameters."""

    def __init__(self) -> None:
        self.kernels: dict[str, CFunction] = {}
        self.parameters: list[KernelParameters] = []
        self._of_form: dict[tuple[bool, ...], KernelParameters] = {}

    def form(self, robot: Loadable[Any], links: Iterable[str], *more: bool) -> KernelParameters:
        """The parameters for a form of the equations, made once: whether the rotors are on separate
        links, and what else distinguishes the form."""
        form = (robot.equations.rotors is not None, *more)
        if form not in self._of_form:
            self._of_form[form] = robot.parameters(links)
        return self._of_form[form]

    def add(
        self,
        name: str,
        arguments: Sequence[tuple[str, int]],
        parameters: KernelParameters,
        function: Callable[..., Array],
    ) -> None:
        """Record a function of these vectors and the parameters.

        Args:
            name: the kernel's name.
            arguments: the names and lengths of the vectors.
            parameters: the vector of parameters.
            function: computes the results.
        """
        if parameters not in self.parameters:
            self.parameters.append(parameters)
        sizes = [size for _, size in arguments] + [parameters.size]
        program = record(lambda *vectors: np.ravel(function(*vectors)), sizes)
        place = self.parameters.index(parameters)
        names = tuple(name for name, _ in arguments)
        kernel = CFunction(name, (*names, "p"), program, place)
        if name.endswith("rigid") or not kernel.does_nothing:
            self.kernels[name] = kernel


def _of_tree(request: Request, links: tuple[str, ...]) -> Programs:
    mechanism = request.mechanism
    n = len(mechanism.joint_names)
    found = _Collected()
    state = [("q", n), ("qd", n), ("qdd", n)]

    def add(name: str, terms: Iterable[str], smooth: bool = False) -> None:
        robot = loadable(mechanism, request.options(terms))

        def torques(q: Array, qd: Array, qdd: Array, *more: Array) -> Array:
            of = robot.functions.filled(more[-1]).smoothed(more[0][0] if smooth else 0.0)
            return of.torques(q, qd, qdd)

        parameters = found.form(robot, links)
        found.add(name, [*state, *SMOOTHING] if smooth else state, parameters, torques)

    _add_all(add, mechanism)
    return Programs(
        mechanism.joint_names,
        mechanism.actuated_names,
        found.kernels,
        tuple(found.parameters),
    )


def _of_closed_chain(request: Request, links: tuple[str, ...]) -> Programs:
    mechanism = request.mechanism
    of_rigid_bodies = partial(
        ClosedChain,
        mechanism,
        request.formulation,
        rotors=request.rotors,
        terms=RIGID,
        backend="python",  # its equations are recorded; only home is computed
    )
    chain = of_rigid_bodies()
    found = _Collected()
    _add_closed_chain(found, request, chain, links)
    model = chain.model
    if model.sharing is not None:
        first, known = found.parameters[0], model.known

        def shared(q_r: Array, Q: Array, p: Array) -> Array:  # noqa: ARG001
            return model.S(q_r) @ Q

        found.add("share", [("q", len(chain.coordinate_names)), ("force", known)], first, shared)
    sensed: tuple[str, ...] = ()
    reading = None
    if mechanism.sensed:
        reader = of_rigid_bodies(sensed=True)
        sensed = reader.joint_names[model.known :]
        _add_closed_chain(found, request, reader, links)
        reading = _closure(reader)
    return Programs(
        chain.joint_names,
        chain.actuated_names,
        found.kernels,
        tuple(found.parameters),
        _closure(chain),
        sensed,
        reading,
    )


def _add_closed_chain(
    found: _Collected, request: Request, chain: ClosedChain, links: tuple[str, ...]
) -> None:
    """Add the kernels of a robot with loops; those for readings take only the motors' q̈."""
    model, mechanism, sensed = chain.model, chain.mechanism, chain.sensed
    a, k, n = model.geometry.actuated, model.known, len(model.geometry.names)
    prefix = READ if sensed else ""
    state = [("q", n), ("qd", k), ("qdd", a)]

    def add(name: str, terms: Iterable[str], smooth: bool = False) -> None:
        robot = loadable_model(mechanism, request.options(terms), model)
        parameters, at = found.form(robot, links, sensed), robot.functions.filled

        def torques(q_r: Array, qd: Array, qdd: Array, *more: Array) -> Array:
            of = at(more[-1]).smoothed(more[0][0] if smooth else 0.0)
            # with sensors, q̈_s follows from q̈_a
            whole = array([*qdd, *of.sensed_accelerations(q_r, qd, qdd)]) if sensed else qdd
            return of.torques(q_r, qd, whole)

        if name == "rigid" and not sensed:
            closing = [("q", k), ("qd", k), ("qdd", k), ("memory", model.memory_size)]
            found.add(
                name,
                closing,
                parameters,
                lambda q, qd, qdd, memory, p: at(p).at_once(q, qd, qdd, memory),
            )
            return
        if name == "rigid":
            # [memory; scaled difference between the reading and its fit]
            kept = model.memory_size + k
            found.add(
                prefix + "closing",
                [("q", k), ("memory", model.memory_size)],
                parameters,
                lambda q, memory, p: at(p).disagreement(q, memory)[:kept],
            )
        arguments = [*state, *SMOOTHING] if smooth else state
        found.add(prefix + name, arguments, parameters, torques)

    _add_all(add, mechanism)


def _closure(chain: ClosedChain) -> ClosureNumbers:
    model, home = chain.model, chain.home
    k = model.known
    T = home.T_q if chain.sensed else home.T
    memory = model.memory(home.q_r, T[k:], float(home.assembly_mode))
    return ClosureNumbers(
        _floats(memory),
        _floats(model.closure.column_scale[:k]),
        SHORT_STRIDE,
        SHORTEST_STRIDE / SHORT_STRIDE,
        FARTHEST,
        len(model.geometry.names),
        k,
    )


def _add_all(add: Callable[..., None], mechanism: Mechanism) -> None:
    add("rigid", RIGID)
    for term in RIGID:
        add(term, (term,))
    # the friction laws are always those of the description
    if any(any(law.numbers.values()) for *_, law in mechanism.friction_rows()):
        add("friction", ("friction",))
        add("friction_smoothed", ("friction",), True)


def _floats(values: Floats | Array) -> tuple[float, ...]:
    return tuple(float(x) for x in np.ravel(values))
