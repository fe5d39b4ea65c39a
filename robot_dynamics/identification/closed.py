# SPDX-License-Identifier: Apache-2.0
"""Identification of closed chains: their bodies, rotors, and friction, also of passive joints.

The recordings contain the motors' positions and efforts; loop closure gives the positions of all
other joints. The motor torques are linear in the standard parameters of the cut-open tree,

    τ = Tᵀ Y_tree π,

so the fit is like that of open chains, over physically consistent bodies. Passive joints have
viscous and Coulomb friction, which Tᵀ maps to the motors.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ..dynamics import InverseDynamics
from ..errors import ClosureWarning, InputError, RecordingError, listed
from ..mechanism import Friction, Inertial, Mechanism, Pose
from ..mechanism.dynamic_parameters import (
    BODY,
    body_of,
    frictions,
    rotor_names,
    with_parameters,
)
from ..mechanism.transform import friction_at_joints, with_parts
from .doubts import PlainModel
from .fit import RIDGE, WEIGHTS, Fitted, chosen_weight, with_noise
from .friction_laws import PLAIN
from .identified import Identified
from .identified_mechanism import fixed_to, parted
from .normal_equations import NormalEquations, SummedEquations, approached
from .preparation import Even
from .recording import Floats, runs
from .samples import Prepared, Samples
from .solve import Prior, minimise
from .unknowns import (
    body_names,
    body_size,
    carried,
    check_payload,
    described_bodies,
    prior_of,
    with_rotors,
)

CHECKED = 2000
"""Number of a recording's states in which loop closure is checked first"""
APART = 16
"""Distance of checked states of which one tells of those up to the next; shorter runs stay"""
CLOSED = 0.5
"""Fraction of them in which the loops must close"""
FEWEST = 3
"""A stretch with no more samples than these is left out"""
WHY_OPEN = "check the encoder zeros and the assembly mode of `home`"
OFF_AXIS = 1e-6
"""How far the centre of mass of a link that spins freely may be off its axis, as a fraction of the
robot's size"""


@dataclass(frozen=True, eq=False)
class ClosedFit(Fitted):
    """The fitted parameters of a robot with loops."""

    unknowns: ClosedUnknowns


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedIdentification(Identified):
    """The result of `identify` for a robot with loops; torques by motor, in N·m or N."""

    fit: ClosedFit
    """The solution of the least-squares problem, with its covariance"""

    @property
    def described_parameters(self) -> dict[str, float]:
        """The described values of these parameters; 0 for friction and rotors that are not
        described."""
        return self._by_name(self.fit.unknowns.values)


def fit_closed(unknowns: ClosedUnknowns, normal: NormalEquations) -> ClosedFit:
    """The physically consistent robot with loops that best fits these normal equations.

    Args:
        unknowns: the parameters to identify.
        normal: the normal equations of all recordings.
    """
    return with_noise(unknowns, normal, partial(_fit, unknowns))


