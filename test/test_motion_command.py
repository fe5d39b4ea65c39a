# SPDX-License-Identifier: Apache-2.0
"""What a motion requires of the motors, against textbook numbers and integrals without MuJoCo."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots import CONFIG
from scipy.integrate import trapezoid

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.drives.drives import drives
from robot_dynamics.app.drives.ranges import ranges, reach_maps
from robot_dynamics.app.drives.reach import BEYOND, SINGULAR, TORQUES, drawn_map, strip
from robot_dynamics.app.drives.sampled_motion import States, states
from robot_dynamics.description.motion_file import write_motion
from robot_dynamics.motion.swing import Motion

MASS, LENGTH = 2.0, 0.5
PENDULUM = f"""robot: pendulum
links:
  - name: rod
    joint: {{name: q, type: revolute, limits: {{velocity: 2.0, effort: 12.0, lower: -1, upper: 1}}}}
    origin: {{rpy: [pi/2, 0, 0]}}
    mass: {MASS}
    center_of_mass: [0, -{LENGTH}, 0]
    rotor: {{gear_ratio: 50, inertia: {{izz: 1.0e-4}}}}
"""
CRANK = """robot: press
gravity: [0, -9.81, 0]
links:
  - name: crank
    joint: {name: turn, type: revolute}
    a: 0.2
    mass: 1.0
    inertia: {ixx: 0.01, iyy: 0.01, izz: 0.01}
  - name: rod
    joint: {name: bend, type: revolute}
    a: 0.1
    mass: 1.0
    inertia: {ixx: 0.01, iyy: 0.01, izz: 0.01}
  - name: ram
    parent: base
    origin: {rpy: [0, pi/2, 0]}
    joint: {name: ram, type: prismatic}
    mass: 5.0
loops:
  - name: pin
    type: revolute
    predecessor: {link: rod}
    successor: {link: ram, rpy: [0, -pi/2, 0]}
