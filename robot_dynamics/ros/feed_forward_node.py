# SPDX-License-Identifier: Apache-2.0
"""The node `feed_forward`, which turns joint states and commands into feed-forward torques."""

from __future__ import annotations

import gc
import time as steady
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.clock import Clock, ClockChange, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.qos import qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from ..description import load
from ..errors import InputError, listed, wrong
from . import serialized_trajectories
from .declared_parameters import declare
from .feed_forward import payload
from .feed_forward.controller import FeedForward
from .feed_forward.diagnostics import Diagnosis, mixed
from .feed_forward.limits import unlimited
from .feed_forward.outlet import Torques
from .feed_forward.parameters import Settings
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND
from .feed_forward.torque_model import Model, ModelSpec
from .managed import Managed
from .parameter_requests import SERVICES, ParameterRequests
from .publishing import LATCHED, QUIET_IN, QUIET_OUT, publish, publish_diagnostics
from .robot_changes import RobotChanges
from .serialized_states import StateReader
from .torque_topics import NEWEST, TorqueTopics
from .trajectory_effort import TrajectoryEffort
from .watchdog import Watchdog

WATCH_PERIOD = 0.1
"""s between checks for what no message reports: lost feedback, finished models, signals"""

DIAGNOSTICS_PERIOD = 0.95
"""s: as it is checked every `WATCH_PERIOD`, diagnostics are published once a second"""

LEAST_TIMEOUT = 1.0
"""s for which the loop may hang if `max_age` is shorter"""

OVERRIDABLE = {"qos_overriding_options": QoSOverridingOptions.with_default_policies()}


