# SPDX-License-Identifier: Apache-2.0
"""Identification of closed chains: their bodies, rotors, and friction, also of passive joints.

The recordings contain the motors' positions and efforts; loop closure gives the positions of all
other joints. The motor torques are linear in the standard parameters of the cut-open tree,

    τ = Tᵀ Y_tree π,

so the fit is like that of open chains, over physically consistent bodies. Passive joints have
viscous and Coulomb friction, which Tᵀ maps to the motors.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..description import load
from ..dynamics import InverseDynamics
from ..errors import ClosureWarning, InputError, RecordingError, listed
from ..inputs import frequency
from ..mechanism import Friction, Inertial, Mechanism, Pose
from ..mechanism.dynamic_parameters import (
    BODY,
    frictions,
    rotor_names,
    standard_parameters,
    with_parameters,
)
from ..mechanism.transform import friction_at_joints, with_parts
from .band import Needed, PredictionBand, counted, root_of
from .bodies import reference
from .doubts import FINEST, Doubt, Evidence, doubted, nothing_left, remaining
from .errors import Errors, SquaredErrors
from .fit import RIDGE, chosen_weight
from .fleet import Sum
from .friction_laws import PLAIN, stands_still
from .identified import Identified, Kept, loses, refuse_nonsense, stays
from .identified_mechanism import fixed_to, parted
from .normal_equations import SIGMA_OF_MAD, biweight, correlation_length
from .per_recording import HELD_OUT, one_blas_thread
from .preparation import Choice, Even, Prepared, Samples, even
from .quality import large, lost
from .read import Source, adapted, as_list, at_least_one
from .recording import Floats, Recording, thinned
from .shared_filter import SharedFilter, alike, groups
from .solve import Prior, inverted, minimise
from .unknowns import body_names, body_size, with_rotors

ENOUGH = 4000
"""Largest number of samples of all recordings; more add little information, and the loops must be
closed for each one"""
CHECKED = 2000
"""Number of a recording's states in which loop closure is checked first"""
CLOSED = 0.5
"""Fraction of them in which the loops must close"""
WHY_OPEN = "check the encoder zeros and the assembly mode of `home`"
FOLDS = 6
PASSES = 4
"""Number of iterations of reweighting"""
OFF_AXIS = 1e-6
"""How far the centre of mass of a link that spins freely may be off its axis, as a fraction of the
robot's size"""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedIdentification(Identified):
    """The result of `identify` for a robot with loops; torques by motor, in N·m or N."""

    parameters: dict[str, float]
    """The identified parameters by name, SI units; the described ones if everything is kept"""
    described_parameters: dict[str, float]
    """The described values of these parameters; 0 for friction and rotors that are not described"""
    covariance: Floats
    """(p, p), in the order of `parameters`: from the data and the description together"""
    shown: tuple[Shown, ...]
    """Held-out motion, for plots"""

    @property
    def joints(self) -> tuple[str, ...]:
        """The names of the independent joints, in the order of states."""
        return self._model.joint_names


@dataclass(frozen=True, eq=False)
class Shown:
    """Motion, and measured and modelled torques, of samples in order of time; (k, n) each, torques
    by motor in N·m or N."""

    time: Floats
    """(k,), s since the recording's first stamp"""
    q: Floats
    """Positions of the independent joints, rad or m; qd and qdd likewise"""
    qd: Floats
    qdd: Floats
    measured: Floats
    described: Floats
    identified: Floats


