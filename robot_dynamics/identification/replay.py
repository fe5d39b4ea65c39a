# SPDX-License-Identifier: Apache-2.0
"""Compares models' torques with measured ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics
from ..errors import ClosureWarning, InputError, wrong
from ..formulations.terms import RIGID, TERMS
from ..inputs import frequency
from ..mechanism import Mechanism
from .closed import WHY_OPEN, ClosedUnknowns
from .cutoff import choose
from .delays import even_with_efforts
from .mixed import in_degrees
from .motor_efforts import agreed_at_joints
from .quality import far_off, many_turns, unexplained
from .read import Source, adapted
from .recording import Floats, Recording
from .samples import Samples, joined
from .torque_errors import SplitDynamics, relative
from .unknowns import Columns, Unknowns, match, sliding


@dataclass(frozen=True, eq=False)
class Replay:
    """One recording, and the torques of several models on its motion."""

    source: str
    joints: tuple[str, ...]
    labels: tuple[str, ...]
    """The models' names"""
    stretches: tuple[Samples, ...]
    torques: tuple[tuple[Floats, ...], ...]
    """By model and stretch: (k, n), N·m or N; NaN where the loops cannot be closed"""
    terms: tuple[dict[str, Floats], ...]
    """Of the last model, by stretch and term: (k, n), N·m or N; the terms add up to its torques"""
    duration: float
    cutoff: float | None
    """Hz, at which the motion and the measured torques were filtered; None: they were not"""
    notes: tuple[str, ...]

    @property
    def relative(self) -> Floats:
        """(models, n): the RMS error over the RMS torque; NaN where none was measured."""
        usable = np.concatenate([each.usable for each in self.stretches])
        tau = np.concatenate([each.tau for each in self.stretches])
        models = [np.concatenate(parts) for parts in self.torques]
        return np.array([relative(tau - x, tau, usable & np.isfinite(x)) for x in models])


def terms_of(mechanism: Mechanism, samples: Samples) -> dict[str, Floats]:
    """The torques (k, n) of each term; they add up to the model's torques.

    Args:
        mechanism: the model.
        samples: the motion, with the mechanism's joints in their order.
    """
    motion = samples.q, samples.qd, samples.qdd
    return {
        name: InverseDynamics(mechanism, terms=name, batches=True)(*motion)
        if name in RIGID
        else SplitDynamics(mechanism).friction(*motion)
        for name in TERMS
    }


