# SPDX-License-Identifier: Apache-2.0
"""The parameters to identify, and the design matrix that maps them to torques."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os.path import commonprefix
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..dynamics import InverseDynamics
from ..errors import InputError, choices, listed, wrong
from ..formulations.terms import RIGID
from ..mechanism import Friction, Inertial, Mechanism, Pose, Rotor
from ..mechanism.dynamic_parameters import BODY, numbers_of, rotor_names
from ..mechanism.mechanism import new_name
from ..mechanism.transform import friction_at_joints, lumped, with_locked_joints, with_parts
from ..scalar import rotation_to
from . import friction_laws as laws
from .bodies import BASIS, numbers, reference
from .recording import Floats
from .samples import Samples
from .solve import Prior

STATES = 8
"""Random states per column; columns that are 0 or linearly dependent in all of these are so in
every state"""
DEPENDENT = 1e-10
"""Fraction of a column's norm; a column whose component outside the others' span is smaller is
numerically dependent on them"""
GEAR_RATIO = 100.0
"""Assumed gear ratio of an unknown motor; the reflected inertia scales with its square"""
LOAD = 0.1
"""The assumed mass of a payload, as a fraction of the robot's mass"""


class Columns(Protocol):
    """The design matrix of a robot with n joints, by row, without the columns that are zero or
    depend on others there."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""

    @property
    def payload(self) -> str | None:
        """The link whose body alone is identified; None: the whole robot is."""

    @property
    def joints(self) -> tuple[str, ...]:
        """(n,) names: the joints, of a robot with loops the motors."""

    @property
    def gear_ratios(self) -> dict[str, float]:
        """By joint, the described gear ratio of its rotor: rotor rate / joint rate."""

    @property
    def size(self) -> int:
        """p, the number of parameters; those of the bodies come first."""

    @property
    def places(self) -> NDArray[np.intp]:
        """(n, k): the parameters of each row."""

    @property
    def nonzero(self) -> list[NDArray[np.intp]]:
        """By row, which of its `places` can be nonzero."""

    @property
    def independent(self) -> list[tuple[NDArray[np.intp], Floats]]:
        """By row, (independent columns of bodies and rotors, T), all of which are these times T."""

    @property
    def width(self) -> int:
        """The number of friction columns in each row."""

    @property
    def springs(self) -> list[int]:
        """The parameters of springs."""

    @property
    def held(self) -> list[int]:
        """The parameters that are 0, except in a fit to efforts times a factor."""

    @property
    def offsets(self) -> Floats:
        """(p,): the described values to which the parameters are differences."""

    @property
    def prior(self) -> Prior:
        """The prior of the bodies alone."""

    def viscous(self, joint: str) -> int | None:
        """The parameter of a joint's viscous friction."""

    def rigid(self, samples: Samples) -> tuple[Floats, Floats]:
        """(columns (k, n, …) of bodies and rotors, known torques (k, n))."""

    def friction(self, samples: Samples) -> list[Floats]:
        """By row, (k, `width`)."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Ten parameters per body, then for each joint its raw friction columns and its rotor's
    inertia, and the same for each rotor that is coupled to several joints (a shaft).

    With a payload, the only body is that of one link, friction is added to the described one (an
    offset alone, see `selection`), and there are no rotors.
    """

    held: ClassVar[list[int]] = []

    mechanism: Mechanism
    """The described robot, with joints that were not recorded locked, and a rotor at every joint"""
    payload: str | None = None
    added: tuple[str, ...] = ()
    """The rotors that are not described"""
    doubted: Mapping[str, Rotor] = field(default_factory=dict)
    """By name, described rotors whose gear ratio is not trusted"""
    sprung: frozenset[str] = frozenset()
    """The joints at which recordings show a clear spring, without which nothing else could be
    judged"""

    @classmethod
    def of(cls, mechanism: Mechanism, payload: str | None = None) -> Unknowns:
        """The unknowns of a mechanism whose joints were all recorded.

        Args:
            mechanism: the robot as described.
            payload: a link whose ten parameters are the only unknowns; None: the whole robot is
                identified.

        Raises:
            InputError: the robot does not have this link.
        """
        if payload is not None:
            check_payload(mechanism, payload)
            return cls(mechanism, payload)
        # friction on the two sides of a single joint's gear cannot be distinguished
        complete = with_rotors(friction_at_joints(mechanism))
        described = {rotor.name: rotor for rotor in mechanism.rotors}
        added = tuple(
            name for name, rotor in rotor_names(complete).items() if rotor.name not in described
        )
        doubted = {
            rotor.name: described[rotor.name]
            for rotor in complete.rotors
            if rotor.name in described and described[rotor.name].ratios != rotor.ratios
        }
        return cls(complete, added=added, doubted=doubted)

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints' names, in the mechanism's order."""
        return self.mechanism.joint_names

    @cached_property
    def shafts(self) -> dict[str, tuple[str, Floats]]:
        """The rotors that are coupled to several joints: by owner (see `owners`), (the rotor's name
        among the parameters, its row n (n,), with the rate n·q̇)."""
        if self.payload is not None:
            return {}
        found: dict[str, tuple[str, Floats]] = {}
        taken = set(self.joints)
        for name, rotor in rotor_names(self.mechanism).items():
            if len(rotor.ratios) > 1:
                owner = new_name(f"{name}.rotor", taken)
                found[owner] = (name, self.mechanism.row(rotor.ratios).astype(float))
        return found

    @property
    def owners(self) -> tuple[str, ...]:
        """What has friction to identify: the joints, then the shafts."""
        return (*self.joints, *self.shafts)

    def turning(self, owner: str) -> Floats:
        """(n,): the row of a joint or shaft; its rate is this row times q̇."""
        if owner in self.shafts:
            return self.shafts[owner][1]
        unit: Floats = np.eye(len(self.joints))[self.joints.index(owner)]
        return unit

    @property
    def bodies(self) -> tuple[str, ...]:
        """The links whose bodies are identified, each together with everything fixed to it."""
        if self.payload is not None:
            return (self.payload,)
        return body_names(self.mechanism)

    @cached_property
    def rotors(self) -> dict[str, str]:
        """By joint, the rotor that drives only this joint; then by shaft, its own rotor. The names
        are those among the parameters."""
        if self.payload is not None:
            return {}
        found: dict[str, str] = {}
        for name, rotor in rotor_names(self.mechanism).items():
            if len(rotor.ratios) == 1:
                found.setdefault(rotor.ratios[0][0], name)
        alone = {joint: found[joint] for joint in self.joints if joint in found}
        return alone | {owner: name for owner, (name, _) in self.shafts.items()}

    @property
    def raw(self) -> int:
        """Number of friction columns per joint or shaft."""
        return laws.RAW

    @property
    def width(self) -> int:
        """Number of friction columns in each joint's rows: its own, then those of the shafts."""
        return self.raw * (1 + len(self.shafts))

    def group(self, owner: str) -> slice:
        """The columns of a joint or shaft: friction, then its rotor.

        Raises:
            KeyError: there is no such joint or shaft.
        """
        start = 10 * len(self.bodies)
        for name in self.owners:
            size = self.raw + (name in self.rotors)
            if name == owner:
                return slice(start, start + size)
            start += size
        raise KeyError(owner)

    @property
    def springs(self) -> list[int]:
        """The columns of the joints' springs."""
        return [self.group(joint).start + laws.STIFFNESS for joint in self.joints]

    def viscous(self, joint: str) -> int | None:
        """The column of a joint's viscous friction."""
        column: int = self.group(joint).start + laws.VISCOUS
        return column

    @property
    def offsets(self) -> Floats:
        """(p,): the described values to which the parameters are differences: the inertias of the
        rotors, or with a payload the joints' offsets."""
        described = np.zeros(self.size)
        for owner in self.rotors:
            described[self.group(owner).stop - 1] = self.rotor_inertia(owner)
        for joint in self.joints if self.payload is not None else ():
            offset = float(self.described_friction(joint).offset)
            described[self.group(joint).start + laws.OFFSET] = offset
        return described

    @cached_property
    def size(self) -> int:
        """The number of unknowns."""
        size: int = self.group(self.owners[-1]).stop
        return size

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """(n, k): the columns of each joint's rows: bodies, rotors, its own friction, and that of
        the shafts."""

        def friction(owner: str) -> list[int]:
            start = self.group(owner).start
            return [*range(start, start + self.raw)]

        rotors = [self.group(owner).stop - 1 for owner in self.rotors]
        common = [*range(10 * len(self.bodies)), *rotors]
        shafts = [k for owner in self.shafts for k in friction(owner)]
        return np.array([[*common, *friction(joint), *shafts] for joint in self.joints])

    @cached_property
    def nonzero(self) -> list[NDArray[np.intp]]:
        """By joint, which of its `places` can be nonzero in its rows: its torque does not depend on
        the bodies between the base and the joint."""
        own = np.ones(self.width, dtype=bool)
        return [np.flatnonzero(np.r_[rows.any(axis=0), own]) for rows in self._random_rows]

    @cached_property
    def independent(self) -> list[tuple[NDArray[np.intp], Floats]]:
        """By joint, (independent columns, T): in every state, all columns of bodies and rotors that
        affect the joint are the independent ones times T."""
        from scipy.linalg import qr

        found = []
        for rows, nonzero in zip(self._random_rows, self.nonzero, strict=True):
            nonzero = nonzero[nonzero < rows.shape[1]]
            scale = np.linalg.norm(rows[:, nonzero], axis=0)
            # Y P = Q R
            R, order = qr(rows[:, nonzero] / scale, mode="r", pivoting=True)
            left = np.abs(np.diag(R))
            rank = int((left > DEPENDENT * left[:1]).sum())
            T = np.zeros((rank, len(nonzero)))
            T[:, order] = np.linalg.solve(R[:rank, :rank], R[:rank])
            T[:, order[:rank]] = np.eye(rank)
            kept = order[:rank]
            found.append((nonzero[kept], T * scale / scale[kept, None]))
        return found

    @cached_property
    def _random_rows(self) -> list[Floats]:
        """By joint, its rows of the regressor in random states."""
        n, width = len(self.joints), 10 * len(self.bodies) + len(self.rotors)
        count = STATES * width
        q, qd, qdd = np.random.default_rng(0).uniform(-3, 3, (3, count, n))
        Y, _ = self.rigid(Samples.without_efforts(q, qd, qdd))
        return [Y[:, j] for j in range(n)]

    @property
    def described(self) -> Floats:
        """(10 b,): the described bodies."""
        return described_bodies(self.mechanism, self.payload)

    @cached_property
    def prior(self) -> Prior:
        """The prior of the bodies alone."""
        return prior_of(self.mechanism, self.payload)

    def rotor_inertia(self, owner: str) -> float:
        """The described inertia of a joint's rotor, or of a shaft, about its own axis, kg m²."""
        rotor = rotor_names(self.mechanism)[self.rotors[owner]]
        return float(rotor.inertial.inertia[2, 2])

    def described_friction(self, owner: str) -> Friction:
        """The described friction of a joint, including that of its rotor, or of a shaft."""
        if owner not in self.shafts:
            return self.mechanism.joint(owner).friction
        return rotor_names(self.mechanism)[self.rotors[owner]].friction or Friction()

    @property
    def gear_ratios(self) -> dict[str, float]:
        """By joint, the described gear ratio of its rotor: rotor rate / joint rate."""
        rotors = rotor_names(self.mechanism)
        return {
            joint: float(rotors[name].ratios[0][1])
            for joint, name in self.rotors.items()
            if joint not in self.shafts and name not in self.added
        }

    @cached_property
    def _dynamics(self) -> InverseDynamics:
        return InverseDynamics(self.mechanism, terms=RIGID, batches=True)

    @cached_property
    def _followers(self) -> InverseDynamics | None:
        """The friction that is not identified: that of coupled (following) joints, or with a
        payload all of it; None: there is none."""
        mechanism = self.mechanism
        if self.payload is None:
            joints = (link.joint for link in mechanism.links)
            none = {joint.name: Friction() for joint in joints if joint.coupling is None}
            rotors = tuple(replace(rotor, friction=None) for rotor in mechanism.rotors)
            mechanism = replace(with_parts(mechanism, {}, none), rotors=rotors)
        if all(law == Friction() for *_, law in mechanism.friction_rows()):
            return None
        return InverseDynamics(mechanism, terms={"friction"}, batches=True)

    def rigid(self, samples: Samples) -> tuple[Floats, Floats]:
        """(Y (k, n, 10 b + r), known (k, n)): the columns of bodies and rotors, and the known
        torques.

        The rotors are in the order of `rotors`; the parameter of each is the difference between its
        inertia and the described one.
        """
        columns, rest, values = self._columns
        # with contiguous arrays, a kernel's quickest way is open
        state = map(np.ascontiguousarray, (samples.q, samples.qd, samples.qdd))
        Y = self._dynamics.regressor(*state)
        known = self._friction(samples)
        if len(rest):
            known = known + Y[..., rest] @ values
        if self.payload is not None:
            _, T = carried(self.mechanism, self.payload)
            body = Y[..., columns] @ T
            return body, known - body @ self.described
        return Y[..., columns], known

    @cached_property
    def _columns(self) -> tuple[NDArray[np.intp] | slice, NDArray[np.intp], Floats]:
        """(the regressor's columns to identify, the known ones, the values of their parameters)."""
        names, values = self._dynamics.parameter_names, self._dynamics.parameters
        place = {name: k for k, name in enumerate(names)}
        if self.payload is not None:
            carrier, _ = carried(self.mechanism, self.payload)
            sought, known = [place[f"{carrier}.{each}"] for each in BODY], values
        else:
            sought = [place[f"{body}.{each}"] for body in self.bodies for each in BODY]
            known = values.copy()
            known[sought] = 0.0
            sought += [place[f"{rotor}.inertia"] for rotor in self.rotors.values()]
        rest = np.flatnonzero(known)
        first, last = sought[0], sought[-1] + 1
        # indexing with a slice does not copy
        every = slice(first, last) if sought == [*range(first, last)] else np.array(sought)
        return every, rest, known[rest]

    def own(self, samples: Samples, j: int) -> Floats:
        """(k, RAW): the raw friction columns of joint j."""
        if samples.friction is not None:
            return samples.friction[:, j, : self.raw]
        turns = self.mechanism.joint(self.joints[j]).turns
        columns = laws.raw_columns(samples.qd[:, j], turns, samples.qdd[:, j])
        columns[:, laws.STIFFNESS] = samples.q[:, j]
        return columns[:, : self.raw]

    def friction(self, samples: Samples) -> list[Floats]:
        """By joint, (k, `width`): the friction columns in its rows."""
        own = [self.own(samples, j) for j in range(len(self.joints))]
        if not self.shafts:
            return own
        rows = [row for _, row in self.shafts.values()]
        on_shafts = [samples.filtered(partial(_shaft_columns, row)) for row in rows]
        return [
            np.hstack([each, *(n[j] * more for n, more in zip(rows, on_shafts, strict=True))])
            for j, each in enumerate(own)
        ]

    def _friction(self, samples: Samples) -> Floats:
        if self._followers is None:
            return np.zeros_like(samples.q)
        known = self._followers(samples.q, samples.qd, samples.qdd)
        return known + samples.blurred(self._followers)


