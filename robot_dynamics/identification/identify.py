# SPDX-License-Identifier: Apache-2.0
"""Identifies a robot's model from recordings, with or without loops."""

from __future__ import annotations

import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import median_low
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ..description import load
from ..errors import InputError, RecordingError, listed, wrong
from ..mechanism import Mechanism
from . import contacts, shared_motors
from .band import Band, Needed, Spread, spread
from .closed import ClosedFit, ClosedIdentification, ClosedUnknowns, fit_closed
from .contacts import Contact
from .doubts import LITTLE as SUSPECT
from .doubts import Doubt, PlainModel, doubts, nothing_left, plain_model, remaining
from .fit import Fit, Fitted, about_described_bodies, fit
from .fleet import Sum, fleet_at, key_of, one_blas_thread
from .friction_smoothing import FrictionSmoothing, smoothing_words
from .identified import Identified, Kept, Trace, loses, refuse_nonsense, stays
from .identified_mechanism import mechanism_of
from .mixed import Mixed, Mounting
from .motor_efforts import motor_rows
from .normal_equations import NormalEquations
from .passes import Passes, together
from .per_recording import (
    HELD_OUT,
    Judged,
    Judgement,
    Reduced,
    Work,
    degrees_recorded,
    errors_near_rest,
    filters_at_fault,
    mixed_up,
    motors_shared,
    traces_of,
    zero_equations,
)
from .prepared_cache import PreparedCache
from .quality import (
    FAR_OFF,
    HARDLY,
    LITTLE,
    MISSED,
    Excitation,
    bodies_scale,
    driving,
    excitation,
    falling,
    far_off,
    large,
    lost,
    many_turns,
    missing_between,
    other_unit,
    undetermined,
)
from .read import Source, as_list, names_in_folders
from .recording import Floats
from .reduction import a_few, chosen_filters, sum_of
from .selection import places_of
from .torque_errors import Errors, SquaredErrors
from .unknowns import Columns, Unknowns, match
from .zeros import RECORDINGS, Linearised, Zero, ZeroEquations, zero_words, zeros

F = TypeVar("F", bound=Fitted)
I = TypeVar("I", bound=Identified)


@dataclass(frozen=True, eq=False, kw_only=True)
class Identification(Identified):
    """The result of `identify` for an open chain; torques in N·m or N, in the order of `joints`."""

    fit: Fit
    """The solution of the least-squares problem, with its covariance"""
    excitation: Excitation
    """How well the motion excites the robot's parameters"""
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
    def described_parameters(self) -> dict[str, float]:
        """The described values of these parameters; 0 for friction that is not described."""
        unknowns = self.fit.unknowns
        values = np.zeros(len(self.fit.x))
        values[: 10 * len(unknowns.bodies)] = unknowns.described
        if unknowns.payload is not None:  # the joints' own are differences to the described ones
            return self._by_name(values)
        for owner, own in places_of(self.fit.drives, unknowns).items():
            law = unknowns.described_friction(owner).numbers
            for k, name in enumerate(self.fit.drives[owner].law.names, own.start):
                values[k] = float(law.get(name, 0.0))
        return self._by_name(values)


@one_blas_thread()
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
    there must be as many motors as degrees of freedom, and `motor_efforts` is refused. Its `home`
    selects the assembly mode.

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
        payload: a link whose ten inertial parameters, and of an open chain the efforts' offsets,
            are the only ones to identify; the rest of the robot stays as described.
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
    if mechanism.loops and motor_efforts:
        expected = f"none: {mechanism.name} has loops"
        raise wrong(InputError, "motor_efforts", motor_efforts, expected)
    sources = as_list(recordings)
    if not sources:
        raise InputError("recordings: found none, expected at least one", name="recordings")
    judges = as_list(validate) if validate is not None else []
    names = names_in_folders([*sources, *judges])
    with (
        fleet_at(scheduler, workers, len(sources) + len(judges)) as fleet,
        PreparedCache() as cache,
    ):
        work = Work(
            mechanism, topic, rename or {}, effort_scale or {}, payload, cutoff,
            0.0 if judges else HELD_OUT, cache if fleet.local else None, position_offset or {},
            motor_efforts=motor_efforts, names=names,
        )  # fmt: skip
        kind: type[_Run[Any, Any]] = _ClosedRun if mechanism.loops else _OpenRun
        run = kind.of(Passes(fleet, progress, names), work, sources, judges)
        found: Identification | ClosedIdentification = _identified(run)
        return replace(found, source=source, notes=(*fleet.notes, *found.notes))


