# SPDX-License-Identifier: Apache-2.0
"""The version of the installed package."""

from __future__ import annotations

PACKAGE = "robot_dynamics"


def version() -> str:
    """As 0.1.0; `unknown` where it is imported from where it was not installed."""
    # importing it takes as long as importing Click
    from importlib import metadata

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"
