# SPDX-License-Identifier: Apache-2.0
"""The generated controllers under a real controller manager at 1 kHz, MuJoCo as the robot.

    python benchmarks/controller.py polar urdf/six_axis.urdf [--picture docs/controller.png]

joint_trajectory_controller does the same motion four ways: with its own PID on effort interfaces
(PD), and chained onto the generated controller with the laws gravity, feed_forward and
computed_torque, all with gains of one bandwidth. The table has the root mean square and the
largest position error after the motion's first second.

It needs a sourced ROS 2 with ros2_control, ros2_controllers, the generated packages of these robots
(`robot_dynamics export FILE --as controller`) and benchmarks/mujoco_hardware, built; it says what
is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import robot_dynamics as rd
from robot_dynamics.simulation.physics import Simulation, _joint, mujoco
from robot_dynamics.simulation.tracking import pd_gains

ROOT = Path(__file__).resolve().parents[1]
PERIOD = 1e-3
TIMESTEP = 1e-4
BANDWIDTH = 15.0
"""rad/s, of every law's gains"""
WAYS = ("PD", "gravity", "feed_forward", "computed_torque")


def missing(packages: list[str]) -> list[str]:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [
        name
        for name in packages
        if not any(prefix and (Path(prefix) / "share" / name).is_dir() for prefix in prefixes)
    ]


def found_executable(package: str, name: str) -> str:
    for prefix in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep):
        path = Path(prefix) / "lib" / package / name
        if path.exists():
            return str(path)
    raise SystemExit(f"{package} has no {name}")


class Motion:
    """Sines of two frequencies about home that begin and end at rest."""

    def __init__(self, start: np.ndarray, seconds: float, size: float):
        self.start, self.seconds = start, seconds
        j = np.arange(len(start))
        self.amplitude = size * (1.0 - 0.08 * j)
        self.omega = 2.0 * np.pi * (0.35 + 0.07 * j)

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # q = q_0 + w(t) a sin(ω t), w from 0 to 1 in the first second: 10 s³ - 15 s⁴ + 6 s⁵
        s = min(max(t, 0.0), 1.0)
        w = 10 * s**3 - 15 * s**4 + 6 * s**5
        wd = (30 * s**2 - 60 * s**3 + 30 * s**4) if 0 < t < 1 else 0.0
        wdd = (60 * s - 180 * s**2 + 120 * s**3) if 0 < t < 1 else 0.0
        f = self.amplitude * np.sin(self.omega * t)
        fd = self.amplitude * self.omega * np.cos(self.omega * t)
        fdd = -(self.omega**2) * f
        return self.start + w * f, w * fd + wd * f, w * fdd + 2 * wd * fd + wdd * f

    def positions(self, t: np.ndarray) -> np.ndarray:
        """(m, n) after the first second, at times t (m,)."""
        return self.start + self.amplitude * np.sin(np.outer(t, self.omega))


