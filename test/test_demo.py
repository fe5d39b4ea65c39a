# SPDX-License-Identifier: Apache-2.0
"""The demos: the motion, the loop, the simulated robot as a node, and one demo as users run it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robot_dynamics as rd
from robot_dynamics.app.commands.demo import command
from robot_dynamics.app.demo import DEMOS
from robot_dynamics.app.demo.bounds import Case, cases, track
from robot_dynamics.app.demo.controller_manager import NEEDED, missing_packages
from robot_dynamics.app.demo.demonstration import _model
from robot_dynamics.app.demo.record import read
from robot_dynamics.app.demo.results import numbers
from robot_dynamics.app.demo.robots import ROBOTS
from robot_dynamics.app.demo.subject import Subject
from robot_dynamics.errors import BackendError, InputError
from robot_dynamics.motion.swing import Motion
from robot_dynamics.outputs import finite

ROOT = Path(__file__).resolve().parents[1]
SIMULATED_ROBOT = (sys.executable, "-m", "robot_dynamics.ros.executables", "simulated_robot")
PATIENCE = 120.0
"""s until a test gives up: far beyond what a loaded machine needs"""
GOAL = 20.0
"""What an exact model has to divide the RMS error by"""


@pytest.mark.parametrize("name", DEMOS)
def test_the_motions_rates_are_its_derivatives(name):
    motion, h = ROBOTS[name].motion, 1e-5
    for time_ in np.linspace(0.01, 0.99, 23) * motion.duration:
        (q0, qd0, _), (_, qd, qdd), (q1, qd1, _) = (motion(time_ + k * h) for k in (-1, 0, 1))
        # central differences: h² times the third and fourth derivatives, rounding over h
        np.testing.assert_allclose((q1 - q0) / (2 * h), qd, atol=1e-7)
        np.testing.assert_allclose((qd1 - qd0) / (2 * h), qdd, atol=1e-6)


FORKED = """
import os, signal, sys
from pathlib import Path
from robot_dynamics.app.demo.processes import Processes
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(1000))
os.register_at_fork(after_in_parent=interrupt)
try:
    with Processes(Path(sys.argv[1])) as processes:
        processes.launch("sleeper", ["sleep", "60"])
        print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_a_process_is_started_is_not_lost(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize("name", DEMOS)
def test_the_motions_begin_and_end_at_rest(name):
    motion = ROBOTS[name].motion
    # half a cycle stays at the other end of the swing
    end = np.add(motion.start, np.where(np.mod(motion.cycles, 1.0), motion.swing, 0.0))
    for time_ in (0.0, motion.duration, motion.duration + 1.0):
        q, qd, qdd = motion(time_)
        np.testing.assert_allclose(q, end if time_ else motion.start, atol=1e-12)
        np.testing.assert_allclose([qd, qdd], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [{"duration": 0.0}, {"duration": np.nan}, {"start": (np.inf, 0.0)}, {"cycles": (1.0,)}],
    ids=str,
)
def test_a_motion_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match="of equal length, and a duration"):
        Motion(**{"start": (0, 0), "swing": (1, 1), "cycles": (1, 0.5), "duration": 2.0, **wrong})


@pytest.mark.parametrize("name", ["polar", "cartesian", "six_axis", "three_axis"])
def test_gravity_compensation_is_shown_where_gravity_acts(name):
    labels = [run.label for run in Subject.of(ROBOTS[name]).demo.runs]
    assert ("PD + gravity" in labels) == (name != "polar")


def solid_inertia(geometry: ET.Element, mass: float) -> np.ndarray:
    """(3,) principal moments of a box or an upright cylinder of even density."""
    shape = geometry[0]
    if shape.tag == "box":
        x, y, z = (float(each) for each in shape.attrib["size"].split())
        return mass / 12 * np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    r, h = float(shape.attrib["radius"]), float(shape.attrib["length"])
    across = mass * (3 * r**2 + h**2) / 12
    return np.array([across, across, mass * r**2 / 2])


