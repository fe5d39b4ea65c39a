# SPDX-License-Identifier: Apache-2.0
"""The information next to the drawing of a robot: checks, tables, derivation, assembly modes."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from ...closure.geometry.free_platform import plane_of
from ...dynamics import InverseDynamics
from ...errors import RobotDynamicsError
from ...mechanism import Mechanism
from ...motion.swing import Motion
from ...scalar import roll_pitch_yaw
from ...symbolic import derive
from ...symbolic.document import Document
from ...symbolic.symbolic_parameters import dh_row
from ..check_report import joint_rows, rotor_rows, survey
from ..compare import compare, coordinates, within_reach
from ..report_page import page_table, prose
from .page import Facts

LETTERS = 3
"""Largest number of joints for which a page shows the derivation of the equations step by step"""
DERIVED, DERIVED_CLOSED = 6, 9
"""Largest number of joints, without and with loops, for which a page has equations: more take
minutes"""
LISTED = 21
"""Largest number of joints of a robot with loops for which a page has the equations as plain text,
a list of intermediates, if it has a platform or moves in a plane: others take minutes"""
LONGEST = 500_000
"""Largest number of characters of equations on a page"""
MOST_MODES = 12
LARGE = 12
"""Largest number of joints of a robot with loops for which formulations are compared: more take
minutes"""
SAMPLES = 21
"""Number of samples of the motion along which formulations and rotor models are compared"""
SHEETS = 60_000
"""Characters above which a section stays closed in print"""


def gathered(
    source: str,
    mechanism: Mechanism,
    found: dict[str, Any] | None = None,
    *,
    sensed: bool = False,
    derived: int = LISTED,
) -> Facts:
    """All information on a robot.

    Args:
        source: the description's file.
        mechanism: the robot that was loaded from it.
        found: what `survey` found in it; None: it is surveyed here.
        sensed: as in `page`.
        derived: largest number of joints for which the equations are derived; each joint adds time.
    """
    if found is None:
        _, found = survey(source)
    sections = {
        "checks": _checks(found),
        "tree": _tree(mechanism, found),
        "models": _models(mechanism),
        "derivation": _derivation(source, mechanism, most=derived),
    }
    modes = _modes(mechanism, found["assembly_modes"], sensed) if mechanism.loops else []
    return Facts({"modes": modes}, sections)


def _dynamics(mechanism: Mechanism, **options: Any) -> InverseDynamics:
    """Inverse dynamics without compilation, which is not worthwhile for a few states."""
    return InverseDynamics(mechanism, backend="python", **options)


def _modes(mechanism: Mechanism, modes: list[dict[str, Any]], sensed: bool) -> list[dict[str, Any]]:
    """The assembly modes that `survey` found, in the coordinates in which the page computes."""
    closed = _dynamics(mechanism, sensed=sensed).closed
    plain = _dynamics(mechanism).closed if sensed else closed
    assert closed is not None
    assert plain is not None
    found = []
    for mode in modes[:MOST_MODES]:
        q_r = np.array([mode["home"][name] for name in plain.coordinate_names])
        try:
            state = plain.closer.state(q_r)
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
    # in print all sections are open, except those that would fill many sheets
    mark = " open" if is_open else " data-long" if len(inner) > SHEETS else ""
    return (
        f'<section class="card wide" id="{name}"><details{mark}><summary>{escape(title)}</summary>'
        f"{inner}</details></section>"
    )


def _checks(found: dict[str, Any]) -> str:
    if found["warnings"]:
        said = "".join(f'<p class="warning">{prose(each)}</p>' for each in found["warnings"])
    else:
        said = '<p class="warning fine">No problems found in bodies, limits, units and loops.</p>'
    said += "".join(f'<p class="faint">{prose(each)}</p>' for each in found["notes"])
    return _section("Checks", said, "checks")


def _number(x: float) -> str:
    return f"{0.0 if abs(x) < 1e-12 else x:.5g}".replace("-", "−")


def _vector(values: Any) -> str:
    return "  ".join(_number(float(x)) for x in values)


def _tree(mechanism: Mechanism, found: dict[str, Any]) -> str:
    """The section of tables; `found` is the result of `survey`."""
    inner = "".join(
        f"<h3>{escape(title)}</h3>{page_table(rows)}"
        for title, rows in (
            *_dh_tables(mechanism),
            ("Tree", _frames(mechanism)),
            ("Joints", _joints(found["motion"])),
            ("Bodies", _bodies(found["links"])),
            ("Rotors", rotor_rows(found["rotors"])),
            ("Loops", _loops(mechanism)),
        )
        if len(rows) > 1
    )
    return _section("The robot in numbers", inner, "tree", is_open=False)


Rows = list[list[str]]


def _dh_tables(mechanism: Mechanism) -> list[tuple[str, Rows]]:
    """A Denavit–Hartenberg table, if every link has such parameters."""
    found = [dh_row(link.joint) for link in mechanism.links]
    rows = [["link", "on", "joint", "θ, rad", "d, m", "a, m", "α, rad"]]
    conventions = set()
    for link, row in zip(mechanism.links, found, strict=True):
        if row is None:
            return []
        convention, values = row
        if any(values[key] for key in ("a", "alpha")):
            conventions.add(convention)
        cells = {key: _number(values[key]) for key in ("theta", "d", "a", "alpha")}
        joint = link.joint
        if joint.moves:
            moved = "theta" if joint.turns else "d"
            fixed = values[moved]
            sign = "" if not fixed else f" {'−' if fixed < 0 else '+'} {_number(abs(fixed))}"
            cells[moved] = f"{joint.name}{sign}"
        rows.append([link.name, link.parent, joint.name, *cells.values()])
    if len(conventions) > 1:
        return []
    named = next(iter(conventions), "standard")
    return [(f"Denavit–Hartenberg, {named} convention", rows)]


def _frames(mechanism: Mechanism) -> Rows:
    rows = [["link", "on", "joint", "type", "at x y z, m", "roll pitch yaw, rad", "axis"]]
    for link in mechanism.links:
        joint = link.joint
        at = _vector(joint.origin.translation)
        turned = _vector(roll_pitch_yaw(np.asarray(joint.origin.rotation, dtype=float)))
        axis = _vector(joint.axis) if joint.moves else ""
        rows.append([link.name, link.parent, joint.name, joint.type, at, turned, axis])
    return rows


def _joints(motion: dict[str, Any]) -> Rows:
    rows = joint_rows(list(motion), motion)
    return [[re.sub(r"^-(?=\d)", "−", cell) for cell in row] for row in rows]


def _bodies(links: dict[str, Any]) -> Rows:
    head = ["link", "mass, kg", "centre of mass, m", "Ixx Iyy Izz, kg·m²", "Ixy Ixz Iyz, kg·m²"]
    rows = [[*head, "possible"]]
    for name, link in links.items():
        I = link["inertia"]
        if not link["mass"] and not any(I.values()):
            continue
        center, own = _vector(link["center_of_mass"]), _vector([I["ixx"], I["iyy"], I["izz"]])
        mixed = _vector([I["ixy"], I["ixz"], I["iyz"]])
        possible = "no: see the checks" if link["violated"] else "yes"
        rows.append([name, _number(link["mass"]), center, own, mixed, possible])
    return rows


def _loops(mechanism: Mechanism) -> Rows:
    rows = [["loop", "joint", "from", "to"]]
    for loop in mechanism.loops:
        rows.append([loop.name, loop.type, loop.predecessor.link, loop.successor.link])
    return rows


def _models(mechanism: Mechanism) -> str:
    """The section that compares all formulations and rotor models along one motion."""
    if len(mechanism.joint_names) > LARGE and mechanism.loops:
        return ""
    if not mechanism.joint_names:
        return ""
    dynamics = _dynamics(mechanism)
    mechanism, home = dynamics.mechanism, dynamics.home
    names = coordinates(mechanism)
    away = [0.6 if mechanism.joint(name).turns else 0.12 for name in names]
    time = np.linspace(0, 4, SAMPLES)
    states = Motion(tuple(home), tuple(away), (1.0,) * len(names), 4.0)(time)
    if mechanism.loops:
        try:
            _, states = within_reach(mechanism, *states, backend="python")
        except RobotDynamicsError:
            return ""
    compared = compare(mechanism, time, *states, backend="python")
    reference, names = compared.rotor_models["full"], mechanism.actuated_names
    size = float(np.abs(reference).max(initial=0.0)) or 1.0
    unit = "N·m" if all(mechanism.joint(x).turns for x in names) else "N·m or N"
    rows = [["formulation", "largest difference from newton_euler"]]
    for name, tau in compared.formulations.items():
        off = float(np.abs(tau - reference).max(initial=0.0))
        rows.append([name, f"{off:.1e} {unit}, {off / size:.1e} of the largest torque"])
    inner = f"<p class='faint'>Along a swing of every joint.</p>{page_table(rows)}"
    if any(not rotor.inertial.is_nothing for rotor in mechanism.rotors):
        rms = [["rotor model", *(f"{x}, {mechanism.joint(x).effort_unit}" for x in names)]]
        for model, tau in compared.rotor_models.items():
            rms.append([model, *(_number(x) for x in np.sqrt(np.mean(tau**2, axis=0)))])
        inner += f"<h3>Root mean square torque by rotor model</h3>{page_table(rms)}"
    return _section("Formulations and rotor models", inner, "models", is_open=False)


def _derivation(source: str, mechanism: Mechanism, *, most: int) -> str:
    """The section with the equations, as far as they fit on a page, and the command for all of
    them."""
    joints = len(mechanism.joint_names)
    if not joints:
        return ""
    command = f"robot_dynamics derive {shlex.quote(source)} --format html --out equations.html"
    whole = f"<p>The whole derivation: <code>{escape(command)}</code></p>"
    if joints <= min(most, DERIVED_CLOSED if mechanism.loops else DERIVED):
        inner = _typeset(mechanism, whole)
    elif (
        joints <= min(most, LISTED)
        and mechanism.loops
        and (mechanism.platform or plane_of(mechanism)[1])
    ):
        inner = _listed(mechanism, whole)
    else:
        inner = f"<p>The equations of {joints} joints are left out of this page.</p>{whole}"
    return _section("The equations, derived", inner, "derivation", is_open=False) if inner else ""


def _typeset(mechanism: Mechanism, whole: str) -> str:
    """The equations as MathML; "" if there are none."""
    joints = len(mechanism.joint_names)
    # many rotors add many symbols: the equations stay short without them
    bare = replace(mechanism, rotors=()) if len(mechanism.rotors) > LETTERS else mechanism
    try:
        found = derive(bare).document(steps=joints <= LETTERS)
    except RobotDynamicsError:
        return ""
    document, missing = _bounded(found)
    inner = f'<div class="derivation">{document.html(whole=False)}</div>'
    if bare is not mechanism:
        inner = f"<p class='faint'>Without the rotors.</p>{inner}{whole}"
    if missing:
        inner = f"<p>{missing} equations are too long for this page.</p>{whole}{inner}"
    return inner


def _listed(mechanism: Mechanism, whole: str) -> str:
    """The equations as plain text, a tenth as long as MathML; "" if there are none."""
    try:
        text = derive(mechanism).text()
    except RobotDynamicsError:
        return ""
    lines = text.count("\n") + 1
    if len(text) > LONGEST:
        return f"<p>The equations fill {lines} lines, too many for this page.</p>{whole}"
    return (
        f"<p class='faint'>{lines} lines, in the order in which they are computed.</p>{whole}"
        f'<pre class="derivation listed" tabindex="0">{escape(text)}</pre>'
    )


def _bounded(document: Document) -> tuple[Document, int]:
    """The document with as many equations as fit on a page, and the number that are left out."""
    room, missing, sections = LONGEST, 0, []
    for section in document.sections:
        kept = []
        for equation in section.equations:
            room -= len(document.names.mathml(equation.value)) if room > 0 else 0
            if room > 0:
                kept.append(equation)
            else:
                missing += 1
        sections.append(replace(section, equations=kept))
    return replace(document, sections=sections), missing
