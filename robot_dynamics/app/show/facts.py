# SPDX-License-Identifier: Apache-2.0
"""What is said of a robot beside its picture: checks, tables, derivation, assembly modes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from ...closure import assembly_modes
from ...dynamics import InverseDynamics
from ...errors import RobotDynamicsError
from ...formulations import FORMULATIONS
from ...mechanism import Mechanism
from ...mechanism.shown import html_table
from ...mechanism.transform import ROTOR_MODELS
from ...motion.swing import Motion
from ...scalar import Floats, roll_pitch_yaw
from ..report import survey
from ..units import effort

LETTERS = 3
"""Joints up to which a page shows the equations"""
MOST_MODES = 12
LARGE = 12
"""Joints of a robot with loops from which on no formulations are compared: that takes minutes"""
SAMPLES = 21
"""Of the motion that formulations and rotor models are compared along"""


@dataclass(frozen=True)
class Facts:
    """Of one robot."""

    data: dict[str, Any] = field(default_factory=dict)
    """For the page's script"""
    sections: dict[str, str] = field(default_factory=dict)
    """HTML by place in page.html"""


def gathered(source: str, mechanism: Mechanism, *, sensed: bool = False) -> Facts:
    """All of them, of a description and the mechanism that was loaded from it."""
    _, found = survey(source)
    sections = {
        "checks": _checks(found),
        "tree": _tree(mechanism),
        "models": _models(mechanism),
        "derivation": _derivation(mechanism),
    }
    modes = _modes(mechanism, sensed) if mechanism.loops else []
    return Facts({"modes": modes}, sections)


def _dynamics(mechanism: Mechanism, **options: Any) -> InverseDynamics:
    """A few states are not worth compiling."""
    return InverseDynamics(mechanism, backend="python", **options)


def _modes(mechanism: Mechanism, sensed: bool) -> list[dict[str, Any]]:
    """Each assembly mode in the coordinates that the page computes with."""
    closed = _dynamics(mechanism, sensed=sensed).closed
    assert closed is not None
    plain = closed if not sensed else _dynamics(mechanism).closed
    assert plain is not None
    found = []
    for mode in assembly_modes(mechanism)[:MOST_MODES]:
        q_r = np.array([mode.home[name] for name in plain.coordinate_names])
        try:
            state = plain.solver.state(q_r)
            if sensed:
                state = closed._own(state)
        except RobotDynamicsError:
            continue
        found.append(
            {
                "q_r": state.q_r,
                "mode": float(state.assembly_mode),
                "condition": float(state.condition),
            }
        )
    return found


def _section(title: str, inner: str, name: str, *, is_open: bool = True) -> str:
    mark = " open" if is_open else ""
    return (
        f'<section class="card wide" id="{name}"><details{mark}><summary>{escape(title)}</summary>'
        f"{inner}</details></section>"
    )


def _table(rows: Iterable[Sequence[str]]) -> str:
    return f'<div class="scroll">{html_table(rows)}</div>'


def _checks(found: dict[str, Any]) -> str:
    if found["warnings"]:
        said = "".join(f'<p class="warning">{escape(each)}</p>' for each in found["warnings"])
    else:
        said = '<p class="warning fine">No complaint: bodies, limits, units and loops.</p>'
    said += "".join(f'<p class="faint">{escape(each)}</p>' for each in found["notes"])
    return _section("Checks", said, "checks")


def _number(x: float) -> str:
    return f"{0.0 if abs(x) < 1e-12 else x:.5g}".replace("-", "−")


def _vector(values: Any) -> str:
    return "  ".join(_number(float(x)) for x in values)


