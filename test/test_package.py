# SPDX-License-Identifier: Apache-2.0
"""The package as seen by colcon and pip."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from robot_dynamics.codegen import native

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLES = ("robot_dynamics", "feed_forward", "simulated_robot", "trajectory_source", "watch")


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


ROSDEP = {"pyyaml": "python3-yaml", "xacro": "xacro"}
"""Keys that are not python3-NAME"""
NO_ROSDEP = {"mujoco", "msgspec", "rosbags", "threadpoolctl"}
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


def test_package_xml_depends_on_what_the_launch_files_run():
    files = [*(ROOT / "launch").glob("*.py"), ROOT / "robot_dynamics" / "ros" / "launching.py"]
    text = "".join(file.read_text() for file in files)
    run = set(re.findall(r'(?:package=|"package": |FindPackageShare\()"(\w+)"', text))
    for listed in re.findall(r"packages=\[([^\]]+)\]", text):
        run |= set(re.findall(r'"(\w+)"', listed))
    assert {"rviz2", "ros_gz_sim", "gz_ros2_control", "controller_manager"} <= run
    for file in (ROOT / "controllers").glob("*.yaml"):
        run |= set(re.findall(r"type: (\w+)/", file.read_text()))
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    found = {depend.text for depend in package.findall("exec_depend")}
    assert run - {"robot_dynamics"} <= found


IMPORTED_AS = {"yaml": "pyyaml"}
"""Modules that are not called like their package"""


def imported_first(path: Path) -> set[str]:
    """Packages that a test imports when it is collected, before it asks for any by importorskip."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if "importorskip" in ast.unparse(node):
            return found
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_what_tests_import_is_installed_by_rosdep_or_asked_for_first():
    """So that `colcon test` after `rosdep install` collects every test."""
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    depends = package.findall("exec_depend") + package.findall("test_depend")
    known = {depend.text.removeprefix("python3-") for depend in depends}
    ours = {path.stem for path in (ROOT / "test").rglob("*.py")} | {"robot_dynamics"}
    known |= ours | set(sys.stdlib_module_names)
    assert "hypothesis" in known
    for path in sorted((ROOT / "test").glob("*.py")):
        if path.name in {"mutation.py", "process_contexts.py"}:  # mutation's own, never collected
            continue
        names = {ROSDEP.get(IMPORTED_AS.get(n, n), n) for n in imported_first(path)}
        assert {name.removeprefix("python3-") for name in names} <= known, path.name


def test_the_source_distribution_collects_its_tests(tmp_path):
    """With the conftest, helpers and data that they need."""
    ignored = shutil.ignore_patterns(
        ".[a-bd-z]*", "*.so", "build", "install", "log", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, tmp_path / "here", ignore=ignored)
    pack = [sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path)]
    made = subprocess.run(pack, cwd=tmp_path / "here", capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    unpacked = next((tmp_path / "unpacked").iterdir())
    for path in (ROOT / "test").rglob("*"):
        if path.is_file() and path.suffix not in {".pyc", ".so"}:
            assert (unpacked / path.relative_to(ROOT)).is_file(), path
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    collect += ["--assert=plain"]  # nothing is run, so that no assertion need be rewritten
    collected = subprocess.run(
        collect,
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout[-2000:]


@pytest.mark.skipif(
    importlib.util.find_spec("colcon_ros") is None,
    reason="SKIPPED LOUDLY: colcon-ros is not installed, so that the build is not tested",
)
@pytest.mark.parametrize("links", [False, True])
def test_colcon_build_installs_everything_where_ros_looks(links, tmp_path):
    """Copied, or with --symlink-install, which runs setup.py away from the files beside it."""
    source = tmp_path / "src" / "robot_dynamics"
    ignored = shutil.ignore_patterns(
        ".*", "*.so", "build", "install", "log", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [sys.executable, "-m", "colcon", "build", "--event-handlers", "console_direct+"]
    result = subprocess.run(
        [*build, *(["--symlink-install"] if links else [])],
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
    if native._host()[0] is not None and not links:
        # with a compiler and headers, what calls kernels is built
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


def test_a_torque_imports_of_numpy_only_what_numpy_itself_does():
    """Masked arrays take longer to import than most torques to compute."""
    code = (
        "import sys, numpy; own = set(sys.modules);"
        "import robot_dynamics as rd;"
        f"rd.InverseDynamics(rd.load({str(ROOT / 'config/polar.yaml')!r}))([0, 1], [0, 1], [0, 1]);"
        "assert 'numpy.ma' not in set(sys.modules) - own"
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
