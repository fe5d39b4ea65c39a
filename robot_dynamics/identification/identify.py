# SPDX-License-Identifier: Apache-2.0
"""Identifies a robot's model from recordings; robots with loops are passed on to `closed`."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from ..description import load
from ..errors import InputError, RecordingError, RobotDynamicsError, wrong
from ..mechanism import Mechanism
from . import contacts
from .band import Band, Needed, Spread, spread
from .closed import ClosedIdentification, identify_closed
from .contacts import Contact
from .cutoff import Swayed
from .doubts import LITTLE as SUSPECT
from .doubts import Doubt, doubts, nothing_left, remaining
from .errors import Errors, Misses
from .fit import Fit, about_described_bodies, fit
from .fleet import Fleet, Sum, fleet_at
from .identified import Identified, Kept, loses, refuse_nonsense, stays
from .identified_mechanism import mechanism_of
from .mixed import Mixed, mixed_words
from .mounting import Mounting
from .normal_equations import NormalEquations, quietest
from .per_recording import (
    HELD_OUT,
    Excerpt,
    Judged,
    Judgement,
    MixedTest,
    Reduced,
    Reduction,
    Show,
    StandstillTest,
    Sway,
    Trace,
    Work,
    ZeroTest,
    one_blas_thread,
    place,
)
from .prepared_cache import PreparedCache
from .quality import (
    LITTLE,
    Excitation,
    driving,
    excitation,
    falling,
    far_off,
    lost,
    many_turns,
    other_unit,
    warnings,
)
from .read import Source, as_list, at_least_one, name_of
from .recording import Floats
from .shared_filter import FEW, SharedFilter, groups
from .standstill import AtRest, Stepped, standstill_words
from .unknowns import Unknowns, match
from .zeros import RECORDINGS, Linearised, Zero, ZeroEquations, zero_words, zeros

R = TypeVar("R")


@dataclass(frozen=True, eq=False, kw_only=True)
class Identification(Identified):
    """The result of `identify` for an open chain; torques in N·m or N, in the order of `joints`."""

    fit: Fit
    """The solution of the least-squares problem, with its covariance"""
    duration: float
    """s of motion used for the fit"""
    traces: tuple[Trace, ...]
    """Measured and predicted torques of parts of the recordings, for the report"""
    excitation: Excitation
    """How well the motion excites the robot's parameters"""
    contacts: tuple[Contact, ...] = ()
    """Stretches in which external forces acted on the robot"""
    mixed: Mixed | None = None
    """Columns of the first recording that appear to be mixed up; searched for only if the model
    explains little"""
    mounting: Mounting | None = None
    """How the base appears to be mounted in the first recording; searched for only if the model
    explains little"""
    zeros: tuple[Zero, ...] = ()
    """By joint, what the recordings say about its encoder's zero; empty if no model explains them
    well enough to tell"""

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints' names, in the order of all results by joint."""
        return self.fit.unknowns.joints

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of `parameters`, which are also the order of `covariance`."""
        return self.fit.names

    @property
    def parameters(self) -> dict[str, float]:
        """The identified parameters by name, SI units; the described ones if everything is kept."""
        if self.kept == "everything":
            return self.described_parameters
        return self._by_name(self.fit.x)

    @property
    def described_parameters(self) -> dict[str, float]:
        """The described values of these parameters; 0 for friction that is not described."""
        unknowns = self.fit.unknowns
        values = np.zeros(len(self.fit.x))
        values[: 10 * len(unknowns.bodies)] = unknowns.described
        at = 10 * len(unknowns.bodies)
        for owner in unknowns.owners:
            law = unknowns.described_friction(owner).numbers
            drive = self.fit.drives[owner]
            for k, name in enumerate(drive.law.names):
                values[at + k] = float(law.get(name, 0.0))
            at += drive.size
        return self._by_name(values)

    def _by_name(self, x: Floats) -> dict[str, float]:
        """Parameters by name, with full rotor inertias; x contains only their deviations from the
        described ones."""
        values = x.copy()
        for k, joint in self._rotor_places():
            values[k] += self.fit.unknowns.rotor_inertia(joint)
        return dict(zip(self.fit.names, values.tolist(), strict=True))

    @property
    def covariance(self) -> Floats:
        """(p, p), in the order of `parameters`: from the data and the description together."""
        return self.fit.covariance

    def _rotor_places(self) -> list[tuple[int, str]]:
        names = {f"{rotor}.inertia": joint for joint, rotor in self.fit.unknowns.rotors.items()}
        return [(k, names[name]) for k, name in enumerate(self.fit.names) if name in names]


def identify(
    robot: Mechanism | str | os.PathLike[str],
    recordings: Source | Sequence[Source],
    *,
    validate: Source | Sequence[Source] | None = None,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    effort_scale: Mapping[str, float] | None = None,
    position_offset: Mapping[str, float] | None = None,
    payload: str | None = None,
    cutoff: float | None = None,
    motor_efforts: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Identification | ClosedIdentification:
    """Identify a robot's bodies, friction and rotors from recordings.

    The recordings are processed one by one, and only their normal equations are kept. A recording
    that cannot be used is left out with a warning, unless it is the only one.

    For a robot with loops, each recording must contain the positions and efforts of every motor,
    and `payload`, `motor_efforts`, `scheduler` and `workers` are refused; see `identify_closed`.

    Args:
        robot: a mechanism, or what `rd.load` takes.
        recordings: rosbag2 folders, .db3, .mcap or .csv files, or `Recording` objects.
        validate: recordings that are held out for validation; None: the last third of each
            recording.
        topic: a topic of type sensor_msgs/JointState; None: `/joint_states`, or the only such
            topic.
        rename: from joint names in the recordings, or prefixes shared by several joints, to those
            in the description.
        effort_scale: by joint (as named in the description), the factor that converts its efforts
            to N·m or N.
        position_offset: by joint (as named in the description), the offset to add to its recorded
            positions, rad or m, which corrects its encoder's zero.
        payload: a link whose ten inertial parameters are the only ones to identify; the rest of the
            robot stays as described.
        cutoff: Hz, the low-pass filter's cut-off; None: the one whose fit predicts torque best,
            chosen jointly for recordings of the same joints and sampling rate.
        motor_efforts: whether efforts, after `effort_scale`, are those of the motors, each
            reflected to its joint. The effort of a motor coupled to several joints is recorded with
            one of them, and also contributes to the torques of the others.
        scheduler: address of a Dask scheduler whose workers read the recordings by their paths;
            None: this machine reads them.
        workers: number of new processes of this machine that share the recordings; None: this
            process reads them. A script that sets it needs `if __name__ == "__main__":`, as with
            `multiprocessing`.
        progress: called with a short message at each step.

    Raises:
        DescriptionError: the description is broken.
        RecordingError: no recording can be used. The error is that of the first one, which is
            broken, of another robot, too short, at rest, or without efforts.
        InputError: an option does not fit the robot and the recordings.
        BackendError: the scheduler does not answer or has no workers.

    Returns:
        The identified mechanism with its parameters, their covariance, errors on held-out motion,
        warnings and notes: an `Identification`, or for a robot with loops a `ClosedIdentification`.

    Source: [WKS18] and [LWP20] for physical consistency.
    """
    progress = progress or (lambda _: None)
    source = None if isinstance(robot, Mechanism) else os.fspath(robot)
    mechanism = robot if isinstance(robot, Mechanism) else load(robot)
    if mechanism.loops:
        refused = {
            "payload": payload, "motor_efforts": motor_efforts, "scheduler": scheduler,
            "workers": workers,
        }  # fmt: skip
        for name, value in refused.items():
            if value:
                raise wrong(InputError, name, value, f"none: {mechanism.name} has loops")
        result = identify_closed(
            mechanism, recordings, validate=validate, topic=topic, rename=rename,
            effort_scale=effort_scale, position_offset=position_offset, cutoff=cutoff,
            progress=progress,
        )  # fmt: skip
        return replace(result, source=source)
    sources = at_least_one(recordings)
    judges = as_list(validate) if validate is not None else []
    with (
        fleet_at(scheduler, workers, len(sources) + len(judges)) as fleet,
        PreparedCache() as cache,
    ):
        work = Work(
            mechanism, topic, rename or {}, effort_scale or {}, payload, cutoff,
            0.0 if judges else HELD_OUT, cache if fleet.local else None, position_offset or {},
            motor_efforts=motor_efforts,
        )  # fmt: skip
        passes = _Passes(fleet, progress)
        numbered = dict(enumerate(sources))
        work = replace(work, filters=_filters(passes, work, _few(numbered)))
        normal, kept, work = _reduced(passes, work, numbered)
        used = [*kept.values()]
        joints = used[0].joints
        progress("fitting")
        unknowns = work.unknowns(joints)
        if sprung := frozenset(itertools.compress(joints, normal.pulled)):
            unknowns = replace(unknowns, sprung=sprung)
        fitting, judging = {k: sources[k] for k in kept}, dict(enumerate(judges))
        only = {place(each) for each in judges} - {place(each) for each in sources}
        work = replace(work, wanted=_usual_cutoff(used), judges=frozenset(only))
        doubtful, mixture = _suspects(passes, work, unknowns, normal, fitting)
        sure = [each for each in doubtful if each.sure]
        if sure:
            normal = _without(passes, work, normal, joints, sure, fitting)
        with one_blas_thread():
            found = fit(unknowns, normal)
        fastest = np.max([each.fastest for each in used], axis=0)
        found = _at_standstill(passes, work, found, fastest, _few(fitting))
        model = mechanism_of(found)
        described, missing = match(mechanism, joints)
        given = work.effort_scale
        warned = [*(other_unit(found) if mixture is None else ())]
        if sure:
            more = {each.joint: each.factor * given.get(each.joint, 1.0) for each in sure}
            work = replace(work, effort_scale={**given, **more}, cache=None)
        unsure = spread(found)
        judged = _judged(passes, work, fitting, judging, described, model, unsure)
        driven = [joint for joint in joints if found.drives[joint].driving]
        sloping = falling(found)
        doubtful = remaining(
            [x for x in doubtful if x.sure or x.factor > 0 or x.joint not in sloping],
            judged[0],
            driven,
        )
        warned += [each.words(given.get(each.joint, 1.0)) for each in doubtful]
        explained = {each.joint for each in doubtful} if mixture is None else {*joints}
        swayed = _swayed(passes, work, fitting, judged[0], explained, used)
        filters = {each.joint: each.words(cutoff is not None) for each in swayed}
        highest = np.max([each.highest for each in used], axis=0)
        lowest = np.min([each.lowest for each in used], axis=0)
        beyond = [*far_off(described, lowest, highest)]
        beyond += many_turns(described, lowest, highest, judged[0].relative)
        refuse_nonsense(judged[0], [*mixed_words(mixture), *beyond, *filters.values()])
        first = judged[0]
        keeps: Kept = "nothing"
        if loses(first):
            progress("the description is better: keeping its bodies")
            with one_blas_thread():
                about = about_described_bodies(found)
            if about is not None:
                keeps, model, unsure = "bodies", mechanism_of(about), spread(about, bodies=False)
                judged = _judged(passes, work, fitting, judging, described, model, unsure)
            if about is None or loses(judged[0]):
                keeps, model, unsure = "everything", described, spread(found, False, False)
                judged = _judged(passes, work, fitting, judging, described, model, unsure)
            else:
                found = about
        errors, fitted, traces, others, touched, lacking = judged
        turned: tuple[Zero, ...] = ()
        if keeps == "nothing" and mixture is None and all(each.sure for each in doubtful):
            turned = _zeros(passes, work, found, {k: kept[k].source for k in kept}, fitting)
        taken: list[Reduced | Judged] = [*used, *others]
        told = excitation(found)
        moved = highest - lowest
        locked = {name: mechanism.home_of(name) for name in missing}
        return Identification(
            mechanism=model,
            described=described,
            fit=found,
            errors=errors,
            fitted=fitted,
            locked=locked,
            notes=(
                *_notes(fleet, locked, taken, work),
                *(standstill_words(found) if keeps != "everything" else ()),
            ),
            warnings=tuple(
                dict.fromkeys(
                    [
                        *mixed_words(mixture),
                        *beyond,
                        *warned,
                        *zero_words(turned, work.position_offset),
                        *(driving(found) if keeps != "everything" else ()),
                        *stays(keeps, first, bool(sure)),
                        *contacts.words(touched),
                        *passes.left_out,
                        *filters.values(),
                        *warnings(told, errors, moved, [*explained, *filters]),
                        *(
                            lost(errors, [each.joint for each in sure])
                            if keeps == "nothing"
                            else ()
                        ),
                    ]
                )
            ),
            cutoffs={each.source: each.cutoff for each in taken},
            choices={each.source: each.choice for each in taken if each.choice is not None},
            duration=fitted.duration,
            traces=traces,
            excitation=told,
            source=source,
            band=Band(unknowns, unsure, lacking.residual(unsure.sigma)),
            kept=keeps,
            contacts=touched,
            doubts=doubtful,
            mixed=mixture if isinstance(mixture, Mixed) else None,
            mounting=mixture if isinstance(mixture, Mounting) else None,
            zeros=turned,
        )


def _without(
    passes: _Passes,
    work: Work,
    normal: NormalEquations,
    joints: tuple[str, ...],
    doubtful: Sequence[Doubt],
    recordings: Mapping[int, Source],
) -> NormalEquations:
    """The normal equations recomputed without the doubtful efforts, so that these do not affect the
    samples' weights either.

    Raises:
        RecordingError: no efforts are left.
    """
    if not normal.without([joints.index(each.joint) for each in doubtful]).count.any():
        raise RecordingError(nothing_left(doubtful, work.effort_scale), name="recording")
    excluded = frozenset(each.joint for each in doubtful)
    return _reduced(passes, work, recordings, excluded)[0]


def _suspects(
    passes: _Passes,
    work: Work,
    unknowns: Unknowns,
    normal: NormalEquations,
    recordings: Mapping[int, Source],
) -> tuple[tuple[Doubt, ...], Mixed | Mounting | None]:
    """(joints whose efforts need a factor; columns that are mixed up in the first recording, or how
    the base appears to be mounted in it). If there are any of the latter, the former are empty:
    they make efforts look as if they needed factors."""
    with one_blas_thread():
        doubtful, missed = doubts(unknowns, normal, work.effort_scale)
    if missed <= SUSPECT:
        return doubtful, None
    factors = {each.joint: each.factor for each in doubtful}
    test = MixedTest(work, unknowns.joints, unknowns.sprung, factors)
    first = min(recordings)
    for _, found in passes.over("exchanging columns of", test, {first: recordings[first]}, False):
        if found is not None:
            return (), found
    return doubtful, None


def _swayed(
    passes: _Passes,
    work: Work,
    recordings: Mapping[int, Source],
    errors: Errors,
    explained: set[str],
    used: Sequence[Reduced],
) -> tuple[Swayed, ...]:
    """The joints whose large errors are mostly the filter's fault."""
    much = {
        joint: error
        for joint, error in zip(errors.joints, errors.relative, strict=True)
        if error > LITTLE and joint not in explained
    }
    if not much:
        return ()
    first = min(recordings)
    sway = Sway(work, errors.joints, used[0].cutoff)
    found = passes.over("trying filters on", sway, {first: recordings[first]}, needed=False)
    return tuple(
        each
        for _, some in found
        for each in some
        if each.joint in much and 2 * each.missed > much[each.joint]
    )


