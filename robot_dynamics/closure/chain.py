"""The model of a closed mechanism over floats: torques and matrices from q, q̇, q̈."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..equations import TERMS
from ..errors import ClosureError, DescriptionError, InputError, wrong
from ..mechanism import Mechanism, Pose
from ..scalar import Array
from .functions import Floats, Mask
from .kinematic_state import KinematicState
from .model import ClosedModel
from .parameters import Parameters
from .solver import ClosureSolver
from .subsystems import Subsystems

CONDITION_LIMIT = 1e3
"""Of the passive Jacobian: beyond it torques may be a hundred times as large as elsewhere"""
STRAIGHT_LINE = 50
"""Entries of T_q up to which the Coriolis matrix is one program"""
STRIDE = 0.1
"""rad, or shares of the size: how far batches go at a time, from home to where they are"""


class ClosedChain:
    """tau = D(q) q̈ + C(q, q̇) q̇ + G(q) + friction - F_ext of a mechanism with loops (18, 39, 40).

    q are the control coordinates: the actuated joints, or, with `sensed`, those and the passive
    joints that carry a sensor. The other joints are solved, from the state before (at first from
    home) on. Arrays are float64 in SI units, (…, k) in, k = len(joint_names); a state with a NaN
    in q gives NaN. One instance is for one thread: it remembers where the mechanism was.

    Args:
        mechanism: with loops and `home`.
        formulation, rotors, terms, friction_smoothing, backend, threads: as in `InverseDynamics`;
            the formulation is that of the legs.
        sensed: take q = [q_a, q_s] instead of q_a.
        condition_limit: of the passive Jacobian; beyond it a state is refused.

    Raises:
        DescriptionError: home leaves joints out or is not closed; too few or too many motors.
        ClosureError: home is singular.
        InputError: an unknown formulation, rotor model or term.
        BackendError: see `InverseDynamics`.
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
        if sensed and not mechanism.sensed:
            raise DescriptionError(
                "sensed: the description lists no sensed joints; add `sensed: [<passive joints>]`",
                name="sensed",
                expected="names of passive joints",
            )
        choices = (formulation, rotors, tuple(terms), friction_smoothing)
        self._taken_apart: Callable[[Mechanism], Subsystems] = lambda m: Subsystems.of(m, *choices)
        parts = self._taken_apart(mechanism)
        self.mechanism = mechanism
        self.sensed = sensed
        self.condition_limit = condition_limit
        self.solver = ClosureSolver(parts)
        found = self.solver.mobility
        kept = list(found.kept)
        self.model = ClosedModel(
            parts,
            sensed,
            found.kept,
            found.row_scale[kept],
            found.column_scale,
            found.pivots,
            float(condition_limit),
        )
        self._a, self._k, self._n = parts.actuated, self.model.known, len(parts.names)
        self.coordinate_names: tuple[str, ...] = parts.names
        """The order of q_r: actuated, sensed, other passive joints"""
        self.actuated_names: tuple[str, ...] = parts.names[: self._a]
        self.joint_names: tuple[str, ...] = parts.names[: self._k]
        self._layout = Parameters(parts)
        self._parameters = self._layout.values(parts)
        self._options = (backend, threads)
        self._kernels: dict[str, Kernel] = {}
        self._rest = np.zeros(self._k)
        self._memory: Floats = np.zeros(0)
        self.reset()
        self._at_once = self._kernel("at_once").call

    # --- what was found out -----------------------------------------------------------------

    @property
    def subsystems(self) -> Subsystems:
        """Legs and platform, as they are now."""
        return self.model.parts

    @property
    def degrees_of_freedom(self) -> int:
        return self.solver.mobility.degrees_of_freedom

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """The closure's rows that say nothing new, by name; they are left out."""
        rows = self.model.parts.constraints.rows
        return tuple(str(rows[i]) for i in self.solver.mobility.left_out)

    @property
    def home(self) -> KinematicState:
        """The home configuration, at rest, brought onto the closure."""
        return self.solver.home

    @property
    def last(self) -> KinematicState:
        """What was solved last, at rest: its `residual` and `condition` are for diagnostics."""
        return self.solver.state(self._last)

    @property
    def backend(self) -> str:
        """Which backend runs the torques, and why where it is not the first choice."""
        return self._kernel("at_once").description

    # --- position ---------------------------------------------------------------------------

    def forward(self, q: ArrayLike, qd: ArrayLike | None = None) -> KinematicState:
        """Passive joints and platform (…) from the control coordinates (…, k).

        Raises:
            ClosureError: the loops can't be closed there on this assembly mode.
            InputError: a wrong shape.
        """
        arrays = self._arrays(q=q) if qd is None else self._arrays(q=q, qd=qd)
        q_r, valid, _ = self._closed(arrays[0])
        state = self.solver.state(q_r)
        if qd is not None:
            # q̇_r = T_q q̇
            T = state.T_q if self.sensed else state.T
            state = state.moving((T @ arrays[1][..., None])[..., 0])
        if not np.all(valid):
            q_r = np.where(valid[..., None], q_r, np.nan)
            state = KinematicState(state.functions, q_r, state.qd_r, state.residual)
        return state

    def inverse(
        self, pose: Pose | ArrayLike, start: KinematicState | None = None
    ) -> KinematicState:
        """All joints from the platform's pose; see `ClosureSolver.inverse`."""
        return self.solver.inverse(pose, start)

    def reset(self, start: KinematicState | None = None) -> None:
        """Solve the next state from start (home if None) on."""
        self._remember((start or self.home).q_r)

    # --- dynamics ---------------------------------------------------------------------------

    def __call__(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
    ) -> Floats:
        """The same as `torques`."""
        return self.torques(q, qd, qdd, wrench)

    def torques(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
    ) -> Floats:
        """Torques (…, n_a) at q, qd, qdd (…, k).

        Args:
            wrench: (…, 6), the force (N) and the moment about P (N·m) that act on the platform
                from outside, in the base frame; a push that helps makes the torques smaller.

        Raises:
            ClosureError: a state that can't be closed or is too near a singularity.
            InputError: a wrong shape.
        """
        # one state, near the one before: what nearly every call is
        out = self._at_once(q, qd, qdd, self._memory)
        if out is not None and out[self._a] <= 1.0 and wrench is None:
            self._memory = out
            return out[: self._a]  # type: ignore[no-any-return]
        return self._carefully(q, qd, qdd, wrench)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n_a, k) at q (…, k)."""
        q_r, valid = self._sound(q)
        return _finished(self._kernel("mass_matrix").call(q_r), valid)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n_a, k) at q, qd (…, k).

        For the actuated joints alone it consists of Christoffel symbols: dD/dt - 2C is skew.
        """
        q, qd = self._arrays(q=q, qd=qd)
        q_r, valid = self._sound(q)
        if self._k * self._n <= STRAIGHT_LINE:
            return _finished(self._kernel("coriolis_matrix").call(q_r, qd), valid)
        columns = self._kernel("coriolis_column")(
            q_r[..., None, :], qd[..., None, :], np.eye(self._k)
        )
        return _finished(np.ascontiguousarray(_transposed(columns)), valid)

    def gravity(self, q: ArrayLike) -> Floats:
        """G (…, n_a) at q (…, k)."""
        q_r, valid = self._sound(q)
        return _finished(self._kernel("gravity").call(q_r), valid)

    def external_force(self, q: ArrayLike, wrench: ArrayLike) -> Floats:
        """F_ext (…, n_a) of a wrench (…, 6) on the platform, at q (…, k)."""
        force = np.asarray(wrench, dtype=float)
        if force.ndim == 0 or force.shape[-1] != 6:
            raise wrong(InputError, "wrench", force.shape, "(…, 6): force and moment about P")
        q_r, valid = self._sound(q)
        # F_ext = Tᵀ J_Cᵀ Q_x
        J_R = self.solver.state(q_r).J_R
        return _finished((_transposed(J_R) @ force[..., None])[..., 0], valid)

    def update(self, mechanism: Mechanism) -> None:
        """Take over gravity, friction and inertias of a mechanism of the same geometry."""
        parts = self._taken_apart(mechanism)
        parameters = self._layout.values(parts)
        self.mechanism, self.model = mechanism, self.model.over(parts)
        self._parameters = parameters
        for kernel in self._kernels.values():
            kernel.parameters = parameters

    # --- kernels ----------------------------------------------------------------------------

    def _kernel(self, name: str) -> Kernel:
        """The kernel of one of the model's functions; it is built when it is first asked for."""
        if name not in self._kernels:
            kind = _Quick if name == "at_once" else Kernel
            self._kernels[name] = kind(self.function(name), self._parameters, *self._options)
        return self._kernels[name]

    def function(self, name: str) -> Function:
        """One of `ClosedModel`'s functions, to compile."""
        a, k, n = self._a, self._k, self._n
        memory = len(self._memory)
        sizes = {"q": k, "qd": k, "qdd": k, "w": k, "q_r": n, "u": n - k, "memory": memory}
        arguments, shape = {
            "at_once": (("q", "qd", "qdd", "memory"), (memory,)),
            "closing": (("q", "u"), (n + 2,)),
            "torques": (("q_r", "qd", "qdd"), (a,)),
            "gravity": (("q_r",), (a,)),
            "mass_matrix": (("q_r",), (a, k)),
            "coriolis_matrix": (("q_r", "qd"), (a, k)),
            "coriolis_column": (("q_r", "qd", "w"), (a,)),
        }[name]

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, p = vectors
            model = self.model.over(self._layout.filled(p))
            return np.ravel(getattr(model, name)(*states))

        m = self.model
        content = (
            m.sensed,
            m.kept,
            m.row_scale,
            m.column_scale,
            m.pivots,
            m.condition_limit,
            self._layout.content,
        )
        return Function(
            name,
            arguments,
            tuple(sizes[x] for x in arguments),
            shape,
            self._layout.size,
            equations,
            content,
            self.mechanism.name,
        )

    # --- closing the loops ------------------------------------------------------------------

    @property
    def _last(self) -> Floats:
        """q_r (n_r,) that was closed last."""
        return self._memory[self._a + 1 : self._a + 1 + self._n]

    def _remember(self, q_r: Floats) -> None:
        state = self.solver.state(q_r)
        T = state.T_q if self.sensed else state.T
        self._memory = self.model.memory(q_r, T[self._k :])

    def _carefully(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None
    ) -> Floats:
        """The torques where the state is far from the last, singular, a batch or no state."""
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        q_r, valid = self._sound(q)
        if q.ndim == 1:
            tau = self._at_once(q, qd, qdd, self._memory)[: self._a]
        else:
            tau = self._kernel("torques")(q_r, qd, qdd)
        if wrench is not None:
            tau = tau - self.external_force(q, wrench)
        return _finished(tau, valid)

    def _sound(self, q: ArrayLike) -> tuple[Floats, Mask]:
        """(q_r (…, n_r), which are numbers) of states that are not too near a singularity."""
        if self._quickly(q):
            return self._last, _VALID
        (q,) = self._arrays(q=q)
        before = self._memory
        q_r, valid, nearness = self._closed(q)
        if not nearness <= 1.0:
            condition = np.max(self.solver.state(q_r).condition, initial=1.0)
            if not condition <= self.condition_limit:
                # what is refused is no place to go on from
                self._memory = before
                raise ClosureError(
                    "closure: too near a singularity: the passive Jacobian's condition number is "
                    f"{condition:.3g}, the limit {self.condition_limit:.3g}",
                    name="condition",
                    value=float(condition),
                    expected=f"at most {self.condition_limit:g}",
                )
        return q_r, valid

    def _quickly(self, q: ArrayLike) -> bool:
        """Is it one state near the last? Then it is the last now."""
        out = self._at_once(q, self._rest, self._rest, self._memory)
        if out is None or not out[self._a] <= 1.0:
            return False
        self._memory = out
        return True

    def _closed(self, q: Floats) -> tuple[Floats, Mask, float]:
        """(q_r (…, n_r), which are numbers, the worst nearness to a singularity).

        The last of the states is kept in mind.
        """
        valid = np.asarray(np.isfinite(q).all(axis=-1))
        if q.ndim == 1:
            if valid and not self._quickly(q):
                self._remember(self._solved(q, self._last, None))
            return self._last, valid, np.inf
        flat, is_valid = q.reshape(-1, self._k), valid.ravel()
        q_r, done, nearness = self._from_home(flat, is_valid)
        before = self.home.q_r
        for place in np.flatnonzero(is_valid & ~done):
            before = q_r[place - 1] if place and done[place - 1] else before
            q_r[place] = before = self._solved(flat[place], before, int(place))
            nearness = np.inf
        if np.any(is_valid):
            self._remember(q_r[np.flatnonzero(is_valid)[-1]])
        return q_r.reshape(*q.shape[:-1], self._n), valid, nearness

    def _from_home(self, q: Floats, valid: Mask) -> tuple[Floats, Mask, float]:
        """(q_r (m, n_r), which rows of q were closed in strides from home on, their nearness)."""
        home = self.home.q_r
        q_r = np.tile(home, (len(q), 1))
        way = np.where(valid[:, None], q - home[: self._k], 0.0)
        longest = abs(way / self.solver.scale[: self._k]).max(initial=0.0)
        strides = int(np.clip(np.ceil(longest / STRIDE), 1, 100))
        sound, nearness = valid.copy(), 0.0
        for stride in range(1, strides + 1):
            here = home[: self._k] + way * (stride / strides)
            out = self._kernel("closing")(here, q_r[:, self._k :])
            sound &= out[:, 0] <= 1.0
            q_r[sound] = out[sound, 2:]
            nearness = out[sound, 1].max(initial=0.0)
        return q_r, sound, float(nearness)

    def _solved(self, known: Floats, last: Floats, place: int | None) -> Floats:
        try:
            return self.solver.forward(known, last)
        except ClosureError:
            pass
        # where the last state was may be far off: home is where the assembly mode is known
        try:
            return self.solver.forward(known, self.home.q_r)
        except ClosureError as failure:
            if place is None:
                raise
            raise ClosureError(
                f"state {place} of the batch: {failure}",
                name=failure.name,
                value=failure.value,
                expected=failure.expected,
            ) from None

    def _arrays(self, **states: ArrayLike) -> list[Floats]:
        """Floats of one shape (…, k)."""
        k, arrays = self._k, []
        for name, state in states.items():
            try:
                array = np.asarray(state, dtype=float)
            except (TypeError, ValueError):
                raise wrong(InputError, name, type(state).__name__, "real numbers") from None
            if array.ndim == 0 or array.shape[-1] != k:
                raise wrong(
                    InputError, name, array.shape, f"shape (…, {k}): {', '.join(self.joint_names)}"
                )
            arrays.append(array)
        try:
            return list(np.broadcast_arrays(*arrays))
        except ValueError:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise wrong(InputError, ", ".join(states), shapes, "batches that fit") from None


_VALID = np.asarray(True)


class _Quick(Kernel):
    """A kernel of single states; None where it is asked anything else."""

    def _any(self, *states: ArrayLike) -> Any:
        try:
            arrays = [np.ascontiguousarray(state, dtype=float) for state in states]
        except (TypeError, ValueError):
            return None
        if any(x.shape != (size,) for x, size in zip(arrays, self.function.sizes, strict=True)):
            return None
        return self._machine.one(arrays)


def _transposed(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)


def _finished(values: Floats, valid: Mask) -> Floats:
    """NaN where the state was none."""
    if np.all(valid):
        return values
    spread = valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    return np.where(spread, values, np.nan)
