# SPDX-License-Identifier: Apache-2.0
"""The core's tests on other Pythons, with the oldest and the newest versions of what it needs:
`nox`, or `nox -s "core-3.12"`; with `nox --allow-parallel -j auto` one session per processor at a
time.

Pythons are found on PATH and among pyenv's. One that is not there is skipped, and said so. No ROS
and no oracle is installed: what needs one skips; the README's test command runs everything.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox


def oldest() -> list[str]:
    """Each dependency in the oldest version that setup.py allows."""
    _, _, after = (Path(__file__).parent / "setup.py").read_text().partition("install_requires=[")
    return re.findall(r'"(\S+)",', after.partition("],")[0].replace(">=", "=="))


VERSIONS = {  # Python: what is installed
    "3.10": [*oldest(), "pytest==7.*"],
    "3.11": ["numpy>=2", "pytest==8.*"],
    "3.12": ["numpy==1.26.*", "pytest>=9"],
    "3.13": ["numpy>=2", "pytest>=9"],
    "3.14": ["numpy>=2", "pytest>=9"],
}
CORE = (
    "test_codegen_cache.py",
    "test_codegen_golden.py",
    "test_codegen_kernels.py",
    "test_codegen_key.py",
    "test_codegen_recorder.py",
    "test_description.py",
    "test_inverse_dynamics_state.py",
    "test_pictures.py",
)
SLOW = "not one_robot and not option and not body and not process"

nox.options.sessions = ["core"]
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
for place in sorted(PYENV.glob("*/bin")) if PYENV.is_dir() else ():
    os.environ["PATH"] += os.pathsep + str(place)


@contextmanager
def alone() -> Iterator[None]:
    """No other session does the same meanwhile: each build writes to `robot_dynamics.egg-info`."""
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@nox.session(python=list(VERSIONS))
def core(session: nox.Session) -> None:
    """Descriptions, formulations, kernels and the façade."""
    others = VERSIONS[str(session.python)]
    with alone():
        session.install("-q", "-e", ".", *others, "pytest-timeout", "hypothesis")
    tests = [f"test/{name}" for name in CORE]
    session.run("pytest", "-q", "-k", SLOW, "-p", "no:cacheprovider", *tests, *session.posargs)


@nox.session(python=False)
def docs(session: nox.Session) -> None:
    """The documentation site, into docs/_build: `nox -s docs`."""
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "docs", "docs/_build")
