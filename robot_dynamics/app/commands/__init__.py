# SPDX-License-Identifier: Apache-2.0
"""The commands; each file `NAME.py` has one `command`, and the kind of its result as `OUTPUT`,
unless the command says where else it is."""

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
"""The names, in the order of `robot_dynamics --help`"""
