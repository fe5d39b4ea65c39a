"""The node `feed_forward`: joint states and commands in, feed-forward torques out."""

from __future__ import annotations

import difflib
import gc
import sys
import time as steady
import warnings
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from ..errors import InputError, RobotDynamicsError, one_line
from .feed_forward import payload
from .feed_forward.builder import Builder, build
from .feed_forward.controller import FeedForward, Torques
from .feed_forward.diagnostics import Diagnosis
from .feed_forward.model import Model
from .feed_forward.parameters import BY_NAME, PARAMETERS, Settings
from .feed_forward.parameters import Parameter as Row
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND

WATCH_PERIOD = 0.1
"""s between two looks at what no message reports: lost feedback, finished models, signals"""

DIAGNOSTICS_PERIOD = 0.95
"""s, of the watch's timer: once a second"""

AT_ONCE = (
    "command_timeout",
    "on_timeout",
    "max_age",
    "lookahead",
    "missing_accelerations",
    "max_acceleration",
    "lead_in_acceleration",
)
"""Parameters that no model is built from"""

NEWEST = QoSProfile(depth=1)
"""Torques: an old one is of no use to anybody"""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class FeedForwardNode(Node):  # type: ignore[misc]
    """Topics, parameters and timers around `FeedForward`.

    A plain node, not a lifecycle one: it holds no hardware, and it is silent until commanded.

    Raises:
        RobotDynamicsError: a parameter or the description is wrong.
        ParameterException: a parameter has the wrong type, or lies outside its range.
    """

    def __init__(self) -> None:
        super().__init__("feed_forward")
        self._clock = self.get_clock()
        logger = self.get_logger()
        warnings.showwarning = lambda message, *_: logger.warning(one_line(message))
        settings = self._declare()
        self.controller = FeedForward(settings, self.get_logger().warning)
        self._builder = Builder(settings)
        self._description = ""
        self._commands, self._effort = Float64MultiArray(), JointState()
        if settings.description:
            self._adopt(build(None, "description", settings.description, settings))
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._take_parameters)

        overridable = {"qos_overriding_options": QoSOverridingOptions.with_default_policies()}
        # every event handler costs the executor time on every message: commands keep theirs,
        # which tells of a publisher with an incompatible QoS
        quiet_in = {"event_callbacks": SubscriptionEventCallbacks(use_default_callbacks=False)}
        quiet_out = {"event_callbacks": PublisherEventCallbacks(use_default_callbacks=False)}
        self.create_subscription(
            JointState,
            "joint_states",
            self._on_state,
            qos_profile_sensor_data,
            **overridable,
            **quiet_in,
        )
        self.create_subscription(JointTrajectory, "~/command", self._on_command, 10, **overridable)
        self.create_subscription(InertiaStamped, "~/payload", self._on_payload, 10, **quiet_in)
        if not settings.description:
            self.create_subscription(
                String, "robot_description", self._on_description, LATCHED, **quiet_in
            )
        self._commands_out = self.create_publisher(
            Float64MultiArray, "~/commands", NEWEST, **overridable, **quiet_out
        )
        self._effort_out = self.create_publisher(
            JointState, "~/effort", NEWEST, **overridable, **quiet_out
        )
        self._diagnostics_out = self.create_publisher(
            DiagnosticArray, "/diagnostics", 10, **quiet_out
        )

        if not settings.measured:
            self.create_timer(1.0 / settings.rate, self._on_tick)
        # by a clock that goes on while simulated time stands still
        steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(WATCH_PERIOD, self._on_watch, clock=steady_clock)
        self._diagnosis, self._diagnosed = Diagnosis(steady.monotonic()), steady.monotonic()
        self._jumps = self._clock.create_jump_callback(
            JumpThreshold(
                min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
            ),
            post_callback=self._on_jump,
        )

    # Parameters

    def _declare(self) -> Settings:
        for row in PARAMETERS:
            self.declare_parameter(row.name, _plain(row.default), _descriptor(row))
        known = {*BY_NAME, "use_sim_time", "start_type_description_service"}
        for name in self._parameter_overrides:
            if name not in known and not name.startswith("qos_overrides."):
                near = difflib.get_close_matches(name, BY_NAME, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self.get_logger().warning(f"parameter {name!r} is none of this node{hint}")
        return Settings.of(self._values())

    def _values(self) -> dict[str, Any]:
        values = {name: self.get_parameter_or(name).value for name in BY_NAME}
        return {name: value for name, value in values.items() if value is not None}

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Would these values do? Names are checked against the robot that is there."""
        try:
            settings = self._with(parameters)
            model = self.controller.model
            if model is not None:
                model.fitted(settings)
        except InputError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _with(self, parameters: list[Parameter]) -> Settings:
        values = self._values()
        for parameter in parameters:
            if parameter.name in BY_NAME:
                values.pop(parameter.name, None)
                if parameter.value is not None:
                    values[parameter.name] = parameter.value
        return Settings.of(values)

    def _take_parameters(self, parameters: list[Parameter]) -> None:
        names = {parameter.name for parameter in parameters} & set(BY_NAME)
        if not names:
            return
        settings = self._with([])
        self.controller.settings = settings
        self._builder.settings = settings
        if not names <= set(AT_ONCE) and self.controller.model is not None:
            self._builder.ask("parameters", settings)

    # The robot

    def _on_description(self, message: String) -> None:
        if message.data != self._description:
            self._description = message.data
            self._builder.ask("description", message.data)

    def _on_payload(self, message: InertiaStamped) -> None:
        try:
            model = self.controller.model
            if model is None:
                raise RefusedError("no robot", "there is no robot description yet")
            self._builder.ask("payload", payload.read(message, model.wish.mechanism))
        except RobotDynamicsError as error:
            self.controller.refuse("payload", error)

    def _adopt(self, model: Model) -> None:
        old = self.controller.model
        if old is not None and not old.has_the_joints_of(model):
            self._publish(self.controller.farewell(self._now()))
        self.controller.adopt(model)
        # what is there by now stays: the collector need not look at it between two states
        gc.freeze()
        n = len(model.outputs)
        self._effort.name = list(model.outputs)
        self._commands.data = self._effort.effort = [0.0] * n
        # windows into the messages: publishing allocates nothing
        self._windows = np.frombuffer(self._commands.data), np.frombuffer(self._effort.effort)
        s = model.wish.settings
        self.get_logger().info(
            f"{model.name}: torques of {', '.join(model.outputs)} by {s.formulation}"
        )

    def _finish_build(self) -> None:
        built = self._builder.poll(self.controller.model)
        if built is None:
            return
        if built.model is not None:
            self._adopt(built.model)
            return
        assert built.error is not None
        self.controller.refuse(built.change, built.error)
        if built.change == "parameters" and self.controller.model is not None:
            self._builder.withdraw("parameters")
            used = self.controller.model.wish.settings
            self.set_parameters(
                [
                    Parameter(name, value=_plain(getattr(used, name)))
                    for name, row in BY_NAME.items()
                    if name not in AT_ONCE and not row.read_only
                ]
            )

    # Torques

    def _on_state(self, message: JointState) -> None:
        torques = self.controller.state(message, self._clock.now().nanoseconds)
        if torques is not None:
            self._publish(torques)

    def _on_command(self, message: JointTrajectory) -> None:
        self.controller.command(message, self._now())

    def _on_tick(self) -> None:
        self._publish(self.controller.tick(self._now()))

    def _on_watch(self) -> None:
        self._publish(self.controller.watch(self._now()))
        self._finish_build()
        if steady.monotonic() - self._diagnosed >= DIAGNOSTICS_PERIOD:
            self._publish_diagnostics()

    def _on_jump(self, jump: TimeJump) -> None:
        """The clock was set back, or is another one from now on."""
        if jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE:
            self._publish(self.controller.clock_jumped_back(self._now()))
        else:
            self._publish(self.controller.clock_changed(self._now()))

    def _publish(self, torques: Torques | None) -> None:
        if torques is None:
            return
        self._windows[0][:] = self._windows[1][:] = torques.values
        self._commands_out.publish(self._commands)
        stamp = self._effort.header.stamp
        stamp.sec, stamp.nanosec = divmod(torques.time, SECOND)
        self._effort_out.publish(self._effort)

    def farewell(self) -> None:
        """The last word to the controllers behind, which keep what they got last."""
        self._publish(self.controller.farewell(self._now()))

    def _now(self) -> int:
        return int(self._clock.now().nanoseconds)

    # Diagnostics

    def _publish_diagnostics(self) -> None:
        self._diagnosed = steady.monotonic()
        now = self._clock.now()
        report = self._diagnosis.report(
            self.controller, self._builder.busy, now.nanoseconds, self._diagnosed
        )
        status = DiagnosticStatus(
            level=bytes([report.level]),
            name=f"{self.get_fully_qualified_name().lstrip('/')}: torques",
            message=report.message,
            hardware_id=report.values.get("robot", ""),
            values=[KeyValue(key=key, value=value) for key, value in report.values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = now.to_msg()
        self._diagnostics_out.publish(message)


def _descriptor(row: Row) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=row.meaning + (f" [{row.unit}]" if row.unit else ""),
        additional_constraints=row.range,
        read_only=row.read_only,
        # to ROS an empty array is one of bytes: the table checks what comes in its place
        dynamic_typing=row.default == (),
    )
    if row.type == "double":
        upper = min(row.maximum, sys.float_info.max)
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=row.minimum, to_value=upper)
        ]
    return descriptor


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
