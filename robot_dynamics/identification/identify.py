"""From recordings to a model: the whole way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ..description import load
from ..errors import InputError, RecordingError
from ..mechanism import Mechanism
from .errors import Errors, compare
from .fit import Fit, fit
from .model import mechanism_of
from .normal_equations import NormalEquations, reduce
from .preparation import Prepared, Samples, prepare
from .quality import Excitation, excitation, warnings
from .read import read
from .recording import Floats, Recording
from .shelf import Shelf
from .solve import Prior
from .unknowns import Unknowns, match

HELD_OUT = 1 / 3
"""Of each recording, the last: what the fit has not seen where no other recording judges it"""
SHOWN = 6000
"""Samples of a recording that are kept to be looked at"""

NONSENSE = 0.99
"""Of every joint's torque: a model that misses more is none"""

Source = str | os.PathLike[str] | Recording


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
    excitation: Excitation
    """How much of the robot the motion excited"""
    source: str | None
    """The description's file or text; None: a mechanism was given"""

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints' names, in the order of all results by joint."""
        return self.fit.unknowns.joints

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """What `parameters` and `covariance` are of, in order."""
        return self.fit.names

    @property
    def parameters(self) -> dict[str, float]:
        """Every number that was looked for, by name, SI units."""
        return self._by_name(self.fit.x)

    @property
    def described_parameters(self) -> dict[str, float]:
        """The same numbers as they are described; of a joint's friction 0 where it has none."""
        unknowns = self.fit.unknowns
        values = np.zeros(len(self.fit.x))
        values[: 10 * len(unknowns.bodies)] = unknowns.described
        at = 10 * len(unknowns.bodies)
        for joint in unknowns.joints:
            law = self.described.joint(joint).friction.numbers
            drive = self.fit.drives[joint]
            for k, name in enumerate(drive.law.names):
                values[at + k] = float(law.get(name, 0.0))
            at += drive.size
        return self._by_name(values)

    def _by_name(self, x: Floats) -> dict[str, float]:
        """With the rotors' inertias whole, of which x has what differs from the description."""
        values = x.copy()
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
    progress: Callable[[str], None] | None = None,
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
    progress = progress or _silent
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
    normal: NormalEquations | None = None
    with Shelf() as fitted, Shelf() as unseen:
        for source in sources:
            progress(f"reading {_called(source)}")
            prepared = session.prepared(source)
            progress(f"reducing {prepared.duration:.3g} s of {prepared.source}")
            train, *rest = [prepared] if judges else prepared.split(HELD_OUT)
            part = session.reduced(train)
            normal = part if normal is None else normal + part
            fitted.put(train)
            unseen.put(*rest)
        for source in judges:
            progress(f"reading {_called(source)}")
            unseen.put(session.prepared(source))
        progress("fitting")
        assert normal is not None
        found = fit(session.unknowns, normal)
        model = mechanism_of(found)
        progress("judging")
        described = session.described
        errors = compare(unseen, described, model)
        _refuse_nonsense(errors)
        told = excitation(found)
        return Identification(
            mechanism=model,
            described=described,
            fit=found,
            errors=errors,
            fitted=compare(fitted, described, model),
            locked=session.locked,
            notes=tuple(session.notes),
            warnings=tuple(warnings(told, errors, session.moved)),
            cutoffs=session.cutoffs,
            duration=sum(each.duration for each in fitted),
            traces=(*_traces(fitted, seen=True), *_traces(unseen, seen=False)),
            excitation=told,
            source=None if isinstance(robot, Mechanism) else os.fspath(robot),
        )


def _refuse_nonsense(errors: Errors) -> None:
    """Raises RecordingError: no joint's torque is anything like the model's."""
    known = errors.relative[np.isfinite(errors.relative)]
    if len(known) and known.min() > NONSENSE:
        raise RecordingError(
            f"no joint's efforts are those of this robot (the best model misses "
            f"{100 * known.min():.0f} % of them): check that description and recording belong "
            "together, that joints are called alike (--rename), and the efforts' unit and sign "
            "(--effort-scale)",
            name="recording",
        )


def _traces(shelf: Shelf, seen: bool) -> Iterator[Trace]:
    for prepared in islice(shelf, 1):
        for samples in prepared.stretches:
            yield Trace(prepared.source, seen, _thinned(samples))


def _silent(words: str) -> None:
    """Nobody wants to know."""


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
        self._lowest: Floats | None = None
        self._highest: Floats | None = None

    @property
    def moved(self) -> Floats:
        """(n,), rad or m: from the lowest to the highest position that was recorded"""
        assert self._lowest is not None
        assert self._highest is not None
        return self._highest - self._lowest

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
                held = ", ".join(f"{name} at {value:g}" for name, value in self.locked.items())
                self.notes.append(f"not recorded, and locked: {held}")
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
        q = np.concatenate([each.q for each in prepared.stretches])
        low, high = q.min(axis=0), q.max(axis=0)
        self._lowest = low if self._lowest is None else np.minimum(low, self._lowest)
        self._highest = high if self._highest is None else np.maximum(high, self._highest)
        return prepared

    def reduced(self, prepared: Prepared) -> NormalEquations:
        prior = Prior(self.unknowns.references(), np.zeros(0), np.zeros(0))
        return reduce(self.unknowns, prior, prepared)


def _thinned(samples: Samples) -> Samples:
    return samples.rows(slice(None, None, max(1, len(samples) // SHOWN)))
