# SPDX-License-Identifier: Apache-2.0
"""The requirements of a motion on joints and motors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ...dynamics import InverseDynamics
from ...dynamics.motors import gear_matrix
from ...errors import ClosureWarning, InputError
from ...motion.trajectory import States
from ...scalar import Floats


@dataclass(frozen=True, eq=False)
class Drive:
    """A joint with a motor, or a motor, along a motion; NaN for states that cannot be reached."""

    name: str
    time: Floats
    """(m,), s"""
    torque: Floats
    """(m,), N·m or N"""
    rate: Floats
    """(m,), rad/s or m/s"""
    units: tuple[str, str]
    """The units of torque and rate"""
    most_torque: float | None = None
    """The torque limit; None: not known"""
    most_rate: float | None = None
    """The rate limit; None: not known"""
    place: Floats | None = None
    """(m,) positions, rad or m"""
    ends: tuple[float | None, float | None] = (None, None)
    """The limits of the position"""

    @property
    def power(self) -> Floats:
        """The power τ q̇ (m,), W."""
        return self.torque * self.rate

    @property
    def rms(self) -> float:
        """The root mean square of the torque over time, N·m or N."""
        return float(np.sqrt(self._over_time(self.torque**2) / self._duration))

    @property
    def driven(self) -> float:
        """The energy that it delivers, J."""
        return self._over_time(np.maximum(self.power, 0.0))

    @property
    def braked(self) -> float:
        """The energy that it absorbs, J, at least 0."""
        return self._over_time(np.maximum(-self.power, 0.0))

    def peak(self, values: Floats) -> float:
        """The largest magnitude of the finite values; NaN if there are none."""
        sound = values[np.isfinite(values)]
        return float(np.abs(sound).max()) if len(sound) else float("nan")

    @property
    def torque_share(self) -> float | None:
        """The peak torque as a fraction of its limit; None: no limit is known."""
        return None if not self.most_torque else self.peak(self.torque) / self.most_torque

    @property
    def rate_share(self) -> float | None:
        """The peak rate as a fraction of its limit; None: no limit is known."""
        return None if not self.most_rate else self.peak(self.rate) / self.most_rate

    @property
    def beyond(self) -> list[str]:
        """The quantities that exceed their limits, one line each."""
        found = []
        for what, values, most, unit in (
            ("torque", self.torque, self.most_torque, self.units[0]),
            ("rate", self.rate, self.most_rate, self.units[1]),
        ):
            if most is not None and (over := np.abs(values) > most).any():
                first = float(self.time[int(np.argmax(over))])
                found.append(
                    f"{self.name}: {what} {self.peak(values):.4g} {unit} is beyond its limit of "
                    f"{most:.4g} {unit}, first at {first:.4g} s"
                )
        if self.place is not None:
            low, high = self.ends
            outside = np.zeros(len(self.time), dtype=bool)
            outside |= False if low is None else self.place < low
            outside |= False if high is None else self.place > high
            if outside.any():
                k = int(np.argmax(outside))
                found.append(
                    f"{self.name}: position {self.place[k]:.4g} is beyond its limits "
                    f"[{_end(low)}, {_end(high)}], first at {self.time[k]:.4g} s"
                )
        return found

    def _over_time(self, values: Floats) -> float:
        # ∫ by the trapezoidal rule, without intervals that have an unknown end point
        parts = (values[1:] + values[:-1]) / 2 * np.diff(self.time)
        return float(np.nansum(parts))

    @property
    def _duration(self) -> float:
        known = np.isfinite(self.torque[1:] + self.torque[:-1])
        return float(np.diff(self.time)[known].sum()) or float("nan")


def _end(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


@dataclass(frozen=True, eq=False)
class Drives:
    """The requirements on all joints and motors of a robot."""

    joints: tuple[Drive, ...]
    motors: tuple[Drive, ...]
    """Electromagnetic torques at the motors' shafts; empty: no motor is known"""
    coordinates: tuple[str, ...]
    """The joints whose motion is given"""
    lost: int
    """The number of states that the robot cannot reach"""
    why: str = ""
    """The reason why it cannot reach them"""

    @property
    def energy(self) -> float:
        """The energy that the joints' motors deliver, minus what they absorb, J."""
        return sum(drive.driven - drive.braked for drive in self.joints)


def drives(dynamics: InverseDynamics, motion: States) -> Drives:
    """The requirements of a motion on each joint and motor.

    Args:
        dynamics: the robot.
        motion: the motion of the joints `dynamics.joint_names`.

    Raises:
        InputError: the robot cannot reach any state of the motion.
    """
    mechanism = dynamics.mechanism
    q, qd, qdd = motion.q, motion.qd, motion.qdd
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ClosureWarning)
        tau = dynamics(q, qd, qdd)
    why = next((str(w.message) for w in caught if issubclass(w.category, ClosureWarning)), "")
    sound = np.isfinite(tau).all(axis=-1)
    if not sound.any():
        raise InputError(
            f"{motion.source}: the robot cannot reach any of its states: {why}", name=motion.source
        )
    places, rates = np.full((2, len(q), len(mechanism.joint_names)), np.nan)
    places[sound], rates[sound], _ = dynamics.tree_state(q[sound], qd[sound], qdd[sound])
    joints = []
    for name, tau_j in zip(dynamics.actuated_names, tau.T, strict=True):
        j, joint = mechanism.joint_names.index(name), mechanism.joint(name)
        ends = joint.ends
        joints.append(
            Drive(
                name,
                motion.time,
                tau_j,
                rates[:, j],
                (joint.effort_unit, f"{joint.unit}/s"),
                ends.effort,
                ends.velocity,
                places[:, j],
                (ends.lower, ends.upper),
            )
        )
    motors: list[Drive] = []
    if dynamics.motor_names:
        drive = np.full((len(q), len(dynamics.motor_names)), np.nan)
        drive[sound] = dynamics.motor_torques(q[sound], qd[sound], qdd[sound]).drive
        # rotor rates are Γ q̇
        spins = rates @ gear_matrix(mechanism).T
        for k, name in enumerate(dynamics.motor_names):
            motors.append(Drive(name, motion.time, drive[:, k], spins[:, k], ("N·m", "rad/s")))
    lost = int((~sound).sum())
    return Drives(tuple(joints), tuple(motors), dynamics.joint_names, lost, why)
