# SPDX-License-Identifier: Apache-2.0
"""The parameters of the node `feed_forward`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...closure import CONDITION_LIMIT
from ...closure.sensing import THRESHOLD
from ...errors import InputError, wrong
from ...formulations import FORMULATIONS
from ...formulations.equations import TERMS
from ...mechanism.transform import ROTOR_MODELS
from .parameter_table import checked, flag, names, number, numbers, rows, text

SIDES = ("joint", "drive", "gear")


def gravity_row() -> Any:
    """The row of gravity, for a base that is not mounted as described."""
    return numbers(
        (),
        "gravity in the base frame, for example if the base is mounted on a wall; not set: the "
        "description's",
        unit="m/s²",
        minimum=-1000.0,
        maximum=1000.0,
    )


@dataclass(frozen=True)
class Settings:
    """The values of the parameters, checked: each field is a row of the table."""

    description: str = text(
        "",
        "path, package:// URL or URDF text of the robot; empty: taken from `robot_description`",
        read_only=True,
    )
    lock_description: bool = flag(
        False, "keep the first robot from `robot_description` and refuse any other", read_only=True
    )
    gravity: tuple[float, ...] = gravity_row()
    moving_base: str = text(
        "described",
        "whether the base moves, as reported on `~/base_imu` or `~/base_motion`; "
        "described: if the description has `base_motion`",
        choices=("described", "always", "never"),
    )
    base_imu_pose: tuple[float, ...] = numbers(
        (),
        "x, y, z, roll, pitch and yaw of the IMU in the base's frame; not set: its `frame_id` is "
        "the base or a link fixed to it",
        unit="m and rad",
        at_once=True,
    )
    base_gravity: str = text(
        "accelerometer",
        "where the base's acceleration and gravity come from: the IMU's accelerometer, or its "
        "orientation only, for a base that does not accelerate",
        choices=("accelerometer", "orientation"),
        at_once=True,
    )
    base_angular_acceleration: str = text(
        "zero",
        "angular acceleration with an IMU, which does not measure it: zero, or the derivative of "
        "the angular velocity, filtered by `derivative_filter`",
        choices=("zero", "derive"),
        at_once=True,
    )
    base_timeout: float = number(
        0.1,
        "age beyond which the base's motion is too old for torques",
        unit="s",
        minimum=0.001,
        maximum=60.0,
        at_once=True,
    )
    autostart: bool = flag(
        True, "configure and activate at start; false: a lifecycle manager does so", read_only=True
    )
    formulation: str = text(
        "newton_euler", "formulation of inverse dynamics", choices=tuple(FORMULATIONS)
    )
    rotors: str = text("full", "model of the motors' rotors", choices=ROTOR_MODELS)
    terms: tuple[str, ...] = names(
        tuple(TERMS),
        "terms of the torques; leave out what the controller or the drive adds itself",
        choices=tuple(TERMS),
        needed=True,
    )
    friction_smoothing: float = number(
        0.0,
        "velocity below which Coulomb friction fades to zero; 0: no smoothing",
        unit="rad/s or m/s",
        minimum=0.0,
    )
    side: str = text(
        "joint",
        "which torques are published: those of the joints, of the motors (drive), or at the inputs "
        "of the gears (gear)",
        choices=SIDES,
        read_only=True,
    )
    joints: tuple[str, ...] = names(
        (),
        "joints whose torques are published, in this order; not set: all actuated joints",
        read_only=True,
    )
    locked_joints: tuple[str, ...] = names(
        (),
        "joints that are fixed at a position and get no torques, such as `finger:0.02`",
        unit="rad or m",
    )
    feedback: str = text(
        "measured",
        "source of q and qd: joint_states, or the command",
        choices=("measured", "commanded"),
        read_only=True,
    )
    sensed: bool = flag(
        False,
        "for robots with loops: also read and monitor the sensors on passive joints",
        read_only=True,
    )
    sensor_tolerance: float = number(
        THRESHOLD,
        "with sensed: closure residual beyond which a sensor is not trusted",
        unit="rad, or fractions of the robot's size",
        minimum=1e-06,
        maximum=1.0,
    )
    condition_limit: float = number(
        CONDITION_LIMIT,
        "for robots with loops: condition number of the passive joints' Jacobian beyond which no "
        "torque is published",
        minimum=1.0,
        maximum=1000000000000.0,
    )
    rate: float = number(
        100.0,
        "with feedback commanded: rate of the torques while no joint_states arrive",
        unit="Hz",
        minimum=1.0,
        maximum=2000.0,
        read_only=True,
    )
    missing_accelerations: str = text(
        "refuse",
        "when a single point has no accelerations: refuse it, use zero, or differentiate the "
        "velocities of a stream of points",
        choices=("refuse", "zero", "derive"),
        at_once=True,
    )
    missing_velocities: str = text(
        "refuse",
        "when a state has no velocities, or NaN: refuse it, or differentiate its positions",
        choices=("refuse", "derive"),
        at_once=True,
    )
    derivative_filter: float = number(
        0.02,
        "time constant of the low-pass filter of derivatives, which adds to their delay of half a "
        "period",
        unit="s",
        minimum=0.0,
        maximum=1.0,
        at_once=True,
    )
    merge_states: bool = flag(
        False,
        "merge messages that each contain only some of the joints, as from an arm and its gripper; "
        "joints whose last state is older than max_age count as missing",
        at_once=True,
    )
    command_timeout: float = number(
        0.5,
        "time after the end of a command at which it expires; 0: never",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
        at_once=True,
    )
    on_timeout: str = text(
        "gravity",
        "what is published once a command has ended or expired",
        choices=("hold", "gravity", "stop"),
        at_once=True,
    )
    max_age: float = number(
        0.5,
        "largest difference between a stamp and the clock, and time without usable states after "
        "which feedback counts as lost; 0: no check",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
        at_once=True,
    )
    farewell_time: float = number(
        1.0,
        "how long the node, at shutdown, waits for acknowledgements of its last torques (at least "
        "1 s) and repeats them for best-effort subscribers; 0: sent once",
        unit="s",
        minimum=0.0,
        maximum=4.0,
        at_once=True,
    )
    lookahead: float = number(
        0.0,
        "how far ahead of the state trajectories are sampled, to compensate for delays",
        unit="s",
        minimum=0.0,
        maximum=1.0,
        at_once=True,
    )
    max_acceleration: float = number(
        1000.0,
        "largest acceleration of any joint: commands beyond it are refused, as are torques "
        "that would require more; 0: no check",
        unit="rad/s² or m/s²",
        minimum=0.0,
        maximum=1000000000.0,
        at_once=True,
    )
    lead_in_acceleration: float = number(
        10.0,
        "largest acceleration on the way to a trajectory's first point: a faster lead-in is left "
        "out, unless the trajectory itself is as fast",
        unit="rad/s² or m/s²",
        minimum=0.0,
        maximum=1000000000.0,
        at_once=True,
    )
    effort_limits: tuple[float, ...] = numbers(
        (),
        "largest magnitudes of the torques, in the order of publication; not set: the "
        "description's <limit effort>, if it has one",
        unit="N·m or N",
        minimum=0.0,
    )
    velocity_limits: tuple[float, ...] = numbers(
        (),
        "largest joint velocities of a command, in the order of the joints; measured velocities "
        "beyond twice these are not trusted; not set: the description's <limit velocity>, if it "
        "has one",
        unit="rad/s or m/s",
        minimum=1e-09,
    )
    slew_limits: tuple[float, ...] = numbers(
        (),
        "largest rates of change of the torques, in the order of publication; not set: no limit",
        unit="N·m/s or N/s",
        minimum=0.0,
    )
    ramp_time: float = number(
        0.0,
        "time over which torques are ramped in at the start and after an interruption; 0: no ramp",
        unit="s",
        minimum=0.0,
        maximum=60.0,
        at_once=True,
    )
    p_gains: tuple[float, ...] = numbers(
        (),
        "position gains, in the order of the joints, for robots without a control loop of their "
        "own; not set: none",
        unit="N·m/rad or N/m",
        minimum=0.0,
        maximum=1000000000000.0,
    )
    d_gains: tuple[float, ...] = numbers(
        (),
        "velocity gains, in the same order; not set: none",
        unit="N·m·s/rad or N·s/m",
        minimum=0.0,
        maximum=1000000000000.0,
    )
    residual: bool = flag(
        False,
        "publish ~/residual: the torques in joint_states minus the model's for the measured motion",
        read_only=True,
    )
    residual_filter: float = number(
        0.05,
        "time constant of the residual's filter",
        unit="s",
        minimum=0.0,
        maximum=10.0,
        at_once=True,
    )
    residual_threshold: float = number(
        0.0,
        "norm of the residual beyond which the diagnostics warn; 0: never",
        unit="N·m or N",
        minimum=0.0,
        at_once=True,
    )
    check_controller: bool = flag(
        True,
        "send torques only to a controller whose parameters name the same joints in the same "
        "order, and effort as its interface",
        read_only=True,
    )
    follow_joint_trajectory: str = text(
        "",
        "action of a controller: goals for `~/follow_joint_trajectory` are forwarded to it with "
        "effort at every point (needs control_msgs); empty: no such action",
        read_only=True,
    )

    def __post_init__(self) -> None:
        _ = self.locked
        if self.gravity and len(self.gravity) != 3:
            raise wrong(InputError, "gravity", list(self.gravity), "three numbers: x, y and z")
        pose = self.base_imu_pose
        if pose and not (len(pose) == 6 and all(map(math.isfinite, pose))):
            expected = "six finite numbers: x, y, z, roll, pitch and yaw"
            raise wrong(InputError, "base_imu_pose", list(pose), expected)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from checked values.

        Args:
            values: by name; others have their defaults.

        Raises:
            InputError: a value that the table does not allow.
        """
        return checked(cls, values)

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """The same settings with some values changed.

        Args:
            values: the new values by name.

        Raises:
            InputError: a value that the table does not allow.
        """
        return Settings.of(vars(self) | dict(values))

    @property
    def measured(self) -> bool:
        """Do q and qd come from `joint_states`, not from the command?"""
        return self.feedback == "measured"

    @property
    def locked(self) -> dict[str, float]:
        """The fixed positions of the locked joints, rad or m, by name.

        Raises:
            InputError: an entry is not `joint:number`, or names a joint again.
        """
        positions: dict[str, float] = {}
        for entry in self.locked_joints:
            name, _, text = entry.rpartition(":")
            try:
                position = float(text)
            except ValueError:
                position = math.nan
            if not name or not math.isfinite(position):
                raise wrong(InputError, "locked_joints", entry, "joint:position, as in finger:0.02")
            if name in positions:
                raise wrong(InputError, "locked_joints", entry, "each joint once")
            positions[name] = position
        return positions


PARAMETERS = rows(Settings)

BY_NAME = {row.name: row for row in PARAMETERS}

AT_ONCE = frozenset(row.name for row in PARAMETERS if row.at_once)
"""Parameters that take effect without a new model"""
