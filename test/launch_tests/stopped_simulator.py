# SPDX-License-Identifier: Apache-2.0
"""A simulator that stops in motion, and its clock with it: the node leaves the robot at rest, and
says what is wrong."""

from __future__ import annotations

import os
import signal
import unittest

import launch_testing
import numpy as np
import pytest
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessStart
from launch_tests.watcher import SECOND, Watcher, check_output, launched, of, ready

PROCESSES: dict[str, int] = {}

TRIES = 10
"""to see it move"""


def note(event, _context):
    PROCESSES[event.process_name.split("-")[0]] = event.pid


@pytest.mark.launch_test
def generate_test_description():
    return ready(
        RegisterEventHandler(OnProcessStart(on_start=note)),
        launched("cartesian", sim="true"),
    )


class TestWhileItRuns(unittest.TestCase):
    def test_the_torques_are_those_at_rest_and_the_diagnostics_say_why(self):
        joints = ["d1", "d2", "d3"]
        weight = np.array([0.0, (4.0 + 2.0) * 9.81, 0.0])
        with Watcher() as watcher:
            home = watcher.home(joints)
            for _ in range(TRIES):
                # a busy machine may hold the simulator up, which ends the motion as well
                start = watcher.swing(joints, home, np.full(3, 0.5), 30)
                watcher.until(
                    lambda: max(watcher.states) > start + SECOND,  # noqa: B023
                    "the middle of the motion",
                )
                watcher.until(lambda: watcher.efforts, "torques")
                moving = of(watcher.efforts[max(watcher.efforts)], joints, "effort")
                if np.abs(moving - weight).max() > 1e-3:
                    break
            assert np.abs(moving - weight).max() > 1e-3
            os.kill(PROCESSES["simulated_robot"], signal.SIGSTOP)
            try:
                watcher.until(
                    lambda: np.allclose(watcher.commands[-1], weight, atol=1e-9),
                    "torques that carry it at rest",
                )
                watcher.diagnoses.clear()
                watcher.until(
                    lambda: any(level == 2 for level, _ in watcher.diagnoses),
                    "diagnostics that it fails",
                )
            finally:
                os.kill(PROCESSES["simulated_robot"], signal.SIGCONT)


@launch_testing.post_shutdown_test()
class TestAfterItEnded(unittest.TestCase):
    def test_all_ended_well_and_nothing_failed_on_the_way(self, proc_info, proc_output):
        check_output(proc_info, proc_output)