class FeedForwardNode(Managed):
    """Topics, parameters and timers around `FeedForward`.

    This is a managed (lifecycle) node: when configured it has a robot, when active it publishes
    torques.

    Raises:
        RobotDynamicsError: a parameter or the description is invalid.
        ParameterException: a parameter has the wrong type or is outside its range.
    """

    def __init__(self) -> None:
        self._requests = ParameterRequests()
        super().__init__("feed_forward")
        self._clock = self.get_clock()
        # read the clock's handle directly: `now` would create two more objects for every message
        self._read_clock = self._clock.handle.get_now
        warnings.showwarning = lambda message, *_: self.warn(message)
        settings = declare(self, Settings, self.warn)
        self.controller = FeedForward(settings, self.warn)
        self._changes = RobotChanges(self, self._requests, self.controller, self._adopt)
        self._had_a_robot, self._remark = False, ""
        self._activations = 0

        # messages that arrive at the control loop's rate
        self._reader = StateReader()
        self.create_subscription(
            JointState,
            "joint_states",
            self._on_state,
            qos_profile_sensor_data,
            raw=True,
            **OVERRIDABLE,
            **QUIET_IN,
        )
        self.create_subscription(
            JointTrajectory,
            "~/command",
            lambda data, info: self._on_command(lambda: serialized_trajectories.read(data), info),
            10,
            raw=True,
            **OVERRIDABLE,
        )
        # messages that arrive rarely; while they are frequent, their subscriptions stay active and
        # handle them immediately
        self._subscribe_idle(InertiaStamped, "~/payload", self._on_payload, 10)
        self._subscribe_idle(WrenchStamped, "~/wrench", self._on_wrench, qos_profile_sensor_data)
        self._subscribe_idle(Imu, "~/base_imu", self._on_imu, qos_profile_sensor_data)
        self._subscribe_idle(
            MultiDOFJointTrajectory, "~/base_motion", self._on_base_motion, qos_profile_sensor_data
        )
        if not settings.description:
            self._subscribe_idle(String, "robot_description", self._on_description, LATCHED)
        self._listen_to_controllers(settings)

        self._torques = TorqueTopics(
            self,
            self.controller.tally,
            check=settings.check_controller,
            withheld=self.controller.outlet.withheld,
            **OVERRIDABLE,
            **QUIET_OUT,
        )
        self._residual_out = None
        if settings.residual:
            self._residual_out = self.create_publisher(
                JointState, "~/residual", NEWEST, **QUIET_OUT
            )
        self._payloads = self.create_publisher(String, "~/payloads", LATCHED, **QUIET_OUT)
        self._publish_payloads()
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10, **QUIET_OUT)
        self._reported = steady.monotonic()
        self._diagnosis = Diagnosis(self._reported)
        self._rivals: list[str] = []

        self._ticks: Any = None
        if not settings.measured:
            self._ticks = self.create_timer(1.0 / settings.rate, self._on_tick)
        # on a clock that continues while simulated time stands still
        steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(WATCH_PERIOD, self._on_watch, clock=steady_clock)
        self._jumps = self._clock.create_jump_callback(
            JumpThreshold(
                min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
            ),
            post_callback=self._on_jump,
        )
        if settings.autostart:
            self.autostart()
        self._watchdog = Watchdog(self._watchdog_timeout, self._on_hang)

    def _subscribe_idle(
        self, kind: Any, topic: str, callback: Callable[..., None], qos: Any
    ) -> None:
        """Subscribe to a topic that costs nothing while no messages arrive.

        Where a publisher's QoS may be incompatible, its event handlers report it.
        """
        quiet = QUIET_IN if qos is qos_profile_sensor_data else {}
        self.create_subscription(
            kind, topic, callback, qos, callback_group=self.idle_group, **quiet
        )

    # Life cycle

    def configure(self) -> None:
        """Load the robot from the parameter `description`, or wait for one on the topic."""
        settings = self.controller.settings
        if settings.description:
            self._adopt(
                self.answering(
                    lambda: Model(ModelSpec(load(settings.description), settings)),
                    "compiling the dynamics; parameter changes and transitions wait for it",
                )
            )
        elif self._changes.heard:
            self._changes.builder.describe(self._changes.heard)
        else:
            topic = self.resolve_topic_name("robot_description")
            self.say(
                f"waiting for a robot: URDF text on {topic} (robot_state_publisher publishes it), "
                "or set the parameter description"
            )

    def activate(self) -> None:
        """Start to compute torques from states and commands.

        A robot with loops is assumed to be near its home configuration.
        """
        self._activations += 1
        if self.controller.model is not None:
            self.controller.model.assume_home()

    def deactivate(self) -> None:
        """Publish the torques at rest, then nothing more; the command is discarded."""
        self._torques.publish(self.controller.deactivate(self._now()))

    def cleanup(self) -> None:
        """Discard the robot."""
        self._changes.clear("the node was cleaned up, or shut down, before the model was built")
        self.controller.release()
        self._publish_payloads()

    def _listen_to_controllers(self, settings: Settings) -> None:
        """Set up the topics and actions that are forwarded to a controller or come from one."""

        def filler() -> Callable[[Any], str]:
            self._check_active()
            return self.controller.filler(self._now())

        tally = self.controller.tally
        self._trajectories = TrajectoryEffort(
            self,
            filler,
            lambda: (self.is_active, self._activations, self.controller.model),
            tally,
            self.idle_group,
        )
        self._goals, action = None, settings.follow_joint_trajectory
        if find_spec("control_msgs") is None:
            if action:
                raise wrong(InputError, "follow_joint_trajectory", action, "control_msgs installed")
            return
        from .control_commands import TOPICS

        for topic, (kind, converted) in TOPICS.items():
            callback = partial(self._on_reference, converted)
            self._subscribe_idle(kind, topic, callback, qos_profile_sensor_data)
        if action:
            from .follow_joint_trajectory import GoalForwarding

            self._goals = GoalForwarding(self, action, self._trajectories.fill, tally)

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, **options: Any) -> Any:
        """Create a service as any node does, except that requests to set parameters are answered
        when the change has taken effect."""
        if srv_type not in SERVICES:
            options.setdefault("callback_group", self.idle_group)
            return super().create_service(srv_type, srv_name, callback, **options)
        options["callback_group"] = self._requests.polled
        service = super().create_service(srv_type, srv_name, callback, **options)
        self._requests.add(service)
        return service

    def destroy_node(self) -> None:
        """Destroy the node after ending a running build."""
        if hasattr(self, "_watchdog"):
            self._watchdog.close()
        if hasattr(self, "_changes"):
            self._changes.close()
        if hasattr(self, "_trajectories"):
            self._trajectories.close()
        if goals := getattr(self, "_goals", None):
            goals.destroy()
        if hasattr(self, "_torques"):
            self._torques.close()
        super().destroy_node()

    # The robot

    def _on_description(self, message: String) -> None:
        self._changes.describe(
            message,
            locked=self.controller.settings.lock_description and self._had_a_robot,
            configured=self.state in ("inactive", "active"),
        )

    def _on_payload(self, message: InertiaStamped) -> None:
        self._changes.carry(message)

    def _on_wrench(self, message: WrenchStamped) -> None:
        link = self.controller.wrench(message, self._now())
        if link is not None:
            self._changes.push(link)

    def _on_imu(self, message: Imu, info: Mapping[str, Any]) -> None:
        self.controller.imu(message, self._now(), self._sent(message, info))

    def _on_base_motion(self, message: MultiDOFJointTrajectory) -> None:
        self.controller.base_motion(message, self._now())

    def _adopt(self, model: Model) -> None:
        old = self.controller.model
        if old is not None and not old.is_the_robot_of(model):
            self._torques.publish(self.controller.farewell(self._now()))
        self.controller.adopt(model)
        self._publish_payloads()
        self._had_a_robot = True
        if old is None:
            # the objects that exist now stay alive: freeze them, so that the garbage collector does
            # not scan them between two states
            gc.freeze()
        self._torques.set_outputs(model.outputs, are_joints=model.spec.settings.side == "joint")
        robot, formulation = model.spec.mechanism.name, model.spec.settings.formulation
        self.say(f"{robot}: {formulation} torques for {listed(model.outputs)}")
        if (remark := unlimited(model)) != self._remark:
            self._remark = remark
            if remark:
                self.warn(remark)

    def _publish_payloads(self) -> None:
        model = self.controller.model
        found = payload.written({} if model is None else model.spec.payloads)
        publish(self._payloads, String(data=found))

    # Torques

    def _on_state(self, data: bytes, info: Mapping[str, Any]) -> None:
        if not self.is_active:
            return
        try:
            message = self._reader.read(data)
        except RefusedError as error:
            self.controller.tally.refuse("joint_states", error)
            return
        self._publish(self.controller.state(message, self._now(), self._sent(message, info)))
        if self._residual_out is not None:
            self._publish_residual(self._residual_out)

    def _publish_residual(self, publisher: Any) -> None:
        found = self.controller.residual
        if found is None or found.at is None or found.value is None:
            return
        assert self.controller.model is not None
        message = JointState(name=list(self.controller.model.joints))
        message.effort = found.value.tolist()
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(found.at, SECOND)
        publish(publisher, message)

    def _on_command(self, read: Callable[[], Any], info: Mapping[str, Any]) -> None:
        """Follow the JointTrajectory that `read` returns."""
        with self.controller.tally.refusing("command"):
            self._check_active()
            message = read()
            self.controller.command(message, self._now(), self._sent(message, info))

    def _on_reference(
        self, converted: Callable[[Any], JointTrajectory], message: Any, info: Mapping[str, Any]
    ) -> None:
        self._on_command(lambda: converted(message), info)

    def _check_active(self) -> None:
        if not self.is_active:
            raise RefusedError("not active", f"the node is {self.state}, not active: activate it")

    def _on_tick(self) -> None:
        if self.is_active:
            self._publish(self.controller.tick(self._now()))

    def _publish(self, torques: Torques | None) -> None:
        """Publish torques, but not those of a motion during whose computation the loop hung: the
        watchdog has published those at rest, and the command has ended."""
        if self._watchdog.reset():
            last = self.controller.resume_after_hang(self._now())
            if torques is None or not torques.at_rest:
                torques = last
        self._torques.publish(torques)

    def _on_watch(self) -> None:
        self._publish(None)
        if self.is_active:
            self._torques.publish(self.controller.watch(self._now()))
        ticks = self._ticks
        # after the system clock was set back, they would wait until it has caught up
        if ticks is not None and ticks.time_until_next_call() > ticks.timer_period_ns:
            ticks.reset()
        self.poll()
        self._trajectories.poll()
        if self._goals is not None:
            self._goals.watch()
        self._torques.watch()
        self._changes.poll()
        if steady.monotonic() - self._reported >= DIAGNOSTICS_PERIOD:
            self._report()

    def _report(self) -> None:
        """Publish the diagnostics."""
        self._reported = steady.monotonic()
        rivals = self._torques.rivals()
        if rivals != self._rivals and rivals:
            self.warn(mixed(self._torques.topic, rivals))
        self._rivals = rivals
        report = self._diagnosis.report(
            self.controller,
            self._changes.builder.busy,
            self._now(),
            self._reported,
            description_refused=self._changes.builder.refused_description,
            state=self.state,
            blocked=self._torques.blocked,
            topic=self._torques.topic,
            subscribers=self._torques.subscribers,
            rivals=rivals,
        )
        publish_diagnostics(
            self._diagnostics,
            self,
            "torques",
            bytes([report.level]),
            report.message,
            report.values,
            report.values.get("robot", ""),
        )

    def _on_jump(self, jump: TimeJump) -> None:
        """Handle a clock that was set back or replaced by another one."""
        if jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE:
            self._torques.publish(self.controller.clock_jumped_back(self._now()))
        else:
            self._torques.publish(self.controller.clock_changed(self._now()))

    # Shutdown

    def farewell(self) -> None:
        """Publish the last torques, which the controllers downstream will hold, and stay until
        they have received them."""
        self._torques.publish(self.controller.farewell(self._now()))
        # a message in transit is lost when its publisher is destroyed
        for topic in self._torques.stay(self.controller.settings.farewell_time):
            self.warn(
                f"{topic}: the last torques were not acknowledged; a subscriber may hold older ones"
            )

    def _watchdog_timeout(self) -> float:
        """How long the loop may hang, s; 0: not monitored."""
        limit = self.controller.settings.max_age
        return max(limit, LEAST_TIMEOUT) if limit and self.is_active else 0.0

    def _on_hang(self) -> bool:
        """Publish the last torques from another thread because the loop hangs, unless the robot is
        at rest already."""
        moves = not self.controller.outlet.at_rest
        torques = self.controller.torques_if_hung()
        if torques is not None:
            self._torques.publish_from_thread(torques)
        return moves

    def _sent(self, message: Any, info: Mapping[str, Any]) -> int:
        """When a message without a stamp was sent, ns of the sender's clock, however long it has
        waited in a queue; 0: it has one, or time is simulated."""
        stamp = message.header.stamp
        if stamp.sec or stamp.nanosec or self._clock.ros_time_is_active:
            return 0
        return int(info["source_timestamp"])

    def _now(self) -> int:
        return int(self._read_clock().nanoseconds)