def _at_standstill(
    passes: _Passes, work: Work, found: Fit, fastest: Floats, recordings: Mapping[int, Source]
) -> Fit:
    """The fit, without dry friction at standstill where some of the recordings contradict it."""
    stepped = Stepped.of(found, fastest)
    if not stepped.coulomb.any():
        return found
    test = StandstillTest(work, mechanism_of(found), stepped)
    total: Sum[AtRest] = Sum()
    for _, each in passes.over("testing rests in", test, recordings):
        total.add(each)
    return replace(found, standstill=stepped.without_step(found.unknowns.joints, total.value()))


def _zeros(
    passes: _Passes,
    work: Work,
    found: Fit,
    names: Mapping[int, str],
    recordings: Mapping[int, Source],
) -> tuple[Zero, ...]:
    """What some of the recordings say about the joints' zeros; which ones are used does not depend
    on their order."""
    order = sorted(names, key=lambda k: names[k])
    few = {k: recordings[k] for k in order[:: -(-len(order) // RECORDINGS)]}

    def sums(at: Linearised) -> ZeroEquations | None:
        total: Sum[ZeroEquations] = Sum()
        some = False
        for _, each in passes.over("testing zeros in", ZeroTest(work, at), few, needed=False):
            total.add(each)
            some = True
        return total.value() if some else None

    with one_blas_thread():
        return zeros(found, sums)


class _Passes:
    """Applies functions to the recordings, some of which may be unusable."""

    def __init__(self, fleet: Fleet, progress: Callable[[str], None]):
        self._fleet, self._progress = fleet, progress
        self.left_out: list[str] = []

    def over(
        self,
        doing: str,
        function: Callable[[Source], R],
        sources: Mapping[int, Source],
        needed: bool = True,
    ) -> Iterator[tuple[int, R]]:
        """The results of the usable recordings with the recordings' indices, in any order.

        Raises:
            RobotDynamicsError: the error of the first recording, if one is needed and none is
                usable.
        """
        places, faults = [*sources], {}
        if places:
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            self._progress(f"{doing} {name_of(sources[places[0]])}{more}")
        for done, (k, outcome) in enumerate(self._fleet.map(function, [*sources.values()]), 1):
            place = places[k]
            if isinstance(outcome, RobotDynamicsError):
                faults[place] = outcome
            else:
                yield place, outcome
            if len(places) > 1:
                self._progress(f"{doing}: {done} of {len(places)}, {name_of(sources[place])}")
        if needed and faults and len(faults) == len(places):
            raise faults[min(faults)]
        self.left_out += [f"left out: {faults[place]}" for place in sorted(faults)]


@dataclass(frozen=True, eq=False)
class _Group:
    """Recordings of the same joints."""

    members: dict[int, Reduced] = field(default_factory=dict)
    first: list[NormalEquations] = field(default_factory=list)
    """Those from which the usual noise is determined"""
    total: Sum[NormalEquations] = field(default_factory=Sum)


def _widest(groups: Mapping[tuple[str, ...], _Group]) -> tuple[str, ...]:
    """The set of joints that was recorded for the longest time in total."""

    def motion(joints: tuple[str, ...]) -> tuple[float, int, tuple[str, ...]]:
        members = groups[joints].members.values()
        return math.fsum(each.duration for each in members), len(joints), joints

    return max(groups, key=motion)


def _reduced(
    passes: _Passes,
    work: Work,
    sources: Mapping[int, Source],
    excluded: frozenset[str] = frozenset(),
) -> tuple[NormalEquations, dict[int, Reduced], Work]:
    """The sum of all normal equations, the summaries of the recordings used, and the settings with
    which they were reduced.

    Recordings may have different joints; the set that was recorded for the longest time is
    identified. If there are many recordings, the usual noise is determined from a few of them.

    Args:
        passes: the passes over the recordings.
        work: the settings.
        sources: the recordings.
        excluded: the joints whose efforts are not used.
    """
    work = replace(work, quietest={})
    groups: dict[tuple[str, ...], _Group] = {}

    def take(
        work: Work, joints: tuple[str, ...] | None, some: Mapping[int, Source], needed: bool
    ) -> Iterator[tuple[_Group, NormalEquations]]:
        function = Reduction(work, joints, excluded)
        for k, (normal, each) in passes.over("reducing", function, some, needed):
            group = groups.setdefault(each.joints, _Group())
            group.members[k] = each
            yield group, normal

    few = _few(sources)
    rest = {k: each for k, each in sources.items() if k not in few}
    for group, normal in take(work, None, few, needed=not rest):
        group.first.append(normal)
    if groups:
        joints = _widest(groups)
        least = quietest(work.unknowns(joints), groups[joints].first)
        work = replace(work, quietest=dict(zip(joints, least.tolist(), strict=True)))
    for joints, group in groups.items():
        for normal in group.first:
            group.total.add(normal.at_least(work.least(joints)))
    for group, normal in take(work, None, rest, needed=not groups) if rest else ():
        group.total.add(normal)
    joints = _widest(groups)
    others = {k: sources[k] for other in groups if other != joints for k in groups[other].members}
    for group, normal in take(work, joints, others, needed=False):
        group.total.add(normal)
    found = groups[joints]
    return found.total.value(), dict(sorted(found.members.items())), work


def _few(sources: Mapping[int, Source]) -> dict[int, Source]:
    """At most `FEW` recordings that represent all; the choice does not depend on their order."""
    order = sorted(sources, key=lambda k: place(sources[k]))
    few = min(FEW, len(order))
    return {k: sources[k] for k in sorted(order[len(order) * i // few] for i in range(few))}


def _filters(passes: _Passes, work: Work, few: Mapping[int, Source]) -> tuple[SharedFilter, ...]:
    """The filters that groups of these recordings choose together; none if there is only one
    recording, or the cut-off is given."""
    if work.cutoff is not None or len(few) < 2:
        return ()
    excerpt = Excerpt(work, 1.0 / len(few))
    read = [(place(few[k]), raw) for k, raw in passes.over("reading", excerpt, few, needed=False)]
    with one_blas_thread():
        return tuple(
            SharedFilter.of(work.unknowns(group[0][1].joints), group) for group in groups(read)
        )


def _usual_cutoff(used: Sequence[Reduced]) -> float:
    """Hz, the median of the recordings' cut-offs; infinite: not filtered."""
    cutoffs = sorted(math.inf if each.cutoff is None else each.cutoff for each in used)
    return cutoffs[(len(cutoffs) - 1) // 2]


def _judged(
    passes: _Passes,
    work: Work,
    used: Mapping[int, Source],
    judges: Mapping[int, Source],
    described: Mechanism,
    model: Mechanism,
    unsure: Spread,
) -> tuple[Errors, Errors, tuple[Trace, ...], list[Judged], tuple[Contact, ...], Needed]:
    """(errors on held-out motion, errors on the motion used for the fit, traces, results on the
    validation recordings, contacts in any recording, the width that the prediction band needs on
    held-out motion)."""
    judgement = Judgement(work, described, model, unsure)
    show = Show(work, described.joint_names)
    lacking: Sum[Needed] = Sum()
    fitted: Sum[Misses] = Sum()
    unseen: Sum[Misses] = Sum()
    first: dict[bool, int] = {}
    told: dict[int, Judged] = {}
    touched: dict[tuple[bool, int], tuple[Contact, ...]] = {}
    for some, judging in ((used, False), (judges, True)):
        for k, each in passes.over("judging", judgement, some):
            # nothing is held out of the recordings if others are given for validation
            (unseen if judging else fitted).add(each.seen)
            if judging or not judges:
                lacking.add(each.needed)
            if not judges:
                unseen.add(each.unseen)
            if judging:
                told[k] = each
            touched[judging, k] = each.contacts
            first[judging] = min(k, first.get(judging, k))
    shown = [(used, judges)[judging][k] for judging, k in sorted(first.items())]
    found = [
        replace(trace, seen=trace.seen and k == 0)
        for k, traces in sorted(passes.over("showing", show, dict(enumerate(shown))))
        for trace in traces
    ]
    return (
        unseen.value().errors(described), fitted.value().errors(described), tuple(found),
        [told[k] for k in sorted(told)],
        tuple(each for _, some in sorted(touched.items()) for each in some), lacking.value(),
    )  # fmt: skip


def _notes(
    fleet: Fleet,
    locked: Mapping[str, float],
    recordings: Sequence[Reduced | Judged],
    work: Work,
) -> Iterator[str]:
    yield from fleet.notes
    alike = sum(each.choice is None for each in recordings)
    if work.filters and alike:
        chose = sum(len(each.members) for each in work.filters)
        yield f"{alike} recordings use the cut-off chosen from {chose} similar recordings"
    if locked:
        held = ", ".join(f"{name} at {value:g}" for name, value in locked.items())
        yield f"not recorded, and locked: {held}"
    notes = (f"{each.source}: {note}" for each in recordings for note in each.notes)
    yield from dict.fromkeys(notes)
