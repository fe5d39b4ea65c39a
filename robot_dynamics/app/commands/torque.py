"""`robot_dynamics torque`: joint torques at a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..command import Command, Result, Several
from ..options import model, vector


def _state(name: str, unit: str) -> Callable[..., Any]:
    words = f"One number a joint ({unit}), in the order that `check` prints"
    return click.option(
        f"--{name}",
        cls=Several,
        required=name == "q",
        metavar="X...",
        help=words + ("." if name == "q" else "; zeros if left out."),
    )


@click.command(
    "torque",
    cls=Command,
    examples=[
        "torque config/polar.yaml --q 0.3 0.7 --qd 1 -2 --qdd 0 5",
        "torque robot.urdf --q 0 -1.2 0.4 --terms gravity --json",
        "torque config/three_axis.yaml --q 0 0 0 --qdd 1 1 1 --motor",
    ],
)
@model()
@_state("q", "rad or m")
@_state("qd", "rad/s or m/s")
@_state("qdd", "rad/s² or m/s²")
@click.option("--motor", is_flag=True, help="Motor-side torques as well.")
def command(
    file: str,
    formulation: str,
    rotors: str,
    terms: Sequence[str],
    q: Sequence[str],
    qd: Sequence[str],
    qdd: Sequence[str],
    motor: bool,
) -> Result:
    """Joint torques at a state."""
    from ...description import load
    from ...dynamics import InverseDynamics

    dynamics = InverseDynamics(load(file), formulation, rotors=rotors, terms=terms)
    n = len(dynamics.joint_names)
    state = (
        vector(q, "--q", n),
        vector(qd or ["0"] * n, "--qd", n),
        vector(qdd or ["0"] * n, "--qdd", n),
    )
    tau = dynamics(*state).tolist()
    result: Result = {
        "joints": list(dynamics.actuated_names),
        "torques": tau,
        "formulation": formulation,
        "rotors": rotors,
    }
    lines = [
        f"{name}: {value:.12g}" for name, value in zip(dynamics.actuated_names, tau, strict=True)
    ]
    if motor:
        drive, gear = (side.tolist() for side in dynamics.motor_torques(*state))
        result["motors"] = {"names": list(dynamics.motor_names), "drive": drive, "gear": gear}
        lines += [
            f"motor {name}: drive {field:.12g}, gear {shaft:.12g}"
            for name, field, shaft in zip(dynamics.motor_names, drive, gear, strict=True)
        ]
    return {**result, "text": "\n".join(lines)}
