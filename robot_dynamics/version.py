# SPDX-License-Identifier: Apache-2.0
"""The version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _installed

PACKAGE = "robot_dynamics"


def version() -> str:
    """As 0.1.0; `unknown` where it is imported from where it was not installed."""
    try:
        return _installed(PACKAGE)
    except PackageNotFoundError:
        return "unknown"