def _shaft_columns(row: Floats, qd: Floats) -> Floats:
    """(k, RAW): the raw friction columns of a shaft with the row n (n,), for rates (k, n)."""
    size = shaft_scale(row)
    raw = laws.raw_columns(qd @ row / size, True)
    raw[:, laws.VISCOUS] *= size
    return raw


def sliding(mechanism: Mechanism, joints: Iterable[str]) -> list[str]:
    """Which of these joints slide; the others turn."""
    return [name for name in joints if mechanism.joint(name).slides]


def check_payload(mechanism: Mechanism, link: str) -> None:
    """Check that the robot has this link.

    Raises:
        InputError: it has not.
    """
    names = [each.name for each in mechanism.links]
    if link not in names:
        raise wrong(InputError, "payload: link", link, choices(names))


def carried(mechanism: Mechanism, payload: str) -> tuple[str, Floats]:
    """(moving link, T) with φ_moving = T φ_payload, for a link that is the moving one or fixed to
    it.

    Raises:
        InputError: no joint moves the link.
    """
    pose, link = Pose(), mechanism.link(payload)
    while not link.joint.moves:
        pose = link.joint.pose(0.0) @ pose
        if link.parent == mechanism.base:
            raise wrong(InputError, "payload: link", payload, "a link that some joint moves")
        link = mechanism.link(link.parent)
    X = pose.homogeneous()
    # P' = X P Xᵀ
    return link.name, np.column_stack([numbers(X @ B @ X.T) for B in BASIS])


