# SPDX-License-Identifier: Apache-2.0
"""A simulated robot with a PD joint controller, external torques, a delay and brakes, without ROS.

    tau = Kp (q_d - q) + Kd (qd_d - qd) + efforts

It is computed once per period and then held, as a ros2_control effort controller does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import InverseDynamics
from ..errors import InputError, counted, wrong
from ..mechanism import Mechanism
from ..scalar import Floats
from .physics import Simulation

FAR_ABOVE_FRICTION = 1e7
"""N·m or N, in comparison with which dry friction is negligible"""


@dataclass(frozen=True, eq=False)
class Sample:
    """One period: the state at its start, and the torques (n_actuated,) held during it."""

    time: float
    """s"""
    q: Floats
    """(n,), rad or m, in the order of the simulation's `joint_names`"""
    qd: Floats
    """(n,), rad/s or m/s"""
    feedback: Floats
    """Torques of the PD controller, N·m or N"""
    efforts: Floats
    """External torques, N·m or N"""


def pd_gains(dynamics: InverseDynamics, q: ArrayLike, bandwidth: float) -> tuple[Floats, Floats]:
    """Kp and Kd (n_actuated,) with which each joint by itself is critically damped at q.

    Args:
        dynamics: the dynamics of the robot.
        q: (n,) positions in the order of `dynamics.joint_names`, rad or m.
        bandwidth: w, rad/s.
    """
    # Kp = w² D_jj,  Kd = 2 w D_jj
    diagonal = np.diag(dynamics.mass_matrix(q))
    return bandwidth**2 * diagonal, 2 * bandwidth * diagonal


class TrackedRobot:
    """A simulation with its own PD controller on the actuated joints.

    Args:
        mechanism: the robot, as from `rd.load`.
        joints: the actuated joints in the order of gains, efforts and desired states; empty:
            `mechanism.actuated_names`.
        period: the period of the controller, s.
        timestep: largest time step of the integrator, s; a period is a whole number of steps.
        p_gains: Kp, N·m/rad or N/m, one per joint or one for all.
        d_gains: Kd, N·m·s/rad or N·s/m, likewise.
        delay: number of periods between a state and the first use of the external torques computed
            from it.
        start: (n,) initial positions in the order of the mechanism's `joint_names`, rad or m;
            None: its `home`.

    Raises:
        InputError: an unknown joint, a wrong count, a negative gain, delay or period.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        joints: Sequence[str] = (),
        period: float = 2e-3,
        timestep: float = 2e-4,
        p_gains: Sequence[float] = (0.0,),
        d_gains: Sequence[float] = (0.0,),
        delay: int = 0,
        start: ArrayLike | None = None,
    ):
        for name, value in (("period", period), ("timestep", timestep)):
            if not (np.isfinite(value) and value > 0):
                raise wrong(InputError, name, value, "a positive number of seconds")
        if delay < 0:
            raise wrong(InputError, "delay", delay, "0, 1, 2 … periods")
        self.joints = tuple(joints) or mechanism.actuated_names
        for joint in self.joints:
            if joint not in mechanism.joint_names:
                expected = "any of " + ", ".join(mechanism.joint_names)
                raise wrong(InputError, "joints", joint, expected)
        if len(set(self.joints)) != len(self.joints):
            raise wrong(InputError, "joints", list(self.joints), "every joint once")
        self.period = period
        self._steps = max(1, int(np.ceil(period / timestep - 1e-9)))
        self.simulation = Simulation(mechanism, timestep=period / self._steps)
        self.simulation.reset(start)
        self._places = [mechanism.joint_names.index(joint) for joint in self.joints]
        self._p = self._gains("p_gains", p_gains)
        self._d = self._gains("d_gains", d_gains)
        # the external torques computed from the last states, oldest first
        self._pending_efforts = deque([np.zeros(len(self.joints))] * (delay + 1), maxlen=delay + 1)
        self._periods = 0

    @property
    def feeds_back(self) -> bool:
        """Whether any gain is nonzero."""
        return bool(np.any(self._p) or np.any(self._d))

    def growth(self, period: float | None = None) -> float:
        """The factor by which the fastest-growing error of the PD loop grows in a period.

        It is the growth factor of the loop without external torques, linearised about the present
        position at rest, without gravity and friction. Above 1 the sampled loop is unstable, even
        if the continuous one is stable.

        Args:
            period: the period of the controller, s; None: that of this robot.
        """
        h, n = self.period if period is None else period, len(self.joints)
        inverse = self._inverse_inertia()
        identity, zero = np.eye(n), np.zeros((n, n))
        # q̈ = -D⁻¹ (Kp e + Kd ė) is constant for h:  e += h ė + h²/2 q̈,  ė += h q̈
        accelerations = -inverse @ np.hstack([np.diag(self._p), np.diag(self._d)])
        free = np.block([[identity, h * identity], [zero, identity]])
        held = np.vstack([h * h / 2 * identity, h * identity])
        return float(np.abs(np.linalg.eigvals(free + held @ accelerations)).max())

    def _inverse_inertia(self) -> Floats:
        """D⁻¹ of `joints` in the present state, with loops closed."""
        columns = []
        for place in self._places:
            tau = np.zeros(len(self.simulation.joint_names))
            tau[place] = FAR_ABOVE_FRICTION
            # gravity cancels, and dry friction is negligible compared with such torques
            either = self.simulation.accelerations(tau) - self.simulation.accelerations(-tau)
            columns.append(either[self._places] / (2 * FAR_ABOVE_FRICTION))
        return np.column_stack(columns)

    @property
    def time(self) -> float:
        """The time after all periods so far, s."""
        return self._periods * self.period

    def wait(self, efforts: ArrayLike) -> Sample:
        """One period with the brakes on, in which the robot does not move.

        Args:
            efforts: (n_actuated,) external torques, N·m or N, which are only stored for use after
                the delay.
        """
        nothing = np.zeros(len(self.joints))
        self._pending_efforts.append(np.asarray(efforts, dtype=float))
        sample = Sample(self.time, self.simulation.q, self.simulation.qd, nothing, nothing)
        self._periods += 1
        return sample

    def advance(self, desired: tuple[Floats, Floats], efforts: ArrayLike) -> Sample:
        """One period of motion.

        Args:
            desired: positions and rates (n_actuated,) of `joints` desired at the period's start,
                rad or m and rad/s or m/s.
            efforts: (n_actuated,) external torques computed from the state at the period's start,
                or else the latest ones, N·m or N; they are used `delay` periods later.

        Raises:
            InputError: the motion diverges.
        """
        q, qd = self.simulation.q, self.simulation.qd
        # Kp (q_d - q) + Kd (qd_d - qd)
        feedback = self._p * (desired[0] - q[self._places])
        feedback += self._d * (desired[1] - qd[self._places])
        self._pending_efforts.append(np.asarray(efforts, dtype=float))
        sample = Sample(self.time, q, qd, feedback, self._pending_efforts[0])
        tau = np.zeros(len(q))
        tau[self._places] = sample.feedback + sample.efforts
        self.simulation.advance(tau, self._steps)
        self._periods += 1
        return sample

    def _gains(self, name: str, gains: Sequence[float]) -> Floats:
        n = len(self.joints)
        array = np.asarray(gains, dtype=float)
        if array.shape == (1,):
            array = np.repeat(array, n)
        if array.shape != (n,) or not np.all(np.isfinite(array)) or np.any(array < 0):
            raise wrong(
                InputError,
                name,
                list(gains),
                f"{counted(n, 'number')}, not negative, or one for all",
            )
        return array
