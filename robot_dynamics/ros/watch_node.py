# SPDX-License-Identifier: Apache-2.0
"""The node `watch`, which monitors whether the model is still correct.

It reports a better model if it finds one, and changes nothing by itself.

| | name | type | notes |
|---|---|---|---|
| in | `robot_description` | String, transient local | the current model, URDF |
| in | `joint_states` | JointState | by name; states without efforts are ignored |
| out | `/diagnostics` | DiagnosticArray | each number, its deviation, and whether it is proven |
| out | `~/robot_description` | String, transient local | the adopted model; nothing before that |
| service | `~/adopt` | std_srvs/Trigger | approves the proposed model: publishes it if proven |

Its parameters are the rows of `WatchSettings`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from ..errors import RecordingError, RobotDynamicsError, one_line
from ..identification import Recording, Stream
from ..identification.watch import Estimate, Watch
from .declared_parameters import declare
from .feed_forward.parameter_table import flag, number, text
from .publishing import LATCHED, publish, publish_diagnostics

STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""QoS of states: evaluating a block takes tenths of a second, during which states are queued"""
PERIOD = 0.2
"""s between checks whether a block is full"""
MOST = 200_000
"""The largest number of states in a block"""


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


class WatchNode(Node):  # type: ignore[misc]
    """Monitors the model of one robot."""

    def __init__(self) -> None:
        super().__init__("watch")
        self._settings = declare(self, WatchSettings, self.get_logger().warning, fixed=True)
        self._text = ""
        self._watch: Watch | None = None
        self._rows: list[tuple[float, list[list[float]]]] = []
        self._estimate: Estimate | None = None
        self._said = ""
        self._model = self.create_publisher(String, "~/robot_description", LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_subscription(JointState, "joint_states", self._on_state, STATES)
        self.create_service(Trigger, "~/adopt", self._on_adopt)
        self.create_timer(PERIOD, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_description(self, message: String) -> None:
        if message.data == self._text:
            return
        try:
            mechanism = load_urdf_text(message.data)
            moving = mechanism.moving
            settings = self._settings
            link = settings.link or (moving[-1].name if moving else "")
            self._watch = Watch(
                mechanism, link, settings.memory, motor_efforts=settings.motor_efforts
            )
        except RobotDynamicsError as error:
            self.get_logger().error(f"robot_description refused: {one_line(error)}")
            return
        self._text, self._rows, self._estimate = message.data, [], None
        self.get_logger().info(
            f"watching {one_line(mechanism.name)} and the load on {one_line(link)}"
        )

    def _on_state(self, state: JointState) -> None:
        if self._watch is None or len(self._rows) >= MOST:
            return
        place = {name: k for k, name in enumerate(state.name)}
        try:
            columns = [place[name] for name in self._watch.joints]
            position, effort = (
                [field[k] for k in columns] for field in (state.position, state.effort)
            )
        except (KeyError, IndexError):
            return  # other joints, or no efforts
        whole = len(state.velocity) == len(state.name)
        rates = [state.velocity[k] for k in columns] if whole else [np.nan] * len(columns)
        stamp = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        self._rows.append((stamp, [position, rates, effort]))

    def _on_timer(self) -> None:
        if self._watch is None or len(self._rows) < 2:
            return
        if self._rows[-1][0] - self._rows[0][0] < self._settings.block and len(self._rows) < MOST:
            return
        rows, self._rows = self._rows, []
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
            said = "proven" if proven else "not proven"
            if said != self._said:
                self._said = said
                self.get_logger().info(message)
        publish_diagnostics(self._diagnostics, self, "model", level, message, values)

    def _on_adopt(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._watch is None:
            response.message = "nothing to adopt: no robot_description has been received"
            return response
        try:
            new = self._watch.adopted()
        except RobotDynamicsError as error:
            response.message = one_line(error)
            return response
        joints = self._watch.joints
        urdf = replaced(
            self._text.encode(),
            {self._watch.link: new.link(self._watch.link).inertial},
            {name: new.joint(name).friction for name in joints},
        ).decode()
        self._text, self._rows, self._estimate, self._said = urdf, [], None, ""
        publish(self._model, String(data=urdf))
        response.success = True
        response.message = "adopted, and published on ~/robot_description"
        self.get_logger().info(response.message)
        return response
