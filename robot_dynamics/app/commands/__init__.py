# SPDX-License-Identifier: Apache-2.0
"""The commands, one file each: `NAME.py` with its `command`."""

COMMANDS = (
    "torque",
    "derive",
    "check",
    "show",
    "motion",
    "linearize",
    "compare",
    "demo",
    "identify",
    "replay",
    "excite",
    "bench",
    "cache",
    "export",
    "urdf",
    "close",
    "schema",
    "completion",
)
"""In the order of `robot_dynamics --help`"""
