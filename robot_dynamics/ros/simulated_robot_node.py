# SPDX-License-Identifier: Apache-2.0
"""The node `simulated_robot`, a robot in MuJoCo that replaces one under ros2_control.

- in: `~/commands`, std_msgs/Float64MultiArray: joint torques in the order of `joints`, added to
  those of the PD loop; in lock step instead `~/stamped_commands`, sensor_msgs/JointState, with the
  stamp of the state that the torques (`effort`) belong to;
- in: `~/joint_trajectory`, trajectory_msgs/JointTrajectory: the motion that the PD loop follows;
- in: `robot_description`, std_msgs/String, transient local: the robot, if the parameter
  `description` is empty;
- out: `joint_states`, sensor_msgs/JointState: all joints, once per period, stamped in the robot's
  time;
- out: `/clock`, rosgraph_msgs/Clock: simulated time, if `publish_clock` is set.

There are two ways to run:

- in real time (default): a period of the simulation takes as long as in wall time, and the newest
  torques are used.
- in lock step (`command_wait` > 0): after the motion has begun, a period ends when the torques
  computed from its state have arrived. The result does not depend on the load of the machine.

The robot has its own time, which begins at zero, if it publishes /clock, runs in lock step, or has
a `real_time_factor` other than 1. Otherwise it follows its node's clock: wall time, or with
`use_sim_time` the /clock of another robot, pauses included.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic_ns
from typing import TextIO

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..description import load, load_urdf_text
from ..description.files import csv_writer
from ..dynamics import InverseDynamics
from ..errors import InputError, choices, one_line, shown, wrong
from ..mechanism import Mechanism
from ..scalar import Floats
from ..simulation.tracking import Sample, TrackedRobot, pd_gains
from .declared_parameters import declare
from .feed_forward.motion import Desired, Motion, Setpoint
from .feed_forward.motion import read as read_motion
from .feed_forward.refusal import RefusedError, Tally
from .feed_forward.stamps import SECOND, nanoseconds
from .publishing import LATCHED, LINE, publish
from .simulated_robot_parameters import RobotSettings
from .simulation_clock import SimulationClock

CLOCK_PERIOD = SECOND // 100
"""ns between two messages on /clock"""

STABLE = 1.001
"""Largest growth of a PD loop's error per period: that of a pure integrator is 1, up to rounding"""

HIGHEST_RATE = 1e4
"""Hz: the maximum of the parameter `update_rate`"""


