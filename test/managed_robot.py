# SPDX-License-Identifier: Apache-2.0
"""A robot in MuJoCo under a real controller manager, to be queried, reconfigured and disturbed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("controller_manager_msgs")

from builtin_interfaces.msg import Duration
from controller_manager_msgs.srv import (
    CleanupController,
    ConfigureController,
    ListControllers,
    LoadController,
    SwitchController,
    UnloadController,
)
from geometry_msgs.msg import InertiaStamped
from node_process import Conversation
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.app.demo.controller_manager import ManagedRobot, _found, built

ROOT = Path(__file__).resolve().parents[1]


def robot(file: Path, folder: Path, start: Sequence[float] = ()) -> ManagedRobot:
    """Built, where it is not sourced."""
    mechanism = rd.load(file)
    joints = rd.InverseDynamics(mechanism).joint_names
    home = [float(mechanism.home.get(name, 0.0)) for name in joints]
    found = ManagedRobot(str(file), mechanism, np.array(start or home), folder)
    built([found], print)
    return found


class MujocoOracle:
    """The same robot by MuJoCo's own equations: its inverse dynamics with its constraints."""

    def __init__(self, robot: ManagedRobot):
        import mujoco

        self._engine = mujoco
        self._model = mujoco.MjModel.from_binary_path(str(robot._file))
        self._data = mujoco.MjData(self._model)
        self._start = robot._qpos
        self._sensed = list(robot.mechanism.sensed) if robot.dynamics.closed is not None else []
        self._known = [robot._places[name] for name in [*robot.joints, *self._sensed]]
        self._driven = [robot._places[name] for name in robot.joints]
        self._others = [i for i in range(self._model.nv) if i not in self._known]
        self.gravity = np.array(self._model.opt.gravity)

    def at_rest(self, q: Any) -> Any:
        """Torques (n,) that hold it at positions of driven and sensed joints."""
        return self(q, np.zeros(len(self._known)), np.zeros(len(self._driven)))

    def __call__(
        self, q: Any, qd: Any, qdd: Any, load: tuple[str, float, Any] | None = None
    ) -> Any:
        """Torques (n,). Rates and accelerations: of open chains. load: body, kg, where (m)."""
        engine, model, data = self._engine, self._model, self._data
        model.opt.gravity[:] = self.gravity
        data.qpos[:], data.qvel[:] = self._start, 0.0
        data.qpos[self._known] = q
        for _ in range(20):
            engine.mj_forward(model, data)
            J = data.efc_J.reshape(-1, model.nv)[: data.ne]
            off = data.efc_pos[: data.ne]
            if not len(off) or abs(off).max() < 1e-12:
                break
            data.qpos[self._others] -= np.linalg.lstsq(J[:, self._others], off, rcond=None)[0]
        data.qacc[:] = 0.0
        data.qvel[self._known] = qd
        data.qacc[self._driven] = qdd
        if len(off):  # what the others do follows from the constraints, at first order
            assert not np.any(qd)
            assert not np.any(qdd)
        engine.mj_fwdPosition(model, data)
        engine.mj_fwdVelocity(model, data)
        # D qdd + bias - damping and friction = S tau + J^T lambda
        D = np.zeros((model.nv, model.nv))
        engine.mj_fullM(model, data, D)
        wanted = D @ data.qacc + data.qfrc_bias - data.qfrc_passive
        if load is not None:
            body, mass, point = load
            place = model.body(body).id
            jacobian = np.zeros((3, model.nv))
            at = data.xpos[place] + data.xmat[place].reshape(3, 3) @ point
            engine.mj_jac(model, data, jacobian, None, at, place)
            wanted = wanted - mass * jacobian.T @ self.gravity
        S = np.eye(model.nv)[:, self._driven]
        J = data.efc_J.reshape(-1, model.nv)[: data.ne]
        found = np.linalg.lstsq(np.hstack([S, J.T]), wanted, rcond=None)[0]
        assert abs(np.hstack([S, J.T]) @ found - wanted).max() < 1e-8 * (1 + abs(wanted).max())
        return found[: len(self._driven)]


