"""How the tests are collected."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector):
    """launch_testing's plugin imports every module of the folder while it looks for launch tests:
    one whose oracle is not installed would take all the others with it."""
    if module_path.name.startswith("test_launch"):
        return None
    return pytest.Module.from_parent(parent, path=module_path)