def _fit(unknowns: ClosedUnknowns, normal: SummedEquations) -> ClosedFit:
    """The fit without the parameters of friction and rotors that would be negative."""
    p, block = len(unknowns.names), 10 * len(unknowns.bodies)
    folds, moments = normal.gram[:, :p, :p], normal.moment[:, :p]
    information, moment = folds.sum(axis=0), moments.sum(axis=0)
    folds = folds.copy()
    folds[:, :block, :block] += unknowns.on_axes
    whole = folds.sum(axis=0)
    _, prior = approached(whole, moment, unknowns.prior)
    signless = [name.endswith(".offset") for name in unknowns.names]
    positive = (np.arange(p) >= block) & ~np.array(signless)
    kept, gamma = np.arange(p), WEIGHTS[0]  # a payload has no description that could be weighted
    while True:
        G, g = folds[:, kept][:, :, kept], moments[:, kept]
        tightness = RIDGE * np.maximum(np.diag(whole)[kept[block:]], 1e-300)
        own = Prior(prior.bodies, tightness)
        if unknowns.payload is None:
            gamma, _ = chosen_weight(G, g, normal.square, own)
        x, curvature = minimise(G.sum(axis=0), g.sum(axis=0), own, gamma)
        wrong = positive[kept] & (x < 0)
        if not wrong.any():
            break
        kept = kept[~wrong]
    found = np.zeros(p)
    found[kept] = x
    # parameters that were fixed at 0 are as uncertain as if they had been fitted
    H, scalars = information.copy(), np.arange(block, p)
    H[:block, :block] = curvature[:block, :block]
    H[scalars, scalars] *= 1 + RIDGE
    columns = np.eye(unknowns.size)[:, :p]
    return ClosedFit(
        found, unknowns.names, columns, H, information, moment, own, gamma, normal.sigma, unknowns
    )


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
    """Ten parameters per body, then those of friction and rotors, which appear in every motor's
    torque; with a payload, only the ten parameters of one link.

    Joints that spin freely are locked in `whole`, not in the robot as described.

    Args:
        mechanism: the robot as described.
        payload: a link whose ten parameters are the only unknowns; None: the whole robot is
            identified.

    Raises:
        InputError: the robot does not have this link, or its motors are not the independent joints.
    """

    width = 0
    springs: list[int] = []  # noqa: RUF012

    def __init__(self, mechanism: Mechanism, payload: str | None = None):
        self.mechanism, self.payload = mechanism, payload
        self.before = before = InverseDynamics(mechanism, batches=True)
        """As described"""
        if before.joint_names != before.actuated_names:
            raise InputError(
                f"{mechanism.name}: needs as many motors as degrees of freedom: motors "
                f"{listed(before.actuated_names)}, independent joints {listed(before.joint_names)}",
                name=mechanism.name,
            )
        self.joints = before.joint_names
        """The joints whose states determine the motion: the motors"""
        self.whole = before.mechanism
        if payload is None:
            self.whole = _whole(before.mechanism, self.joints)
        self.dynamics = InverseDynamics(self.whole, batches=True)
        place = {name: k for k, name in enumerate(self.dynamics.parameter_names)}
        known = self.dynamics.parameters.copy()
        if payload is not None:
            check_payload(mechanism, payload)
            carrier, self._carried = carried(self.whole, payload)
            self.bodies: tuple[str, ...] = (payload,)
            self.names = tuple(f"{payload}.{each}" for each in BODY)
            self.values = described_bodies(self.whole, payload)
            self._sought = [place[f"{carrier}.{each}"] for each in BODY]
        else:
            self.bodies = body_names(self.whole)
            names = [f"{body}.{each}" for body in self.bodies for each in BODY]
            owned = (owner + term for owner in frictions(self.whole) for term in PLAIN)
            names += [name for name in owned if name in place]
            taken = {*names}
            names += [name for name in place if name.endswith(".inertia") and name not in taken]
            self.names = tuple(names)
            described = dict(zip(before.parameter_names, before.parameters.tolist(), strict=True))
            self.values = np.array([described.get(name, 0.0) for name in names])
            """The described values; 0 for friction and rotors that are not described"""
            self._sought = [place[name] for name in names]
            known[self._sought] = 0.0
        self._rest = np.flatnonzero(known)
        self._known = known[self._rest]
        self.held = [len(self.names)] * (payload is None and len(self._rest) > 0)
        """The factor on known torques, such as those of springs, minus 1: a factor on the efforts
        does not apply to them"""
        self.size = len(self.names) + len(self.held)
        self.offsets = np.r_[np.zeros(len(self.names)), np.ones(len(self.held))]
        self.prior = prior_of(self.whole, payload)
        self.places = np.tile(np.arange(self.size), (len(self.joints), 1))
        self.nonzero = [*self.places]
        self.independent = [(places, np.eye(self.size)) for places in self.places]

    @cached_property
    def on_axes(self) -> Floats:
        """(10 b, 10 b): a normal matrix that keeps links that spin freely balanced."""
        return _on_axes(self.whole, self.bodies, self.prior.bodies, body_size(self.whole))

    @property
    def gear_ratios(self) -> dict[str, float]:
        """By joint, the described gear ratio of its rotor: rotor rate / joint rate."""
        alone = (rotor.ratios[0] for rotor in self.mechanism.rotors if len(rotor.ratios) == 1)
        return {joint: float(ratio) for joint, ratio in alone}

    @property
    def plain(self) -> PlainModel:
        """What may explain the efforts of each motor."""
        own = []
        for motor in self.joints:
            rotors = [
                f"{name}.inertia"
                for name, rotor in rotor_names(self.whole).items()
                if [joint for joint, _ in rotor.ratios] == [motor]
            ]
            names = (*(f"{motor}.{term}" for term in PLAIN), *rotors)
            own.append(np.array([self.names.index(name) for name in names], dtype=int))
        unbounded = np.full(self.size - 10 * len(self.bodies), np.inf)
        return PlainModel(np.eye(self.size), self.offsets, unbounded, own, len(self.held))

    def viscous(self, joint: str) -> int | None:
        """The parameter of a motor's viscous friction."""
        name = f"{joint}.viscous"
        return self.names.index(name) if name in self.names else None

    def closing(self, raw: Even, unused: Collection[str] = ()) -> Even:
        """The part of a recording in which the loops can be closed, with a note of the rest. Short
        runs in which they cannot are left to `unfiltered`: a recording in many pieces could not be
        filtered.

        Args:
            raw: the motors' motion.
            unused: the motors whose efforts are not used.

        Raises:
            RecordingError: a motor has no efforts, or the loops cannot be closed.
        """
        if lacking := [name for name in raw.joints if name not in (*raw.measured, *unused)]:
            raise RecordingError(f"{raw.source}: no efforts of {listed(lacking)}", name=raw.source)
        q = np.concatenate([each.position for each in raw.pieces])
        step = max(1, len(q) // CHECKED)
        checked = self._closes_or_is_amid_open(q[::step])
        share = checked.mean()
        if share == 1:
            return raw
        words = f"{100 * (1 - share):.3g} % of the recorded positions do not close the loops"
        if share < CLOSED:
            raise RecordingError(f"{raw.source}: {words}: {WHY_OPEN}", name=raw.source)
        for a, b in runs(~checked).tolist():
            checked[a:b] = b - a < APART
        closes, pieces = np.repeat(checked, step), []
        for each in raw.pieces:
            pieces += [each.rows(slice(*run)) for run in runs(closes[: len(each)]).tolist()]
            closes = closes[len(each) :]
        note = f"{words} and were left out: {WHY_OPEN}"
        return replace(raw, pieces=tuple(pieces), notes=(*raw.notes, note))

    def _closes_or_is_amid_open(self, q: Floats) -> NDArray[np.bool_]:
        """(k,): `_closes`, which takes long where they do not close: there only every `APART`-th
        position is looked at, and counts for those up to the next one if it does not close either.
        """
        some = np.unique(np.r_[0 : len(q) : APART, len(q) - 1])
        closes, known = np.zeros(len(q), dtype=bool), np.zeros(len(q), dtype=bool)
        closes[some], known[some] = self._closes(q[some]), True
        for a, b in itertools.pairwise(some.tolist()):
            known[a:b] |= not (closes[a] or closes[b])
        closes[~known] = self._closes(q[~known])
        return closes

    def _closes(self, q: Floats) -> NDArray[np.bool_]:
        """(k,): whether the loops can be closed at positions (k, n)."""
        still = np.zeros_like(q)
        with _in_silence():
            return np.asarray(np.isfinite(self.before(q, still, still)).all(axis=1))

    def unfiltered(self, prepared: Prepared) -> Prepared:
        """The motion in which the loops can be closed, with efforts as recorded. A filter would
        round the steps of Coulomb friction, which appear in the motor torques wherever a passive
        joint changes direction.

        Raises:
            RecordingError: the loops can be closed nowhere.
        """
        stretches = []
        for each in prepared.stretches:
            closes = self._closes(each.q)
            if closes.sum() > FEWEST:
                stretches.append(replace(each.sharp, tau=each.unfiltered).rows(closes))
        if not stretches:
            raise RecordingError(
                f"{prepared.source}: the loops do not close: {WHY_OPEN}", name=prepared.source
            )
        return replace(prepared, stretches=tuple(stretches), resting=())

    def friction(self, samples: Samples) -> list[Floats]:
        """By row, no columns (k, 0): friction has its columns in `rigid`."""
        return [np.empty((len(samples), 0))] * len(self.joints)

    def rigid(self, samples: Samples) -> tuple[Floats, Floats]:
        """(columns (k, n, p), known torques (k, n)); where the loops cannot be closed, the torques
        are those measured."""
        with _in_silence():
            Y = self.dynamics.regressor(samples.q, samples.qd, samples.qdd)
        closes = np.asarray(np.isfinite(Y).all(axis=(1, 2)))[:, None, None]
        Y = np.where(closes, Y, 0.0)
        known, columns = Y[:, :, self._rest] @ self._known, Y[:, :, self._sought]
        if self.payload is not None:
            columns = columns @ self._carried
            known = known - columns @ self.values
        elif self.held:
            columns = np.concatenate([columns, known[..., None]], axis=2)
        return columns, np.where(closes[:, 0], known, samples.tau)

    def mechanism_of(self, x: Floats) -> Mechanism:
        """The robot with these parameters (p,)."""
        if self.payload is not None:
            return with_parts(self.mechanism, {self.payload: body_of(x)})
        found = with_parameters(self.whole, dict(zip(self.names, x.tolist(), strict=True)))
        inertials: dict[str, Inertial] = {}
        for k, name in enumerate(self.bodies):
            inertials |= parted(self.whole, name, x[10 * k : 10 * k + 10])
        frictions = {link.joint.name: link.joint.friction for link in found.moving}
        described = with_parts(self.mechanism, inertials, frictions)
        return replace(described, rotors=found.rotors, armatures=found.armatures)


@contextmanager
def _in_silence() -> Iterator[None]:
    """No warning of states in which the loops cannot be closed: a note says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClosureWarning)
        yield


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
