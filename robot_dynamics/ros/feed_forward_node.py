"""The node `feed_forward`: joint states and commands in, feed-forward torques out."""

from __future__ import annotations

import difflib
import gc
import sys
import time as steady
import warnings
from array import array
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from ..description import load
from ..errors import InputError, RobotDynamicsError, listed, one_line, shown, wrong
from .controller_order import ControllerOrder
from .feed_forward import payload
from .feed_forward.builder import Builder, Outcome
from .feed_forward.controller import FeedForward, Torques
from .feed_forward.diagnostics import Diagnosis
from .feed_forward.model import Model, Wish
from .feed_forward.parameters import AT_ONCE, BY_NAME, PARAMETERS, Settings
from .feed_forward.parameters import Parameter as Row
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND
from .managed import Managed
from .parameter_requests import SERVICES, Answer, ParameterRequests, refused
from .trajectory_effort import TrajectoryEffort
from .watchdog import Watchdog

WATCH_PERIOD = 0.1
"""s between two looks at what no message reports: lost feedback, finished models, signals"""

LEAST_PATIENCE = 1.0
"""s that the loop may hang, where max_age is less"""

DIAGNOSTICS_PERIOD = 0.95
"""s, of the watch's timer: once a second"""

DELIVERY = 1.0
"""s that the end waits for a reliable subscriber to have the last torques"""

LINE = 500
"""Characters of a line in the log and of a value in the diagnostics"""

