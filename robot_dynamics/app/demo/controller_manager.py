# SPDX-License-Identifier: Apache-2.0
"""A robot in MuJoCo under a real controller manager: its setup, one motion, and the measurements.

These ways of control are compared, all with gains for the same bandwidth:

    PD              joint_trajectory_controller with its own PID on effort interfaces
    node            the node `feed_forward` over topics, through forward_command_controller
    gravity, feed_forward, computed_torque
                    joint_trajectory_controller chained onto the generated controller, by its law
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...codegen import cache
from ...controller import write_package
from ...dynamics import InverseDynamics
from ...errors import BackendError, listed, not_installed
from ...mechanism import Mechanism
from ...scalar import Floats
from ...simulation.physics import Simulation, mujoco
from ...simulation.tracking import pd_gains
from .processes import Processes

WAYS = ("PD", "node", "gravity", "feed_forward", "computed_torque")
LAWS = WAYS[2:]
RATE = 1000
"""The rate of the controller manager, Hz"""
TIMESTEP = 1e-4
BANDWIDTH = 15.0
"""The bandwidth of the gains of all ways, rad/s"""
LEAD = 3.0
"""s from the trajectory's message to the motion"""
PATIENCE = 200.0
"""s that a trial may take beyond its motion"""
SPACING = 0.01
"""s between the trajectory's points"""
LATE = np.round(np.arange(-0.005, 0.00505, 0.0005), 4).tolist()
"""The delays of the motion that are tried, s"""
HARDWARE = "mujoco_hardware"
NEEDED = (
    "controller_manager",
    "joint_trajectory_controller",
    "joint_state_broadcaster",
    "forward_command_controller",
)
"""Packages of ros2_control and ros2_controllers"""

Desired = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Times (t,) since the beginning of the motion → q, qd, qdd (t, n)"""


def missing_packages(packages: Sequence[str]) -> list[str]:
    """The packages among these that no sourced setup file provides."""
    return [name for name in packages if not _found(f"share/{name}")]


def _found(place: str) -> Path | None:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    paths = (Path(prefix) / place for prefix in prefixes if prefix)
    return next((path for path in paths if path.exists()), None)


def check_sourced() -> None:
    """Check that everything that cannot be built here is installed.

    Raises:
        BackendError: something is missing; the error explains how to install it.
    """
    missing = missing_packages(NEEDED)
    if not missing and find_spec("controller_manager_msgs") is None:
        missing = ["controller_manager_msgs (for this Python)"]
    if missing:
        raise BackendError(
            f"{', '.join(missing)} not found: on a ROS 2 machine, run `sudo apt install "
            "ros-$ROS_DISTRO-ros2-control ros-$ROS_DISTRO-ros2-controllers` and source the "
            "setup file",
            name=missing[0],
            expected="ros2_control and ros2_controllers, sourced",
        )


@dataclass(frozen=True, eq=False)
class Run:
    """The hardware's log of one motion: one row per period, starting with the motion."""

    way: str
    time: Floats
    """(t,) s since the beginning of the motion"""
    error: Floats
    """(t, n) q(t) - q_d(t - late), rad or m"""
    late: float
    """The delay of the whole motion, s; joint_trajectory_controller is one period early"""
    ages: Floats | None
    """(t,) age of the state that the torques belong to, s; None: the state is of the same period"""

    @property
    def rms(self) -> float:
        """The root mean square error over all joints, rad or m."""
        return float(np.sqrt(np.mean(self.error**2)))

    @property
    def largest(self) -> float:
        """The largest error of any joint, rad or m."""
        return float(np.max(np.abs(self.error)))


