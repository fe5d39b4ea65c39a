# SPDX-License-Identifier: Apache-2.0
"""Two simulated robots in two namespaces live on one clock, and both get their torques."""

from __future__ import annotations

import unittest

import launch_testing
import numpy as np
import pytest
from launch_tests.watcher import Watcher, check_output, launched, patient_parameters, ready

ROBOTS = {"left": (["theta1", "d2"], [0.3, 0.1]), "right": (["q1", "q2", "q3"], [0.1, 0.1, 0.1])}


@pytest.mark.launch_test
def generate_test_description():
    return ready(
        launched("polar", sim="true", namespace="left", params_file=patient_parameters()),
        launched(
            "three_axis",
            sim="true",
            namespace="right",
            publish_clock="false",
            params_file=patient_parameters(),
        ),
    )


class TestWhileTheyRun(unittest.TestCase):
    def test_one_clock_and_torques_for_both(self):
        for namespace, (joints, away) in ROBOTS.items():
            with Watcher(namespace) as watcher:
                home = watcher.home(joints)
                start = watcher.swing(joints, home, np.array(away), 1)
                answered = watcher.answered(start, 1)
                assert len(answered) > 20
                assert any(np.any(effort.effort) for _, _, effort in answered)
                watcher.arrives(joints, home + away)
                assert len(watcher.node.get_publishers_info_by_topic("/clock")) == 1
                assert watcher.clock == sorted(watcher.clock), "time never goes back"


@launch_testing.post_shutdown_test()
class TestAfterTheyEnded(unittest.TestCase):
    def test_all_ended_well_and_nothing_failed_on_the_way(self, proc_info, proc_output):
        check_output(proc_info, proc_output)
