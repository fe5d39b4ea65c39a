# SPDX-License-Identifier: Apache-2.0
"""Every shipped robot has a launch file, which knows the robot's description and its sensors."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip(
    "launch_ros",
    reason="launch_ros is part of ROS 2 and not on PyPI: on a ROS 2 machine `colcon test` runs "
    "this test",
)

from launch import LaunchContext, LaunchDescription, LaunchService
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch_ros.actions import Node

import robot_dynamics as rd

ROOT = Path(__file__).resolve().parents[1]
ROBOTS = sorted(
    file.stem for file in (ROOT / "config").glob("*.yaml") if file.stem != "feed_forward"
)


def arguments(robot: str) -> dict[str, str]:
    """Argument to default of a launch file."""
    path = ROOT / "launch" / f"{robot}.launch.py"
    spec = importlib.util.spec_from_file_location(robot, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declared = [
        entity
        for entity in module.generate_launch_description().entities
        if isinstance(entity, DeclareLaunchArgument)
    ]
    context = LaunchContext()
    for each in declared:
        each.execute(context)
    return {each.name: context.launch_configurations[each.name] for each in declared}


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_shipped_robot_is_launched_by_its_name(robot):
    found = arguments(robot)
    assert found["description"] == f"package://robot_dynamics/config/{robot}.yaml"
    assert ("sensed" in found) == bool(rd.load(ROOT / "config" / f"{robot}.yaml").sensed)
    assert found["use_sim_time"] == found["sim"] == "false"


def test_the_six_axis_arm_is_launched_by_its_urdf():
    assert arguments("six_axis")["description"] == "package://robot_dynamics/urdf/six_axis.urdf"


def test_any_other_robot_is_launched_by_its_description():
    assert arguments("robot")["description"] == ""


def started(robot: str, **chosen: str) -> list[Node]:
    """The nodes that a launch file starts with these arguments."""
    from robot_dynamics.ros.launching import composed

    context = LaunchContext()
    context.launch_configurations.update(arguments(robot) | chosen)
    return composed(context)[0]


@pytest.mark.parametrize("robot", [*ROBOTS, "six_axis"])
def test_rviz_shows_any_shipped_robot_on_its_base(robot):
    packages = [node.node_package for node in started(robot, sim="true", rviz="true")]
    assert packages == ["robot_dynamics"] * 2 + ["robot_state_publisher", "rviz2"]
    assert len(started(robot)) == 1


def test_a_robot_on_the_topic_is_shown_by_rviz_alone():
    packages = [node.node_package for node in started("robot", rviz="true")]
    assert packages == ["robot_dynamics", "rviz2"]


def test_the_topic_of_an_imu_is_the_nodes_where_it_is_given():
    for chosen, expected in (({}, []), ({"base_imu": "/imu/data"}, [("~/base_imu", "/imu/data")])):
        (node,) = started("robot", **chosen)
        node._perform_substitutions(LaunchContext())
        assert node.expanded_remapping_rules[1:] == expected


def test_a_file_of_parameters_that_is_not_there_starts_nothing():
    with pytest.raises(RuntimeError, match=r"params_file: nowhere\.yaml: no such file"):
        started("polar", params_file="nowhere.yaml")


@pytest.mark.parametrize("pushed", [{}, {"ros_namespace": "/cell"}])
@pytest.mark.parametrize("namespace", ["", "left", "/left"])
@pytest.mark.parametrize("controller", ["arm_controller", "/arm_controller"])
def test_after_a_crash_zeros_go_where_the_torques_went(pushed, namespace, controller):
    from launch_ros.utilities import make_namespace_absolute, prefix_namespace

    from robot_dynamics.ros.launching import composed

    context = LaunchContext()
    chosen = {"namespace": namespace, "controller": controller}
    context.launch_configurations.update(arguments("polar") | chosen | pushed)
    (node,), release = composed(context)
    node._perform_substitutions(context)
    ((_, remapped),) = node.expanded_remapping_rules
    where = node.expanded_node_namespace
    there = "" if where == node.UNSPECIFIED_NODE_NAMESPACE else where
    assert release.topic == make_namespace_absolute(prefix_namespace(there, remapped))


def test_a_node_that_fails_ends_the_launch_with_1_after_what_it_printed_last():
    """Its last lines, which give the reason, may come later than its exit."""
    from robot_dynamics.ros.launching import Release

    told = []
    last = TimerAction(period=0.1, actions=[OpaqueFunction(function=lambda _: told.append("why"))])
    exits = RegisterEventHandler(OnProcessExit(on_exit=[last]))
    node = ExecuteProcess(cmd=["false"], on_exit=Release("/nowhere").then_end)
    service = LaunchService(noninteractive=True)
    service.include_launch_description(LaunchDescription([exits, node]))
    assert service.run() == 1
    assert told == ["why"]