def described_bodies(mechanism: Mechanism, payload: str | None) -> Floats:
    """(10 b,): the described bodies, or that of the payload alone."""
    if payload is not None:
        return numbers_of(mechanism.link(payload).inertial)
    bodies = {link.name: link.inertial for link in lumped(mechanism).links}
    return np.concatenate([numbers_of(bodies[name]) for name in body_names(mechanism)])


def prior_of(mechanism: Mechanism, payload: str | None) -> Prior:
    """The prior of the bodies alone: as described, with some extent where the description has none.

    A payload's reference does not depend on the described link, which is the one without payload.
    """
    total = sum(float(link.inertial.mass) for link in mechanism.links)
    mass = (0.01 if payload is None else LOAD) * total if total > 0 else 1.0
    described = np.zeros(10) if payload is not None else described_bodies(mechanism, None)
    size = body_size(mechanism)
    return Prior(tuple(reference(phi, mass, size) for phi in described.reshape(-1, 10)))


def body_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The moving links that have a body, own or fixed to them; not those that only connect the
    parts of a joint."""
    carriers = mechanism.carriers()
    with_body = {carriers[link.name][0] for link in mechanism.links if not link.intermediate}
    return tuple(link.name for link in mechanism.moving if link.name in with_body)


def body_size(mechanism: Mechanism) -> float:
    """m: the assumed size of a body without a described one, a quarter of the median link."""
    arms = [float(np.linalg.norm(link.joint.origin.translation)) for link in mechanism.links]
    return 0.25 * float(np.median([arm for arm in arms if arm > 0] or [0.4]))


def shaft_scale(row: Floats) -> float:
    """The largest gear ratio in a shaft's row (n,); the shaft's rate divided by it is of the size
    of a joint's."""
    return float(np.abs(row).max())