@dataclass(frozen=True, eq=False)
class ClosedBand(PredictionBand):
    """The prediction band of a closed chain."""

    problem: ClosedUnknowns
    root: Floats
    """(p, c): C = root rootᵀ is the covariance of the fitted parameters; 0 if the description was
    kept"""

    def _variance(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        return np.asarray(((self.problem.columns(q, qd, qdd) @ self.root) ** 2).sum(axis=2))


@dataclass(frozen=True, eq=False)
class _States:
    """Samples (k, n)."""

    duration: float
    """s, the duration of the motion from which the samples are taken"""
    time: Floats
    """(k,), s since the recording's first stamp"""
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    """Unfiltered: a filter would round the steps of Coulomb friction, which appear in the motor
    torques wherever a passive joint changes direction"""
    usable: NDArray[np.bool_]
    """Whether the effort may be used: it is not that of a saturated or resting motor"""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Equations tau = A x + known of k samples and n motors."""

    A: Floats
    """(k, n, p)"""
    tau: Floats
    """(k, n), as recorded"""
    known: Floats
    """(k, n): the torques of parameters that are not identified, such as springs"""
    qd: Floats
    """(k, n)"""
    usable: NDArray[np.bool_]
    """(k, n): which of the equations hold"""


def identify_closed(
    robot: Mechanism | str | os.PathLike[str],
    recordings: Source | Sequence[Source],
    *,
    validate: Source | Sequence[Source] | None = None,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    effort_scale: Mapping[str, float] | None = None,
    position_offset: Mapping[str, float] | None = None,
    cutoff: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> ClosedIdentification:
    """Identify a robot with kinematic loops from recordings of its motors.

    Args:
        robot: a mechanism with loops, or what `rd.load` takes. Its `home` selects the assembly
            mode.
        recordings: with the position and effort of every motor; files as for `identify`, or
            `Recording` objects.
        validate: recordings that are held out for validation; None: the last third of each
            recording.
        topic: a topic of type sensor_msgs/JointState; None: `/joint_states`, or the only such
            topic.
        rename: from joint names in the recordings to those in the description.
        effort_scale: by motor, the factor that converts its efforts to N·m or N.
        position_offset: by motor, the offset to add to its recorded positions, rad or m.
        cutoff: Hz, the low-pass filter's cut-off; None: the one whose fit predicts torque best,
            chosen jointly for recordings of about the same sampling rate.
        progress: called with a short message at each step.

    Raises:
        DescriptionError: the description is broken.
        RecordingError: a recording cannot be used: a motor is missing, its positions do not close
            the loops, or its efforts are not those of this robot.
        InputError: the robot has no loops, or its motors are not the independent joints.
    """
    say = progress or (lambda _: None)
    described = robot if isinstance(robot, Mechanism) else load(robot)
    frequency("cutoff", cutoff)
    if not described.loops:
        raise InputError(f"{described.name}: it has no loops: use rd.identify", name=described.name)
    fitting = at_least_one(recordings)
    validating = as_list(validate) if validate is not None else []
    problem = ClosedUnknowns(described)
    share = 0.0 if validating else HELD_OUT
    raws: list[tuple[Even, float]] = []
    notes: list[str] = []
    for sources, held_out in ((fitting, share), (validating, 1.0)):
        for source in sources:
            recording = adapted(source, topic, rename, effort_scale, position_offset)
            say(f"preparing {recording.source}")
            raw = problem.even(recording)
            notes += problem.check(raw)
            raws.append((raw, held_out))
    if cutoff is None:
        say("choosing the filter")
    with one_blas_thread():
        choices = [None] * len(raws) if cutoff is not None else _choices(problem, raws)
        every = [
            raw.filtered(cutoff if choice is None else choice.cutoff)
            for (raw, _), choice in zip(raws, choices, strict=True)
        ]
        parts = [each.split(share) for each, (_, share) in zip(every, raws, strict=True)]
        say("fitting")
        seen = problem.states([seen for seen, _ in parts])
        judges = [problem.states([unseen]) for _, unseen in parts if unseen.stretches]
        found = _identified(problem, seen, judges, effort_scale or {})
    notes += [f"{each.source}: {note}" for each in every for note in each.notes]
    chosen = zip(every, choices, strict=True)
    return replace(
        found,
        cutoffs={each.source: each.cutoff for each in every},
        choices={each.source: choice for each, choice in chosen if choice is not None},
        notes=tuple(dict.fromkeys(notes)),
        source=None if isinstance(robot, Mechanism) else os.fspath(robot),
    )


def _identified(
    problem: ClosedUnknowns, seen: _States, judges: Sequence[_States], given: Mapping[str, float]
) -> ClosedIdentification:
    """The identification from prepared motion.

    Args:
        problem: the parameters to identify.
        seen: the motion that is fitted.
        judges: the held-out motion.
        given: by motor, the factors that were already applied to the efforts.

    Raises:
        RecordingError: the efforts are not those of this robot.
    """
    described, before = problem.described, problem.before
    rows = problem.rows(seen)
    doubtful, _ = doubted(problem.evidence(rows), given)
    factors = {each.joint: each.scale for each in doubtful if each.sure}
    if len(factors) == len(problem.motors):
        raise RecordingError(nothing_left(doubtful, given), name="recording")
    used = np.array([name not in factors for name in problem.motors])
    x, H, sigma = problem.fitted(rows, used)
    scale = np.array([factors.get(name, 1.0) for name in problem.motors])
    known = np.isfinite(scale)
    seen, *judges = (
        replace(each, tau=each.tau * np.where(known, scale, 1.0), usable=each.usable & known)
        for each in (seen, *judges)
    )
    kept: Kept = "nothing"
    found, parameters = problem.mechanism(x), x
    model = InverseDynamics(found, batches=True)
    first, shown = _judged(before, model, judges)
    doubtful = remaining(doubtful, first)
    refuse_nonsense(first, [each.words(given.get(each.joint, 1.0)) for each in doubtful])
    errors = first
    C, root = _covariance(H)
    if loses(first):
        found, kept, parameters, root = described, "everything", problem.values, 0 * root
        model = before
        errors, shown = _judged(before, model, judges)
    return ClosedIdentification(
        mechanism=found,
        described=described,
        parameters=dict(zip(problem.names, parameters.tolist(), strict=True)),
        described_parameters=dict(zip(problem.names, problem.values.tolist(), strict=True)),
        covariance=C,
        errors=errors,
        fitted=_judged(before, model, [seen])[0],
        cutoffs={},
        choices={},
        locked={},
        notes=(),
        warnings=(*_warnings(kept, first, errors, doubtful, given),),
        source=None,
        kept=kept,
        doubts=doubtful,
        shown=shown,
        band=_band(ClosedBand(problem, root, residual=sigma), model, judges),
    )


def _covariance(H: Floats) -> tuple[Floats, Floats]:
    """(C = H⁻¹ (p, p), its root (p, c)); parameters of which nothing is known, such as the friction
    of a motor whose efforts are not fitted, have an infinite variance and no part in the root."""
    known = np.flatnonzero(np.diag(H) > 0)
    C = np.diag(np.where(np.diag(H) > 0, 0.0, np.inf))
    C[np.ix_(known, known)] = inverted(H[np.ix_(known, known)])
    root = np.zeros((len(H), len(known)))
    root[known] = root_of(C[np.ix_(known, known)])
    return C, root


def _warnings(
    kept: Kept,
    first: Errors,
    errors: Errors,
    doubtful: Sequence[Doubt],
    given: Mapping[str, float],
) -> Iterator[str]:
    """The warnings about the efforts and about the errors on held-out motion.

    Args:
        kept: what is kept as described.
        first: the fit's errors.
        errors: the errors of what is kept.
        doubtful: the motors whose efforts need a factor.
        given: the factors that were already applied.
    """
    explained = [each.joint for each in doubtful]
    yield from (each.words(given.get(each.joint, 1.0)) for each in doubtful)
    yield from stays(kept, first, [each for each in doubtful if each.sure])
    yield from large(errors, explained)
    yield from lost(errors, explained) if kept == "nothing" else ()


def _choices(problem: ClosedUnknowns, raws: Sequence[tuple[Even, float]]) -> list[Choice]:
    """The choice of a filter for each recording.

    It is made from the motion that is fitted; for a recording of another sampling rate, which only
    validates, from its own.

    Args:
        problem: the parameters to identify.
        raws: recordings, each with the fraction that is held out.
    """
    seen = [(str(k), raw.first(1.0 - share)) for k, (raw, share) in enumerate(raws) if share < 1.0]
    others = [(str(k), raw) for k, (raw, share) in enumerate(raws) if share == 1.0]
    filters = [SharedFilter.of(problem, group) for group in groups(seen)]

    def nearest(rate: float) -> SharedFilter:
        return min(filters, key=lambda each: abs(math.log(each.rate / rate)))

    for name, raw in others:
        if not alike(nearest(raw.rate).rate, raw.rate):
            filters.append(SharedFilter.of(problem, [(name, raw)]))
    return [nearest(raw.rate).choice for raw, _ in raws]


def _band(before: ClosedBand, model: InverseDynamics, judges: Sequence[_States]) -> ClosedBand:
    """The band with s calibrated on held-out efforts.

    Args:
        before: a band with the fit's noise as s.
        model: the identified model.
        judges: the held-out motion.
    """
    lacking: Sum[Needed] = Sum()
    for each in judges:
        residual = each.tau - model(each.q, each.qd, each.qdd)
        variance = before.variance(each.q, each.qd, each.qdd)
        usable = each.usable & np.isfinite(residual) & np.isfinite(variance)
        good = np.isfinite(residual).all(axis=1) & np.isfinite(variance).all(axis=1)
        lacking.add(counted(residual[good], variance[good], before.residual, usable[good]))
    return replace(before, residual=lacking.value().residual(before.residual))


def _judged(
    before: InverseDynamics, after: InverseDynamics, judges: Sequence[_States]
) -> tuple[Errors, tuple[Shown, ...]]:
    """(errors by motor, the samples used), both of the states in which the loops can be closed."""
    shown, believed = [], []
    for each in judges:
        torques = [model(each.q, each.qd, each.qdd) for model in (before, after)]
        good = np.isfinite(torques).all(axis=(0, 2)) & np.isfinite(each.tau).all(axis=1)
        taken = (each.time, each.q, each.qd, each.qdd, each.tau, *torques)
        shown.append(Shown(*(values[good] for values in taken)))
        believed.append(each.usable[good])
    tau, described, identified, qd = (
        np.concatenate([getattr(each, name) for each in shown])
        for name in ("measured", "described", "identified", "qd")
    )
    missed = tau - identified
    values = (tau, tau - described, missed, missed, qd)
    duration = sum(each.duration for each in judges)
    total = SquaredErrors.of(values, np.concatenate(believed), duration)
    errors = total.errors(before.mechanism, before.joint_names)
    return errors, tuple(shown)


def _whole(mechanism: Mechanism, motors: Sequence[str]) -> Mechanism:
    """The mechanism with all friction and rotors that are identified, so that each has a column.

    The friction of a rotor that is coupled to one joint is that of the joint. The stiffness of
    springs remains as described; their offsets are identified.
    """
    links = []
    mechanism = friction_at_joints(mechanism)
    for link in mechanism.links:
        joint = link.joint
        if joint.moves and joint.coupling is None:
            stiffness = joint.friction.stiffness
            offset = 1.0 if joint.name in motors or stiffness else 0.0
            joint = replace(joint, friction=Friction(1.0, 1.0, offset, stiffness=stiffness))
        links.append(replace(link, joint=joint))
    # the friction of a motor that is coupled to several joints has its own columns
    with_friction = tuple(
        replace(rotor, friction=Friction(1.0, 1.0)) if len(rotor.ratios) > 1 else rotor
        for rotor in mechanism.rotors
    )
    whole = with_rotors(replace(mechanism, links=tuple(links), rotors=with_friction))
    known = {rotor.name for rotor in mechanism.rotors}
    rotors = [
        rotor
        for rotor in whole.rotors
        if rotor.name in known or (len(rotor.ratios) == 1 and rotor.ratios[0][0] in motors)
    ]
    return replace(whole, rotors=tuple(rotors))


class ClosedUnknowns:
    """The regressor's columns to identify: ten for each body, then friction and rotors.

    Joints that spin freely are locked in `whole`, not in the robot as described.
    """

    def __init__(self, described: Mechanism):
        self.described = described
        self.before = before = InverseDynamics(described, batches=True)
        """As described"""
        if before.joint_names != before.actuated_names:
            raise InputError(
                f"{described.name}: needs as many motors as degrees of freedom: motors "
                f"{listed(before.actuated_names)}, independent joints {listed(before.joint_names)}",
                name=described.name,
            )
        self.whole = whole = _whole(before.mechanism, before.actuated_names)
        self.dynamics = InverseDynamics(whole, batches=True)
        self.motors = before.actuated_names
        columns = list(self.dynamics.parameter_names)
        place = {name: k for k, name in enumerate(columns)}
        self.bodies = body_names(whole)
        names = [f"{body}.{each}" for body in self.bodies for each in BODY]
        values = standard_parameters(whole, "full", True)
        owned = [owner + term for owner in frictions(whole) for term in PLAIN]
        friction = [name for name in owned if name in place]
        taken = {*names, *friction}
        rotors = [name for name in columns if name.endswith(".inertia") and name not in taken]
        self.scalars = [*friction, *rotors]
        self.names = [*names, *self.scalars]
        known = dict(zip(before.parameter_names, before.parameters.tolist(), strict=True))
        self.values = np.array([known.get(name, 0.0) for name in self.names])
        """The described values; 0 for friction and rotors that are not described"""
        self._columns = [place[name] for name in self.names]
        self._rest = np.setdiff1d(np.arange(len(columns)), self._columns)
        self._known = np.array([values[columns[k]] for k in self._rest])
        at = {name: values[name] for name in names}
        described_bodies = [
            np.array([at[f"{body}.{each}"] for each in BODY]) for body in self.bodies
        ]
        mass = max(sum(float(phi[0]) for phi in described_bodies), 0.0)
        size = body_size(whole)
        least = 0.01 * mass if mass > 0 else 1.0
        self.prior = Prior(tuple(reference(phi, least, size) for phi in described_bodies))
        self._on_axes = _on_axes(whole, self.bodies, self.prior.bodies, size)

    def check_names(self, recording: Recording) -> None:
        """Check that a recording has all motors.

        Raises:
            RecordingError: it lacks one.
        """
        if lacking := [name for name in self.motors if name not in recording.names]:
            raise RecordingError(
                f"{recording.source}: missing motors: {listed(lacking)}", name=recording.source
            )

    def even(self, recording: Recording) -> Even:
        """A recording on even grids.

        Raises:
            RecordingError: it lacks a motor, or cannot be used.
        """
        self.check_names(recording)
        sliding = [name for name in self.motors if self.described.joint(name).slides]
        return even(recording, self.motors, sliding)

    def check(self, raw: Even) -> Iterator[str]:
        """Check that a recording is one of this robot; a note if some of it is not.

        Raises:
            RecordingError: a motor has no efforts, or the loops cannot be closed.
        """
        if lacking := [name for name in raw.joints if name not in raw.measured]:
            raise RecordingError(f"{raw.source}: no efforts of {listed(lacking)}", name=raw.source)
        q = np.concatenate([each.position for _, each in raw.pieces])
        q = q[:: max(1, len(q) // CHECKED)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClosureWarning)
            Y = self.dynamics.regressor(q, np.zeros_like(q), np.zeros_like(q))
        closed = np.isfinite(Y).all(axis=(1, 2)).mean()
        words = (
            f"{raw.source}: {100 * (1 - closed):.3g} % of the recorded positions do not close the "
            "loops"
        )
        if closed < CLOSED:
            raise RecordingError(f"{words}: {WHY_OPEN}", name=raw.source)
        if closed < 1:
            yield f"{words} and were left out: {WHY_OPEN}"

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints whose states determine the motion: the motors."""
        return self.motors

    # the design matrix as `Columns`: in each row all parameters, also those of friction

    @property
    def size(self) -> int:
        """p, the number of parameters."""
        return len(self.names)

    @property
    def places(self) -> NDArray[np.intp]:
        """(n, p): all parameters in each row."""
        return np.tile(np.arange(self.size), (len(self.motors), 1))

    @property
    def felt(self) -> list[NDArray[np.intp]]:
        """By row, all of `places`."""
        return [*self.places]

    @property
    def independent(self) -> list[tuple[NDArray[np.intp], Floats]]:
        """By row, all columns, and the unit matrix."""
        return [(places, np.eye(self.size)) for places in self.places]

    width = 0
    springs: list[int] = []  # noqa: RUF012

    def friction(self, samples: Samples) -> list[Floats]:
        """By row, no columns (k, 0): friction has its columns in `rigid`."""
        return [np.empty((len(samples), 0))] * len(self.motors)

    def rigid(self, samples: Samples) -> tuple[Floats, Floats]:
        """(columns (k, n, p), known torques (k, n)); where the loops cannot be closed, the torques
        are those measured."""
        Y = self.dynamics.regressor(samples.q, samples.qd, samples.qdd)
        closed = np.asarray(np.isfinite(Y).all(axis=(1, 2)))[:, None, None]
        Y = np.where(closed, Y, 0.0)
        known = Y[:, :, self._rest] @ self._known
        return Y[:, :, self._columns], np.where(closed[:, 0], known, samples.tau)

    def states(self, parts: Sequence[Prepared]) -> _States:
        """The samples of several recordings, decimated to about `ENOUGH` or fewer.

        Raises:
            RecordingError: there are none.
        """
        total = sum(len(each) for part in parts for each in part.stretches)
        some = thinned(total, ENOUGH)
        taken = [each.rows(some) for part in parts for each in part.stretches]
        if not taken:
            raise RecordingError("no motion is left for validation", name="recording")
        return _States(
            sum(part.duration for part in parts),
            *(
                np.concatenate([getattr(each, field) for each in taken])
                for field in ("time", "q", "qd", "qdd", "unfiltered", "usable")
            ),
        )

    def rows(self, states: _States) -> _Rows:
        """The equations of the states in which the loops can be closed.

        Raises:
            RecordingError: there are too few such states.
        """
        Y = self.dynamics.regressor(states.q, states.qd, states.qdd)
        closed = np.asarray(np.isfinite(Y).all(axis=(1, 2)))
        usable = states.usable & closed.reshape(-1, 1)
        for motor, count in zip(self.motors, usable.sum(axis=0).tolist(), strict=True):
            if count < (least := 10 * len(self.motors)):
                raise RecordingError(
                    f"{motor}: only {count} usable samples (moving, loops closed, effort not "
                    f"saturated), expected at least {least}; record for longer",
                    name="recording",
                )
        good = usable.any(axis=1)
        known = Y[good][:, :, self._rest] @ self._known
        A, tau = Y[good][:, :, self._columns], np.where(usable, states.tau, 0.0)[good]
        return _Rows(A, tau, known, states.qd[good], usable[good])

    def columns(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """(k, n, p): the regressor's columns of the parameters, by motor."""
        return np.asarray(self.dynamics.regressor(q, qd, qdd)[:, :, self._columns])

    def evidence(self, rows: _Rows) -> Evidence:
        """Sums by part of the time and motor, to test the efforts' signs and units.

        The noise of a motor's efforts is that of a fit to them alone, which has the same error with
        any factor. The springs' torques have a column, with a factor known to be 1, since a factor
        on the efforts does not apply to them.
        """
        A, b = np.concatenate([rows.A, rows.known[..., None]], axis=2), rows.tau
        weights = np.empty_like(b)
        for j, usable in enumerate(rows.usable.T):
            own, row = A[usable, j], b[usable, j]
            alone = row - own @ np.linalg.lstsq(own, row, rcond=None)[0]
            least = FINEST * float(np.linalg.norm(row))
            noise = max(float(np.linalg.norm(alone)), least, 1e-300) / math.sqrt(len(row))
            weights[:, j] = usable / (noise**2 * max(1.0, correlation_length(alone)))
        b_size, p = 10 * len(self.bodies), A.shape[2]
        still = {
            name: stands_still(self.described, name, float((rate**2).sum()), len(rate))
            for name, rate in zip(self.motors, rows.qd.T, strict=True)
        }
        gears = {
            rotor.ratios[0][0]: float(rotor.ratios[0][1])
            for rotor in self.described.rotors
            if len(rotor.ratios) == 1
        }
        return Evidence(
            self.motors, *self._sums(A, b, weights), self.prior.bodies, np.eye(p)[-1],
            np.full(p - b_size, np.inf), [self._own(name) for name in self.motors], still, gears, 1,
        )  # fmt: skip

    def _own(self, motor: str) -> NDArray[np.intp]:
        """The parameters of a motor's friction, in the order of `PLAIN`, and of its rotor."""
        rotors = [
            f"{name}.inertia"
            for name, rotor in rotor_names(self.whole).items()
            if [joint for joint, _ in rotor.ratios] == [motor]
        ]
        own = [*(f"{motor}.{term}" for term in PLAIN), *rotors]
        return np.array([self.names.index(name) for name in own if name in self.names], dtype=int)

    def fitted(self, rows: _Rows, used: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """The robust fit: (x (p,), its Hessian (p, p), the noise's standard deviation (n,)), the
        last of which is NaN where the efforts are not used.

        Args:
            rows: the equations.
            used: (n,), whether each motor's efforts are used.
        """
        A, b = rows.A, np.where(rows.usable, rows.tau - rows.known, 0.0)
        b_size = 10 * len(self.bodies)
        active = np.ones(len(self.names), dtype=bool)
        level = np.sqrt((b**2).sum(axis=0) / rows.usable.sum(axis=0))
        sigma = 0.1 * np.maximum(level, 1e-9 * max(float(level.max()), 1e-300))
        weights = 1.0 * rows.usable * used
        x = np.zeros(len(self.names))
        H = np.eye(len(x))
        for _ in range(PASSES):
            sums = self._sums(A, b, weights / sigma**2)
            gram, moment, square = (each.sum(axis=1) for each in sums)
            while True:
                keep = np.flatnonzero(active)
                G, g = gram[:, keep][:, :, keep], moment[:, keep]
                tight = RIDGE * np.maximum(np.diag(G.sum(axis=0))[b_size:], 1e-300)
                prior = Prior(self.prior.bodies, tight)
                gamma, _ = chosen_weight(G, g, square, prior)
                part, curvature = minimise(G.sum(axis=0), g.sum(axis=0), prior, gamma)
                x[:] = 0.0
                x[keep] = part
                # not physical: negative friction or rotor inertia
                wrong = [
                    k for k in keep
                    if k >= b_size and x[k] < 0 and not self.names[k].endswith(".offset")
                ]  # fmt: skip
                if not wrong:
                    break
                active[wrong] = False
            # parameters that were fixed at 0 are as uncertain as if they had been fitted
            H = gram.sum(axis=0)
            H[:b_size, :b_size] = curvature[:b_size, :b_size]
            residual = np.where(rows.usable, b - A @ x, 0.0)
            spread = np.array(
                [
                    SIGMA_OF_MAD * float(np.median(np.abs(each[usable])))
                    for each, usable in zip(residual.T, rows.usable.T, strict=True)
                ]
            )
            sigma = np.maximum(spread, 1e-7 * np.maximum(level, 1e-300))
            correlated = [max(1.0, correlation_length(each)) for each in residual.T]
            weights = biweight(residual, sigma) * rows.usable * used / correlated
        own = np.arange(b_size, len(x))
        H[own, own] *= 1 + RIDGE
        return x, H, np.where(used, sigma, np.nan)

    def _sums(self, A: Floats, b: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """(Aᵀ W A (f, n, p, p), Aᵀ W b (f, n, p), bᵀ W b (f, n)) by fold and motor."""
        n, p = A.shape[1:]
        gram, moment = np.zeros((FOLDS, n, p, p)), np.zeros((FOLDS, n, p))
        b_size = len(self._on_axes)
        square = np.zeros((FOLDS, n))
        for f, rows in enumerate(np.array_split(np.arange(len(b)), FOLDS)):
            for j in range(n):
                root = np.sqrt(weights[rows, j])
                M, r = A[rows, j] * root[:, None], b[rows, j] * root
                gram[f, j], moment[f, j], square[f, j] = M.T @ M, M.T @ r, r @ r
            gram[f, :, :b_size, :b_size] += self._on_axes / n
        return gram, moment, square

    def mechanism(self, x: Floats) -> Mechanism:
        """The robot with these parameters (p,)."""
        found = with_parameters(self.whole, dict(zip(self.names, x.tolist(), strict=True)))
        inertials: dict[str, Inertial] = {}
        for k, name in enumerate(self.bodies):
            inertials |= parted(self.whole, name, x[10 * k : 10 * k + 10])
        frictions = {link.joint.name: link.joint.friction for link in found.moving}
        described = with_parts(self.described, inertials, frictions)
        return replace(described, rotors=found.rotors, armatures=found.armatures)


def _on_axes(
    mechanism: Mechanism, bodies: Sequence[str], references: Sequence[Floats], size: float
) -> Floats:
    """(10 b, 10 b): a normal matrix of the bodies that keeps the centres of mass of links that spin
    freely on their axes, as gravity would turn them otherwise.

    Args:
        mechanism: with `spins`.
        bodies: the names of the b bodies.
        references: P₀ (4, 4) of each.
        size: m, typical of the robot.
    """
    G = np.zeros((10 * len(bodies),) * 2)
    for k, (name, P) in enumerate(zip(bodies, references, strict=True)):
        poses = {name: Pose()} | {link.name: pose for link, pose in fixed_to(mechanism, name)}
        for spinning in poses.keys() & mechanism.spins.keys():
            point, direction = (np.asarray(x, dtype=float) for x in mechanism.spins[spinning])
            pose = poses[spinning]
            point, direction = pose.apply(point), pose.rotation @ direction
            # e (h - m p) = 0 for both directions e normal to the axis
            across = np.linalg.svd(direction[None])[2][1:]
            rows = np.hstack([-(across @ point)[:, None], across, np.zeros((2, 6))])
            own = slice(10 * k, 10 * k + 10)
            G[own, own] += rows.T @ rows / (OFF_AXIS * P[3, 3] * size) ** 2
    return G
