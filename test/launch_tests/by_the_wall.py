# SPDX-License-Identifier: Apache-2.0
"""sim:=true use_sim_time:=false: the simulated robot keeps the wall's time; the robot comes by the
topic, from which both take it."""

from __future__ import annotations

import time
import unittest
from pathlib import Path

import launch_testing
import numpy as np
import pytest
from launch_tests.watcher import (
    SECOND,
    Watcher,
    check_output,
    launched,
    of,
    patient_parameters,
    ready,
)
from std_msgs.msg import String

import robot_dynamics as rd

SIX_AXIS = Path(__file__).resolve().parents[2] / "urdf" / "six_axis.urdf"


@pytest.mark.launch_test
def generate_test_description():
    more = {"controller": "arm", "params_file": patient_parameters()}
    return ready(launched("robot", sim="true", use_sim_time="false", **more))


class TestWhileItRuns(unittest.TestCase):
    def test_node_and_robot_take_the_robot_of_the_topic_and_the_walls_time(self):
        mechanism = rd.load(SIX_AXIS)
        dynamics = rd.InverseDynamics(mechanism)
        joints = list(dynamics.joint_names)
        with Watcher(controller="arm") as watcher:
            watcher.description.publish(String(data=SIX_AXIS.read_text()))
            home = watcher.home(joints)
            assert abs(max(watcher.states) / SECOND - time.time()) < 60
            away = np.full(6, 0.1)
            start = watcher.swing(joints, home, away, 1)
            answered = watcher.answered(start, 1)
            assert len(answered) > 20
            for u, state, effort in answered:
                q, qd = (of(state, joints, which) for which in ("position", "velocity"))
                expected = dynamics(q, qd, (6 - 12 * u) * away)
                np.testing.assert_allclose(effort.effort, expected, rtol=1e-6, atol=1e-6)
            watcher.arrives(joints, home + away)
            assert not watcher.clock, "nobody publishes /clock"


@launch_testing.post_shutdown_test()
class TestAfterItEnded(unittest.TestCase):
    def test_all_ended_well_and_nothing_failed_on_the_way(self, proc_info, proc_output):
        check_output(proc_info, proc_output)
