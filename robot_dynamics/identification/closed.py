# SPDX-License-Identifier: Apache-2.0
"""Closed chains from recordings: legs and platform, rotors, and the friction of passive joints too.

What was recorded are the motors' positions and efforts; the loops say where everything else is.
The torques of the motors are linear in the standard parameters of the cut-open tree,

    τ = Tᵀ Y_tree π

so that the fit is that of open chains, over possible bodies; passive joints rub by viscous and
Coulomb friction, whose torques reach the motors through T.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics
from ..errors import InputError, RecordingError, listed
from ..mechanism import Friction, Mechanism
from ..mechanism.dynamic_parameters import standard_parameters, with_parameters
from .bodies import NAMES, reference
from .errors import Errors
from .fit import RIDGE, WEIGHTS
from .identify import Kept, loses, refuse_nonsense, stays
from .normal_equations import _correlation
from .per_recording import HELD_OUT, one_blas_thread
from .preparation import Prepared, prepare
from .read import read
from .recording import Floats, Recording
from .solve import Prior, inverted, minimise
from .unknowns import with_rotors

ENOUGH = 4000
"""Samples of all recordings: more say little new, and every one is closed"""
FOLDS = 6
PASSES = 4
"""Of reweighting"""
BIWEIGHT = 4.685
"""Standard deviations at which a sample counts no more"""

Source = str | os.PathLike[str] | Recording


@dataclass(frozen=True, eq=False)
class ClosedIdentification:
    """A closed chain as identified."""

    mechanism: Mechanism
    described: Mechanism
    parameters: dict[str, float]
    """Those that were looked for, by name, SI units; as described where all is kept"""
    described_parameters: dict[str, float]
    """The same as described; 0 for friction and rotors that it has not"""
    covariance: Floats
    """(p, p) of them, in their order: the data's and the description's together"""
    unseen: Errors
    """By motor, on motion kept from the fit"""
    fitted: Errors
    """The same on the motion it was fitted to"""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    kept: Kept
    """What stays as described, for on motion kept from the fit the description is better"""
    source: str | None
    """The description's file or text; None: a mechanism was given"""
    shown: tuple[Shown, ...]
    """Stretches kept from the fit, to be looked at"""

    @property
    def errors(self) -> dict[str, float]:
        """By motor: RMS torque error on motion kept from the fit, over the RMS torque."""
        return dict(zip(self.unseen.joints, self.unseen.relative.tolist(), strict=True))

    @property
    def errors_described(self) -> dict[str, float]:
        """The same of the description."""
        return dict(zip(self.unseen.joints, self.unseen.relative_described.tolist(), strict=True))

    @property
    def locked(self) -> dict[str, float]:
        """None: every motor was recorded."""
        return {}


@dataclass(frozen=True, eq=False)
class Shown:
    """Some samples in a row; (k, n) each, by motor, N·m or N."""

    time: Floats
    """(k,), s"""
    measured: Floats
    described: Floats
    identified: Floats


@dataclass(frozen=True, eq=False)
class _States:
    """Samples (k, n)."""

    duration: float
    """s, of all that these are some of"""
    time: Floats
    """(k,), s"""
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    """As measured: a filter would round the steps of friction, which the motors' torques have
    wherever a passive joint turns back"""


