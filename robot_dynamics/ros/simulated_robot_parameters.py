# SPDX-License-Identifier: Apache-2.0
"""The parameters of `simulated_robot`, which are set at the start."""

from __future__ import annotations

from dataclasses import dataclass

from .feed_forward.parameter_table import flag, names, number, numbers, text, whole


@dataclass(frozen=True)
class RobotSettings:
    """The values of the parameters, checked: each field is a row of the table."""

    description: str = text(
        "", "path or package:// URL of the robot; empty: taken from `robot_description`"
    )
    joints: tuple[str, ...] = names(
        (), "joints of `~/commands`, gains and efforts, in this order; not set: all actuated joints"
    )
    start: tuple[float, ...] = numbers(
        (),
        "initial positions of all joints, passive ones included; not set: `home`, else zero",
        unit="rad or m",
    )
    update_rate: float = number(
        500.0, "rate of the PD loop and of `joint_states`", unit="Hz", minimum=1.0, maximum=10000.0
    )
    timestep: float = number(
        0.0002, "largest step of the integrator", unit="s", minimum=1e-06, maximum=0.1
    )
    p_gains: tuple[float, ...] = numbers(
        (0.0,),
        "position gains of the PD loop, one for each joint or one for all",
        unit="N·m/rad or N/m",
        minimum=0.0,
    )
    d_gains: tuple[float, ...] = numbers(
        (0.0,),
        "velocity gains of the PD loop, one for each joint or one for all",
        unit="N·m·s/rad or N·s/m",
        minimum=0.0,
    )
    bandwidth: float = number(
        0.0,
        "bandwidth of the PD loop, which sets gains that damp each joint critically at the start; "
        "0: use p_gains and d_gains",
        unit="rad/s",
        minimum=0.0,
        maximum=10000.0,
    )
    delay: int = whole(
        0,
        "delay between a state and the first use of the torques computed from it",
        unit="periods",
        minimum=0,
        maximum=1000,
    )
    brakes: bool = flag(True, "hold the robot until a trajectory leaves its first point")
    command_wait: float = number(
        0.0,
        "lock step: how long to wait for the torques of a state, in wall time; 0: real time",
        unit="s",
        minimum=0.0,
        maximum=60.0,
    )
    real_time_factor: float = number(
        1.0, "simulated time / wall time; 0: as fast as possible", minimum=0.0, maximum=1000.0
    )
    publish_clock: bool = flag(False, "publish /clock (only one robot may)")
    record: str = text("", "CSV file to write, with one line for each period; empty: none")