def _identified(run: _Run[F, I]) -> I:
    """The identification of a robot."""
    doubtful, mixture = run.suspects()
    sure = [each for each in doubtful if each.sure]
    given = run.work.effort_scale
    if sure:
        run = run.without(sure)
    found = run.fitted()
    if sure:
        run = run.scaled(sure)
    first = run.judged(run.mechanism_of(found), spread(found))
    doubtful = run.remaining(doubtful, found, first.errors)
    causes, suspect = run.causes(found, first.errors, mixture)
    # positions in another unit make efforts look wrong, too
    named = [any(each.startswith(f"{name}: ") for each in suspect) for name in run.joints]
    astray = len(named) > 1 and all(named)
    explained = {each.joint for each in doubtful}
    if mixture is not None or astray:
        explained = {*run.joints}
    told = run.without_usable(first.errors) | run.sums_of_motors(first.errors, explained)
    told |= run.motors_shared(first, {*explained, *told})
    told |= run.filters_at_fault(first.errors, {*explained, *told})
    between = [*missing_between(run.work.mechanism, run.joints, run.locked)]
    refuse_nonsense(first.errors, [*causes, *told.values(), *between], first.fitted)
    if not astray:
        suspect += between if doubtful else []
        suspect += [each.words(given.get(each.joint, 1.0)) for each in doubtful]
    kept, found, outcome = run.never_worse(found, first)
    sound = mixture is None and all(each.sure for each in doubtful)
    more = run.more(found, kept, mixture, sound)
    suspect += [
        *more.suspect,
        *stays(kept, first.errors, sure),
        *contacts.words(outcome.contacts),
        *run.passes.left_out(),
        *told.values(),
        *more.undetermined,
        *large(outcome.errors, [*explained, *told], outcome.usual, outcome.fitted.relative),
    ]
    if kept == "nothing":
        suspect += lost(outcome.errors, [each.joint for each in sure])
    taken: list[Reduced | Judged] = [*run.used.values(), *outcome.validation]
    result: I = run.kind(
        mechanism=outcome.model,
        described=run.described,
        fit=found,
        errors=outcome.errors,
        fitted=outcome.fitted,
        locked=run.locked,
        notes=(*_notes(run.locked, taken, run.work), *more.notes),
        warnings=tuple(dict.fromkeys(suspect)),
        cutoffs={each.source: each.cutoff for each in taken},
        choices={each.source: each.choice for each in taken if each.choice is not None},
        traces=outcome.traces,
        source=None,
        band=outcome.band(run.unknowns),
        kept=kept,
        contacts=outcome.contacts,
        doubts=doubtful,
        **more.fields,
    )
    return result


@dataclass(frozen=True)
class _More:
    """What only the result of one kind of robot contains."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the result"""
    suspect: Sequence[str] = ()
    """Warnings of what looks wrong"""
    undetermined: Sequence[str] = ()
    """Warnings of what the data do not determine"""
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class _Outcome:
    """A model, and how it predicts the recordings."""

    model: Mechanism
    unsure: Spread
    errors: Errors
    """On held-out motion"""
    fitted: Errors
    """On the motion used for the fit"""
    traces: tuple[Trace, ...]
    validation: tuple[Judged, ...]
    """On the recordings given for validation"""
    contacts: tuple[Contact, ...]
    needed: Needed
    """The width that the prediction band needs on held-out motion"""

    @property
    def usual(self) -> Floats:
        """(n,), N·m or N: the usual errors on held-out motion."""
        return self.needed.usual(self.unsure.sigma)

    def band(self, unknowns: Columns) -> Band:
        """The prediction band of measured torques about the model's."""
        residual = self.needed.residual(self.unsure.sigma)
        return Band(unknowns, self.unsure, residual)


