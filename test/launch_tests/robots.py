# SPDX-License-Identifier: Apache-2.0
"""Every shipped robot by its launch file, simulated: each state of a motion gets its torques."""

from __future__ import annotations

import unittest
from pathlib import Path

import launch_testing
import numpy as np
import pytest
from launch_tests.watcher import Watcher, check_output, launched, of, patient_parameters, ready

import robot_dynamics as rd

ROOT = Path(__file__).resolve().parents[2]
ROBOTS = sorted(
    file.name.removesuffix(".launch.py")
    for file in (ROOT / "launch").glob("*.launch.py")
    if (ROOT / "config" / file.name.replace(".launch.py", ".yaml")).is_file()
    or (ROOT / "urdf" / file.name.replace(".launch.py", ".urdf")).is_file()
)
ROUNDING = 1e-7
"""Relative: the trajectory's time passes through floats of s; loops are closed to 1e-10"""


@pytest.mark.launch_test
@launch_testing.parametrize("robot", ROBOTS)
def generate_test_description(robot):
    return ready(launched(robot, sim="true", log_level="warn", params_file=patient_parameters()))


class TestWhileItRuns(unittest.TestCase):
    def test_every_state_of_a_motion_gets_its_torque(self, robot):
        (file,) = (*ROOT.glob(f"config/{robot}.yaml"), *ROOT.glob(f"urdf/{robot}.urdf"))
        dynamics = rd.InverseDynamics(rd.load(file))
        joints = list(dynamics.actuated_names)
        with Watcher() as watcher:
            (description,) = watcher.parameters("description")
            assert description == f"package://robot_dynamics/{file.parent.name}/{file.name}"
            home = watcher.home(joints)
            away = np.full(len(joints), 0.05)
            start = watcher.swing(joints, home, away, 1)
            answered = watcher.answered(start, 1)
            assert len(answered) > 20
            for u, state, effort in answered:
                q, qd = (of(state, joints, which) for which in ("position", "velocity"))
                expected = dynamics(q, qd, (6 - 12 * u) * away)
                assert list(effort.name) == joints
                largest = np.abs(expected).max()
                np.testing.assert_allclose(
                    effort.effort, expected, rtol=ROUNDING, atol=ROUNDING * largest
                )
            torques = [list(effort.effort) for _, _, effort in answered]
            assert all(each in watcher.commands for each in torques[:: len(torques) // 5])
            watcher.arrives(joints, home + away)


@launch_testing.post_shutdown_test()
class TestAfterItEnded(unittest.TestCase):
    def test_all_ended_well_and_nothing_failed_on_the_way(self, proc_info, proc_output):
        check_output(proc_info, proc_output)