class Robot:
    """One robot's files: MuJoCo's model, a description with ros2_control, parameters."""

    def __init__(self, reference: str, folder: Path):
        path = ROOT / "config" / f"{reference}.yaml"
        self.file = path if path.exists() else Path(reference)
        self.mechanism = rd.load(self.file)
        self.dynamics = rd.InverseDynamics(self.mechanism)
        self.joints = list(self.dynamics.joint_names)
        self.prefix = "".join(x if x.isalnum() else "_" for x in self.mechanism.name.lower())
        self.package = f"{self.prefix}_feed_forward_controller"
        self.folder = folder
        home = [float(self.mechanism.home.get(name, 0.0)) for name in self.joints]
        self.start = np.array(home)
        simulation = Simulation(self.mechanism, timestep=TIMESTEP)
        self._model, self._data = simulation._model, simulation._data
        mujoco().mj_saveModel(self._model, str(folder / "robot.mjb"))

    def description(self, log: Path) -> str:
        rows = [
            f'<param name="qpos{i}">{x!r}</param>'
            for i, x in enumerate(map(float, self._data.qpos))
        ]
        joints = []
        for name in self.joints:
            place = self._model.joint(_joint(name))
            joints.append(
                f'<joint name="{name}"><command_interface name="effort"/>'
                '<state_interface name="position"/><state_interface name="velocity"/>'
                f'<param name="qpos">{place.qposadr[0]}</param>'
                f'<param name="dof">{place.dofadr[0]}</param></joint>'
            )
        kinds = {name: self.mechanism.joint(name).slides for name in self.joints}
        links = '<link name="base"/>' + "".join(
            f'<link name="link_{i}"/><joint name="{name}" '
            f'type="{"prismatic" if kinds[name] else "revolute"}"><parent link="base"/>'
            f'<child link="link_{i}"/><axis xyz="0 0 1"/>'
            '<limit lower="-1000" upper="1000" effort="1e9" velocity="1e6"/></joint>'
            for i, name in enumerate(self.joints)
        )
        return (
            f'<robot name="robot">{links}<ros2_control name="robot" type="system"><hardware>'
            "<plugin>mujoco_hardware/MujocoHardware</plugin>"
            f'<param name="model">{self.folder / "robot.mjb"}</param>'
            f'<param name="timestep">{TIMESTEP}</param><param name="log">{log}</param>'
            f"{''.join(rows)}</hardware>{''.join(joints)}</ros2_control></robot>"
        )

    def parameters(self, way: str) -> dict:
        p, d = pd_gains(self.dynamics, self.start, BANDWIDTH)
        if way == "computed_torque":
            p, d = np.full(len(p), BANDWIDTH**2), np.full(len(p), 2 * BANDWIDTH)
        gains = {
            name: {"p": float(p[j]), "d": float(d[j]), "i": 0.0}
            for j, name in enumerate(self.joints)
        }
        manager = {
            "update_rate": round(1 / PERIOD),
            "enforce_command_limits": False,
            "trajectory_controller": {
                "type": "joint_trajectory_controller/JointTrajectoryController"
            },
            "law": {"type": f"{self.package}/FeedForwardController"},
        }
        trajectory: dict = {
            "joints": self.joints,
            "state_interfaces": ["position", "velocity"],
            "allow_nonzero_velocity_at_trajectory_end": True,
        }
        if way == "PD":
            trajectory |= {"command_interfaces": ["effort"], "gains": gains}
        else:
            trajectory |= {
                "command_interfaces": ["position", "velocity", "acceleration"],
                "command_joints": [f"law/{name}" for name in self.joints],
            }
        law = {"law": way, "gains": gains} if way != "PD" else {}
        return {
            "/**": {"ros__parameters": {}},
            "controller_manager": {"ros__parameters": manager},
            "trajectory_controller": {"ros__parameters": trajectory},
            "law": {"ros__parameters": law},
        }


def run(robot: Robot, way: str, seconds: float, size: float) -> dict:
    """One motion; errors from the hardware's own log."""
    import rclpy
    import yaml
    from builtin_interfaces.msg import Duration
    from controller_manager_msgs.srv import ConfigureController, LoadController, SwitchController
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    log = robot.folder / f"{way}.csv"
    parameters = robot.folder / f"{way}.yaml"
    parameters.write_text(yaml.safe_dump(robot.parameters(way)))
    words = (robot.folder / f"{way}.log").open("w")
    # a controller's own parameters come from files that the manager is told of
    command = [
        found_executable("controller_manager", "ros2_control_node"),
        "--ros-args",
        "--params-file",
        str(parameters),
    ]
    manager = subprocess.Popen(command, stdout=words, stderr=subprocess.STDOUT)
    node = rclpy.create_node("benchmark")
    try:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        description = node.create_publisher(String, "robot_description", latched)
        description.publish(String(data=robot.description(log)))

        def call(kind, service, **fields):
            client = node.create_client(kind, f"/controller_manager/{service}")
            if not client.wait_for_service(30.0):
                raise SystemExit(f"no {service}: see {words.name}")
            future = client.call_async(kind.Request(**fields))
            rclpy.spin_until_future_complete(node, future, timeout_sec=30.0)
            if future.result() is None or not future.result().ok:
                raise SystemExit(f"{service} {fields} failed: see {words.name}")

        names = ["trajectory_controller"] if way == "PD" else ["law", "trajectory_controller"]
        for name in names:
            call(LoadController, "load_controller", name=name)
            call(ConfigureController, "configure_controller", name=name)
        call(
            SwitchController,
            "switch_controller",
            activate_controllers=names,
            strictness=SwitchController.Request.STRICT,
            timeout=Duration(sec=5),
        )
        motion = Motion(robot.start, seconds, size)
        message = JointTrajectory(joint_names=robot.joints)
        for t in np.arange(0.01, seconds, 0.01):
            q, qd, qdd = motion(float(t))
            point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
            whole = int(t)
            point.time_from_start = Duration(sec=whole, nanosec=int((t - whole) * 1e9))
            message.points.append(point)
        topic = node.create_publisher(JointTrajectory, "/trajectory_controller/joint_trajectory", 1)
        while topic.get_subscription_count() == 0:
            time.sleep(0.05)
        time.sleep(0.5)
        topic.publish(message)
        time.sleep(seconds + 1.0)
    finally:
        node.destroy_node()
        manager.send_signal(signal.SIGINT)
        try:
            manager.wait(10)
        except subprocess.TimeoutExpired:
            manager.kill()
            manager.wait()
    return judged(np.loadtxt(log, delimiter=","), motion)


