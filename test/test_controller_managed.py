# SPDX-License-Identifier: Apache-2.0
"""Generated controllers under a real controller manager; MuJoCo is the robot and the oracle.

Where ros2_control is sourced; what is not built of them is built once, in some minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from robots import CONFIG

from robot_dynamics.app.demo.controller_manager import NEEDED, missing_packages

if not os.environ.get("AMENT_PREFIX_PATH") or missing_packages(NEEDED):
    pytest.skip(
        "ros2_control is not sourced: nothing runs under a controller manager",
        allow_module_level=True,
    )
pytest.importorskip("controller_manager_msgs")

from geometry_msgs.msg import InertiaStamped
from managed_robot import Managed, MujocoOracle, robot

pytestmark = pytest.mark.timeout(1800)
ROOT = CONFIG.parent
URDF = ROOT / "urdf"
LOGGED = 1e-7
"""Relative: the log has nine digits of positions and rates"""
SHORT = {"ramp_time": 0.1}


def sines(start, size=0.2):
    def desired(time):
        j, time = np.arange(len(start)), np.asarray(time, dtype=float)[..., None]
        omega = 2 * np.pi * (0.3 + 0.05 * j)
        s = np.clip(time, 0.0, 1.0)
        w, wd = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 - 60 * s**3 + 30 * s**4
        wdd = 60 * s - 180 * s**2 + 120 * s**3
        f, fd = size * np.sin(omega * time), size * omega * np.cos(omega * time)
        return start + w * f, w * fd + wd * f, -(omega**2) * w * f + 2 * wd * fd + wdd * f

    return desired


def close(found, wanted):
    return np.abs(found - wanted).max() <= LOGGED * (1.0 + np.abs(wanted).max())


@pytest.fixture(scope="module")
def rrr(tmp_path_factory):
    return robot(CONFIG / "rrr.yaml", tmp_path_factory.mktemp("rrr"))


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    start = [0.3, -0.6, 0.9, 0.2, 0.5, -0.4]
    return robot(URDF / "six_axis.urdf", tmp_path_factory.mktemp("arm"), start)


# --- sensors on passive joints ----------------------------------------------------------------


def moving(world, seconds=20.0):
    world.load("law", "trajectory_controller")
    assert world.switch(["law", "trajectory_controller"])
    world.move(sines(world.robot.start), seconds)


def since(world, time):
    rows = world.rows
    return rows[rows[:, 0] > time]


@pytest.mark.parametrize("law", ["computed_torque", "feed_forward", "gravity"])
def test_with_sensors_on_passive_joints_the_controller_tracks(rrr, law):
    # gravity alone lags, and there is a singularity not far away
    desired = sines(rrr.start, 0.1 if law == "gravity" else 0.2)
    with Managed(rrr, law, {"sensed": True}) as world:
        world.load("law", "trajectory_controller")
        assert world.switch(["law", "trajectory_controller"])
        begin = world.node.get_clock().now().nanoseconds * 1e-9 + 1.0
        world.move(desired, 4.0, lead=1.0)
        world.later(4.5)
        rows = world.rows
        t = rows[:, -2] - begin
        rows, t = rows[(t > 1.0) & (t < 3.5)], t[(t > 1.0) & (t < 3.5)]
        q = world.split(rows)[0][:, :3]
        wanted = np.array([desired(each + 1e-3)[0] for each in t])
        error = np.sqrt(np.mean((q - wanted) ** 2))
        assert np.abs(world.split(rows)[1]).max() > 0.1  # it moves
        assert error < (0.03 if law == "gravity" else 0.003), world.log
        assert not world.lines("torques at rest"), world.log


def test_the_node_s_torques_make_a_robot_with_loops_track(rrr):
    desired, seconds = sines(rrr.start, 0.1), 5.0
    runs = {way: rrr.run(way, desired, seconds) for way in ("PD", "node")}
    error = {way: np.sqrt((run.error[run.time >= 1.0] ** 2).mean()) for way, run in runs.items()}
    # on a busy machine torques are 10 ms old
    assert error["node"] < error["PD"] / 10


def test_a_sensor_that_lies_leaves_the_torques_at_rest_by_the_ramp(rrr):
    oracle, at = MujocoOracle(rrr), 8.0
    with Managed(
        rrr, "computed_torque", {"sensed": True, **SHORT}, fault_joint="qp2", off_at=at, off=0.3
    ) as world:
        moving(world)
        world.until(lambda: len(world.rows) and world.rows[-1, 0] > at + 1.0, "the fault")
        rows = world.rows
        k = int(np.argmax(rows[:, 0] >= at - 1e-9))
        q, qd, tau = world.split(rows)
        assert np.abs(qd[k - 1]).max() > 0.05  # while it moved
        after = int(np.argmax(rows[:, 0] > at + 0.3))
        if np.isclose(rows[k, 0], at) and not close(tau[after:], oracle.at_rest(q[k - 1])):
            k += 1  # a row logged at 8 s may be before it by rounding
        rest = oracle.at_rest(q[k - 1])
        assert close(tau[after:], rest)
        # a straight way there
        share = (
            (tau[k - 1 : after] - tau[k - 1])
            @ (rest - tau[k - 1])
            / np.sum((rest - tau[k - 1]) ** 2)
        )
        off = tau[k - 1 : after] - tau[k - 1] - share[:, None] * (rest - tau[k - 1])
        assert np.abs(off).max() < 1e-6
        assert (np.diff(share) >= -1e-12).all()
        assert 50 < np.sum((share > 0.0) & (share < 1.0 - 1e-6)) <= 110
        world.until(lambda: world.lines("are inconsistent"), "the line")
        (line,) = world.lines("torques at rest")
        assert "qp2" in line
        # the same sensor cannot be started with
        assert world.switch([], ["trajectory_controller", "law"])
        assert not world.switch(["law"])
        assert (world.split(world.later(0.2))[2][-20:] == 0.0).all()


def test_a_start_that_failed_can_be_tried_again(rrr):
    with Managed(
        rrr, "gravity", {"sensed": True}, fault_joint="qp2", off_at=0.0, off=0.05, held=1
    ) as world:
        world.load("law")
        assert not world.switch(["law"])
        world.until(lambda: world.lines("qp2", "the controller is not activated"), "the line")
        assert not world.lines("torques at rest")
        assert world.states["law"] == "inactive"
        assert not world.set(sensor_tolerance=1.0)
        assert world.switch(["law"])


def no_number_leaves_torques_at_rest(world, oracle, at):
    """Of a state from `at` on, while it moves; it is said once."""
    moving(world)
    world.until(lambda: len(world.rows) and world.rows[-1, 0] > at + 1.0, "the fault")
    q, _, tau = world.split(since(world, at + 0.3))
    for row in range(0, len(q), 97):
        assert close(tau[row], oracle.at_rest(q[row]))
    world.until(lambda: world.lines("is not a number"), "the line")
    (_,) = world.lines("torques at rest")


def test_a_sensor_that_is_no_number_leaves_the_torques_at_rest(rrr):
    at = 8.0
    with Managed(
        rrr, "feed_forward", {"sensed": True, **SHORT}, fault_joint="qp3", nan_at=at
    ) as world:
        no_number_leaves_torques_at_rest(world, MujocoOracle(rrr), at)


# --- parameters, payload, other claims: of an arm that is held, so that every torque is known ----


REFERENCE = (
    [0.35, -0.5, 0.8, 0.25, 0.45, -0.3],
    [0.4, -0.3, 0.5, 0.2, -0.6, 0.7],
    [1.0, -2.0, 1.5, 0.5, -1.0, 2.0],
)


def torques(world, seconds=0.3):
    """What is written once a change has come; it has to stand still."""
    tau = world.split(world.later(seconds))[2]
    assert (tau[-50:] == tau[-1]).all()
    return tau[-1]


def test_every_parameter_counts_at_once_and_a_bad_one_changes_nothing(arm):
    oracle = MujocoOracle(arm)
    q, qd, qdd = map(np.array, REFERENCE)
    p, d = arm.gains("feed_forward")
    feedback = p * (q - arm.start) + d * qd
    endless = {"command_timeout": 0.0, "effort_limits": [1e6] * 6}
    with Managed(arm, "feed_forward", endless, held=1) as world:
        world.load("law")
        assert world.switch(["law"])
        still = oracle.at_rest(arm.start)
        assert close(torques(world), still)
        world.refer(q, qd, qdd)
        world.until(lambda: not close(torques(world), still), "the reference")
        whole = oracle(q, qd, qdd) + feedback
        assert close(torques(world), whole)

        nan = float("nan")
        for bad in (
            {"effort_limits": [1.0]},
            {"effort_limits": [nan] * 6},
            {"effort_limits": [-1.0] * 6},
            {"slew_limits": [nan] * 6},
            {"slew_limits": [1.0, 2.0]},
            {"gravity": [0.0, 0.0, nan]},
            {"gravity": [1.0]},
            {"max_acceleration": nan},
            {"command_timeout": nan},
            {"ramp_time": nan},
            {"ramp_time": -1.0},
            {"friction_smoothing": nan},
            {"friction_smoothing": float("inf")},
            {f"gains__{arm.joints[0]}__p": nan},
            {f"gains__{arm.joints[0]}__d": float("inf")},
            {f"gains__{arm.joints[0]}__i": -1.0},
            {"terms": ["weight"]},
            {"law": "none"},
            {"joints": arm.joints[::-1]},
        ):
            reason = world.set(**bad)
            assert reason, bad
            assert close(torques(world, 0.06), whole), bad

        first = f"gains__{arm.joints[0]}__p"
        assert not world.set(**{first: float(p[0]) + 7.0})
        more = feedback + np.array([7.0 * (q - arm.start)[0], 0, 0, 0, 0, 0])
        assert close(torques(world), oracle(q, qd, qdd) + more)
        assert not world.set(**{first: float(p[0])})

        down = [1.0, -2.0, -5.0]
        assert not world.set(gravity=down)
        oracle.gravity = np.array(down)
        assert close(torques(world), oracle(q, qd, qdd) + feedback)
        oracle.gravity = np.zeros(3)
        assert not world.set(terms=["inertia", "coriolis", "rotors", "friction"], gravity=[])
        assert close(torques(world), oracle(q, qd, qdd) + feedback)
        every = ["inertia", "coriolis", "gravity", "rotors", "friction"]
        assert not world.set(terms=every)
        oracle = MujocoOracle(arm)
        assert close(torques(world), whole)

        limits = (0.5 * abs(whole)).tolist()
        assert not world.set(effort_limits=limits)
        assert close(torques(world), 0.5 * whole)
        world.until(lambda: world.lines("clipped at effort_limits"), "the line of limits")
        assert not world.set(effort_limits=[1e6] * 6)

        ones = {f"gains__{name}__{each}": 1.0 for name in arm.joints for each in "pd"}
        assert not world.set(law="computed_torque", **ones)
        wanted = qdd + (q - arm.start) + qd
        assert close(torques(world), oracle(arm.start, np.zeros(6), wanted))
        assert not world.set(law="gravity")
        assert close(torques(world), still + (q - arm.start) + qd)


def test_a_payload_counts_while_it_follows_and_is_gone_after_cleaning_up(arm):
    oracle = MujocoOracle(arm)
    link = arm.mechanism.links[-1].name
    load = (f"link {link}", 2.0, np.array([0.05, -0.02, 0.1]))
    with Managed(arm, "gravity", {"effort_limits": [1e6] * 6}, held=1) as world:
        world.load("law")
        assert world.switch(["law"])
        still = oracle.at_rest(arm.start)
        assert close(torques(world), still)
        world.until(world.payload_out.get_subscription_count, "the payload's subscriber")

        def carry(mass, frame=link):
            message = InertiaStamped()
            message.header.frame_id = frame
            message.inertia.m = mass
            if mass:
                x, y, z = load[2].tolist()
                message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = x, y, z
                message.inertia.ixx = message.inertia.iyy = message.inertia.izz = 0.01
            world.payload_out.publish(message)

        for bad in ((2.0, "nowhere"), (-1.0, link), (float("nan"), link)):
            before = len(world.lines("payload is refused"))
            carry(*bad)
            world.until(lambda n=before: len(world.lines("payload is refused")) > n, "a refusal")
            assert close(torques(world, 0.1), still)
        carry(2.0)
        world.until(lambda: world.lines("carries 2 kg"), "the payload")
        loaded = oracle(arm.start, np.zeros(6), np.zeros(6), load)
        assert close(torques(world), loaded)
        # activated again it is still there; cleaned up it is gone
        assert world.switch([], ["law"])
        assert (torques(world) == 0.0).all()
        assert world.switch(["law"])
        assert close(torques(world), loaded)
        assert world.switch([], ["law"])
        assert world.clean_up("law")
        assert world.states["law"] == "unconfigured"
        assert world.configure("law")
        assert world.switch(["law"])
        assert close(torques(world), still)


def test_a_reference_that_stops_is_over_and_a_bad_one_is_refused(arm):
    oracle = MujocoOracle(arm)
    q, qd, qdd = map(np.array, REFERENCE)
    with Managed(arm, "feed_forward", {"effort_limits": [1e6] * 6, **SHORT}, held=1) as world:
        world.load("law")
        assert world.switch(["law"])
        still = oracle.at_rest(arm.start)
        bad = [float("nan"), *q[1:]]
        wrong = ((bad, qd, qdd), (q, bad, qdd), (q, qd, 1e4 * qdd), (q[:5], qd, qdd))
        for reference in wrong:
            world.refer(*reference)
        world.until(lambda: world.lines("reference is refused"), "a refusal")
        assert close(torques(world), still)
        for _ in range(20):
            world.refer(q, qd, qdd)
            world.spin(0.05)
        p, d = arm.gains("feed_forward")
        assert close(
            world.split(world.rows)[2][-1], oracle(q, qd, qdd) + p * (q - arm.start) + d * qd
        )
        world.until(lambda: world.lines("no reference for command_timeout"), "the end")
        world.later(0.3)
        assert close(torques(world), still)
        (_,) = world.lines("no reference for command_timeout")
        world.refer(q, qd, qdd)
        world.until(lambda: world.lines("follows the reference again"), "the next one")


@pytest.mark.parametrize("leaves", ["zero", "gravity"])
def test_who_claims_first_keeps_the_joints_and_leaving_leaves_what_it_says(arm, leaves):
    oracle = MujocoOracle(arm)
    other = {
        "type": "forward_command_controller/ForwardCommandController",
        "joints": arm.joints,
        "interface_name": "effort",
    }
    with Managed(arm, "gravity", {"on_deactivate": leaves}, {"other": other}, held=1) as world:
        world.load("law", "other")
        assert world.switch(["law"])
        still = oracle.at_rest(arm.start)
        assert close(torques(world), still)
        assert not world.switch(["other"])
        assert world.states == {"law": "active", "other": "inactive"}
        assert close(torques(world), still)
        assert world.switch([], ["law"])
        assert close(torques(world), still if leaves == "gravity" else np.zeros(6))
        assert world.switch(["other"])
        assert not world.switch(["law"])
        assert world.switch(["law"], ["other"])
        assert close(torques(world), still)


# --- joint_trajectory_controller before it ------------------------------------------------------


def test_whatever_becomes_of_the_trajectory_controller_the_arm_is_held(arm):
    oracle = MujocoOracle(arm)
    fewer = {
        "type": "joint_trajectory_controller/JointTrajectoryController",
        "joints": arm.joints[:4],
        "command_joints": [f"law/{name}" for name in arm.joints[:4]],
        "command_interfaces": ["position", "velocity", "acceleration"],
        "state_interfaces": ["position", "velocity"],
    }
    with Managed(arm, "feed_forward", SHORT, {"fewer": fewer}) as world:
        moving(world)
        world.until(
            lambda: len(world.rows) and abs(world.split(world.rows[-200:])[1]).max() > 0.1, "motion"
        )
        # switched off, while it moves
        assert world.switch([], ["trajectory_controller"])
        assert world.states == {"law": "active", "trajectory_controller": "inactive"}
        q, _, tau = world.split(world.later(0.6))
        for row in range(300, len(q), 50):
            assert close(tau[row], oracle.at_rest(q[row]))
        # on again: it holds, and moves
        assert world.switch(["trajectory_controller"])
        world.later(0.5)
        world.move(sines(world.split(world.rows[-1])[0]), 20.0)
        world.until(lambda: abs(world.split(world.rows[-100:])[1]).max() > 0.1, "motion again")
        # off both, and one by one in one switch
        assert world.switch([], ["trajectory_controller", "law"])
        assert (world.split(world.later(0.2))[2][-50:] == 0.0).all()
        assert world.switch(["law", "trajectory_controller"])
        # another one instead, with fewer joints: not all of them have a reference
        assert world.switch([], ["trajectory_controller"])
        assert world.clean_up("trajectory_controller")
        assert world.unload("trajectory_controller")
        world.load("fewer")
        assert world.switch(["fewer"])
        q, _, tau = world.split(world.later(0.8))
        for row in range(300, len(q), 50):
            assert close(tau[row], oracle.at_rest(q[row]))
        world.until(
            lambda: world.lines("no position reference", arm.joints[4]), "the line of the joints"
        )


def test_controllers_of_single_interfaces_together_make_the_reference(arm):
    def forward(interface, joints):
        return {
            "type": "forward_command_controller/ForwardCommandController",
            "joints": [f"law/{name}" for name in joints],
            "interface_name": interface,
        }

    given = {
        "push": forward("effort", arm.joints),
        "place": forward("position", arm.joints),
        "swing": forward("acceleration", arm.joints[1:2]),
    }
    oracle = MujocoOracle(arm)
    q, effort, qdd = np.array(REFERENCE[0]), np.arange(1.0, 7.0), np.array([0, 3.0, 0, 0, 0, 0])
    p, _ = arm.gains("feed_forward")
    free = {"effort_limits": [1e6] * 6}
    with Managed(arm, "feed_forward", free, given, held=1) as world:
        world.load("law", *given)
        assert world.switch(["law"])
        still = oracle.at_rest(arm.start)
        assert close(torques(world), still)
        # each is given what is commanded while it is active
        assert world.switch(["push"])
        world.command("push", effort)
        world.until(lambda: world.lines("no position reference", arm.joints[0]), "what is missing")
        assert close(torques(world), still)
        assert world.switch(["place"])
        world.command("place", q)
        world.until(lambda: not close(torques(world), still), "the reference")
        held = oracle.at_rest(q) + effort + p * (q - arm.start)
        assert close(torques(world), held)
        assert world.switch(["swing"])
        world.command("swing", qdd[1:2])
        world.until(lambda: not close(torques(world), held), "the acceleration")
        swung = oracle(q, np.zeros(6), qdd) + effort + p * (q - arm.start)
        assert close(torques(world), swung)


def test_a_state_that_is_no_number_and_hardware_that_fails_stop_it_aloud(arm):
    at = 8.0
    with Managed(arm, "computed_torque", SHORT, nan_at=at, error_at=at + 3.0) as world:
        no_number_leaves_torques_at_rest(world, MujocoOracle(arm), at)
        world.until(lambda: world.states["law"] != "active", "the manager's end of it")
        assert world.process.poll() is None


# --- for a long time ----------------------------------------------------------------------------


def test_the_soak_accounts_for_every_period(tmp_path):
    out = tmp_path / "soak.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "controller_soak.py"), "rrr"]
    command += ["--seconds", "3", "--json", str(out)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (found,) = json.loads(out.read_text())
    assert found["periods"] + found["missed"] == 2000
    assert found["periods"] > 1000
    assert 0 <= found["late"] <= found["periods"]
    times = found["update_us"]
    assert 0 < times["p50"] <= times["p99"] <= times["p99.9"] <= times["max"]
    assert found["followed"]
    assert not found["said"]
    assert 0 < found["error"]["rms_first"] <= found["error"]["largest"] < 0.05
    assert 2**20 < found["memory_bytes"]["start"] <= found["memory_bytes"]["most"]
    assert 0 < found["cpu"] < 2
