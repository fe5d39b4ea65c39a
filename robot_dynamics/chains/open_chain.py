# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of an open chain, with gravity, friction and inertias as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..errors import InputError, choices, wrong
from ..formulations.equations import Equations
from ..formulations.form import FEW, STANDING, Form
from ..formulations.layout import Layout, Recompile, shaped
from ..formulations.options import Options
from ..inputs import as_floats, vectors
from ..mechanism import Inertial, Mechanism
from ..mechanism.base_parameters import Moments
from ..mechanism.transform import lumped, rotors_as_links, with_rotor_model
from ..scalar import Array, Floats, array, zeros
from .companion import Companion
from .functions import FUNCTIONS, OF_A_LINK
from .regressor_kernel import RegressorKernel

MATRICES = ("mass_matrix", "coriolis_matrix")
BY_NEWTON = ("derivatives", "forward", "kinetic_energy")
"""The functions that are computed by newton_euler, whatever the formulation"""


class OpenChain:
    """The functions of a tree over floats: a `Chain`. It never changes, so any thread may use it.

    Gravity, friction and the links' inertias are parameters of the kernels: `over` returns the
    same chain with other values and compiles nothing. Geometry, rotors and the choice of terms are
    compiled in.

    Args:
        mechanism: without loops, or whose loops are left open.
        options: those of `InverseDynamics`.
        form: `FLOATING` for a tree on six joints: q is (…, n + 1), and poses, Jacobians and
            wrenches are on the world's axes.

    Raises:
        InputError, BackendError: see `InverseDynamics`.
    """

    lock: ClassVar[AbstractContextManager[Any]] = nullcontext()

    def __init__(self, mechanism: Mechanism, options: Options, form: Form = STANDING):
        self._options, self.form = options, form
        self.joint_names, self.actuated_names = form.names(mechanism)
        equations = self._shaped(mechanism)
        self._layout = Layout(equations.mechanism, {link.name for link in mechanism.links})
        self.described = equations
        """The equations of the mechanism that is compiled in"""
        self._built: dict[tuple[str, str], Kernel] = {}  # shared with all that `over` returns
        self._newton: Companion[OpenChain, OpenChain] = Companion(
            lambda chain: OpenChain(chain.mechanism, by_newton(options), form),
            lambda newton, chain: newton.over(chain.mechanism),
        )
        self._regressor: Companion[OpenChain, RegressorKernel] = Companion(
            lambda chain: RegressorKernel(chain.mechanism, chain.mechanism, options, form),
            lambda kernel, chain: kernel.over(chain.mechanism),
        )
        self._bind(mechanism, equations)

    def _shaped(self, mechanism: Mechanism) -> Equations:
        return shaped(self.form.equations.of(mechanism, *self._options.of_equations))

    def _bind(self, mechanism: Mechanism, equations: Equations) -> None:
        self.mechanism = mechanism
        self.parameters = self._layout.values(equations.mechanism)
        """The values of the parameters of all functions but the potential energy, in the order
        that `function` expects"""
        self._kernels: dict[str | tuple[str, str], Kernel] = {}

    def over(self, mechanism: Mechanism) -> OpenChain:
        """The same chain with the gravity, friction and inertias of another mechanism; friction of
        a kind that is not compiled in requires compiling.

        Args:
            mechanism: of the same geometry.
        """
        other = copy(self)
        try:
            other._bind(mechanism, self._shaped(mechanism))
        except Recompile:
            return OpenChain(mechanism, self._options, self.form)
        other._newton, other._regressor = self._newton.after(), self._regressor.after()
        return other

    def copy(self) -> OpenChain:
        """Itself, as it never changes."""
        return self

    def share_lock(self, lock: AbstractContextManager[Any]) -> None:
        """Nothing: it needs no lock."""

    @property
    def tree(self) -> Mechanism:
        """The robot itself."""
        return self.mechanism

    @property
    def q_home(self) -> Floats:
        """q (n,) at home, rad or m."""
        return np.array([self.mechanism.home_of(name) for name in self.joint_names])

    @property
    def newton(self) -> OpenChain:
        """The same chain by newton_euler."""
        return self if self._options.formulation == "newton_euler" else self._newton.of(self)

    @property
    def torques(self) -> Callable[..., Floats]:
        """(q, qd, qdd) -> tau, the kernel itself without any overhead."""
        return self.kernel("torques").call

    @property
    def backend(self) -> str:
        """The backend that computes the torques, and the reason if it is not the first choice."""
        return self.kernel("torques").description

    @property
    def positions(self) -> int:
        """The length of q."""
        return len(self.joint_names) + self.form.extra

    def kernel(self, name: str, link: str = "") -> Kernel:
        """The kernel of one of the functions, built on first use.

        With many joints D and C are newton_euler's, whatever the formulation, as the programs of
        the others grow with n³ or faster.

        Args:
            name: of the function.
            link: for a function in `OF_A_LINK`.
        """
        key = (name, link) if link else name
        kernel = self._kernels.get(key)
        if kernel is None:
            # two threads may both get here: they build the same kernel
            kernel = self._kernels[key] = self._kernel(name, link)
        return kernel

    def _kernel(self, name: str, link: str) -> Kernel:
        many = name in MATRICES and len(self.joint_names) > FEW
        if (many or name in BY_NEWTON) and self.newton is not self:
            return self.newton.kernel(name)
        values = self._values(name)
        if (name, link) not in self._built:
            function, o = self.function(name, link), self._options
            self._built[name, link] = Kernel(function, values, o.backend, o.threads, o.batches)
        return self._built[name, link].at(values)

    def _values(self, name: str) -> Floats:
        if name in OF_A_LINK:
            return zeros(0)
        return self._weights() if name == "potential_energy" else self.parameters

    def filled(self, p: Array) -> Equations:
        """The equations of motion with other parameters.

        Args:
            p: the parameters of any scalar, in the order of `parameters`.
        """
        return replace(self.described, mechanism=self._layout.filled(p))

    def equations(self, name: str, link: str = "") -> Callable[..., Array]:
        """A function for any scalar type, with this chain's parameters.

        Args:
            name, link: as in `function`.
        """
        chain = self.newton if name in BY_NEWTON else self
        function, values = chain.function(name, link), chain._values(name)
        return lambda *states: array(function.equations(*states, values)).reshape(function.shape)

    def function(self, name: str, link: str = "") -> Function:
        """A function of `Equations`, `inertia`, D(q) qdd, an energy, or a function of a link, in
        the form that the compiler needs.

        Args:
            name: of the function; those in `BY_NEWTON` only of a chain by newton_euler.
            link: for a function in `OF_A_LINK`.

        Raises:
            InputError: no such link.
        """
        if name in OF_A_LINK:
            size, equations, content = self._of_link(name, link)
        elif name == "potential_energy":
            size, equations, content = self._of_weights()
        else:
            size, equations, content = self._of_bodies(name)
        signature, n = FUNCTIONS[name], len(self.joint_names)
        lengths = {"q": self.positions, **dict.fromkeys(("qd", "qdd", "tau"), n), "wrench": 6}
        return Function(
            name,
            signature.arguments,
            signature.sizes(lengths),
            signature.shape(lengths),
            size,
            equations,
            (content, self.form.equations),
            self.mechanism.name,
        )

    def _of_bodies(self, name: str) -> Parts:
        n, e, layout = len(self.joint_names), self.described, self._layout

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            bound = self.filled(p)
            if name in ("inertia", "kinetic_energy"):
                tau = bound.motion(states[0], zeros(n), states[1])
                # K = ½ q̇·(D q̇)
                return tau if name == "inertia" else [array(states[1]) @ tau / 2]
            of = getattr(self.form, name, None)
            found: Array = of(bound, *states) if of else getattr(bound, name)(*states)
            return _symmetric(found) if name == "mass_matrix" else found.ravel()

        chosen = (e.method.name, e.terms, e.friction_smoothing, e.rotors)
        return layout.size, equations, (layout.content, *chosen)

    def _of_weights(self) -> Parts:
        """-Σ m g·p, J, of gravity and each body's mass and first moment."""
        bodies = self._weighed

        def equations(q: Array, p: Array) -> Iterable[Any]:
            links = tuple(
                replace(link, inertial=Moments(m, array(h), zeros(3, 3)))  # type: ignore[arg-type]
                for link, (m, *h) in zip(bodies.links, p[3:].reshape(-1, 4), strict=True)
            )
            bound = replace(bodies, links=links, gravity=p[:3])
            return [self.form.kinematics.potential_energy(bound, q)]

        return len(self._weights()), equations, _geometry(bodies)

    def _weights(self) -> Floats:
        """The parameters of the potential energy."""
        bodies = [link.inertial for link in self._weighed.links]
        moments = (x for body in bodies for x in (body.mass, *body.first_moment))
        return array([*self.mechanism.gravity, *moments])

    @property
    def _weighed(self) -> Mechanism:
        return lumped(rotors_as_links(with_rotor_model(self.mechanism, self._options.rotors)))

    def _of_link(self, name: str, link: str) -> Parts:
        mechanism, kinematics = self.mechanism, self.form.kinematics
        if link not in mechanism.index():
            raise wrong(InputError, "link", link, choices(mechanism.index()))

        def equations(q: Array, *others: Array) -> Iterable[Any]:
            if name == "wrench_torques":
                return array(kinematics.jacobian(mechanism, link, q).T @ others[0])
            return np.ravel(getattr(kinematics, name)(mechanism, link, q))

        return 0, equations, (_geometry(mechanism), link)

    # --- the functions over floats ---------------------------------------------------------

    def at(self, q: ArrayLike, regular: bool = False) -> OpenConfiguration:  # noqa: ARG002
        """The chain at q (…, n)."""
        return OpenConfiguration(self, vectors("q", q, self.positions))

    def torques_and_configuration(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, OpenConfiguration]:
        """(the torques, the chain at this position)"""
        return self.torques(q, qd, qdd), self.at(q)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n, n)"""
        return self.kernel("mass_matrix").call(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n, n)"""
        return self.kernel("coriolis_matrix").call(q, qd)

    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n)"""
        return self.kernel("gravity").call(q)

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """q̈ (…, n)"""
        call = self.kernel("forward").call
        return call(q, qd, tau) if out is None else call(q, qd, tau, out=out)

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n, n)"""
        return self.kernel("derivatives").call(q, qd, qdd)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """Y (…, n, p)"""
        return self._regressor.of(self).matrix(q, qd, qdd, out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """½ q̇ᵀ D q̇ (…,), J"""
        return self.kernel("kinetic_energy").call(q, qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """-Σ m g·p (…,), J"""
        return self.kernel("potential_energy").call(q)

    def pose(self, q: ArrayLike, link: str) -> Floats:
        """(…, 4, 4)"""
        return self.kernel("pose", link).call(q)

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        """(…, 6, n)"""
        return self.kernel("jacobian", link).call(q)


class OpenConfiguration(NamedTuple):
    """An open chain at q (…, n): a `Configuration`."""

    chain: OpenChain
    q: Floats

    def pose(self, link: str) -> Floats:
        """(…, 4, 4)"""
        return self.chain.pose(self.q, link)

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """Jᵀ w (…, n)"""
        return self.chain.kernel("wrench_torques", link).call(self.q, wrench)

    def state(
        self,
        qd: ArrayLike,
        qdd: ArrayLike,
        names: Sequence[str],  # noqa: ARG002
    ) -> tuple[Floats, Floats, Floats]:
        """The state unchanged."""
        return self.q, as_floats("qd", qd), as_floats("qdd", qdd)

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:  # noqa: ARG002
        """The torques unchanged."""
        return tau


Parts = tuple[int, Callable[..., Iterable[Any]], Any]
"""The number of parameters of a `Function`, its equations and its content"""


def by_newton(options: Options) -> Options:
    """The same options with newton_euler as the formulation."""
    return replace(options, formulation="newton_euler")


def _symmetric(D: Array) -> list[Any]:
    """The entries of D, all from its lower triangle: torques at or beyond the accelerated joint."""
    n = len(D)
    return [D[max(i, j), min(i, j)] for i in range(n) for j in range(n)]


def _geometry(mechanism: Mechanism) -> Any:
    """The links and the base without bodies, friction and limits."""
    links = (replace(x, inertial=Inertial(), joint=x.joint.geometry) for x in mechanism.links)
    return (tuple(links), mechanism.base)
