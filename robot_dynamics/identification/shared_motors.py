# SPDX-License-Identifier: Apache-2.0
"""Detects motors that appear to turn two joints, as in many wrists, but are not described so.

The torque of such a motor, with friction f and rotor inertia J, depends on both joints' rates:

    τ = f(s) + J ṡ,   s = q̇_j ± q̇_i

A joint's residual torque is fitted to these columns and to those of the joint alone, and judged on
motion that was not fitted.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import listed
from ..mechanism import Mechanism
from .recording import Floats
from .samples import Samples

FARTHEST = 2
"""Places in the order of joints between two that share a motor: in a wrist, at most one joint is
between them"""
HALF = 0.5
"""Part of the squared residual that the other joint's motion must explain"""


@dataclass(frozen=True)
class SharedMotor:
    """A joint whose residual torque follows the rate of another joint."""

    joint: str
    pair: tuple[str, str]
    """Both joints, in the order of the robot's"""
    mount: str
    """The link on which the motor may be mounted"""
    same: bool
    """Whether s = q̇_j + q̇_i; otherwise s = q̇_j - q̇_i"""
    before: float
    """Relative RMS error of the model"""
    after: float
    """The same with the motor's columns"""


def words(found: Iterable[SharedMotor]) -> dict[str, str]:
    """By joint, one line for the user, the same for the two joints of a motor."""
    together: dict[tuple[str, str], list[SharedMotor]] = {}
    for each in found:
        together.setdefault(each.pair, []).append(each)
    return {each.joint: _line(some) for some in together.values() for each in some}


def _line(some: Sequence[SharedMotor]) -> str:
    """One line for one or both joints of a motor."""
    first, second = some[0].pair
    ratios = {first: 100, second: 100 if some[0].same else -100}
    motor = {"wrist_motor": {"mount": some[0].mount, "gear_ratio": ratios}}
    left, less = (
        listed(f"{100 * error:{'.0f' if error >= 0.1 else '.2g'}} %" for error in errors)
        for errors in ([each.before for each in some], [each.after for each in some])
    )
    return (
        f"{listed(each.joint for each in some)}: the model leaves {left} of the torque "
        f"unexplained, but only {less} if a motor turns both {first} and {second}, as in many "
        "wrists. If so, describe it in a YAML file next to the URDF, with the ratios of its gears: "
        f"`rotors: {json.dumps(motor, ensure_ascii=False)}`"
    )


def shared_motors(
    mechanism: Mechanism, tested: Collection[str], samples: Samples, residual: Floats
) -> Iterator[SharedMotor]:
    """The joints whose residual torque follows the rate of another joint.

    Args:
        mechanism: the identified robot.
        tested: the joints to test.
        samples: the motion.
        residual: (k, n), measured minus modelled torque, N·m or N.
    """
    joints = mechanism.joint_names
    turning = [i for i, joint in enumerate(joints) if mechanism.joint(joint).turns]
    known = {frozenset(joint for joint, _ in rotor.ratios) for rotor in mechanism.rotors}
    for j in (j for j in turning if joints[j] in tested):
        usable = samples.usable[:, j]
        r, tau = residual[usable, j], samples.tau[usable, j]
        qd, qdd = samples.qd[usable], samples.qdd[usable]
        own = _columns(qd[:, j], qdd[:, j])
        whole = float(r @ r)
        alone = min(whole, _error([own], r))
        tried = [
            (_error([own, _columns(qd[:, j] + z * qd[:, i], qdd[:, j] + z * qdd[:, i])], r), i, z)
            for i, z in itertools.product(turning, (1, -1))
            if 0 < abs(i - j) <= FARTHEST
            and not any({joints[i], joints[j]} <= each for each in known)
        ]  # fmt: skip
        error, i, z = min(tried, default=(alone, j, 1))
        if error < HALF * alone:
            pair, square = (joints[min(i, j)], joints[max(i, j)]), float(tau @ tau)
            mount = next(link.parent for link in mechanism.links if link.joint.name == pair[0])
            before, after = (math.sqrt(each / square) for each in (whole, error))
            yield SharedMotor(joints[j], pair, mount, z > 0, before, after)


def _columns(rate: Floats, acceleration: Floats) -> Floats:
    """(k, 4): viscous and Coulomb friction, inertia, and an offset."""
    return np.column_stack([rate, np.sign(rate), acceleration, np.ones(len(rate))])


def _error(columns: Sequence[Floats], r: Floats) -> float:
    """The squared error of r (k,), each half predicted by the fit to the other half."""
    A, half = np.hstack(columns), len(r) // 2
    halves, error = (slice(half), slice(half, None)), 0.0
    for fitted, judged in (halves, halves[::-1]):
        x = np.linalg.lstsq(A[fitted], r[fitted], rcond=None)[0]
        error += float(np.square(r[judged] - A[judged] @ x).sum())
    return error
