# SPDX-License-Identifier: Apache-2.0
"""Converts a recording to samples (q, qd, qdd, tau) to which a model can be fitted.

Each evenly sampled stretch is filtered forwards and backwards (zero phase), differentiated, trimmed
at its ends, and decimated to the filter's bandwidth.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RecordingError
from ..inputs import frequency
from .implausible import check_order, check_source, with_efforts, without_absurd
from .jumps import without_jumps
from .low_pass import filtered, transient_length
from .recorded_rates import with_rates
from .recording import Floats, Recording, Stream, runs, thinned
from .resampling import GAP, even_stretches, splined
from .samples import Prepared, Samples
from .zero_phase import differences

WHOLE = 0.4
"""Fraction of the sampling rate at or above which a cut-off filters nothing"""
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
FEWEST = 4
"""Smallest number of samples of a stretch; with fewer it has no period, or nothing to filter"""
STILL, STILL_SLIDING = 5e-3, 1e-3
"""rad, m: ranges of positions below which joints do not move: encoders flicker by counts"""
SLOW, SLOWEST = 5.0, 2.0
"""Hz: sampling rates below which the unit of time is questioned, and below which the motion does
not show"""
CUTOFF = 10.0
"""Hz, the low-pass filter's cut-off where it is not chosen from the data: the noise of unfiltered
accelerations would make bodies too light"""


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
    """The stretches without a gap, with time in s since the first stamp; those of fewer than
    `FEWEST` samples are left out"""
    rate: float
    """Hz"""
    notes: tuple[str, ...]
    delay: float = 0.0
    """s: how late recorded rates that do not match the positions come after them"""

    def __post_init__(self) -> None:
        whole = tuple(each for each in self.pieces if len(each) >= FEWEST)
        object.__setattr__(self, "pieces", whole)

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

    def pace(self, piece: Stream) -> float:
        """A stretch's own sampling rate over that of the recording."""
        return (len(piece) - 1) / (piece.duration * self.rate)

    def with_efforts_moved(self, delay: int) -> Even:
        """With the efforts that belong to the positions.

        Args:
            delay: by how many samples, at the recording's rate, they come after these; negative:
                before.
        """
        if not delay:
            return self
        pieces = []
        for each in self.pieces:
            own = round(self.pace(each) * delay)
            late, early = max(own, 0), max(-own, 0)
            if len(each) > abs(own):
                effort = each.effort[late : len(each) - early]
                moved = each.rows(slice(early, len(each) - late))
                pieces.append(replace(moved, effort=effort))
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
    recording: Recording,
    joints: Iterable[str],
    sliding: Iterable[str] = (),
    late: bool = False,
    efforts: bool = True,
) -> Even:
    """Resample these joints' states to even time grids, with rates for every joint.

    Args:
        recording: with joints named as in the description.
        joints: the joints to take, all of them in the recording.
        sliding: which of the joints slide; the others turn.
        late: whether to use recorded rates that come after the positions.
        efforts: whether efforts are needed; otherwise they are not looked at, and the robot may be
            at rest.

    Raises:
        RecordingError: no efforts, too short, or at rest.
    """
    joints = tuple(joints)
    turns = tuple(name not in set(sliding) for name in joints)
    notes = list(recording.notes)
    source = recording.source
    if not efforts:
        recording = recording.without_efforts(joints)
    recording = without_absurd(recording, notes)
    stream = _one_stream(recording, joints, turns, notes)
    measured: tuple[str, ...] = ()
    if efforts:
        stream, measured = with_efforts(stream, source, notes)
    check_source(stream, source)
    check_order(stream, source)
    pieces = sorted(even_stretches(stream, notes, turns), key=lambda piece: piece.time[0])
    pieces = [part for piece in pieces for part in piece.parts(AT_ONCE)]
    if not pieces:
        raise _unusable(source, "no stretch of usable samples", notes)
    rate = 1.0 / float(np.median(np.diff(max(pieces, key=len).time)))
    every = f"one sample every {1 / rate:.3g} s"
    if rate < SLOWEST:
        words = f"{every}: are the times in seconds, or do they count samples or milliseconds?"
        raise _unusable(source, words, notes)
    if rate < SLOW:
        notes.append(f"{every}: are the times in seconds?")
    _check_length(pieces, source, notes)
    if efforts:
        _check_motion(pieces, turns, source, notes)
    start = pieces[0].time[0]
    pieces, delay = with_rates(pieces, notes, late)
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
    efforts: bool = True,
) -> Prepared:
    """Resample a recording with `even`, then filter and decimate it.

    Args:
        recording: with joints named as in the description.
        joints: the joints to take, all of them in the recording.
        cutoff: Hz; None: not filtered.
        rests: whether to keep samples at rest.
        sliding: which of the joints slide; the others turn.
        efforts: whether efforts are needed; otherwise they are not looked at, and the robot may be
            at rest.

    Raises:
        RecordingError: no efforts, too short, or at rest.
        InputError: an invalid cut-off.
    """
    return even(recording, joints, sliding, efforts=efforts).filtered(cutoff, rests)


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


def _check_length(pieces: Sequence[Stream], source: str, notes: Sequence[str]) -> None:
    time = sum(each.duration for each in pieces)
    if time < 2 * SHORTEST:
        words = f"too short: {time:.3g} s, expected at least {2 * SHORTEST:g} s"
        raise _unusable(source, words, notes)


def _check_motion(
    pieces: Sequence[Stream], turns: Sequence[bool], source: str, notes: Sequence[str]
) -> None:
    ranges = np.ptp(np.concatenate([each.position for each in pieces]), axis=0)
    if (ranges < np.where(turns, STILL, STILL_SLIDING)).all():
        words = f"the robot is at rest: no joint moves by more than {ranges.max():.2g}"
        raise _unusable(source, words, notes)


def _unusable(source: str, words: str, notes: Sequence[str]) -> RecordingError:
    """The error for a recording of which too little is left; the notes say what happened to the
    rest."""
    why = f" ({'; '.join(notes)})" if notes else ""
    return RecordingError(f"{source}: {words}{why}", name=source)


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
