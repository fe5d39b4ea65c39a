# SPDX-License-Identifier: Apache-2.0
"""The page of `show` computes what Python computes, in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import chromium, complaints, opened
from robots import CONFIG, example_robots

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.show.facts import Facts
from robot_dynamics.app.show.page import page
from robot_dynamics.codegen import js_code, python_code
from robot_dynamics.codegen.recorder import record
from robot_dynamics.scalar import atan, exp, sign, sqrt, tanh

ROOT = CONFIG.parent
OPEN = [
    CONFIG / "polar.yaml",
    CONFIG / "cartesian.yaml",
    CONFIG / "three_axis.yaml",
    ROOT / "urdf/six_axis.urdf",
    ROOT / "urdf/six_axis.urdf.xacro",
    ROOT / "urdf/polar.urdf.xacro",
]
CLOSED = [CONFIG / f"{name}.yaml" for name in ("five_bar", "rrr", "delta", "gough_stewart")]
KNOWN = ("panda", "ur10_robot", "kinova", "talos_reduced", "double_pendulum")
EXAMPLES = [file for file in example_robots() if file.stem in KNOWN]
EXACT = 1e-12
"""Of the largest torque: both run the same operations, their sines may differ by one rounding"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


def loaded(file: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(file)


def shown(driver, tmp_path: Path, mechanism, **options):
    path = tmp_path / "page.html"
    path.write_text(page(mechanism, Facts(), **options), encoding="utf-8")
    opened(driver, path)
    assert complaints(driver) == []
    return driver


def torques(driver, q, qd, qdd):
    """Of the page: an array, or the message of its exception."""
    script = "try { return robot.torques(...arguments) } catch (e) { return e.message }"
    found = driver.execute_script(script, *(np.asarray(x).tolist() for x in (q, qd, qdd)))
    return found if isinstance(found, str) else np.array(found)


def agree(found, expected) -> bool:
    if isinstance(found, str):
        return False
    size = max(float(np.abs(expected).max(initial=0.0)), 1e-9)
    return bool(np.abs(found - expected).max(initial=0.0) <= EXACT * size)


@pytest.mark.parametrize("file", [*OPEN, *EXAMPLES], ids=lambda file: file.name)
def test_the_torques_of_open_chains_are_those_of_python(browser, tmp_path, file):
    mechanism = loaded(file)
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    shown(browser, tmp_path, mechanism)
    names = browser.execute_script("return [robot.joint_names, robot.actuated_names]")
    assert names == [list(dynamics.joint_names), list(dynamics.actuated_names)]
    rng, n = np.random.default_rng(0), len(dynamics.joint_names)
    for _ in range(20):
        q, qd, qdd = rng.uniform(-3, 3, (3, n))
        assert agree(torques(browser, q, qd, qdd), dynamics(q, qd, qdd))


@pytest.mark.parametrize("sensed", [False, True], ids=["motors", "sensed"])
@pytest.mark.parametrize("file", CLOSED, ids=lambda file: file.name)
def test_the_torques_of_closed_chains_are_those_of_python(browser, tmp_path, file, sensed):
    mechanism = loaded(file)
    dynamics = rd.InverseDynamics(mechanism, sensed=sensed, backend="python")
    motors = rd.InverseDynamics(mechanism, backend="python").closed
    shown(browser, tmp_path, mechanism, sensed=sensed)
    assert motors is not None
    a, k = len(motors.driving_names), len(dynamics.joint_names)
    rng, compared = np.random.default_rng(1), 0
    for step in range(16):
        # far from the last state, and back
        away = rng.uniform(-0.25, 0.25, a) * (1 if step % 3 else 0.1)
        q = motors.home.q_a + away * motors.solver.scale[:a]
        qd, qdd = rng.uniform(-2, 2, (2, k))
        try:
            if sensed:
                # readings that agree to a thousandth
                q = motors.configuration(q)[:k] + rng.uniform(-1e-3, 1e-3, k)
            expected = dynamics(q, qd, qdd)
        except rd.ClosureError:
            continue
        compared += 1
        assert agree(torques(browser, q, qd, qdd), expected)
    assert compared >= 8


@pytest.mark.parametrize("file", [CONFIG / "three_axis.yaml", CONFIG / "delta.yaml"], ids=str)
def test_the_other_quantities_gravity_and_a_payload_are_those_of_python(browser, tmp_path, file):
    mechanism = loaded(file)
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    shown(browser, tmp_path, mechanism)
    n = len(dynamics.joint_names)
    q = np.full(n, 0.2) if dynamics.closed is None else dynamics.closed.home.q_a + 0.02
    qd, qdd = np.linspace(-1, 1.3, n), np.linspace(2, -1, n)
    load = browser.execute_script("return robot.data.load")
    dynamics.gravity_vector = [1.0, -2.0, -5.0]
    dynamics.set_payload(load, rd.Inertial(0.7))
    browser.execute_script("robot.world = [1, -2, -5, 0.7]")
    assert agree(torques(browser, q, qd, qdd), dynamics(q, qd, qdd))
    found = browser.execute_script(
        "const s = robot.at(...arguments, robot.home); return {D: s.massMatrix(), "
        "C: s.coriolisMatrix(), g: s.gravity(), K: s.kinetic(), U: s.potential(), "
        "shares: robot.data.terms.map(t => s.share(t)), power: s.power()}",
        *(x.tolist() for x in (q, qd, qdd)),
    )
    expected = {
        "D": dynamics.mass_matrix(q),
        "C": dynamics.coriolis_matrix(q, qd),
        "g": dynamics.gravity(q),
        "K": dynamics.kinetic_energy(q, qd),
        "U": dynamics.potential_energy(q),
        "power": dynamics(q, qd, qdd) @ qd,
    }
    for name, value in expected.items():
        assert np.allclose(found[name], value, rtol=1e-11, atol=1e-11 * np.abs(value).max()), name
    assert np.allclose(np.sum(found["shares"], axis=0), dynamics(q, qd, qdd), rtol=1e-11, atol=1e-9)


def test_a_state_that_the_robot_cannot_have_is_an_exception_and_leaves_no_trace(browser, tmp_path):
    mechanism = loaded(CONFIG / "five_bar.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    assert dynamics.closed is not None
    shown(browser, tmp_path, mechanism)
    home = dynamics.closed.home.q_a
    zero = np.zeros(2)
    for bad in (home + np.array([2.5, -2.5]), [np.inf, 0.0], [1e6, 0.0]):
        with suppress(rd.ClosureError):
            assert not np.isfinite(dynamics(bad, zero, zero)).any()
        found = browser.execute_script(
            "try { return robot.torques([arguments[0] ?? Infinity, arguments[1]], [0, 0], [0, 0]) }"
            " catch (e) { return e.message }",
            *(float(x) if np.isfinite(x) else None for x in bad),
        )
        assert isinstance(found, str)
        assert found
    for wrong in ("[[0], [0, 0], [0, 0]]", "[null, [0, 0], [0, 0]]", "[[0, NaN], [0, 0], [0, 0]]"):
        script = f"try {{ return robot.torques(...{wrong}) }} catch (e) {{ return e.message }}"
        assert "expected 2 finite numbers" in browser.execute_script(script)
    assert agree(torques(browser, home, zero, zero), dynamics(home, zero, zero))


def test_a_slider_moves_the_robot_and_its_torques(browser, tmp_path):
    mechanism = loaded(CONFIG / "three_axis.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    shown(browser, tmp_path, mechanism)
    picture = "return document.getElementById('view').toDataURL()"
    before = browser.execute_script(picture)
    browser.execute_async_script(
        "const [done] = arguments, s = document.querySelectorAll('#sliders input[type=range]')[1];"
        "s.value = 0.75; s.dispatchEvent(new Event('input'));"
        "requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    numbers = browser.execute_script(
        "return [...document.querySelectorAll('.bar-row .number')].map(e => e.textContent)"
    )
    value = float(browser.execute_script(
        "return document.querySelectorAll('#sliders input[type=range]')[1].value"
    ))  # fmt: skip
    expected = dynamics([0.0, value, 0.0], np.zeros(3), np.zeros(3))
    for text, tau in zip(numbers, expected, strict=True):
        found = float(re.match(r"[−\d.e]+", text)[0].replace("−", "-"))
        assert found == pytest.approx(tau, rel=1e-3)
        assert "N·m" in text
    assert browser.execute_script(picture) != before


def test_names_are_text_and_nothing_else(browser, tmp_path):
    """They run nothing, end no element, and stay what they are."""
    bad = (
        "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>'\"`${window.hit=1}"
    )
    names = [bad, "constructor", "__proto__", "</style><!-- tree -->{title}{body}\u2028"]
    links = "\n".join(
        f"  - {{name: {json.dumps('l' + name)}, joint: {{name: {json.dumps(name)}, "
        "type: revolute}, a: 0.3, mass: 1.0, center_of_mass: [0.1, 0, 0]}"
        for name in names
    )
    file = tmp_path / "hostile.yaml"
    file.write_text(f"robot: {json.dumps(bad)}\nlinks:\n{links}\n", encoding="utf-8")
    out = tmp_path / "page.html"
    assert main(["show", str(file), "--out", str(out)]) == 0
    opened(browser, out)
    assert complaints(browser) == []
    assert browser.execute_script("return window.hit === undefined")
    assert browser.execute_script("return robot.joint_names") == names
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.execute_script("return document.querySelector('h1').textContent") == bad
    assert browser.execute_script("return document.querySelectorAll('script').length") == 3
    dynamics = rd.InverseDynamics(loaded(file), backend="python")
    q = np.array([0.1, 0.2, 0.3, 0.4])
    assert agree(torques(browser, q, q, q), dynamics(q, q, q))


def test_without_webgl_the_robot_is_still_drawn(tmp_path):
    with chromium(webgl=False) as driver:
        shown(driver, tmp_path, loaded(CONFIG / "rrr.yaml"))
        colours = driver.execute_script(
            "const c = document.getElementById('view'), g = c.getContext('2d'); if (!g) return -1;"
            "const d = g.getImageData(0, 0, c.width, c.height).data, s = new Set();"
            "for (let i = 0; i < d.length; i += 4) if (d[i + 3] == 255)"
            "  s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
            "return s.size"
        )
    assert colours > 20


def test_choosing_an_assembly_mode_computes_in_it(browser, tmp_path):
    file, out = CONFIG / "five_bar.yaml", tmp_path / "page.html"
    assert main(["show", str(file), "--out", str(out)]) == 0
    opened(browser, out)
    buttons = browser.find_elements("css selector", "#mode-list button")
    assert len(buttons) >= 2
    homes = browser.execute_script("return robot.data.facts.modes.map(m => m.q_r)")
    names = browser.execute_script("return robot.data.closed.names")
    browser.execute_script("document.querySelectorAll('#mode-list button')[1].click()")
    other = replace(rd.load(file), home=dict(zip(names, homes[1], strict=True)))
    dynamics = rd.InverseDynamics(other, backend="python")
    q = np.array(homes[1][:2]) + 0.05
    assert agree(torques(browser, q, np.ones(2), np.ones(2)), dynamics(q, np.ones(2), np.ones(2)))


def test_the_page_asks_for_nothing_from_outside(tmp_path):
    out = tmp_path / "page.html"
    assert main(["show", str(CONFIG / "polar.yaml"), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    outside = set(re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"//.*", "", text)))
    assert outside <= {"http://www.w3.org"}
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


def test_the_gallery_draws_its_robots_and_leads_to_their_pages(browser, tmp_path):
    robots = [str(CONFIG / "polar.yaml"), str(CONFIG / "five_bar.yaml"), "no_such_robot"]
    command = [sys.executable, str(ROOT / "docs/gallery.py"), "--out", str(tmp_path), *robots]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "no_such_robot: left out" in done.stdout
    opened(browser, tmp_path / "index.html")
    assert complaints(browser) == []
    links = browser.execute_script("return [...document.links].map(a => a.getAttribute('href'))")
    assert links == ["polar.html", "five_bar.html"]
    assert all((tmp_path / link).is_file() for link in links)
    pictures = browser.execute_script(
        "return [...document.querySelectorAll('canvas')].map(c => c.toDataURL().length)"
    )
    assert len(pictures) == 2
    assert min(pictures) > 8000


def test_where_it_cannot_be_written_is_one_line(capsys, tmp_path):
    assert main(["show", str(CONFIG / "polar.yaml"), "--out", str(tmp_path / "no/p.html")]) == 1
    # a slow machine says what it is at before
    last = capsys.readouterr().err.strip().split("\n")[-1]
    assert last.startswith("robot_dynamics: --out ")


def test_a_printed_program_computes_what_the_python_one_does():
    """Every operation, and brackets wherever they matter."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run JavaScript")

    def equations(x, p):
        a, b = x
        u = a - (b - 2.5) - (-a)
        v = (a + b) * (a - b) / (a * b + 3.0) / (1.0 + b * b)
        w = -(u * v) - (a - (b + u)) * -2.0
        yield from (u, v, w, np.sin(w) + np.cos(-a), tanh(v), exp(-v), sqrt(u * u))
        yield from (atan(w), sign(b), sign(0.0 * a - 0.0), 3.0, p[0] / (a / b), 1.0 / -b)

    program = record(equations, (2, 1))
    over_floats, _ = python_code.compile_program(program)
    for x in ([0.3, -0.7], [-1.1, 2.0], [5.0, 1e-9]):
        script = f"console.log(JSON.stringify(({js_code.source(program)})({x}, [0.25])))"
        done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == pytest.approx(over_floats(*x, 0.25), rel=1e-15)