def _tree(mechanism: Mechanism) -> str:
    rows = [["link", "on", "joint", "type", "at x y z, m", "roll pitch yaw, rad", "axis"]]
    for link in mechanism.links:
        joint = link.joint
        at = _vector(joint.origin.translation)
        turned = _vector(roll_pitch_yaw(np.asarray(joint.origin.rotation, dtype=float)))
        axis = _vector(joint.axis) if joint.moves else ""
        rows.append([link.name, link.parent, joint.name, joint.type, at, turned, axis])
    bodies = [["link", "mass, kg", "centre of mass, m", "Ixx Iyy Izz, kg·m²", "Ixy Ixz Iyz, kg·m²"]]
    for link in mechanism.links:
        solid, I = link.inertial, link.inertial.inertia
        if solid.is_nothing:
            continue
        mixed = (I[0, 1], I[0, 2], I[1, 2])
        mass = _number(float(solid.mass))
        center = _vector(solid.center_of_mass)
        bodies.append([link.name, mass, center, _vector(np.diag(I)), _vector(mixed)])
    rotors = [["rotor", "on", "turns with", "mass, kg", "about its axis, kg·m²"]]
    for rotor in mechanism.rotors:
        ratios = ", ".join(f"{_number(float(ratio))} × {name}" for name, ratio in rotor.ratios)
        solid = rotor.inertial
        rotors.append(
            [
                rotor.name,
                rotor.mount,
                ratios or "nothing",
                _number(float(solid.mass)),
                _number(float(solid.inertia[2, 2])),
            ]
        )
    inner = f"<h3>Tree</h3>{_table(rows)}<h3>Bodies</h3>{_table(bodies)}"
    if len(rotors) > 1:
        inner += f"<h3>Rotors and gears</h3>{_table(rotors)}"
    if mechanism.loops:
        loops = [["loop", "joint", "from", "to"]]
        for loop in mechanism.loops:
            loops.append([loop.name, loop.type, loop.predecessor.link, loop.successor.link])
        inner += f"<h3>Loops</h3>{_table(loops)}"
    return _section("The robot in numbers", inner, "tree", is_open=False)


def _models(mechanism: Mechanism) -> str:
    """Every formulation and every rotor model along one motion."""
    if len(mechanism.joint_names) > LARGE and mechanism.loops:
        return ""
    states = _swing(mechanism)
    if states is None:
        return ""
    first = _dynamics(mechanism)
    reference = first(*states)
    names = first.actuated_names
    size = float(np.nanmax(np.abs(reference), initial=0.0)) or 1.0
    rows = [["formulation", "largest difference from newton_euler"]]
    for name in FORMULATIONS:
        tau = (
            reference if name == "newton_euler" else _dynamics(mechanism, formulation=name)(*states)
        )
        off = float(np.nanmax(np.abs(tau - reference), initial=0.0))
        unit = "N·m" if all(mechanism.joint(x).turns for x in names) else "N·m or N"
        rows.append([name, f"{off:.1e} {unit}, {off / size:.1e} of the largest torque"])
    inner = f"<p class='faint'>Along a swing of every joint.</p>{_table(rows)}"
    if any(not rotor.inertial.is_nothing for rotor in mechanism.rotors):
        head = ["rotor model", *(f"{x}, {effort(mechanism.joint(x))}" for x in names)]
        table = [head]
        for model in ROTOR_MODELS:
            tau = _dynamics(mechanism, rotors=model)(*states)
            table.append([model, *(_number(x) for x in np.sqrt(np.nanmean(tau**2, axis=0)))])
        inner += f"<h3>Root mean square torque by rotor model</h3>{_table(table)}"
    return _section("Formulations and rotor models", inner, "models", is_open=False)


def _swing(mechanism: Mechanism) -> tuple[Floats, Floats, Floats] | None:
    """q, q̇, q̈ (m, n) about home; smaller where loops don't let it; None: not at all."""
    names = mechanism.driving_names if mechanism.loops else mechanism.joint_names
    if not names:
        return None
    dynamics = _dynamics(mechanism)
    if dynamics.closed is None:
        start = np.array([float(mechanism.home.get(name, 0.0)) for name in names])
    else:
        start = dynamics.closed.home.q_a
    away = np.array([1.0 if mechanism.joint(name).turns else 0.2 for name in names])
    for share in (0.6, 0.2, 0.06, 0.02):
        swing = Motion(tuple(start), tuple(share * away), (1.0,) * len(names), 4.0)
        states = swing(np.linspace(0, 4, SAMPLES))
        try:
            for q in states[0]:
                dynamics.mass_matrix(q)
        except RobotDynamicsError:
            continue
        return states
    return None


def _derivation(mechanism: Mechanism) -> str:
    """The equations of a small robot, as MathML."""
    if mechanism.loops or not 0 < len(mechanism.joint_names) <= LETTERS:
        return ""
    from ...symbolic import derive

    # friction has letters of its own, and gears ratios: what the equations are about stays short
    bare = replace(mechanism, rotors=()) if len(mechanism.rotors) > LETTERS else mechanism
    try:
        text = derive(bare).document(steps=True).html(whole=False)
    except RobotDynamicsError:
        return ""
    return _section(
        "The equations, derived", f'<div class="derivation">{text}</div>', "derivation",
        is_open=False,
    )  # fmt: skip
