# SPDX-License-Identifier: Apache-2.0
"""Redundant sensors on passive joints: a better estimate, and detection of a faulty one.

There are n_a + n_s readings for n_a degrees of freedom. The estimate is the closed configuration
that fits the readings best; the residuals show whether they are consistent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ClosureError, InputError, wrong
from ..inputs import as_floats
from ..mechanism import Mechanism
from ..scalar import Floats, Mask, is_number
from .dynamics.closed_chain import ClosedChain
from .geometry.closer import Closer
from .geometry.kinematic_state import KinematicState
from .geometry.path_following import ROUNDING

THRESHOLD = 0.02
"""rad, or fractions of the mechanism's size: well-calibrated encoders disagree by less"""
PATIENCE = 50
"""Consecutive consistent readings before a sensor is trusted again"""
RECOVERY = 0.5
"""Fraction of the threshold within which a reading counts as consistent again"""
CLEAR = 3.0
"""A sensor is named as faulty only if leaving out any other one instead leaves a residual at least
this many times as large"""
_MAX_ITERATIONS = 20
_DONE = 1e-12
INDEPENDENT = 1e-6
"""Singular values below this fraction of the largest are treated as zero"""
_FLOAT = np.dtype(float)


@dataclass(frozen=True, eq=False)
class Fit:
    """The closed configuration that fits some readings best."""

    state: KinematicState
    """The closed configuration, at rest"""
    left: Floats
    """(k,): reading - fit, rad or fractions of the mechanism's size, also for unused readings"""
    used: Mask
    """(k,): the readings that were fitted"""

    @property
    def residual(self) -> float:
        """The largest distance between a reading that was used and the fit, rad or fractions of the
        size."""
        return float(max(abs(self.left[self.used]), default=0.0))


def fit(
    closer: Closer,
    readings: ArrayLike,
    start: Floats,
    used: ArrayLike | None = None,
    *,
    scale: Floats | None = None,
    at_motors: Callable[[Floats, Floats], Floats] | None = None,
) -> Fit:
    """The closed configuration that minimises the sum of squares of reading - fit.

    It is found by Gauss–Newton steps of the actuated joints; after each the loops are closed again.

    Args:
        closer: of a mechanism with sensed joints.
        readings: (n_a + n_s,), rad or m, actuated joints and then sensed ones.
        start: (n_r,), a configuration nearby, closed or nearly so.
        used: (n_a + n_s,), which of the readings to use; all of them if None.
        scale: (n_a + n_s,), the unit of each difference: 1 rad, or the mechanism's size in m;
            None: the closer's.
        at_motors: from q_a (n_a,) and a configuration nearby to the closed one (n_r,); None: the
            closer's `forward_kinematics`.

    Raises:
        ClosureError: there are too few readings, or no closed configuration near start fits them.
        InputError: a wrong shape, values that are not real numbers, or a reading to use that is
            not finite.

    Source: chapter 4 of [D04] for Gauss–Newton.
    """
    a, k, names = closer.geometry.actuated, closer.geometry.known, closer.geometry.names
    q = _vector("readings", readings, names[:k])
    start = _vector("start", start, names)
    mask = np.ones(k, dtype=bool) if used is None else _mask(used, names[:k])
    if not (np.isfinite(q[mask]).all() and np.isfinite(start).all()):
        raise wrong(
            InputError, "readings", q.tolist(), "finite numbers where they are used, and in start"
        )
    scale = closer.scale[:k] if scale is None else scale
    at_motors = at_motors or closer.forward_kinematics
    q_r, before = start, np.inf
    for _ in range(_MAX_ITERATIONS):
        step, _, rank = _correction(closer.state(q_r), q, mask, scale)
        if rank < a:
            raise closer.geometry.refusal(
                f"readings: {int(mask.sum())} of them don't determine {a} degrees of freedom",
                mask,
                "readings that hold the mechanism",
            )
        size = float(max(abs(step)))
        if size <= _DONE or size >= before:
            break
        before = size if size < 1e-3 else np.inf
        q_r = at_motors(q_r[:a] + step, q_r)
    state = closer.state(q_r)
    return Fit(state, (q - q_r[:k]) / scale, mask)


@dataclass(eq=False)
class Verdict:
    """The result of checking one set of readings."""

    q: Floats
    """(n_a + n_s,), rad or m: the readings, with solved values in place of untrusted ones"""
    qd: Floats
    """(n_a + n_s,), the same for the rates; zeros if none were given"""
    trusted: tuple[str, ...]
    """The sensed joints whose readings are used"""
    suspect: str | None
    """The joint whose sensor this call found faulty; None: none, or it cannot be isolated"""
    residual: float
    """The largest disagreement among the trusted readings, rad or fractions of the size"""
    consistent: bool
    """Whether the trusted readings agreed before this call excluded any"""
    _raw: Floats
    """(n_a + n_s,): the readings as given"""
    _closer: Closer
    _q_r: Floats
    """(n_r,), closed to first order or better"""

    @cached_property
    def state(self) -> KinematicState:
        """The closed configuration that fits the trusted readings, at rest."""
        q_r, closer = self._q_r, self._closer
        if np.max(abs(closer.mobility.residual(q_r)), initial=0.0) > ROUNDING:
            with suppress(ClosureError):
                q_r = closer.forward_kinematics(q_r[: closer.geometry.actuated], q_r)
        return closer.state(q_r)

    @cached_property
    def closure_residual(self) -> float:
        """The largest closure residual at the readings as given: m, or the cosine of a right
        angle."""
        raw, q_r = self._raw, self.state.q_r
        there = np.where(np.isfinite(raw), raw, q_r[: len(raw)])
        return float(self._closer.state(np.concatenate([there, q_r[len(raw) :]])).residual)

    @property
    def all_trusted(self) -> bool:
        """Whether every sensed joint is trusted."""
        return len(self.trusted) == len(self.q) - self._closer.geometry.actuated


