"""The node's parameters: one table, from which declarations, checks and the manual come."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ...closure import CONDITION_LIMIT
from ...closure.sensing import THRESHOLD
from ...errors import InputError, choices, wrong
from ...formulations import FORMULATIONS
from ...formulations.equations import TERMS
from ...mechanism.transform import ROTOR_MODELS

SIDES = ("joint", "drive", "gear")


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    type: str
    """string, bool, double, string_array or double_array"""
    default: Any
    """An empty array stands for: not set"""
    unit: str
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float = -math.inf
    maximum: float = math.inf
    read_only: bool = False
    at_once: bool = False
    """No model is built from it"""
    needed: bool = False
    """An array that may not be empty"""

    @property
    def range(self) -> str:
        """What the value may be, in words."""
        if self.choices:
            return ("any of " if self.type.endswith("array") else "one of ") + ", ".join(
                self.choices
            )
        if self.minimum > -math.inf:
            upper = f" to {self.maximum:g}" if self.maximum < math.inf else " or more"
            return f"{self.minimum:g}{upper}"
        return ""

    def checked(self, value: Any) -> Any:
        """The value as the settings keep it.

        Raises:
            InputError: it has another type, is none of the choices, or is outside the range.
        """
        if not self.type.endswith("array"):
            return self._checked_one(value)
        if isinstance(value, str) or not isinstance(value, (Sequence, array)):
            kind = "strings" if self.type.startswith("string") else "numbers"
            raise wrong(InputError, self.name, value, f"a list of {kind}")
        if self.needed and not len(value):
            raise wrong(InputError, self.name, list(value), f"at least one, {self.range}")
        return tuple(self._checked_one(each) for each in value)

    def _checked_one(self, value: Any) -> Any:
        if self.choices and value not in self.choices:
            raise wrong(InputError, self.name, value, choices(self.choices))
        if self.type.startswith("string"):
            if not isinstance(value, str):
                raise wrong(InputError, self.name, value, "a string")
            return value
        if self.type == "bool":
            if not isinstance(value, bool):
                raise wrong(InputError, self.name, value, "true or false")
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(InputError, self.name, value, "a number")
        if not self.minimum <= value <= self.maximum:
            raise wrong(InputError, self.name, value, f"a number, {self.range}")
        return float(value)


PARAMETERS = (
    Parameter(
        "description",
        "string",
        "",
        "",
        "path, package:// URL or URDF text of the robot; empty: taken from `robot_description`",
        read_only=True,
    ),
    Parameter(
        "lock_description",
        "bool",
        False,
        "",
        "the first robot from `robot_description` stays: other texts are refused",
        read_only=True,
    ),
    Parameter(
        "gravity",
        "double_array",
        (),
        "m/s²",
        "gravity's x, y and z in the base's axes, as of a base that is mounted on a wall; not set: "
        "the description's",
        minimum=-1000.0,
        maximum=1000.0,
    ),
    Parameter(
        "moving_base",
        "string",
        "described",
        "",
        "does something else move the base, as `~/base_imu` or `~/base_motion` tells? described: "
        "where the description has `base_motion`",
        choices=("described", "always", "never"),
    ),
    Parameter(
        "base_imu_pose",
        "double_array",
        (),
        "m and rad",
        "x, y, z, roll, pitch and yaw of the IMU in the frame of the base; not set: its `frame_id` "
        "is the base, or a link that is fixed to it",
        at_once=True,
    ),
    Parameter(
        "base_gravity",
        "string",
        "accelerometer",
        "",
        "what of an IMU tells the base's acceleration and gravity: its accelerometer, or for "
        "gravity alone its orientation, the base not accelerating",
        choices=("accelerometer", "orientation"),
        at_once=True,
    ),
    Parameter(
        "base_angular_acceleration",
        "string",
        "zero",
        "",
        "with an IMU, which measures none: take zero, or derive it from the angular velocity by "
        "`derivative_filter`",
        choices=("zero", "derive"),
        at_once=True,
    ),
    Parameter(
        "base_timeout",
        "double",
        0.1,
        "s",
        "a motion of the base that is older than this makes no torques",
        minimum=0.001,
        maximum=60.0,
        at_once=True,
    ),
    Parameter(
        "autostart",
        "bool",
        True,
        "",
        "configure and activate by itself; false: a lifecycle manager does",
        read_only=True,
    ),
    Parameter(
        "formulation",
        "string",
        "newton_euler",
        "",
        "formulation of the inverse dynamics",
        choices=tuple(FORMULATIONS),
    ),
    Parameter("rotors", "string", "full", "", "model of the motors' rotors", choices=ROTOR_MODELS),
    Parameter(
        "terms",
        "string_array",
        tuple(TERMS),
        "",
        "what the torques contain; leave out what the controller or the drive adds itself",
        choices=tuple(TERMS),
        needed=True,
    ),
    Parameter(
        "friction_smoothing",
        "double",
        0.0,
        "rad/s or m/s",
        "rate below which Coulomb friction fades to zero; 0: full at any rate",
        minimum=0.0,
    ),
    Parameter(
        "side",
        "string",
        "joint",
        "",
        "whose torques are published: the joints', the motors' (drive), "
        "or those that enter the gears (gear)",
        choices=SIDES,
        read_only=True,
    ),
    Parameter(
        "joints",
        "string_array",
        (),
        "",
        "joints whose torques are published, in this order; not set: all actuated ones",
        read_only=True,
    ),
    Parameter(
        "locked_joints",
        "string_array",
        (),
        "rad or m",
        "joints that are not published, held at a value, as in `finger:0.02`",
    ),
    Parameter(
        "feedback",
        "string",
        "measured",
        "",
        "where q and qd come from: joint_states, or the command",
        choices=("measured", "commanded"),
        read_only=True,
    ),
    Parameter(
        "sensed",
        "bool",
        False,
        "",
        "of a robot with loops: read and monitor the sensors on passive joints too",
        read_only=True,
    ),
    Parameter(
        "sensor_tolerance",
        "double",
        THRESHOLD,
        "rad, or shares of the robot's size",
        "with sensed: residual of the readings beyond which one is not trusted",
        minimum=1e-6,
        maximum=1.0,
    ),
    Parameter(
        "condition_limit",
        "double",
        CONDITION_LIMIT,
        "",
        "of a robot with loops: condition number of the passive joints' Jacobian beyond which no "
        "torque is published",
        minimum=1.0,
        maximum=1e12,
    ),
    Parameter(
        "rate",
        "double",
        100.0,
        "Hz",
        "with feedback commanded: how often torques go out while no joint_states come",
        minimum=1.0,
        maximum=2000.0,
        read_only=True,
    ),
    Parameter(
        "missing_accelerations",
        "string",
        "refuse",
        "",
        "accelerations that a single point lacks: refuse it, take zero, or derive them from the "
        "rates of a stream of points",
        choices=("refuse", "zero", "derive"),
        at_once=True,
    ),
    Parameter(
        "missing_velocities",
        "string",
        "refuse",
        "",
        "rates that a state lacks, or that are NaN: refuse it, or derive them from positions",
        choices=("refuse", "derive"),
        at_once=True,
    ),
    Parameter(
        "derivative_filter",
        "double",
        0.02,
        "s",
        "time constant of the filter of what is derived, which is late by it and half a period",
        minimum=0.0,
        maximum=1.0,
        at_once=True,
    ),
    Parameter(
        "merge_states",
        "bool",
        False,
        "",
        "take states from messages with some of the joints each, as those of an arm and its "
        "gripper; a joint that was told of longer ago than max_age is missing",
        at_once=True,
    ),
    Parameter(
        "command_timeout",
        "double",
        0.5,
        "s",
        "a command that ended this long ago is over; 0: never",
        minimum=0.0,
        maximum=3600.0,
        at_once=True,
    ),
    Parameter(
        "on_timeout",
        "string",
        "gravity",
        "",
        "what is published after a command is over",
        choices=("hold", "gravity", "stop"),
        at_once=True,
    ),
    Parameter(
        "max_age",
        "double",
        0.5,
        "s",
        "a stamp further than this from the clock is refused; "
        "feedback that fails for this long is lost; 0: no check",
        minimum=0.0,
        maximum=3600.0,
        at_once=True,
    ),
    Parameter(
        "farewell_time",
        "double",
        0.7,
        "s",
        "how long the node repeats its last torques when it ends, where a subscriber is best "
        "effort and acknowledges nothing; 0: once",
        minimum=0.0,
        maximum=4.0,
        at_once=True,
    ),
    Parameter(
        "lookahead",
        "double",
        0.0,
        "s",
        "trajectories are sampled this much ahead of the state, to make up for delays",
        minimum=0.0,
        maximum=1.0,
        at_once=True,
    ),
    Parameter(
        "max_acceleration",
        "double",
        1000.0,
        "rad/s² or m/s²",
        "a command that asks a joint for more is refused, and so is a torque that only more "
        "could need; 0: no check",
        minimum=0.0,
        maximum=1e9,
        at_once=True,
    ),
    Parameter(
        "lead_in_acceleration",
        "double",
        10.0,
        "rad/s² or m/s²",
        "the way to a trajectory's first point is left out where it asks for more than this and "
        "than the trajectory itself",
        minimum=0.0,
        maximum=1e9,
        at_once=True,
    ),
    Parameter(
        "effort_limits",
        "double_array",
        (),
        "N·m or N",
        "torques are cut off at plus and minus this, in the order they are published in; "
        "not set: the description's <limit effort> where it has one",
        minimum=0.0,
    ),
    Parameter(
        "velocity_limits",
        "double_array",
        (),
        "rad/s or m/s",
        "rates that a command may ask for, in the order of the joints; measured ones beyond twice "
        "this are not believed; not set: the description's <limit velocity> where it has one",
        minimum=1e-9,
    ),
    Parameter(
        "slew_limits",
        "double_array",
        (),
        "N·m/s or N/s",
        "torques change by no more than this, in the order they are published in; not set: no "
        "limit",
        minimum=0.0,
    ),
    Parameter(
        "ramp_time",
        "double",
        0.0,
        "s",
        "how long torques take to come on, at the beginning and after an interruption; 0: no time",
        minimum=0.0,
        maximum=60.0,
        at_once=True,
    ),
    Parameter(
        "p_gains",
        "double_array",
        (),
        "N·m/rad or N/m",
        "torques per position error, in the order of the joints, for robots without a loop of "
        "their own; not set: none",
        minimum=0.0,
        maximum=1e12,
    ),
    Parameter(
        "d_gains",
        "double_array",
        (),
        "N·m·s/rad or N·s/m",
        "torques per rate error, likewise; not set: none",
        minimum=0.0,
        maximum=1e12,
    ),
    Parameter(
        "residual",
        "bool",
        False,
        "",
        "publish ~/residual: the torques in joint_states less the model's at the measured motion",
        read_only=True,
    ),
    Parameter(
        "residual_filter",
        "double",
        0.05,
        "s",
        "time constant of its filter",
        minimum=0.0,
        maximum=10.0,
        at_once=True,
    ),
    Parameter(
        "residual_threshold",
        "double",
        0.0,
        "N·m or N",
        "norm of the residual from which on the diagnostics warn; 0: never",
        minimum=0.0,
        at_once=True,
    ),
    Parameter(
        "check_controller",
        "bool",
        True,
        "",
        "torques go only to a controller whose parameters name the same joints in the same order, "
        "and effort as its interface",
        read_only=True,
    ),
    Parameter(
        "follow_joint_trajectory",
        "string",
        "",
        "",
        "a controller's action: goals on `~/follow_joint_trajectory` go on to it, with effort at "
        "every point (needs control_msgs); empty: there is no such action",
        read_only=True,
    ),
)

BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}

AT_ONCE = frozenset(row.name for row in PARAMETERS if row.at_once)
"""Parameters that no model is built from"""


@dataclass(frozen=True)
class Settings:
    """The values of the parameters, checked."""

    description: str
    lock_description: bool
    gravity: tuple[float, ...]
    moving_base: str
    base_imu_pose: tuple[float, ...]
    base_gravity: str
    base_angular_acceleration: str
    base_timeout: float
    autostart: bool
    formulation: str
    rotors: str
    terms: tuple[str, ...]
    friction_smoothing: float
    side: str
    joints: tuple[str, ...]
    locked_joints: tuple[str, ...]
    feedback: str
    sensed: bool
    sensor_tolerance: float
    condition_limit: float
    rate: float
    missing_accelerations: str
    missing_velocities: str
    derivative_filter: float
    merge_states: bool
    command_timeout: float
    on_timeout: str
    max_age: float
    farewell_time: float
    lookahead: float
    max_acceleration: float
    lead_in_acceleration: float
    effort_limits: tuple[float, ...]
    velocity_limits: tuple[float, ...]
    slew_limits: tuple[float, ...]
    ramp_time: float
    p_gains: tuple[float, ...]
    d_gains: tuple[float, ...]
    residual: bool
    residual_filter: float
    residual_threshold: float
    check_controller: bool
    follow_joint_trajectory: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from values by name; what is not among them has its default.

        Raises:
            InputError: a value that the table does not allow.
        """
        settings = cls(
            **{
                field.name: BY_NAME[field.name].checked(
                    values.get(field.name, BY_NAME[field.name].default)
                )
                for field in fields(cls)
            }
        )
        _ = settings.locked
        if settings.gravity and len(settings.gravity) != 3:
            raise wrong(InputError, "gravity", list(settings.gravity), "three numbers: x, y and z")
        pose = settings.base_imu_pose
        if pose and not (len(pose) == 6 and all(map(math.isfinite, pose))):
            expected = "six finite numbers: x, y, z, roll, pitch and yaw"
            raise wrong(InputError, "base_imu_pose", list(pose), expected)
        return settings

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """The same with other values by name.

        Raises:
            InputError: a value that the table does not allow.
        """
        return Settings.of(
            {field.name: getattr(self, field.name) for field in fields(self)} | dict(values)
        )

    @property
    def measured(self) -> bool:
        """Are q and qd those of `joint_states`, not of the command?"""
        return self.feedback == "measured"

    @property
    def locked(self) -> dict[str, float]:
        """Joint to its fixed position.

        Raises:
            InputError: an entry that is not `joint:number`.
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
                raise wrong(InputError, "locked_joints", entry, "every joint once")
            positions[name] = position
        return positions


def table() -> str:
    """The parameters as a Markdown table, for the manual."""
    rows = [
        "| parameter | type | default | unit | meaning | allowed |",
        "|---|---|---|---|---|---|",
    ]
    for each in PARAMETERS:
        if each.type.endswith("array"):
            default = ", ".join(map(str, each.default)) or "not set"
        elif each.type == "bool":
            default = str(each.default).lower()
        else:
            default = str(each.default) if each.default != "" else "empty"
        allowed = "; ".join(filter(None, (each.range, "set at start" if each.read_only else "")))
        cells = (f"`{each.name}`", each.type, default, each.unit, each.meaning, allowed)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