def replay(
    robots: Sequence[Mechanism | str | os.PathLike[str]],
    source: Source,
    *,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    effort_scale: Mapping[str, float] | None = None,
    position_offset: Mapping[str, float] | None = None,
    cutoff: float | None = None,
    motor_efforts: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Replay:
    """Compute the torques of each model on a recorded motion.

    Args:
        robots: mechanisms, or what `rd.load` takes, with the same joints among those recorded; of
            a robot with loops, the motors, which must have been recorded.
        source: a recording, as `identify` takes it.
        topic: as for `identify`.
        rename: as for `identify`.
        effort_scale: as for `identify`.
        position_offset: as for `identify`.
        cutoff: Hz, the low-pass filter's cut-off; None: the one whose fit predicts torque best.
        motor_efforts: as for `identify`; for models whose motors are coupled to one joint each, the
            couplings of the other models are used.
        progress: called with a short message at each step.

    Raises:
        DescriptionError, RecordingError, InputError: as for `identify`.
        InputError: the models have different joints, or with `motor_efforts` different couplings.
    """
    say = progress or (lambda _: None)
    say("reading")
    recording = adapted(source, topic, rename, effort_scale, position_offset)
    models, notes = _models(robots, recording, motor_efforts)
    first, last = models[0], models[-1]
    joints = first.unknowns.joints
    if motor_efforts:
        recording = agreed_at_joints(recording, [model.mechanism for model in models])
    slides = sliding(last.mechanism, joints)
    raw = even_with_efforts(recording, joints, slides, first.unknowns)
    frequency("cutoff", cutoff)
    torques = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClosureWarning)  # a note says it
        if cutoff is None:
            say("choosing the filter")
            cutoff = choose(first.unknowns, raw).cutoff
        prepared = raw.filtered(cutoff, rests=True)
        notes += prepared.notes
        for model in models:
            say(f"computing {model.label}")
            dynamics = InverseDynamics(model.mechanism, batches=True)
            order = model.order(joints)
            motion = (each.columns(order) for each in prepared.stretches)
            torques.append(tuple(dynamics(x.q, x.qd, x.qdd)[:, np.argsort(order)] for x in motion))
            notes += _not_closed(model.label, np.concatenate(torques[-1]))
    order, terms = last.order(joints), []
    for each, whole in zip(prepared.stretches, torques[-1], strict=True):
        closes = np.asarray(np.isfinite(whole).all(axis=1))
        found = terms_of(last.mechanism, each.columns(order).rows(closes))
        terms.append({name: np.full(whole.shape, np.nan) for name in found})
        for name, values in found.items():
            terms[-1][name][closes] = values[:, np.argsort(order)]
    result = Replay(
        prepared.source, joints, tuple(model.label for model in models), prepared.stretches,
        tuple(torques), tuple(terms), prepared.duration, prepared.cutoff, (),
    )  # fmt: skip
    missed = result.relative[-1]
    if isinstance(last.unknowns, Unknowns):
        positions = np.concatenate([each.position for each in raw.pieces])[:, order]
        span = positions.min(axis=0), positions.max(axis=0)
        notes += far_off(last.mechanism, *span)
        turns = [*many_turns(last.mechanism, *span, missed[order])]
        samples = joined(prepared.stretches).columns(order)
        if turns and in_degrees(last.unknowns, samples):
            notes += turns
    notes += unexplained(joints, missed)
    return replace(result, notes=tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, eq=False)
class _Model:
    label: str
    mechanism: Mechanism
    unknowns: Columns

    def order(self, joints: tuple[str, ...]) -> list[int]:
        """The places among `joints` of the model's joints."""
        return [joints.index(name) for name in self.unknowns.joints]


def _models(
    robots: Sequence[Mechanism | str | os.PathLike[str]], recording: Recording, motor_efforts: bool
) -> tuple[list[_Model], list[str]]:
    """(the models, in which joints that were not recorded are locked; notes).

    Raises:
        InputError, RecordingError: as for `replay`.
    """
    models: list[_Model] = []
    notes: list[str] = []
    for robot in robots:
        mechanism = robot if isinstance(robot, Mechanism) else load(robot)
        label = mechanism.name if isinstance(robot, Mechanism) else Path(str(robot)).stem[:40]
        unknowns: Columns
        if mechanism.loops:
            if motor_efforts:
                expected = f"none: {label} has loops"
                raise wrong(InputError, "motor_efforts", motor_efforts, expected)
            unknowns = closed = ClosedUnknowns(mechanism)
            recording.check_names(closed.joints, "motors")
        else:
            mechanism, missing = match(mechanism, recording.names)
            if missing:
                notes.append(f"{label}: not recorded, and locked: {', '.join(missing)}")
            unknowns = Unknowns.of(mechanism)
        if any(label == model.label for model in models):
            label = f"{label} ({len(models) + 1})"
        models.append(_Model(label, mechanism, unknowns))
    for model in models:
        if set(model.unknowns.joints) != set(models[0].unknowns.joints):
            raise InputError(
                f"{model.label}: joints {', '.join(model.unknowns.joints)}, expected those of "
                f"{models[0].label}: {', '.join(models[0].unknowns.joints)}",
                name=model.label,
            )
    return models, notes


def _not_closed(label: str, torques: Floats) -> Iterator[str]:
    """A note if some torques (k, n) are NaN."""
    share = np.isnan(torques).any(axis=1).mean()
    if share > 0:
        yield (
            f"{label}: {100 * share:.3g} % of the recorded positions do not close the loops: "
            f"{WHY_OPEN}"
        )
