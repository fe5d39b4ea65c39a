# SPDX-License-Identifier: Apache-2.0
"""What people copy for ros2_control and Gazebo, as far as xacro, URDF and launch parsers tell."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import robot_dynamics as rd

pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed: extra `dev`")

ROOT = Path(__file__).resolve().parents[1]
ROBOTS = ("polar", "six_axis")
GAZEBO = "gz_ros2_control/GazeboSimSystem"
MOMENTS = 0.4 * (10.0 * 0.05**2 + 5.0 * 0.04**2)
"""kg m², of the balls that stand for the polar robot's point masses"""


def expanded(robot: str, **arguments: str) -> str:
    """By xacro's own command."""
    xacro = shutil.which("xacro", path=str(Path(sys.executable).parent)) or shutil.which("xacro")
    assert xacro, "xacro comes with the package"
    pairs = [f"{name}:={value}" for name, value in arguments.items()]
    file = ROOT / "urdf" / f"{robot}.urdf.xacro"
    return subprocess.run(
        [xacro, str(file), *pairs], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("robot", "original", "more"),
    [("polar", "config/polar.yaml", [MOMENTS, 0.0]), ("six_axis", "urdf/six_axis.urdf", [0.0] * 6)],
)
def test_a_robot_under_ros2_control_is_the_shipped_one(robot, original, more):
    """`more`: kg m², what the balls add to the first joint's inertia."""
    found = rd.InverseDynamics(rd.load(expanded(robot)))
    expected = rd.InverseDynamics(rd.load(ROOT / original))
    assert found.joint_names == expected.joint_names
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 50, len(found.joint_names)))
    np.testing.assert_allclose(
        found(q, qd, qdd), expected(q, qd, qdd) + np.array(more) * qdd, atol=1e-12
    )


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("hardware", ["mock_components/GenericSystem", GAZEBO])
def test_description_and_controllers_name_the_same_joints_in_the_same_order(robot, hardware):
    controllers = ROOT / "controllers" / f"{robot}.yaml"
    text = expanded(robot, hardware=hardware, controllers=str(controllers))
    root = ElementTree.fromstring(text)
    system = root.find("ros2_control")
    assert system.findtext("hardware/plugin") == hardware
    joints = [joint.get("name") for joint in system.findall("joint")]
    for joint in system.findall("joint"):
        assert [each.get("name") for each in joint.findall("command_interface")] == ["effort"]
        states = [each.get("name") for each in joint.findall("state_interface")]
        assert states == ["position", "velocity", "effort"]
    names = list(rd.load(text).joint_names)
    told = yaml.safe_load(controllers.read_text())
    controller = told["effort_controller"]["ros__parameters"]
    assert controller["joints"] == joints == names
    assert controller["interface_name"] == "effort"
    types = told["controller_manager"]["ros__parameters"]
    assert (
        types["effort_controller"]["type"] == "forward_command_controller/ForwardCommandController"
    )
    told_to_gazebo = [plugin.text.strip() for plugin in root.findall("gazebo/plugin/parameters")]
    assert told_to_gazebo == ([str(controllers)] if hardware == GAZEBO else [])


@pytest.mark.parametrize("robot", ROBOTS)
def test_urdfdom_and_gazebo_can_take_the_robot(robot):
    """Pinocchio reads by urdfdom; Gazebo wants a ground and bodies that there can be."""
    text = expanded(robot, hardware=GAZEBO)
    model = pin.buildModelFromXML(text)
    names = rd.load(text).joint_names
    assert tuple(model.names)[1:] == names
    root = ElementTree.fromstring(text)
    links = {link.get("name") for link in root.findall("link")}
    children = {joint.find("child").get("link") for joint in root.findall("joint")}
    assert links - children == {"world"}
    for body in list(model.inertias)[1:]:
        moments = np.linalg.eigvalsh(body.inertia)
        assert body.mass > 0
        assert moments[0] > 0
        assert moments[2] <= moments[:2].sum() * (1 + 1e-9)
    for limit in root.iter("limit"):
        assert float(limit.get("effort")) > 0
        assert float(limit.get("velocity")) > 0


@pytest.mark.parametrize("file", ["ros2_control", "gazebo"])
def test_launch_reads_what_people_copy(file):
    ros2 = shutil.which("ros2")
    if ros2 is None:
        pytest.skip("SKIPPED LOUDLY: ros2 is part of ROS 2 and not on PyPI")
    command = [ros2, "launch", "robot_dynamics", f"{file}.launch.py"]
    told = subprocess.run(
        [*command, "--print-description"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    told = subprocess.run([*command, "--show-args"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    for argument in ("robot", "params_file", "rviz"):
        assert f"'{argument}':" in told.stdout