class SensorMonitor:
    """Monitors the readings of a mechanism's encoders, and excludes a faulty one.

    If the readings fit no closed configuration within the threshold, each is left out in turn. If
    the others agree when one of them is left out, and clearly better than when any other is, that
    sensor is named as faulty. Otherwise the actuated joints are trusted, and all sensed ones are
    excluded. An excluded sensor is trusted again after it has agreed with the others for a while.
    One redundant reading detects a fault; two isolate it.

    Args:
        mechanism: a mechanism with loops and sensed joints.
        threshold: largest residual of consistent readings, rad or fractions of the mechanism's
            size.
        patience: consecutive consistent readings before a sensor is trusted again.
        backend: see `InverseDynamics`.
        model: the sensed model that computes the torques; it then continues from the configuration
            that the monitor found, so the loops are closed only once. None: the monitor makes its
            own.

    Raises:
        InputError: a threshold or a patience that is out of range.
        DescriptionError, ClosureError, BackendError: see `ClosedChain`.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        threshold: float = THRESHOLD,
        patience: int = PATIENCE,
        backend: str = "auto",
        model: ClosedChain | None = None,
    ):
        if not (is_number(threshold) and threshold > 0):
            raise wrong(InputError, "threshold", threshold, "a number above 0 rad")
        if not (is_number(patience) and patience == int(patience) >= 1):
            raise wrong(InputError, "patience", patience, "a whole number above 0")
        if model is None:
            # without terms: only positions are needed
            model = ClosedChain(mechanism, terms=(), sensed=True, backend=backend)
        self.model = model
        """The sensed model; may be replaced by another one of the same mechanism"""
        self._a, self._k = model.closer.geometry.actuated, model.closer.geometry.known
        self._described = model.described_closer
        self._n = len(self._described.scale)
        self.threshold, self.patience = float(threshold), int(patience)
        self.joint_names: tuple[str, ...] = model.joint_names
        """The order of the readings: actuated, then sensed"""
        self._sensed = self.joint_names[self._a :]
        self._start()

    def reset(self) -> None:
        """Trust all sensors again, and start from home."""
        self.model.reset()
        self._start()

    def _start(self) -> None:
        self._distrusted: dict[int, int] = {}
        """By index of an excluded reading: how many consecutive ones have been consistent again"""
        self._here = self.model.home.q_r
        """(n_r,) in the model's coordinates: the last fit, or closed at the motors' readings"""

    @property
    def distrusted(self) -> tuple[str, ...]:
        """The joints whose readings are excluded until they have been consistent for a while."""
        return tuple(self.joint_names[i] for i in sorted(self._distrusted))

    def update(self, q: ArrayLike, qd: ArrayLike | None = None) -> Verdict:
        """Check one set of readings.

        Args:
            q: (n_a + n_s,), rad or m; NaN for a missing reading.
            qd: (n_a + n_s,), the rates, rad/s or m/s; None: not given.

        Raises:
            ClosureError: the remaining readings don't determine the configuration, or fit none
                near the last one.
            InputError: a wrong shape.
        """
        readings = self._vector("q", q)
        rates = None if qd is None else self._vector("qd", qd)
        if not self._distrusted:
            verdict = self._at_once(readings, rates)
            if verdict is not None:
                return verdict
        there = np.isfinite(readings)
        used = self._sound(there)
        if int(used.sum()) < self._a:
            raise self.model.closer.geometry.refusal(
                f"readings: only {int(used.sum())} readings are available and trusted (of "
                f"{', '.join(self.joint_names)}); {self._a} are needed",
                readings,
                f"at least {self._a}",
            )
        best = self._fitted(readings, used)
        consistent = best is not None and best.residual <= self.threshold
        suspect = None
        if not consistent:
            culprit, best = self._culprit(readings, used)
            if culprit is None:
                # the faulty one cannot be isolated: trust the motors
                excluded = range(self._a, self._k)
                best = self._fit(readings, there & (np.arange(self._k) < self._a))
            else:
                suspect, excluded = self.joint_names[culprit], range(culprit, culprit + 1)
            self._distrusted = dict.fromkeys([*self._distrusted, *excluded], 0)
        assert best is not None
        self._recover(best.left)
        self._here = best.state.q_r
        if not self._distrusted:
            # from now on the quick check can be used again
            with suppress(ClosureError):
                self.model.go_to(best.state)
        sound = self._sound(there)
        names = zip(self._sensed, sound[self._a :], strict=True)
        return Verdict(
            np.where(sound, readings, self._here[: self._k]),
            self._rates(rates, sound, best.state),
            tuple(name for name, ok in names if ok),
            suspect,
            best.residual,
            consistent,
            np.array(readings),
            self._described,
            self._here[: self._n],
        )

    def _sound(self, there: Mask) -> Mask:
        """(k,): the readings that are present and trusted."""
        sound: Mask = there.copy()
        sound[list(self._distrusted)] = False
        return sound

    def _vector(self, name: str, values: ArrayLike) -> Floats:
        if type(values) is np.ndarray and values.dtype is _FLOAT and values.shape == (self._k,):
            return values
        return _vector(name, values, self.joint_names)

    def _at_once(self, readings: Floats, rates: Floats | None) -> Verdict | None:
        """The verdict if all readings are present and agree, the usual case; None: check
        further."""
        if rates is None:
            rates = np.zeros(self._k)
        elif not math.isfinite(sum(rates.tolist())):
            return None
        found = self.model.disagreement(readings, self.threshold)
        if found is None:
            return None
        self._here, left = found
        readings = np.array(readings)
        return Verdict(
            readings,
            rates,
            self._sensed,
            None,
            left,
            True,
            readings,
            self._described,
            self._here[: self._n],
        )

    def _fitted(self, readings: Floats, used: Mask) -> Fit | None:
        """The fit, only to first order if that suffices; None if there is none nearby."""
        try:
            if used[: self._a].all():
                # the motors give the configuration, and the sensors correct it only slightly
                self._here = self.model.at_motors(readings[: self._a], self._here)
                closer = self.model.closer
                start = closer.state(self._here)
                _, left, _ = _correction(start, readings, used, closer.scale[: self._k])
                quick = Fit(start, left, used)
                if quick.residual <= self.threshold:
                    return quick
            return self._fit(readings, used)
        except ClosureError:
            return None

    def _fit(self, readings: Floats, used: Mask) -> Fit:
        # on the robot with a free platform, where it does not matter which leg carries the platform
        model = self.model
        return fit(model.closer, readings, self._here, used, at_motors=model.at_motors)

    def _culprit(self, readings: Floats, used: Mask) -> tuple[int | None, Fit | None]:
        """(the reading without which the others agree, their fit); None: it cannot be isolated."""
        if int(used.sum()) < self._a + 2:
            return None, None
        found: list[tuple[float, int, Fit]] = []
        for i in np.flatnonzero(used):
            others = used.copy()
            others[i] = False
            try:
                without = self._fit(readings, others)
            except ClosureError:
                continue
            found.append((without.residual, int(i), without))
        found.sort(key=lambda entry: entry[0])
        if not found or found[0][0] > self.threshold:
            return None, None
        if len(found) > 1 and found[1][0] < CLEAR * found[0][0]:
            return None, None
        return found[0][1], found[0][2]

    def _recover(self, left: Floats) -> None:
        """Trust again the readings that have been consistent for long enough."""
        sane = np.abs(left) <= RECOVERY * self.threshold  # False for a missing reading
        counts = {i: count + 1 if sane[i] else 0 for i, count in self._distrusted.items()}
        self._distrusted = {i: count for i, count in counts.items() if count < self.patience}

    def _rates(self, rates: Floats | None, sound: Mask, state: KinematicState) -> Floats:
        if rates is None:
            return np.zeros(self._k)
        sound = sound & np.isfinite(rates)
        if sound.all():
            return rates
        T = state.T[: self._k]
        # the others follow from the sound ones, by the least |q̇ - T q̇_a|
        own = np.linalg.lstsq(T[sound], rates[sound], rcond=None)[0]
        return np.asarray(np.where(sound, rates, T @ own))


def _vector(name: str, values: ArrayLike, joints: Sequence[str]) -> Floats:
    vector = as_floats(name, values)
    if vector.shape != (len(joints),):
        raise wrong(InputError, name, vector.shape, f"({len(joints)},): {', '.join(joints)}")
    return vector


def _mask(used: ArrayLike, joints: Sequence[str]) -> Mask:
    try:
        mask = np.asarray(used)
    except ValueError:  # rows of different lengths
        mask = np.empty(0, dtype=object)
    if mask.dtype != bool or mask.shape != (len(joints),):
        raise wrong(InputError, "used", used, f"({len(joints)},) of bool: {', '.join(joints)}")
    return mask


def _correction(
    state: KinematicState, readings: Floats, used: Mask, scale: Floats
) -> tuple[Floats, Floats, int]:
    """(δq_a (n_a,) towards the fit, reading - fit (k,) after it to first order, rank)."""
    k = len(readings)
    left = (readings - state.q_r[:k]) / scale
    T = state.T[:k] / scale[:, None]
    # the least |reading - (fit + T δq_a)|
    step, _, rank, _ = np.linalg.lstsq(T[used], left[used], rcond=INDEPENDENT)
    return np.asarray(step), left - T @ step, int(rank)
