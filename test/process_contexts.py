# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: with --cov-context=test, what a process runs counts for the test that started
it, with `|process` behind the test's name."""

from __future__ import annotations

import copy
import os

import coverage
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    measuring = coverage.Coverage.current()
    if measuring is not None:
        config = copy.copy(measuring.config)
        config.context = f"{item.nodeid}|process"
        os.environ["COVERAGE_PROCESS_CONFIG"] = config.serialize()
