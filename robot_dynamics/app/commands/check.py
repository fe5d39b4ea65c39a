# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics check`: checks of a description and of its kernels."""

from __future__ import annotations

import click

from ...outputs import Output
from ..command import Command, Progress
from ..shared_options import description, flag


@click.command(
    "check",
    cls=Command,
    output="check_report.OUTPUT",
    examples=["check robot.urdf", "check config/rrr.yaml --strict --json"],
)
@description
@flag("--strict", "Treat warnings as errors.")
def command(file: str, strict: bool) -> Output:
    """Check a description and its kernels.

    Print the robot as it was read, anything suspicious in it, and how closely the kernels of all
    formulations agree on its torques, joint by joint.
    """
    from ..check_report import report

    return report(file, strict=strict, progress=Progress())
