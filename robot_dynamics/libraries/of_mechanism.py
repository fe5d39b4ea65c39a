# SPDX-License-Identifier: Apache-2.0
"""`rd.functions`: a mechanism's dynamics as functions of another library's arrays.

The formulations run over any scalar. As for this package's own kernels, they are recorded once as
straight-line programs, which then run over the library's scalars: there is no second model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np

from ..chains.functions import FUNCTIONS
from ..closure import ClosedChain
from ..codegen.recorder import record
from ..dynamics import checked
from ..errors import BackendError, InputError, choices, wrong
from ..formulations.equations import TERMS
from ..formulations.form import FLOATING, STANDING
from ..formulations.options import Options
from ..formulations.terms import names_of_terms
from ..mechanism import Mechanism
from ..mechanism.six_joints import floating
from ..scalar import Array, Floats, is_whole
from .library import Definition, Library, PassiveJoints
from .models import Choices, Closed, Described, Linear

LIBRARIES = {"casadi": "casadi", "jax": "jax", "torch": "torch", "cupy": "cupy-cuda12x"}
"""The name of the pip package, by library"""
ARGUMENTS = ("parameters", "gravity")
"""What may be an argument instead of a constant; arguments follow the state in this order"""


def functions(
    mechanism: Mechanism,
    library: str,
    *,
    formulation: str = "newton_euler",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    friction_smoothing: float = 0.0,
    arguments: Iterable[str] = (),
    strides: int = 64,
    floating_base: bool = False,
    joints: Sequence[str] | None = None,
) -> Functions:
    """The dynamics as functions of another library's arrays.

    With loops, q consists of the motors' coordinates, as in `InverseDynamics`. The other joints are
    followed from home to q and differentiated as implicit functions of q. Results are nan if q is
    singular, or if it is not certain that home's assembly mode was kept on the way.

    Args:
        mechanism: the robot, as from `rd.load`.
        library: casadi, jax, torch or cupy.
        formulation, rotors, terms, friction_smoothing: as in `InverseDynamics`. With
            `friction_smoothing` 0, Coulomb friction is a step with slope zero; use another value
            for optimisation.
        arguments: any of `parameters`, the standard parameters π (p,) in the order of
            `Functions.parameter_names`, and `gravity` (3,), m/s² in the base frame. The functions
            take them after the state, in this order, instead of using the description's values. Not
            with loops.
        strides: with loops, the number of strides from home to q. More strides take more time, but
            reach farther and nearer to singularities: no stride may be longer than 0.1 rad (or that
            fraction of the robot's size), and the longest is 2 / strides of the path.
        floating_base: the robot with a floating base, as in `FloatingBase`: q contains a quaternion
            and has one entry more than qd, qdd and tau, which begin with the base's entries. Not
            with loops.
        joints: the order of the joints, with a floating base only, as in `FloatingBase`.

    Raises:
        InputError: an unknown library, option or argument; arguments with loops; with a floating
            base, anything that `FloatingBase` refuses.
        DescriptionError, ClosureError: with loops, as in `InverseDynamics`.
        BackendError: the library is not installed.
    """
    checked.robot(mechanism)
    if library not in LIBRARIES:
        raise wrong(InputError, "library", library, choices(LIBRARIES))
    taken = frozenset([arguments] if isinstance(arguments, str) else arguments)
    for name in taken - set(ARGUMENTS):
        raise wrong(InputError, "arguments", name, "any of " + ", ".join(ARGUMENTS))
    try:
        backend = cast(Library, import_module(f".{library}", __package__))
    except ImportError as error:
        raise BackendError(
            f"library {library!r}: {error}; install it: pip install {LIBRARIES[library]}"
        ) from error
    options = Options(formulation, rotors, names_of_terms(terms), friction_smoothing)
    if floating_base:
        mechanism = floating(mechanism, joints)
    elif joints is not None:
        raise wrong(InputError, "joints", joints, "floating_base=True as well")
    made = Choices(options, FLOATING if floating_base else STANDING)
    if mechanism.loops:
        if taken:
            raise wrong(InputError, "arguments", ", ".join(sorted(taken)), "none, with loops")
        if not is_whole(strides) or strides < 1:
            raise wrong(InputError, "strides", strides, "a whole number, at least 1")
        chain = ClosedChain(mechanism, **asdict(replace(options, backend="python")))
        return ClosedFunctions(chain.mechanism, backend, made, (), chain, strides)
    made.chain(mechanism)  # refuses what `InverseDynamics` refuses
    return Functions(mechanism, backend, made, tuple(a for a in ARGUMENTS if a in taken))


@dataclass(frozen=True, eq=False)
class Functions:
    """The dynamics of one mechanism as functions of a library's arrays.

    Each function is built when it is first accessed. With CasADi they are `casadi.Function`s of
    column vectors. With the other libraries they take arrays (…, n) whose leading axes broadcast.
    Units, order and meaning are those of `InverseDynamics`.
    """

    mechanism: Mechanism
    library: Library
    choices: Choices
    arguments: tuple[str, ...]
    """The arguments after the state"""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The order of qd and qdd, and, unless the base floats, of q."""
        return self.choices.form.names(self.mechanism)[0]

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """The order of the torques."""
        return self.choices.form.names(self.mechanism)[1]

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """(p,): the names of the standard parameters π, as in `InverseDynamics`."""
        return tuple(self._described)

    @cached_property
    def parameters(self) -> Floats:
        """The standard parameters π (p,) of the description, SI units."""
        return np.array(list(self._described.values()))

    @cached_property
    def torques(self) -> Callable[..., Any]:
        """(q, qd, qdd) → tau (n,)."""
        return self._made("torques", "tau")

    @cached_property
    def mass_matrix(self) -> Callable[..., Any]:
        """(q) → D (n, n)."""
        return self._made("mass_matrix", "D")

    @cached_property
    def coriolis_matrix(self) -> Callable[..., Any]:
        """(q, qd) → C (n, n), which consists of Christoffel symbols."""
        return self._made("coriolis_matrix", "C")

    @cached_property
    def gravity(self) -> Callable[..., Any]:
        """(q) → g (n,)."""
        return self._made("gravity", "g")

    @cached_property
    def forward(self) -> Callable[..., Any]:
        """(q, qd, tau) → qdd (n,).

        Raises:
            InputError: `terms` without inertia.
        """
        terms = self.choices.options.terms
        if "inertia" not in terms:
            raise wrong(InputError, "terms", sorted(terms), "inertia among them")
        return self._made("forward", "qdd")

    @cached_property
    def derivatives(self) -> Callable[..., Any]:
        """(q, qd, qdd) → ∂tau/∂q, ∂tau/∂qd, ∂tau/∂qdd, each (n, n), by a program of its own that is
        faster than differentiating `torques`.

        Raises:
            InputError: `parameters` is an argument; differentiate `torques` instead.
        """
        self._refuse_parameters("derivatives", "differentiate torques with the library instead")
        return self._made("derivatives", "dtau_dq", "dtau_dqd", "dtau_dqdd")

    @cached_property
    def regressor(self) -> Callable[..., Any]:
        """(q, qd, qdd) → Y (n, p), with tau = Y π."""
        return self._made("regressor", "Y", depends_on=("gravity",))

    @cached_property
    def energies(self) -> Callable[..., Any]:
        """(q, qd) → kinetic and potential energy, J, each a scalar, or (1, 1) with CasADi. The
        potential energy of a mass at the origin of the base frame is zero.

        Raises:
            InputError: `parameters` is an argument.
        """
        self._refuse_parameters("energies", "the described parameters")
        return self._made("energies", "kinetic", "potential")

    def pose(self, link: str) -> Callable[..., Any]:
        """The function (q) → (4, 4), the pose of a link's frame in the base frame.

        Args:
            link: the name of the link.

        Raises:
            InputError: an unknown link.
        """
        return self._of_link("pose", link)

    def jacobian(self, link: str) -> Callable[..., Any]:
        """The function (q) → J (6, n), with [ṗ; ω] = J q̇ for the origin of a link's frame, on base
        axes.

        Args:
            link: the name of the link.

        Raises:
            InputError: an unknown link.
        """
        return self._of_link("jacobian", link)

    # How the functions are made

    @property
    def _positions(self) -> int:
        return len(self.joint_names) + self.choices.form.extra

    @cached_property
    def _described(self) -> dict[str, float]:
        return self.choices.options.parameters(self.mechanism)

    def _refuse_parameters(self, name: str, expected: str) -> None:
        if "parameters" in self.arguments:
            raise wrong(InputError, name, "parameters as an argument", expected)

    def _made(
        self,
        name: str,
        *results: str,
        depends_on: tuple[str, ...] = ARGUMENTS,
        link: str = "",
    ) -> Callable[..., Any]:
        """A function of the state and of the arguments that it depends on; several results are the
        entries of the first axis."""
        more = [each for each in self.arguments if each in depends_on]
        state, n = FUNCTIONS[name].arguments, len(self.joint_names)
        lengths = {"q": self._positions, "qd": n, "qdd": n, "tau": len(self.actuated_names)}
        lengths |= {"parameters": len(self.parameter_names), "gravity": 3}
        shape = FUNCTIONS[name].shape(lengths)

        def recorded(*vectors: Array) -> Array:
            given = dict(zip(more, vectors[len(state) :], strict=True))
            return np.ravel(self._model(**given).of(name, link)(*vectors[: len(state)]))

        program = record(recorded, [lengths[each] for each in (*state, *more)])
        shapes = tuple((each, shape if len(results) == 1 else shape[1:]) for each in results)
        return self._built(Definition(name, (*state, *more), shapes, program))

    def _built(self, definition: Definition) -> Callable[..., Any]:
        return self.library.function(definition)

    def _model(
        self, parameters: Array | None = None, gravity: Array | None = None
    ) -> Described | Linear | Closed:
        mechanism = self.mechanism
        if gravity is not None:
            mechanism = replace(mechanism, gravity=gravity)
        if parameters is None:
            return Described(mechanism, self.choices)
        return Linear(mechanism, self.choices, parameters)

    def _of_link(self, name: str, link: str) -> Callable[..., Any]:
        if link not in self.mechanism.index():
            raise wrong(InputError, "link", link, choices(self.mechanism.index()))
        return self._made(name, name, depends_on=(), link=link)


@dataclass(frozen=True, eq=False)
class ClosedFunctions(Functions):
    """The dynamics of a mechanism with loops as functions of the motors' coordinates."""

    chain: ClosedChain
    strides: int

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The order of q, qd and qdd."""
        return self.chain.joint_names

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """The order of the torques."""
        return self.chain.actuated_names

    @property
    def _positions(self) -> int:
        return len(self.chain.coordinate_names)

    @cached_property
    def _equations(self) -> Closed:
        return Closed(self.chain, self.choices)

    def _model(self, parameters: Array | None = None, gravity: Array | None = None) -> Closed:  # noqa: ARG002
        return self._equations

    @cached_property
    def _closure(self) -> PassiveJoints:
        chain, model = self.chain, self.chain.model
        k, n, size = model.known, len(chain.coordinate_names), model.memory_size
        followed = record(model.followed, [k, size])
        improved = record(model.improved, [k, n - k])
        return PassiveJoints(
            Definition("followed", ("q", "memory"), (("after", (size,)),), followed),
            Definition("improved", ("q", "u"), (("better", (n - k,)),), improved),
            np.asarray(model.begun(chain.home.q_r), dtype=float),
            model.motors,
            tuple(bool(x) for x in chain.closer.wraps[:k]),
            self.strides,
        )

    def _built(self, definition: Definition) -> Callable[..., Any]:
        return self.library.closing(definition, self._closure)