actuated: [turn]
home: {turn: 0.2, bend: -0.6, ram: 0.27}
"""


@pytest.fixture
def pendulum(tmp_path: Path) -> Path:
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM)
    return file


def swung(count: int = 2001) -> tuple[np.ndarray, ...]:
    time = np.linspace(0, 2, count)
    return (time, *Motion((0.0,), (0.8,), (1.0,), 2.0)(time))


def test_torque_power_energy_and_rms_are_those_of_a_pendulum(pendulum):
    dynamics = rd.InverseDynamics(rd.load(pendulum), backend="python")
    time, q, qd, qdd = swung()
    found = drives(dynamics, States("m", time, q, qd, qdd))
    (joint,), (motor,) = found.joints, found.motors
    x = q[:, 0]
    own = MASS * LENGTH**2 + 50**2 * 1e-4
    tau = own * qdd[:, 0] + MASS * 9.81 * LENGTH * np.sin(x)
    assert np.allclose(joint.torque, tau, atol=1e-9)
    assert np.allclose(joint.power, tau * qd[:, 0], atol=1e-9)
    # from rest to rest at the same height: what is given is taken back
    assert joint.driven == pytest.approx(joint.braked, rel=1e-5)
    assert found.energy == pytest.approx(0, abs=1e-5)
    half = np.argmax(x)
    work = trapezoid(np.maximum(joint.power, 0)[: half + 1], time[: half + 1])
    lifted = MASS * 9.81 * LENGTH * (1 - np.cos(0.8))
    braked = trapezoid(np.minimum(joint.power, 0)[: half + 1], time[: half + 1])
    assert work + braked == pytest.approx(lifted, rel=1e-5)
    assert joint.rms == pytest.approx(np.sqrt(trapezoid(tau**2, time) / 2), rel=1e-12)
    # through the gear: power stays
    assert np.allclose(motor.rate, 50 * qd[:, 0])
    assert np.allclose(motor.power, joint.power, atol=1e-9)
    assert joint.rate_share == pytest.approx(np.abs(qd).max() / 2.0)
    assert joint.torque_share == pytest.approx(np.abs(tau).max() / 12.0)


def test_what_is_beyond_its_limits_is_said_with_the_time(pendulum):
    dynamics = rd.InverseDynamics(rd.load(pendulum), backend="python")
    time, q, qd, qdd = swung()
    found = drives(dynamics, States("m", time, 2 * q, 2 * qd, 2 * qdd)).joints[0].beyond
    assert [words.split(" is beyond")[0].split(" ")[:2] for words in found] == [
        ["q:", "torque"], ["q:", "rate"], ["q:", "position"]
    ]  # fmt: skip
    first = time[np.argmax(np.abs(2 * qd[:, 0]) > 2.0)]
    assert f"first at {first:.4g} s" in found[1]
    assert drives(dynamics, States("m", time, q / 4, qd / 4, qdd / 4)).joints[0].beyond == []


def test_a_trajectory_a_table_and_a_recording_are_one_motion(pendulum, tmp_path):
    time, q, qd, qdd = swung(401)
    write_motion(tmp_path / "m.yaml", ("q",), time, q, qd, qdd)
    plan = np.column_stack([time, q, qd])
    head = "time,q/position,q/velocity"
    np.savetxt(tmp_path / "plan.csv", plan, delimiter=",", header=head, comments="")
    bare = tmp_path / "bare.csv"
    np.savetxt(bare, plan[:, :2], delimiter=",", header=head.rsplit(",", 1)[0], comments="")
    recorded = np.column_stack([plan, np.ones(len(time))])
    np.savetxt(tmp_path / "r.csv", recorded, delimiter=",", header=f"{head},q/effort", comments="")
    for name, near in (("m.yaml", 1e-6), ("plan.csv", 2e-3), ("bare.csv", 5e-3), ("r.csv", 2e-2)):
        found = states(str(tmp_path / name), ["q"], step=0.005 if name == "m.yaml" else None)
        expected = Motion((0.0,), (0.8,), (1.0,), 2.0)(found.time - time[0])
        inner = slice(5, -5)
        for one, other in zip((found.q, found.qd, found.qdd), expected, strict=True):
            size = np.abs(other).max()
            assert np.abs(one[inner] - other[inner]).max() <= near * size, name


@pytest.mark.parametrize("effort", [None, 0.0, 3.0])
def test_a_recording_needs_no_efforts_and_is_filtered_where_it_is_asked_for(tmp_path, effort):
    time, q, *_ = swung(801)
    columns, head = [time, q], "time,q/position"
    if effort is not None:
        columns, head = [*columns, np.full(len(time), effort)], f"{head},q/effort"
    file = tmp_path / "r.csv"
    np.savetxt(file, np.column_stack(columns), delimiter=",", header=head, comments="")
    found = states(str(file), ["q"], cutoff=20.0)
    assert "filtered at 20 Hz, forwards and backwards" in found.notes
    expected = Motion((0.0,), (0.8,), (1.0,), 2.0)(found.time - time[0])[0]
    assert np.ptp(found.q) > 0.5 * np.ptp(expected) > 0
    if effort is not None:
        assert any(note.startswith("not filtered") for note in states(str(file), ["q"]).notes)


@pytest.mark.parametrize("efforts", [np.resize([1.0, *[np.nan] * 19], 801), np.full(801, 1e12)])
def test_a_recording_loses_no_positions_to_missing_or_absurd_efforts(tmp_path, efforts):
    time, q, *_ = swung(801)
    for name, each in (("r.csv", efforts), ("whole.csv", np.cos(time))):
        columns = np.column_stack([time, q, each])
        head = "time,q/position,q/effort"
        np.savetxt(tmp_path / name, columns, delimiter=",", header=head, comments="")
    found, whole = (states(str(tmp_path / name), ["q"]) for name in ("r.csv", "whole.csv"))
    np.testing.assert_array_equal(found.q, whole.q)
    assert found.notes == whole.notes


@pytest.mark.parametrize("size", [0.0, 0.0015])
def test_a_recording_may_move_little_or_not_at_all(tmp_path, size):
    """Torques are computed at rest, too, and a slide of 3 mm is motion."""
    time = 0.01 * np.arange(401)
    recorded = np.column_stack([time, size * np.sin(3 * time), np.sin(time)])
    file = tmp_path / "r.csv"
    head = "time,q/position,q/effort"
    np.savetxt(file, recorded, delimiter=",", header=head, comments="")
    found = states(str(file), ["q"])
    np.testing.assert_allclose(np.ptp(found.q), 2 * size, rtol=1e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,p/position\n0,1\n1,2\n2,3\n", "missing joints: q"),
        ("time,q/position\n0,1\n0,2\n1,3\n", "times"),
        ("time,q/position\n0,1\n1,2\n", "times"),
    ],
)
def test_a_motion_that_is_none_is_refused_in_one_line(pendulum, tmp_path, capsys, text, words):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    assert main(["motion", str(pendulum), str(file)]) == 1
    # a slow machine says what it is at before
    *before, line = capsys.readouterr().err.strip().split("\n")
    assert all(" s: " in each for each in before)
    assert words in line
    assert "bad.csv" in line


def test_the_command_prints_and_writes_what_was_computed(pendulum, tmp_path, capsys):
    time, q, qd, qdd = swung(401)
    write_motion(tmp_path / "m.yaml", ("q",), time, q, qd, qdd)
    out = tmp_path / "out"
    arguments = ["motion", str(pendulum), str(tmp_path / "m.yaml")]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "N·m" in printed
    assert "e-1" not in printed
    assert main([*arguments, "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["drives"]["motors"].keys() == {"q"} | set()
    with (out / "motion.csv").open() as file:
        rows = list(csv.DictReader(file))
    dynamics = rd.InverseDynamics(rd.load(pendulum), backend="python")
    for row in rows[::37]:
        t = float(row["time"])
        state = Motion((0.0,), (0.8,), (1.0,), 2.0)(t)
        assert float(row["q/effort"]) == pytest.approx(dynamics(*state)[0], abs=1e-4)
    page = (out / "motion.html").read_text()
    assert 'href="robot.html"' in page
    assert (out / "robot.html").stat().st_size > 10_000
    assert page.count("<svg") >= 6


def test_the_ends_of_a_cranks_and_a_rams_range_are_where_geometry_has_them(tmp_path):
    """A crank of 0.2 on a rod of 0.1: it can lift its pin by no more than the rod is long."""
    file = tmp_path / "press.yaml"
    file.write_text(CRANK)
    closed = rd.InverseDynamics(rd.load(file), backend="python").closed
    (found,) = ranges(closed)
    # 0.2 sin(turn) = ±0.1
    assert found.upper == pytest.approx(np.pi / 6, abs=2e-3)
    assert found.lower == pytest.approx(-np.pi / 6, abs=2e-3)
    assert found.ends == ("singularity", "singularity")
    assert min(found.conditions) > 50
    # of a turn, a sixth has torques
    assert found.share == pytest.approx(1 / 6, abs=1e-3)
    gap = replace(found, without_torque=((-0.1, 0.1),))
    assert gap.share == pytest.approx(1 / 6 - 0.2 / (2 * np.pi), abs=1e-3)
    turn = 2 * np.pi
    twice = ((-turn + 1.0, -turn + 2.0), (1.0, 2.0))  # the same gap in a turn to either side
    around = replace(found, lower=-turn, upper=turn, without_torque=twice)
    assert around.share == pytest.approx(1 - 1 / turn)
    marks = strip(found).split(" ")[2]
    assert set(marks) == {TORQUES, BEYOND}
    assert marks.count(TORQUES) == pytest.approx(len(marks) / 6, abs=1)
    assert marks.index(TORQUES) == len(marks) - 1 - marks.rindex(TORQUES)


def test_the_condition_number_is_that_of_the_state_and_grows_towards_the_ends(tmp_path):
    file = tmp_path / "press.yaml"
    file.write_text(CRANK)
    closed = rd.InverseDynamics(rd.load(file), backend="python").closed
    (found,) = ranges(closed)
    assert (np.diff(found.places) > 0).all()
    inside = np.flatnonzero(np.abs(found.places) < 0.52)
    assert len(inside) > 10
    for place, condition in zip(
        found.places[inside], found.passive_conditions[inside], strict=True
    ):
        q_r = closed.solver.forward_kinematics(np.array([place]), closed.home.q_r, 400)
        state = closed.solver.state(q_r)
        assert condition == pytest.approx(float(state.condition), rel=1e-6)
    # the rod's angle to the ram's way: cos β goes as the root of what is left
    middle = len(found.places) // 2
    assert (np.diff(found.passive_conditions[middle + 5 :]) > 0).all()


def test_a_stretch_too_near_a_singularity_is_found_between_two_strides(tmp_path):
    """A crank of nearly its rod's length: at 90° the ram is as good as at the crank's axis."""
    file = tmp_path / "press.yaml"
    text = CRANK.replace("a: 0.1", "a: 0.200000002")
    file.write_text(text.replace("bend: -0.6, ram: 0.27", "bend: -0.4, ram: 0.392"))
    closed = rd.InverseDynamics(rd.load(file), backend="python").closed
    (found,) = ranges(closed)
    assert found.ends == ("a whole turn", "a whole turn")
    middles = sorted({round((a + b) / 2 / np.pi, 3) for a, b in found.without_torque})
    assert middles == [-1.5, -0.5, 0.5, 1.5]
    assert any(a <= np.pi / 2 <= b for a, b in found.without_torque)
    assert SINGULAR in strip(found)
    assert 0.99 < found.share <= 1.0


def presses(tmp_path, rods):
    """Presses side by side; rods: (length, bend, ram) of each at a crank's angle of 0.2."""
    links, loops, motors, home = [], [], [], []
    parts = CRANK.split("links:\n")[1].split("actuated:")[0].split("loops:\n")
    for k, (length, bend, ram) in enumerate(rods):
        link, loop = parts
        for word in ("crank", "rod", "ram", "turn", "bend", "pin"):
            link, loop = (text.replace(word, f"{word}_{k}") for text in (link, loop))
        link = link.replace("a: 0.2", "parent: base\n    a: 0.2")
        links.append(link.replace("a: 0.1\n", f"a: {length}\n"))
        loops.append(loop)
        motors.append(f"turn_{k}")
        home.append(f"turn_{k}: 0.2, bend_{k}: {bend}, ram_{k}: {ram}")
    file = tmp_path / "presses.yaml"
    file.write_text(
        f"robot: presses\ngravity: [0, -9.81, 0]\nlinks:\n{''.join(links)}loops:\n"
        f"{''.join(loops)}actuated: [{', '.join(motors)}]\nhome: {{{', '.join(home)}}}\n"
    )
    return file


