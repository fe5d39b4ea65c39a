# SPDX-License-Identifier: Apache-2.0
"""The node `watch`, which monitors whether the model is still correct.

It reports a better model if it finds one, and changes nothing by itself.

| | name | type | notes |
|---|---|---|---|
| in | `robot_description` | String, transient local | the current model, URDF |
| in | `joint_states` | JointState | by name; those without stamp or efforts are ignored |
| in | `~/payloads` | String, transient local | those in the model of the node `feed_forward` |
| out | `/diagnostics` | DiagnosticArray | numbers, their deviations, torques, and what is proven |
| out | `~/robot_description` | String, transient local | the adopted model; nothing before that |
| service | `~/adopt` | std_srvs/Trigger | approves the proposed model: publishes it if proven |

Its parameters are the rows of `WatchSettings`.
"""

from __future__ import annotations

import time as steady
from dataclasses import dataclass, replace

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ..description import load_urdf_text
from ..description.urdf_text import replaced
from ..errors import RecordingError, RobotDynamicsError, listed, one_line
from ..identification import Recording, Stream
from ..identification.watch import Estimate, Watch
from ..inputs import finite
from ..mechanism import Joint, Link
from ..mechanism.mechanism import new_name
from .declared_parameters import declare
from .feed_forward import payload as payloads
from .feed_forward.parameter_table import flag, number, text
from .feed_forward.parameters import gravity_row
from .publishing import LATCHED, publish, publish_diagnostics

STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""QoS of states: evaluating a block takes tenths of a second, during which states are queued"""
PERIOD = 0.2
"""s between checks whether a block is full"""
MOST = 200_000
"""The largest number of states in a block"""
PATIENCE = 2.0
"""Number of blocks' durations without a complete one, after which the diagnostics say why"""
DOUBLE = (
    "another node has the same name, and would adopt a model as well: end or rename one of them "
    "(-r __node:=...)"
)


@dataclass(frozen=True)
class WatchSettings:
    """The values of the parameters, checked: each field is a row of the table."""

    link: str = text("", "link whose load may change; empty: the last one that moves")
    memory: float = number(
        60.0, "age at which motion has a weight of 1/e", unit="s", minimum=1.0, maximum=1e6
    )
    block: float = number(
        5.0, "motion that is evaluated together", unit="s", minimum=2.0, maximum=3600.0
    )
    motor_efforts: bool = flag(
        False, "efforts are those of motors that may be coupled to several joints"
    )
    gravity: tuple[float, ...] = gravity_row()

    def __post_init__(self) -> None:
        if self.gravity:
            finite("gravity", self.gravity, 3)