def test_the_six_axis_arms_inertias_are_those_of_the_solids_it_shows():
    links = ET.parse(ROOT / "urdf" / "six_axis.urdf").getroot().findall("link")
    assert len(links) == 8
    for link in links:
        inertial, visual = link.find("inertial"), link.find("visual")
        assert inertial.find("origin").attrib == visual.find("origin").attrib
        mass = float(inertial.find("mass").attrib["value"])
        found = [float(inertial.find("inertia").attrib[key]) for key in ("ixx", "iyy", "izz")]
        expected = solid_inertia(visual.find("geometry"), mass)
        np.testing.assert_allclose(found, expected, rtol=1e-8)  # ten digits are printed


# --- the loop in one process -------------------------------------------------------------------


def worst_ratio(delay: int, rate: float, **changes) -> float:
    """By how much torques of the exact model lower the polar robot's RMS error."""
    demo = ROBOTS["polar"]
    demo = replace(demo, motion=replace(demo.motion, duration=2.0))
    subject = Subject.of(demo)
    case = Case("", rate, delay, 1e-4, **changes)
    alone = track(subject, case, lambda q, _qd, _qdd: np.zeros(len(q)))
    helped = track(subject, case, subject.dynamics)
    return float(np.min(alone.rms / helped.rms))


def test_the_error_that_is_left_is_as_large_as_the_torques_are_old():
    pytest.importorskip("mujoco")
    # ages of 2, 4 and 8 ms; the integrator adds the same small error to each
    ratios = [worst_ratio(delay, rate) for delay, rate in ((0, 250.0), (1, 375.0), (1, 187.5))]
    assert ratios[0] / ratios[1] == pytest.approx(2.0, rel=0.15)
    assert ratios[1] / ratios[2] == pytest.approx(2.0, rel=0.15)


def test_torques_asked_for_ahead_of_time_leave_next_to_nothing():
    pytest.importorskip("mujoco")
    late = worst_ratio(1, 500.0)
    assert worst_ratio(1, 500.0, lookahead=1.5, commanded=True) > 5 * late > 5 * GOAL


CLOSED = [name for name in DEMOS if rd.load(ROBOTS[name].description).loops]


@pytest.mark.parametrize("name", CLOSED)
def test_closed_robots_are_tracked_as_open_ones(name):
    pytest.importorskip("mujoco")
    demo = ROBOTS[name]
    subject = Subject.of(replace(demo, motion=replace(demo.motion, duration=2.0)))
    case = replace(cases(subject.demo)[0], lookahead=1.5, commanded=True)
    alone = track(subject, case, lambda q, _qd, _qdd: np.zeros(len(q)))
    assert np.min(alone.rms / track(subject, case, subject.dynamics).rms) > 10 * GOAL


@pytest.mark.parametrize("name", CLOSED)
def test_the_demos_motions_keep_away_from_singular_poses(name):
    subject = Subject.of(ROBOTS[name])
    motion, closed = subject.demo.motion, subject.dynamics.closed
    states = closed.forward_kinematics(motion(np.linspace(0.0, motion.duration, 200))[0])
    assert np.max(states.condition) < 20.0  # the shipped robots have 1 to 12 at home
    assert np.max(states.residual) < 1e-9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"joints": ["theta1", "nobody"]}, "joints: found 'nobody', expected any of theta1, d2"),
        ({"joints": ["d2", "d2"]}, "every joint once"),
        ({"p_gains": [1.0, 2.0, 3.0]}, "p_gains: found"),
        ({"d_gains": [-1.0]}, "not negative"),
        ({"delay": -1}, "delay: found -1"),
        ({"period": 0.0}, "period: found 0.0, expected a positive number of seconds"),
        ({"start": [0.0]}, "q: found"),
    ],
)
def test_a_wrong_setting_of_the_loop_is_named(changes, words):
    pytest.importorskip("mujoco")
    from robot_dynamics.simulation.tracking import TrackedRobot

    with pytest.raises(InputError, match=re.escape(words)):
        TrackedRobot(rd.load("package://robot_dynamics/config/polar.yaml"), **changes)


