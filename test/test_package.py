"""The package as colcon and pip see it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from robot_dynamics.codegen import native

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLES = ("robot_dynamics", "feed_forward", "simulated_robot", "trajectory_source")


def test_package_xml_and_setup_py_say_the_same():
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    setup = (ROOT / "setup.py").read_text()
    assert package.get("format") == "3"
    assert f'version="{package.findtext("version")}"' in setup
    assert f'license="{package.findtext("license")}"' in setup
    email = package.find("maintainer").get("email")
    assert email in setup
    assert re.fullmatch(r"[-.\w]+@[-\w]+(\.[-\w]+)+", email), (
        "colcon would take it for plain Python"
    )


ROSDEP = {"pyyaml": "python3-yaml", "urdfdom-py": "urdfdom_py", "xacro": "xacro"}
"""Keys that are not python3-NAME"""
NO_ROSDEP = {"mujoco", "rosbags", "threadpoolctl"}
"""In no ROS distribution; the README says how to get them"""


def test_package_xml_depends_on_what_the_package_needs_at_run_time():
    setup = (ROOT / "setup.py").read_text()
    blocks = re.findall(r"(?:SIM|IDENTIFY|install_requires)\s*=\s*\[(.*?)\]", setup, re.DOTALL)
    needed = set(re.findall(r'"([\w-]+)>=', "".join(blocks)))
    assert {"numpy", "platformdirs", "scipy", "mujoco"} <= needed
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    found = {depend.text for depend in package.findall("exec_depend")}
    assert {ROSDEP.get(name, f"python3-{name}") for name in needed - NO_ROSDEP} <= found
    assert all(name in (ROOT / "README.md").read_text() for name in NO_ROSDEP)


@pytest.mark.skipif(
    importlib.util.find_spec("colcon_ros") is None,
    reason="SKIPPED LOUDLY: colcon-ros is not installed, so that the build is not tested",
)
def test_colcon_build_installs_everything_where_ros_looks(tmp_path):
    source = tmp_path / "src" / "robot_dynamics"
    ignored = shutil.ignore_patterns(
        ".*", "*.so", "build", "install", "log", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    result = subprocess.run(
        [sys.executable, "-m", "colcon", "build", "--event-handlers", "console_direct+"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLCON_LOG_PATH": str(tmp_path / "log")},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    prefix = tmp_path / "install" / "robot_dynamics"
    for name in EXECUTABLES:
        assert (prefix / "lib" / "robot_dynamics" / name).is_file(), name
    for folder in ("launch", "config", "config/sros2", "controllers", "urdf", "rviz"):
        installed = {path.name for path in (prefix / "share/robot_dynamics" / folder).iterdir()}
        assert {path.name for path in (ROOT / folder).iterdir() if path.is_file()} <= installed
    assert (prefix / "share/ament_index/resource_index/packages/robot_dynamics").is_file()
    if native._host()[0] is not None:  # with a compiler and headers, what calls kernels is built
        code = (
            "from robot_dynamics.codegen import _caller, native;"
            f"assert _caller.__file__.startswith({str(prefix)!r});"
            "assert native._host() == (_caller, '')"
        )
        site = next(prefix.glob("lib/python3*/site-packages"))
        loaded = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert loaded.returncode == 0, loaded.stderr


def test_import_pulls_in_neither_sympy_nor_ros():
    """So that a program that needs torques alone starts at once."""
    code = (
        "import sys, robot_dynamics as rd; rd.load; rd.InverseDynamics;"
        "bad = {'sympy', 'rclpy', 'mujoco', 'matplotlib', 'scipy'} & set(sys.modules);"
        "assert not bad, bad"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_version_is_that_of_the_package_and_errors_and_bodies_are_public():
    import robot_dynamics as rd
    from robot_dynamics import errors, mechanism

    assert rd.__version__ == ElementTree.parse(ROOT / "package.xml").findtext("version")
    assert rd.Inertial is mechanism.Inertial
    kinds = [x for x in vars(errors).values() if isinstance(x, type)]
    kinds = [x for x in kinds if issubclass(x, rd.RobotDynamicsError)]
    assert len(kinds) > 4
    for kind in kinds:
        assert getattr(rd, kind.__name__) is kind
    assert {*rd.__all__, "__version__"} <= set(dir(rd))
    for name in rd.__all__:
        assert getattr(rd, name) is not None