@dataclass(frozen=True, eq=False)
class _Run(ABC, Generic[F, I]):
    """The usable recordings of an identification, and what they are reduced to."""

    kind: ClassVar[Callable[..., Any]]
    """The result's class"""

    passes: Passes
    work: Work
    unknowns: Columns
    normal: NormalEquations
    fitting: Mapping[int, Source]
    used: Mapping[int, Reduced]
    """Summaries of the recordings that are fitted"""
    judging: Mapping[int, Source]
    """Recordings given for validation"""

    @classmethod
    def of(
        cls, passes: Passes, work: Work, sources: Sequence[Source], judges: Sequence[Source]
    ) -> _Run[F, I]:
        """Read and reduce all recordings that are fitted.

        Raises:
            RecordingError: none can be used.
        """
        numbered = dict(enumerate(sources))
        work = replace(work, filters=chosen_filters(passes, work, a_few(numbered)))
        normal, used, work = sum_of(passes, work, numbered)
        passes.progress("fitting")
        unknowns = cls.looked_for(work, normal, used)
        only = {key_of(each) for each in judges} - {key_of(each) for each in sources}
        # infinite: not filtered
        wanted = median_low(math.inf if x.cutoff is None else x.cutoff for x in used.values())
        work = replace(work, wanted=wanted, judges=frozenset(only))
        fitting = {k: sources[k] for k in used}
        return cls(passes, work, unknowns, normal, fitting, used, dict(enumerate(judges)))

    @classmethod
    @abstractmethod
    def looked_for(
        cls, work: Work, normal: NormalEquations, used: Mapping[int, Reduced], /
    ) -> Columns:
        """The parameters to identify.

        Args:
            work: the settings.
            normal: the sum of all normal equations.
            used: the summaries of the recordings.

        Raises:
            RecordingError: the recordings say too little about the robot.
        """

    @abstractmethod
    def plain(self) -> PlainModel:
        """What may explain efforts."""

    def suspects(self) -> tuple[tuple[Doubt, ...], Mixed | Mounting | None]:
        """(joints whose efforts need a factor; columns that are mixed up in the first recording, or
        how the base appears to be mounted in it). If there are any of the latter, the former are
        empty: they make efforts look as if they needed factors."""
        if self.unknowns.payload is not None:
            return (), None
        given = self.work.effort_scale
        still = self._hardly_moving()
        doubtful, missed = doubts(self.unknowns, self.normal, self.plain(), given, still)
        mixture = None if missed <= SUSPECT else self.mixture(doubtful)
        return (() if mixture else doubtful), mixture

    def _hardly_moving(self) -> set[str]:
        """The joints that hardly move in any recording."""
        ranges = np.max([each.highest - each.lowest for each in self.used.values()], axis=0)
        return {*itertools.compress(self.joints, ranges < HARDLY)}

    def mixture(self, _doubtful: Sequence[Doubt], /) -> Mixed | Mounting | None:
        """Columns that are mixed up in the first recording, or another mounting of the base."""
        return None

    @abstractmethod
    def fitted(self) -> F:
        """The fit."""

    @abstractmethod
    def mechanism_of(self, found: F) -> Mechanism:
        """The robot that was found."""

    def motors_shared(self, _first: _Outcome, _explained: set[str], /) -> dict[str, str]:
        """By joint, a line for each that appears to share a motor with another joint."""
        return {}

    def remaining(
        self, doubtful: Sequence[Doubt], _found: F, errors: Errors, /
    ) -> tuple[Doubt, ...]:
        """The doubts that the fit does not dispel."""
        return remaining(doubtful, errors)

    def causes(
        self, _found: F, _errors: Errors, _mixture: Mixed | Mounting | None, /
    ) -> tuple[list[str], list[str]]:
        """(what may have caused errors so large that the fit is useless; what looks wrong)."""
        return [], []

    def about_described(self, _found: F, /) -> F | None:
        """The fit with the bodies as described; None: there is none."""
        return None

    def more(
        self, _found: F, _kept: Kept, _mixture: Mixed | Mounting | None, _sound: bool, /
    ) -> _More:
        """What only the result of this kind of robot contains, from the fit, what is kept as
        described, columns that are mixed up or another mounting of the base, and whether neither
        these nor uncertain efforts distort the fit."""
        return _More()

    @property
    def joints(self) -> tuple[str, ...]:
        return self.unknowns.joints

    @property
    def described(self) -> Mechanism:
        """The robot as described, with the joints that were not recorded locked."""
        return self.work.mechanism

    @property
    def locked(self) -> dict[str, float]:
        """rad or m: where the joints that were not recorded are locked, by name."""
        return {}

    @property
    def first(self) -> dict[int, Source]:
        """The first recording."""
        k = min(self.fitting)
        return {k: self.fitting[k]}

    def without(self, doubtful: Sequence[Doubt]) -> _Run[F, I]:
        """The same, reduced again without the doubtful efforts, so that these do not affect the
        samples' weights either.

        Raises:
            RecordingError: no efforts are left.
        """
        places = [self.joints.index(each.joint) for each in doubtful]
        if not self.normal.without(places).count.any():
            raise RecordingError(nothing_left(doubtful, self.work.effort_scale), name="recording")
        excluded = frozenset(each.joint for each in doubtful)
        normal = sum_of(self.passes, self.work, self.fitting, excluded, self.joints)[0]
        return replace(self, normal=normal)

    def scaled(self, doubtful: Sequence[Doubt]) -> _Run[F, I]:
        """The same, with the factors of the doubtful efforts applied to whatever is read again, and
        without those that no factor explains."""
        scale = {**self.work.effort_scale}
        for each in doubtful:
            scale[each.joint] = each.factor * scale.get(each.joint, 1.0)
        unrelated = frozenset(each.joint for each in doubtful if math.isnan(each.scale))
        return replace(self, work=replace(self.work, effort_scale=scale, unrelated=unrelated))

    def without_usable(self, errors: Errors) -> dict[str, str]:
        """By joint, a line for each with a large error of whose efforts none was used."""
        usable = np.asarray(sum(each.usable for each in self.used.values()))
        return {
            joint: f"{joint}: none of its efforts could be used (see the notes): its torque is "
            "about that of the description"
            for joint, count, error in zip(self.joints, usable, errors.relative, strict=True)
            if not count and error > LITTLE
        }

    def sums_of_motors(self, _errors: Errors, _explained: set[str], /) -> dict[str, str]:
        """By joint, a line for each with a large error whose torque is that of several motors."""
        return {}

    def filters_at_fault(self, errors: Errors, explained: set[str]) -> dict[str, str]:
        """By joint, a line for each whose large error is mostly the filter's fault."""
        much = {
            joint: error
            for joint, error in zip(errors.joints, errors.relative, strict=True)
            if error > LITTLE and joint not in explained
        }
        if not much:
            return {}
        used = next(iter(self.used.values())).cutoff
        test = partial(filters_at_fault, self.work, joints=errors.joints, cutoff=used)
        given = self.work.cutoff is not None
        return {
            each.joint: each.words(given)
            for _, some in self.passes.over("trying filters on", test, self.first, needed=False)
            for each in some
            if each.joint in much and 2 * each.missed > much[each.joint]
        }

    def never_worse(self, found: F, outcome: _Outcome) -> tuple[Kept, F, _Outcome]:
        """(what is kept as described, the fit of the rest, its outcome).

        Args:
            found: the fit.
            outcome: its outcome.
        """
        if not loses(outcome.errors):
            return "nothing", found, outcome
        self.passes.progress("the description predicts better: keeping its bodies")
        about = self.about_described(found)
        if about is not None:
            outcome = self.judged(self.mechanism_of(about), spread(about, bodies=False))
            if not loses(outcome.errors):
                return "bodies", about, outcome
        return "everything", found, self.judged(self.described, spread(found, False, False))

    def judged(self, model: Mechanism, unsure: Spread) -> _Outcome:
        """How a model predicts all recordings."""
        described, judges = self.described, self.judging
        judgement = Judgement(self.work, self.joints, described, model, unsure)
        show = partial(traces_of, self.work, joints=self.joints)
        lacking: Sum[Needed] = Sum()
        fitted: Sum[SquaredErrors] = Sum()
        unseen: Sum[SquaredErrors] = Sum()
        told: dict[tuple[bool, int], Judged] = {}
        for judging, some in ((False, self.fitting), (True, judges)):
            for k, each in self.passes.over("judging", judgement, some):
                # nothing is held out of the recordings if others are given for validation
                (unseen if judging else fitted).add(each.seen)
                if judging or not judges:
                    lacking.add(each.needed)
                if not judges:
                    unseen.add(each.unseen)
                told[judging, k] = each
        # the first recording of either kind
        shown = [
            (self.fitting, judges)[judging][min(k for other, k in told if other == judging)]
            for judging in sorted({judging for judging, _ in told})
        ]
        traces = [
            replace(trace, seen=trace.seen and k == 0)
            for k, some in sorted(self.passes.over("showing", show, dict(enumerate(shown))))
            for trace in some
        ]
        ordered = [each for _, each in sorted(told.items(), key=lambda item: item[0])]
        return _Outcome(
            model,
            unsure,
            unseen.value().errors(described, self.joints),
            fitted.value().errors(described, self.joints),
            tuple(traces),
            tuple(told[key] for key in sorted(told) if key[0]),
            tuple(contact for each in ordered for contact in each.contacts),
            lacking.value(),
        )


