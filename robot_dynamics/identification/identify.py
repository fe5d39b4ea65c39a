"""From recordings to a model: the whole way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics
from ..errors import InputError, RecordingError
from ..mechanism import Mechanism
from .fit import Fit, fit
from .model import mechanism_of
from .normal_equations import NormalEquations, reduce
from .preparation import Prepared, Samples, prepare
from .read import read
from .recording import Floats, Recording
from .solve import Prior
from .unknowns import Unknowns, match

HELD_OUT = 1 / 3
"""Of each recording, the last: what the fit has not seen where no other recording judges it"""
SHOWN = 6000
"""Samples of a recording that are kept to be looked at"""

Source = str | os.PathLike[str] | Recording


@dataclass(frozen=True, eq=False)
class Errors:
    """Torque errors by joint: root mean squares, in N·m or N, over `duration` s."""

    joints: tuple[str, ...]
    duration: float
    torque: Floats
    """(n,): of the measured torque itself"""
    described: Floats
    """(n,): of what the description misses it by"""
    identified: Floats
    """(n,): of what the identified model misses it by"""
    unfiltered: Floats
    """(n,): the same against the torque as measured, unfiltered"""

    @property
    def relative(self) -> Floats:
        """(n,): the identified model's error over the torque; NaN where none was measured"""
        return self.identified / self.torque

    @property
    def relative_described(self) -> Floats:
        """(n,): the description's error over the torque"""
        return self.described / self.torque