class SimulatedRobot(Node):  # type: ignore[misc]
    """Steps a TrackedRobot, either by a timer on wall time or whenever torques arrive.

    Raises:
        RobotDynamicsError: an invalid parameter or description.
    """

    def __init__(self) -> None:
        super().__init__("simulated_robot")
        settings = declare(self, RobotSettings, self.get_logger().warning, fixed=True)
        self._settings = settings
        self._tally = Tally(lambda text: self.get_logger().warning(one_line(text, LINE)))
        self._robot: TrackedRobot
        self._stands = False
        self._period = round(SECOND / settings.update_rate)
        self._wait = round(settings.command_wait * SECOND)  # 0: real time; else lock step
        self._braked: bool = settings.brakes
        factor = settings.real_time_factor
        if settings.publish_clock or self._wait or factor != 1.0:
            self._pace = SimulationClock(self._period)
        else:
            clock = self.get_clock()
            ahead = CLOCK_PERIOD if self.get_parameter("use_sim_time").value else 0
            self._pace = SimulationClock(self._period, lambda: clock.now().nanoseconds, ahead)
        self._asked: int | None = None  # wall time since which torques are awaited, ns
        self._delay: int = settings.delay
        self._answered = 0  # number of consecutive states with torques
        self._missed = 0  # periods of the motion without the torques that belong to them
        self._release = 0

        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._ticker = (
            self.create_publisher(ClockMessage, "/clock", 10) if settings.publish_clock else None
        )
        if settings.description:
            self._stand(load(settings.description))
        else:
            self.create_subscription(String, "robot_description", self._on_description, LATCHED)
            self.get_logger().info("waiting for the robot on the topic robot_description")
        self.create_timer(
            self._period / SECOND / factor if factor > 0 else 0.0,
            self._on_timer,
            # wall time, whatever clock the node uses
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def _on_description(self, message: String) -> None:
        if self._stands:
            return  # the robot is not replaced
        with self._tally.refusing("robot_description"):
            self._stand(load_urdf_text(message.data))

    def _stand(self, mechanism: Mechanism) -> None:
        """Put the robot at its initial position."""
        settings = self._settings
        gains = settings.p_gains, settings.d_gains
        if settings.bandwidth > 0:
            gains = self._gains(mechanism, settings)
        robot = TrackedRobot(
            mechanism,
            joints=settings.joints,
            period=self._period / SECOND,
            timestep=settings.timestep,
            p_gains=gains[0],
            d_gains=gains[1],
            delay=settings.delay,
            start=settings.start or None,
        )
        self._warn_of_instability(robot)
        self._periodic = np.array([mechanism.joint(j).type == "continuous" for j in robot.joints])
        self._efforts = np.zeros(len(robot.joints))
        self._record = Record(Path(settings.record), robot) if settings.record else None
        self._robot = robot
        self._stay()
        self._stands = True
        if self._wait:
            self.create_subscription(JointState, "~/stamped_commands", self._on_answer, 10)
        else:
            self.create_subscription(Float64MultiArray, "~/commands", self._on_commands, 10)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10)
        joints = one_line(", ".join(robot.joints))
        self.get_logger().info(f"{one_line(mechanism.name)}: takes torques for {joints}")

    def _stay(self) -> None:
        """Make the desired motion rest at the current position."""
        q = self._state()[0]
        self._desired: Motion = Setpoint(Desired(q, np.zeros(len(q)), np.zeros(len(q))), 0)

    def _warn_of_instability(self, robot: TrackedRobot) -> None:
        """Warn if the PD loop, though stable in continuous time, is sampled too slowly and
        diverges."""
        if not robot.feeds_back or (growth := robot.growth()) <= STABLE:
            return
        rate = 10.0
        while robot.growth(1 / rate) > STABLE and rate < HIGHEST_RATE:
            rate = min(1.1 * rate, HIGHEST_RATE)
        faster = f"raise update_rate ({rate:.0f} Hz is enough at the start) or "
        self.get_logger().warning(
            f"the PD loop is unstable at update_rate = {self._settings.update_rate:g} Hz: errors "
            f"grow by a factor of {growth:.3g} in each period, expected at most 1; "
            f"{faster * (robot.growth(1 / rate) <= STABLE)}lower bandwidth or the gains"
        )

    @staticmethod
    def _gains(
        mechanism: Mechanism, settings: RobotSettings
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Kp, Kd of `joints` that give the bandwidth at the initial position."""
        start = TrackedRobot(mechanism, start=settings.start or None).simulation
        dynamics = InverseDynamics(mechanism)
        q = [start.q[start.joint_names.index(name)] for name in dynamics.joint_names]
        names = dynamics.actuated_names
        p, d = (dict(zip(names, each.tolist(), strict=True)) for each in
                pd_gains(dynamics, q, settings.bandwidth))  # fmt: skip
        joints = settings.joints or names
        if unknown := [name for name in joints if name not in names]:
            raise wrong(InputError, "joints", unknown[0], choices(names))
        return tuple(p[name] for name in joints), tuple(d[name] for name in joints)

    def close(self) -> None:
        """Close the record."""
        if self._stands and self._record is not None:
            self._record.close()
        if self._missed:
            self.get_logger().warning(
                f"no new torques arrived in {self._missed} periods of the motion"
            )

    @property
    def _now(self) -> int:
        """The robot's time, ns."""
        return self._pace.now

    def _on_timer(self) -> None:
        if not self._stands:
            return
        if self._asked is None:
            due, skipped = self._pace.due()
            if skipped:
                self._on_skip(skipped)
            for _ in range(due):
                self._begin()
        elif monotonic_ns() - self._asked >= self._wait:
            self._finish(answered=False)

    def _on_skip(self, nanoseconds: int) -> None:
        """Handle a clock that was set, or a machine that was too slow to keep up."""
        off = f"its clock is {nanoseconds / SECOND:+.3f} s off: the simulation was paused"
        if 0 < nanoseconds < SECOND:
            self.get_logger().warning(off, throttle_duration_sec=5.0)
            return
        # the desired motion belongs to another time
        self._stay()
        self.get_logger().warning(f"{off}, and its motion aborted")

    def _on_commands(self, message: Float64MultiArray) -> None:
        """In real time, store the newest torques."""
        self._take(message.data, "~/commands")

    def _on_answer(self, message: JointState) -> None:
        """In lock step, use the torques that belong to the last state, and no others."""
        if self._asked is None or nanoseconds(message.header.stamp) != self._now:
            return
        efforts = dict(zip(message.name, message.effort, strict=False))
        if self._take(
            [efforts.get(name, np.nan) for name in self._robot.joints], "~/stamped_commands"
        ):
            self._finish(answered=True)
            self._begin()

    def _take(self, values: Sequence[float], topic: str) -> bool:
        efforts = np.array(values, dtype=float)
        if efforts.shape != self._efforts.shape or not np.all(np.isfinite(efforts)):
            expected = f"{len(self._efforts)} finite numbers"
            fault = RefusedError("wrong", f"found {shown(list(values))}, expected {expected}")
            self._tally.refuse(topic, fault)
            return False
        self._efforts = efforts
        return True

    def _on_trajectory(self, message: JointTrajectory) -> None:
        with self._tally.refusing("~/joint_trajectory"):
            self._desired = read_motion(
                message,
                self._robot.joints,
                self._periodic,
                now=self._now,
                whole_state=True,
                missing=lambda _: np.zeros(len(self._robot.joints)),
            ).begun(self._now, *self._state())
            if self._braked:
                begin = nanoseconds(message.header.stamp) or self._now
                self._release = begin + _rest(message.points)
                self._braked = False

    def _begin(self) -> None:
        """Begin a period: publish the state."""
        if self._ticker is not None and self._now % CLOCK_PERIOD < self._period:
            publish(self._ticker, ClockMessage(clock=self._stamp()))
            if self.count_publishers("/clock") > 1:
                self.get_logger().error(
                    "another node publishes /clock as well, and the two contradict each other: set "
                    "publish_clock to false for all but one",
                    throttle_duration_sec=5.0,
                )
        simulation = self._robot.simulation
        message = JointState(name=list(simulation.joint_names))
        message.header.stamp = self._stamp()
        message.position = simulation.q.tolist()
        message.velocity = simulation.qd.tolist()
        publish(self._states, message)
        # torques are awaited as soon as the trajectory has arrived: a node that receives it late
        # can use the rest before the motion to respond
        if self._wait and not self._braked:
            self._asked = monotonic_ns()
        else:
            self._finish(answered=False)

    def _finish(self, *, answered: bool) -> None:
        """End a period: its torques have arrived, were not awaited, or are overdue."""
        self._asked = None
        moving = self._moving
        self._answered = self._answered + 1 if answered else 0
        # the torques that are used now belong to the state of `delay` periods ago
        self._missed += bool(self._wait and moving and self._answered <= self._delay)
        if moving:
            desired = self._desired.at(self._now)
            assert desired.q is not None
            assert desired.qd is not None
            sample = self._robot.advance((desired.q, desired.qd), self._efforts)
        else:
            sample = self._robot.wait(self._efforts)
        if self._record is not None:
            self._record.write(sample, moving, self._missed, self._release / SECOND)
        self._pace.tick()

    @property
    def _moving(self) -> bool:
        return not self._braked and self._now >= self._release

    def _state(self) -> tuple[Floats, Floats]:
        """q, qd of `joints`."""
        simulation = self._robot.simulation
        places = [simulation.joint_names.index(name) for name in self._robot.joints]
        return simulation.q[places], simulation.qd[places]

    def _stamp(self) -> Time:
        return Time(sec=self._now // SECOND, nanosec=self._now % SECOND)


def _rest(points: Sequence[JointTrajectoryPoint]) -> int:
    """How long a trajectory rests at its first point, ns; 0 for a single point."""
    end = 0
    for point in points[1:]:
        if point.positions != points[0].positions:
            break
        end = nanoseconds(point.time_from_start)
    return end


class Record:
    """A CSV file with one line per period.

    The columns are the time, whether the brakes are off (0 or 1), the number of periods so far
    without torques of their own, the intended beginning of the motion, q and qd of every joint, and
    feedback and efforts of the actuated joints.

    Args:
        path: the file, which is overwritten.
        robot: the robot, whose joints are recorded.
    """

    def __init__(self, path: Path, robot: TrackedRobot):
        self._file: TextIO = path.open(
            "w", newline="", buffering=1
        )  # line buffering: a concurrent reader sees whole lines
        joints, actuated = robot.simulation.joint_names, robot.joints
        groups = (("q", joints), ("qd", joints), ("feedback", actuated), ("efforts", actuated))
        header = [f"{group} {name}" for group, names in groups for name in names]
        self._csv = csv_writer(self._file, ["time", "moving", "missed", "begin", *header])

    def write(self, sample: Sample, moving: bool, missed: int, begin: float) -> None:
        """Write one line.

        Args:
            sample: the state and torques of the period.
            moving: are the brakes off?
            missed: number of periods so far without torques of their own.
            begin: the intended beginning of the motion, s.
        """
        numbers = np.concatenate([sample.q, sample.qd, sample.feedback, sample.efforts])
        self._csv.writerow([sample.time, int(moving), missed, begin, *numbers.tolist()])

    def close(self) -> None:
        """Close the file."""
        self._file.close()
