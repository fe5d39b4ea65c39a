# SPDX-License-Identifier: Apache-2.0
"""Processes one recording: prepares it, then reduces it, tests it, or evaluates a fit on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..errors import RecordingError
from ..mechanism import Mechanism
from .band import Needed, Spread, needed
from .closed import ClosedUnknowns
from .contacts import Contact, contacts
from .cutoff import FilterFault, choose, filter_faults
from .delays import even_with_efforts
from .fleet import key_of
from .friction_smoothing import FrictionSmoothing, NearRest
from .identified import Trace
from .mixed import Mixed, Mounting, in_degrees, mixed
from .motor_efforts import at_joints
from .normal_equations import NormalEquations, reduce
from .preparation import Even, even
from .prepared_cache import Key, PreparedCache
from .read import Source, adapted
from .recording import Floats, Recording
from .samples import Choice, Prepared, joined
from .shared_filter import SharedFilter
from .shared_motors import SharedMotor, shared_motors
from .torque_errors import SplitDynamics, SquaredErrors, compared, squared_errors
from .unknowns import Columns, Unknowns, match, sliding
from .zeros import Linearised, ZeroEquations, equations

HELD_OUT = 1 / 3
"""Fraction of each recording, at its end, that is held out if no validation recordings are given"""
SHOWN = 6000
"""Number of samples of a stretch that are kept for plots, about"""


@dataclass(frozen=True, eq=False)
class Reduced:
    """A recording's summary, kept beside its normal equations."""

    source: str
    joints: tuple[str, ...]
    lowest: Floats
    """(n,), rad or m: the smallest positions"""
    highest: Floats
    fastest: Floats
    """(n,), rad/s or m/s: the largest rates"""
    usable: Floats
    """(n,): number of efforts that are fitted"""
    cutoff: float | None
    choice: Choice | None
    notes: tuple[str, ...]
    duration: float
    """s of motion used for the fit"""


