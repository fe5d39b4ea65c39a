# SPDX-License-Identifier: Apache-2.0
"""The page of `show` computes the same as Python, in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browser import chromium, complaints, opened
from closed_robots import load
from robots import CONFIG, example_robots, python_functions
from test_closure_loose import spatial_four_bar

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.drives.ranges import ranges
from robot_dynamics.app.report_page import prose
from robot_dynamics.app.show import facts
from robot_dynamics.app.show.facts import gathered
from robot_dynamics.app.show.page import Facts, page
from robot_dynamics.codegen import js_code
from robot_dynamics.codegen.recorder import record
from robot_dynamics.formulations import FORMULATIONS
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


@pytest.mark.parametrize("name", ["three_axis", "polar", "rrr"])
def test_other_formulations_and_rotor_models_are_those_of_python(browser, tmp_path, name):
    mechanism = loaded(CONFIG / f"{name}.yaml")
    shown(browser, tmp_path, mechanism)
    found = browser.execute_script(
        "return Object.keys(robot.programs).filter(k => /^(f|r).*_/.test(k))"
    )
    ways = {f"formulation_{each}": {"formulation": each} for each in FORMULATIONS}
    del ways["formulation_newton_euler"]
    if mechanism.rotors:
        ways |= {f"rotors_{each}": {"rotors": each} for each in ("none", "reflected")}
    assert set(found) == set(ways)
    base = rd.InverseDynamics(mechanism, backend="python")
    n = len(base.joint_names)
    q = np.linspace(0.2, 0.6, n) if base.closed is None else base.closed.home.q_a + 0.03
    qd, qdd = np.linspace(-1, 1.3, n), np.linspace(2, -1, n)
    browser.execute_script("robot.world = [1, -2, -5, 0]")
    for way, options in ways.items():
        dynamics = rd.InverseDynamics(mechanism, backend="python", **options)
        dynamics.gravity_vector = [1.0, -2.0, -5.0]
        tau = browser.execute_script(
            "const [way, q, qd, qdd] = arguments, s = robot.at(q, qd, qdd, robot.home);"
            "return robot.programs[way](s.configuration, qd, qdd, robot.world)",
            way,
            *(x.tolist() for x in (q, qd, qdd)),
        )
        assert agree(np.array(tau), dynamics(q, qd, qdd)), way


def test_curves_are_drawn_by_term_by_rotor_model_and_by_formulation(browser, tmp_path):
    shown(browser, tmp_path, loaded(CONFIG / "three_axis.yaml"))
    said = {}
    for k in range(3):
        said[k] = browser.execute_script(
            "document.querySelectorAll('#families button')[arguments[0]].click();"
            "return [document.getElementById('curves').textContent,"
            " document.querySelectorAll('#charts figure:first-child path').length,"
            " document.querySelector('#charts figcaption').textContent]",
            k,
        )
    assert "gravity" in said[0][0]
    assert said[1][:2] == ["fullreflectednone", 3]
    assert "% of the largest" in said[1][2]
    assert said[2][1] == 4
    off = re.search(r"largest difference ([\d.]+)e−(\d+)", said[2][2])
    assert int(off[2]) >= 10
    # a payload is in the terms and not in the comparison, which says so
    browser.execute_script(
        "robot.world[3] = 1; document.querySelectorAll('#families button')[2].click()"
    )
    assert "without a payload" in browser.execute_script(
        "return document.getElementById('curves').textContent"
    )
    assert complaints(browser) == []


def test_all_joints_of_a_large_robot_can_be_had(browser, tmp_path):
    links = "\n".join(
        f"  - {{name: l{k}, joint: {{name: j{k}, type: revolute}}, a: 0.1, mass: 0.2}}"
        for k in range(14)
    )
    file = tmp_path / "snake.yaml"
    file.write_text(f"robot: snake\nlinks:\n{links}\n")
    shown(browser, tmp_path, loaded(file))
    count = "return document.querySelectorAll('#charts figure').length"
    assert browser.execute_script(count) == 12
    browser.execute_script("document.querySelector('#charts button').click()")
    assert browser.execute_script(count) == 14
    browser.execute_script("document.querySelector('#tables button').click()")
    cells = "return document.querySelectorAll('#tables td').length"
    assert browser.execute_script(cells) == 2 * 14 * 14 + 14
    # slowly, so that C has small negative numbers
    browser.execute_async_script(MOVE, 1, 0.5)
    browser.execute_script(
        "[...document.querySelectorAll('button')]"
        ".find(x => x.textContent.startsWith('Rate')).click()"
    )
    browser.execute_async_script(MOVE, 0, 1e-3)
    small = "return [...document.querySelectorAll('#tables td')].map(x => x.textContent)"
    said = browser.execute_script(small)
    assert any(x.startswith("−") and "e−" in x for x in said)
    assert not any("-" in x for x in said)


def test_numbers_say_dh_rows_limits_friction_and_bodies_that_none_has(tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text(
        """robot: arm
