# SPDX-License-Identifier: Apache-2.0
"""However the node ends, its last torque is one at rest; however a motion ends, too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Duration, Time
from node_process import ENVIRONMENT, PATIENCE, ROOT, Partner, command_line
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.codegen.compiler import CompileError, find
from robot_dynamics.ros.watchdog import Watchdog

G = 9.81
ROUNDING = 1e-12
CARTESIAN, POLAR, RRR = (
    str(ROOT / f"config/{name}.yaml") for name in ("cartesian", "polar", "rrr")
)
JOINTS = dict.fromkeys(("d1", "d2", "d3"), (0.1, 0.0))
MOVING, REST = [12.0, 6.0 * (1.0 + G), 2.0], [0.0, 6.0 * G, 0.0]
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def is_close(values, expected) -> bool:
    return len(values) == len(expected) and np.allclose(values, expected, ROUNDING, ROUNDING)


def cartesian(**values) -> Partner:
    return Partner(**{"description": CARTESIAN, "command_timeout": 0.0, "max_age": 20.0, **values})


def move(partner: Partner, stamp: Time | None = None) -> None:
    partner.accelerate(dict.fromkeys(JOINTS, 1.0))
    partner.state(JOINTS, stamp)


def set_in_motion(partner: Partner, stamp: Time | None = None) -> None:
    partner.until(
        lambda: partner.commands and is_close(partner.commands[-1], MOVING),
        "torques of a motion",
        meanwhile=lambda: move(partner, stamp),
    )


def rest_follows(partner: Partner, *, ended: bool = False) -> None:
    partner.until(
        lambda: is_close(partner.commands[-1], REST),
        "torques at rest, as the last word",
        ended=ended,
    )


# Signals


@pytest.mark.parametrize("name", SIGNALS)
def test_any_signal_and_more_of_them_end_it_with_a_torque_at_rest_and_code_0(name):
    with cartesian() as partner:
        set_in_motion(partner)
        for each in (name, *SIGNALS, name):
            if partner.process.poll() is None:
                partner.process.send_signal(getattr(signal, each))
            time.sleep(0.01)
        assert partner.process.wait(PATIENCE) == 0
        rest_follows(partner, ended=True)
        assert "Traceback" not in partner.log


LISTENER = """
import sys, rclpy, rclpy.qos
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node("listener")
qos = rclpy.qos.QoSProfile(depth=10, reliability=rclpy.qos.ReliabilityPolicy[sys.argv[1]])
listen = lambda message: print(*message.data, flush=True)
node.create_subscription(Float64MultiArray, "/feed_forward/commands", listen, qos)
rclpy.spin(node)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
@pytest.mark.parametrize(("reliability", "held_up"), [("RELIABLE", 0.9), ("BEST_EFFORT", 1.5)])
@pytest.mark.parametrize("at_rest_for", [None, 0.0, 1.2])
def test_a_controller_that_is_held_up_gets_the_last_torques_too(
    tmp_path, reliability, held_up, at_rest_for
):
    heard = tmp_path / "heard"

    def last() -> list[float]:
        lines = heard.read_text().splitlines()
        return [float(each) for each in lines[-1].split()] if lines else []

    with cartesian(farewell_time=4.0) as partner, heard.open("w") as out:
        environment = {**ENVIRONMENT, "ROS_DOMAIN_ID": str(partner.domain)}
        listener = subprocess.Popen(
            [sys.executable, "-c", LISTENER, reliability], env=environment, stdout=out
        )
        try:
            partner.until(
                lambda: partner.node.count_subscribers("/feed_forward/commands") == 2, "a listener"
            )
            partner.until(
                lambda: is_close(last(), MOVING),
                "torques of a motion",
                meanwhile=lambda: move(partner),
            )
            listener.send_signal(signal.SIGSTOP)
            if at_rest_for is not None:  # already when the node ends
                partner.set_parameters(max_age=0.1)
                rest_follows(partner)
                time.sleep(at_rest_for)
            partner.process.send_signal(signal.SIGTERM)
            time.sleep(held_up)  # a node that does not stay is gone by then
            listener.send_signal(signal.SIGCONT)
            assert partner.process.wait(PATIENCE) == 0
            partner.until(lambda: is_close(last(), REST), "the last word", ended=True)
        finally:
            listener.kill()
            listener.wait()