def with_rotors(mechanism: Mechanism) -> Mechanism:
    """The mechanism with a rotor at every joint that has none.

    A rotor that is described only by its gear ratio is placed on the joint's axis. A ratio of 1 is
    not trusted, and multiplied by `GEAR_RATIO`: descriptions contain it where the gear was not
    known, and with it the effect of a rotor on other joints cannot be distinguished from the
    link's.
    """
    rotors = []
    driven = set()
    for rotor in mechanism.rotors:
        alone = len(rotor.ratios) == 1
        driven |= {rotor.ratios[0][0]} if alone else set()
        if alone and rotor.inertial.is_nothing:
            ((joint, ratio),) = rotor.ratios
            ratio = GEAR_RATIO * ratio if abs(ratio) == 1 else ratio
            rotor = _rotor_about(mechanism, joint, ratio, rotor.name)
        rotors.append(rotor)
    taken = {rotor.name for rotor in rotors}
    for joint in mechanism.joint_names:
        if joint not in driven and joint not in taken:
            rotors.append(_rotor_about(mechanism, joint, GEAR_RATIO, joint))
    return replace(mechanism, rotors=tuple(rotors))


def _rotor_about(mechanism: Mechanism, joint: str, ratio: float, name: str) -> Rotor:
    """A rotor with zero inertia that spins about its joint's axis."""
    link = next(link for link in mechanism.links if link.joint.name == joint)
    origin = link.joint.origin @ Pose(rotation_to(link.joint.axis))
    return Rotor(name, link.parent, origin, ((joint, ratio),), Inertial())


