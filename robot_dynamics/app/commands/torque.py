# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics torque`: joint torques at a state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from ...mechanism import Mechanism
from ...outputs import MODEL, NOTES, NULLABLE, NUMBER, TEXT, Output, record
from ..command import Command
from ..shared_options import flag, home, model, several, vector
from ..tables import digits

OUTPUT = record(
    **MODEL,
    q=NUMBER.listed("rad or m"),
    qd=NUMBER.listed("rad/s or m/s"),
    qdd=NUMBER.listed("rad/s² or m/s²"),
    torques=NULLABLE.listed("N·m or N"),
    units=record(q=TEXT.listed(), torques=TEXT.listed()),
    formulation=TEXT,
    rotors=TEXT,
    terms=TEXT.listed(),
    notes=NOTES,
    motors=record(
        names=TEXT.listed(),
        drive=NUMBER.listed("N·m, electromagnetic torque of the motor"),
        gear=NUMBER.listed("N·m, at the input of the gear"),
    ).maybe(),
)


def _state(name: str, unit: str, default: str) -> Callable[..., Any]:
    what = f"One number per joint ({unit}), in the order that `check` prints; default: {default}."
    return several(f"--{name}", "X...", what)


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
@flag("--motor", "Print the torques on the motor side of the gears as well.")
@flag("--sensed", "For a robot with loops: --q, --qd and --qdd include its sensed joints.")
def command(
    file: str,
    model: dict[str, Any],
    q: Sequence[str],
    qd: Sequence[str],
    qdd: Sequence[str],
    motor: bool,
    sensed: bool,
) -> Output:
    """Compute the joint torques at a state."""
    from ...description import load
    from ...dynamics import InverseDynamics

    mechanism = load(file)
    dynamics = InverseDynamics(mechanism, **model, sensed=sensed)
    names, driven = dynamics.joint_names, dynamics.actuated_names
    state = (
        vector(q, "--q", names, home(mechanism, names)),
        vector(qd, "--qd", names, 0.0),
        vector(qdd, "--qdd", names, 0.0),
    )
    tau = dict(zip(driven, dynamics(*state).tolist(), strict=True))
    notes = _beyond(mechanism, names, *state[:2], tau)
    lengths = [mechanism.joint(name).unit for name in names]
    efforts = [mechanism.joint(name).effort_unit for name in driven]
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
    motors = None
    if motor:
        drive, gear = dynamics.motor_torques(*state)
        motors = {"names": dynamics.motor_names, "drive": drive, "gear": gear}
        size = max(map(abs, drive), default=0.0)
        lines += [
            f"motor {name}: drive {digits(field, size)} N·m, gear {digits(shaft, size)} N·m"
            for name, field, shaft in zip(dynamics.motor_names, drive, gear, strict=True)
        ]
    lines += [f"note: {each}" for each in notes]
    result = OUTPUT.read(
        dynamics,
        **dict(zip(("q", "qd", "qdd"), state, strict=True)),
        torques=tau.values(),
        units={"q": lengths, "torques": efforts},
        **model,
        notes=notes,
        motors=motors,
    )
    return Output(result, "\n".join(lines))


def _beyond(
    mechanism: Mechanism,
    joints: Sequence[str],
    q: Iterable[float],
    qd: Iterable[float],
    torques: Mapping[str, float],
) -> list[str]:
    """The limits of joints that a state and its torques exceed, one line each."""
    found = []
    for name, place, rate in zip(joints, q, qd, strict=True):
        joint = mechanism.joint(name)
        ends, unit = joint.ends, joint.unit
        if ends.lower is not None and place < ends.lower:
            found.append(f"{name}: {place:.4g} {unit} is below its limit of {ends.lower:g} {unit}")
        if ends.upper is not None and place > ends.upper:
            found.append(f"{name}: {place:.4g} {unit} is above its limit of {ends.upper:g} {unit}")
        if ends.velocity is not None and abs(rate) > ends.velocity:
            found.append(
                f"{name}: {rate:.4g} {unit}/s is beyond its limit of {ends.velocity:g} {unit}/s"
            )
    for name, tau in torques.items():
        joint = mechanism.joint(name)
        most = joint.ends.effort
        if most is not None and abs(tau) > most:
            unit = joint.effort_unit
            found.append(f"{name}: {tau:.4g} {unit} is beyond its limit of {most:g} {unit}")
    return found