RODS = ((0.1, -0.6, 0.27), (0.15, -0.47, 0.34), (0.1, -0.6, 0.27))


@pytest.mark.parametrize("count", [2, 3])
def test_maps_of_two_motors_have_what_geometry_allows(tmp_path, count):
    """Presses side by side: each crank lifts its pin by no more than its rod is long."""
    file = presses(tmp_path, RODS[:count])
    closed = rd.InverseDynamics(rd.load(file), backend="python").closed
    maps = reach_maps(closed)
    names = [each.names for each in maps]
    assert (
        names
        == {
            2: [("turn_0", "turn_1")],
            3: [("turn_0", "turn_1"), ("turn_1", "turn_2"), ("turn_2", "turn_0")],
        }[count]
    )
    farthest = {f"turn_{k}": np.arcsin(rod[0] / 0.2) for k, rod in enumerate(RODS)}
    for found in maps:
        x, y = np.meshgrid(found.x, found.y)
        first, second = (farthest[name] for name in found.names)
        expected = (np.abs(x) < first) & (np.abs(y) < second)
        assert expected.sum() > 8
        assert (np.isfinite(found.passive_conditions) == expected).all()
        limit = 0.9 * float(np.nanmax(found.passive_conditions))
        picture = drawn_map(replace(found, limit=limit), np.array([[0.2, 0.2], [0.3, 0.1]]))
        beyond = (found.passive_conditions > limit).sum()
        assert 0 < picture.count("fill: var(--a)") == beyond
        assert picture.count("fill: var(--b)") == expected.sum() - beyond
        assert picture.count("stroke: var(--ink)") == 1


