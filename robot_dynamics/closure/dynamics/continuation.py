"""Where a closed mechanism is, state after state: what one call leaves for the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ClosureError
from ...scalar import Floats
from ..geometry.functions import Mask
from ..geometry.solver import ClosureSolver
from .kernels import ModelKernels

STRIDE = 0.1
"""rad, or shares of the size: how far batches go at a time, from home to where they are"""
_VALID = np.asarray(True)


class Continuation:
    """Closes control coordinates q (…, k), each state from the one before.

    Near the last state this is one call of a kernel. Else it is solved along a path from there,
    or from home, where the assembly mode is known.
    """

    def __init__(self, solver: ClosureSolver, kernels: ModelKernels):
        self._solver, self._kernels = solver, kernels
        model = kernels.model
        self._a, self._k, self._n = model.geometry.actuated, model.known, len(model.geometry.names)
        self._limit = model.condition_limit
        self._rest = np.zeros(self._k)
        self._memory: Floats = np.zeros(0)
        self.restart(solver.home.q_r)
        self._at_once = kernels["at_once"].call

    @property
    def last(self) -> Floats:
        """q_r (n_r,) that was closed last."""
        return self._memory[self._a + 1 : self._a + 1 + self._n]

    def restart(self, q_r: Floats) -> None:
        """Go on from a closed configuration (n_r,)."""
        state, model = self._solver.state(q_r), self._kernels.model
        T = state.T_q if model.sensed else state.T
        self._memory = model.memory(q_r, T[self._k :])

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats | None:
        """τ (n_a,) of one state near the last; None: it is something else."""
        out = self._at_once(q, qd, qdd, self._memory)
        if out is None or not out[self._a] <= 1.0:
            return None
        self._memory = out
        return out[: self._a]

    def torques_here(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """τ (n_a,) at the last state, however near a singularity it is."""
        return self._at_once(q, qd, qdd, self._memory)[: self._a]

    def sound(self, q: Floats) -> tuple[Floats, Mask]:
        """(q_r (…, n_r), which are numbers) of states that are not too near a singularity.

        Raises:
            ClosureError: one that can't be closed, or is too near.
        """
        before = self._memory
        q_r, valid, nearness = self.closed(q)
        if not nearness <= 1.0:
            condition = np.max(self._solver.state(q_r).condition, initial=1.0)
            if not condition <= self._limit:
                # what is refused is no place to go on from
                self._memory = before
                raise ClosureError(
                    "closure: too near a singularity: the passive Jacobian's condition number is "
                    f"{condition:.3g}, the limit {self._limit:.3g}",
                    name="condition",
                    value=float(condition),
                    expected=f"at most {self._limit:g}",
                )
        return q_r, valid

    def closed(self, q: Floats) -> tuple[Floats, Mask, float]:
        """(q_r (…, n_r), which are numbers, the worst nearness to a singularity).

        The last of the states is where the next call goes on from.

        Raises:
            ClosureError: one that can't be closed on its assembly mode.
        """
        if q.ndim == 1 and self.torques(q, self._rest, self._rest) is not None:
            return self.last, _VALID, 0.0
        valid = np.asarray(np.isfinite(q).all(axis=-1))
        if q.ndim == 1:
            if valid:
                self.restart(self._solved(q, self.last, None))
            return self.last, valid, np.inf
        flat, is_valid = q.reshape(-1, self._k), valid.ravel()
        q_r, done, nearness = self._from_home(flat, is_valid)
        before = self._solver.home.q_r
        for place in np.flatnonzero(is_valid & ~done):
            before = q_r[place - 1] if place and done[place - 1] else before
            q_r[place] = before = self._solved(flat[place], before, int(place))
            nearness = np.inf
        if np.any(is_valid):
            self.restart(q_r[np.flatnonzero(is_valid)[-1]])
        return q_r.reshape(*q.shape[:-1], self._n), valid, nearness

    def _from_home(self, q: Floats, valid: Mask) -> tuple[Floats, Mask, float]:
        """(q_r (m, n_r), which rows of q were closed in strides from home on, their nearness)."""
        k, home = self._k, self._solver.home.q_r
        q_r = np.tile(home, (len(q), 1))
        way = np.where(valid[:, None], q - home[:k], 0.0)
        longest = abs(way / self._solver.scale[:k]).max(initial=0.0)
        strides = int(np.clip(np.ceil(longest / STRIDE), 1, 100))
        sound, nearness = valid.copy(), 0.0
        for stride in range(1, strides + 1):
            here = home[:k] + way * (stride / strides)
            out = self._kernels["closing"](here, q_r[:, k:])
            sound &= out[:, 0] <= 1.0
            q_r[sound] = out[sound, 2:]
            nearness = float(out[sound, 1].max(initial=0.0))
        return q_r, sound, nearness

    def _solved(self, known: Floats, last: Floats, place: int | None) -> Floats:
        try:
            return self._solver.forward(known, last)
        except ClosureError:
            pass
        # where the last state was may be far off: home is where the assembly mode is known
        try:
            return self._solver.forward(known, self._solver.home.q_r)
        except ClosureError as failure:
            if place is None:
                raise
            raise ClosureError(
                f"state {place} of the batch: {failure}",
                name=failure.name,
                value=failure.value,
                expected=failure.expected,
            ) from None