class WatchNode(Node):  # type: ignore[misc]
    """Monitors the model of one robot."""

    def __init__(self) -> None:
        super().__init__("watch")
        self._settings = declare(self, WatchSettings, self.get_logger().warning, fixed=True)
        self._text = ""
        self._watch: Watch | None = None
        self._payloads = "{}"
        self._unwatched = "no robot_description has been received"
        self._said = ""
        self._model = self.create_publisher(String, "~/robot_description", LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_subscription(JointState, "joint_states", self._on_state, STATES)
        self.create_subscription(String, "~/payloads", self._on_payloads, LATCHED)
        self.create_service(Trigger, "~/adopt", self._on_adopt)
        self.create_timer(PERIOD, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_description(self, message: String) -> None:
        if message.data != self._text:
            self._begin_anew(message.data, self._payloads)

    def _on_payloads(self, message: String) -> None:
        if message.data != self._payloads:
            self._begin_anew(self._text, message.data)

    def _begin_anew(self, text: str, carried: str) -> None:
        try:
            self._begin(text, carried)
        except RobotDynamicsError as error:
            what = "not watched" if self._watch is None else "ignored"
            self._unwatched = f"{what}: {one_line(error)}"
            self.get_logger().error(self._unwatched)

    def _begin(self, text: str, carried: str) -> None:
        """Begin to watch this robot with these payloads.

        Raises:
            RobotDynamicsError: it is no robot, and the one before is watched as before; or this
                robot cannot be watched, and none is.
        """
        bodies = payloads.parsed(carried)
        mechanism = load_urdf_text(text) if text else None
        self._text, self._payloads, self._watch = text, carried, None
        self._rows: list[tuple[float, list[list[float]]]] = []
        self._estimate: Estimate | None = None
        self._told, self._unused = steady.monotonic(), "no joint_states"
        if mechanism is None:
            return
        settings, moving, links = self._settings, mechanism.moving, mechanism.links
        names = {each.name for each in links}
        # as links of their own: what is estimated is the body that the description has
        taken = {mechanism.base, *names, *(each.joint.name for each in links)}
        for each, body in bodies.items():
            if each in names:  # the node removes others with their links
                name = new_name("payload", taken)
                links += (Link(name, each, Joint(name, "fixed"), body),)
        gravity = np.array(settings.gravity or mechanism.gravity)
        mechanism = replace(mechanism, links=links, gravity=gravity)
        link = settings.link or (moving[-1].name if moving else "")
        self._watch = Watch(mechanism, link, settings.memory, motor_efforts=settings.motor_efforts)
        load = sum(float(body.mass) for body in bodies.values())
        beside = f" beside payloads of {load:g} kg" if load else ""
        self.get_logger().info(
            f"watching {one_line(mechanism.name)} and the load on {one_line(link)}{beside}"
        )

    def _on_state(self, state: JointState) -> None:
        if self._watch is None or len(self._rows) >= MOST:
            return
        stamp = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        place = {name: k for k, name in enumerate(state.name)}
        missing = [name for name in self._watch.joints if name not in place]
        if missing or not stamp:
            self._unused = f"joint_states without {listed(missing) if missing else 'stamps'}"
            return
        columns = [place[name] for name in self._watch.joints]
        try:
            position, effort = (
                [field[k] for k in columns] for field in (state.position, state.effort)
            )
        except IndexError:
            self._unused = "joint_states without positions or efforts"
            return
        whole = len(state.velocity) == len(state.name)
        rates = [state.velocity[k] for k in columns] if whole else [np.nan] * len(columns)
        self._rows.append((stamp, [position, rates, effort]))

    def _on_timer(self) -> None:
        if self._watch is None:
            return
        rows, block = self._rows, self._settings.block
        # a clock that was set back ends a block, too
        if len(rows) < 2 or (abs(rows[-1][0] - rows[0][0]) < block and len(rows) < MOST):
            if steady.monotonic() - self._told > PATIENCE * block:
                self._tell(f"nothing to evaluate: {self._unused}")
            return
        self._rows, self._unused = [], "no joint_states"
        time = np.array([stamp for stamp, _ in rows])
        q, qd, tau = (np.array([values[k] for _, values in rows]) for k in range(3))
        stream = Stream(self._watch.joints, time, q, qd, tau)
        try:
            self._estimate = self._watch.add(Recording("joint_states", (stream,)))
        except RecordingError as error:
            self._tell(f"a block of samples was skipped: {one_line(error)}")
            return
        self._tell("")

    def _tell(self, fault: str) -> None:
        """Publish diagnostics, and log whenever the model becomes proven or ceases to be."""
        self._told = steady.monotonic()
        estimate = self._estimate
        if estimate is None:
            level, message, values = DiagnosticStatus.OK, fault or "no estimate yet", {}
        else:
            proven = estimate.proven
            level = DiagnosticStatus.WARN if proven else DiagnosticStatus.OK
            message = (
                "a better model was found and validated; call ~/adopt to use it"
                if proven
                else f"keeping the current model: {estimate.why_not}"
            )
            values = {
                name: f"{each.value:.6g} ± {each.deviation:.2g} (current: {each.in_force:.6g})"
                for name, each in estimate.numbers.items()
            }
            for joint, missed in estimate.missed.items():
                values[f"{joint}: missed"] = (
                    f"{missed:.4g} current, {estimate.proposed[joint]:.4g} proposed"
                )
            for joint, torque in estimate.torques.items():
                values[f"{joint}: torque"] = (
                    f"{torque.value:.4g} ± {2 * torque.deviation:.2g} predicted, "
                    f"{torque.measured:.4g} measured; {torque.inside:.0%} of the block inside"
                )
            said = "proven" if proven else "not proven"
            if said != self._said:
                self._said = said
                self.get_logger().info(message)
            message = f"{message}; {fault}" if fault else message
        if self._has_a_double:
            level, message = DiagnosticStatus.WARN, f"{DOUBLE}; {message}"
        publish_diagnostics(self._diagnostics, self, "model", level, message, values)

    @property
    def _has_a_double(self) -> bool:
        own = self.get_name(), self.get_namespace()
        return bool(self.get_node_names_and_namespaces().count(own) > 1)

    def _on_adopt(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._watch is None:
            response.message = f"nothing to adopt: {self._unwatched}"
            return response
        if self._has_a_double:
            response.message = "not adopted: " + DOUBLE
            return response
        watch, text = self._watch, self._text
        try:
            new = watch.adopted()
        except RobotDynamicsError as error:
            response.message = one_line(error)
            return response
        bodies = {watch.link: new.link(watch.link).inertial}
        frictions = {name: new.joint(name).friction for name in watch.joints}
        try:
            urdf = replaced(text.encode(), bodies, frictions, "utf-8").decode()
            self._begin(urdf, self._payloads)
        except RobotDynamicsError as error:
            self._begin(text, self._payloads)
            response.message = f"not adopted: {one_line(error)}"
            return response
        self._said = ""
        publish(self._model, String(data=urdf))
        response.success = True
        response.message = "adopted, and published on ~/robot_description"
        self.get_logger().info(response.message)
        return response
