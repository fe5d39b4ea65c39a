# SPDX-License-Identifier: Apache-2.0
"""Monitors a model during operation: load and friction, by least squares with forgetting.

Blocks of the reported joint states are reduced to normal equations, in which older blocks have less
weight. The proposed parameters (one link's body, including its load, and each joint's friction) are
evaluated on the blocks that follow, and are proven once their error is clearly smaller than that of
the model in force. Parameters are adopted only on request, and only if proven.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, choices, wrong
from ..mechanism import Mechanism
from ..mechanism.dynamic_parameters import BODY, body_of
from ..mechanism.transform import with_parts
from .band import Needed, counted, root_of
from .bodies import reference
from .delays import even_with_efforts
from .fleet import one_blas_thread
from .friction_laws import heading
from .motor_efforts import at_joints, motor_rows
from .normal_equations import correlation_length
from .preparation import CUTOFF
from .recording import Floats, Recording
from .samples import joined
from .solve import Prior, inverted, minimise
from .unknowns import Unknowns, sliding

GAMMA = 1e-2
"""The weight of the described body, which is small because the load is what changes"""
BLOCKS = 3
"""Number of evaluations of proposals that are needed before one can be proven"""
BETTER = 0.9
"""Largest ratio of a proven proposal's error to that of the model in force, over all joints"""
WORSE = 1.05
"""Largest ratio of a proven proposal's error to that of the model in force, at any one joint"""
CHANGED = 2.0
"""If the estimate's error on the newest block is larger than this multiple of the error of the
block's own fit, the robot has changed"""
UNCHANGED = 1e-3
"""Fraction of the samples that count as if they had also shown, at 1 rad/s or 1 m/s, that friction
has not changed: a joint that hardly moved tells little about its friction"""
REWEIGHTINGS = 3
"""Fits of a block to itself, each weighted by the noise that the one before left at each joint"""
OWN = 3
"""A joint's own columns: viscous, Coulomb, offset"""


@dataclass(frozen=True)
class Number:
    """One parameter: its estimate, its value in the current model, and its standard deviation."""

    value: float
    """SI units, as for all three"""
    in_force: float
    """The value in the current model"""
    deviation: float
    """Standard deviation of the estimate"""


@dataclass(frozen=True)
class Prediction:
    """One joint's torque, predicted before its block was used, with its band (see `band`)."""

    value: float
    """N·m or N, as for all three, in the newest state of the block"""
    deviation: float
    """Standard deviation of the measured torque about the prediction"""
    measured: float
    inside: float
    """Fraction of the block's measured torques within two deviations"""


@dataclass(frozen=True, eq=False)
class Estimate:
    """The current estimate."""

    numbers: dict[str, Number]
    """By name: the link's ten parameters, about its origin, and each joint's friction. Offsets are
    reported but not adopted"""
    missed: dict[str, float]
    """By joint, N·m or N: RMS error of the model in force on the evaluated blocks"""
    proposed: dict[str, float]
    """By joint, N·m or N: RMS error on these blocks of the parameters proposed before each one"""
    torques: dict[str, Prediction]
    """By joint; empty until a block has shown how accurate predictions are"""
    why_not: str
    """Why it is not proven; empty if it is"""

    @property
    def proven(self) -> bool:
        """Whether it may be adopted."""
        return not self.why_not