class _OpenRun(_Run[Fit, Identification]):
    """Those of an open chain."""

    kind = Identification
    unknowns: Unknowns

    @classmethod
    def looked_for(
        cls, work: Work, normal: NormalEquations, used: Mapping[int, Reduced], /
    ) -> Unknowns:
        joints = next(iter(used.values())).joints
        sprung = frozenset(itertools.compress(joints, normal.pulled))
        return replace(work.open(joints), sprung=sprung) if sprung else work.open(joints)

    @cached_property
    def _matched(self) -> tuple[Mechanism, tuple[str, ...]]:
        return match(self.work.mechanism, self.joints)

    @property
    def described(self) -> Mechanism:
        return self._matched[0]

    @property
    def locked(self) -> dict[str, float]:
        return {name: self.work.mechanism.home_of(name) for name in self._matched[1]}

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """(n,) each, rad or m: the smallest and the largest positions."""
        used = self.used.values()
        lowest, highest = [each.lowest for each in used], [each.highest for each in used]
        return np.min(lowest, axis=0), np.max(highest, axis=0)

    def plain(self) -> PlainModel:
        return plain_model(self.unknowns)

    def mixture(self, doubtful: Sequence[Doubt], /) -> Mixed | Mounting | None:
        factors = {each.joint: each.scale for each in doubtful}
        test = partial(
            mixed_up,
            self.work,
            joints=self.joints,
            sprung=self.unknowns.sprung,
            factors=factors,
        )
        for _, found in self.passes.over("exchanging columns of", test, self.first, needed=False):
            if found is not None:
                return found
        return None

    def fitted(self) -> Fit:
        """The fit, without steps of dry friction at rest where some of the recordings contradict
        them."""
        found = fit(self.unknowns, self.normal)
        fastest = np.max([each.fastest for each in self.used.values()], axis=0)
        smoothing = FrictionSmoothing.of(found, mechanism_of(found), fastest)
        if not smoothing.rates.any():
            return found
        test = partial(errors_near_rest, self.work, smoothing=smoothing)
        few = a_few(self.fitting)
        total = self.passes.summed("comparing friction near rest in", test, few)
        return found if total is None else replace(found, smoothing=smoothing.chosen(total))

    def mechanism_of(self, found: Fit) -> Mechanism:
        return mechanism_of(found)

    def remaining(self, doubtful: Sequence[Doubt], found: Fit, errors: Errors) -> tuple[Doubt, ...]:
        """Also dispels those of efforts that fall with the velocity: these have no wrong sign, but
        contain something else than a torque."""
        driven = [joint for joint in errors.joints if found.drives[joint].driving]
        sloping = falling(found)
        told = [
            each for each in doubtful
            if each.sure or each.factor > 0 or each.joint not in sloping
        ]  # fmt: skip
        return remaining(told, errors, driven)

    def causes(
        self, found: Fit, errors: Errors, mixture: Mixed | Mounting | None, /
    ) -> tuple[list[str], list[str]]:
        light = bodies_scale(found) < 1 / FAR_OFF  # as with positions in degrees
        missed = np.where(light, np.inf, errors.relative)
        far = [*far_off(self.described, *self._ends)]
        turns = [*many_turns(self.described, *self._ends, missed)]
        if turns and not self._in_degrees():
            turns = []
        confused = [] if mixture is None else [mixture.words()]
        suspect = [*confused, *far, *turns]
        # a joint that no model explains may have turned that far all the same
        causes = suspect if light else [*confused, *far]
        alone = mixture is None and len(far) + len(turns) < len(self.joints)
        return causes, [*suspect, *(other_unit(found) if alone else ())]

    def _in_degrees(self) -> bool:
        test = partial(degrees_recorded, self.work, joints=self.joints)
        return any(
            found
            for _, found in self.passes.over("testing units of", test, self.first, needed=False)
        )

    def motors_shared(self, first: _Outcome, explained: set[str], /) -> dict[str, str]:
        errors = first.errors
        much = (errors.relative > MISSED) & ~errors.still
        tested = [each for each in itertools.compress(errors.joints, much) if each not in explained]
        if not tested or self.unknowns.payload is not None:
            return {}
        test = partial(motors_shared, self.work, identified=first.model, tested=tested)
        found = self.passes.over("looking for shared motors in", test, self.first, needed=False)
        return shared_motors.words(each for _, some in found for each in some)

    def sums_of_motors(self, errors: Errors, explained: set[str], /) -> dict[str, str]:
        if not self.work.motor_efforts:
            return {}
        found = {}
        columns = motor_rows(self.described).T
        for joint, error, column in zip(self.joints, errors.relative, columns, strict=True):
            motors = [*itertools.compress(self.joints, column)]
            if len(motors) > 1 and error > LITTLE and joint not in explained:
                found[joint] = (
                    f"{joint}: the model leaves {100 * error:.0f} % of the torque unexplained, "
                    f"which is that of the motors recorded at {listed(motors)}: are the efforts of "
                    "all of them motor torques, each reflected to its joint, with the right sign "
                    "(--effort-scale), and are their gear ratios right?"
                )
        return found

    def about_described(self, found: Fit, /) -> Fit | None:
        return about_described_bodies(found)

    def more(
        self, found: Fit, kept: Kept, mixture: Mixed | Mounting | None, sound: bool, /
    ) -> _More:
        off = self._zeros(found) if kept == "nothing" and sound else ()
        excited = excitation(found)
        lowest, highest = self._ends
        words: list[str] = []
        if kept != "everything":
            words = [*zero_words(off, self.work.position_offset), *driving(found)]
        fields = {
            "excitation": excited,
            "zeros": off,
            "mixed": mixture if isinstance(mixture, Mixed) else None,
            "mounting": mixture if isinstance(mixture, Mounting) else None,
        }
        notes = smoothing_words(found) if kept != "everything" else ()
        return _More(
            fields, words, [*undetermined(excited, self.joints, highest - lowest)], [*notes]
        )

    def _zeros(self, found: Fit) -> tuple[Zero, ...]:
        """What some of the recordings say about the joints' zeros; which ones are used does not
        depend on their order."""
        order = sorted(self.used, key=lambda k: self.used[k].source)
        few = {k: self.fitting[k] for k in order[:: -(-len(order) // RECORDINGS)]}

        def sums(at: Linearised) -> ZeroEquations | None:
            test = partial(zero_equations, self.work, at=at)
            return self.passes.summed("testing zeros in", test, few, needed=False)

        return zeros(found, sums)


class _ClosedRun(_Run[ClosedFit, ClosedIdentification]):
    """Those of a robot with loops."""

    kind = ClosedIdentification
    unknowns: ClosedUnknowns

    @classmethod
    def looked_for(
        cls, work: Work, _normal: NormalEquations, used: Mapping[int, Reduced], /
    ) -> ClosedUnknowns:
        least = 10 * len(work.closed.joints)
        counts = sum(each.usable for each in used.values())
        for motor, count in zip(work.closed.joints, np.asarray(counts).tolist(), strict=True):
            if count < least:
                raise RecordingError(
                    f"{motor}: only {count} usable samples (moving, loops closed, effort not "
                    f"saturated), expected at least {least}; record for longer",
                    name="recording",
                )
        return work.closed

    def plain(self) -> PlainModel:
        return self.unknowns.plain

    def fitted(self) -> ClosedFit:
        return fit_closed(self.unknowns, self.normal)

    def mechanism_of(self, found: ClosedFit) -> Mechanism:
        return self.unknowns.mechanism_of(found.x)


def _notes(
    locked: Mapping[str, float], recordings: Sequence[Reduced | Judged], work: Work
) -> Iterator[str]:
    alike = sum(each.choice is None for each in recordings)
    if work.filters and alike:
        chose = sum(len(each.members) for each in work.filters)
        yield f"{alike} of {len(recordings)} recordings: cut-off chosen from {chose} similar ones"
    if locked:
        held = ", ".join(f"{name} at {value:g}" for name, value in locked.items())
        yield f"not recorded, and locked: {held}"
    said = ((each.source, f"{each.source}: {note}") for each in recordings for note in each.notes)
    yield from together(said)