links:
  - name: one
    joint: {name: q1, type: revolute, limits: {lower: -1, upper: 2, effort: 30}}
    theta: pi/2
    a: 0.4
    alpha: -pi/2
    mass: 1
    inertia: {ixx: 0.01, iyy: 0.01, izz: 0.01}
    friction: {viscous: 0.3}
  - name: two
    joint: {name: q2, type: prismatic}
    d: 0.25
    mass: 1
    inertia: {ixx: 0.01, iyy: 0.01, izz: 0.5}
"""
    )
    text = gathered(str(file), loaded(file)).sections["tree"]
    rows = [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>.*?</tr>", text)]
    assert "Denavit–Hartenberg, standard convention" in text
    assert ["one", "base", "q1", "q1 + 1.5708", "0", "0.4", "−1.5708"] in rows
    assert ["two", "one", "q2", "0", "q2 + 0.25", "0", "0"] in rows
    assert ["1. q1", "revolute", "−1 rad", "2 rad", "–", "30 N·m", "–", "viscous 0.3"] in rows
    assert [row[-1] for row in rows if row[:2] == ["two", "1"]] == ["no: see the checks"]
    assert [row[-1] for row in rows if row[:2] == ["one", "1"]] == ["yes"]


@pytest.fixture
def derived_once(monkeypatch):
    """Each robot's equations are derived once, however often its page is written."""
    known = {}

    def once(mechanism):
        if mechanism.name not in known:
            known[mechanism.name] = rd.derive(mechanism)
        return known[mechanism.name]

    monkeypatch.setattr(facts, "derive", once)
    return once


def derivation(file: Path, most: int = facts.LISTED) -> str:
    """The page's section of equations, without what else a page has."""
    return facts._derivation(str(file), loaded(file), most=most)


def test_equations_are_on_the_page_or_how_to_have_them_is(derived_once, monkeypatch):
    six = ROOT / "urdf/six_axis.urdf"
    text = derivation(six)
    assert 'id="derivation"><details data-long>' in text
    assert text.count("<math>") > 100
    monkeypatch.setattr(facts, "LONGEST", 20_000)
    text = derivation(six)
    assert 0 < text.count("<math>") < 100
    assert len(text) < 60_000
    assert re.search(r"\d+ equations are too long for this page", text)
    command = f"robot_dynamics derive {six} --format html --out equations.html"
    assert command in text
    closed = CONFIG / "rrr.yaml"
    assert "(39)" in gathered(str(closed), loaded(closed)).sections["derivation"]
    large = CONFIG / "gough_stewart.yaml"
    monkeypatch.setattr(facts, "LISTED", 20)
    text = derivation(large, most=21)
    assert "of 21 joints are left out" in text
    assert f"derive {large} --format html" in text


def test_long_equations_in_space_without_a_platform_are_not_derived(monkeypatch, tmp_path):
    robot = spatial_four_bar() | {"locked": {"spin": 0.7}}
    del robot["home"]["spin"]
    load(robot, tmp_path)
    monkeypatch.setattr(facts, "DERIVED_CLOSED", 3)
    monkeypatch.setattr(facts, "derive", None)
    assert "of 4 joints are left out" in derivation(tmp_path / "rssr.yaml")


def test_the_equations_of_a_delta_are_a_list_as_plain_text(derived_once, monkeypatch):
    file = CONFIG / "delta.yaml"
    text = derivation(file)
    assert "<math>" not in text
    listed = derived_once(loaded(file)).text()
    assert html.escape(listed) in text
    assert f"{len(listed.splitlines())} lines" in text
    assert f"derive {file} --format html" in text
    monkeypatch.setattr(facts, "LONGEST", 10_000)
    monkeypatch.setattr(facts, "derive", lambda mechanism: SimpleNamespace(text=lambda: listed))
    text = derivation(file)
    assert len(text) < 1000
    assert "too many for this page" in text