class Watch:
    """Estimates load and friction from blocks of a robot's recorded motion.

    Args:
        mechanism: the model in force, an open chain.
        link: the moving link whose body, with its load, may change.
        memory: s of motion after which a block's weight has decayed to 1/e.
        motor_efforts: whether efforts are those of the motors, as for `identify`.

    Raises:
        InputError: the robot has loops or does not have this moving link, the memory is not
            positive, or it is not clear which motor's effort is recorded with a joint.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        link: str,
        memory: float = 60.0,
        *,
        motor_efforts: bool = False,
    ):
        if mechanism.loops:
            raise InputError(
                f"{mechanism.name}: it has loops, expected an open chain", name="loops"
            )
        if not (np.isfinite(memory) and memory > 0):
            raise wrong(InputError, "memory", memory, "a positive number of seconds")
        names = [each.name for each in mechanism.moving]
        if link not in names:
            raise wrong(InputError, "watched link", link, choices(names))
        if motor_efforts:
            motor_rows(mechanism)
        self.link, self.memory, self._motor_efforts = link, float(memory), motor_efforts
        self._begin(mechanism)

    def _begin(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._unknowns = Unknowns.of(mechanism, self.link)
        n = len(self._unknowns.joints)
        self._size = 10 + OWN * n
        self._forget()
        described = self._unknowns.described
        total = sum(float(each.inertial.mass) for each in mechanism.links)
        self._reference = reference(described, 0.01 * total if total > 0 else 1.0, 0.1)
        self._x0 = np.concatenate([described, np.zeros(OWN * n)])
        laws = [mechanism.joint(joint).friction for joint in self._unknowns.joints]
        # by how much each may be less before friction drives its joint
        self._friction = np.array(
            [
                [law.viscous, min(law.coulomb, law.coulomb_backwards) + min(law.stribeck_torque, 0)]
                for law in laws
            ],
            dtype=float,
        )
        self._x: Floats | None = None
        self._root = np.zeros((self._size, self._size))
        self._torques: dict[str, Prediction] = {}
        self._judged = np.zeros((2, n))
        self._count, self._blocks = 0.0, 0

    def _forget(self) -> None:
        """Discard the blocks so far."""
        self._gram = np.zeros((self._size, self._size))
        self._moment = np.zeros(self._size)
        self._sigma2 = np.zeros(len(self._unknowns.joints))
        self._weight = 0.0
        self._needed: Needed | None = None

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints that every block must contain."""
        return self._unknowns.joints

    @one_blas_thread()
    def add(self, block: Recording, cutoff: float | None = CUTOFF) -> Estimate:
        """Add a block of some seconds of motion, which is used first for evaluation and then for
        estimation. If the robot has clearly changed, older blocks are no longer used.

        Args:
            block: the recorded motion.
            cutoff: Hz, the low-pass filter's cut-off; None: no filter.

        Raises:
            RecordingError: the block cannot be used: at rest, too short, or without efforts.
        """
        if self._motor_efforts:
            block = at_joints(block, self.mechanism)
        slides = sliding(self.mechanism, self.joints)
        prepared = even_with_efforts(block, self.joints, slides, self._unknowns).filtered(cutoff)
        samples = joined(prepared.stretches)
        Y, known = self._unknowns.rigid(samples)
        A = np.zeros((*samples.q.shape, self._size))
        A[:, :, :10] = Y
        for j, name in enumerate(self.joints):
            qd, qdd = samples.qd[:, j], samples.qdd[:, j]
            own = slice(10 + OWN * j, 10 + OWN * (j + 1))
            z = heading(self.mechanism.joint(name).friction, qd, qdd)
            A[:, j, own] = np.column_stack([qd, z, np.ones_like(qd)])
        good = samples.usable & np.isfinite(samples.unfiltered)
        tau = np.where(good, samples.unfiltered - known, 0.0)
        forget = float(np.exp(-prepared.duration / self.memory))
        self._judge(A, tau, good, forget)
        self._predict(A, tau, known, good, forget)
        self._take(A, tau, good, forget)
        return self._estimate()

    def _judge(self, A: Floats, tau: Floats, good: Floats, forget: float) -> None:
        """Evaluate the model in force and the latest proposal on a new block."""
        if self._x is None:
            return
        proposed = self._adoptable(self._x)
        squares = [_mean_square(tau - A @ x, good) for x in (self._x0, proposed)]
        self._judged = forget * self._judged + np.array(squares)
        self._count = forget * self._count + 1.0
        self._blocks += 1

    def _predict(
        self, A: Floats, tau: Floats, known: Floats, good: NDArray[np.bool_], forget: float
    ) -> None:
        """Predict a new block's torques with the estimate so far, and calibrate the band."""
        self._torques = {}
        if self._x is None:
            return
        if self._needed is None:  # the histograms of all blocks have one unit
            self._unit = np.sqrt(self._sigma2 / self._weight)
        # deviation² = y C yᵀ + s²
        left, variance = tau - A @ self._x, ((A @ self._root) ** 2).sum(axis=-1)
        new, old = counted(left, variance, good, self._unit), self._needed
        if old is None:
            self._needed = new
            return
        self._needed = Needed(
            forget * old.counts + new.counts,
            forget * old.sizes + new.sizes,
            forget * old.independent + new.independent,
        )
        deviation = np.sqrt(variance + old.residual(self._unit) ** 2)
        inside = (good & (abs(left) < 2 * deviation)).sum(axis=0) / np.maximum(good.sum(axis=0), 1)
        # a joint without efforts, now or in the blocks before, has none
        for j in np.flatnonzero((good & np.isfinite(deviation)).any(axis=0)):
            k = np.flatnonzero(good[:, j])[-1]
            measured = known[k, j] + tau[k, j]
            each = measured - left[k, j], deviation[k, j], measured, inside[j]
            self._torques[self.joints[j]] = Prediction(*map(float, each))

    def _take(self, A: Floats, tau: Floats, good: Floats, forget: float) -> None:
        """Add a block to the sums; if it contradicts the older ones, they are discarded."""
        noise, variance = self._noise(A, tau, good)
        self._add(A, tau, good, variance, forget)
        missed = _mean_square(tau - A @ self._fitted()[0], good)
        if (missed / noise)[good.any(axis=0)].mean() > CHANGED**2:
            self._forget()
            self._add(A, tau, good, variance, forget)

    def _noise(self, A: Floats, tau: Floats, good: Floats) -> tuple[Floats, Floats]:
        """(mean squares (n,) that a block's own fit misses, variances (n,) of the noise, as if
        samples were independent)."""
        floor = 1e-12 * max(float((tau**2).mean()), 1e-300)
        noise = np.full(len(self.joints), floor)
        for _ in range(REWEIGHTINGS):
            root = (good / np.sqrt(noise))[..., None]
            own = np.linalg.lstsq(
                (A * root).reshape(-1, self._size), (tau[..., None] * root).ravel(), 1e-9
            )[0]
            noise = np.maximum(_mean_square(tau - A @ own, good), floor)
        residual = np.where(good, tau - A @ own, 0.0)
        # all samples within the longest joint's correlation time count as one: a block is too short
        # to tell each joint's
        length = max(1.0, *(correlation_length(each) for each in residual.T))
        return noise, noise * length

    def _add(self, A: Floats, tau: Floats, good: Floats, variance: Floats, forget: float) -> None:
        self._sigma2 = forget * self._sigma2 + variance
        self._weight = forget * self._weight + 1.0
        root = np.sqrt(good / (self._sigma2 / self._weight))
        M = (A * root[..., None]).reshape(-1, self._size)
        self._gram = forget * self._gram + M.T @ M
        self._moment = forget * self._moment + M.T @ (tau * root).ravel()

    def _adoptable(self, x: Floats) -> Floats:
        """The parameters without offsets, which URDF cannot express, and without friction that
        drives."""
        out: Floats = x.copy()
        for k in range(OWN - 1):
            own = slice(10 + k, None, OWN)
            out[own] = np.maximum(x[own], -self._friction[:, k])
        out[10 + OWN - 1 :: OWN] = 0.0
        return out

    def _estimate(self) -> Estimate:
        self._x, H = self._fitted()
        covariance = inverted(H)
        self._root = root_of(covariance)
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        numbers = {
            f"{self.link}.{name}": Number(
                float(self._x[k]), float(self._x0[k]), float(deviations[k])
            )
            for k, name in enumerate(BODY)
        }
        for j, joint in enumerate(self.joints):
            law = self.mechanism.joint(joint).friction
            for k, name in enumerate(("viscous", "coulomb", "offset")):
                at, base = 10 + OWN * j + k, float(law.numbers.get(name, 0.0))
                numbers[f"{joint}.{name}"] = Number(
                    base + float(self._x[at]), base, float(deviations[at])
                )
        rms = np.sqrt(self._judged / max(self._count, 1e-300))
        missed, proposed = (dict(zip(self.joints, each.tolist(), strict=True)) for each in rms)
        return Estimate(numbers, missed, proposed, self._torques, self._why_not(numbers))

    def _fitted(self) -> tuple[Floats, Floats]:
        """(x, Hessian) of the fit to the sums."""
        samples = np.diag(self._gram)[10 + OWN - 1 :: OWN]
        # also for a joint without efforts, of which nothing is known
        samples = np.maximum(samples, max(UNCHANGED * samples.max(), 1e-300))
        tight = np.repeat(UNCHANGED * samples, OWN)
        return minimise(self._gram, self._moment, Prior((self._reference,), tight), GAMMA)

    def _why_not(self, numbers: dict[str, Number]) -> str:
        if self._blocks < BLOCKS:
            return f"evaluated on {self._blocks} of {BLOCKS} blocks"
        before, after = self._judged
        told = before > 0  # the error of a joint without efforts is 0
        share = float(np.sqrt((after[told] / before[told]).mean())) if told.any() else 1.0
        if share > BETTER:
            return f"its error is {share:.2f} of the current model's, expected at most {BETTER:g}"
        for joint, one, other in zip(self.joints, before, after, strict=True):
            if other > WORSE**2 * one:
                return f"{joint}: its error is larger than the current model's"
        for name, number in numbers.items():
            driving = number.value < -4 * number.deviation
            if driving and name.endswith((".viscous", ".coulomb")):
                return f"{name}: {number.value:.3g} would drive the joint"
        return ""

    def adopted(self) -> Mechanism:
        """Adopt the proven parameters. The new model is then in force, and estimation starts again.

        Raises:
            InputError: nothing is proven.
        """
        if self._x is None:
            raise InputError("nothing to adopt: no motion has been recorded yet", name="adopt")
        estimate = self._estimate()
        if not estimate.proven:
            raise InputError(f"not proven, not adopted: {estimate.why_not}", name="adopt")
        x, frictions = self._adoptable(self._x), {}
        for j, name in enumerate(self.joints):
            law = self.mechanism.joint(name).friction
            viscous, coulomb = x[10 + OWN * j : 12 + OWN * j].tolist()
            plain = replace(law, viscous=law.viscous + viscous, coulomb=law.coulomb + coulomb)
            if law.coulomb_negative is not None:
                plain = replace(plain, coulomb_negative=law.coulomb_negative + coulomb)
            frictions[name] = plain
        self._begin(with_parts(self.mechanism, {self.link: body_of(x[:10])}, frictions))
        return self.mechanism


def _mean_square(errors: Floats, good: Floats) -> Floats:
    """(n,): by joint, over the usable samples."""
    mean: Floats = np.where(good, errors**2, 0.0).sum(axis=0) / np.maximum(good.sum(axis=0), 1)
    return mean