def test_a_motion_of_three_motors_has_a_map_of_each_two_on_its_page(tmp_path, capsys):
    file = presses(tmp_path, RODS)
    plan = tmp_path / "plan.csv"
    time = np.linspace(0, 1, 11)
    turns = [0.2 + 0.1 * k * time for k in range(3)]
    head = "time," + ",".join(f"turn_{k}/position" for k in range(3))
    np.savetxt(plan, np.column_stack([time, *turns]), delimiter=",", header=head, comments="")
    out = tmp_path / "out"
    assert main(["motion", str(file), str(plan), "--out", str(out)]) == 0
    assert "ranges_3_turn_2_turn_0.svg" in capsys.readouterr().out
    page = (out / "motion.html").read_text()
    assert page.count('class="chart map"') == 3
    assert page.count("stroke: var(--ink)") == 3
    assert "with the other motors at home" in page
    assert len(list(out.glob("ranges_*.svg"))) == 3


def test_a_robot_with_one_motor_has_no_map(tmp_path):
    file = presses(tmp_path, RODS[:1])
    assert reach_maps(rd.InverseDynamics(rd.load(file), backend="python").closed) == []


def test_a_crank_that_turns_round_has_no_end(tmp_path):
    file = tmp_path / "press.yaml"
    text = CRANK.replace("a: 0.1", "a: 0.5")
    file.write_text(text.replace("bend: -0.6, ram: 0.27", "bend: -0.28, ram: 0.69"))
    closed = rd.InverseDynamics(rd.load(file), backend="python").closed
    (found,) = ranges(closed)
    assert found.ends == ("a whole turn", "a whole turn")
    assert found.upper - found.lower == pytest.approx(4 * np.pi)
    assert found.without_torque == ()


