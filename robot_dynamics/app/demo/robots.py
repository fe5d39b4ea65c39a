# SPDX-License-Identifier: Apache-2.0
"""The demos' robots and motions, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import pi
from typing import Any

import numpy as np

from ...motion.swing import Motion

SHARE = "package://robot_dynamics"


@dataclass(frozen=True)
class Run:
    """One run of the motion under one controller."""

    label: str
    feed_forward: Mapping[str, Any] | None = None
    """Parameters of the node `feed_forward`; None: no such node"""
    lengths: Mapping[str, float] = field(default_factory=dict)
    """Factors on the DH lengths `a` in the node's model, by link, to simulate measurement errors"""
    description: str = ""
    """The node's model; empty: the demo's own"""


PD = Run("PD alone")

GRAVITY = Run("PD + gravity", {"terms": ["gravity"]})
"""What many robots without an inertial model provide"""

FRICTION = Run("PD + feed-forward", {"feedback": "commanded"})
"""Coulomb friction from the commanded rate, as the sign of a measured rate chatters at rest"""

DRAWS = 3
"""Number of robots with random errors, as a single one would not be representative"""


def wrong_lengths(draw: int) -> dict[str, float]:
    """Factors that make each link of the legs 1 % longer or shorter at random, by link.

    Args:
        draw: the random seed.
    """
    tosses = np.random.default_rng(draw).choice([0.99, 1.01], 6).tolist()
    links = [f"{kind}{leg}" for leg in (1, 2, 3) for kind in ("proximal", "distal")]
    return dict(zip(links, tosses, strict=True))


def _wrong_runs() -> tuple[Run, ...]:
    return tuple(
        Run(f"lengths 1 % wrong, sample {draw + 1}, {what}", how, wrong_lengths(draw))
        for draw in range(DRAWS)
        for what, how in (("actuated alone", {}), ("with sensors", {"sensed": True}))
    )


AHEAD: dict[str, Any] = {"feedback": "commanded", "lookahead": 0.003}
"""Torques of the desired state 3 ms ahead: at 500 Hz and with a delay of one period, they are held
from 2 to 4 ms after they were requested"""


@dataclass(frozen=True)
class Demo:
    """A robot, a motion, and the controllers to compare. The first run is the reference."""

    title: str
    description: str
    motion: Motion
    runs: tuple[Run, ...] = (
        PD,
        GRAVITY,
        Run("PD + feed-forward", {}),
        Run("PD + feed-forward, 3 ms ahead", AHEAD),
    )
    update_rate: float = 500.0
    """The rate of the controller, Hz"""
    delay: int = 1
    """Periods from a state to the use of its torques; one for a ros2_control robot"""
    bandwidth: float = 20.0
    """rad/s: Kp = bandwidth² D_jj, Kd = 2 bandwidth D_jj at the start, which damps each joint by
    itself critically"""
    timestep: float = 2e-4
    """The step of the integrator, s"""
    settle: float = 0.25
    """The time after the end of the motion that is also evaluated, s"""
    bounded: bool = True
    """Whether the demo also measures what limits the error"""
    identified: bool = False
    """Whether the robot differs from its description and is identified in the demo"""
    geared: bool = False
    """Whether the demo also measures the error of reflected rotors by gear ratio"""
    against: tuple[str, str] | None = None
    """Ends of the labels of paired runs: the errors of the second run are relative to the first
    run's"""
    notes: tuple[str, ...] = ()
    """Additional lines above the table"""


