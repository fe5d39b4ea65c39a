# SPDX-License-Identifier: Apache-2.0
"""What the node reports about itself once a second: rates, ages, counts, and their severity."""

from __future__ import annotations

import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import START, at, point
from node_bench import Bench as AnyBench
from robots import CONFIG

from robot_dynamics.mechanism import Inertial
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

NAMES = ("theta1", "d2")


class Bench(AnyBench):
    """With a report at a time of ours."""

    def __init__(self, **values):
        super().__init__(f"{CONFIG}/polar.yaml", **values)
        self._diagnosis = Diagnosis(0.0)

    def reported(self, now: float, *, busy: bool = False, refused: bool = False):
        return self._diagnosis.report(
            self.controller, busy, at(now), now, description_refused=refused
        )

    def moved(self, now: float, **more):
        return self.state(now, [0.1, 0.2], [0.0, 0.0], names=NAMES, **more)


def test_without_a_robot_there_is_an_error_and_nothing_about_one():
    controller = FeedForward(Settings.of({}), print, lambda: 0.0)
    report = Diagnosis(0.0).report(controller, True, at(1.0), 1.0)
    assert (report.level, report.message) == (ERROR, "no robot: waiting for robot_description")
    assert "robot" not in report.values
    refused = Diagnosis(0.0).report(controller, False, at(1.0), 1.0, description_refused=True)
    assert refused.level == ERROR
    assert (
        refused.message
        == "the newest robot description was refused; no robot: waiting for robot_description"
    )


def test_rates_are_counts_since_the_last_report_over_the_time_since():
    bench = Bench(on_timeout="hold")
    report = bench.reported(0.5)
    assert (report.level, report.message) == (OK, "waiting for a command")
    for k in range(5):
        bench.command(1.0, point(qdd=[1.0, 2.0]), names=NAMES)
        bench.moved(1.0 + k / 10)
    bench.moved(1.45, stamped=1.2)  # older than the newest: dropped
    bench.state(1.46, [0.0], [0.0], names=("camera",))
    report = bench.reported(2.5, busy=True)
    assert (report.level, report.message) == (
        WARN,
        "in the last second: joint_states: old stamp (1)",
    )
    expected = {
        "phase": "following", "state rate (Hz)": "2.5", "command rate (Hz)": "2.5",
        "torque rate (Hz)": "2.5", "states": "5", "commands": "5", "torques": "5",
        "states of other joints": "1", "rejected": "1", "rejected: joint_states: old stamp": "1",
        "building a new model": "yes", "joints": "theta1, d2", "payload (kg)": "0",
    }  # fmt: skip
    assert expected.items() <= report.values.items()
    assert float(report.values["state age (s)"]) == pytest.approx(1.1)
    assert float(report.values["command age (s)"]) == pytest.approx(1.5)
    # what was told is told once, and what came is counted once
    bench.moved(2.6)
    report = bench.reported(3.5)
    assert (report.level, report.message) == (WARN, "in the last second: command: timeout (1)")
    assert report.values["state rate (Hz)"] == "1.0"
    assert report.values["command rate (Hz)"] == "0.0"
    bench.moved(3.6)
    report = bench.reported(4.5)
    assert (report.level, report.message) == (
        WARN,
        "commands have stopped: torques without acceleration for 3.500 s (on_timeout is hold)",
    )
    # a motion without torques is grave
    report = bench.reported(5.5)
    assert (report.level, report.message) == (
        ERROR,
        "no torques for 1.900 s: no joint_states are received",
    )
    assert report.values["torques"] == "7"
    assert report.values["building a new model"] == "no"


def test_torques_that_go_out_are_no_complaint_and_a_refused_description_is_one():
    bench = Bench(command_timeout=0.0)
    bench.command(0.0, point(qdd=[1.0, 2.0]), names=NAMES)
    bench.moved(0.1)
    report = bench.reported(0.5)
    assert (report.level, report.message) == (
        OK,
        "publishing torques; subscribers of ~/commands: 1",
    )
    bench.moved(0.6)
    report = bench.reported(1.0, refused=True)
    assert (report.level, report.message) == (WARN, "the newest robot description was refused")
    assert report.values["newest description"] == "refused"
    assert "condition number" not in report.values


def test_the_payload_is_the_sum_of_all():
    bench = Bench()
    mechanism = bench.controller.model.spec.mechanism
    payloads = {link.name: Inertial(1.5) for link in mechanism.links[:2]}
    bench.controller.adopt(Model(ModelSpec(mechanism, bench.settings, payloads)))
    assert bench.reported(1.0).values["payload (kg)"] == "3"


def test_what_happened_before_simulated_time_began_is_as_old_as_that_time():
    before = -START / 1e9  # the clock reads 0
    bench = Bench(command_timeout=0.5)
    points = [point(k, q=[0.1, 0.2]) for k in range(2)]
    bench.command(before, *points, names=NAMES, stamped=0.0)
    bench.moved(before, stamped=0.1)
    assert bench.reported(before).values["command age (s)"] == "0.000"
    bench.watch(0.2)
    bench.moved(0.7)
    assert bench.reported(0.7).values["command age (s)"] == "0.500"

    bench.command(before, *points, names=NAMES, stamped=10.0)
    bench.moved(before, stamped=10.1)
    bench.moved(before, stamped=11.6)
    assert bench.controller.commands.phase == "finished"
    bench.watch(12.0)
    bench.moved(12.5)
    message = bench.reported(12.5).message
    assert "the trajectory has ended: torques at rest for 0.500 s" in message
