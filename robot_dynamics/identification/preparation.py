# SPDX-License-Identifier: Apache-2.0
"""Converts a recording to samples (q, qd, qdd, tau) to which a model can be fitted.

Each evenly sampled stretch is filtered forwards and backwards (zero phase), differentiated, trimmed
at its ends, and decimated to the filter's bandwidth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RecordingError
from ..inputs import frequency
from .friction_laws import (
    BACKWARDS,
    FORWARDS,
    OFFSET,
    RATES,
    RAW,
    STIFFNESS,
    STRIBECK,
    VISCOUS,
    rates,
    raw_columns,
)
from .jumps import without_jumps
from .recording import Floats, Recording, Stream, runs, thinned
from .resampling import GAP, even_stretches, splined
from .zero_phase import ZeroPhase, both_ways, butterworth, differences

ORDER = 4
"""Order of the Butterworth filter"""
WHOLE = 0.4
"""Fraction of the sampling rate at or above which a cut-off filters nothing"""
HIGHEST = 0.45
"""The highest cut-off, as a fraction of the sampling rate; from a half on, there is no filter"""
THINNING = 10.0
"""Samples kept per period of the cut-off frequency; more add no information"""
SHORTEST = 1.0
"""s of motion; shorter stretches are left out"""
MOST, LONGEST = 240_000, 240.0
"""Number of samples, and duration in s, of motion; the larger one is enough to choose a cut-off"""
AT_ONCE = 600_000
"""Largest number of samples of a stretch: ten minutes at 1 kHz. Longer ones are split, which costs
a filter's transients, as their intermediate results would fill the memory"""
KEPT = 240_000
"""About the largest number of samples of a recording that are kept for the fit, evenly spread over
it"""
EXCERPT = 20.0
"""s: length of the parts of a long recording from which the cut-off is chosen"""
RESTING = 0.02
"""Fraction of a joint's largest rate, below which it is at rest"""
STANDSTILL = 0.005
"""Fraction of a joint's largest rate, below which it stands still; a slow reversal does not last
`LONGEST_REST`"""
LONGEST_REST = 0.3
"""s; longer rests are left out: samples if all joints rest, otherwise the efforts of those that
do"""
MOST_RESTING = 2400
"""Largest number of samples of a stretch's rests that are kept"""
NOISIER = 2.0
"""Ratio of the noise of recorded rates to that of position differences, beyond which the latter are
used"""
SLOW = 5.0
"""Hz: below this sampling rate, the unit of time is questioned"""
MOSTLY = 0.9
"""Fraction of the samples that must have a recorded rate"""
MATCH = 0.1
"""Relative deviation of recorded rates from position differences, beyond which the latter are
used"""
LATEST = 0.1
"""s: the longest delay of recorded rates after the positions that is looked for"""
LESS = 0.5
"""Ratio of the deviation of recorded rates from delayed position differences to that without the
delay, up to which they are late"""
LOW = 10
"""Ratio of the Nyquist frequency to that up to which recorded and derived rates are compared"""
FEWEST = 30
"""Smallest number of samples of a stretch whose rates are compared"""
NOTHING = 1e-9
"""Efforts that never exceed this fraction of another joint's are 0 but for rounding"""
FEWEST_UNSIGNED, NEAR_ZERO = 3, 0.01
"""Number of joints, and fraction of the largest effort: efforts that come this close to 0 and never
change their sign, at every joint of at least so many that move to and fro, have lost it"""
MOST_ROBOTS, APART, LEAST_APART = 4, 0.25, 0.01
"""Largest number of robots whose messages may alternate; ratio of the usual step from one message
to the next of the same robot to that between robots, below which they do; rad or m, the smallest
usual step between robots"""
ABSURD = {"position": 1e5, "velocity": 1e5, "effort": 1e9}
"""rad, rad/s, N·m (m, m/s, N): 16,000 turns, or a hundred thousand tons; larger values are
implausible"""
SATURATED = 5
"""Number of consecutive samples at the largest or smallest effort that indicates saturation, as a
multiple of the usual number at other values, which is 1 unless efforts are coarse or sampled faster
than measured"""
USUAL = 0.9
"""Quantile of the lengths of runs of equal efforts that counts as the usual length"""
CUTOFF = 10.0
"""Hz, the low-pass filter's cut-off where it is not chosen from the data: the noise of unfiltered
accelerations would make bodies too light"""


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The zero-phase filters of successive stretches, and the filtered rates."""

    filters: tuple[ZeroPhase, ...]
    qd: Floats
    """(m, n), of all stretches: at the recording's sampling rate, before decimation"""
    qdd: Floats
    """(m, n): likewise"""

    def __call__(self, values: Floats) -> Floats:
        """Filter values (m, …) of the whole stretches."""
        signals = np.ascontiguousarray(values.reshape(len(values), -1).T, dtype=float)
        smooth: Floats = self.signals(signals).T.reshape(values.shape)
        return smooth

    def signals(self, x: Floats) -> Floats:
        """Filter signals (c, m), one in each row."""
        edges = np.cumsum([each.length for each in self.filters])[:-1]
        pairs = zip(self.filters, np.split(x, edges, axis=1), strict=True)
        parts = [smooth(part) for smooth, part in pairs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


BY_JOINT = ("q", "qd", "qdd", "tau", "unfiltered", "usable", "friction")
"""The fields of `Samples` that have a column per joint"""


@dataclass(frozen=True, eq=False)
class Samples:
    """A stretch of evenly sampled motion; rows are samples, columns are joints."""

    time: Floats
    """(k,), s since the recording's first stamp"""
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    """Filtered in the same way as q, qd and qdd"""
    unfiltered: Floats
    """The effort as measured, unfiltered"""
    usable: NDArray[np.bool_]
    """(k, n): whether the effort may be used"""
    friction: Floats | None = None
    """(k, n, RAW): the friction columns, filtered like the effort, in which the filter smooths the
    step of dry friction where a joint reverses. None: not filtered"""
    smoothing: Smoothing | None = None
    place: NDArray[np.intp] | None = None
    """(k,): indices of these samples in the rows of `smoothing`"""

    @classmethod
    def without_efforts(cls, q: Floats, qd: Floats, qdd: Floats) -> Samples:
        """States (k, n) with efforts of 0, all usable."""
        zero = np.zeros(q.shape)
        return cls(np.arange(len(q)), q, qd, qdd, zero, zero, np.ones(q.shape, dtype=bool))

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, chosen: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Samples:
        """Only these samples."""
        given = {name: getattr(self, name) for name in ("time", *BY_JOINT, "place")}
        some = {name: each[chosen] for name, each in given.items() if each is not None}
        return replace(self, **some)

    def columns(self, chosen: list[int]) -> Samples:
        """Only these joints, in this order."""
        given = {name: getattr(self, name) for name in BY_JOINT}
        some = {name: each[:, chosen] for name, each in given.items() if each is not None}
        smooth = self.smoothing
        if smooth is not None:
            smooth = replace(smooth, qd=smooth.qd[:, chosen], qdd=smooth.qdd[:, chosen])
        return replace(self, smoothing=smooth, **some)

    @property
    def sharp(self) -> Samples:
        """The samples without filtered friction columns: friction has steps."""
        return replace(self, friction=None, smoothing=None, place=None)

    def filtered(self, columns: Callable[[Floats], Floats]) -> Floats:
        """(k, …): columns(qd), filtered like the effort.

        Args:
            columns: maps rates (m, n) to columns (m, …).
        """
        if self.smoothing is None:
            return columns(self.qd)
        return np.asarray(self.smoothing(columns(self.smoothing.qd))[self.place])

    def blurred(self, friction: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
        """(k, n): filtered friction minus friction, both at q = 0, as a filter changes its steps.

        Args:
            friction: maps positions, rates and accelerations (k, n) to torques (k, n).
        """
        if self.smoothing is None:
            return np.zeros_like(self.tau)
        qd = self.smoothing.qd
        sharp = friction(np.zeros_like(qd), qd, self.smoothing.qdd)
        return np.asarray((self.smoothing(sharp) - sharp)[self.place])

    @property
    def period(self) -> float:
        """s between consecutive samples"""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 0.0


def joined(parts: Sequence[Samples]) -> Samples:
    """Concatenate stretches."""
    first = parts[0]
    whole = {
        name: np.concatenate([getattr(each, name) for each in parts])
        for name in ("time", *BY_JOINT)
        if getattr(first, name) is not None
    }
    own = [part.smoothing for part in parts if part.smoothing is not None]
    if len(own) < len(parts):
        return replace(first, **whole, smoothing=None, place=None)
    qd, qdd = (np.concatenate([getattr(each, name) for each in own]) for name in ("qd", "qdd"))
    filters = tuple(one for each in own for one in each.filters)
    before = np.cumsum([0, *(len(each.qd) for each in own)])
    places = [k + np.asarray(part.place) for k, part in zip(before, parts, strict=False)]
    smoothing = Smoothing(filters, qd, qdd)
    return replace(first, **whole, smoothing=smoothing, place=np.concatenate(places))


@dataclass(frozen=True, eq=False)
class Choice:
    """A cut-off, and how it was chosen."""

    cutoff: float | None
    """Hz; None: not filtered"""
    candidates: Floats
    """(c,), Hz, ascending; infinite: not filtered"""
    errors: Floats
    """(c, n): RMS prediction error with each candidate, relative to the smallest one; NaN: the
    joint has no usable effort; infinite: not compared"""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A recording, prepared for the fit."""

    source: str
    joints: tuple[str, ...]
    """The joints of the columns"""
    measured: tuple[str, ...]
    """The joints with efforts"""
    stretches: tuple[Samples, ...]
    rate: float
    """Hz, the recording's sampling rate"""
    cutoff: float | None
    """Hz; None: not filtered"""
    notes: tuple[str, ...]
    """What was found and how it was handled, one line each"""
    choice: Choice | None = None
    """How the cut-off was chosen; None: it was given, or chosen from other recordings"""
    resting: tuple[Samples, ...] = ()
    """Some samples of long standstills, which are not used for the fit; only efforts of joints that
    stand still are usable"""

    @property
    def duration(self) -> float:
        """s, the samples' total duration"""
        return sum(len(each) * each.period for each in self.stretches)

    def split(self, fraction: float) -> tuple[Prepared, Prepared]:
        """(the first part, the last part) of the samples; rests belong to the first one.

        Args:
            fraction: the last part, as a fraction of all samples.
        """
        total = sum(map(len, self.stretches))
        first: list[Samples] = []
        last: list[Samples] = []
        left = round(total * (1 - fraction))
        for each in self.stretches:
            head = min(left, len(each))
            left -= head
            first += [each.rows(slice(0, head))] if head else []
            last += [each.rows(slice(head, None))] if head < len(each) else []
        end = last[0].time[0] if last else np.inf
        resting = tuple(each.rows(each.time < end) for each in self.resting)
        return (
            replace(self, stretches=tuple(first), resting=resting),
            replace(self, stretches=tuple(last), resting=()),
        )


@dataclass(frozen=True, eq=False)
class Even:
    """A recording on even time grids, not yet filtered."""

    source: str
    joints: tuple[str, ...]
    turns: tuple[bool, ...]
    """Whether each joint turns; the others slide"""
    measured: tuple[str, ...]
    """The joints with efforts"""
    pieces: tuple[Stream, ...]
    """The stretches without a gap, with time in s since the first stamp"""
    rate: float
    """Hz"""
    notes: tuple[str, ...]
    delay: float = 0.0
    """s: how late recorded rates that do not match the positions come after them"""

    def first(self, share: float) -> Even:
        """The first part of the samples.

        Args:
            share: this part, as a fraction of all samples.
        """
        left, pieces = round(share * sum(map(len, self.pieces))), []
        for each in self.pieces:
            if left > 0:
                pieces.append(each.rows(slice(left)))
            left -= len(each)
        return replace(self, pieces=tuple(pieces))

    def excerpt(self, share: float = 1.0) -> Even:
        """Enough to choose a cut-off: parts of about `EXCERPT` seconds, evenly spread over the
        recording.

        Args:
            share: how much, as a fraction of what is enough.
        """
        total = sum(map(len, self.pieces))
        most = share * max(MOST, LONGEST * self.rate)
        if total <= most:
            return self
        pieces = []
        for each in self.pieces:
            parts = max(1, round(len(each) * most / total / (EXCERPT * self.rate)))
            edges = np.linspace(0, len(each), parts + 1).astype(int)
            for begin, end in itertools.pairwise(edges.tolist()):
                pieces.append(each.rows(slice(begin, begin + round((end - begin) * most / total))))
        return replace(self, pieces=tuple(pieces))

    def left(self, cutoff: float) -> float:
        """The fraction of its samples, in stretches that are not too short, that a filter's
        transients leave.

        Args:
            cutoff: Hz.
        """
        shortest, spoiled = SHORTEST * self.rate, transient_length(cutoff, 1.0 / self.rate)
        counts = [len(each) for each in self.pieces if len(each) >= shortest]
        left = [k - 2 * spoiled for k in counts if k > 3 * spoiled]
        return sum(k for k in left if k >= shortest) / max(sum(counts), 1)

    def with_efforts_moved(self, delay: int) -> Even:
        """With the efforts that belong to the positions.

        Args:
            delay: by how many samples they come after these; negative: before.
        """
        if not delay:
            return self
        late, early = max(delay, 0), max(-delay, 0)
        pieces = [
            replace(
                each.rows(slice(early, len(each) - late)),
                effort=each.effort[late : len(each) - early],
            )
            for each in self.pieces
            if len(each) > abs(delay)
        ]
        where = "after" if delay > 0 else "before"
        note = (
            f"efforts come {1000 * abs(delay) / self.rate:.0f} ms {where} the positions, which "
            "explain them better if they are moved by as much, as they were"
        )
        return replace(self, pieces=tuple(pieces), notes=(*self.notes, note))

    def filtered(self, cutoff: float | None, rests: bool = False) -> Prepared:
        """Filter, differentiate, trim at the ends, and decimate.

        Args:
            cutoff: Hz; None: not filtered.
            rests: whether to keep samples at rest.

        Raises:
            RecordingError: nothing is left of the recording.
            InputError: an invalid cut-off.
        """
        frequency("cutoff", cutoff)
        if cutoff is not None and cutoff >= WHOLE * self.rate:
            cutoff = None
        notes = list(self.notes)
        stretches, too_short = [], 0.0
        sparse = sum(map(len, self.pieces)) // KEPT
        for each in self.pieces:
            samples = filtered(each, cutoff, self.turns, sparse=sparse)
            if len(samples) * samples.period < SHORTEST:
                too_short += each.duration
                continue
            stretches.append(samples)
        if too_short:
            notes.append(f"{too_short:.3g} s in stretches too short to filter were left out")
        if not stretches:
            words = f"too short: no stretch of {SHORTEST:g} s is left after filtering"
            raise _unusable(self.source, words, self.notes)
        prepared = Prepared(
            self.source, self.joints, self.measured, tuple(stretches), self.rate, cutoff,
            tuple(notes),
        )  # fmt: skip
        return prepared if rests else _without_rests(prepared)


def even(
    recording: Recording, joints: Iterable[str], sliding: Iterable[str] = (), late: bool = False
) -> Even:
    """Resample these joints' states to even time grids, with rates for every joint.

    Args:
        recording: with joints named as in the description.
        joints: the joints to take, all of them in the recording.
        sliding: which of the joints slide; the others turn.
        late: whether to use recorded rates that come after the positions.

    Raises:
        RecordingError: no efforts, too short, or at rest.
    """
    joints = tuple(joints)
    turns = tuple(name not in set(sliding) for name in joints)
    notes = list(recording.notes)
    source = recording.source
    recording = _without_absurd(recording, notes)
    stream = _one_stream(recording, joints, turns, notes)
    stream, measured = _with_efforts(stream, source, notes)
    _check_source(stream, source)
    pieces = sorted(even_stretches(stream, notes, turns), key=lambda piece: piece.time[0])
    pieces = [part for piece in pieces for part in piece.parts(AT_ONCE)]
    if not pieces:
        raise _unusable(source, "no stretch of usable samples", notes)
    rate = 1.0 / float(np.median(np.diff(max(pieces, key=len).time)))
    if rate < SLOW:
        notes.append(f"one sample every {1 / rate:.3g} s: are the times in seconds?")
    _check_motion(pieces, source, notes)
    start = pieces[0].time[0]
    pieces, delay = _with_rates(pieces, notes, late)
    pieces = [replace(each, time=each.time - start) for each in pieces]
    notes = list(dict.fromkeys(notes))
    return Even(source, joints, turns, measured, tuple(pieces), rate, tuple(notes), delay)


def prepare(
    recording: Recording,
    joints: Iterable[str],
    cutoff: float | None,
    *,
    rests: bool = False,
    sliding: Iterable[str] = (),
) -> Prepared:
    """Resample a recording with `even`, then filter and decimate it.

    Args:
        recording: with joints named as in the description.
        joints: the joints to take, all of them in the recording.
        cutoff: Hz; None: not filtered.
        rests: whether to keep samples at rest.
        sliding: which of the joints slide; the others turn.

    Raises:
        RecordingError: no efforts, too short, or at rest.
        InputError: an invalid cut-off.
    """
    return even(recording, joints, sliding).filtered(cutoff, rests)


def _without_absurd(recording: Recording, notes: list[str]) -> Recording:
    """The recording with NaN for physically implausible values."""
    streams, count, example = [], 0, ""
    for stream in recording.streams:
        values = {}
        for name, most in ABSURD.items():
            values[name] = field = getattr(stream, name)
            with np.errstate(invalid="ignore"):
                absurd = np.abs(field) > most
            if absurd.any():
                values[name] = np.where(absurd, np.nan, field)
                row, column = np.argwhere(absurd)[0]
                example = example or (
                    f"{name} {field[row, column]:.3g} of {stream.names[column]} at "
                    f"{stream.time[row]:.3f} s"
                )
            count += int(absurd.sum())
        streams.append(replace(stream, **values))
    if count:
        notes.append(
            f"implausible values were dropped: {count} (positions or velocities above 1e5, "
            f"efforts above 1e9), such as {example}"
        )
    return replace(recording, streams=tuple(streams))


def _one_stream(
    recording: Recording, joints: tuple[str, ...], turns: tuple[bool, ...], notes: list[str]
) -> Stream:
    """All joints in one stream, at the stamps of the stream with most of the joints."""
    best: dict[str, Stream] = {}
    for stream in recording.streams:
        for name in stream.names:
            if name in joints and (name not in best or len(stream) > len(best[name])):
                best[name] = stream
    main = max(recording.streams, key=lambda s: (sum(best.get(n) is s for n in s.names), len(s)))
    if all(best[name] is main for name in joints):
        return main.of(joints)
    notes.append(
        "joints were recorded in separate messages; they were interpolated at common stamps"
    )
    shape = (len(main), len(joints))
    fields = {field: np.full(shape, np.nan) for field in ("position", "velocity", "effort")}
    for j, (name, turning) in enumerate(zip(joints, turns, strict=True)):
        stream = best[name].of([name])
        if best[name] is not main:
            _, first = np.unique(stream.time, return_index=True)
            stream = stream.rows(first)
            told = np.isfinite(stream.time) & np.isfinite(stream.position[:, 0])
            # splines would overshoot at jumps
            smooth = without_jumps(stream.rows(told), np.array([turning]), notes)
        for field, values in fields.items():
            if best[name] is main:
                values[:, j] = getattr(stream, field)[:, 0]
            else:
                own = smooth if field == "position" else stream
                values[:, j] = _interpolated(own.time, getattr(own, field)[:, 0], main.time)
    return Stream(joints, main.time, **fields)


def _interpolated(time: Floats, values: Floats, at: Floats) -> Floats:
    """Values (k,) at other times (m,); NaN before, after, and across gaps.

    Args:
        time: (k,), s, ascending.
        values: (k,), NaN where there is none.
        at: (m,), s.
    """
    given = np.isfinite(values) & np.isfinite(time)
    time, values = time[given], values[given]
    found = splined(time, values, at)
    if np.isnan(found).all():
        return found
    gap = GAP * np.median(np.diff(time))
    near = np.searchsorted(time, at)
    before, after = time[np.maximum(near - 1, 0)], time[np.minimum(near, len(time) - 1)]
    found[(at < time[0]) | (at > time[-1]) | (after - before > gap)] = np.nan
    return found


def _with_efforts(stream: Stream, source: str, notes: list[str]) -> tuple[Stream, tuple[str, ...]]:
    """The stream without the efforts of joints at which all are missing or 0 (less than `NOTHING`
    of the largest joint's), and the other joints."""
    for j, name in enumerate(stream.names):
        if not np.isfinite(stream.position[:, j]).any():
            raise RecordingError(f"{source}: no position of {name} is a number", name=source)
    efforts = stream.effort.copy()
    silent = []
    sizes = [np.abs(column[np.isfinite(column)]) for column in efforts.T]
    # a quantile, so that one absurd value does not make all others look like nothing
    largest = max((float(np.quantile(each, 0.9)) for each in sizes if len(each)), default=0.0)
    for j, name in enumerate(stream.names):
        if not len(sizes[j]) or sizes[j].max() <= NOTHING * largest:
            silent.append(name)
            efforts[:, j] = np.nan
    if len(silent) == len(stream.names):
        raise RecordingError(
            f"{source}: no efforts: all are missing or 0; record them (the field `effort` of "
            "sensor_msgs/JointState)",
            name=source,
        )
    if silent:
        notes.append(
            f"no efforts for {', '.join(silent)}: parameters that depend only on them keep their "
            "described values"
        )
    measured = tuple(name for name in stream.names if name not in silent)
    if all(map(_unsigned, stream.position.T, efforts.T)) and len(measured) >= FEWEST_UNSIGNED:
        raise RecordingError(
            f"{source}: the efforts of all joints come close to 0 but never change their sign, as "
            "currents that were recorded without it; record them with their sign",
            name=source,
        )
    return replace(stream, effort=efforts), measured


def _unsigned(position: Floats, effort: Floats) -> bool:
    """Whether a joint's efforts (k,), if there are any, never change their sign but come close to 0
    while it moves to and fro. Efforts of 0 tell nothing: the drive may be off."""
    steps = np.diff(position[np.isfinite(position)])
    told = effort[np.isfinite(effort) & (effort != 0)]
    if not len(told):
        return True
    sizes = np.abs(told)
    same = (told > 0).all() or (told < 0).all()
    to_and_fro = (steps < 0).any() and (steps > 0).any()
    return bool(same and to_and_fro and sizes.min() <= NEAR_ZERO * sizes.max())


def _check_source(stream: Stream, source: str) -> None:
    """Refuse messages of several robots, or of several nodes, that take turns under the same names:
    some messages later, the state is far nearer than in the next message."""
    measured = np.isfinite(stream.effort).any(axis=0)
    told = np.isfinite(np.hstack([stream.position, stream.effort[:, measured]])).all(axis=1)
    position = stream.position[told]
    if len(position) <= MOST_ROBOTS:
        return
    steps = {k: np.abs(position[k:] - position[:-k]).max(axis=1) for k in range(1, MOST_ROBOTS + 1)}
    apart = float(np.median(steps[1]))
    for k in range(2, MOST_ROBOTS + 1):
        if apart > LEAST_APART and float(np.median(steps[k])) < APART * apart:
            at = int(np.argmax(steps[1]))
            j = int(np.argmax(np.abs(position[at + 1] - position[at])))
            raise RecordingError(
                f"{source}: its messages take turns between {k} states that are far apart "
                f"({stream.names[j]} at {position[at, j]:.3g} and {position[at + 1, j]:.3g}): do "
                f"{k} robots, or {k} nodes, publish the same joints? Record only one of them, or "
                "give them topics or names of their own",
                name=source,
            )


def _check_motion(pieces: Sequence[Stream], source: str, notes: Sequence[str]) -> None:
    time = sum(each.duration for each in pieces)
    if time < 2 * SHORTEST:
        words = f"too short: {time:.3g} s, expected at least {2 * SHORTEST:g} s"
        raise _unusable(source, words, notes)
    ranges = np.ptp(np.concatenate([each.position for each in pieces]), axis=0)
    if ranges.max() < 1e-3:
        words = f"the robot is at rest: no joint moves by more than {ranges.max():.2g}"
        raise _unusable(source, words, notes)


def _unusable(source: str, words: str, notes: Sequence[str]) -> RecordingError:
    """The error for a recording of which too little is left; the notes say what happened to the
    rest."""
    why = f" ({'; '.join(notes)})" if notes else ""
    return RecordingError(f"{source}: {words}{why}", name=source)


def _with_rates(
    streams: Sequence[Stream], notes: list[str], late: bool
) -> tuple[list[Stream], float]:
    """(the streams with rates for every joint, s by which recorded ones come after the positions).

    A joint's recorded rates are kept if, in all streams together, they agree with the positions (if
    `late`, but for a delay) and are not much noisier than the differences of these. Otherwise, and
    where single rates are missing, the differences are used.
    """
    names = streams[0].names
    own = [differences(each.position, each.duration / (len(each) - 1)) for each in streams]
    there = [np.isfinite(each.velocity) for each in streams]
    rates = [
        np.where(some, each.velocity, other)
        for some, each, other in zip(there, streams, own, strict=True)
    ]
    moved = np.any([each.any(axis=0) for each in own], axis=0)
    told = np.any([each.any(axis=0) for each in rates], axis=0)
    given = (np.concatenate(there).mean(axis=0) > MOSTLY) & (told | ~moved)
    recorded = [np.where(given, each, other) for each, other in zip(rates, own, strict=True)]
    wrong = given & (_rate_deviation(recorded, own) > MATCH)
    delay = 0.0
    if wrong.any():
        differing, derived = ([each[:, wrong] for each in kind] for kind in (recorded, own))
        delay = _delay(differing, derived, streams[0].duration / (len(streams[0]) - 1))
    if late and delay:
        slow = ", ".join(name for name, each in zip(names, wrong, strict=True) if each)
        notes.append(
            f"recorded velocities of {slow} come {1000 * delay:.0f} ms after the positions, and so "
            "do the efforts, which they explain better than differentiated positions"
        )
        wrong[:] = False
    noise, least = _noise(recorded, own)
    worse = noise > NOISIER * least
    missing, odd, noisy = [], [], []
    for j, name in enumerate(names):
        if not given[j]:
            missing.append(name)
        elif wrong[j]:
            odd.append(name)
        elif worse[j]:
            noisy.append(name)
        else:
            continue
        for each, other in zip(rates, own, strict=True):
            each[:, j] = other[:, j]
    if missing:
        notes.append(f"no velocities of {', '.join(missing)}; using differentiated positions")
    if odd:
        notes.append(
            f"recorded velocities of {', '.join(odd)} do not match the positions; using "
            "differentiated positions"
        )
    if noisy:
        notes.append(
            f"recorded velocities of {', '.join(noisy)} are noisier than differentiated positions, "
            "which are used instead"
        )
    return [replace(each, velocity=new) for each, new in zip(streams, rates, strict=True)], delay


def _delay(recorded: Sequence[Floats], derived: Sequence[Floats], period: float) -> float:
    """s: how late recorded rates (k, n) come after derived ones; 0 if with no delay they agree much
    better than without."""
    most = round(LATEST / period)
    pairs = [each for each in _slow(recorded, derived) if each[0].shape[1] > 2 * most]
    off = [
        sum(((other[:, k::LOW] - y[:, : y.shape[1] - k : LOW]) ** 2).sum() for y, other in pairs)
        for k in range(most + 1)
    ]
    best = int(np.argmin(off))
    return best * period if off[best] < LESS**2 * off[0] else 0.0


def _rate_deviation(recorded: Sequence[Floats], derived: Sequence[Floats]) -> Floats:
    """(n,): relative deviation of recorded from derived rates, (k, n) each, below a tenth of the
    Nyquist frequency, where the motion is."""
    n = derived[0].shape[1]
    off, size = np.zeros((2, n))
    for y, other in _slow(recorded, derived):
        off += ((other - y) ** 2).sum(axis=1)
        size += (y**2).sum(axis=1)
    return np.asarray(np.sqrt(np.divide(off, size, out=np.zeros(n), where=size > 0)))


def _slow(recorded: Sequence[Floats], derived: Sequence[Floats]) -> Iterator[tuple[Floats, Floats]]:
    """(derived, recorded) rates (n, k) at the low frequencies, where the motion is."""
    for some, own in zip(recorded, derived, strict=True):
        if len(own) >= FEWEST:
            y, other = np.split(both_ways(*butterworth(2, 1 / LOW), 9, np.hstack([own, some]).T), 2)
            yield y, other


def _noise(*rates: Sequence[Floats]) -> list[Floats]:
    """For each of several kinds of rates, with stretches (k, n), (n,): their RMS between a tenth
    and a quarter of the sampling rate, where numerical differences are still fairly accurate."""
    square, count = np.zeros(len(rates) * rates[0][0].shape[1]), 0
    for each in zip(*rates, strict=True):
        k = len(each[0])
        if k >= FEWEST:
            high = both_ways(*butterworth(2, (0.2, 0.5), "band"), 15, np.hstack(each).T)
            square += k * np.var(high, axis=1)
            count += k
    return np.split(np.sqrt(square / max(count, 1)), len(rates))


def filtered(
    stream: Stream,
    cutoff: float | None,
    turns: tuple[bool, ...],
    kept: NDArray[np.intp] | None = None,
    sparse: int = 1,
) -> Samples:
    """Filter one stretch.

    Args:
        stream: k values, evenly sampled.
        cutoff: Hz; None: not filtered.
        turns: whether each joint turns; the others slide.
        kept: indices of the samples to keep; None: decimate to the filter's bandwidth, without the
            ends that its transients affect.
        sparse: keep at most every `sparse`-th sample unless `kept` is given.
    """
    time, q, qd, tau = stream.time, stream.position, stream.velocity, stream.effort
    period = float(time[1] - time[0])
    unfiltered = tau
    usable = _unsaturated(tau) & np.isfinite(tau)
    spoiled, step, friction, smoothing = 3, 1, None, None
    if cutoff is not None:
        # a stretch may be sampled far more slowly than the others
        cutoff = min(cutoff, HIGHEST / period)
        spoiled = transient_length(cutoff, period)
        if kept is None and len(time) <= 3 * spoiled:
            return Samples(time[:0], q[:0], qd[:0], q[:0], tau[:0], tau[:0], usable[:0])
        pad = min(len(time) - 1, 3 * spoiled)
        low_pass = ZeroPhase(*butterworth(ORDER, cutoff, fs=1.0 / period), pad, len(time))
        smooth = Smoothing((low_pass,), qd, qd)
        missing = ~np.isfinite(tau)
        q, qd, tau = np.split(smooth(np.nan_to_num(np.hstack([q, qd, tau]))), 3, axis=1)
        tau[missing] = np.nan
        smoothing = replace(smooth, qd=qd, qdd=differences(qd, period))
        usable = _eroded(usable, spoiled)
        step = int(1.0 / (THINNING * cutoff * period))
    step = max(1, step, sparse)
    qdd = differences(qd, period) if smoothing is None else smoothing.qdd
    chosen = slice(spoiled, len(time) - spoiled, step) if kept is None else kept
    if smoothing is not None:
        columns = _all_columns if kept is None else _few_columns
        friction = columns(smoothing, turns, chosen)
        friction[..., STIFFNESS] = q[chosen]
    return Samples(
        time[chosen], q[chosen], qd[chosen], qdd[chosen], tau[chosen], unfiltered[chosen],
        usable[chosen], friction, smoothing, np.arange(len(time))[chosen],
    )  # fmt: skip


def transient_length(cutoff: float, period: float) -> int:
    """The number of samples at either end that a filter's transients affect."""
    return max(3, math.ceil(1.0 / (cutoff * period)))


def _all_columns(
    smooth: Smoothing, turns: tuple[bool, ...], chosen: slice | NDArray[np.intp]
) -> Floats:
    """(k, n, RAW): the filtered friction columns at some samples, without positions."""
    out = np.empty((len(turns), RAW, len(smooth.qd[chosen])))
    for signals, rate, acceleration, turning in zip(
        out, smooth.qd.T, smooth.qdd.T, turns, strict=True
    ):
        columns = raw_columns(rate, turning, acceleration).T
        if not rate.all():
            signals[:] = smooth.signals(columns)[:, chosen]
            continue
        # F(1) = 1, and F(1 where qd > 0) + F(1 where qd < 0) = 1 if qd is never 0
        told = np.delete(np.arange(STIFFNESS), [BACKWARDS, OFFSET])
        signals[told] = smooth.signals(columns[told])[:, chosen]
        signals[OFFSET] = 1.0
        signals[BACKWARDS] = signals[FORWARDS] - 1.0
    found: Floats = out.transpose(2, 0, 1)
    return found


def _few_columns(
    smooth: Smoothing, turns: tuple[bool, ...], chosen: slice | NDArray[np.intp]
) -> Floats:
    """(k, n, RAW): the filtered friction columns at some samples, without positions and presliding,
    and with every third Stribeck rate only."""
    qd = smooth.qd.T
    out = np.zeros((RAW, len(qd), len(smooth.qd[chosen])))
    out[VISCOUS], out[OFFSET] = qd[:, chosen], 1.0
    ahead = qd > 0
    # F(1 where qd > 0) + F(1 where qd < 0) = 1
    out[FORWARDS] = smooth.signals(ahead.astype(float))[:, chosen]
    out[BACKWARDS] = out[FORWARDS] - 1.0
    sign = np.where(ahead, 1.0, -1.0)
    own = np.array([rates(turning) for turning in turns])[:, :, None]
    for k in range(1, len(RATES), 3):
        effect = sign * np.exp(-((qd / own[:, k]) ** 2))
        out[STRIBECK + k] = smooth.signals(effect)[:, chosen]
    found: Floats = out.transpose(2, 1, 0)
    return found


def _unsaturated(tau: Floats) -> NDArray[np.bool_]:
    """(k, n): False where an effort remains at its extreme far longer than at other values.

    At a peak, coarsely quantised efforts remain at their extreme, too, but at most five times as
    long as at the next value on either side, as on a parabola; at a limit they stop abruptly.
    """
    usable = np.ones(tau.shape, dtype=bool)
    for j, column in enumerate(tau.T):
        if not np.isfinite(column).any():
            continue
        for extreme in (np.nanmax(column), np.nanmin(column)):
            at = column == extreme
            if extreme != 0 and at.sum() >= SATURATED and _is_limit(column, extreme):
                usable[at, j] = False
    return usable


def _is_limit(efforts: Floats, extreme: float) -> bool:
    """Whether efforts (k,) remain at their extreme `SATURATED` times as long as at the values
    before and after, and as is usual at other values."""
    begin = np.flatnonzero(np.r_[True, np.diff(efforts) != 0])
    runs = np.diff(np.r_[begin, len(efforts)])
    top = efforts[begin] == extreme
    beside = np.maximum(np.r_[0, runs[:-1]], np.r_[runs[1:], 0])[top]
    usual = float(np.quantile(runs[~top], USUAL)) if not top.all() else 1.0
    return bool((runs[top] >= SATURATED * np.maximum(beside, usual)).any())


def _eroded(usable: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """`usable`, made False within `width` samples of every False."""
    if usable.all():
        return usable
    from scipy.ndimage import binary_erosion

    eroded: NDArray[np.bool_] = binary_erosion(
        usable, np.ones((2 * width + 1, 1), dtype=bool), border_value=1
    )
    return eroded


def _without_rests(prepared: Prepared) -> Prepared:
    """Leave out samples in which the robot is at rest, and efforts of single joints at rest, of
    which static friction may carry any part, but keep some samples at standstill in `resting`; note
    what cannot be used."""
    speeds = np.abs(np.concatenate([each.qd for each in prepared.stretches]))
    fastest = speeds.max(axis=0)
    stretches, rests, resting, total = [], [], 0.0, 0.0
    saturated = np.zeros(len(fastest))
    for each in prepared.stretches:
        still = (_speeds(each) <= RESTING * np.maximum(fastest, 1e-3)).all(axis=1)
        keep = ~_in_long_rests(still, each.period)
        resting += float((~keep).sum()) * each.period
        total += len(each) * each.period
        saturated += (~each.usable[keep]).sum(axis=0) * each.period
        kept = replace(each, usable=each.usable & ~_resting(each, RESTING, fastest))
        stretches.append(kept if keep.all() else kept.rows(keep))
        stands = each.usable & _resting(each, STANDSTILL, fastest)
        some = np.flatnonzero(stands.any(axis=1))
        some = some[thinned(len(some), MOST_RESTING)]
        rests.append(replace(each, usable=stands).rows(some))
    stretches = [each for each in stretches if len(each) > 3]
    if not stretches:
        raise RecordingError(f"{prepared.source}: the robot is at rest", name=prepared.source)
    notes = [*prepared.notes]
    if resting:
        notes.append(f"{resting:.3g} s of {total:.3g} s at rest were left out")
    for name, lost in zip(prepared.joints, saturated.tolist(), strict=True):
        if name in prepared.measured and lost:
            notes.append(f"{name}: {lost:.3g} s with a saturated motor were left out")
    return replace(
        prepared,
        stretches=tuple(stretches),
        notes=tuple(dict.fromkeys(notes)),
        resting=tuple(each for each in rests if len(each)),
    )


def _resting(samples: Samples, share: float, fastest: Floats) -> NDArray[np.bool_]:
    """(k, n): whether the joint is at rest for long. A joint that never moves does not count, as it
    has no other efforts.

    Args:
        samples: a stretch.
        share: the largest rate at rest, as a fraction of the joint's largest rate.
        fastest: (n,), rad/s or m/s: the largest rates.
    """
    slow = (_speeds(samples) <= share * fastest) & (fastest > 1e-3)
    period = samples.period
    return np.transpose([_in_long_rests(own, period) for own in slow.T])


def _speeds(samples: Samples) -> Floats:
    """(k, n), rad/s or m/s: by the rates or the positions, whichever says less, as measured rates
    are noise at rest, where positions stand still."""
    moved = np.abs(differences(samples.q, samples.period))
    return np.minimum(np.abs(samples.qd), moved)


def _in_long_rests(still: NDArray[np.bool_], period: float) -> NDArray[np.bool_]:
    """Whether samples (k,) belong to rests of more than `LONGEST_REST`."""
    found, each = np.zeros(len(still), dtype=bool), runs(still)
    for begin, end in each[(each[:, 1] - each[:, 0]) * period > LONGEST_REST]:
        found[begin:end] = True
    return found