class Managed(Conversation):
    """The manager, with MuJoCo as its hardware, in a ROS domain of its own.

    Args:
        robot: whose.
        way: see `robot_dynamics.app.demo.controller_manager`.
        own: more parameters of the controller `law`.
        others: of other controllers, by name, and with "type".
        hardware: more of the hardware's parameters.
    """

    def __init__(
        self,
        robot: ManagedRobot,
        way: str = "feed_forward",
        own: dict[str, Any] | None = None,
        others: dict[str, dict[str, Any]] | None = None,
        **hardware: float | str,
    ):
        self.robot, self._hardware = robot, hardware
        self._log_file = robot.folder / "managed.csv"
        self._log_file.unlink(missing_ok=True)
        self._rows: list[list[float]] = []
        self._read = 0
        parameters = robot.parameters(way)
        parameters["law"]["ros__parameters"] |= own or {}
        for name, given in (others or {}).items():
            given = dict(given)
            parameters["controller_manager"]["ros__parameters"][name] = {"type": given.pop("type")}
            parameters[name] = {"ros__parameters": given}
        file = robot.folder / "managed.yaml"
        file.write_text(json.dumps(parameters))
        program = [str(_found("lib/controller_manager/ros2_control_node"))]
        super().__init__(program, {}, ["--params-file", str(file)])
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = self.node.create_publisher(String, "robot_description", latched)
        self.reference_out = self.node.create_publisher(JointTrajectory, "/law/reference", 10)
        self.payload_out = self.node.create_publisher(InertiaStamped, "/law/payload", 10)
        self.trajectory_out = self.node.create_publisher(
            JointTrajectory, "/trajectory_controller/joint_trajectory", 10
        )

    def _meet(self) -> None:
        text = self.robot.description(self._log_file, **self._hardware)
        self._description.publish(String(data=text))

    # --- services

    def load(self, *names: str) -> None:
        for name in names:
            for kind, what in (
                (LoadController, "load_controller"),
                (ConfigureController, "configure_controller"),
            ):
                assert self.ask(kind, f"/controller_manager/{what}", name=name).ok, self.log

    def configure(self, name: str) -> bool:
        return self.ask(
            ConfigureController, "/controller_manager/configure_controller", name=name
        ).ok

    def clean_up(self, name: str) -> bool:
        return self.ask(CleanupController, "/controller_manager/cleanup_controller", name=name).ok

    def unload(self, name: str) -> bool:
        return self.ask(UnloadController, "/controller_manager/unload_controller", name=name).ok

    def switch(self, on: Sequence[str] = (), off: Sequence[str] = ()) -> bool:
        return self.ask(
            SwitchController,
            "/controller_manager/switch_controller",
            activate_controllers=list(on),
            deactivate_controllers=list(off),
            strictness=SwitchController.Request.STRICT,
            timeout=Duration(sec=20),
        ).ok

    @property
    def states(self) -> dict[str, str]:
        found = self.ask(ListControllers, "/controller_manager/list_controllers").controller
        return {each.name: each.state for each in found}

    def set(self, node: str = "law", **values: Any) -> str:
        """Parameters, `.` written as `__`: why they were refused, or nothing."""
        changes = [
            Parameter(
                name.replace("__", "."),
                Parameter.Type.DOUBLE_ARRAY if value == [] else None,
                value,
            ).to_parameter_msg()
            for name, value in values.items()
        ]
        answer = self.ask(
            SetParametersAtomically, f"/{node}/set_parameters_atomically", parameters=changes
        ).result
        return "" if answer.successful else answer.reason or "refused"

    # --- motion

    def move(self, desired: Any, seconds: float, lead: float = 1.0) -> None:
        """A trajectory for joint_trajectory_controller, beginning after `lead` s."""
        self.until(self.trajectory_out.get_subscription_count, "the trajectory's subscriber")
        begin = self.node.get_clock().now().nanoseconds + round(lead * 1e9)
        message = JointTrajectory(joint_names=self.robot.joints)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(begin, 10**9)
        for t in np.arange(0.0, seconds, 0.01).tolist():
            q, qd, qdd = (x.tolist() for x in desired(np.array(t)))
            after = Duration(sec=int(t), nanosec=int((t - int(t)) * 1e9))
            message.points.append(
                JointTrajectoryPoint(
                    positions=q, velocities=qd, accelerations=qdd, time_from_start=after
                )
            )
        self.trajectory_out.publish(message)

    def refer(self, q: Any, qd: Any, qdd: Any, **more: Any) -> None:
        """One desired state."""
        self.until(self.reference_out.get_subscription_count, "the reference's subscriber")
        states = [[float(x) for x in each] for each in (q, qd, qdd)]
        point = JointTrajectoryPoint(
            positions=states[0], velocities=states[1], accelerations=states[2], **more
        )
        self.reference_out.publish(JointTrajectory(joint_names=self.robot.joints, points=[point]))

    def command(self, controller: str, values: Any) -> None:
        """Values for a forward_command_controller."""
        publisher = self.node.create_publisher(Float64MultiArray, f"/{controller}/commands", 1)
        self.until(publisher.get_subscription_count, f"{controller}'s subscriber")
        publisher.publish(Float64MultiArray(data=[float(x) for x in values]))

    # --- what it did

    @property
    def rows(self) -> Any:
        """(t, 3 k + 3): time, then q, qd and effort of each joint, then stamp and duration."""
        if self._log_file.exists():
            with self._log_file.open() as file:
                file.seek(self._read)
                whole = file.read().rpartition("\n")[0]
            self._read += len(whole)
            self._rows += [[float(x) for x in row.split(",")] for row in whole.split()]
        return np.array(self._rows)

    @property
    def columns(self) -> int:
        return len(self.robot.description(self._log_file).split('<param name="place">')) - 1

    def split(self, rows: Any) -> tuple[Any, Any, Any]:
        """q, qd (t, k) of driven and sensed joints; efforts (t, n) of the driven ones."""
        k = 3 * self.columns
        n = len(self.robot.joints)
        return rows[..., 1:k:3], rows[..., 2 : k + 1 : 3], rows[..., 3 : k + 1 : 3][..., :n]

    def later(self, seconds: float) -> Any:
        """The rows of this much simulated time from now on."""
        rows = self.rows
        begin = rows[-1, 0] if len(rows) else 0.0
        self.until(lambda: len(self.rows) and self.rows[-1, 0] > begin + seconds, "simulated time")
        rows = self.rows
        return rows[rows[:, 0] > begin]

    def lines(self, *words: str) -> list[str]:
        """The lines of the log that contain all of these words."""
        return [line for line in self.log.splitlines() if all(word in line for word in words)]
