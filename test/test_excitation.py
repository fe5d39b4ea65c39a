# SPDX-License-Identifier: Apache-2.0
"""Exciting motions: inside every limit, from rest to rest, and more informative than plain ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import robots
import yaml

import robot_dynamics as rd
from robot_dynamics.app import cli
from robot_dynamics.app.excitation_files import _write_rows
from robot_dynamics.description.motion_file import read_motion, write_motion
from robot_dynamics.errors import InputError, TrajectoryError
from robot_dynamics.identification import excitation
from robot_dynamics.identification.clearance import Above, Outside, regions
from robot_dynamics.identification.excitation import excite
from robot_dynamics.identification.motion_limits import motion_limits
from robot_dynamics.identification.table import read
from robot_dynamics.motion.fourier import FourierMotion, RestingSeries

pytest.importorskip("scipy")

ROOT = Path(__file__).resolve().parents[1]
FINE = 20_001
"""Number of instants of a motion: four to twenty times as dense as the grid on which it was
verified"""
QUICK = ((3.0, 12), (300.0, 12))
"""Steps of a search short enough for tests; its result is shrunk into the limits anyway"""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(excitation, "STAGES", QUICK)
    monkeypatch.setattr(excitation, "STARTS", 6)


def example_robot(name: str) -> str:
    found = [file for file in robots.example_robots() if str(file).endswith(name)]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return str(found[0])


ROBOTS = {
    "six_axis": lambda: str(ROOT / "urdf" / "six_axis.urdf"),
    "panda": lambda: example_robot("panda_description/urdf/panda.urdf"),
    "ur10": lambda: example_robot("ur_description/urdf/ur10_robot.urdf"),
}


# --- the series --------------------------------------------------------------------------------


@pytest.mark.parametrize("harmonics", [2, 5, 15])
def test_the_series_rests_at_both_ends_and_its_rates_are_its_derivatives(harmonics):
    rng = np.random.default_rng(harmonics)
    series = RestingSeries(harmonics, 7.0)
    motion = FourierMotion(series, rng.normal(size=3), rng.normal(size=(3, series.size)))
    assert motion.coefficients.shape == (3, 2 * harmonics - 2)
    for time in (-1.0, 0.0, 7.0, 8.0):
        q, qd, qdd = motion(time)
        np.testing.assert_allclose(q, motion.start, atol=1e-12)
        np.testing.assert_allclose([qd, qdd], 0.0, atol=1e-11)
    time, h = np.linspace(0.1, 6.9, 50), 1e-5
    (q0, qd0, _), (_, qd, qdd), (q1, qd1, _) = (motion(time + k * h) for k in (-1, 0, 1))
    # central differences: h² times third derivatives of some 1e4, rounding over h
    np.testing.assert_allclose((q1 - q0) / (2 * h), qd, atol=1e-5)
    np.testing.assert_allclose((qd1 - qd0) / (2 * h), qdd, atol=1e-4)
    # what nothing but sines and cosines up to this order can do, all of it at rest at 0
    spectrum = np.fft.rfft(motion(np.arange(64) / 64 * 7.0)[0], axis=0)
    assert np.abs(spectrum[harmonics + 1 :]).max() < 1e-12 < np.abs(spectrum[harmonics]).min()


def test_no_series_is_larger_between_samples_than_said():
    rng = np.random.default_rng(3)
    series = RestingSeries(8, 1.0)
    for samples in (17, 20, 40):
        worst = 0.0
        for _ in range(60):
            motion = FourierMotion(series, np.zeros(1), rng.normal(size=(1, series.size)))
            coarse = np.abs(motion(np.arange(samples) / samples)[0]).max()
            worst = max(worst, np.abs(motion(np.linspace(0, 1, 2000))[0]).max() / coarse)
        assert 1.0 < worst <= series.overshoot(samples)
    # 1 / cos(π/4) where there are four samples a period of the fastest
    assert series.overshoot(32) == pytest.approx(math.sqrt(2.0))


# --- what the search finds ---------------------------------------------------------------------


def share_of_limits(found, mechanism):
    """The law itself, from the description alone: (position, rate, effort) at most, of all joints
    and instants."""
    q, qd, qdd = found.motion(np.linspace(0.0, found.motion.duration, FINE))
    S, s = (np.asarray(each, dtype=float) for each in mechanism.coordinates())
    limits = [mechanism.joint(name).limits for name in mechanism.tree_names]
    lower = np.array([each.lower for each in limits])
    upper = np.array([each.upper for each in limits])
    rate = np.array([each.velocity for each in limits])
    tree = q @ S.T + s
    own = [mechanism.joint(name).limits.effort for name in mechanism.joint_names]
    tau = rd.InverseDynamics(mechanism, backend="python")(q, qd, qdd)
    return (
        np.abs((2 * tree - lower - upper) / (upper - lower)).max(axis=0),
        np.abs(qd @ S.T / rate).max(axis=0),
        np.abs(qdd @ S.T).max(axis=0),
        np.abs(tau / own).max(axis=0),
    )


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ROBOTS)
def test_limits_hold_at_all_times_and_the_motion_tells_more_than_plain_swings(name):
    mechanism = rd.load(ROBOTS[name]())
    found = excite(mechanism, 10.0, seed=1)
    position, rate, acceleration, effort = share_of_limits(found, mechanism)
    for share in (position, rate, acceleration / found.limits.acceleration, effort):
        assert share.max() <= 0.9 + 1e-9
    # the reported margins hold: never smaller than the true ones, and not much larger
    margins = found.margins
    np.testing.assert_allclose(margins.position, position, rtol=2e-3)
    np.testing.assert_allclose(margins.rate, rate, rtol=2e-3)
    np.testing.assert_allclose(
        margins.acceleration, acceleration / found.limits.acceleration, rtol=2e-3
    )
    np.testing.assert_allclose(margins.effort, effort, rtol=2e-2)
    assert np.all(margins.position >= position - 1e-12)
    # the search uses the limits: no joint stays below a fifth of all of its limits
    assert np.min(np.max([position, rate, margins.acceleration], axis=0)) > 0.2
    assert found.before.excited <= found.after.excited == found.after.parameters
    assert found.after.condition < found.before.condition / 2
    assert found.after.log_det > found.before.log_det + found.after.parameters / 2


SLIDER = """<robot name="cart">
  <link name="rail"/>
  <link name="cart"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
    iyz="0"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0 0 0.3"/><mass value="1"/><inertia ixx="0.1" iyy="0.1"
    izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0 0 0.1"/><mass value="0.5"/><inertia ixx="0.01"
    iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/>
    <axis xyz="1 0 0"/><limit lower="-0.5" upper="0.5" effort="100" velocity="1"/></joint>
  <joint name="turn" type="continuous"><parent link="cart"/><child link="arm"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="wrist" type="revolute"><parent link="arm"/><child link="hand"/>
    <origin xyz="0 0 0.6"/><axis xyz="0 1 0"/><mimic joint="turn" multiplier="-0.5"/>
    <limit lower="-0.4" upper="0.4" effort="10" velocity="0.6"/></joint>
