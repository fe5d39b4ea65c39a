# SPDX-License-Identifier: Apache-2.0
"""Identifies drive gains (torque per unit of current) from recordings with and without a known
load.

Currents determine a model only up to one factor per joint. A load whose inertial parameters are
known adds known torques, and thereby determines the factors of all joints at once:

    v_j = s_j (Y_j φ + τ_j) + F_j f_j

where v_j is the recorded effort of joint j, s_j = 1/g_j its inverse gain, Y_j φ the torque of the
robot's bodies, whose φ need not be known, τ_j that of the load (0 without it), and F_j f_j that of
friction, offset and rotor in units of v. This is a least-squares problem in s, φ and f, bilinear in
s and φ, solved from sums over the samples.

Where motors are coupled to several joints, v_j is the effort of a motor, and the torques on the
right are those that the motors must produce for the joint torques (see `motor_efforts`): Y and τ
are multiplied by N⁻ᵀ, F_j depends on the motor's rate N_j q̇, and the friction of joints whose
torque several motors share is part of φ.

Source: Gautier, Briot, "Global identification of joint drive gains and dynamic parameters of
robots", ASME J. Dyn. Sys. Meas. Control 136(5), 2014. They solve g_j v_j = … by total least
squares; here the noise is modelled where it arises, in the currents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..description import load as load_description
from ..errors import InputError, RecordingError, listed, wrong
from ..mechanism import Inertial, Mechanism
from ..mechanism.dynamic_parameters import numbers_of
from . import friction_laws as laws
from .band import root_of
from .fleet import one_blas_thread
from .motor_efforts import motor_rows
from .normal_equations import correlation_length
from .preparation import CUTOFF, prepare
from .read import Source, adapted, as_list
from .recording import Floats
from .samples import Prepared, Samples
from .unknowns import Unknowns, match, sliding

OWN = 5
"""A joint's own columns: viscous, forwards, backwards, offset, reflected inertia"""
COMMON = 3
"""Columns of the friction of a joint whose torque several motors share: viscous, forwards,
backwards; its offset cannot be distinguished from the motors'"""
RANK = 1e-7
"""Fraction of the largest singular value of the scaled body columns; combinations with smaller ones
are not excited"""
STEPS = 60
"""Largest number of Gauss–Newton iterations"""
SMALL = 1e-10
"""Relative step at which the iteration has converged"""
VAGUE = 0.1
"""Relative standard deviation above which a gain is not determined"""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Drive gains: torque over recorded effort by joint, the values of `effort_scale`."""

    gains: dict[str, float]
    """N·m or N per unit of the recorded effort; negative if its sign is inverted. The torque of a
    motor coupled to several joints is that at the joint with which its effort is recorded."""
    deviations: dict[str, float]
    """Standard deviations of the gains"""
    warnings: tuple[str, ...]
    """Joints whose gains the load hardly determines, and what to do"""
    coupled: bool = False
    """Whether a motor is coupled to several joints, so that `identify` needs `motor_efforts`"""


@one_blas_thread()
def drive_gains(
    robot: Mechanism | str | os.PathLike[str],
    unloaded: Source | Sequence[Source],
    loaded: Source | Sequence[Source],
    link: str,
    load: Inertial,
    *,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    position_offset: Mapping[str, float] | None = None,
    cutoff: float | None = CUTOFF,
    progress: Callable[[str], None] | None = None,
) -> DriveGains:
    """Identify each joint's drive gain.

    Args:
        robot: a mechanism, or what `rd.load` takes; its inertial parameters need not be correct.
        unloaded: recordings without the load.
        loaded: recordings with the load, of equally exciting motion.
        link: the link that carries the load.
        load: the load's mass (kg), centre of mass (m) and inertia about it (kg m²), in the link's
            frame.
        topic: a topic of type sensor_msgs/JointState; None: `/joint_states`, or the only such
            topic.
        rename: from joint names in the recordings to those in the description.
        position_offset: by joint, the offset to add to its recorded positions, rad or m.
        cutoff: Hz, the low-pass filter's cut-off; None: no filter.
        progress: called with a short message at each step.

    Raises:
        DescriptionError: the description is broken.
        RecordingError: a recording cannot be used, or the load causes no torque in its motion.
        InputError: the robot has loops or does not have this link, the load has no mass, or it is
            not clear which motor's effort is recorded with a joint (`motors.motor_rows`).
    """
    mechanism = robot if isinstance(robot, Mechanism) else load_description(robot)
    if mechanism.loops:
        raise InputError(
            f"{mechanism.name}: it has loops, expected an open chain", name=mechanism.name
        )
    if not float(load.mass) > 0:
        raise wrong(InputError, "load: mass", float(load.mass), "a known mass > 0 kg")
    taken = []
    for sources, carried in ((unloaded, False), (loaded, True)):
        for source in as_list(sources):
            recording = adapted(source, topic, rename, None, position_offset)
            taken.append((recording, carried))
    if {carried for _, carried in taken} != {False, True}:
        raise InputError(
            "drive gains: expected at least one recording without and one with the load",
            name="recordings",
        )
    joints = match(mechanism, taken[0][0].names)[0].joint_names
    for recording, _ in taken:
        recording.check_names(joints, more=" (the first recording has them)")
    chosen = match(mechanism, joints)[0]
    rows = motor_rows(chosen)
    sums = _GramMatrices(Unknowns.of(chosen), Unknowns.of(chosen, link), load, rows)
    slides = sliding(mechanism, joints)
    for recording, carried in taken:
        if progress is not None:
            progress(f"reducing {recording.source}")
        sums.add(prepare(recording, joints, cutoff, sliding=slides), carried)
    return sums.solved()


class _GramMatrices:
    """For each joint the Gram matrix Σ z zᵀ over the samples, where z = (Y, τ, F, v) is its row."""

    def __init__(self, bodies: Unknowns, carrier: Unknowns, load: Inertial, rows: Floats):
        self.bodies, self.carrier, self.load = bodies, carrier, numbers_of(load)
        self.joints = bodies.joints
        self.rows = rows
        """(n, n), N of `motors.motor_rows`"""
        # the efforts that the motors must produce: v = N⁻ᵀ τ
        self.shares = np.linalg.inv(rows).T
        self.shares[np.abs(self.shares) < 1e-12] = 0.0
        self.shared = [j for j in range(len(rows)) if np.count_nonzero(self.shares[:, j]) > 1]
        """The joints whose torques several motors share"""
        self.p = 10 * len(bodies.bodies) + COMMON * len(self.shared)
        width = self.p + 1 + OWN + 1
        self.gram = np.zeros((len(self.joints), width, width))
        self.count = np.zeros(len(self.joints))
        self.kept: list[tuple[Floats, ...]] = []
        """Some consecutive rows of each joint, for the residuals' autocorrelation"""

    def add(self, prepared: Prepared, carried: bool) -> None:
        """Add a recording.

        Args:
            prepared: the recording.
            carried: whether the robot carries the load.
        """
        for samples in prepared.stretches:
            rows = [*self._rows(samples, carried)]
            for j, Z in enumerate(rows):
                Z = np.where(samples.usable[:, j, None], Z, 0.0)
                self.gram[j] += Z.T @ Z
                self.count[j] += samples.usable[:, j].sum()
            self.kept.append(tuple(Z[-2000:] for Z in rows))

    def _rows(self, samples: Samples, carried: bool) -> list[Floats]:
        Y, _ = self.bodies.rigid(samples)
        carries = np.zeros_like(samples.q)
        if carried:
            Y_load, _ = self.carrier.rigid(samples)
            carries = Y_load @ self.load
        known = np.zeros((*samples.q.shape, self.p + 1))
        bodies = 10 * len(self.bodies.bodies)
        known[..., :bodies], known[..., -1] = Y[..., :bodies], carries
        for k, j in enumerate(self.shared):
            place = slice(bodies + COMMON * k, bodies + COMMON * (k + 1))
            known[:, j, place] = self.bodies.own(samples, j)[:, :COMMON]
        if self.shared:
            known = np.einsum("ij,kjc->kic", self.shares, known)
        found = []
        for j, row in enumerate(self.rows):
            own = [self._motor_friction(samples, j), (samples.qdd @ row)[:, None]]
            effort = np.nan_to_num(samples.tau[:, j, None])
            found.append(np.hstack([known[:, j], *own, effort]))
        return found

    def _motor_friction(self, samples: Samples, j: int) -> Floats:
        """(k, OWN - 1): the friction columns of joint j's motor."""
        row = self.rows[j]
        if np.count_nonzero(row) == 1:
            return self.bodies.own(samples, j)[:, : laws.OFFSET + 1]
        return samples.filtered(lambda qd: laws.raw_columns(qd @ row, True)[:, : laws.OFFSET + 1])

    def solved(self) -> DriveGains:
        """The gains and their standard deviations."""
        n, p = len(self.joints), self.p
        idle = [name for name, each in zip(self.joints, self.gram, strict=True) if not each[-1, -1]]
        if idle:
            raise RecordingError(f"{listed(idle)}: no effort was recorded", name=idle[0])
        if not self.gram[:, p, p].any():
            raise RecordingError("the load causes no torque in the recorded motion", name="load")
        start = [self._one_joint(G) for G in self._combined]
        sigma2 = np.array([noise for _, noise in start])
        s = self._initial_inverse_gains([inverse for inverse, _ in start])
        x = self._linear(np.concatenate([s, np.zeros(self._basis.shape[1] + n * OWN)]), sigma2)
        # a Gram matrix is RᵀR
        reduced = [root_of(G).T for G in self._combined]
        for _ in range(STEPS):
            J, r = self._jacobian(x, reduced, np.sqrt(sigma2))
            step = np.linalg.lstsq(J, -r, 1e-12)[0]
            x = x + step
            if np.abs(step[:n]).max() <= SMALL * np.abs(x[:n]).max():
                break
        J, _ = self._jacobian(x, reduced, np.sqrt(sigma2))
        return self._result(x, J)

    @cached_property
    def _basis(self) -> Floats:
        """(p, m): the combinations of φ that the motion excites."""
        p = self.p
        # each joint is scaled by the size of its efforts
        whole = sum(each[:p, :p] / max(each[-1, -1], 1e-300) for each in self.gram)
        scale = np.sqrt(np.maximum(np.diag(whole), 0.0))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        values, vectors = np.linalg.eigh(inverse[:, None] * whole * inverse)
        kept = values > RANK**2 * max(float(values[-1]), 1e-300)
        basis: Floats = inverse[:, None] * vectors[:, kept]
        return basis

    @cached_property
    def _combined(self) -> list[Floats]:
        """By joint, the Gram matrix with the columns of φ combined by `_basis`."""
        return [_with_columns(gram, self._basis) for gram in self.gram]

    def _one_joint(self, G: Floats) -> tuple[tuple[float, float], float]:
        """((s_j, its variance), noise σ²) of one joint, fitted alone, which is a linear problem."""
        k = self._basis.shape[1]
        x, variances, left = _regression(G)
        count = max(float(self.count.max()), 1.0)
        noise = max(left, 1e-14)
        told = G[k, k] > 0
        variance = max(float(variances[k]), 0.0) * noise / count
        return (
            (float(x[k]), variance) if told else (0.0, np.inf),
            noise * float(G[-1, -1]) / count,
        )

    def _initial_inverse_gains(self, alone: list[tuple[float, float]]) -> Floats:
        """s (n,); at joints on which the load has little effect, it follows from the bodies found
        with the other joints."""
        values = np.array([value for value, _ in alone])
        vague = np.array(
            [not variance < (0.3 * value) ** 2 for value, variance in alone], dtype=bool
        )
        if vague.all():
            raise RecordingError(
                "the load is too light, or moves too little, to determine any gain", name="load"
            )
        if not vague.any():
            return values
        n, m = len(values), self._basis.shape[1]
        sigma2 = np.array([max(each[-1, -1], 1e-300) for each in self.gram])
        sigma2[vague] = np.inf
        x = np.concatenate([np.where(vague, 0.0, values), np.zeros(m + n * OWN)])
        phi = self._basis @ self._linear(x, sigma2)[n : n + m]
        for j in np.flatnonzero(vague):
            values[j] = _regression(_with_columns(self.gram[j], np.append(phi, 1.0)[:, None]))[0][0]
        return values

    def _linear(self, x: Floats, sigma2: Floats) -> Floats:
        """Solve for φ and f with the given s of x."""
        n, m = len(self.joints), self._basis.shape[1]
        size = m + n * OWN
        A, b = np.zeros((size, size)), np.zeros(size)
        for j, G in enumerate(self._combined):
            T = np.zeros((len(G), size))
            T[:m, :m] = x[j] * np.eye(m)
            T[m + 1 : -1, m + j * OWN : m + (j + 1) * OWN] = np.eye(OWN)
            right = G[:, -1] - x[j] * G[:, m]
            A += T.T @ G @ T / sigma2[j]
            b += T.T @ right / sigma2[j]
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        y = np.linalg.pinv(A / np.outer(scale, scale), 1e-13, hermitian=True) @ (b / scale)
        return np.concatenate([x[:n], y / scale])

    def _own(self, j: int) -> slice:
        """The places in x of joint j's own parameters f_j."""
        begin = len(self.joints) + self._basis.shape[1] + j * OWN
        return slice(begin, begin + OWN)

    def _jacobian(self, x: Floats, reduced: list[Floats], sigma: Floats) -> tuple[Floats, Floats]:
        """(J, r) of all joints' residuals s_j (Y_j φ + τ_j) + F_j f_j - v_j, divided by σ_j."""
        n, m = len(self.joints), self._basis.shape[1]
        phi = np.append(x[n : n + m], 1.0)
        Js, rs = [], []
        for j, R in enumerate(reduced):
            J = np.zeros((len(R), len(x)))
            J[:, j] = R[:, : m + 1] @ phi
            J[:, n : n + m] = x[j] * R[:, :m]
            J[:, self._own(j)] = R[:, m + 1 : -1]
            Js.append(J / sigma[j])
            rs.append((x[j] * J[:, j] + R[:, m + 1 : -1] @ x[self._own(j)] - R[:, -1]) / sigma[j])
        return np.vstack(Js), np.concatenate(rs)

    def _result(self, x: Floats, J: Floats) -> DriveGains:
        n, p = len(self.joints), self.p
        covariance = np.linalg.pinv(J.T @ J, 1e-14, hermitian=True)
        phi = np.append(self._basis @ x[n : n + self._basis.shape[1]], 1.0)
        deviations, gains, words = {}, {}, []
        for j, name in enumerate(self.joints):
            residuals = [
                Z[j][:, : p + 1] @ phi * x[j] + Z[j][:, p + 1 : -1] @ x[self._own(j)] - Z[j][:, -1]
                for Z in self.kept
            ]
            slow = np.mean([max(1.0, correlation_length(each)) for each in residuals])
            deviation = float(np.sqrt(max(covariance[j, j], 0.0) * slow))
            gains[name] = float(1 / x[j]) if x[j] else float("inf")
            deviations[name] = abs(gains[name]) * deviation / max(abs(x[j]), 1e-300)
            if not deviations[name] < VAGUE * abs(gains[name]):
                words.append(
                    f"{name}: its gain is poorly determined by the load ({gains[name]:.3g} ± "
                    f"{deviations[name]:.2g}): move it more, or mount the load off its axis"
                )
        return DriveGains(gains, deviations, tuple(words), bool(self.shared))


def _with_columns(gram: Floats, B: Floats) -> Floats:
    """The Gram matrix of rows whose first columns are replaced by these columns times B."""
    p, m = B.shape
    T = np.zeros((len(gram), m + len(gram) - p))
    T[:p, :m] = B
    T[p:, m:] = np.eye(len(gram) - p)
    combined: Floats = T.T @ gram @ T
    return combined


def _regression(G: Floats) -> tuple[Floats, Floats, float]:
    """(x, their variances, the error) of the last column's regression on the others.

    Variances and error are relative to the sum of squares of the last column.

    Args:
        G: the Gram matrix.
    """
    scale = np.sqrt(np.maximum(np.diag(G), 1e-300))
    scaled = G / np.outer(scale, scale)
    inverse = np.linalg.pinv(scaled[:-1, :-1], 1e-12, hermitian=True)
    x, factor = inverse @ scaled[:-1, -1], scale[-1] / scale[:-1]
    error = float(scaled[-1, -1] - scaled[:-1, -1] @ x)
    return x * factor, np.diag(inverse) * factor**2, error
