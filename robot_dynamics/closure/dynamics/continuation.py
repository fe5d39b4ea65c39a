# SPDX-License-Identifier: Apache-2.0
"""Closes the loops for one state after another, each from the configuration found last."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ClosureError, ClosureWarning, callers_level
from ...scalar import Floats, Mask
from ..geometry.closer import Closer
from ..geometry.kinematic_state import KinematicState
from ..geometry.path_following import beyond, march
from .kernels import ModelKernels

STRIDE = 0.1
"""rad, or fractions of the size: how far a row of a batch moves between two Newton solves"""
SHORT_STRIDE = 0.03
"""The same for a single state, starting from the last one"""
SHORTEST_STRIDE = SHORT_STRIDE / 64
"""The limit to which an uncertain stride is halved"""
MOST_STRIDES = 1000
"""Number of strides tried in one call: a few ms in compiled code"""
FARTHEST = 15.0
"""rad, or fractions of the size: states farther away are refused immediately"""
MOST_PIVOTS = 40
"""Strides tried in one call with pivots that are chosen anew: a few ms each for 50 joints"""
MOST_STEPS = 40
"""Certified steps tried for a single state: a few tens of ms, several times that for 50 joints"""
MOST_STEPS_OF_READINGS = 100
"""The same with sensors"""
MOST_STEPS_OF_A_ROW = 200
"""The same for each row of a batch"""
BLOCK = 1 << 16
"""Number of rows of a batch that are closed at a time, to keep intermediate results small"""
_SAME = 1e-6
"""rad, or fractions of the size: configurations nearer than this are the same, since other
solutions are far away"""
_VALID = np.asarray(True)


class _Here(threading.local):
    """The memory of the state that this thread closed last, and the origin that it started from."""

    origin: Floats | None = None
    memory: Floats = np.zeros(0)
    base: Floats | None = None
    """The memory at the start of a path that was too long for one call"""
    end: Floats = np.zeros(0)
    """The memory at the point that this path reached"""


class Continuation:
    """Closes the loops at control coordinates q (…, k), each state from the one before.

    Near the last state this is one kernel call. Farther away, a path is followed from there, or
    from the origin, whose assembly mode is known. Each thread continues from its own last state.
    A state is refused if it is on another assembly mode than the origin's, or if neither the path
    from the last state nor the one via the origin reaches it within a bounded time.

    q, qd, qdd are the control coordinates, their rates and accelerations, as in `ClosedChain`.

    Args:
        closer: of the mechanism.
        kernels: of its model.
    """

    def __init__(self, closer: Closer, kernels: ModelKernels):
        self._closer = closer
        self.kernels = kernels
        """May be replaced by the kernels of a model of the same geometry"""
        model = kernels.model
        self._label = model.geometry.described.label
        self._a, self._k, self._n = model.geometry.actuated, model.known, len(model.geometry.names)
        self._motors = model.motors
        self._size = model.memory_size
        self._limit = model.condition_limit
        # the readings determine all other joints in closed form, or are only those of the motors
        self._reads_all = model.hinged is not None or self._k == self._a
        self._rest = np.zeros(self._k)
        self._here = _Here()
        self.restart(closer.home)

    @property
    def origin(self) -> KinematicState:
        """The state given to `restart`."""
        return self._closer.state(self._configuration(self._origin).copy())

    @property
    def last(self) -> Floats:
        """The configuration q_r (n_r,) closed last, by any thread."""
        return np.array(self._configuration(self._latest))

    def restart(self, start: KinematicState) -> None:
        """Let every thread continue from a closed configuration."""
        # the assembly mode (the last entry) is kept from now on
        self._origin = self._latest = self._remembered(start, float(start.assembly_mode))

    def go_on(self, origin: KinematicState, last: Floats) -> None:
        """Let this thread continue from a closed `last` (n_r,), and every other from `origin`."""
        self.restart(origin)
        self._keep(self._memory_at(last, self._origin), self._origin)

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats | None:
        """τ (n_m,) of one state near the last; None: it is not near, or not a single state."""
        out = self._next(q, qd, qdd, self._origin)
        return None if out is None else out[: self._motors]

    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats] | None:
        """(τ (n_m,), q_r (n_r,)) of one state near the last; None as for `torques`."""
        out = self._next(q, qd, qdd, self._origin)
        return None if out is None else (out[: self._motors], self._configuration(out).copy())

    def disagreement(self, q: ArrayLike, most: float) -> tuple[Floats, float] | None:
        """Compare readings (k,) of actuated and sensed joints with the closed configuration.

        Returns (q_r (n_r,), closed at the motors' positions to first order or better; the largest
        |reading - fit|, rad or fractions of the mechanism's size). None: the readings are not near
        the last state, or disagree by more than `most`; the last state is then kept.
        """
        origin = self._origin
        out = self.kernels["disagreement"].call(q, self._memory(origin))
        if out is None or not out[self._motors] <= 1.0:
            return None
        size = self._size
        # for so few numbers Python's own max is fastest
        off = out[size : size + self._k].tolist()
        left = max(max(off), -min(off))
        if not left <= most:
            return None
        self._keep(out[:size], origin)
        return out[size + self._k :], left

    def consistent_torques(self, q: ArrayLike, qd: ArrayLike, qdd_a: ArrayLike) -> Floats | None:
        """τ (n_m,) at q, with the q̈_s that follow from q̈_a; None: q was not closed last, or is
        singular."""
        memory = self._memory(self._origin)
        out: Floats | None = self.kernels["consistent_torques"].call(q, qd, qdd_a, memory)
        return None if out is None or not out[self._motors] <= 1.0 else out[: self._motors]

    def at_motors(self, q_a: Floats, start: Floats) -> Floats:
        """The closed q_r (n_r,) with the motors at q_a (n_a,), from a start that may be open.

        Raises:
            ClosureError: the loops can't be closed there.
        """
        return self._at_motors(q_a, start, self._origin, MOST_STEPS_OF_READINGS)

    def go_to(self, q_r: Floats) -> None:
        """Continue from a closed configuration that another model found.

        Raises:
            ClosureError: it is on another assembly mode.
        """
        origin = self._origin
        self._keep(self._memory_at(self._checked(q_r, origin), origin), origin)

    def torques_at(self, q_r: Floats, qd: Floats, qdd: Floats) -> Floats:
        """τ (n_m,) at a closed configuration (n_r,), even near a singularity."""
        memory = self._here.memory
        # nearly always the configuration that has just been closed
        if not np.array_equal(self._configuration(memory), q_r):
            memory = self._memory_at(q_r, self._origin)
        return np.asarray(self.kernels.at_once(q_r[: self._k], qd, qdd, memory)[: self._motors])

    def close_regular(self, q: Floats) -> tuple[Floats, Mask]:
        """(q_r (…, n_r), which rows are valid); rows too near a singularity are not valid.

        Raises:
            ClosureError: a single state that can't be closed, or is too near a singularity.
        """
        origin = self._origin
        before = self._memory(origin)
        q_r, valid, nearness = self.close(q)
        near = valid & ~(nearness <= 1.0)
        if not near.any():
            return q_r, valid
        condition = self._closer.state(q_r[near]).condition
        singular = ~(condition <= self._limit)
        if not singular.any():
            return q_r, valid
        worst = float(condition.max())
        failure = self._closer.geometry.refusal(
            "closure: too near a singularity: the passive Jacobian's condition number is "
            f"{worst:.3g}, the limit {self._limit:.3g}",
            worst,
            f"at most {self._limit:g}",
            "condition",
        )
        if q.ndim == 1:
            # do not continue from a state that is refused
            self._keep(before, origin)
            raise failure
        out = np.zeros_like(valid)
        out[near] = singular
        _warn(self._label, out, failure)
        return q_r, valid & ~out

    def close(self, q: Floats) -> tuple[Floats, Mask, Floats]:
        """(q_r (…, n_r), which rows are valid, how near each row (…,) is to a singularity).

        The next call continues from the last of the states. States of a batch are closed starting
        from the origin or from the previous row; rows that can't be closed are invalid.

        Raises:
            ClosureError: a single state that can't be closed on its assembly mode.
        """
        origin = self._origin
        if q.ndim == 1:
            out = self._next(q, self._rest, self._rest, origin)
            if out is not None:
                return self._configuration(out).copy(), _VALID, np.asarray(0.0)
            memory = self._memory(origin)
            if not np.isfinite(q).all():
                return self._configuration(memory).copy(), np.asarray(False), np.asarray(0.0)
            most = MOST_STEPS if self._k == self._a else MOST_STEPS_OF_READINGS
            start = self._nearest(q, memory)
            memory, doubt = self._reached(q, memory, origin, most, start)
            self._keep(memory, origin)
            return self._configuration(memory).copy(), _VALID, np.asarray(doubt)
        valid = np.asarray(np.isfinite(q).all(axis=-1))
        flat, is_valid = q.reshape(-1, self._k), valid.ravel()
        q_r, done, nearness = self._from_origin(flat, is_valid, origin)
        lost, why = np.zeros(len(flat), dtype=bool), None
        before = origin
        for place in np.flatnonzero(is_valid & ~done):
            if place and done[place - 1]:
                before = self._memory_at(q_r[place - 1], origin)
            try:
                before, nearness[place] = self._reached(
                    flat[place], before, origin, MOST_STEPS_OF_A_ROW, before
                )
                q_r[place], done[place] = self._configuration(before), True
            except ClosureError as failure:
                lost[place], why = True, why or failure
        if why is not None:
            _warn(self._label, lost.reshape(valid.shape), why)
        sound = is_valid & ~lost
        if sound.any():
            last = q_r[np.flatnonzero(sound)[-1]]
            self._keep(self._memory_at(last, origin), origin)
        shape = q.shape[:-1]
        return q_r.reshape(*shape, self._n), sound.reshape(shape), nearness.reshape(shape)

    # --- helpers ----------------------------------------------------------------------------

    def _memory(self, origin: Floats) -> Floats:
        """This thread's memory, or the origin's if it has closed nothing since."""
        here = self._here
        return here.memory if here.origin is origin else origin

    def _keep(self, memory: Floats, origin: Floats) -> None:
        here = self._here
        here.memory, here.origin = memory, origin
        if origin is self._origin:
            self._latest = memory

    def _nearest(self, q: Floats, memory: Floats) -> Floats:
        """This memory, or the end of the unfinished path from it if that is nearer to q (k,)."""
        if self._here.base is not memory:
            return memory

        def distance(each: Floats) -> float:
            way = self._closer.way(self._configuration(each)[: self._k], q)
            return float(abs(way / self._closer.scale[: self._k]).max())

        return min(memory, self._here.end, key=distance)

    def _next(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, origin: Floats) -> Floats | None:
        """The memory of one state near the last, which starts with its torques; None: not near."""
        out: Floats | None = self.kernels.at_once(q, qd, qdd, self._memory(origin))
        if out is None or not out[self._motors] <= 1.0:
            return None
        self._keep(out, origin)
        return out

    def _walked(
        self, q: Floats, start: Floats, step: Callable[[Floats, Floats], Floats | None]
    ) -> tuple[Floats, float]:
        """(q_r (n_r,), the fraction of the way to q reached), in short strides that are halved when
        uncertain.

        Args:
            q: target of the first joints, (n_a,) or (k,).
            start: (n_r,), closed.
            step: from the next q and the previous q_r to the next q_r; None: uncertain.
        """
        way = self._closer.way(start[: len(q)], q)
        length = float(abs(way / self._closer.scale[: len(q)]).max())
        longest = min(1.0, SHORT_STRIDE / max(length, SHORT_STRIDE))
        here = start

        def advance(reached: float, share: float) -> tuple[bool, float]:
            nonlocal here
            found = step(start[: len(q)] + way * beyond(reached, share), here)
            here = here if found is None else found
            return found is not None, share

        reached, _ = march(advance, longest, longest * SHORTEST_STRIDE / SHORT_STRIDE, MOST_STRIDES)
        if reached < 1.0:
            return here, reached
        # the same configuration, with q exactly as given
        return np.concatenate([q, here[len(q) :]]), 1.0

    def _memory_at(self, q_r: Floats, origin: Floats) -> Floats:
        """The memory of a closed q_r (n_r,)."""
        model, k = self.kernels.model, self._k
        # the displacement is zero, so any T_q predicts the next configuration
        unknown = model.memory(q_r, np.zeros((self._n - k, k)), origin[-1])
        out = None
        if self.kernels.has_at_once:  # it is not built for this alone
            out = self.kernels.at_once(q_r[:k], self._rest, self._rest, unknown)
        if out is None or not out[self._motors] <= 1.0:
            return self._remembered(self._closer.state(q_r), origin[-1])
        self._configuration(out)[:] = q_r
        return out

    def _remembered(self, state: KinematicState, mode: float) -> Floats:
        model = self.kernels.model
        T = state.T_q if model.sensed else state.T
        return model.memory(state.q_r, T[self._k :], mode)

    def _configuration(self, memory: Floats) -> Floats:
        at = self._motors + 1
        return memory[at : at + self._n]

    def _from_origin(self, q: Floats, valid: Mask, origin: Floats) -> tuple[Floats, Mask, Floats]:
        """(q_r (m, n_r), which rows could be closed in strides from the origin, nearness)."""
        k = self._k
        known = k if self._reads_all else self._a
        kernel = self.kernels["closing" if known == k else "motors_closing"]
        start = self._configuration(origin)
        q_r = np.tile(start, (len(q), 1))
        way = self._closer.way(start[:k], np.where(valid[:, None], q, start[:k]))
        lengths = abs(way / self._closer.scale[:k]).max(axis=1, initial=0.0)
        sound, nearness = valid & (lengths <= FARTHEST), np.zeros(len(q))

        longest = lengths[sound].max(initial=0.0)
        strides = max(int(np.ceil(longest / STRIDE)), 1)
        for first in range(0, len(q), BLOCK):
            rows = slice(first, first + BLOCK)
            here, is_sound = q_r[rows], sound[rows]
            for stride in range(1, strides + 1):
                last = stride == strides
                count, each = (k, self.kernels["closing"]) if last else (known, kernel)
                ahead = start[:count] + way[rows, :count] * (stride / strides)
                out = each(ahead, here[:, count:])
                is_sound &= (out[:, 0] <= 1.0) & (out[:, 2] == origin[-1])
                here[is_sound], nearness[rows][is_sound] = out[is_sound, 3:], out[is_sound, 1]
        q_r[sound, :k] = q[sound]
        return q_r, sound, nearness

    def _reached(
        self, q: Floats, memory: Floats, origin: Floats, most: int, start: Floats
    ) -> tuple[Floats, float]:
        """(memory at q, how near it may be to a singularity), reached in a bounded number of steps
        from `start`, the memory of the last state or one on a path from it."""
        unfinished: list[Floats] = []
        try:
            return self._reached_directly(q, start, origin, most, unfinished.append)
        except ClosureError:
            if unfinished:
                end = self._memory_at(self._checked(unfinished[0], origin), origin)
                self._here.base, self._here.end = self._memory(origin), end
            if start is not memory:
                # the path that ended there may have led nearer to a singularity
                with suppress(ClosureError):
                    return self._reached_directly(q, memory, origin, most)
            if memory is origin or not np.isfinite(q).all():
                raise
            with suppress(ClosureError):
                home = self._way_back(memory, origin, most)
                if home is not None:
                    return self._reached_directly(q, home, origin, most)
            raise

    def _way_back(self, memory: Floats, origin: Floats, most: int) -> Floats | None:
        """The memory at the origin, reached from this one; None: the way back leads to another
        configuration, as several assembly modes may have the same sign of the determinant.

        Raises:
            ClosureError: the way back takes more than `most` steps.
        """
        if self._k > self._a:
            # readings determine the configuration, whatever the previous one was
            return origin
        home, _ = self._reached_directly(
            self._configuration(origin)[: self._k], memory, origin, most
        )
        off = (self._configuration(home) - self._configuration(origin)) / self._closer.scale
        # joints that differ by whole turns are the same configuration
        return home if (abs(np.sin(off / 2)) <= _SAME).all() else None

    def _reached_directly(
        self,
        q: Floats,
        memory: Floats,
        origin: Floats,
        most: int,
        unfinished: Callable[[Floats], object] = lambda _: None,
    ) -> tuple[Floats, float]:
        """`_reached` without a detour: strides while they are certain, then certified steps.

        If these do not suffice, `unfinished` is called with the q_r (n_r,) that was reached.
        """
        start, k = self._configuration(memory), self._k
        way = self._closer.way(start[:k], q)
        if not float(abs(way / self._closer.scale[:k]).max()) <= FARTHEST:
            raise self._closer.too_far(q)
        if k > self._a:
            found = self._read(q, start, origin, most, unfinished)
            return self._memory_at(self._checked(found, origin), origin), np.inf

        def step(ahead: Floats, _: Floats) -> Floats | None:
            nonlocal memory
            out: Floats | None = self.kernels.at_once(ahead, self._rest, self._rest, memory)
            if out is None or not out[self._motors] <= 1.0:
                return None
            memory = out
            return self._configuration(out)

        found, walked = self._walked(q, start, step)
        if walked < 1.0:
            # the kernel's order of pivots, chosen at home, may fail where the loops are regular
            left = MOST_PIVOTS

            def with_pivots_from_here(ahead: Floats, here: Floats) -> Floats | None:
                nonlocal memory, left
                out = step(ahead, here)
                if out is not None or not left:
                    return out
                left -= 1
                model = replace(self.kernels.model, closure=self._closer.mobility.rows_at(here))
                with np.errstate(all="ignore"):
                    followed: Floats = np.asarray(model.followed(ahead, memory), dtype=float)
                if not followed[self._motors] <= 1.0:
                    return None
                memory = followed
                return self._configuration(followed)

            found, more = self._walked(q, found, with_pivots_from_here)
            walked = beyond(walked, (1.0 - walked) * more)
        if walked == 1.0:
            memory = np.array(memory)
            self._configuration(memory)[:] = found
            return memory, 0.0
        found = self._closer.forward_kinematics(q, found, most, unfinished, walked)
        return self._memory_at(self._checked(found, origin), origin), np.inf

    def _read(
        self,
        q: Floats,
        start: Floats,
        origin: Floats,
        most: int,
        unfinished: Callable[[Floats], object],
    ) -> Floats:
        """q_r (n_r,) from readings (k,), which need not be consistent: first from the motors'."""
        if not self._reads_all:
            start = self._at_motors(q[: self._a], start, origin, most, unfinished)
        row = self.kernels["closing"](q, start[self._k :])
        if row[0] <= 1.0 and np.isfinite(row).all():
            return np.asarray(row[3:])
        return self._closer.forward_kinematics(q, start, most, unfinished)

    def _at_motors(
        self,
        q_a: Floats,
        start: Floats,
        origin: Floats,
        most: int,
        unfinished: Callable[[Floats], object] = lambda _: None,
    ) -> Floats:
        """The closed q_r (n_r,) with the motors at q_a (n_a,), from a start that may be open."""
        kernel = self.kernels["motors_closing"]

        def step(ahead: Floats, before: Floats) -> Floats | None:
            row = kernel.call(ahead, before[self._a :])
            return row[3:] if row[0] <= 1.0 and row[2] == origin[-1] else None

        way = self._closer.way(start[: self._a], q_a) / self._closer.scale[: self._a]
        near = bool(abs(way).max() <= SHORT_STRIDE)
        q_r = step(q_a if near else start[: self._a], start)
        walked = 0.0
        if q_r is not None:
            if near:
                return q_r
            start, walked = self._walked(q_a, q_r, step)
            if walked == 1.0:
                return start
        return self._closer.forward_kinematics(q_a, start, most, unfinished, walked)

    def _checked(self, q_r: Floats, origin: Floats) -> Floats:
        """q_r, if it is on the origin's assembly mode; readings may lead to another one."""
        if float(self._closer.state(q_r).assembly_mode) != origin[-1]:
            known = self._closer.named(q_r[: self._k])
            raise self._closer.geometry.refusal(
                f"closure: {known} are in a different assembly mode from home: there is a "
                "singularity in between",
                q_r[: self._k],
                "a configuration in the assembly mode of home",
            )
        return q_r


def _warn(label: str, lost: Mask, why: ClosureError) -> None:
    first = ", ".join(map(str, np.argwhere(lost)[0]))
    # the message names the file only once
    reason = str(why).removeprefix(f"{label}: ")
    warnings.warn(
        f"{label}: {int(lost.sum())} of {lost.size} states could not be computed (NaN), the first "
        f"at [{first}]: {reason}",
        ClosureWarning,
        stacklevel=callers_level(),
    )
