"""Where a closed mechanism is, state after state: what one call leaves for the next."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ClosureError, ClosureWarning
from ...scalar import Floats
from ..geometry.functions import Mask
from ..geometry.kinematic_state import KinematicState
from ..geometry.solver import ClosureSolver
from .kernels import ModelKernels

STRIDE = 0.1
"""rad, or shares of the size: how far batches go at a time, from the origin to where they are"""
SHORT_STRIDE = 0.03
"""The same of a single state, from the last one"""
MOST_STRIDES = 200
_VALID = np.asarray(True)


@dataclass(frozen=True, eq=False)
class Origin:
    """A closed configuration to start from; its assembly mode is that of all that follows."""

    q_r: Floats
    """(n_r,)"""
    memory: Floats
    """What `ClosedModel.at_once` goes on from"""

    @property
    def mode(self) -> float:
        """1 or -1: the sign of the passive Jacobian's determinant."""
        return float(self.memory[-1])


class _Here(threading.local):
    """What this thread closed last, and the origin that it came from."""

    origin: Origin | None = None
    memory: Floats = np.zeros(0)


class Continuation:
    """Closes control coordinates q (…, k), each state from the one before.

    Near the last state this is one call of a kernel. Else it is solved along a path from there,
    or from the origin, where the assembly mode is known. Every thread goes on from its own last
    state. What has another assembly mode than the origin is an error.
    """

    def __init__(self, solver: ClosureSolver, kernels: ModelKernels):
        self._solver = solver
        self.kernels = kernels
        """May be assigned: those of a model of the same geometry"""
        model = kernels.model
        self._a, self._k, self._n = model.geometry.actuated, model.known, len(model.geometry.names)
        self._limit = model.condition_limit
        self._rest = np.zeros(self._k)
        self._here = _Here()
        self.restart(solver.home)

    @property
    def origin(self) -> KinematicState:
        """Where `restart` began."""
        return self._solver.state(self._origin.q_r)

    @property
    def last(self) -> Floats:
        """q_r (n_r,) that was closed last, by whichever thread."""
        return self._configuration(self._latest)

    def restart(self, start: KinematicState) -> None:
        """Go on from a closed configuration, in every thread."""
        memory = self._remembered(start, float(start.assembly_mode))
        self._origin, self._latest = Origin(np.array(start.q_r), memory), memory

    def go_on(self, origin: KinematicState, last: Floats) -> None:
        """From an origin by way of what was closed last (n_r,)."""
        self.restart(origin)
        self._keep(self._memory_at(last, self._origin), self._origin)

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats | None:
        """τ (n_a,) of one state near the last; None: it is not near, or not one state."""
        out = self._next(q, qd, qdd, self._origin)
        return None if out is None else out[: self._a]

    def torques_at(self, q_r: Floats, qd: Floats, qdd: Floats) -> Floats:
        """τ (n_a,) at a closed configuration (n_r,), however near a singularity it is."""
        memory = self._memory_at(q_r, self._origin)
        return np.asarray(self.kernels.at_once(q_r[: self._k], qd, qdd, memory)[: self._a])

    def sound(self, q: Floats) -> tuple[Floats, Mask]:
        """(q_r (…, n_r), which are numbers) of states that are not too near a singularity.

        Raises:
            ClosureError: a single state that can't be closed, or is too near.
        """
        origin = self._origin
        before = self._memory(origin)
        q_r, valid, nearness = self.closed(q)
        near = valid & ~(nearness <= 1.0)
        if not near.any():
            return q_r, valid
        condition = self._solver.state(q_r[near]).condition
        singular = ~(condition <= self._limit)
        if not singular.any():
            return q_r, valid
        worst = float(condition.max())
        failure = ClosureError(
            "closure: too near a singularity: the passive Jacobian's condition number is "
            f"{worst:.3g}, the limit {self._limit:.3g}",
            name="condition",
            value=worst,
            expected=f"at most {self._limit:g}",
        )
        if q.ndim == 1:
            # what is refused is no place to go on from
            self._keep(before, origin)
            raise failure
        out = np.zeros_like(valid)
        out[near] = singular
        _warn(out, failure)
        return q_r, valid & ~out

    def closed(self, q: Floats) -> tuple[Floats, Mask, Floats]:
        """(q_r (…, n_r), which are numbers, how near each (…,) is to a singularity).

        The last of the states is where the next call goes on from. States of a batch are closed
        from the origin, or from the row before; rows that can't be closed are no numbers.

        Raises:
            ClosureError: a single state that can't be closed on its assembly mode.
        """
        origin = self._origin
        if q.ndim == 1:
            out = self._walked(q, origin)
            if out is not None:
                return self._configuration(out), _VALID, np.asarray(0.0)
            last = self._configuration(self._memory(origin))
            if not np.isfinite(q).all():
                return last, np.asarray(False), np.asarray(0.0)
            found = self._solved(q, last, origin)
            self._keep(self._memory_at(found, origin), origin)
            return found, _VALID, np.asarray(np.inf)
        valid = np.asarray(np.isfinite(q).all(axis=-1))
        flat, is_valid = q.reshape(-1, self._k), valid.ravel()
        q_r, done, nearness = self._from_origin(flat, is_valid, origin)
        lost, why = np.zeros(len(flat), dtype=bool), None
        before = origin.q_r
        for place in np.flatnonzero(is_valid & ~done):
            before = q_r[place - 1] if place and done[place - 1] else before
            nearness[place] = np.inf
            try:
                q_r[place] = before = self._solved(flat[place], before, origin)
                done[place] = True
            except ClosureError as failure:
                lost[place], why = True, why or failure
        if why is not None:
            _warn(lost.reshape(valid.shape), why)
        sound = is_valid & ~lost
        if sound.any():
            last = q_r[np.flatnonzero(sound)[-1]]
            self._keep(self._memory_at(last, origin), origin)
        shape = q.shape[:-1]
        return q_r.reshape(*shape, self._n), sound.reshape(shape), nearness.reshape(shape)

    # --- helpers ----------------------------------------------------------------------------

    def _memory(self, origin: Origin) -> Floats:
        """This thread's."""
        here = self._here
        return here.memory if here.origin is origin else origin.memory

    def _keep(self, memory: Floats, origin: Origin) -> None:
        here = self._here
        here.memory, here.origin = memory, origin
        if origin is self._origin:
            self._latest = memory

    def _next(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, origin: Origin) -> Floats | None:
        """The memory of one state near the last, its torques in front; None: it is not near."""
        out: Floats | None = self.kernels.at_once(q, qd, qdd, self._memory(origin))
        if out is None or not out[self._a] <= 1.0:
            return None
        self._keep(out, origin)
        return out

    def _walked(self, q: Floats, origin: Origin) -> Floats | None:
        """The memory of one state, gone to in short strides; None: one of them was doubtful."""
        out = self._next(q, self._rest, self._rest, origin)
        if out is not None or self._k > self._a or not np.isfinite(q).all():
            return out
        out = self._memory(origin)
        start = self._configuration(out)[: self._k]
        way = self._solver.way(start, q)
        strides = int(np.ceil(abs(way / self._solver.scale[: self._k]).max() / SHORT_STRIDE))
        if strides > MOST_STRIDES:
            return None
        at_once = self.kernels.at_once
        for i in range(1, strides + 1):
            out = at_once(start + way * (i / strides), self._rest, self._rest, out)
            if out is None or not out[self._a] <= 1.0:
                return None
        # the same place, by the reading as it came
        out = np.array(out)
        self._configuration(out)[: self._k] = q
        self._keep(out, origin)
        return out

    def _memory_at(self, q_r: Floats, origin: Origin) -> Floats:
        return self._remembered(self._solver.state(q_r), origin.mode)

    def _remembered(self, state: KinematicState, mode: float) -> Floats:
        model = self.kernels.model
        T = state.T_q if model.sensed else state.T
        return model.memory(state.q_r, T[self._k :], mode)

    def _configuration(self, memory: Floats) -> Floats:
        return memory[self._a + 1 : self._a + 1 + self._n]

    def _from_origin(self, q: Floats, valid: Mask, origin: Origin) -> tuple[Floats, Mask, Floats]:
        """(q_r (m, n_r), which rows of q were closed in strides from the origin on, nearness)."""
        k = self._k
        q_r = np.tile(origin.q_r, (len(q), 1))
        way = self._solver.way(origin.q_r[:k], np.where(valid[:, None], q, origin.q_r[:k]))
        longest = abs(way / self._solver.scale[:k]).max(initial=0.0)
        strides = int(np.clip(np.ceil(longest / STRIDE), 1, 100))
        sound, nearness = valid.copy(), np.zeros(len(q))
        for stride in range(1, strides + 1):
            here = origin.q_r[:k] + way * (stride / strides)
            out = self.kernels["closing"](here, q_r[:, k:])
            sound &= (out[:, 0] <= 1.0) & (out[:, 2] == origin.mode)
            q_r[sound] = out[sound, 3:]
            nearness[sound] = out[sound, 1]
        q_r[sound, :k] = q[sound]
        return q_r, sound, nearness

    def _solved(self, known: Floats, last: Floats, origin: Origin) -> Floats:
        try:
            return self._checked(self._solver.forward(known, last), origin)
        except ClosureError:
            pass
        # where the last state was may be far off: the origin is where the assembly mode is known
        return self._checked(self._solver.forward(known, origin.q_r), origin)

    def _checked(self, q_r: Floats, origin: Origin) -> Floats:
        """The same, on the origin's assembly mode: what readings say may be on another."""
        if float(self._solver.state(q_r).assembly_mode) != origin.mode:
            known = self._solver.named(q_r[: self._k])
            raise ClosureError(
                f"closure: {known} are on another assembly mode than home: there is a "
                "singularity in between",
                name="closure",
                value=q_r[: self._k].tolist(),
                expected="a configuration on the assembly mode of home",
            )
        return q_r


def _warn(lost: Mask, why: ClosureError) -> None:
    first = ", ".join(map(str, np.argwhere(lost)[0]))
    warnings.warn(
        f"{int(lost.sum())} of {lost.size} states are left out (nan), the first at [{first}]: "
        f"{why}",
        ClosureWarning,
        stacklevel=5,
    )
