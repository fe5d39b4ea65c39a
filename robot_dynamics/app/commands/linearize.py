# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics linearize`: A and B of δẋ = A δx + B δu."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from ...description.files import write_bytes
from ...errors import InputError, listed
from ...outputs import ACTUATED, FILES, JOINTS, MATRIX, NUMBER, ROBOT, TEXT, Output, record
from ..command import Command
from ..shared_options import home, model, motions, number, path, several, vector
from ..tables import table

_STATE = NUMBER.listed("one for each joint, SI units")
OUTPUT = record(
    robot=ROBOT,
    joints=JOINTS,
    actuated=ACTUATED,
    states=TEXT.listed("x: the joints, then the rate of each").of("state_names"),
    state_units=TEXT.listed(),
    inputs=TEXT.listed("u: the motors' joints").of("input_names"),
    input_units=TEXT.listed(),
    files=FILES,
    A=MATRIX("of one state; those of a motion are in the file").maybe(),
    B=MATRIX.maybe(),
    q=_STATE.maybe(),
    qd=_STATE.maybe(),
    qdd=_STATE.maybe(),
    tau=NUMBER.listed("one per motor, N·m or N").maybe(),
    poles=MATRIX("real and imaginary parts, 1/s")
    .of(lambda found: np.stack([found.poles.real, found.poles.imag], axis=-1))
    .maybe(),
)
ARRAYS = ("A", "B", "q", "qd", "qdd", "tau")


@click.command(
    "linearize",
    cls=Command,
    examples=[
        "linearize config/polar.yaml --q pi/2 0.7",
        "linearize config/three_axis.yaml --qd 1 0 0 --out ab.npz",
        "linearize config/polar.yaml --motion plan.csv --out ab.npz",
    ],
)
@model()
@several("--q", "X...", "One number per joint (rad or m); default: the description's home, or 0.")
@several("--qd", "X...", "One number per joint (rad/s or m/s); default: 0.")
@several("--tau", "X...", "One number per motor (N·m or N); default: the torques at which qdd = 0.")
@path("--motion", "FILE", "Linearise about every state of this motion instead.")
@motions
@number(
    "--friction-smoothing",
    "RATE",
    "Velocity (rad/s or m/s) below which Coulomb friction fades to zero; 0: no smoothing.",
    default=0.0,
    show_default=False,
)
@path("--out", "FILE.npz", "Write A, B, poles, names and units to this file.")
def command(
    file: str,
    model: dict[str, Any],
    q: Sequence[str],
    qd: Sequence[str],
    tau: Sequence[str],
    motion: str | None,
    friction_smoothing: float,
    out: str | None,
    reading: dict[str, Any],
) -> Output:
    """Linearise the dynamics about a state or along a motion.

    With x = [q; qd] and u = tau, d(δx)/dt = A δx + B δu. Without --tau, the torques are those at
    which qdd = 0.
    """
    from ...description import load
    from ...dynamics import InverseDynamics
    from ..drives.sampled_motion import states

    mechanism = load(file)
    dynamics = InverseDynamics(mechanism, **model, friction_smoothing=friction_smoothing)
    names, motors = dynamics.joint_names, dynamics.actuated_names
    more: dict[str, Any] = {}
    if motion is None:
        if lost := [f"--{name}" for name, value in reading.items() if value not in (None, {})]:
            raise InputError(f"{listed(lost)}: expected only with --motion")
        found = dynamics.linearize(
            vector(q, "--q", names, home(mechanism, names)),
            vector(qd, "--qd", names) if qd else None,
            vector(tau, "--tau", motors) if tau else None,
        )
    else:
        if q or qd or tau:
            raise InputError("--motion: cannot be combined with --q, --qd or --tau")
        moving = states(motion, names, **reading)
        torques = dynamics(moving.q, moving.qd, moving.qdd)
        found = dynamics.linearize(moving.q, moving.qd, torques)
        more = {"time": moving.time}
    poles = found.poles
    if motion is not None and np.isnan(poles).all():
        raise InputError(f"{motion}: the robot cannot reach any of its states")
    if motion is not None and out is None:
        raise InputError("--motion: expected --out FILE.npz for the matrices of all states")
    lines = _lines(found, poles) if motion is None else []
    if out is not None:
        _write(out, found, poles, more)
        lines.append(f"wrote {out}")
    if motion is not None:
        slowest, fastest = np.nanmin(poles.real), np.nanmax(poles.real)
        lines.append(
            f"A {found.A.shape}, B {found.B.shape}; real parts of the poles from {slowest:.4g} to "
            f"{fastest:.4g} 1/s"
        )
    result = OUTPUT.read(
        found,
        robot=mechanism.name,
        joints=names,
        actuated=motors,
        files={} if out is None else {"arrays": out},
        **({} if motion is None else dict.fromkeys((*ARRAYS, "poles"))),
    )
    return Output(result, "\n".join(lines))


def _lines(found: Any, poles: Any) -> list[str]:
    lines = []
    for letter, names, units in (
        ("x", found.state_names, found.state_units),
        ("u", found.input_names, found.input_units),
    ):
        pairs = zip(names, units, strict=True)
        lines.append(f"{letter}: " + "; ".join(f"{name}, {unit}" for name, unit in pairs))
    for name, values, heads in (
        ("A", found.A, found.state_names),
        ("B", found.B, found.input_names),
    ):
        size = float(np.abs(values).max(initial=0.0))
        cells = [[_said(x, size) for x in row] for row in values]
        rows = [[head, *row] for head, row in zip(found.state_names, cells, strict=True)]
        lines += [f"{name}:", *table([["", *heads], *rows])]
    size = float(np.abs(poles).max(initial=0.0))
    shown = sorted(poles, key=lambda x: (-x.real, x.imag))
    lines.append("poles, 1/s: " + ", ".join(_pole(x, size) for x in shown))
    return lines


def _said(x: float, beside: float) -> str:
    return f"{0.0 if abs(x) <= 1e-12 * beside else x:.5g}"


def _pole(x: complex, beside: float) -> str:
    real, imaginary = (float(_said(part, beside)) for part in (x.real, x.imag))
    if not imaginary:
        return f"{real:.5g}"
    return f"{real:.5g} {'+' if imaginary > 0 else '-'} {abs(imaginary):.5g} i"


def _write(out: str, found: Any, poles: Any, more: dict[str, Any]) -> None:
    arrays = {name: getattr(found, name) for name in ARRAYS}
    names = {
        "states": np.array(found.state_names),
        "state_units": np.array(found.state_units),
        "inputs": np.array(found.input_names),
        "input_units": np.array(found.input_units),
    }
    with io.BytesIO() as file:
        np.savez(file, **{"poles": poles, **arrays, **names, **more})
        write_bytes(out, file.getvalue())
