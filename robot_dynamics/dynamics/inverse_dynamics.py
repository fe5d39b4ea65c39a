"""The façade: joint torques of a mechanism, fast, from numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..closure import CONDITION_LIMIT, ClosedChain
from ..errors import InputError, choices, wrong
from ..formulations.equations import TERMS
from ..formulations.layout import Recompile
from ..mechanism import Friction, Inertial, Mechanism
from ..mechanism.parameters import standard_parameters
from ..mechanism.transform import with_payload
from ..scalar import Array
from .motors import MotorSide, MotorTorques, tree_state
from .open_chain import OpenChain
from .regressor import RegressorKernel

Floats = NDArray[np.float64]


class InverseDynamics:
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd), by the formulation of your choice.

    The formulation is recorded once and compiled; the kernel is kept in the user's cache. Arrays
    are float64 in SI units: q in rad or m, tau in N·m or N, in the order of `joint_names`. All
    states may be batched: (…, n) in, (…, n) out, over all cores.

    Gravity, payloads and friction may change while it runs: nothing is compiled, and a call on
    another thread sees the old robot or the new one, never some of each.

    Args:
        mechanism: what `rd.load` gives.
        formulation: lagrange_euler, newton_euler, gibbs_appell or murphy.
        rotors: full, reflected (Γ²·I_zz at the joint, the mass on the mount) or none.
        terms: any of inertia, coriolis, gravity, friction, rotors (all by default).
        friction_smoothing: rate (rad/s or m/s) within which Coulomb friction fades to zero as
            tanh(qd / rate); 0: the sign itself. At rest it is zero either way.
        sensed: of a mechanism with loops: take q = [q_a, q_s], the passive joints that carry a
            sensor too, instead of q_a alone. D and C are then (n_a, n_a + n_s).
        condition_limit: of the passive Jacobian of a mechanism with loops: beyond it a state is too
            near a singularity, and refused.
        backend: auto, c or python. auto takes C where there is a compiler, else it warns once.
        threads: for batches; None: one for each core that this process may use.

    Attributes:
        mechanism: the robot as it is now, payloads included.
        joint_names: the order of q, qd, qdd.
        actuated_names: the order of the torques.
        closed: of a mechanism with loops its positions, Jacobians and state; None: no loops.

    Raises:
        InputError: an unknown formulation, rotor model, term or backend.
        DescriptionError, ClosureError: loops that home does not close, too few or many motors.
        BackendError: `c` was asked for and cannot be had; the compiler's own words.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        *,
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: float = 0.0,
        sensed: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        backend: str = "auto",
        threads: int | None = None,
    ):
        terms = (terms,) if isinstance(terms, str) else tuple(terms)
        self._bare = mechanism
        self._payloads: dict[str, Inertial] = {}
        self.mechanism = mechanism
        self.closed: ClosedChain | None = None
        if sensed and not mechanism.loops:
            raise wrong(InputError, "sensed", sensed, "False: the mechanism has no loops")
        options: dict[str, Any] = {
            "formulation": formulation,
            "rotors": rotors,
            "terms": terms,
            "friction_smoothing": friction_smoothing,
            "backend": backend,
            "threads": threads,
        }
        if mechanism.loops:
            options |= {"sensed": sensed, "condition_limit": condition_limit}
        self._options = options
        self._take(self._compiled(mechanism))
        self.joint_names: tuple[str, ...] = self._model.joint_names
        self.actuated_names: tuple[str, ...] = self._model.actuated_names
        self._motors: MotorSide | None = None
        self._regressor: RegressorKernel | None = None
        rotors = rotors if "rotors" in terms else "none"
        self._tree_options = (rotors, frozenset(terms), friction_smoothing, backend, threads)
        self._motor_options = (rotors if "rotors" in terms else "none", backend, threads)

    def __call__(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """Torques (…, n) at q, qd, qdd (…, n).

        Raises:
            InputError: a wrong shape or type; the message says which and what was expected.
        """
        return self._torques(q, qd, qdd)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n, n), kg·m² (kg·m, kg), at q (…, n)."""
        return self._model.mass_matrix(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n, n) of Christoffel symbols at q, qd (…, n): dD/dt - 2C is skew."""
        return self._model.coriolis_matrix(q, qd)

    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n), N·m or N, at q (…, n)."""
        return self._model.gravity(q)

    # --- the standard parameters -------------------------------------------------------------

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """(p,): the numbers that the torques are linear in, see `mechanism.parameters`."""
        return tuple(self._parameters())

    @property
    def parameters(self) -> Floats:
        """π (p,) in SI units, payloads and changed friction included: tau = Y π."""
        return np.array(list(self._parameters().values()))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """Y (…, n, p) at q, qd, qdd (…, n): tau = Y π to rounding, whatever the formulation.

        Of a closed chain Y is Tᵀ Y_tree, (…, n_a, p). Columns are in the order of
        `parameter_names`; no inertia, friction or payload changes Y, gravity does.

        Raises:
            InputError: a wrong shape.
            ClosureError: a state that can't be closed.
        """
        if self._regressor is None or not self._regressor.fits(self._bare):
            self._regressor = RegressorKernel(self._bare, *self._tree_options)
        if self.closed is not None:
            return self._regressor.projected(self.closed, self.mechanism, q, qd, qdd)
        return self._regressor.matrix(self.mechanism, q, qd, qdd)

    def _parameters(self) -> dict[str, float]:
        rotors, terms, *_ = self._tree_options
        return standard_parameters(self.mechanism, rotors, "friction" in terms)

    # --- the motors' side of the gears -------------------------------------------------------

    @property
    def motor_names(self) -> tuple[str, ...]:
        """The rotors of the description: the order of motor torques."""
        return tuple(rotor.name for rotor in self.mechanism.rotors)

    def motor_torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> MotorTorques:
        """(drive, gear) (…, m), N·m, at q, qd, qdd (…, n).

        `drive` is what a motor's field must give: joint torque / gear ratio. `gear` is what
        enters the gear: the same less what the rotor itself takes.

        Raises:
            InputError: a wrong shape.
        """
        tau = self(q, qd, qdd)
        if self._motors is None:
            self._motors = MotorSide(self._bare, *self._motor_options)
        names = self._bare.joint_names
        actuated = [names.index(name) for name in self.actuated_names]
        if self.closed is not None:
            q, qd, qdd = tree_state(self.closed, q, qd, qdd, names)
        return self._motors.torques(actuated, tau, q, qd, qdd)

    @property
    def backend(self) -> str:
        """What runs, and why where it is not the first choice."""
        return self._model.backend

    # --- what may change while it runs -----------------------------------------------------

    @property
    def gravity_vector(self) -> Array:
        """(3,), m/s², in the base frame. May be assigned."""
        return self.mechanism.gravity

    @gravity_vector.setter
    def gravity_vector(self, value: ArrayLike) -> None:
        vector = np.asarray(value, dtype=float)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise wrong(InputError, "gravity_vector", value, "three finite numbers, m/s²")
        self._adopt(replace(self._bare, gravity=vector))

    def set_payload(self, link: str, payload: Inertial | None) -> None:
        """Weld a body to a link, in place of the one there was; None takes it off.

        Args:
            link: the name of any link.
            payload: mass, centre of mass and inertia in the link's frame.

        Raises:
            InputError: no such link, or numbers that are not finite or a negative mass.
        """
        names = [each.name for each in self._bare.links]
        if link not in names:
            raise wrong(InputError, "payload: link", link, choices(names))
        if payload is None:
            self._payloads.pop(link, None)
        else:
            numbers = [payload.mass, *payload.center_of_mass, *payload.inertia.flat]
            if not np.isfinite(np.array(numbers, dtype=float)).all():
                raise wrong(InputError, f"payload of {link}", numbers, "finite numbers")
            if payload.mass < 0:
                raise wrong(InputError, f"payload of {link}: mass", payload.mass, "at least 0 kg")
            self._payloads[link] = payload
        self._adopt(self._bare)

    def set_friction(
        self,
        joint: str,
        viscous: float,
        coulomb: float,
        *,
        offset: float = 0.0,
        coulomb_negative: float | None = None,
        stribeck_torque: float = 0.0,
        stribeck_rate: float = 1.0,
    ) -> None:
        """Another law of friction at a joint: see `mechanism.Friction` for its terms and units.

        The first law of its kind at a joint (with an offset, say, where there was none) compiles
        the kernels anew; any other compiles nothing.

        Raises:
            InputError: no such joint, a number that is not finite, or a law that drives the joint.
        """
        names = self._bare.tree_names
        if joint not in names:
            raise wrong(InputError, "friction: joint", joint, choices(names))
        law = Friction(viscous, coulomb, offset, coulomb_negative, stribeck_torque, stribeck_rate)
        for what, value, expected in law.faults():
            raise wrong(InputError, f"{what} of {joint}", value, expected)
        links = tuple(
            replace(link, joint=replace(link.joint, friction=law))
            if link.joint.name == joint
            else link
            for link in self._bare.links
        )
        self._adopt(replace(self._bare, links=links))

    def _adopt(self, bare: Mechanism) -> None:
        loaded = bare
        for link, payload in self._payloads.items():
            loaded = with_payload(loaded, link, payload)
        try:
            self._model.update(loaded)
        except Recompile:
            self._take(self._compiled(loaded))
        if self._motors is not None:
            self._motors.update(loaded.gravity)
        self._bare, self.mechanism = bare, loaded

    def _compiled(self, mechanism: Mechanism) -> OpenChain | ClosedChain:
        kind = ClosedChain if mechanism.loops else OpenChain
        return kind(mechanism, **self._options)

    def _take(self, model: OpenChain | ClosedChain) -> None:
        """Compute with this model from now on, a closed one from where the last one was."""
        torques = model.torques
        if isinstance(model, ClosedChain):
            if self.closed is not None:
                model.reset(self.closed.last)
            self.closed = model
        self._model, self._torques = model, torques