</robot>"""


@pytest.fixture
def cart(tmp_path):
    file = tmp_path / "cart.urdf"
    file.write_text(SLIDER)
    return file


@pytest.mark.usefixtures("quick")
def test_what_follows_keeps_to_its_own_limits_and_links_to_their_regions(cart):
    mechanism = rd.load(str(cart))
    where = (Above("hand", 0.2), Outside("hand", (0.6, 0.0, 0.6), 0.3))
    found = excite(mechanism, 8.0, regions=where, margin=0.0, seed=2)
    q, qd, _ = found.motion(np.linspace(0.0, 8.0, FINE))
    # the wrist turns by -0.5 of `turn`, at most ±0.4 rad and 0.6 rad/s
    assert 0.3 < np.abs(q[:, 1]).max() <= 0.8
    assert np.abs(qd[:, 1]).max() <= 1.2
    # the hand's position by hand: 0.6 m from the cart, at `turn` from the vertical
    hand = np.column_stack([q[:, 0] + 0.6 * np.sin(q[:, 1]), 0 * q[:, 0], 0.6 * np.cos(q[:, 1])])
    assert hand[:, 2].min() > 0.2
    distance = np.linalg.norm(hand - [0.6, 0.0, 0.6], axis=1).min()
    assert distance > 0.3
    assert found.margins.rooms[str(where[1])] == pytest.approx(distance - 0.31, abs=2e-3)


def test_what_no_smaller_motion_satisfies_is_named_and_nothing_else(cart):
    mechanism = rd.load(str(cart))
    given = motion_limits(mechanism)
    design = excitation._Design(mechanism, given, given.within(0.1), (Above("hand", 5.0),), 0)
    series = RestingSeries(5, 8.0)
    far_too_large = FourierMotion(series, np.zeros(2), np.full((2, series.size), 0.3))
    assert len(design.margins(far_too_large, design.kept).faults()) > 1
    with pytest.raises(InputError, match=r"active constraints: hand above 5 m$"):
        excitation._within_limits(design, far_too_large)


def test_distances_are_computed_only_of_motions_that_the_joints_can_follow(cart, monkeypatch):
    """They take most of the time, and a motion may have to be shrunk dozens of times."""
    mechanism = rd.load(str(cart))
    given = motion_limits(mechanism)
    design = excitation._Design(mechanism, given, given.within(0.1), (Above("hand", -5.0),), 0)
    series = RestingSeries(5, 8.0)
    rows = np.full((2, series.size), 0.3)
    looked: list[bool] = []
    room = design.room

    def counted(q):
        looked.append(bool((np.abs(q[:, 0]) <= 0.45).all()))
        return room(q)

    monkeypatch.setattr(design, "room", counted)
    found = excitation._within_limits(design, FourierMotion(series, np.zeros(2), rows))
    assert np.abs(found.coefficients).max() < 0.8 * np.abs(rows).max()
    assert looked == [True]


@pytest.mark.usefixtures("quick")
def test_a_region_does_not_push_the_middle_of_a_motion_out_of_its_range(cart):
    """Where the region leaves room for less than the distance that the search would like."""
    cart.write_text(SLIDER.replace('lower="-0.5" upper="0.5"', 'lower="0.4" upper="0.5"'))
    found = excite(str(cart), 8.0, regions=(Outside("cart", (0.0, 0.0, 0.0), 0.478),), seed=2)
    assert 0.478 + 0.01 < found.motion.offsets[0] < 0.495


def test_the_same_seed_gives_the_same_motion_and_another_one_another(cart, quick):
    first, same, other = (excite(str(cart), 5.0, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.motion.coefficients, same.motion.coefficients)
    assert not np.allclose(first.motion.coefficients, other.motion.coefficients)


def test_the_searchs_slopes_are_those_of_its_cost(cart):
    mechanism = rd.load(str(cart))
    given = motion_limits(mechanism)
    where = (Above("hand", 0.5), Outside("hand", (0.6, 0.0, 0.6), 0.5))
    design = excitation._Design(mechanism, given, given.within(0.5), where, 0)
    design.kept.effort[:] = 3.0  # so that every penalty is at work
    rng = np.random.default_rng(5)
    state = [rng.uniform(-1, 1, (40, 2)) * size for size in (0.9, 2.0, 4.0)]
    value, slopes = design.cost(*state, weight=2.0)
    assert design.cost(*state, weight=2.0, sloped=False)[0] == value
    h = 1e-5
    for order in range(3):
        for k, j in ((0, 0), (7, 1), (23, 0), (31, 1)):
            sides = []
            for step in (h, -h):
                moved = [each.copy() for each in state]
                moved[order][k, j] += step
                sides.append(design.cost(*moved, weight=2.0)[0])
            # forward differences of 1e-6 lose half the digits
            expected = (sides[0] - sides[1]) / (2 * h)
            assert slopes[order][k, j] == pytest.approx(expected, rel=1e-3, abs=1e-4)


# --- limits ------------------------------------------------------------------------------------


def test_a_joint_limits_file_goes_over_the_description(cart, tmp_path):
    file = tmp_path / "joint_limits.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "default_velocity_scaling_factor": 0.1,
                "joint_limits": {
                    "slide": {
                        "has_velocity_limits": True,
                        "max_velocity": 0.5,
                        "has_acceleration_limits": True,
                        "max_acceleration": 3.0,
                        "has_position_limits": False,
                        "min_position": -9.0,
                        "max_position": 9.0,
                    },
                    "turn": {
                        "has_position_limits": True,
                        "min_position": -1.0,
                        "max_position": 2.0,
                        "has_effort_limits": True,
                        "max_effort": 7.0,
                    },
                },
            }
        )
    )
    limits = motion_limits(rd.load(str(cart)), file)
    assert limits.joints == ("slide", "turn", "wrist")
    np.testing.assert_array_equal(limits.lower, [-0.5, -1.0, -0.4])
    np.testing.assert_array_equal(limits.upper, [0.5, 2.0, 0.4])
    np.testing.assert_array_equal(limits.rate, [0.5, 1.0, 0.6])
    np.testing.assert_array_equal(limits.acceleration, [3.0, 2.0, 1.2])
    np.testing.assert_array_equal(limits.effort, [100.0, 7.0])
    assert [note.split(":")[0] for note in limits.notes] == ["turn", "turn"]
    kept = limits.within(0.2)
    np.testing.assert_allclose(kept.lower, [-0.4, -0.7, -0.32])
    np.testing.assert_allclose(kept.upper, [0.4, 1.7, 0.32])
    np.testing.assert_allclose(kept.rate, 0.8 * limits.rate)
    np.testing.assert_allclose(kept.acceleration, 0.8 * limits.acceleration)
    np.testing.assert_allclose(kept.effort, 0.8 * limits.effort)


def test_what_is_not_known_is_assumed_and_said(tmp_path):
    text = SLIDER.replace('<limit lower="-0.4" upper="0.4" effort="10" velocity="0.6"/>', "")
    text = text.replace('effort="100" velocity="1"', 'effort="0" velocity="0"')
    limits = motion_limits(rd.load(text.replace('type="revolute"', 'type="continuous"')))
    np.testing.assert_allclose(limits.lower, [-0.5, -math.pi, -np.inf])
    np.testing.assert_allclose(limits.upper, [0.5, math.pi, np.inf])
    np.testing.assert_array_equal(limits.rate, [0.25, 1.0, np.inf])
    np.testing.assert_array_equal(limits.acceleration, [0.5, 2.0, np.inf])
    np.testing.assert_array_equal(limits.effort, [np.inf, np.inf])
    assert len(limits.notes) == 5


BROKEN_LIMITS = [
    ("[]", "joint_limits"),
    ("joint_limits: 3", "joint_limits"),
    ("joint_limits: {elbow: {}}", "'elbow', expected one of slide, turn, wrist"),
    ("joint_limits: {slide: 3}", "slide: found 3"),
    ("joint_limits: {slide: {has_velocity_limits: true}}", "max_velocity: found None"),
    ("joint_limits: {slide: {has_velocity_limits: true, max_velocity: -1}}", "above 0"),
    ("joint_limits: {slide: {has_effort_limits: true, max_effort: .nan}}", "max_effort"),
    ("joint_limits: {turn: {has_position_limits: true, min_position: 1, max_position: 1}}", "turn"),
    ("joint_limits: [", "not readable"),
]


@pytest.mark.parametrize(("text", "words"), BROKEN_LIMITS)
def test_broken_limits_are_one_clear_line(cart, tmp_path, text, words):
    file = tmp_path / "limits.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"\S") as caught:
        motion_limits(rd.load(str(cart)), file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sliding_joint_without_limits_is_refused():
    text = SLIDER.replace('lower="-0.5" upper="0.5"', "")
    with pytest.raises(InputError, match=r"slide: prismatic joint .* --limits"):
        motion_limits(rd.load(text))


@pytest.mark.parametrize(
    ("above", "outside"),
    [
        (["hand"], []), (["hand:x"], []), ([":1"], []), (["hand:1,2"], []), (["hand:nan"], []),
        ([], ["hand:1,2,3"]), ([], ["hand:1,2,3,0"]), ([], ["hand:1,2,3,-1"]),
    ],
)  # fmt: skip
def test_broken_regions_are_refused(above, outside):
    with pytest.raises(InputError, match=r"--above|--outside"):
        regions(above, outside)


def test_regions_say_where_links_may_be():
    high, far = regions(["a:b:0.5"], ["tool:1,0,0,0.25"])
    assert high == Above("a:b", 0.5)
    poses = np.broadcast_to(np.eye(4), (2, 4, 4)).copy()
    poses[:, :3, 3] = [[1.0, 0.0, 0.7], [1.0, 0.0, 0.1]]
    np.testing.assert_allclose(high.nearest({"a:b": poses}.__getitem__).room, [0.2, -0.4])
    np.testing.assert_allclose(far.nearest({"tool": poses}.__getitem__).room, [0.45, -0.15])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"duration": 0.0}, "duration"),
        ({"duration": math.nan}, "duration"),
        ({"duration": 601.0}, "duration"),
        ({"margin": 0.95}, "margin"),
        ({"margin": -0.1}, "margin"),
        ({"harmonics": 1}, "harmonics"),
        ({"regions": (Above("nobody", 0.0),)}, "nobody"),
        ({"regions": (Above("hand", 2.0),)}, "hand above 2 m"),
    ],
)
def test_what_cannot_be_had_is_one_clear_line(cart, quick, changes, words):
    with pytest.raises(InputError, match=r"\S") as caught:
        excite(str(cart), **{"duration": 5.0, **changes})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_closed_chains_are_refused():
    with pytest.raises(InputError, match="loops"):
        excite(str(ROOT / "config" / "five_bar.yaml"))


# --- the command and its files -----------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_the_command_writes_what_identify_and_the_source_read(cart, tmp_path, capsys):
    out = tmp_path / "new" / "motion.yaml"
    code = cli.main(["excite", str(cart), "--duration", "10", "--out", str(out), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert result["joints"] == ["slide", "turn"]
    assert result["after"]["excited"] == result["parameters"]
    joints, waypoints = read_motion(out)
    assert joints == ("slide", "turn")
    assert waypoints.times[0] == 0.0
    assert waypoints.times[-1] == 10.0
    assert set(waypoints.carries) == {3}
    assert not np.any([waypoints.qd[[0, -1]], waypoints.qdd[[0, -1]]])
    np.testing.assert_allclose(list(result["start"].values()), waypoints.q[0], atol=1e-11)
    # other readers of the format see the same
    plain = yaml.safe_load(out.read_text())
    assert plain["points"][7]["time_from_start"] == {"sec": 0, "nanosec": 350_000_000}
    np.testing.assert_array_equal(plain["points"][7]["positions"], waypoints.q[7])
    # the table is a recording of the described robot, so identification finds that robot
    found = rd.identify(str(cart), result["files"]["table"])
    assert found.excitation.determined > 0.9 * found.excitation.identifiable
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 50, 2))
    tau = rd.InverseDynamics(rd.load(str(cart)), backend="python")(*motion)
    again = rd.InverseDynamics(found.mechanism, backend="python")(*motion)
    # filters and their ends leave about a part in a thousand
    assert np.abs(again - tau).max() < 5e-3 * np.abs(tau).max()
    assert Path(result["files"]["picture"]).read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("quick")
def test_the_command_says_in_words_what_it_found(cart, tmp_path, capsys):
    out = str(tmp_path / "motion.yml")
    assert (
        cli.main(["excite", str(cart), "--duration", "5", "--above", "hand:0.1", "--out", out]) == 0
    )
    text = capsys.readouterr().out
    for words in ("condition number", "hand above 0.1 m", "turn: no position limits", "motion.csv"):
        assert words in text


@pytest.mark.parametrize(
    "options", [["--out", "motion.txt"], ["--seed", "-1"], ["--above", "hand"], ["--limits", "no"]]
)
def test_the_command_refuses_in_one_line(cart, tmp_path, capsys, options):
    out = ["--out", str(tmp_path / "motion.yaml")]
    assert cli.main(["excite", str(cart), *out, *options]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_motion_reads_back_as_it_was_written(tmp_path):
    rng = np.random.default_rng(4)
    time = np.array([0.0, 0.1, 0.25, 1.0 / 3 + 1])
    states = rng.normal(size=(3, 4, 2)).round(12)
    path = tmp_path / "motion.yaml"
    write_motion(path, ("yes", "b: [c"), time, *states)
    joints, waypoints = read_motion(path)
    assert joints == ("yes", "b: [c")
    np.testing.assert_allclose(waypoints.times, time, atol=0.5e-9)
    np.testing.assert_array_equal([waypoints.q, waypoints.qd, waypoints.qdd], states)


GOOD = "{positions: [0.0], time_from_start: {sec: 0}}"
LATER = "{positions: [1.0], time_from_start: {sec: 1, nanosec: 5}}"


def test_points_may_carry_positions_alone(tmp_path):
    file = tmp_path / "motion.yaml"
    file.write_text(f"joint_names: [a]\npoints: [{GOOD}, {LATER}]")
    waypoints = read_motion(file)[1]
    assert list(waypoints.carries) == [1, 1]
    assert waypoints.times[1] == 1.000000005


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3", "joint_names and points"),
        (f"points: [{GOOD}, {LATER}]", "joint_names"),
        (f"joint_names: [a, a]\npoints: [{GOOD}, {LATER}]", "joint_names"),
        (f"joint_names: [3]\npoints: [{GOOD}, {LATER}]", "joint_names"),
        (f"joint_names: [a]\npoints: [{GOOD}]", "at least two"),
        (f"joint_names: [a]\npoints: [{GOOD}, 3]", "point 2"),
        (f"joint_names: [a]\npoints: [{LATER}, {GOOD}]", "later than"),
        (f"joint_names: [a, b]\npoints: [{GOOD}, {LATER}]", "point 1: positions"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [.nan], time_from_start: {{sec: 1}}}}]",
         "point 2: positions"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [true], time_from_start: {{sec: 1}}}}]",
         "point 2: positions"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0]}}]", "time_from_start"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0], time_from_start: "
         "{sec: 1, nanosec: 1000000000}}]", "time_from_start"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0], time_from_start: {{sec: -1}}}}]",
         "time_from_start"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0], time_from_start: {{sec: "
         "true}}]", "time_from_start"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1{400 * '0'}], time_from_start: "
         "{sec: 1}}]", "point 2: positions"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0], time_from_start: {{s: 1}}}}]",
         "time_from_start"),
        (f"joint_names: [a]\npoints: [{GOOD}, {{positions: [1.0], accelerations: [0.0], "
         "time_from_start: {sec: 1}}]", "velocities as well as accelerations"),
        ("joint_names: [", "not readable"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_motion_is_one_clear_line(tmp_path, text, words):
    file = tmp_path / "motion.yaml"
    file.write_text(text)
    with pytest.raises(TrajectoryError, match=r"\S") as caught:
        read_motion(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_motion_that_is_not_there_is_one_clear_line(tmp_path):
    with pytest.raises(TrajectoryError, match="nowhere"):
        read_motion(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "name", ["arm/elbow", "a;b;c;d;e;f;g;h;i", 'a,"b"', "50%2F", "Ärm", "x\ty"]
)
def test_the_table_is_a_recording_whatever_the_joints_are_called(tmp_path, name):
    time = np.linspace(0, 1, 101)
    efforts = np.column_stack([np.cos(time), np.sin(time)])
    joints = (name, "other")

    class Motion:
        duration = 1.0

        def __call__(self, _):
            return 2 * efforts, efforts, efforts

    found = SimpleNamespace(joints=joints, motion=Motion(), efforts=lambda _: efforts)
    _write_rows(found, tmp_path / "motion.csv")
    read_back = read(tmp_path / "motion.csv")
    assert read_back.names == joints
    (stream,) = read_back.streams
    assert np.array_equal(stream.effort, efforts)
    assert np.array_equal(stream.position, 2 * efforts)


def test_a_robot_that_cannot_move_is_named():
    fixed = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
    robot = rd.load(f'<robot name="r"><link name="a"/><link name="b"/>{fixed}</robot>')
    with pytest.raises(InputError, match="found 'no joint that moves', expected at least one"):
        excite(robot)
