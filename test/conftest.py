# SPDX-License-Identifier: Apache-2.0
"""How the tests are collected."""

from __future__ import annotations

import gc
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Generator
from typing import Any

# matrices of joints are small: a second thread of BLAS spins for longer than it saves, and takes
# the time from another test, and from the processes that tests start
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# SymPy forgets all but the last thousand results otherwise, and computes many of them again
os.environ.setdefault("SYMPY_CACHE_SIZE", "None")

import hypothesis
import pytest

from robot_dynamics.app.command import Command
from robot_dynamics.codegen import Function
from robot_dynamics.codegen.compiler import Compiler

if "PYTEST_XDIST_WORKER" not in os.environ:  # otherwise it uses the cache of whoever started it
    KERNELS = tempfile.TemporaryDirectory(prefix="robot_dynamics_test_")
    # hundreds of random robots have no place in the user's own cache; a folder that is kept makes
    # the next run shorter, as long as the package is the same
    os.environ["ROBOT_DYNAMICS_CACHE"] = os.environ.get("ROBOT_DYNAMICS_TEST_CACHE", KERNELS.name)


# Python's cycles are few, its objects many: SymPy's terms and recorded programs would be looked
# through again at every seven hundredth new one
gc.set_threshold(100_000, 20, 100)

# a run in the background (`&`, nohup): what the tests start has to answer these all the same
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(hookwrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, Any, None]:
    """Four more than without this hook: tests of nodes wait for messages more than they compute."""
    outcome = yield
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ:
        outcome.force_result(outcome.get_result() + 4)


LONGEST = (
    "closure_symbolic", "identification", "node_ending", "identification_closed", "show",
    "node_managed", "identification_doubts", "controller_package", "node_faults", "fleet",
    "closure_redundant", "node_controller_order", "identification_mixed", "demo", "documentation",
    "symbolic", "node", "closure_dynamics", "libraries", "closure_modes", "node_machine_process",
    "codegen_loops", "identification_recordings", "node_robot", "identification_parts",
    "rounded_angles", "node_builder", "inverse_dynamics_facade", "symbolic_documents",
    "drive_gains", "node_machine", "properties", "floating_base", "identification_files",
)  # fmt: skip
"""The files that take longest begin first: otherwise one of them would run alone at the end. Those
of nodes mostly wait, so they stand among those that compute: workers must not all wait at once"""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):  # pytest-xdist would begin with many tests
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {f"test_{name}": k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write test/golden/ anew from what is found"
    )
    parser.addoption(
        "--fuzz-seconds",
        type=float,
        default=0.0,
        metavar="S",
        help="look for this long, from a new seed, in each test that looks at random inputs",
    )


@pytest.fixture(autouse=True)
def json_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command prints with --json in a test conforms to its schema."""
    try:
        import jsonschema
    except ImportError:  # test_json_output.py skips, and says so
        return
    original = Command.as_json

    def checked(self: Command, result: dict[str, Any]) -> str:
        text = original(self, result)
        jsonschema.validate(json.loads(text), self.schema())
        return text

    monkeypatch.setattr(Command, "as_json", checked)


@pytest.fixture(autouse=True)
def steps_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine whatever a command does may last long enough for its step to be printed."""
    monkeypatch.setattr("robot_dynamics.app.command.QUIET", 600.0)


@pytest.fixture
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on (once called), recording or compiling anything is a failure."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was built")

    def switch() -> None:
        monkeypatch.setattr(Function, "record", refuse)
        monkeypatch.setattr(Compiler, "shared_library", refuse)

    return switch


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`examples(check, 200, x=strategy, …)` calls check(x) with 200 inputs, always the same;
    with --fuzz-seconds S with other ones, until S seconds are over."""
    seconds = request.config.getoption("--fuzz-seconds")

    def look(check: Callable[..., None], count: int, **strategies: Any) -> None:
        settings = hypothesis.settings(
            max_examples=count,
            derandomize=not seconds,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        end = time.monotonic() + seconds
        while True:
            settings(hypothesis.given(**strategies)(check))()
            if time.monotonic() >= end:
                return

    return look