@dataclass(frozen=True, eq=False)
class Work:
    """The settings that are common to all recordings of an identification."""

    mechanism: Mechanism
    topic: str | None
    rename: Mapping[str, str]
    effort_scale: Mapping[str, float]
    payload: str | None
    cutoff: float | None
    held_out: float
    """Fraction of each recording, at its end, that is held out"""
    cache: PreparedCache | None
    """None: the recordings are prepared again in each pass"""
    position_offset: Mapping[str, float] = field(default_factory=dict)
    filters: tuple[SharedFilter, ...] = ()
    """Filters chosen from several recordings, for these and for similar ones"""
    quietest: Mapping[str, float] = field(default_factory=dict)
    """By joint, N·m or N: the smallest noise that is assumed in a recording"""
    motor_efforts: bool = False
    """Whether efforts are those of motors (see the module `motor_efforts`)"""
    unrelated: frozenset[str] = frozenset()
    """The joints whose efforts contain none of their torque, and are left out"""
    wanted: float | None = None
    """Hz, the cut-off of the recordings that are fitted (infinite: not filtered), which `judges`
    use if it is as good as their own"""
    judges: frozenset[str] = frozenset()
    """The recordings used only for validation, by `key_of`"""
    names: Mapping[str, str] = field(default_factory=dict)
    """By `key_of`, the names of recordings that share their file's name with others"""

    _unknowns: dict[tuple[str, ...], Columns] = field(default_factory=dict, repr=False)
    """Those of `unknowns` that were asked for, which all settings for the same robot share"""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_unknowns": {}}

    def least(self, joints: tuple[str, ...]) -> Floats:
        """(n,): the smallest noise of these joints, N·m or N."""
        return np.array([self.quietest.get(joint, 0.0) for joint in joints])

    def unknowns(self, joints: tuple[str, ...]) -> Columns:
        """The parameters to identify from recordings of these joints."""
        return self.closed if self.mechanism.loops else self.open(joints)

    @property
    def closed(self) -> ClosedUnknowns:
        """The parameters to identify of a robot with loops."""
        if () not in self._unknowns:
            self._unknowns[()] = ClosedUnknowns(self.mechanism, self.payload)
        return cast(ClosedUnknowns, self._unknowns[()])

    def open(self, joints: tuple[str, ...]) -> Unknowns:
        """Those of a robot without loops, from recordings of these joints."""
        if joints not in self._unknowns:
            self._unknowns[joints] = Unknowns.of(match(self.mechanism, joints)[0], self.payload)
        return cast(Unknowns, self._unknowns[joints])

    def prepared(self, source: Source, joints: tuple[str, ...] | None = None) -> Prepared:
        """The prepared recording.

        Args:
            source: the recording.
            joints: the joints to take; None: all that were recorded.
        """
        if self.cache is not None and joints is not None:
            kept: Prepared | None = self.cache.get(self._key(source, joints))
            if kept is not None:
                return kept
        raw = self._read(source) if joints is None else None
        raw = self.raw(source, joints) if raw is None else raw
        if self.cutoff is not None:
            prepared = raw.filtered(self.cutoff)
        elif (shared := self._shared(key_of(source), raw)) is not None:
            prepared = raw.filtered(shared.choice.cutoff)
            if key_of(source) in shared.members:
                prepared = replace(prepared, choice=shared.choice)
        else:
            wanted = self.wanted if key_of(source) in self.judges else None
            choice = choose(self.unknowns(raw.joints), self.usable(raw), wanted)
            prepared = replace(raw.filtered(choice.cutoff), choice=choice)
        if self.mechanism.loops:
            prepared = self.closed.unfiltered(prepared)
        if self.cache is not None:
            self.cache.put(self._key(source, prepared.joints), prepared)
        return prepared

    def excerpt(self, source: Source, share: float) -> Even:
        """The motion of a recording from which its filter may be chosen. The recording is kept
        until it is prepared.

        Args:
            source: the recording.
            share: how much of it, as a fraction of what is enough.
        """
        raw = self.raw(source)
        if self.cache is not None:
            self.cache.put(self._key(source, ()), raw)
        return self.usable(raw).excerpt(share)

    def _read(self, source: Source) -> Even | None:
        """The recording with all its joints if `excerpt` has read it."""
        return None if self.cache is None else self.cache.pop(self._key(source, ()))

    def _key(self, source: Source, joints: tuple[str, ...]) -> Key:
        factors = {**self.effort_scale, **dict.fromkeys(self.unrelated, 0.0)}
        return source, joints, tuple(sorted(factors.items()))

    def _shared(self, name: str, raw: Even) -> SharedFilter | None:
        """The filter that this recording shares; None: it chooses its own."""
        for each in self.filters:
            if name in each.members and raw.joints == each.joints:
                return each
        usable = self.usable(raw)
        return next((each for each in self.filters if each.suits(usable)), None)

    def usable(self, raw: Even) -> Even:
        """The part of a recording from which its filter may be chosen."""
        return raw.first(1 - self.held_out)

    def raw(self, source: Source, joints: tuple[str, ...] | None = None) -> Even:
        """The recording on even grids, not yet filtered.

        Args:
            source: the recording.
            joints: the joints to take; None: all that were recorded.

        Raises:
            RecordingError: it lacks one of the joints, or cannot be used.
        """
        recording = adapted(
            source, self.topic, self.rename, self.effort_scale, self.position_offset
        )
        name = self.names.get(key_of(source), recording.source)
        recording = replace(recording, source=name)
        if self.motor_efforts:
            recording = at_joints(recording, match(self.mechanism, recording.names)[0])
        if self.unrelated:
            recording = recording.without_efforts(self.unrelated)
        if self.mechanism.loops:
            return self._with_motors(recording)
        if joints is None:
            joints = match(self.mechanism, recording.names)[0].joint_names
        recording.check_names(joints, more=" (the other recordings have them)")
        slides, unknowns = sliding(self.mechanism, joints), self.unknowns(joints)
        return even_with_efforts(recording, joints, slides, unknowns, 1 - self.held_out)

    def _with_motors(self, recording: Recording) -> Even:
        """The motors' motion of a robot with loops; arguments and errors as for `raw`."""
        motors = self.closed.joints
        recording.check_names(motors, "motors")
        raw = even(recording, motors, sliding(self.mechanism, motors))
        return self.closed.closing(raw, self.unrelated)

    def parts(self, prepared: Prepared) -> tuple[Prepared, Prepared]:
        """(the part used for the fit, the held-out part)."""
        return prepared.split(self.held_out)


