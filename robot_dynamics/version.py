# SPDX-License-Identifier: Apache-2.0
"""The version of the installed package."""

from __future__ import annotations

PACKAGE = "robot_dynamics"


def version() -> str:
    """Such as 0.1.0; `unknown` if the package is imported without being installed."""
    # this import takes as long as that of Click
    from importlib import metadata

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"