class ManagedRobot:
    """A robot with its files for a controller manager.

    Args:
        file: the description, as for `rd.load`.
        mechanism: the robot that was loaded from it.
        start: (n,) initial positions of the driven joints, rad or m; the passive ones are in the
            assembly mode of home.
        folder: the folder for files.
    """

    def __init__(self, file: str, mechanism: Mechanism, start: Floats, folder: Path):
        self.file, self.mechanism, self.start = file, mechanism, start
        self.dynamics = InverseDynamics(mechanism)
        self.joints = list(self.dynamics.joint_names)
        self.folder = folder
        name = "".join(x if x.isalnum() else "_" for x in mechanism.name.lower())
        self.package = f"{name}_feed_forward_controller"
        simulation = Simulation(mechanism, timestep=TIMESTEP)
        still = np.zeros(len(self.joints))
        simulation.reset(self.dynamics.tree_state(start, still, still)[0])
        self._file = folder / "robot.mjb"
        self._places, self._qpos = simulation.save(self._file)

    def description(self, log: Path, **hardware: float | str) -> str:
        """The URDF text for the manager, with the hardware and its joints.

        Args:
            log: the hardware's log file.
            hardware: additional parameters of the hardware; with held=1 the robot stands still,
                whatever the torques are.
        """
        given = {f"qpos{i}": float(x) for i, x in enumerate(self._qpos)} | hardware
        rows = [f'<param name="{name}">{value}</param>' for name, value in given.items()]
        sensed = [name for name in self.mechanism.sensed if self.dynamics.closed is not None]
        joints, links = [], ['<link name="base"/>']
        for i, name in enumerate([*self.joints, *sensed]):
            place = self._places[name]
            effort = '<command_interface name="effort"/>' if name in self.joints else ""
            joints.append(
                f'<joint name="{name}">{effort}'
                '<state_interface name="position"/><state_interface name="velocity"/>'
                f'<param name="place">{place}</param></joint>'
            )
            kind = "prismatic" if self.mechanism.joint(name).slides else "revolute"
            links.append(
                f'<link name="link_{i}"/><joint name="{name}" type="{kind}"><parent link="base"/>'
                f'<child link="link_{i}"/><axis xyz="0 0 1"/>'
                '<limit lower="-1000" upper="1000" effort="1e9" velocity="1e6"/></joint>'
            )
        return (
            f'<robot name="robot">{"".join(links)}<ros2_control name="robot" type="system">'
            f"<hardware><plugin>{HARDWARE}/MujocoHardware</plugin>"
            f'<param name="model">{self._file}</param>'
            f'<param name="timestep">{TIMESTEP}</param><param name="log">{log}</param>'
            f"{''.join(rows)}</hardware>{''.join(joints)}</ros2_control></robot>"
        )

    def gains(self, way: str = "PD") -> tuple[Floats, Floats]:
        """Kp and Kd (n,) for a way, N·m/rad and N·m·s/rad; per unit of inertia for computed
        torque."""
        if way == "computed_torque":
            ones = np.ones(len(self.joints))
            return BANDWIDTH**2 * ones, 2 * BANDWIDTH * ones
        return pd_gains(self.dynamics, self.start, BANDWIDTH)

    def controllers(self, way: str) -> list[str]:
        """The names of a way's controllers, in the order in which they are loaded."""
        return {
            "PD": ["trajectory_controller"],
            "node": ["joint_state_broadcaster", "law"],
        }.get(way, ["law", "trajectory_controller"])

    def parameters(self, way: str) -> dict[str, Any]:
        """The parameters of the controller manager and its controllers for a way."""
        p, d = self.gains(way)
        gains = {
            name: {"p": float(p[j]), "d": float(d[j]), "i": 0.0}
            for j, name in enumerate(self.joints)
        }
        law = "forward_command_controller/ForwardCommandController"
        manager = {
            "update_rate": RATE,
            "enforce_command_limits": False,
            "joint_state_broadcaster": {"type": "joint_state_broadcaster/JointStateBroadcaster"},
            "trajectory_controller": {
                "type": "joint_trajectory_controller/JointTrajectoryController"
            },
            "law": {"type": law if way == "node" else f"{self.package}/FeedForwardController"},
        }
        trajectory: dict[str, Any] = {
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
        own: dict[str, Any] = {"law": way, "gains": gains} if way in LAWS else {}
        if way == "node":
            own = {"joints": self.joints, "interface_name": "effort"}
        return {
            "controller_manager": {"ros__parameters": manager},
            "trajectory_controller": {"ros__parameters": trajectory},
            "law": {"ros__parameters": own},
        }

    def run(self, way: str, desired: Desired, seconds: float) -> Run:
        """Run the motion once, in separate processes.

        Args:
            way: one of `WAYS`.
            desired: the motion.
            seconds: its duration, s.

        Raises:
            BackendError: a process failed; the error has its last line.
        """
        log, told = self.moved(way, desired, seconds)
        return self._judged(way, log, told, desired, seconds)

    def moved(
        self,
        way: str,
        desired: Desired,
        seconds: float,
        *,
        spacing: float = SPACING,
        each_second: Callable[[int], None] | None = None,
    ) -> tuple[Path, dict[str, Any]]:
        """Run the motion once.

        Args:
            way, desired, seconds: see `run`.
            spacing: the time between the trajectory's points, s.
            each_second: called every second with the manager's process id.

        Returns:
            (the hardware's log, the results of the trial).
        """
        log = self.folder / f"{way}.csv"
        seen = self.folder / f"{way}_seen.json"
        for path in (log, seen):
            path.unlink(missing_ok=True)
        time = np.arange(0.0, seconds + spacing / 2, spacing)
        q, qd, qdd = (x.tolist() for x in desired(time))
        is_node = way == "node"
        plan = {
            "description": self.description(log),
            "controllers": self.controllers(way),
            "topic": "/feed_forward/command"
            if is_node
            else "/trajectory_controller/joint_trajectory",
            "points": {"joints": self.joints, "time": time.tolist(), "q": q, "qd": qd, "qdd": qdd},
            "lead": LEAD,
            "seconds": seconds,
            "efforts": "/feed_forward/effort" if is_node else "",
            "out": str(seen),
        }
        self.attempt(way, self.parameters(way), plan, each_second)
        return log, json.loads(seen.read_text())

    def attempt(
        self,
        name: str,
        parameters: dict[str, Any],
        plan: dict[str, Any],
        each_second: Callable[[int], None] | None = None,
    ) -> None:
        """Run a manager, the node if needed, and the trial until it has ended.

        Args:
            name: the beginning of the file names.
            parameters: of the manager and its controllers.
            plan: of the trial, see `robot_dynamics.ros.controller_trial`.
            each_second: as in `moved`.
        """
        files = {}
        for what, content in (("manager", parameters), ("plan", plan)):
            files[what] = self.folder / f"{name}_{what}.yaml"
            files[what].write_text(json.dumps(content))  # JSON is YAML
        executable = _found("lib/controller_manager/ros2_control_node")
        assert executable is not None
        with Processes(self.folder, namespace="") as processes:
            processes.launch(
                "controller_manager", [executable, "--ros-args", "--params-file", files["manager"]]
            )
            if plan["efforts"]:
                p, d = self.gains()
                processes.start(
                    "feed_forward",
                    {
                        "description": self.file,
                        "joints": self.joints,
                        "p_gains": p.tolist(),
                        "d_gains": d.tolist(),
                    },
                    {"~/commands": "/law/commands"},
                )
            meanwhile = each_second and partial(each_second, processes.pid("controller_manager"))
            module = "robot_dynamics.ros.controller_trial"
            processes.launch("trial", [sys.executable, "-m", module, files["plan"]])
            processes.wait("trial", LEAD + plan["seconds"] + PATIENCE, meanwhile)

    def _judged(
        self, way: str, log: Path, told: dict[str, Any], desired: Desired, seconds: float
    ) -> Run:
        rows = np.loadtxt(log, delimiter=",")
        stamps = rows[:, -2]
        time = stamps - told["begin"]
        kept = (time >= 0.0) & (time <= seconds)
        if not kept.any():
            raise BackendError(f"{way}: the robot has not moved", name=way)
        n = len(self.joints)
        q, efforts = rows[:, 1 : 3 * n : 3], rows[:, 3 : 3 * n + 1 : 3]
        ages = None
        if way == "node":
            if not told["efforts"]:
                raise BackendError("node: it published no torques; see feed_forward.log", name=way)
            ages = _ages(stamps, efforts, np.array(told["efforts"]))[kept]
        time, q = time[kept], q[kept]
        errors = {late: q - desired(time - late)[0] for late in LATE}
        late = min(LATE, key=lambda late: float(np.sum(errors[late] ** 2)))
        return Run(way, time, errors[late], late, ages)


def _ages(stamps: Floats, efforts: Floats, heard: Floats) -> Floats:
    """The age (t,) of the state whose torques are applied, s; NaN before the first torques.

    Args:
        stamps: (t,) times at which states were read, s.
        efforts: (t, n) applied torques.
        heard: (m, 1 + n) the state's stamp (s) and the torques of each message.
    """
    of = {tuple(row[1:]): row[0] for row in heard.tolist()}
    states = np.array([of.get(tuple(row), np.nan) for row in efforts.tolist()])
    # a state's stamp lies within the period in which it was read
    read = stamps[np.clip(np.searchsorted(stamps, states, side="right") - 1, 0, None)]
    return np.where(np.isfinite(states), stamps - read, np.nan)


def built(robots: Sequence[ManagedRobot], say: Callable[[str], None]) -> None:
    """Build the robots' controllers and the MuJoCo hardware, unless they are already sourced.

    They are built once, in the cache, and added to the paths of this process.

    Args:
        robots: the robots.
        say: called with progress messages.

    Raises:
        BackendError: colcon is missing, or the build failed; the error has its last lines.
    """
    if not missing_packages([HARDWARE, *(robot.package for robot in robots)]):
        return
    templates = Path(write_package.__code__.co_filename).parent
    key = sha256(str(sys.prefix).encode())
    for path in sorted(templates.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            key.update(path.read_bytes())
    for robot in robots:
        key.update(repr(robot.mechanism.links).encode())
    place = cache.directory() / "controllers" / key.hexdigest()[:16]
    done = place / "install" / "share" / HARDWARE
    if not done.is_dir():
        colcon = shutil.which("colcon") or str(Path(sys.executable).with_name("colcon"))
        if not Path(colcon).exists():
            raise not_installed("colcon", "builds the controller", "colcon-common-extensions")
        say("building the controller (a few minutes, once only)")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(templates / HARDWARE, place / "src" / HARDWARE)
        for robot in robots:
            write_package(robot.file, place / "src")
        wheel = Path(mujoco().__file__).parent
        options = [f"-DMUJOCO={wheel}", "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release"]
        command = [colcon, "build", "--merge-install", "--cmake-args", *options]
        done_run = subprocess.run(  # noqa: S603  our own files
            command, cwd=place, capture_output=True, text=True, check=False
        )
        if done_run.returncode:
            with suppress(OSError):
                shutil.rmtree(place / "install")
            lines = (done_run.stdout + done_run.stderr).strip().splitlines()
            raise BackendError(
                f"colcon build failed in {place}: {listed(lines[-3:])}", name="colcon"
            )
    install = place / "install"
    for variable, path in (("AMENT_PREFIX_PATH", install), ("LD_LIBRARY_PATH", install / "lib")):
        before = os.environ.get(variable, "")
        os.environ[variable] = os.pathsep.join(filter(None, (str(path), before)))