def reduced(
    work: Work,
    source: Source,
    joints: tuple[str, ...] | None = None,
    excluded: frozenset[str] = frozenset(),
) -> tuple[NormalEquations, Reduced]:
    """A recording's normal equations, and its summary.

    Args:
        work: the settings.
        source: the recording.
        joints: the joints to take; None: all that were recorded.
        excluded: the joints whose efforts are not used.

    Raises:
        RecordingError: it cannot be used.
    """
    prepared = work.prepared(source, joints)
    seen, _ = work.parts(prepared)
    if not any(each.usable.any() for each in seen.stretches):
        words = f"{prepared.source}: no usable efforts: saturated motors, or joints at rest"
        raise RecordingError(words, name=prepared.source)
    if excluded:
        used = np.array([name not in excluded for name in prepared.joints])
        stretches = (replace(each, usable=each.usable & used) for each in seen.stretches)
        seen = replace(seen, stretches=tuple(stretches))
    q, qd = (np.concatenate([getattr(x, y) for x in prepared.stretches]) for y in ("q", "qd"))
    normal = reduce(work.unknowns(prepared.joints), seen)
    usable = sum(each.usable.sum(axis=0) for each in seen.stretches)
    return normal.at_least(work.least(prepared.joints)), Reduced(
        prepared.source, prepared.joints, q.min(axis=0), q.max(axis=0), np.abs(qd).max(axis=0),
        np.asarray(usable), prepared.cutoff, prepared.choice, prepared.notes, seen.duration,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judged:
    """The errors of the described and the identified model on a recording."""

    source: str
    seen: SquaredErrors
    """On the part used for the fit"""
    unseen: SquaredErrors
    needed: Needed
    """On the held-out part if there is one, otherwise on the whole recording"""
    cutoff: float | None
    choice: Choice | None
    notes: tuple[str, ...]
    contacts: tuple[Contact, ...]


@dataclass(frozen=True, eq=False)
class Judgement:
    """Computes the errors of the described and the identified model on a recording."""

    work: Work
    joints: tuple[str, ...]
    described: Mechanism
    identified: Mechanism
    spread: Spread

    @cached_property
    def _models(self) -> tuple[SplitDynamics, SplitDynamics]:
        return SplitDynamics(self.described), SplitDynamics(self.identified)

    def __call__(self, source: Source) -> Judged:
        prepared = self.work.prepared(source, self.joints)
        parts = self.work.parts(prepared)
        seen, unseen = ([*compared(part, self._models)] for part in parts)
        missed = [(each.samples, each.identified) for each in (*seen, *unseen)]
        kept = [
            (each.samples, each.unfiltered) for each in (unseen if self.work.held_out else seen)
        ]
        lacking = needed(self.spread, self.work.unknowns(prepared.joints), kept)
        return Judged(
            prepared.source, squared_errors(parts[0], seen), squared_errors(parts[1], unseen),
            lacking, prepared.cutoff, prepared.choice, prepared.notes,
            tuple(contacts(prepared.source, prepared.joints, missed)),
        )  # fmt: skip


def filters_at_fault(
    work: Work, source: Source, joints: tuple[str, ...], cutoff: float | None
) -> tuple[FilterFault, ...]:
    """The joints of a recording whose errors are due to the filter.

    Args:
        work: the settings.
        source: the recording.
        joints: the joints to take.
        cutoff: Hz, the cut-off that was used; None: not filtered.
    """
    raw, unknowns = work.raw(source, joints), work.unknowns(joints)
    return tuple(filter_faults(unknowns, work.usable(raw), cutoff))


def motors_shared(
    work: Work, source: Source, identified: Mechanism, tested: Collection[str]
) -> tuple[SharedMotor, ...]:
    """The joints of a recording that appear to share a motor with another joint.

    Args:
        work: the settings.
        source: the recording.
        identified: the robot that was found.
        tested: the joints to test.
    """
    model = SplitDynamics(identified)
    seen, _ = work.parts(work.prepared(source, identified.joint_names))
    found = [*compared(seen, (model, model))]
    samples = joined([each.samples for each in found])
    missed = np.concatenate([each.identified for each in found])
    return tuple(shared_motors(identified, tested, samples, missed))


def mixed_up(
    work: Work,
    source: Source,
    joints: tuple[str, ...],
    sprung: frozenset[str],
    factors: Mapping[str, float],
) -> Mixed | Mounting | None:
    """The columns that are mixed up in a recording, or a different mounting of the base.

    Args:
        work: the settings.
        source: the recording.
        joints: the joints to take.
        sprung: the joints with a clear spring.
        factors: by joint, the suspected factors, which may explain its efforts instead; NaN where
            none does.
    """
    seen, _ = work.parts(work.prepared(source, joints))
    unknowns = replace(work.open(joints), sprung=sprung)
    return mixed(unknowns, joined(seen.stretches), factors, work.position_offset)


def degrees_recorded(work: Work, source: Source, joints: tuple[str, ...]) -> bool:
    """Whether a recording's positions are clearly in degrees."""
    seen, _ = work.parts(work.prepared(source, joints))
    return in_degrees(work.open(joints), joined(seen.stretches))


def zero_equations(work: Work, source: Source, at: Linearised) -> ZeroEquations:
    """A recording's equations with an offset at every joint's zero."""
    seen, _ = work.parts(work.prepared(source, at.unknowns.joints))
    return equations(at, seen)


def errors_near_rest(work: Work, source: Source, smoothing: FrictionSmoothing) -> NearRest:
    """A recording's errors with steps of dry friction at rest, and with each smoothing."""
    seen, _ = work.parts(work.prepared(source, smoothing.identified.joint_names))
    return smoothing.errors(seen)


def traces_of(work: Work, source: Source, joints: tuple[str, ...]) -> tuple[Trace, ...]:
    """A recording's samples for plots."""
    prepared = work.prepared(source, joints)
    return tuple(
        Trace(prepared.source, seen, samples.rows(slice(None, None, max(1, len(samples) // SHOWN))))
        for seen, part in zip((True, False), work.parts(prepared), strict=True)
        for samples in part.stretches
    )