def judged(rows: np.ndarray, motion: Motion) -> dict:
    """Errors; when the motion began is where they are least (the log has simulated time)."""
    t, q = rows[:, 0], rows[:, 1::3]
    best = None
    length = motion.seconds - 0.2
    moved = np.flatnonzero(abs(rows[:, 2::3]).max(axis=1) > 1e-3)
    if not len(moved):
        raise SystemExit("the robot has not moved: the trajectory was refused")
    around = moved[0]
    for begin in np.arange(t[around] - 0.5, t[around] + 0.1, PERIOD):
        rows_of_it = (t >= begin + 1.0) & (t <= begin + length)
        wanted = motion.positions(t[rows_of_it] - begin)
        off = q[rows_of_it] - wanted
        rms = float(np.sqrt((off**2).mean()))
        if best is None or rms < best["rms"]:
            largest = float(abs(off).max())
            times = t[rows_of_it] - begin
            best = {"rms": rms, "max": largest, "t": times.tolist(), "error": off[:, 0].tolist()}
    assert best is not None
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--size", type=float, default=0.3, help="amplitude, rad or m")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--keep", type=Path, help="folder for logs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    needed = ["controller_manager", "joint_trajectory_controller", "mujoco_hardware"]
    if lacking := missing(needed):
        sys.exit(f"not sourced: {', '.join(lacking)}; see this file's first lines")
    import rclpy

    rclpy.init()
    results: dict = {}
    print(f"{'robot':12} {'way':16} {'RMS mrad or mm':>15} {'largest':>10}")
    for name in options.robots:
        folder = Path(options.keep or tempfile.mkdtemp()) / Path(name).stem
        folder.mkdir(parents=True, exist_ok=True)
        robot = Robot(name, folder)
        if lacking := missing([robot.package]):
            sys.exit(f"not built: {', '.join(lacking)}")
        for way in options.ways:
            found = run(robot, way, options.seconds, options.size)
            results.setdefault(Path(name).stem, {})[way] = found
            rms, most = 1e3 * found["rms"], 1e3 * found["max"]
            print(f"{Path(name).stem:12} {way:16} {rms:15.4f} {most:10.4f}", flush=True)
    rclpy.shutdown()
    if options.json:
        options.json.write_text(json.dumps(results))
    if options.picture:
        draw(results, options.picture)


def draw(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(results), 1, figsize=(8, 2.4 * len(results)), sharex=True, squeeze=False
    )
    for axis, (robot, ways) in zip(axes[:, 0], results.items(), strict=True):
        for way, found in ways.items():
            error = 1e3 * abs(np.array(found["error"])) + 1e-6
            axis.semilogy(found["t"], error, label=way, linewidth=1)
        axis.set_ylim(1e-4, None)
        axis.set_ylabel(f"{robot}\n|error| of joint 1\nmrad or mm")
        axis.grid(alpha=0.3)
    axes[0, 0].legend(loc="upper right", ncols=4, fontsize=8)
    axes[-1, 0].set_xlabel("time, s")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