MOVE = (
    "const [row, x, done] = arguments,"
    " s = document.querySelectorAll('#sliders input[type=number]')[row];"
    "s.value = x; s.dispatchEvent(new Event('input'));"
    "requestAnimationFrame(() => requestAnimationFrame(done))"
)


def test_a_torque_that_is_only_rounding_has_no_bar(browser, tmp_path):
    """As at the first moment of a motion that begins at rest."""
    shown(browser, tmp_path, loaded(CONFIG / "polar.yaml"))
    browser.execute_script("document.querySelector('[data-tab=qdd]').click()")
    look = (
        "const row = document.querySelector('#bars .bar-row'), bars = row.querySelectorAll('rect');"
        "const total = [...bars].find(each => each.getAttribute('width') === '6');"
        "return [row.querySelector('.number').textContent, total.getAttribute('x') / 1000]"
    )
    for own_scale in (False, True):
        if own_scale:
            browser.execute_script("document.querySelector('#scales button').click()")
        browser.execute_async_script(MOVE, 0, 1e-14)
        number, place = browser.execute_script(look)
        assert number == "0 N·m"
        assert abs(place - 0.5) < 0.01
        browser.execute_async_script(MOVE, 0, 1.0)
        assert browser.execute_script(look)[1] > 0.7


def test_near_a_singularity_the_page_says_so_and_still_computes(browser, tmp_path):
    mechanism = loaded(CONFIG / "rrr.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    closed = dynamics.closed
    assert closed is not None
    home, still = closed.home.q_a, np.zeros(3)
    # towards the end of the first motor's range
    ahead = ranges(closed)[0].upper - home[0] - np.geomspace(3e-5, 0.03, 60)
    q = home + np.outer(ahead, [1, 0, 0])
    conditions = np.array(
        [float(closed.solver.state(closed.configuration(x)).condition) for x in q]
    )
    shown(browser, tmp_path, mechanism)
    banner = "return [...document.querySelectorAll('#state span')].map(e => e.textContent)"
    for wanted, is_near in ((40.0, False), (96.0, False), (106.0, True), (250.0, True)):
        k = int(np.argmin(abs(conditions - wanted)))
        assert (conditions[k] > 0.1 * closed.condition_limit) == is_near
        place = q[k]
        browser.execute_async_script(MOVE, 0, float(place[0]))
        said = browser.execute_script(banner)
        assert len(said) == is_near
        if is_near:
            found = re.fullmatch(
                r"near a singularity: condition number ([\d.]+), limit 1000", said[0]
            )
            assert float(found[1]) == pytest.approx(conditions[k], rel=1e-3)
        lost = "return document.getElementById('stage').classList.contains('lost')"
        assert not browser.execute_script(lost)
        # rounding grows with the condition number
        tau, expected = torques(browser, place, still, still), dynamics(place, still, still)
        assert np.allclose(tau, expected, rtol=EXACT * conditions[k], atol=0)
    assert complaints(browser) == []


def strips(driver) -> list[list[tuple[float, float, str]]]:
    """Of each slider, (from, to, what there is), once all are drawn for the sliders as they are."""
    driver.execute_async_script(
        "const [done] = arguments, look = () =>"
        " document.getElementById('reach').getAttribute('aria-busy') === 'false'"
        " ? done() : setTimeout(look, 20); look()"
    )
    found = []
    for text in driver.execute_script(
        "return [...document.querySelectorAll('.strip')].map(s => s.getAttribute('aria-label'))"
    ):
        runs = re.findall(r"(\S+) … (\S+) \S+: ([^;]+)", text.replace("−", "-"))
        found.append([(float(a), float(b), what) for a, b, what in runs])
    rects = "return [...document.querySelectorAll('.strip')].map(s => s.querySelectorAll('rect').length)"  # noqa: E501
    assert driver.execute_script(rects) == [len(runs) for runs in found]
    return found


def test_strips_under_the_sliders_end_where_the_motors_ranges_end(browser, tmp_path):
    mechanism = loaded(CONFIG / "rrr.yaml")
    shown(browser, tmp_path, mechanism)
    closed = rd.InverseDynamics(mechanism, backend="python").closed
    assert closed is not None
    moved = closed.home.q_a + np.array([0.3, 0.1, 0.0])
    for row in (0, 1):
        browser.execute_async_script(MOVE, row, float(moved[row]))
    home = dict(zip(closed.coordinate_names, closed.configuration(moved), strict=True))
    there = rd.InverseDynamics(replace(mechanism, home=home), backend="python").closed
    for runs, motor in zip(strips(browser), ranges(there), strict=True):
        assert [what for *_, what in runs] == [
            "out of reach", "near a singularity", "torques", "near a singularity", "out of reach"
        ]  # fmt: skip
        assert runs[1][0] == pytest.approx(motor.lower, abs=2e-3)
        assert runs[3][1] == pytest.approx(motor.upper, abs=2e-3)
        far = motor.passive_conditions > 0.1 * closed.condition_limit
        fine = motor.places[~far]
        assert runs[2][0] <= fine[0] + 2e-3
        assert runs[2][1] >= fine[-1] - 2e-3
        assert all(b == a for (_, b, _), (a, *_) in pairwise(runs))
    # what the strip says is what the slider does
    low, high, _ = strips(browser)[1][2]
    lost = "return document.getElementById('stage').classList.contains('lost')"
    for x, is_lost in ((low + 0.01, False), (high - 0.01, False), (high + 0.05, True)):
        browser.execute_async_script(MOVE, 1, x)
        assert browser.execute_script(lost) == is_lost
    assert complaints(browser) == []


def test_strips_of_an_open_chain_say_where_a_torque_is_beyond_its_limit(browser, tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text(
        """robot: arm
gravity: [0, -10, 0]
links:
  - name: one
    joint: {name: q1, type: revolute, limits: {lower: -3, upper: 3, effort: 15}}
    a: 1.0
    mass: 2.0
  - name: two
    joint: {name: q2, type: revolute, limits: {lower: -3, upper: 3}}
    a: 1.0
    mass: 0.001
"""
    )
    shown(browser, tmp_path, loaded(file))
    # 20 N·m · cos(q1): 15 at an angle of acos(0.75)
    first, second = strips(browser)
    fine, over = "torques", "a torque beyond its limit"
    edge = np.arccos(0.75)
    ends = [-3, edge - np.pi, -edge, edge, np.pi - edge, 3]
    for run, (a, b), what in zip(first, pairwise(ends), [over, fine] * 2 + [over], strict=True):
        assert run[:2] == pytest.approx((a, b), abs=2e-3)
        assert run[2] == what
    assert [what for *_, what in second] == ["a torque beyond its limit"]
    legend = "return document.getElementById('reach').textContent"
    assert browser.execute_script(legend) == "torquesa torque beyond its limit"
    browser.execute_script("document.querySelector('[data-tab=qd]').click()")
    assert browser.execute_script(legend) == ""
    assert browser.execute_script("return document.querySelectorAll('.strip').length") == 0
    browser.execute_script("document.querySelector('[data-tab=q]').click()")
    browser.execute_async_script(MOVE, 0, 1.2)
    assert [what for *_, what in strips(browser)[1]] == ["torques"]
    # without limits there is nothing to mark
    shown(browser, tmp_path, loaded(CONFIG / "polar.yaml"))
    assert browser.execute_script("return document.querySelectorAll('.strip').length") == 0


@pytest.mark.parametrize("name", ["five_bar", "rrr", "gough_stewart"])
def test_a_state_beyond_reach_is_shown_as_such(browser, tmp_path, name):
    shown(browser, tmp_path, loaded(CONFIG / f"{name}.yaml"))
    move = (
        "const [x, done] = arguments, s = document.querySelector('#sliders input[type=number]');"
        "s.value = x; s.dispatchEvent(new Event('input'));"
        "requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    home = float(browser.execute_script("return robot.data.home[0]"))
    look = (
        "return [document.getElementById('stage').classList.contains('lost'),"
        " document.getElementById('state').textContent,"
        " document.querySelector('.bar-row .number').textContent]"
    )
    far = browser.execute_script(
        "const still = robot.joint_names.map(() => 0);"
        "for (let x = robot.data.home[0]; x < 50; x += 0.05) {"
        "  try { robot.at([x, ...robot.data.home.slice(1)], still, still, robot.home) }"
        "  catch { return x }"
        "} return 50"
    )
    browser.execute_async_script(move, float(far))
    lost, words, number = browser.execute_script(look)
    assert lost
    assert re.search("out of reach|singularity|too far", words)
    assert number.startswith("–")
    browser.execute_async_script(move, home)
    lost, words, number = browser.execute_script(look)
    assert not lost
    assert words == ""
    assert not number.startswith("–")
    assert complaints(browser) == []


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


def test_no_part_of_the_robot_is_behind_the_buttons(browser, tmp_path):
    # a long way from the base: the whole motion is in view, and the base at its edge
    time = np.linspace(0, 1, 11)
    states = np.column_stack([1.5 * time, 0.7 + 0.4 * time])
    motion = {"t": time, "q": states, "qd": 0 * states, "qdd": 0 * states, "name": "out"}
    shown(browser, tmp_path, loaded(CONFIG / "polar.yaml"), motion=motion)
    # the height of the lowest orange pixel, which a joint has, and of the buttons, from above
    lowest, buttons = browser.execute_script(
        "const c = document.getElementById('view'), p = document.createElement('canvas');"
        "p.width = c.width; p.height = c.height;"
        "const g = p.getContext('2d'); g.drawImage(c, 0, 0);"
        "const d = g.getImageData(0, 0, c.width, c.height).data; let y = 0;"
        "for (let i = 0; i < d.length; i += 4)"
        "  if (d[i + 3] > 200 && d[i] > d[i + 2] + 60) y = Math.floor(i / 4 / c.width);"
        "return [y / c.height, (document.getElementById('toggles').getBoundingClientRect().top"
        "  - c.getBoundingClientRect().top) / c.getBoundingClientRect().height]"
    )
    assert 0.3 < lowest < buttons < 1


def test_a_page_with_a_motion_begins_at_the_motion_s_first_state(browser, tmp_path):
    time = np.linspace(0, 1, 11)
    q, qd, qdd = np.column_stack([time + 0.5, 0.7 + 0 * time]), np.ones((11, 2)), np.ones((11, 2))
    motion = {"t": time, "q": q, "qd": qd, "qdd": qdd, "name": "turn"}
    mechanism = loaded(CONFIG / "polar.yaml")
    shown(browser, tmp_path, mechanism, motion=motion)
    numbers = browser.execute_script(
        "return [...document.querySelectorAll('.bar-row .number')].map(e => e.textContent)"
    )
    expected = rd.InverseDynamics(mechanism, backend="python")(q[0], qd[0], qdd[0])
    for text, tau in zip(numbers, expected, strict=True):
        assert float(re.match(r"[−\d.e]+", text)[0].replace("−", "-")) == pytest.approx(
            tau, rel=1e-3
        )


def test_what_stands_between_backticks_is_code_and_the_rest_is_text():
    assert prose("see `close FILE`, <b> and a lone `") == (
        "see <code>close FILE</code>, &lt;b&gt; and a lone `"
    )
    assert prose("`<i>`") == "<code>&lt;i&gt;</code>"


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


def test_on_paper_the_robot_is_there_and_nothing_is_folded(browser, tmp_path):
    out = tmp_path / "page.html"
    assert main(["show", str(CONFIG / "polar.yaml"), "--out", str(out)]) == 0
    opened(browser, out)
    folded = "return document.querySelectorAll('details:not([open])').length"
    before = browser.execute_script(folded)
    assert before >= 2
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(
        "const c = document.getElementById('paper'), g = c.getContext('2d');"
        "const d = g.getImageData(0, 0, c.width, c.height).data, s = new Set();"
        "for (let i = 0; i < d.length; i += 4) if (d[i + 3] == 255)"
        "  s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
        "return s.size"
    ) > 20  # fmt: skip
    assert browser.execute_script(folded) == 0
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(folded) == before


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
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('canvas')].map(c => c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.filter((x, i) => i % 4 === 3 && x).length)"
    )
    assert len(drawn) == 2
    assert min(drawn) > 5000


def test_where_it_cannot_be_written_is_one_line(capsys, tmp_path):
    page = tmp_path / "no" / "p.html"
    assert main(["show", str(CONFIG / "polar.yaml"), "--out", str(page)]) == 1
    # a slow machine says what it is at before
    last = capsys.readouterr().err.strip().split("\n")[-1]
    assert last == f"robot_dynamics: {page}: cannot be written (No such file or directory)"


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
    over_floats, _ = python_functions(program)
    for x in ([0.3, -0.7], [-1.1, 2.0], [5.0, 1e-9]):
        script = f"console.log(JSON.stringify(({js_code.source(program)})({x}, [0.25])))"
        done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == pytest.approx(over_floats(*x, 0.25), rel=1e-15)