def locked(mechanism: Mechanism, positions: Mapping[str, float]) -> Mechanism:
    """The robot with these joints locked, and the joints that follow them at the resulting
    positions.

    Args:
        mechanism: the robot.
        positions: by joint, rad or m.
    """
    return replace(
        with_locked_joints(mechanism, positions),
        actuated=tuple(name for name in mechanism.actuated if name not in positions),
        sensed=tuple(name for name in mechanism.sensed if name not in positions),
        home={name: value for name, value in mechanism.home.items() if name not in positions},
    )


def match(mechanism: Mechanism, recorded: Iterable[str]) -> tuple[Mechanism, tuple[str, ...]]:
    """(the mechanism with the joints that were not recorded locked at home, or at 0 if there is no
    home position; these joints' names).

    Args:
        mechanism: the robot.
        recorded: the names of the recorded joints.

    Raises:
        InputError: none of its joints was recorded.
    """
    recorded = set(recorded)
    missing = tuple(name for name in mechanism.joint_names if name not in recorded)
    if len(missing) == len(mechanism.joint_names):
        raise InputError(
            f"the recording is of a different robot: its joints are {listed(sorted(recorded))}, "
            f"the description's are {listed(mechanism.joint_names)}; if only the names differ, use "
            f"--rename {_renaming(sorted(recorded), mechanism.joint_names)}",
            name="recording",
        )
    held = {name: mechanism.home_of(name) for name in missing}
    return (locked(mechanism, held) if held else mechanism), missing


def _renaming(recorded: Sequence[str], described: Sequence[str]) -> str:
    """The values of `--rename` if only a prefix differs, otherwise their form."""
    for more, fewer in ((recorded, described), (described, recorded)):
        for name in more:
            prefix = name.removesuffix(fewer[0])
            if all(prefix + each in more for each in fewer):
                shared = commonprefix([*fewer])  # noqa: RUF071  names, not paths
                pairs = [(prefix + each, each) for each in ([shared] if shared else fewer)]
                ordered = pairs if more is recorded else [pair[::-1] for pair in pairs]
                return shlex.join(f"{old}:{new}" for old, new in ordered)
    return "OLD:NEW"
