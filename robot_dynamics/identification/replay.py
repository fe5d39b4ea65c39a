# SPDX-License-Identifier: Apache-2.0
"""Compares models' torques with measured ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics
from ..errors import InputError
from ..formulations.terms import OF_LINKS
from ..mechanism import Mechanism
from .cutoff import choose
from .motors import agreed_at_joints
from .preparation import Samples, checked_cutoff, even
from .quality import far_off, many_turns, unexplained
from .read import Source, adapted
from .recording import Floats
from .unknowns import Unknowns, match


@dataclass(frozen=True, eq=False)
class Replay:
    """One recording, and the torques of several models on its motion."""

    source: str
    joints: tuple[str, ...]
    labels: tuple[str, ...]
    """The models' names"""
    stretches: tuple[Samples, ...]
    torques: tuple[tuple[Floats, ...], ...]
    """By model and stretch: (k, n), N·m or N"""
    terms: tuple[dict[str, Floats], ...]
    """Of the last model, by stretch and term: (k, n), N·m or N; the terms add up to its torques"""
    duration: float
    notes: tuple[str, ...]

    @property
    def relative(self) -> Floats:
        """(models, n): the RMS error over the RMS torque; NaN where none was measured."""
        out = np.full((len(self.labels), len(self.joints)), np.nan)
        usable = np.concatenate([each.usable for each in self.stretches])
        tau = np.concatenate([each.tau for each in self.stretches])
        for k, parts in enumerate(self.torques):
            miss = np.where(usable, tau - np.concatenate(parts), 0.0)
            power = (np.where(usable, tau, 0.0) ** 2).sum(axis=0)
            known = power > 0
            out[k, known] = np.sqrt((miss**2).sum(axis=0)[known] / power[known])
        return out


def terms_of(mechanism: Mechanism, samples: Samples) -> dict[str, Floats]:
    """The torques (k, n) of each term; they add up to the model's torques.

    Args:
        mechanism: the model.
        samples: the motion, with the mechanism's joints in their order.
    """
    q, qd, qdd = samples.q, samples.qd, samples.qdd
    still = np.zeros_like(q)
    bare = InverseDynamics(mechanism, terms=OF_LINKS)
    found = {"gravity": bare(q, still, still)}
    found["inertia"] = bare(q, still, qdd) - found["gravity"]
    found["coriolis"] = bare(q, qd, still) - found["gravity"]
    found["friction"] = InverseDynamics(mechanism, terms={"friction"})(q, qd, qdd)
    # rotors contribute to each of the rigid-body terms; their share is the remainder
    found["rotors"] = InverseDynamics(mechanism)(q, qd, qdd) - sum(found.values())
    return found


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
        robots: mechanisms, or what `rd.load` takes, with the same joints among those recorded.
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
    notes: list[str] = []
    mechanisms: list[Mechanism] = []
    labels: list[str] = []
    for robot in robots:
        mechanism = robot if isinstance(robot, Mechanism) else load(robot)
        label = mechanism.name if isinstance(robot, Mechanism) else Path(str(robot)).stem[:40]
        mechanism, missing = match(mechanism, recording.names)
        if missing:
            notes.append(f"{label}: not recorded, and locked: {', '.join(missing)}")
        mechanisms.append(mechanism)
        labels.append(label if label not in labels else f"{label} ({len(labels) + 1})")
    joints = mechanisms[0].joint_names
    for label, mechanism in zip(labels, mechanisms, strict=True):
        if set(mechanism.joint_names) != set(joints):
            raise InputError(
                f"{label}: joints {', '.join(mechanism.joint_names)}, expected those of "
                f"{labels[0]}: {', '.join(joints)}",
                name=label,
            )
    if motor_efforts:
        recording = agreed_at_joints(recording, mechanisms)
    sliding = [name for name in joints if mechanisms[-1].joint(name).slides]
    raw = even(recording, joints, sliding)
    if cutoff is None:
        say("choosing the filter")
        cutoff = choose(Unknowns.of(mechanisms[0]), raw).cutoff
    else:
        checked_cutoff(cutoff)
    prepared = raw.filtered(cutoff, rests=True)
    notes += prepared.notes
    positions = np.concatenate([each.position for _, each in raw.pieces])
    lowest, highest = positions.min(axis=0), positions.max(axis=0)
    notes += far_off(mechanisms[0], lowest, highest)
    torques = []
    for label, mechanism in zip(labels, mechanisms, strict=True):
        say(f"computing {label}")
        dynamics = InverseDynamics(mechanism)
        order = [joints.index(name) for name in mechanism.joint_names]
        back = np.argsort(order)
        torques.append(
            tuple(
                dynamics(each.q[:, order], each.qd[:, order], each.qdd[:, order])[:, back]
                for each in prepared.stretches
            )
        )
    last = mechanisms[-1]
    order = [joints.index(name) for name in last.joint_names]
    back = np.argsort(order)
    terms = []
    for each in prepared.stretches:
        found = terms_of(last, each.columns(order))
        terms.append({name: values[:, back] for name, values in found.items()})
    result = Replay(
        prepared.source, joints, tuple(labels), prepared.stretches, tuple(torques), tuple(terms),
        prepared.duration, tuple(notes),
    )  # fmt: skip
    missed = result.relative[-1]
    notes += many_turns(last, lowest[order], highest[order], missed[order])
    notes += unexplained(joints, missed)
    return replace(result, notes=tuple(dict.fromkeys(notes)))