def test_states_that_a_closed_robot_cannot_have_are_counted_and_said(capsys, tmp_path):
    file = tmp_path / "press.yaml"
    file.write_text(CRANK)
    time = np.linspace(0, 1, 101)
    turn = 0.2 + 0.8 * time
    plan = tmp_path / "plan.csv"
    rows = np.column_stack([time, turn])
    np.savetxt(plan, rows, delimiter=",", header="time,turn/position", comments="")
    assert main(["motion", str(file), str(plan), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lost"] == pytest.approx((turn > np.pi / 6).sum(), abs=2)
    assert found["ranges"]["turn"]["upper"] == pytest.approx(np.pi / 6, abs=2e-3)
    assert found["ranges"]["turn"]["share"] == pytest.approx(1 / 6, abs=1e-3)
    out = tmp_path / "out"
    assert main(["motion", str(file), str(plan), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    # asin(1/2) is passed at (π/6 - 0.2)/0.8 = 0.4045 s
    assert "  0.41 … 1 s: turn 0.528 … 1" in printed
    assert "16.7 % of its travel" in printed
    page = (out / "motion.html").read_text()
    assert "condition number over turn" in page
    assert "0.41 … 1 s: turn 0.528 … 1" in page
    picture = (out / "range_1_turn.svg").read_text()
    assert picture.startswith("<svg")
    assert picture.count("stroke: var(--d)") == 1  # where the motion is
    assert main(["motion", str(CONFIG / "rrr.yaml"), str(plan)]) == 1
    assert "missing joints: qa1" in capsys.readouterr().err
