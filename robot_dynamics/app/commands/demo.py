# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics demo`: tracking of a motion by a simulated robot with and without
feed-forward."""

from __future__ import annotations

import click

from ...outputs import Output
from ..command import Command
from ..demo import CONTROLLER, DEMOS, run
from ..shared_options import path


@click.command(
    "demo",
    cls=Command,
    output="demo.controlled.OUTPUT",
    examples=["demo polar", "demo rrr --output pictures/", "demo controller"],
)
@click.argument("robot", type=click.Choice((*DEMOS, CONTROLLER)), metavar="ROBOT")
@path("--output", "DIR", "Folder for the picture and the page (default: the current one).")
def command(robot: str, output: str | None) -> Output:
    """Track a motion in simulation, with and without feed-forward.

    ROBOT is polar, cartesian, six_axis, three_axis, rrr, five_bar, gough_stewart or delta.
    `identify` identifies a six-axis arm that differs from its description. `controller` runs the
    six-axis arm under a real controller manager (ros2_control), with the node and with the
    generated controller.
    """
    return run(robot, output=output)