ROBOTS: dict[str, Demo] = {
    "polar": Demo(
        "Polar robot: one motion with and without feed-forward torques",
        f"{SHARE}/config/polar.yaml",
        Motion(start=(0.0, 0.7), swing=(1.5, 0.4), cycles=(1.0, 1.5), duration=4.0),
    ),
    "cartesian": Demo(
        "Cartesian robot: one motion with and without feed-forward torques",
        f"{SHARE}/config/cartesian.yaml",
        Motion(start=(0.0, 0.0, 0.0), swing=(0.5, 0.4, 0.6), cycles=(1.0, 1.0, 1.5), duration=4.0),
    ),
    "six_axis": Demo(
        "Six-axis arm: one motion with and without feed-forward torques",
        f"{SHARE}/urdf/six_axis.urdf",
        Motion(
            start=(0.0, -0.4, 1.2, 0.0, 0.6, 0.0),
            swing=(1.2, 0.9, -0.8, 1.0, -0.9, 1.5),
            cycles=(1.0, 1.0, 1.5, 1.0, 1.5, 1.0),
            duration=5.0,
        ),
    ),
    "identify": Demo(
        "Six-axis arm that differs from its description: tracking before and after identification",
        f"{SHARE}/urdf/six_axis.urdf",
        Motion(
            start=(0.3, -0.5, 1.4, -0.4, 0.8, 0.2),
            swing=(-1.4, 1.0, -1.1, 1.2, -1.3, 1.6),
            cycles=(1.0, 1.5, 1.0, 1.5, 1.0, 2.0),
            duration=5.0,
        ),
        bounded=False,
        identified=True,
    ),
    "three_axis": Demo(
        "Three-axis arm with geared rotors: comparison of rotor models",
        f"{SHARE}/config/three_axis.yaml",
        Motion(start=(0.0, 0.4, -0.9), swing=(0.6, 0.5, 0.7), cycles=(1.0, 1.0, 1.5), duration=4.0),
        runs=(
            PD,
            GRAVITY,
            Run("no rotors", {**AHEAD, "rotors": "none"}),
            Run("reflected rotors", {**AHEAD, "rotors": "reflected"}),
            Run("full rotors", {**AHEAD, "rotors": "full"}),
        ),
        bandwidth=12.0,
        timestep=5e-5,
        bounded=False,
        geared=True,
    ),
    "rrr": Demo(
        "3RRR closed by MuJoCo: models with and without the sensors on its passive joints",
        f"{SHARE}/config/rrr.yaml",
        Motion(
            start=(pi / 2, 7 * pi / 6, -pi / 6),
            swing=(-0.4, 0.4, -0.4),
            cycles=(1.5, 1.0, 1.0),
            duration=3.0,
        ),
        runs=(
            PD,
            GRAVITY,
            Run("actuated joints alone", {}),
            Run("with passive sensors", {"sensed": True}),
            *_wrong_runs(),
        ),
        bounded=False,
        against=("actuated alone", "with sensors"),
    ),
    "five_bar": Demo(
        "Five-bar with geared motors, closed by MuJoCo: with and without feed-forward torques",
        f"{SHARE}/config/five_bar.yaml",
        Motion(start=(2.2, 0.9416), swing=(-0.7, 0.4), cycles=(1.0, 1.5), duration=3.0),
        runs=(PD, GRAVITY, FRICTION, Run("PD + feed-forward, 3 ms ahead", AHEAD)),
        bounded=False,
    ),
    "gough_stewart": Demo(
        "Gough–Stewart platform closed by MuJoCo: with and without feed-forward forces",
        f"{SHARE}/config/gough_stewart.yaml",
        Motion(
            start=(0.609747,) * 6,
            swing=(0.08, -0.06, 0.1, 0.05, -0.07, 0.09),
            cycles=(1.0, 1.5, 1.0, 2.0, 1.0, 1.5),
            duration=3.0,
        ),
        runs=(PD, GRAVITY, FRICTION, Run("PD + feed-forward, 3 ms ahead", AHEAD)),
        bounded=False,
    ),
    "delta": Demo(
        "Delta closed by MuJoCo: with and without feed-forward torques",
        f"{SHARE}/config/delta.yaml",
        Motion(start=(0.4, 0.4, 0.4), swing=(0.5, 0.35, 0.6), cycles=(1.0, 1.5, 1.0), duration=3.0),
        bounded=False,
    ),
}