@dataclass(frozen=True, eq=False)
class Trace:
    """Samples to be looked at."""

    source: str
    seen: bool
    """Did the fit see them?"""
    samples: Samples


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found."""

    mechanism: Mechanism
    """The robot as identified; joints that were not recorded are locked"""
    described: Mechanism
    """The same as described"""
    fit: Fit
    errors: Errors
    """On motion that the fit has not seen"""
    fitted: Errors
    """On the motion it was fitted to"""
    locked: dict[str, float]
    """Joints that were not recorded, and where they are held (rad or m)"""
    notes: tuple[str, ...]
    """What was found in the recordings and done about it"""
    warnings: tuple[str, ...]
    """What the data cannot tell, and what to do"""
    cutoffs: dict[str, float | None]
    """Hz by recording; None: nothing was filtered"""
    duration: float
    """s of motion that the fit saw"""
    traces: tuple[Trace, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        return self.fit.unknowns.joints

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """What `parameters` and `covariance` are of, in order."""
        return self.fit.names

    @property
    def parameters(self) -> dict[str, float]:
        """Every number that was looked for, by name, SI units."""
        values = self.fit.x.copy()
        for k, joint in self._rotor_places():
            values[k] += self.fit.unknowns.rotor_inertia(joint)
        return dict(zip(self.fit.names, values.tolist(), strict=True))

    @property
    def covariance(self) -> Floats:
        """(p, p), of `parameters` in their order: the data's and the description's together."""
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
    payload: str | None = None,
    cutoff: float | None = None,
    progress: Callable[[str], None] = lambda words: None,
) -> Identification:
    """The robot that the recordings show.

    Recordings are taken one after another; only their normal equations are kept.

    Args:
        robot: a mechanism, or what `rd.load` takes.
        recordings: rosbag2 folders, .db3, .mcap or .csv files, or `Recording`s.
        validate: recordings that judge and are not fitted to; None: the last third of each.
        topic: of type sensor_msgs/JointState; None: `/joint_states`, or the only one there is.
        rename: the recordings' joint names, or how several begin, to the description's.
        effort_scale: by joint (as described), what its efforts are multiplied with to be N·m or N.
        payload: a link whose ten numbers alone are looked for, the arm being as described.
        cutoff: Hz, of the filter; None: from each recording's spectra.
        progress: is told what is being done.

    Raises:
        DescriptionError: the description is broken.
        RecordingError: a recording is broken, of another robot, too short, at rest, or has no
            efforts.
        InputError: an option that does not fit robot and recordings.
    """
    mechanism = robot if isinstance(robot, Mechanism) else load(robot)
    if mechanism.loops:
        raise InputError(
            f"{mechanism.name}: it has loops, expected an open chain", name=mechanism.name
        )
    sources = _listed(recordings)
    judges = _listed(validate) if validate is not None else []
    if not sources:
        raise InputError("recordings: found none, expected at least one", name="recordings")
    session = _Session(mechanism, topic, rename or {}, effort_scale or {}, payload, cutoff)
    parts: list[NormalEquations] = []
    fitted, held_out = [], []
    for source in sources:
        progress(f"reading {_called(source)}")
        prepared = session.prepared(source)
        train, test = (prepared, None) if judges else prepared.split(HELD_OUT)
        progress(f"reducing {prepared.duration:.3g} s of {prepared.source}")
        parts = (
            [sum(parts[1:], parts[0]) + session.reduced(train)]
            if parts
            else [session.reduced(train)]
        )
        fitted.append(train)
        held_out += [test] if test is not None else []
    for source in judges:
        progress(f"reading {_called(source)}")
        held_out.append(session.prepared(source))
    progress("fitting")
    found = fit(session.unknowns, parts)
    model = mechanism_of(found)
    progress("judging")
    described = session.described
    errors, on_fitted = (_errors(each, described, model) for each in (held_out, fitted))
    traces = [
        Trace(each.source, seen, _thinned(samples))
        for group, seen in ((fitted[:1], True), (held_out[:1], False))
        for each in group
        for samples in each.stretches
    ]
    return Identification(
        model, described, found, errors, on_fitted, session.locked, tuple(session.notes),
        (), session.cutoffs, sum(each.duration for each in fitted), tuple(traces),
    )  # fmt: skip


def _listed(sources: Source | Sequence[Source]) -> list[Source]:
    if isinstance(sources, (str, os.PathLike, Recording)):
        return [sources]
    return list(sources)


def _called(source: Source) -> str:
    return source.source if isinstance(source, Recording) else Path(source).name


class _Session:
    """What all recordings of one identification share."""

    def __init__(
        self,
        mechanism: Mechanism,
        topic: str | None,
        rename: Mapping[str, str],
        effort_scale: Mapping[str, float],
        payload: str | None,
        cutoff: float | None,
    ):
        self._mechanism, self._payload = mechanism, payload
        self._topic, self._cutoff = topic, cutoff
        self._rename, self._scale = rename, effort_scale
        self._unknowns: Unknowns | None = None
        self.locked: dict[str, float] = {}
        self.notes: list[str] = []
        self.cutoffs: dict[str, float | None] = {}

    @property
    def unknowns(self) -> Unknowns:
        assert self._unknowns is not None, "a recording was read"
        return self._unknowns

    @property
    def described(self) -> Mechanism:
        """The mechanism with what was not recorded locked, nothing added."""
        return match(self._mechanism, self.unknowns.joints)[0]

    def prepared(self, source: Source) -> Prepared:
        recording = source if isinstance(source, Recording) else read(source, self._topic)
        recording = recording.renamed(self._rename).scaled(self._scale)
        if self._unknowns is None:
            mechanism, missing = match(self._mechanism, recording.names)
            self._unknowns = Unknowns.of(mechanism, self._payload)
            self.locked = {name: float(self._mechanism.home.get(name, 0.0)) for name in missing}
            if missing:
                self.notes.append(
                    f"not recorded, and locked: {', '.join(f'{k} at {v:g}' for k, v in self.locked.items())}"
                )
        lacking = [name for name in self.unknowns.joints if name not in recording.names]
        if lacking:
            raise RecordingError(
                f"{recording.source}: joints {', '.join(lacking)} are not in it, as they are in "
                "the first recording",
                name=recording.source,
            )
        prepared = prepare(recording, self.unknowns.joints, self._cutoff)
        self.notes += [f"{prepared.source}: {note}" for note in prepared.notes]
        self.cutoffs[prepared.source] = prepared.cutoff
        return prepared

    def reduced(self, prepared: Prepared) -> NormalEquations:
        prior = Prior(self.unknowns.references(), np.zeros(0), np.zeros(0))
        return reduce(self.unknowns, prior, prepared)


def _errors(parts: Iterable[Prepared], described: Mechanism, identified: Mechanism) -> Errors:
    models = [InverseDynamics(each) for each in (described, identified)]
    joints = models[0].joint_names
    squares = np.zeros((4, len(joints)))
    count = np.zeros(len(joints))
    duration = 0.0
    for part in parts:
        duration += part.duration
        for each in part.stretches:
            tau = np.where(each.usable, each.tau, 0.0)
            before, after = (
                np.where(each.usable, model(each.q, each.qd, each.qdd), 0.0) for model in models
            )
            raw = np.where(each.usable, each.unfiltered, 0.0)
            for k, miss in enumerate((tau, tau - before, tau - after, raw - after)):
                squares[k] += (miss**2).sum(axis=0)
            count += each.usable.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Errors(joints, duration, *np.sqrt(squares / count))


def _thinned(samples: Samples) -> Samples:
    return samples.rows(slice(None, None, max(1, len(samples) // SHOWN)))