NEWEST = QoSProfile(depth=1)
"""Torques: an old one is of no use"""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class FeedForwardNode(Managed):
    """Topics, parameters and timers around `FeedForward`.

    A managed node: configured it has its robot, active it publishes torques.

    Raises:
        RobotDynamicsError: a parameter or the description is wrong.
        ParameterException: a parameter has the wrong type, or lies outside its range.
    """

    def __init__(self) -> None:
        self._requests = ParameterRequests()
        super().__init__("feed_forward")
        self._heard, self._had_a_robot = "", False
        self._clock = self.get_clock()
        warnings.showwarning = lambda message, *_: self._warn(message)
        settings = self._declare()
        self.controller = FeedForward(settings, self._warn)
        self._builder = Builder(settings, self._warn)
        self._committing = False
        self._commands, self._effort = Float64MultiArray(), JointState()
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
        seldom = {"callback_group": self.drowsy, **quiet_in}
        self.create_subscription(InertiaStamped, "~/payload", self._on_payload, 10, **seldom)
        # one that streams is awake, and heard at once
        self.create_subscription(
            WrenchStamped, "~/wrench", self._on_wrench, qos_profile_sensor_data, **seldom
        )
        if not settings.description:
            self.create_subscription(
                String, "robot_description", self._on_description, LATCHED, **seldom
            )
        self._listen_to_controllers(settings)
        self._commands_out = self.create_publisher(
            Float64MultiArray, "~/commands", NEWEST, **overridable, **quiet_out
        )
        self._order = ControllerOrder(self, self._commands_out.topic_name)
        self._effort_out = self.create_publisher(
            JointState, "~/effort", NEWEST, **overridable, **quiet_out
        )
        self._residual_out = None
        if settings.residual:
            self._residual_out = self.create_publisher(
                JointState, "~/residual", NEWEST, **quiet_out
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
        if settings.autostart:
            self.autostart()
        self._watchdog = Watchdog(self._patience, self._bark)

    # Its life

    def configure(self) -> None:
        """Take the robot of the parameter, or wait for one on the topic."""
        settings = self._builder.settings
        if settings.description:
            # nothing goes out that this could hold
            self._adopt(Model(Wish(load(settings.description), settings)))
        elif self._heard:
            self._builder.describe(self._heard)
        else:
            topic = self.resolve_topic_name("robot_description")
            self.get_logger().info(
                f"waiting for a robot: URDF text on {topic} (robot_state_publisher has it), or set "
                "the parameter description"
            )

    def activate(self) -> None:
        """From now on states and commands make torques; a robot with loops is near its home."""
        if self.controller.model is not None:
            self.controller.model.start_anew()

    def deactivate(self) -> None:
        """The torques at rest, and silence; the command is forgotten."""
        self._publish(self.controller.retire(self._now()))

    def cleanup(self) -> None:
        """There is no robot any more."""
        self._builder.clear()
        self.controller.release()

    def _listen_to_controllers(self, settings: Settings) -> None:
        """What goes through to a controller, and what comes from one."""

        def fill(message: Any) -> None:
            self._check_active()
            self.controller.fill(message, self._now())

        refuse = self.controller.refuse
        TrajectoryEffort(self, fill, refuse, self.drowsy)
        self._goals, action = None, settings.follow_joint_trajectory
        if find_spec("control_msgs") is None:
            if action:
                raise wrong(InputError, "follow_joint_trajectory", action, "control_msgs installed")
            return
        from . import control_commands

        control_commands.subscribe(self, self._on_command, self.drowsy)
        if action:
            from .follow_joint_trajectory import GoalForwarding

            self._goals = GoalForwarding(self, action, fill, refuse)

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, **options: Any) -> Any:
        """As of every node; but setters of parameters are answered once the change counts."""
        if srv_type not in SERVICES:
            options.setdefault("callback_group", self.drowsy)
            return super().create_service(srv_type, srv_name, callback, **options)
        options["callback_group"] = self._requests.asleep
        service = super().create_service(srv_type, srv_name, callback, **options)
        self._requests.add(service)
        return service

    def destroy_node(self) -> None:
        """Ends a running build first."""
        if hasattr(self, "_watchdog"):
            self._watchdog.close()
        if hasattr(self, "_builder"):
            self._builder.close()
        if goals := getattr(self, "_goals", None):
            goals.destroy()
        super().destroy_node()

    # Parameters

    def _declare(self) -> Settings:
        for row in PARAMETERS:
            descriptor = _descriptor(row)
            if not row.type.endswith("array"):
                self.declare_parameter(row.name, row.default, descriptor)
                continue
            # an empty array has a type once it was set with one
            descriptor.read_only = False
            self.declare_parameter(row.name, list(row.default), descriptor)
            self.set_parameters([_typed(self.get_parameter(row.name))])
            self.set_descriptor(row.name, _descriptor(row))
        known = {*BY_NAME, "use_sim_time", "start_type_description_service"}
        for name in self._parameter_overrides:
            if name not in known and not name.startswith("qos_overrides."):
                near = difflib.get_close_matches(name, BY_NAME, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self._warn(f"unknown parameter {shown(name)}{hint}")
        return Settings.of(_values(self.get_parameter(name) for name in BY_NAME))

    def _on_request(self, parameters: list[Parameter], answer: Answer) -> None:
        """A request to set parameters: where they need a new model, it is built first."""
        parameters = [_typed(each) for each in parameters]
        values = _values(parameters)
        if not set(values) <= AT_ONCE and not any(BY_NAME[name].read_only for name in values):
            try:
                self._builder.set(values, (parameters, answer))
                return
            except RefusedError as error:
                answer(refused(error))
                return
            except InputError:
                pass  # for the same reason, or ROS's own, it is refused now
        answer(self._set(parameters))

    def _set(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            return self.set_parameters_atomically(parameters)
        except ParameterException as error:
            return refused(error)

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Are these values acceptable?"""
        values = _values(parameters)
        try:
            self._builder.settings.changed(values)
        except InputError as error:
            return refused(error)
        if not set(values) <= AT_ONCE and not self._committing:
            return refused(f"{', '.join(values)}: no model was built; use the node's services")
        return SetParametersResult(successful=True)

    def _take_parameters(self, parameters: list[Parameter]) -> None:
        if not self._committing:
            self._builder.take(_values(parameters))
            self.controller.settings = self._builder.settings

    # The robot

    def _on_description(self, message: String) -> None:
        locked = self._builder.settings.lock_description and self._had_a_robot
        if locked and message.data != self._heard:
            told = RefusedError("locked", "the robot stays, as lock_description says")
            self.controller.refuse("description", told)
            return
        self._heard = message.data
        if self.state not in ("inactive", "active"):
            return
        try:
            self._builder.describe(message.data)
        except RobotDynamicsError as error:
            self.controller.refuse("description", error)

    def _on_payload(self, message: InertiaStamped) -> None:
        try:
            self._builder.carry(*payload.read(message), self.controller.model)
        except RobotDynamicsError as error:
            self.controller.refuse("payload", error)

    def _on_wrench(self, message: WrenchStamped) -> None:
        link = self.controller.wrench(message, self._now())
        if link is None:
            return
        try:
            if self._builder.push(link):
                text = f"a wrench on {shown(link)}: it acts as soon as its equations are compiled"
                self.get_logger().info(one_line(text, LINE))
        except RobotDynamicsError as error:
            self.controller.refuse("wrench", error)

    def _on_outcome(self, outcome: Outcome) -> None:
        """A change was built, or could not be."""
        change, error = outcome.change, outcome.error
        if outcome.still_refused is not None:
            self.controller.refuse("description", outcome.still_refused)
        if error is not None:
            self.controller.refuse(change.kind, error)
            self._builder.reject(outcome)
        if change.kind != "parameters":
            if error is None:
                self._accept(outcome)
            return
        parameters, answer = change.sender
        if error is not None:
            answer(refused(error))
            return
        self._committing = True
        try:
            result = self._set(parameters)
        finally:
            self._committing = False
        if result.successful:
            self._accept(outcome)
        answer(result)

    def _accept(self, outcome: Outcome) -> None:
        old = self.controller.model
        self._builder.accept(outcome, old)
        self.controller.settings = self._builder.settings
        if outcome.model is None:
            return
        self._adopt(outcome.model)
        if old is not None and outcome.change.kind not in ("payload", "wrench"):
            lost = set(old.wish.payloads) - set(outcome.model.wish.payloads)
            if lost:
                self._warn(f"payload removed: no link {listed(sorted(lost))} any more")

    def _adopt(self, model: Model) -> None:
        old = self.controller.model
        if old is not None and not old.has_the_joints_of(model):
            self._publish(self.controller.farewell(self._now()))
        self.controller.adopt(model)
        self._had_a_robot = True
        if old is None:
            # what is there by now stays: the collector need not look at it between two states
            gc.freeze()
        n = len(model.outputs)
        self._effort.name = list(model.outputs)
        self._commands.data = self._effort.effort = [0.0] * n
        # windows into the messages: publishing allocates nothing
        self._windows = np.frombuffer(self._commands.data), np.frombuffer(self._effort.effort)
        formulation = model.wish.settings.formulation
        text = f"{model.name}: {formulation} torques for {listed(model.outputs)}"
        self.get_logger().info(one_line(text, LINE))

    # Torques

    def _on_state(self, message: JointState) -> None:
        if not self.is_active:
            return
        torques = self.controller.state(message, self._clock.now().nanoseconds)
        if torques is not None:
            self._publish(torques)
        if self._residual_out is not None:
            self._publish_residual(self._residual_out)

    def _publish_residual(self, publisher: Any) -> None:
        found, time = self.controller.residual, self.controller.residual_at
        if time is None or found is None or found.value is None:
            return
        assert self.controller.model is not None
        message = JointState(name=list(self.controller.model.joints))
        message.effort = found.value.tolist()
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time, SECOND)
        publisher.publish(message)

    def _on_command(self, message: JointTrajectory) -> None:
        try:
            self._check_active()
        except RefusedError as error:
            self.controller.refuse("command", error)
            return
        self.controller.command(message, self._now())

    def _check_active(self) -> None:
        if not self.is_active:
            raise RefusedError("not active", f"the node is {self.state}, not active")

    def _on_tick(self) -> None:
        if self.is_active:
            self._publish(self.controller.tick(self._now()))

    def _patience(self) -> float:
        """s that the loop may hang."""
        limit = self.controller.settings.max_age
        return max(limit, LEAST_PATIENCE) if limit and self.is_active else 0.0

    def _bark(self) -> None:
        """The loop hangs; another thread says the last words for it."""
        torques = self.controller.last_words()
        if torques is not None and not self._order.problem:
            self._commands_out.publish(Float64MultiArray(data=torques.tolist()))

    def _on_watch(self) -> None:
        if self._watchdog.beat():
            self._publish(self.controller.came_back(self._now()))
        if self.is_active:
            self._publish(self.controller.watch(self._now()))
        self.drowsy.poll()
        if self._goals is not None:
            self._goals.watch()
        model = self.controller.model
        if model is not None and self._builder.settings.check_controller:
            # motors have names of their own
            is_joints = model.wish.settings.side == "joint"
            self._order.watch(model.outputs if is_joints else ())
        for parameters, answer in self._requests.taken():
            self._on_request(parameters, answer)
        while (outcome := self._builder.poll(self.controller.model)) is not None:
            self._on_outcome(outcome)
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
        if self._order.problem:
            self.controller.refuse("torques", RefusedError("controller", self._order.problem))
            return
        self._windows[0][:] = self._windows[1][:] = torques.values
        self._commands_out.publish(self._commands)
        stamp = self._effort.header.stamp
        stamp.sec, stamp.nanosec = divmod(torques.time, SECOND)
        self._effort_out.publish(self._effort)

    def farewell(self) -> None:
        """The last torques, which the controllers downstream keep: until they have them, the node
        stays."""
        torques = self.controller.farewell(self._now())
        if torques is None:
            return
        self._publish(torques)
        # what is under way is lost where its publisher is gone
        for publisher in (self._commands_out, self._effort_out):
            if not publisher.wait_for_all_acked(Duration(seconds=DELIVERY)):
                self._warn(f"{publisher.topic_name}: the last torques were not acknowledged")

    def _warn(self, text: object) -> None:
        """One line in the log, whatever names from elsewhere are in it."""
        self.get_logger().warning(one_line(text, LINE))

    def _now(self) -> int:
        return int(self._clock.now().nanoseconds)

    # Diagnostics

    def _publish_diagnostics(self) -> None:
        self._diagnosed = steady.monotonic()
        now = self._clock.now()
        report = self._diagnosis.report(
            self.controller,
            self._builder.busy,
            now.nanoseconds,
            self._diagnosed,
            description_refused=self._builder.refused_description,
            state=self.state,
            blocked=self._order.problem,
        )
        status = DiagnosticStatus(
            level=bytes([report.level]),
            name=f"{self.get_fully_qualified_name().lstrip('/')}: torques",
            message=one_line(report.message, LINE),
            hardware_id=one_line(report.values.get("robot", ""), LINE),
            values=[
                KeyValue(key=one_line(key, LINE), value=one_line(value, LINE))
                for key, value in report.values.items()
            ],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = now.to_msg()
        self._diagnostics_out.publish(message)


def _descriptor(row: Row) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=row.meaning + (f" [{row.unit}]" if row.unit else ""),
        additional_constraints=row.range,
        read_only=row.read_only,
        # to ROS an empty array is one of bytes, [4, 100] one of integers: the table checks them
        dynamic_typing=row.type.endswith("array"),
    )
    if row.type == "double":
        upper = min(row.maximum, sys.float_info.max)
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=row.minimum, to_value=upper)
        ]
    return descriptor


def _values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Name to value, of those that are in the table."""
    return {each.name: each.value for each in parameters if each.name in BY_NAME}


def _typed(parameter: Parameter) -> Parameter:
    """An array that is empty, or of whole numbers, as one of the table's type."""
    row = BY_NAME.get(parameter.name)
    if row is None or not row.type.endswith("array"):
        return parameter
    value = [] if parameter.value is None else parameter.value
    if not len(value) or isinstance(value, (list, array)):
        value = list(value)
        if row.type == "double_array" and all(type(each) is int for each in value):
            value = [float(each) for each in value]
        try:
            return Parameter(row.name, _ARRAYS[row.type], value)
        except ValueError:
            pass  # of something else: the table says so
    return parameter


_ARRAYS = {
    "string_array": Parameter.Type.STRING_ARRAY,
    "double_array": Parameter.Type.DOUBLE_ARRAY,
}