def identify_closed(
    robot: Mechanism | str | os.PathLike[str],
    recordings: Source | Sequence[Source],
    *,
    validate: Source | Sequence[Source] | None = None,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    effort_scale: Mapping[str, float] | None = None,
    cutoff: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> ClosedIdentification:
    """Identify a robot with loops from recordings of its motors.

    Args:
        robot: a mechanism with loops, or what `rd.load` takes, in the assembly mode of its `home`.
        recordings: of every motor's position and effort.
        validate: recordings kept from the fit; None: the last third of each.
        topic: of type sensor_msgs/JointState; None: `/joint_states`, or the only one there is.
        rename: the recordings' joint names to the description's.
        effort_scale: by motor, factor that turns its efforts into N·m or N.
        cutoff: Hz, of the filter; None: from each recording.
        progress: called with a few words at each step.

    Raises:
        DescriptionError: the description is broken.
        RecordingError: a recording cannot be used: it lacks a motor, its states do not close, or
            its efforts are not those of this robot.
        InputError: no loops, or motors that are not the independent joints.
    """
    say = progress or _silent
    described = robot if isinstance(robot, Mechanism) else load(robot)
    if not described.loops:
        raise InputError(
            f"{described.name}: it has no loops: rd.identify takes it", name=described.name
        )
    before = InverseDynamics(described)
    if set(before.joint_names) != set(before.actuated_names):
        raise InputError(
            f"{described.name}: motors {listed(before.actuated_names)} and independent joints "
            f"{listed(before.joint_names)} are to be the same",
            name=described.name,
        )
    whole = _whole(described, before.actuated_names)
    problem = _Problem(whole, before)
    fitted, judging, notes = [], [], []
    for sources, judge in ((recordings, False), (validate, True)):
        if sources is None:
            continue
        for source in [sources] if isinstance(sources, (str, os.PathLike, Recording)) else sources:
            recording = source if isinstance(source, Recording) else read(source, topic)
            recording = recording.renamed(rename or {}).scaled(effort_scale or {})
            say(f"preparing {recording.source}")
            lacking = [name for name in before.joint_names if name not in recording.names]
            if lacking:
                raise RecordingError(
                    f"{recording.source}: motors {listed(lacking)} are not in it",
                    name=recording.source,
                )
            sliding = [name for name in before.joint_names if described.joint(name).slides]
            prepared = prepare(recording, before.joint_names, cutoff, sliding=sliding)
            notes += [f"{recording.source}: {note}" for note in prepared.notes]
            seen, unseen = prepared.split(HELD_OUT if validate is None else float(judge))
            fitted.append(seen)
            judging.append(unseen)
    with one_blas_thread():
        say("fitting")
        states = problem.states(fitted)
        x, H = problem.fitted(states)
        found = problem.mechanism(x)
        judges = [problem.order(problem.states([each])) for each in judging if each.stretches]
        errors, shown = _judged(before, InverseDynamics(found), judges)
        refuse_nonsense(errors)
        known = dict(zip(before.parameter_names, before.parameters.tolist(), strict=True))
        as_described = {name: known.get(name, 0.0) for name in problem.names}
        parameters = dict(zip(problem.names, x.tolist(), strict=True))
        kept: Kept = "nothing"
        warnings: tuple[str, ...] = ()
        if loses(errors):
            kept, found, parameters = "everything", described, as_described
            warnings = tuple(stays(kept, errors))
            errors, shown = _judged(before, before, judges)
        on_fitted, _ = _judged(before, InverseDynamics(found), [problem.order(states)])
    return ClosedIdentification(
        found, described, parameters, as_described, inverted(H), errors, on_fitted,
        tuple(dict.fromkeys(notes)), warnings, kept,
        None if isinstance(robot, Mechanism) else os.fspath(robot), shown,
    )  # fmt: skip


def _silent(_: str) -> None:
    """Reports no progress."""


def _judged(
    before: InverseDynamics, after: InverseDynamics, judges: Sequence[_States]
) -> tuple[Errors, tuple[Shown, ...]]:
    """(errors by motor, all samples) of states that close."""
    shown = []
    for each in judges:
        torques = [model(each.q, each.qd, each.qdd) for model in (before, after)]
        good = np.isfinite(torques).all(axis=(0, 2)) & np.isfinite(each.tau).all(axis=1)
        shown.append(Shown(each.time[good], each.tau[good], *(tau[good] for tau in torques)))
    whole = [
        np.concatenate([getattr(each, name) for each in shown])
        for name in ("measured", "described", "identified")
    ]
    misses = (whole[0], whole[0] - whole[1], whole[0] - whole[2], whole[0] - whole[2])
    rms = [np.sqrt((miss**2).mean(axis=0)) for miss in misses]
    duration = sum(each.duration for each in judges)
    return Errors(before.actuated_names, duration, *rms), tuple(shown)


def _whole(mechanism: Mechanism, motors: Sequence[str]) -> Mechanism:
    """With every friction and rotor that is looked for, so that each has its column."""
    links = []
    for link in mechanism.links:
        joint = link.joint
        if joint.moves and joint.coupling is None:
            offset = 1.0 if joint.name in motors else 0.0
            joint = replace(joint, friction=Friction(1.0, 1.0, offset))
        links.append(replace(link, joint=joint))
    whole = with_rotors(replace(mechanism, links=tuple(links)))
    known = {rotor.name for rotor in mechanism.rotors}
    rotors = [
        rotor
        for rotor in whole.rotors
        if rotor.name in known or (len(rotor.ratios) == 1 and rotor.ratios[0][0] in motors)
    ]
    return replace(whole, rotors=tuple(rotors))


class _Problem:
    """The columns that are looked for: bodies first, ten each, then friction and rotors."""

    def __init__(self, whole: Mechanism, described: InverseDynamics):
        self.whole, self.dynamics = whole, InverseDynamics(whole)
        self.motors = described.actuated_names
        columns = list(self.dynamics.parameter_names)
        place = {name: k for k, name in enumerate(columns)}
        self.bodies = tuple(link.name for link in whole.moving if f"{link.name}.mass" in place)
        names = [f"{body}.{each}" for body in self.bodies for each in NAMES]
        values = standard_parameters(whole, "full", True)
        self.joints = [link.joint.name for link in whole.moving]
        frictions = [
            name
            for joint in self.joints
            for name in (f"{joint}.viscous", f"{joint}.coulomb", f"{joint}.offset")
            if name in place
        ]
        taken = {*names, *frictions}
        rotors = [name for name in columns if name.endswith(".inertia") and name not in taken]
        self.scalars = [*frictions, *rotors]
        self.names = [*names, *self.scalars]
        self._columns = [place[name] for name in self.names]
        self._rest = np.setdiff1d(np.arange(len(columns)), self._columns)
        self._known = np.array([values[columns[k]] for k in self._rest])
        at = {name: values[name] for name in names}
        described_bodies = [
            np.array([at[f"{body}.{each}"] for each in NAMES]) for body in self.bodies
        ]
        mass = max(sum(float(phi[0]) for phi in described_bodies), 0.0)
        arms = [float(np.linalg.norm(link.joint.origin.translation)) for link in whole.links]
        size = 0.25 * float(np.median([arm for arm in arms if arm > 0] or [0.4]))
        self.references = tuple(
            reference(phi, 0.01 * mass if mass > 0 else 1.0, size) for phi in described_bodies
        )

    def states(self, parts: Sequence[Prepared]) -> _States:
        """The samples of several, thinned to what is enough."""
        total = sum(len(each) for part in parts for each in part.stretches)
        step = max(1, -(-total // ENOUGH))
        taken = [each.rows(slice(None, None, step)) for part in parts for each in part.stretches]
        if not taken:
            raise RecordingError("no motion is left to judge by", name="recording")
        return _States(
            sum(part.duration for part in parts),
            *(
                np.concatenate([getattr(each, field) for each in taken])
                for field in ("time", "q", "qd", "qdd", "unfiltered")
            ),
        )

    def order(self, states: _States) -> _States:
        """With the torques in the order of the motors."""
        place = [list(self.dynamics.joint_names).index(name) for name in self.motors]
        return replace(states, tau=states.tau[:, place])

    def rows(self, states: _States) -> tuple[Floats, Floats]:
        """(A (k, n, p), b (k, n)) of the states that close."""
        states = self.order(states)
        Y = self.dynamics.regressor(states.q, states.qd, states.qdd)
        good = np.isfinite(Y).all(axis=(1, 2)) & np.isfinite(states.tau).all(axis=1)
        if good.sum() < len(self.motors) * 10:
            raise RecordingError(
                "the recorded positions do not close the loops: check the encoders' zeros and the "
                "assembly mode of `home`",
                name="recording",
            )
        A = Y[good][:, :, self._columns]
        return A, states.tau[good] - Y[good][:, :, self._rest] @ self._known

    def fitted(self, states: _States) -> tuple[Floats, Floats]:
        """(x (p,), curvature (p, p))"""
        A, b = self.rows(states)
        b_size = 10 * len(self.bodies)
        active = np.ones(len(self.names), dtype=bool)
        level = np.sqrt((b**2).mean(axis=0))
        sigma = 0.1 * np.maximum(level, 1e-9 * max(float(level.max()), 1e-300))
        weights = np.ones_like(b)
        x = np.zeros(len(self.names))
        H = np.eye(len(x))
        for _ in range(PASSES):
            gram, moment, square = self._sums(A, b, weights / sigma**2)
            while True:
                keep = np.flatnonzero(active)
                G, g = gram[:, keep][:, :, keep], moment[:, keep]
                tight = RIDGE * np.maximum(np.diag(G.sum(axis=0))[b_size:], 1e-300)
                prior = Prior(self.references, np.zeros(len(keep) - b_size), tight)
                gamma = _weight(G, g, square, prior)
                part, curvature = minimise(G.sum(axis=0), g.sum(axis=0), prior, gamma)
                x[:] = 0.0
                x[keep] = part
                # what no joint does: to be driven by its friction, or to have less than no rotor
                wrong = [
                    k for k in keep
                    if k >= b_size and x[k] < 0 and not self.names[k].endswith(".offset")
                ]  # fmt: skip
                if not wrong:
                    break
                active[wrong] = False
            # what was held at nothing is as uncertain as if it had not been
            H = gram.sum(axis=0)
            H[:b_size, :b_size] = curvature[:b_size, :b_size]
            residual = b - A @ x
            spread = 1.4826 * np.median(np.abs(residual), axis=0)
            sigma = np.maximum(spread, 1e-7 * np.maximum(level, 1e-300))
            u = residual / (BIWEIGHT * sigma)
            correlated = [max(1.0, _correlation(each)) for each in residual.T]
            weights = np.where(np.abs(u) < 1, (1 - u**2) ** 2, 0.0) / correlated
        own = np.arange(b_size, len(x))
        H[own, own] *= 1 + RIDGE
        return x, H

    def _sums(self, A: Floats, b: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
        p = A.shape[-1]
        gram, moment = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p))
        square = np.zeros(FOLDS)
        for f, rows in enumerate(np.array_split(np.arange(len(b)), FOLDS)):
            root = np.sqrt(weights[rows])
            M = (A[rows] * root[..., None]).reshape(-1, p)
            r = (b[rows] * root).ravel()
            gram[f], moment[f], square[f] = M.T @ M, M.T @ r, r @ r
        return gram, moment, square

    def mechanism(self, x: Floats) -> Mechanism:
        """The robot with these parameters."""
        return with_parameters(self.whole, dict(zip(self.names, x.tolist(), strict=True)))


def _weight(gram: Floats, moment: Floats, square: Floats, prior: Prior) -> float:
    """The weight of the description with the least cross-validation error."""
    errors = np.zeros(len(WEIGHTS))
    for f in range(FOLDS):
        G, g = gram.sum(axis=0) - gram[f], moment.sum(axis=0) - moment[f]
        x = None
        for k in reversed(range(len(WEIGHTS))):
            x, _ = minimise(G, g, prior, WEIGHTS[k], x)
            errors[k] += square[f] + x @ (gram[f] @ x - 2 * moment[f])
    return WEIGHTS[int(np.argmin(errors))]
