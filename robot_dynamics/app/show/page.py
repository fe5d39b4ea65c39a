# SPDX-License-Identifier: Apache-2.0
"""A self-contained, interactive HTML file of a robot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from ...dynamics import InverseDynamics
from ...formulations.equations import TERMS
from ...mechanism import Mechanism
from ...outputs import finite
from ...scalar import is_zero
from ...version import version
from ..report_page import THEME
from .javascript import FORMULATION, programs
from .scene import scene

SCRIPTS = ("robot.js", "view.js", "page.js")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="robot_dynamics {version}">
<title>{title}</title><style>{style}</style></head><body>
{body}
<script type="application/json" id="data">{data}</script>
<script>"use strict";const PROGRAMS={{{programs}}};</script>
<script>{script}</script>
</body></html>
"""


@dataclass(frozen=True)
class Facts:
    """The information on one robot."""

    data: dict[str, Any] = field(default_factory=dict)
    """For the page's script"""
    sections: dict[str, str] = field(default_factory=dict)
    """HTML by place in page.html"""


def page(
    mechanism: Mechanism,
    facts: Facts,
    *,
    rotors: str = "full",
    sensed: bool = False,
    meshes: Mapping[str, list[dict[str, Any]]] | None = None,
    motion: Mapping[str, Any] | None = None,
) -> str:
    """The text of the page.

    Args:
        mechanism: the robot, as from `rd.load`.
        facts: the information next to the robot.
        rotors: the rotor model.
        sensed: for a robot with loops, whether q consists of motors and sensed joints.
        meshes: by link, see `meshes.found`; None: links are drawn from the description.
        motion: {"t": (m,), "q", "qd", "qdd": (m, n), "name": text} to play back; None: a swing.

    Raises:
        RobotDynamicsError: as in `InverseDynamics`.
    """
    # the page itself computes, so nothing needs to be compiled here
    dynamics = InverseDynamics(mechanism, rotors=rotors, sensed=sensed, backend="python")
    mechanism = dynamics.mechanism
    load = _load(mechanism)
    texts = programs(dynamics, rotors, load)
    data = _data(dynamics, load) | {
        "rotors": rotors,
        "formulation": FORMULATION,
        "scene": scene(mechanism, meshes or {}),
        "facts": facts.data,
        "motion": motion,
    }
    body = asset("page.html").replace("{title}", escape(mechanism.name))
    for place, text in facts.sections.items():
        body = body.replace(f"<!-- {place} -->", text)
    return PAGE.format(
        version=escape(version()),
        title=escape(f"{mechanism.name}: robot_dynamics"),
        style=THEME + asset("page.css"),
        body=body,
        data=embedded(data),
        # names are our own, and texts consist only of numbers
        programs=",\n".join(f"{name}:{text}" for name, text in texts.items()),
        script="".join(map(asset, SCRIPTS)),
    )


def asset(name: str) -> str:
    """The text of a file in the same folder as this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """JSON that cannot end its HTML element or begin a comment, whatever names it contains."""
    text = json.dumps(finite(data), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _load(mechanism: Mechanism) -> str:
    """The link that carries the payload: the platform, or the end of the longest chain."""
    if mechanism.platform is not None:
        return mechanism.platform
    moving = {link.name for link in mechanism.moving}

    def joints(name: str) -> int:
        return sum(each in moving for each in mechanism.path(name))

    names = [link.name for link in mechanism.links]
    return max(reversed(names), key=joints) if names else mechanism.base


def _empty(mechanism: Mechanism) -> list[str]:
    """The terms that are zero for this robot."""
    laws = [law for *_, law in mechanism.friction_rows()]
    rubs = any(not is_zero(x) for law in laws for x in law.numbers.values())
    spins = any(not rotor.inertial.is_nothing for rotor in mechanism.rotors)
    return [*(["friction"] if not rubs else []), *(["rotors"] if not spins else [])]


def _data(dynamics: InverseDynamics, load: str) -> dict[str, Any]:
    mechanism, closed = dynamics.mechanism, dynamics.closed
    names = list(dynamics.joint_names)
    data: dict[str, Any] = {
        "robot": mechanism.name,
        "joint_names": names,
        "actuated_names": list(dynamics.actuated_names),
        "gravity": [float(x) for x in mechanism.gravity],
        "terms": list(TERMS),
        "empty": _empty(mechanism),
        "load": load,
        "load_place": mechanism.index()[load],
        "home": dynamics.home,
        "closed": None,
    }
    if closed is None:
        coordinates = tuple(names)
    else:
        coordinates = closed.coordinate_names
        closer, home = closed.closer, closed.home
        data["closed"] = {
            "names": list(coordinates),
            "home": home.q_r,
            "mode": float(home.assembly_mode),
            "scale": closer.scale,
            "wraps": closer.wraps[: len(names)],
            "condition_limit": closed.condition_limit,
            "parts": [[part.rows, part.passive] for part in closer.mobility.closure.parts],
            "actuated": closed.model.geometry.actuated,
            "sensed": closed.sensed,
        }
    data["tree"] = [coordinates.index(name) for name in mechanism.joint_names]
    data["motors"] = [coordinates.index(name) for name in dynamics.actuated_names]
    return data