# --- over DDS ------------------------------------------------------------------------------------


@pytest.fixture
def ros():
    pytest.importorskip("rclpy", reason="rclpy is not installed here")
    pytest.importorskip("mujoco", reason="MuJoCo is not installed here")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed here")


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "robot_dynamics.app.cli", "demo", *arguments]


ENVIRONMENT = ChainMap(
    {"PYTHONPATH": str(ROOT), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, os.environ
)


def children(pid: int) -> list[int]:
    """Processes that this one started (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def disturbed(process: subprocess.Popen, until: float) -> None:
    """Now one and now another process of the demo stands still for a while."""
    rng = np.random.default_rng(0)
    while process.poll() is None and time.monotonic() < until:
        time.sleep(rng.uniform(0.1, 0.8))
        for pid in rng.permutation(children(process.pid))[:2].tolist():
            try:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(rng.uniform(0.05, 0.4))
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue


def is_documented(result: dict[str, Any]) -> bool:
    """Whether `robot_dynamics schema demo` describes this output."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed here")
    return bool(jsonschema.Draft202012Validator(command.schema()).is_valid(result))


def test_runs_with_and_without_sensors_are_compared_as_documented():
    subject = Subject.of(replace(ROBOTS["polar"], against=("alone", "with sensors")))
    run = track(subject, cases(subject.demo)[0], subject.dynamics)
    tracks = [
        replace(run, label="PD alone"),
        replace(run, label="1 alone"),
        replace(run, label="1 with sensors", error=run.error / 2),
    ]
    places = {"picture": "a.png", "page": "a.html"}
    found = numbers(subject, tracks, robot="polar", bounds=[], gears=None, **places)
    assert found["against"]["joints"] == pytest.approx([0.5])
    assert found["against"]["platform"] == []
    assert is_documented(finite(found))
    assert not is_documented(finite(found | {"against": {"first": "alone"}}))


@pytest.mark.usefixtures("ros")
def test_on_a_disturbed_machine_the_demo_finds_what_one_process_finds(tmp_path):
    with subprocess.Popen(
        command_line("polar", "--json", "--output", str(tmp_path)),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        disturbed(demo, time.monotonic() + PATIENCE)
        out, words = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0, out + words
    found = json.loads(out)
    assert is_documented(found)
    assert found["joints"] == ["theta1", "d2"]
    assert found["units"] == ["rad", "m"]
    alone, *helped = found["runs"]
    assert alone["label"] == "PD alone"
    assert len(helped) == 2
    for run in helped:
        assert min(run["rms_ratio"]) > GOAL, found
    # the same loop without ROS: what DDS did was to carry the numbers
    in_process = {row["case"]: row["ratio"] for row in found["bounds"]}["as shown"]
    assert min(helped[0]["rms_ratio"]) == pytest.approx(in_process, rel=1e-3)
    picture = Path(found["picture"])
    assert picture.parent == tmp_path
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = Path(found["page"])
    assert page.parent == tmp_path
    assert '"motion":{"name":"' in page.read_text()


def record_of(path: Path, rows: list[tuple[float, int, int, float]]) -> Path:
    groups = ("q", "feedback", "efforts")
    columns = [f"{group} {joint}" for group in groups for joint in ("theta1", "d2")]
    lines = [",".join(["time", "moving", "missed", "begin", *columns])]
    lines += [",".join(map(str, (*row, 0, 0.7, 0, 0, 0, 0))) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(0.998, 0, 0, 1.0), (1.0, 1, 0, 1.0), (1.002, 1, 0, 1.0)], ""),
        ([(0.998, 0, 0, 0.0), (1.0, 1, 0, 0.9), (1.002, 1, 0, 0.9)], "0.100 s after its start"),
        (
            [(0.998, 0, 0, 1.0), (1.0, 1, 1, 1.0), (1.002, 1, 1, 1.0)],
            "no new torques arrived in 1 periods of the motion",
        ),
    ],
)
def test_a_run_that_lost_step_does_not_count(tmp_path, rows, problem):
    track = read(record_of(tmp_path / "run.csv", rows), "a run", Subject.of(ROBOTS["polar"]))
    assert problem in track.problem
    assert bool(problem) == bool(track.problem)
    if not problem:
        np.testing.assert_allclose(track.time, [0.0, 0.002], atol=1e-12)


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE} s"
        time.sleep(0.05)


