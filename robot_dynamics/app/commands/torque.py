# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics torque`: joint torques at a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..command import Command, Result
from ..options import home, model, one_a_joint, vector
from ..tables import digits
from ..units import beyond, effort, position


def _state(name: str, unit: str, default: str) -> Callable[..., Any]:
    what = f"One number per joint ({unit}), in the order that `check` prints; default: {default}."
    return one_a_joint(name, what)


@click.command(
    "torque",
    cls=Command,
    examples=[
        "torque config/polar.yaml --q pi/2 0.7 --qd 1 -2 --qdd 0 5",
        "torque robot.urdf --terms gravity --json",
        "torque config/three_axis.yaml --q 0 -pi/4 pi/3 --qdd 1 1 1 --motor",
        "torque config/rrr.yaml --qd 0.5 0 0",
    ],
)
@model()
@_state("q", "rad or m, or as pi/2", "the description's home, or 0")
@_state("qd", "rad/s or m/s", "0")
@_state("qdd", "rad/s² or m/s²", "0")
@click.option(
    "--motor", is_flag=True, help="Print the torques on the motors' side of the gears as well."
)
@click.option(
    "--sensed",
    is_flag=True,
    help="Of a robot with loops: take --q, --qd and --qdd of its sensed joints, too.",
)
def command(
    file: str,
    formulation: str,
    rotors: str,
    terms: Sequence[str],
    q: Sequence[str],
    qd: Sequence[str],
    qdd: Sequence[str],
    motor: bool,
    sensed: bool,
) -> Result:
    """Joint torques at a state."""
    from ...description import load
    from ...dynamics import InverseDynamics

    mechanism = load(file)
    dynamics = InverseDynamics(mechanism, formulation, rotors=rotors, terms=terms, sensed=sensed)
    names, driven = dynamics.joint_names, dynamics.actuated_names
    state = (
        vector(q, "--q", names) if q else home(mechanism, names),
        vector(qd, "--qd", names) if qd else [0.0] * len(names),
        vector(qdd, "--qdd", names) if qdd else [0.0] * len(names),
    )
    tau = dict(zip(driven, dynamics(*state).tolist(), strict=True))
    notes = beyond(mechanism, names, *state[:2], tau)
    lengths = [position(mechanism.joint(name)) for name in names]
    efforts = [effort(mechanism.joint(name)) for name in driven]
    result: Result = {
        "robot": mechanism.name,
        "joints": list(names),
        **dict(zip(("q", "qd", "qdd"), state, strict=True)),
        "actuated": list(driven),
        "torques": list(tau.values()),
        "units": {"q": lengths, "torques": efforts},
        "formulation": formulation,
        "rotors": rotors,
        "terms": list(terms),
        "notes": notes,
    }
    lines = []
    if not q:
        places = (
            f"{name} {x:.6g} {unit}" for name, x, unit in zip(names, state[0], lengths, strict=True)
        )
        lines.append(f"at {', '.join(places)}")
    size = max(map(abs, tau.values()), default=0.0)
    lines += [
        f"{name}: {digits(value, size)} {unit}"
        for (name, value), unit in zip(tau.items(), efforts, strict=True)
    ]
    if motor:
        drive, gear = (side.tolist() for side in dynamics.motor_torques(*state))
        result["motors"] = {"names": list(dynamics.motor_names), "drive": drive, "gear": gear}
        size = max(map(abs, drive), default=0.0)
        lines += [
            f"motor {name}: drive {digits(field, size)} N·m, gear {digits(shaft, size)} N·m"
            for name, field, shaft in zip(dynamics.motor_names, drive, gear, strict=True)
        ]
    lines += [f"note: {each}" for each in notes]
    return {**result, "text": "\n".join(lines)}