def test_a_closed_terminal_does_not_end_what_was_started_by_nohup():
    with cartesian(program=("nohup", *command_line())) as partner:
        set_in_motion(partner)
        partner.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert partner.process.poll() is None
        partner.process.send_signal(signal.SIGTERM)
        assert partner.process.wait(PATIENCE) == 0


def catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(mask >> (number - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
@pytest.mark.parametrize("delay", np.linspace(0.0, 1.4, 8).round(2).tolist())
def test_a_signal_at_any_moment_of_the_start_is_a_clean_end(delay):
    number = getattr(signal, SIGNALS[round(delay * 5) % 4])
    process = subprocess.Popen(
        command_line("--ros-args", "-p", f"description:={POLAR}"),
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        # before its first line Python itself has the word
        deadline = time.monotonic() + PATIENCE
        while not catches(process.pid, signal.SIGHUP) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        process.send_signal(number)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


PHASES = """
import os, signal
from robot_dynamics.ros.executable import SignalHandler
for phase in ("interrupt", "record"):
    signals = SignalHandler()
    getattr(signals, phase)()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            os.kill(os.getpid(), number)
            print("went on", signals.received)
        except KeyboardInterrupt:
            print("interrupted", signals.received)"""


def test_a_signal_interrupts_the_start_once_and_nothing_that_runs():
    command = [sys.executable, "-c", PHASES]
    said = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["interrupted True"] + ["went on True"] * 3


COLLECTED = """
import gc, os, signal, sys
from robot_dynamics.ros.executable import run
def load():
    from robot_dynamics.ros.feed_forward_node import FeedForwardNode
    class Interrupted(FeedForwardNode):
        def __init__(self):
            super().__init__()
            self.create_timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    return Interrupted
code = run("feed_forward", load, [])
from rclpy.signals import SignalHandlerGuardCondition
for each in gc.get_objects():
    if isinstance(each, SignalHandlerGuardCondition):
        each.__del__()
sys.exit(code)
"""


def test_in_whatever_order_the_interpreter_collects_what_is_left_nothing_is_printed():
    command = [sys.executable, "-c", COLLECTED]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0
    assert "waiting for a robot" in done.stderr
    assert "Traceback" not in done.stderr


# Faults


INTERRUPTED = """
import os, signal, sys
from robot_dynamics.ros.executable import run
def make():
    # as dataclasses execute strings: `python -m` remembers an interrupt of one, and ends by SIGINT
    exec("import os, signal; os.kill(os.getpid(), signal.SIGTERM); list(range(1000))")
sys.exit(run("feed_forward", lambda: make, None))
"""


def test_a_signal_within_a_string_that_is_executed_is_code_0(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


FAULTY = """
import sys
from robot_dynamics.ros.executable import run
def load():
    from robot_dynamics.ros.feed_forward_node import FeedForwardNode
    class Faulty(FeedForwardNode):
        def _on_payload(self, message):
            raise KeyError("a fault\\nof its own")
    return Faulty
sys.exit(run("feed_forward", load, None, lambda node: node.farewell()))
"""


def test_a_fault_of_its_own_comes_after_the_last_word_in_one_line_with_code_1():
    with cartesian(program=(sys.executable, "-c", FAULTY)) as partner:
        set_in_motion(partner)
        from geometry_msgs.msg import InertiaStamped

        partner.payload_out.publish(InertiaStamped())
        assert partner.process.wait(PATIENCE) == 1
        rest_follows(partner, ended=True)
        lines = [line for line in partner.log.splitlines() if line.startswith("feed_forward: ")]
        assert len(lines) == 1
        assert "unexpected KeyError" in lines[0]
        assert "Traceback" not in partner.log


def test_a_last_word_that_fails_is_told_in_one_line_with_code_1():
    failing = FAULTY.replace("node.farewell()", "1 / 0")
    with cartesian(program=(sys.executable, "-c", failing)) as partner:
        set_in_motion(partner)
        assert partner.stop(signal.SIGTERM) == 1
        lines = [line for line in partner.log.splitlines() if line.startswith("feed_forward: ")]
        assert len(lines) == 1
        assert "unexpected ZeroDivisionError" in lines[0]


HANGING = """
import sys, time
from pathlib import Path
from robot_dynamics.ros.executable import run
def load():
    from robot_dynamics.ros.feed_forward_node import FeedForwardNode
    class Hanging(FeedForwardNode):
        def _on_payload(self, message):
            if not message.header.frame_id:
                return hang()
            compute = self.controller.state
            def late(*state):
                torques = compute(*state)
                hang()
                return torques
            self.controller.state = late
    return Hanging
def hang():
    while not Path(RELEASED).exists():
        time.sleep(0.01)
sys.exit(run("feed_forward", load, None, lambda node: node.farewell()))
"""


def hanging(released: Path) -> Partner:
    """A node whose loop hangs until there is this file: from a payload on, or, if that has a
    frame_id, from the next state on, after its torques were computed."""
    program = (sys.executable, "-c", HANGING.replace("RELEASED", repr(str(released))))
    return cartesian(program=program, max_age=1.0)


@pytest.mark.parametrize("where", ["", "in a state"])
def test_a_loop_that_hangs_leaves_a_torque_at_rest_and_no_motion_to_resume(tmp_path, where):
    with hanging(tmp_path / "released") as partner:
        set_in_motion(partner)
        from geometry_msgs.msg import InertiaStamped

        for _ in range(20):  # no command is left that would begin after the hang
            partner.state(JOINTS)
            partner.spin()
        message = InertiaStamped()
        message.header.frame_id = where
        partner.payload_out.publish(message)
        partner.until(
            lambda: is_close(partner.commands[-1], REST),
            "torques at rest",
            meanwhile=lambda: partner.state(JOINTS),
        )
        partner.commands.clear()
        assert "the node's control loop stalled" not in partner.log, (
            "the loop itself says so, afterwards"
        )
        (tmp_path / "released").touch()
        partner.until(
            lambda: "the node's control loop stalled" in partner.log,
            "a line about it",
            meanwhile=lambda: partner.state(JOINTS),
        )
        partner.until(
            lambda: partner.counts().get("phase") == "interrupted", "the end of the command"
        )
        assert all(is_close(each, REST) for each in partner.commands)
        set_in_motion(partner)


def test_a_loop_that_goes_on_while_the_watchdog_acts_waits_and_knows_of_it():
    began, done = threading.Event(), []

    def act() -> bool:
        began.set()
        time.sleep(0.3)
        done.append(True)
        return True

    watchdog = Watchdog(lambda: 0.01, act)
    assert began.wait(PATIENCE)
    assert watchdog.reset()
    assert done
    assert not watchdog.reset()
    watchdog.close()


def test_after_a_hang_in_which_nothing_moved_nothing_is_over(tmp_path):
    with hanging(tmp_path / "released") as partner:
        from geometry_msgs.msg import InertiaStamped

        partner.until(lambda: partner.diagnostics, "diagnostics, which come once a second")
        partner.payload_out.publish(InertiaStamped())
        partner.until(lambda: time.monotonic() - partner.newest > 3.0, "the hang")
        (tmp_path / "released").touch()
        set_in_motion(partner)
        assert "hung" not in partner.log


def test_a_console_that_nobody_reads_does_not_hold_up_the_loop(tmp_path):
    """As where `ros2 launch` is suspended, or a terminal is paused."""
    pipe = tmp_path / "console"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    program = f'exec {sys.executable} -m robot_dynamics.node "$@" 2> {pipe}'
    try:
        with cartesian(program=("bash", "-c", program, "bash")) as partner:
            set_in_motion(partner)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writer, b"x" * 4096)
            for _ in range(3):
                # each would be a line of its own in the log
                partner.state({"d1": (float("nan"), 0.0)})
                partner.command_out.publish(JointTrajectory(joint_names=["nobody"]))
            before = len(partner.commands)
            partner.until(
                lambda: len(partner.commands) > before + 20,
                "torques",
                meanwhile=lambda: partner.state(JOINTS),
            )
            partner.until(
                lambda: any(key.startswith("rejected: command") for key in partner.counts()),
                "the refusal in the diagnostics",
                meanwhile=lambda: partner.state(JOINTS),
            )
            assert partner.stop() == 0
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("hang", ["time.sleep(1000)", "ctypes.PyDLL(None).sleep(1000)"])
def test_an_end_that_hangs_is_an_end_all_the_same(hang):
    """In the interpreter, or in a library that holds it; signals are deaf by then."""
    code = f"""if True:
        import ctypes, os, signal, sys, time
        from robot_dynamics.ros import executable
        executable.SHUTDOWN_TIMEOUT = 1.0

        def load():
            from rclpy.node import Node
            def make():
                node = Node("hangs")
                node.create_timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
                return node
            return make

        def finish(node):
            print("the last word", flush=True)
            {hang}

        sys.exit(executable.run("hangs", load, [], finish))"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert told.returncode == 1, told
    assert told.stdout.count("the last word") == 1
    assert "Timeout" in told.stderr
    assert "in finish" in told.stderr, "where it hangs"


@pytest.mark.parametrize("way", ["closed", "broken", "never there"])
def test_nobody_who_listens_is_no_reason_to_leave_without_the_last_word(way, tmp_path):
    fault = tmp_path / "fault.py"
    fault.write_text(FAULTY)
    program = {
        "closed": 'exec {0} {1} "$@" >&- 2>&- <&-',
        "never there": 'exec {0} {1} "$@" > /dev/full 2>&1',
        # head leaves, and with it the reader of the pipe
        "broken": '{0} {1} "$@" 2>&1 | true; exit ${{PIPESTATUS[0]}}',
    }[way].format(sys.executable, fault)
    with cartesian(program=("bash", "-c", program, "bash")) as partner:
        set_in_motion(partner)
        from geometry_msgs.msg import InertiaStamped

        partner.payload_out.publish(InertiaStamped())
        assert partner.process.wait(PATIENCE) == 1
        rest_follows(partner, ended=True)


# Time


def test_simulated_time_that_stops_leaves_a_torque_at_rest():
    with cartesian(use_sim_time=True, max_age=1.0) as partner:
        clock = partner.node.create_publisher(Clock, "/clock", 10)
        now = Time(sec=1000)
        partner.until(
            lambda: partner.commands and is_close(partner.commands[-1], MOVING),
            "torques of a motion",
            meanwhile=lambda: (
                clock.publish(Clock(clock=now)),
                partner.accelerate(dict.fromkeys(JOINTS, 1.0)),
                partner.state(JOINTS, now),
            ),
        )
        rest_follows(partner)
        partner.until(
            lambda: "event: torques: feedback lost" in partner.counts(),
            "the event in the diagnostics",
        )


@pytest.mark.parametrize("simulated", [True, False])
def test_a_clock_that_changes_ends_the_motion(simulated):
    with cartesian(command_timeout=0.5, use_sim_time=not simulated) as partner:
        clock = partner.node.create_publisher(Clock, "/clock", 10)
        past, wall = Time(sec=1000), partner.node.get_clock().now

        def publish(sim: bool):
            if sim:
                clock.publish(Clock(clock=past))
            partner.state(JOINTS, past if sim else wall().to_msg())

        def begin():
            partner.accelerate(dict.fromkeys(JOINTS, 1.0))
            publish(not simulated)

        partner.until(
            lambda: partner.commands and is_close(partner.commands[-1], MOVING),
            "torques of a motion",
            meanwhile=begin,
        )
        for _ in range(20):  # nothing of the old command is on its way any more
            partner.spin()
        assert partner.set_parameters(use_sim_time=simulated).successful
        rest_follows(partner)
        partner.commands.clear()
        partner.until(
            lambda: len(partner.commands) >= 20, "torques", meanwhile=lambda: publish(simulated)
        )
        assert all(is_close(values, REST) for values in partner.commands), partner.commands
        assert "the clock changed" in partner.log


SET_BACK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    int code = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME && !access(getenv("SET_BACK"), F_OK)) t->tv_sec -= 3600;
    return code;
}"""
"""A library that sets the system's clock back by an hour while there is a file"""


def test_a_system_clock_that_is_set_back_ends_the_motion_and_the_next_one_is_followed(tmp_path):
    try:
        library = find().shared_library([SET_BACK])
    except CompileError as error:
        pytest.skip(str(error))
    (tmp_path / "clock.so").write_bytes(library)
    variables = f"LD_PRELOAD={tmp_path}/clock.so", f"SET_BACK={tmp_path}/now"
    with cartesian(program=("env", *variables, *command_line()), feedback="commanded") as partner:

        def command():
            point = JointTrajectoryPoint(positions=[0.1] * 3, velocities=[0.0] * 3)
            point.accelerations = [1.0] * 3
            partner.command_out.publish(JointTrajectory(joint_names=list(JOINTS), points=[point]))

        def moves():
            return partner.commands and is_close(partner.commands[-1], MOVING)

        partner.until(moves, "torques of a motion", meanwhile=command)
        for _ in range(20):  # no command is on its way any more
            partner.spin()
        (tmp_path / "now").touch()
        rest_follows(partner)
        partner.until(moves, "torques of the next one", meanwhile=command)
        assert "the clock jumped back" in partner.log


# What goes out, over DDS


def test_a_trajectory_that_begins_a_moment_ahead_makes_no_torque_of_its_own():
    polar = rd.InverseDynamics(rd.load(POLAR))
    here, target = [0.3, 0.3], [0.305, 0.305]
    with Partner(description=POLAR, max_age=20.0) as partner:
        joints = dict(zip(("theta1", "d2"), zip(here, [0.0, 0.0], strict=True), strict=True))

        def publish():
            message = JointTrajectory(joint_names=["theta1", "d2"])
            for ahead in (0, 10):
                goal = [x + 0.01 * (ahead > 0) for x in target]
                message.points.append(
                    JointTrajectoryPoint(positions=goal, velocities=[0.0, 0.0],
                                         time_from_start=Duration(sec=ahead))
                )  # fmt: skip
            ns = partner.node.get_clock().now().nanoseconds + 2_000_000
            message.header.stamp = Time(sec=ns // 10**9, nanosec=ns % 10**9)
            partner.command_out.publish(message)
            for _ in range(5):
                partner.state(joints)
                partner.spin(0.001)

        partner.until(lambda: len(partner.commands) > 100, "torques", meanwhile=publish)
        # the trajectory's own peak: 6 Δ/h² over 10 s
        own = np.abs(polar(here, [0.0, 0.0], [6e-4, 6e-4]))
        largest = np.abs(partner.commands).max(axis=0)
        # the way there may have been made with up to 10 rad/s², where the message was quick
        assert (largest <= np.maximum(own, np.abs(polar(here, [0, 0], [10.0, 10.0])))).all(), (
            largest
        )


def test_a_foreign_state_does_not_end_a_sensed_node():
    mechanism = rd.load(RRR)
    dynamics = rd.InverseDynamics(mechanism)
    names = ("qa1", "qa2", "qa3", "qp1", "qp2", "qp3")
    home = {name: (float(mechanism.home[name]), 0.0) for name in names}
    wanted = dict.fromkeys(names[:3], 1.0)
    expected = dynamics([home[n][0] for n in names[:3]], np.zeros(3), np.ones(3))
    with Partner(description=RRR, sensed=True, command_timeout=0.0, max_age=20.0) as partner:

        def publish():
            partner.accelerate(wanted)
            foreign = JointState(name=["qa1", "qa2", "qa3", "qp2", "qp1"], position=[0.0])
            foreign.header.stamp = partner.node.get_clock().now().to_msg()
            partner.states_out.publish(foreign)
            partner.state(home)

        partner.until(lambda: len(partner.commands) > 20, "torques", meanwhile=publish)
        np.testing.assert_allclose(
            partner.commands, np.tile(expected, (len(partner.commands), 1)), rtol=1e-9, atol=1e-9
        )
        assert partner.process.poll() is None
        key = "rejected: joint_states: wrong length"
        partner.until(lambda: int(partner.counts().get(key, 0)) > 5, key)


def test_the_signals_of_this_test_are_those_that_end_a_process():
    from robot_dynamics.ros.executable import SIGNALS as ANSWERED

    assert {getattr(signal, name) for name in SIGNALS} == set(ANSWERED)