@pytest.mark.usefixtures("ros")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_demo_leaves_no_process_behind(number, tmp_path):
    pictures, scratch = tmp_path / "pictures", tmp_path / "scratch"
    pictures.mkdir()
    scratch.mkdir()  # whoever is killed leaves it
    with subprocess.Popen(
        command_line("polar", "--output", str(pictures)),
        env={**ENVIRONMENT, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        until(lambda: len(children(demo.pid)) >= 2, "processes of the demo")
        started = children(demo.pid)
        demo.send_signal(number)
        _, words = demo.communicate(timeout=PATIENCE)
    # 130: a shell's word for "interrupted"
    assert demo.returncode == (-number if number == signal.SIGKILL else 130)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "end of processes")
    assert number == signal.SIGKILL or words.strip().endswith("stopped")
    assert not list(pictures.iterdir())
    assert number == signal.SIGKILL or not list(scratch.iterdir())


def conversation(**parameters):
    """With the simulated Cartesian robot."""
    from node_process import Conversation

    description = "package://robot_dynamics/config/cartesian.yaml"
    return Conversation(SIMULATED_ROBOT, {"description": description, **parameters})


def simulated_robot(*parameters: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess:
    arguments = [part for each in parameters for part in ("-p", each)]
    return subprocess.run(
        [*SIMULATED_ROBOT, "--ros-args", *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.usefixtures("ros")
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (["description:=nowhere.yaml"], "nowhere.yaml: no such file"),
        (["update_rate:=0.0"], "update_rate"),
        (["p_gains:=[1.0, 2.0, 3.0]"], "p_gains: found [1.0, 2.0, 3.0], expected 2 numbers"),
        (["p_gains:=stiff"], "p_gains"),
        (["start:=[0.0]"], "expected 2 finite numbers"),
        (["record:=/no/such/folder/file.csv"], "/no/such/folder/file.csv"),
    ],
)
def test_a_wrong_parameter_of_the_simulated_robot_is_one_line(parameters, words):
    if not parameters[0].startswith("description"):
        parameters = ["description:=package://robot_dynamics/config/polar.yaml", *parameters]
    result = simulated_robot(*parameters)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()
    assert len(last) == 1, result.stderr
    assert words in last[0]


@pytest.mark.usefixtures("ros")
def test_the_simulated_robot_moves_by_the_efforts_that_it_gets():
    """The Cartesian robot falls along d2 until its weight is carried; a bad message is nothing."""
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    with conversation(brakes=False, publish_clock=True) as talk:
        states: list[JointState] = []
        talk.node.create_subscription(JointState, "joint_states", states.append, 1000)
        commands = talk.node.create_publisher(Float64MultiArray, "/simulated_robot/commands", 10)

        def rates(count: int = 20) -> np.ndarray:
            """(count, 3) of the next messages."""
            states.clear()
            talk.until(lambda: len(states) >= count, f"{count} joint states")
            assert all(state.name == ["d1", "d2", "d3"] for state in states)
            stamps = [
                state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec for state in states
            ]
            np.testing.assert_allclose(np.diff(stamps), 0.002, atol=1e-9)
            return np.array([state.velocity for state in states])

        np.testing.assert_allclose(np.diff(rates(), axis=0)[:, 1], -9.81 * 0.002, rtol=1e-6)
        for bad in ([0.0, 58.86], [0.0, float("nan"), 0.0]):
            commands.publish(Float64MultiArray(data=bad))
        np.testing.assert_allclose(np.diff(rates(), axis=0)[:, 1], -9.81 * 0.002, rtol=1e-6)
        talk.until(
            lambda: np.ptp(rates()[:, 1]) <= 1e-9,
            "a weight that is carried",
            meanwhile=lambda: commands.publish(
                Float64MultiArray(data=[0.0, (4.0 + 2.0) * 9.81, 0.0])
            ),
        )
        assert talk.stop() == 0
        # two faults, a line each
        assert talk.log.count("expected 3 finite numbers") == 2


@pytest.mark.usefixtures("ros")
def test_in_lock_step_only_the_torques_of_the_state_that_was_told_move_the_robot():
    """By name and by stamp: others neither move it nor let it go on."""
    from sensor_msgs.msg import JointState

    with conversation(brakes=False, command_wait=60.0) as talk:
        states: list[JointState] = []
        talk.node.create_subscription(JointState, "joint_states", states.append, 10)
        answers = talk.node.create_publisher(JointState, "/simulated_robot/stamped_commands", 10)

        def told(nanoseconds: int) -> bool:
            return bool(states) and states[-1].header.stamp.nanosec == nanoseconds

        def stands() -> None:
            """Nothing is told for a second."""
            before, end = len(states), time.monotonic() + 1.0
            while time.monotonic() < end:
                talk.spin(0.05)
            assert len(states) == before

        def answered(nanoseconds: int, efforts: dict[str, float]) -> None:
            message = JointState(name=list(efforts), effort=list(efforts.values()))
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
            answers.publish(message)

        weight = {"d3": 0.0, "d1": 0.0, "d2": (4.0 + 2.0) * 9.81}
        period = 2_000_000
        talk.until(answers.get_subscription_count, "a listener")
        # the first state may have been told before anybody listened
        answered(period, weight)
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            talk.spin(0.05)
        assert not states or told(0)
        answered(0, weight)
        talk.until(lambda: told(period), "the second state")
        answered(0, weight)
        answered(period, {"d1": 0.0, "d3": 0.0})  # nothing for d2
        stands()
        answered(period, weight)
        talk.until(lambda: told(2 * period), "the third state")
        np.testing.assert_allclose(states[-1].velocity, 0.0, atol=1e-12)
        assert talk.stop() == 0


@pytest.mark.usefixtures("ros")
def test_a_motion_that_begins_before_its_torques_can_have_come_does_not_count(tmp_path):
    """They are used a period after the state that they answer: the first ones come too late."""
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    record = tmp_path / "record.csv"
    with conversation(command_wait=60.0, delay=1, record=str(record)) as talk:
        answers = talk.node.create_publisher(JointState, "/simulated_robot/stamped_commands", 10)
        states: list[JointState] = []

        def answer(state: JointState) -> None:
            message = JointState(name=list(state.name), effort=[0.0] * len(state.name))
            message.header = state.header
            answers.publish(message)
            states.append(state)

        talk.node.create_subscription(JointState, "joint_states", answer, 10)
        motion = talk.node.create_publisher(JointTrajectory, "/simulated_robot/joint_trajectory", 1)
        talk.until(motion.get_subscription_count, "a listener")
        talk.until(answers.get_subscription_count, "another one")
        talk.until(lambda: states, "states")
        points = [
            JointTrajectoryPoint(positions=[0.01 * k] * 3, velocities=[0.0] * 3) for k in (0, 1)
        ]
        points[1].time_from_start.sec = 5
        motion.publish(JointTrajectory(joint_names=["d1", "d2", "d3"], points=points))

        def rows() -> list[dict[str, str]]:
            with record.open(newline="") as file:
                return [row for row in csv.DictReader(file) if row["moving"] == "1"]

        talk.until(lambda: len(rows()) > 5, "periods of the motion")
        assert talk.stop() == 0
        assert [row["missed"] for row in rows()[:5]] == ["1"] * 5
        first = rows()[0]
        assert float(first["time"]) == pytest.approx(float(first["begin"]), abs=0.01)


@pytest.mark.usefixtures("ros")
def test_a_motion_begins_when_it_first_leaves_where_it_rests():
    from builtin_interfaces.msg import Duration
    from trajectory_msgs.msg import JointTrajectoryPoint

    from robot_dynamics.ros.simulated_robot_node import _rest

    def points(*positions: float) -> list[JointTrajectoryPoint]:
        return [
            JointTrajectoryPoint(positions=[q], time_from_start=Duration(sec=k))
            for k, q in enumerate(positions)
        ]

    assert _rest(points(0.3)) == 0
    assert _rest(points(0.3, 0.4)) == 0
    assert _rest(points(0.3, 0.3, 0.3, 0.4, 0.3)) == 2 * 10**9, "it comes back, and does not rest"


def test_the_manual_has_the_simulated_robots_parameters():
    from robot_dynamics.ros.feed_forward.parameter_table import rows
    from robot_dynamics.ros.simulated_robot_parameters import RobotSettings

    manual = (ROOT / "docs" / "demo.md").read_text()
    for each in rows(RobotSettings):
        assert f"| `{each.name}` | {each.type} |" in manual
        assert f"| {each.meaning} |" in manual


@pytest.mark.parametrize("module", ["rclpy", "mujoco"])
def test_a_missing_extra_is_named_with_its_cure(module, monkeypatch, tmp_path):
    from robot_dynamics.app.demo import run

    monkeypatch.setitem(sys.modules, module, None)
    extra = "ros" if module == "rclpy" else "sim"
    with pytest.raises(BackendError, match=rf"{module}.*pip install 'robot_dynamics\[.*{extra}"):
        run("polar", output=tmp_path)


def test_an_unknown_robot_and_a_bad_folder_are_refused(tmp_path):
    from robot_dynamics.app.demo import run

    with pytest.raises(InputError, match="robot: found 'r2d2', expected one of polar, cartesian"):
        run("r2d2")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="expected a folder"):
        run("polar", output=file)


def test_a_run_without_progress_ends_with_the_nodes_last_line(monkeypatch, tmp_path):
    from robot_dynamics.app.demo import demonstration

    class Silent:
        namespace = "/demo"

        def __init__(self, _folder):
            self.lines = {}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def start(self, name, *_):
            self.lines[name] = f"I am {name}"

        def check(self):
            pass

        def last_line(self, name):
            return self.lines[name]

    monkeypatch.setattr(demonstration, "Processes", Silent)
    monkeypatch.setattr(demonstration, "DEADLINE", -1.0)
    demo = ROBOTS["polar"]
    for run in demo.runs:
        last = "I am feed_forward" if run.feed_forward is not None else "at the start"
        with pytest.raises(BackendError, match=f"no progress .*{last}$"):
            demonstration._run(run, Subject.of(demo), tmp_path, lambda *_: None)


# --- under a real controller manager ------------------------------------------------------------


def test_without_ros2_control_the_demo_says_so_in_one_line():
    environment = os.environ | {"AMENT_PREFIX_PATH": ""}
    command = [sys.executable, "-m", "robot_dynamics", "demo", "controller"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 1
    (line,) = run.stderr.strip().splitlines()
    assert "controller_manager" in line
    assert "ros2-control" in line


def test_torques_are_as_old_as_the_state_that_they_answer():
    from robot_dynamics.app.demo.controller_manager import _ages

    # a period of 1 ms; the stamp of a state is a moment within the period that read it
    stamps = 1000.0 + np.arange(6) * 1e-3
    heard = np.array([[1000.0002, 1.0, 2.0], [1000.0012, 3.0, 4.0], [1000.0031, 5.0, 6.0]])
    efforts = np.array([[0, 0], [0, 0], [1, 2], [1, 2], [3, 4], [5, 6]], dtype=float)
    ages = _ages(stamps, efforts, heard)
    assert np.isnan(ages[:2]).all()
    assert 1e3 * ages[2:] == pytest.approx([2.0, 3.0, 3.0, 2.0], abs=1e-3)


@pytest.mark.parametrize("name", ["polar", "rrr"])
def test_the_managers_robot_begins_where_the_loops_are_closed(name, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from robot_dynamics.app.demo.controller_manager import ManagedRobot

    file = str(ROOT / "config" / f"{name}.yaml")
    mechanism = rd.load(file)
    dynamics = rd.InverseDynamics(mechanism)
    start = np.array([mechanism.home.get(joint, 0.0) for joint in dynamics.joint_names])
    start[0] += 0.05
    robot = ManagedRobot(file, mechanism, start, tmp_path)
    tree = ET.fromstring(robot.description(tmp_path / "log.csv"))
    model = mujoco.MjModel.from_binary_path(tree.find(".//param[@name='model']").text)
    data = mujoco.MjData(model)
    for i in range(model.nq):
        data.qpos[i] = float(tree.find(f".//param[@name='qpos{i}']").text)
    mujoco.mj_forward(model, data)
    assert abs(data.efc_pos[: data.ne]).max(initial=0.0) < 1e-9
    joints = tree.findall("ros2_control/joint")
    assert [each.get("name") for each in joints] == [*dynamics.joint_names, *mechanism.sensed]
    for each, q in zip(joints, start, strict=False):
        place = int(each.find("param[@name='place']").text)
        assert data.qpos[place] == pytest.approx(q, abs=1e-12)
        assert (each.find("command_interface") is None) == (each.get("name") in mechanism.sensed)
    for way in ("PD", "node", "gravity", "feed_forward", "computed_torque"):
        named = robot.parameters(way)
        types = named["controller_manager"]["ros__parameters"]
        assert all(types[controller]["type"] for controller in robot.controllers(way))


@pytest.mark.skipif(
    not os.environ.get("AMENT_PREFIX_PATH") or bool(missing_packages(NEEDED)),
    reason="ros2_control is not sourced: the demo under a controller manager does not run",
)
@pytest.mark.timeout(1800)
def test_under_a_controller_manager_the_generated_controller_tracks(tmp_path):
    command = [sys.executable, "-m", "robot_dynamics", "demo", "controller", "--json"]
    run = subprocess.run(
        [*command, "--output", str(tmp_path)], capture_output=True, text=True, check=True
    )
    result = json.loads(run.stdout)
    assert is_documented(result)
    alone, node, feed_forward, computed = result["runs"]
    assert node["age"][0] > 0.0
    for each in (feed_forward, computed):
        assert each["rms"] < alone["rms"] / GOAL
    assert Path(result["picture"]).exists()


@pytest.mark.parametrize("name", ROBOTS)
def test_every_runs_model_loads_and_has_the_lengths_that_it_names(name, tmp_path):
    demo = ROBOTS[name]
    true = rd.load(demo.description)
    for run in demo.runs:
        model = rd.load(_model(run, demo.description, tmp_path))
        assert model.joint_names == true.joint_names
        for link, factor in run.lengths.items():
            long, known = (each.link(link).joint.tail.translation for each in (model, true))
            assert long == pytest.approx(factor * np.asarray(known), rel=1e-12, abs=1e-12)


def test_a_run_worse_than_the_first_has_its_ratio_beside_its_line():
    pytest.importorskip("matplotlib")
    from robot_dynamics.app.plots import _label_rms, figure

    _, axes = figure(1, 1, width=4.0, height=3.0)
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_ylim(1e-4, 10.0)
    _label_rms(axes[0, 0], [1.0, 5.0, 0.25, 0.001], 0.05)
    assert {each.get_text() for each in axes[0, 0].texts} == {"RMS", "÷ 0.2", "÷ 4", "÷ 1,000"}


def test_the_labels_of_many_runs_stay_apart_and_beside_the_axes():
    from robot_dynamics.app.plots import LABEL, _label_rms, figure

    errors = [1.0, 0.02, 0.019, 0.0188, *np.geomspace(1e-3, 9e-4, 6)]
    row = LABEL * (len(errors) + 2)
    _, axes = figure(1, 1, width=4.0, height=row)
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_ylim(9e-5, 2.0)
    _label_rms(axes[0, 0], errors, LABEL / row)
    heights = np.array([text.xy[1] for text in axes[0, 0].texts])
    assert len(heights) == len(errors)
    assert (np.diff(heights) < -0.999 * LABEL / row).all()
    assert heights.min() >= 0.0
    assert heights.max() <= 1.0
