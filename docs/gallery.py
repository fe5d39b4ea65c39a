# SPDX-License-Identifier: Apache-2.0
"""Writes a gallery of robots: a page with a picture, numbers and a link for each.

    python docs/gallery.py --out gallery [ROBOT...]

Without names: every robot of config/ and urdf/, and twenty that are known by name (extra `robots`).
The documentation site has that of the shipped ones, or with `-t known` all of it.
"""

from __future__ import annotations

import argparse
import timeit
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import robot_dynamics as rd
from robot_dynamics.app.check_report import survey
from robot_dynamics.app.report_page import THEME
from robot_dynamics.app.show import meshes
from robot_dynamics.app.show.facts import DERIVED_CLOSED, gathered
from robot_dynamics.app.show.page import asset, embedded, page
from robot_dynamics.app.show.scene import scene
from robot_dynamics.app.tables import digits
from robot_dynamics.mechanism import Mechanism, Pose

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = (
    *(
        f"config/{name}.yaml"
        for name in (
            "polar", "cartesian", "three_axis", "five_bar", "rrr", "delta", "gough_stewart",
        )
    ),
    "urdf/six_axis.urdf",
)  # fmt: skip
SHIPPED_FILES = tuple(ROOT / each for each in SHIPPED)
KNOWN = (
    "panda", "ur3", "ur5", "ur10", "kinova", "xarm7", "z1", "so100", "baxter", "tiago",
    "tiago_dual", "talos", "romeo", "icub", "a1", "anymal", "solo12", "hyq", "allegro_right_hand",
    "double_pendulum",
)  # fmt: skip

STYLE = """
main { max-width: 1480px; margin: 0 auto; padding: 10px 24px 60px; display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); }
a.robot { display: block; color: inherit; text-decoration: none; background: var(--card);
  border: 1px solid var(--line); border-radius: 14px; overflow: hidden; }
a.robot:hover { border-color: var(--b); }
a.robot canvas { width: 100%; height: 220px; display: block; background:
  radial-gradient(120% 90% at 50% 20%, var(--paper), var(--wash2)); }
a.robot div { padding: 10px 14px 14px; } a.robot b { font-size: 1.1rem; }
a.robot small { display: block; color: var(--faint); overflow-wrap: anywhere; }
"""
SCRIPT = """
const robots = JSON.parse(document.getElementById("data").textContent);
const SHOWN = ["links", "meshes", "joints", "motors", "shadow"];
const canvas = document.createElement("canvas"); canvas.width = 560; canvas.height = 440;
const painter = new Painter(canvas);
function draw() {
  robots.forEach((robot, k) => {
    const view = new View(canvas, null, robot.scene, robot.gravity, painter);
    view.poses = robot.poses;
    view.shown = Object.fromEntries(SHOWN.map(name => [name, true]));
    view.frame(); view.draw();
    const g = document.querySelectorAll("a.robot canvas")[k].getContext("2d");
    g.clearRect(0, 0, 560, 440); g.drawImage(canvas, 0, 0);
  });
}
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><base target="_top">
<title>Robots</title><style>{style}</style></head><body>
<header><h1>Robots</h1><p class="faint">each leads to a page that computes</p></header>
<main>{cards}</main>
<script type="application/json" id="data">{data}</script><script>"use strict";{script}</script>
</body></html>
"""


def card(source: str, out: Path) -> tuple[str, dict[str, Any]]:
    """(HTML, what its picture needs) of one robot, whose own page is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism, found = survey(source)
        dynamics = rd.InverseDynamics(mechanism)
        names = dynamics.joint_names
        q = np.array([float(mechanism.home.get(name, 0.0)) for name in names])
        if dynamics.closed is not None:
            q = dynamics.closed.home.q_a
        still = np.zeros(len(names))
        tau = dynamics(q, still, still)
        runs, seconds = timeit.Timer(lambda: dynamics(q, still, still)).autorange()
        drawn, _ = meshes.found(source)
        own = out / f"{Path(source).stem}.html"
        facts = gathered(source, mechanism, found, derived=DERIVED_CLOSED)
        own.write_text(page(mechanism, facts, meshes=drawn), encoding="utf-8")
    most = int(np.argmax(np.abs(tau))) if len(tau) else 0
    held = "nothing to hold at home"
    if len(tau) and abs(tau[most]) > 1e-9:
        joint = mechanism.joint(dynamics.actuated_names[most])
        held = (
            f"home is held by up to {digits(abs(float(tau[most])), 1.0)} {joint.effort_unit} "
            f"({joint.name})"
        )
    complaints = len(found["warnings"])
    said = f"{complaints} warning{'s' if complaints > 1 else ''}, on its page"
    lines = [
        f"{_degrees(found['degrees_of_freedom'])}, {found['mass']:.4g} kg",
        held,
        f"{1e6 * seconds / runs:.3g} µs per call on the machine that made this page",
        said if complaints else "checked without a warning",
    ]
    inner = "".join(f"<small>{escape(line)}</small>" for line in lines)
    html = (
        f'<a class="robot" href="{escape(own.name)}"><canvas width="560" height="440"></canvas>'
        f"<div><b>{escape(mechanism.name)}</b>{inner}</div></a>"
    )
    return html, {
        "scene": scene(mechanism, drawn),
        "poses": _poses(mechanism, dynamics.tree_state(q, still, still)[0]),
        "gravity": mechanism.gravity,
    }


def _poses(mechanism: Mechanism, q: np.ndarray) -> list[float]:
    """The links' frames at the tree's q, 12 numbers each: a kernel for each is not worth it."""
    S, s = mechanism.coordinates()
    position = dict(zip(mechanism.tree_names, (S @ q + s).tolist(), strict=True))
    poses = {mechanism.base: Pose()}
    flat: list[float] = []
    for link in mechanism.links:
        here = poses[link.parent] @ link.joint.pose(position.get(link.joint.name, 0.0))
        poses[link.name] = here
        flat += [*map(float, here.rotation.ravel()), *map(float, here.translation)]
    return flat


def _degrees(count: int) -> str:
    return f"{count} degree{'' if count == 1 else 's'} of freedom"


def write(out: Path, robots: Sequence[str]) -> Path:
    """The gallery's page, whose path is returned, and a page a robot; what can't be had is said."""
    out.mkdir(parents=True, exist_ok=True)
    cards, data = [], []
    for source in robots:
        try:
            html, needed = card(source, out)
        except rd.RobotDynamicsError as error:
            print(f"{source}: left out: {error}")
            continue
        print(f"{source}: done", flush=True)
        cards.append(html)
        data.append(needed)
    style = THEME + asset("page.css") + STYLE
    script = asset("robot.js").replace('"use strict";', "") + asset("view.js") + SCRIPT
    text = PAGE.format(style=style, cards="\n".join(cards), data=embedded(data), script=script)
    (out / "index.html").write_text(text, encoding="utf-8")
    return out / "index.html"


def main() -> None:
    """Write them."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("robots", nargs="*", metavar="ROBOT", help="files or names")
    options.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = options.parse_args()
    robots = given.robots or (*map(str, SHIPPED_FILES), *KNOWN)
    print(f"wrote {write(given.out, robots)}")


if __name__ == "__main__":
    main()
