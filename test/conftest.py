"""How the tests are collected."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

KERNELS = tempfile.TemporaryDirectory(prefix="robot_dynamics_test_")
# hundreds of robots by seed have no place in the user's own cache
os.environ["ROBOT_DYNAMICS_CACHE"] = KERNELS.name


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write test/golden/ anew from what is found"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector):
    """launch_testing's plugin imports every module of the folder while it looks for launch tests:
    one whose oracle is not installed would take all the others with it."""
    if module_path.name.startswith("test_launch"):
        return None
    return pytest.Module.from_parent(parent, path=module_path)
