# SPDX-License-Identifier: Apache-2.0
"""A closed home, found and written; and what cannot be closed."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import closed_robots
import numpy as np
import pytest
import yaml
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.app.check_report import survey
from robot_dynamics.app.closing_home import _Skeleton, close
from robot_dynamics.closure import Closer, LoopGeometry, assembly_modes
from robot_dynamics.closure.geometry.home_search import HomeSearch, Part
from robot_dynamics.description.yaml_home import with_home
from robot_dynamics.errors import ClosureWarning

FIVE_BAR = CONFIG / "five_bar.yaml"


@pytest.mark.parametrize(
    "home",
    [
        "home: {a: 1, b: 2}  # rough\n",
        "home: {a: 1,\n       b: 2}  # rough\n",
        "home:\n  a: 1  # rough\n  b: 2\n",
        "home:  # rough\n",
        "# rough\n",
    ],
)
@pytest.mark.parametrize("after", ["# behind\nplatform: tip\n", ""])
def test_home_is_replaced_and_nothing_else(home, after):
    text = f"# a robot\nrobot: x\n{home}{after}"
    made = with_home(text, {"a": 0.1, "no": -1e-5}, "x.yaml")
    assert yaml.safe_load(made.replace("'no'", "no_")) == {
        **{k: v for k, v in yaml.safe_load(text).items() if k != "home"},
        "home": {"a": 0.1, "no_": -1e-5},
    }
    assert made.startswith("# a robot\n")
    assert ("# behind" in made) == ("# behind" in text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("home:  # rough\n  a: 1   # the arm\n  b: 2\n# end\n",
         "home:  # rough\n  a: 0.1   # the arm\n  b: 2\n  c: -3.0\n# end\n"),
        ("home: {a: 1, b: 2}  # rough\nx: 1", "home: {a: 0.1, b: 2, c: -3.0}  # rough\nx: 1"),
        ("home: {a: 1,  # one\n       b: 2,\n}\n",
         "home: {a: 0.1,  # one\n       b: 2, c: -3.0,\n}\n"),
        ("home: {}  # none\n", "home: {a: 0.1, b: 2.0, c: -3.0}  # none\n"),
        ("home:  # none\nx: 1\n", "home:  # none\n  a: 0.1\n  b: 2.0\n  c: -3.0\nx: 1\n"),
        ("home:", "home:\n  a: 0.1\n  b: 2.0\n  c: -3.0"),
        ("home:\n    a: 0.10\n    # between\n    c: -3\n    b: 9",
         "home:\n    a: 0.10\n    # between\n    c: -3\n    b: 2.0"),
        ("x: 1\n# end", "x: 1\n# end\nhome:\n  a: 0.1\n  b: 2.0\n  c: -3.0\n"),
    ],
)  # fmt: skip
def test_comments_stay_on_their_lines(before, after):
    assert with_home(before, {"a": 0.1, "b": 2.0, "c": -3.0}, "x.yaml") == after


def test_an_anchored_home_is_left_alone():
    text = "home: &h {a: 1}\nlocked: *h\n"
    with pytest.raises(rd.DescriptionError, match=r"x\.yaml: home: cannot be changed"):
        with_home(text, {"a": 2.0}, "x.yaml")


def test_the_modes_of_a_five_bar_are_mirrored_at_its_motors(tmp_path):
    """Two circles meet twice: the same motors, the tip on either side."""
    mechanism = rd.load(FIVE_BAR)
    first, second = assembly_modes(mechanism)
    solver = Closer(LoopGeometry.of(mechanism))
    tips = []
    for mode in (first, second):
        q = np.array([mode.home[name] for name in solver.geometry.names])
        assert solver.state(q).residual < 1e-7
        assert [mode.home[name] for name in mechanism.actuated] == pytest.approx(
            [mechanism.home[name] for name in mechanism.actuated], abs=1e-9
        )
        tips.append(solver.state(q).platform_pose[:3, 3])
    assert first.distance == 0.0 < second.distance
    assert np.linalg.norm(tips[0] - tips[1]) > 0.05
    # the second written down, and read as it is
    copy = tmp_path / "five_bar.yaml"
    copy.write_text(FIVE_BAR.read_text())
    result = close(str(copy), out=str(copy), mode=2).result
    assert result["home"] == pytest.approx(dict(second.home))
    other = Closer(LoopGeometry.of(rd.load(copy)))
    assert other.home.platform_pose[:3, 3] == pytest.approx(tips[1], abs=1e-9)
    assert abs(other.mobility.miss).max() < 1e-10


def test_an_arm_is_drawn_beyond_the_joint_that_it_is_closed_at(tmp_path):
    robot = yaml.safe_load(FIVE_BAR.read_text())
    (arm,) = (link for link in robot["links"] if link["name"] == "distal2")
    arm["a"] += 0.2
    robot["loops"][0]["successor"]["xyz"] = [-0.2, 0.0, 0.0]
    mechanism = closed_robots.load(robot, tmp_path)
    mode = assembly_modes(mechanism)[0]
    lines = _Skeleton(mechanism, mode).lines["distal2"]
    elbow = mode.poses["proximal2"].translation  # where its frame ends, the arm begins
    assert np.linalg.norm(lines - elbow, axis=1).max() == pytest.approx(arm["a"])


@pytest.mark.parametrize("seed", range(2))
def test_a_rough_home_of_a_plane_whose_angles_were_rounded_is_closed(seed, tmp_path):
    """The rows out of the plane contradict each other by the rounding: they stay open."""
    robot = closed_robots.random_five_bar(seed)
    rng = np.random.default_rng(seed)
    for link in robot["links"][1:]:
        place = {"xyz": [0.0, 0.0, 0.0], **link.get("origin", {})}
        link["origin"] = {**place, "rpy": rng.uniform(-4e-6, 4e-6, 3).tolist()}
    for joint in ("qp0", "qp1"):
        robot["home"][joint] += rng.uniform(2.0, 3.0)
    with pytest.warns(ClosureWarning, match="a search closed it"):
        chain = closed_robots.ClosedChain(closed_robots.load(robot, tmp_path))
    assert 1e-9 < chain.home.residual < 1e-4
    assert chain.home.condition < 100
    assert chain.home.q_a == pytest.approx([robot["home"][name] for name in robot["actuated"]])


def rough(seed: int, tilt: float) -> dict:
    """A 3RRR whose passive joints are off at home, and whose legs are not quite in one plane."""
    robot, rng = closed_robots.random_rrr(seed), np.random.default_rng(seed)
    for joint in ("qp0", "qp1", "qp2", "qc"):
        robot["home"][joint] += rng.uniform(-0.3, 0.3)
    for link in robot["links"]:
        if link["name"].startswith("proximal"):
            link["origin"]["rpy"] = rng.uniform(-tilt, tilt, 3).tolist()
    return robot


@pytest.mark.parametrize("seed", range(3))
def test_a_rough_home_of_rounded_legs_is_closed_in_its_assembly_mode(seed, tmp_path):
    exact = closed_robots.random_rrr(seed)["home"]
    with pytest.warns(ClosureWarning, match="a search closed it"):
        chain = closed_robots.ClosedChain(closed_robots.load(rough(seed, 1.5e-4), tmp_path))
    assert chain.mechanism.home == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_loops_that_all_but_close_are_closed_in_no_other_assembly_mode(seed, tmp_path):
    with pytest.raises(rd.DescriptionError, match="redundant constraints contradict each other"):
        closed_robots.ClosedChain(closed_robots.load(rough(seed, 3e-3), tmp_path))


def test_what_can_not_be_closed_or_written_is_named(tmp_path):
    copy = tmp_path / "five_bar.yaml"
    copy.write_text(FIVE_BAR.read_text())
    for arguments, words in (
        ({"mode": 3}, "mode: found 3, expected 1 to 2"),
        ({"mode": 0}, "mode: found 0"),
        ({"out": str(tmp_path / "elsewhere" / "x.yaml")}, "--out"),
    ):
        with pytest.raises(rd.RobotDynamicsError, match=words):
            close(str(copy), **arguments)
    with pytest.raises(rd.RobotDynamicsError, match="nothing to close: it has no `loops`"):
        close(str(CONFIG / "polar.yaml"))


# --- which of many assembly modes is meant ----------------------------------------------------

MOTORS = {"arm": 1.2, "crank": 2.9}
REAL = {
    # every rod is parallel to its arm
    "rod_foot": MOTORS["arm"] - MOTORS["crank"],
    "elbow": MOTORS["crank"] - np.pi - MOTORS["arm"],
    "level_foot": MOTORS["arm"],
    "triangle_pivot": -MOTORS["arm"],
    "upper_foot": MOTORS["crank"] - np.pi,
    "wrist": np.pi - MOTORS["crank"],
}


def written(tmp_path, **more):
    return str(written_robot(tmp_path, closed_robots.palletiser(dict(MOTORS)) | more))


def written_robot(tmp_path, robot):
    file = tmp_path / "palletiser.yaml"
    file.write_text(yaml.safe_dump(robot))
    return file


def is_real(home) -> bool:
    return all(abs(np.sin((home[name] - REAL[name]) / 2)) < 1e-6 for name in REAL)


def test_every_way_to_assemble_three_parallelograms_is_told_with_where_it_puts_the_tool(tmp_path):
    """Each parallelogram may be crossed: two to the third."""
    output = close(written(tmp_path), picture=str(tmp_path / "modes.svg"))
    result = output.result
    modes = result["assembly_modes"]
    assert len(modes) == 8
    assert sum(is_real(mode["home"]) for mode in modes) == 1
    rows = [
        line for line in output.text.splitlines() if line.lstrip()[:2] in f"{'1.2.3.4.5.6.7.8.'}"
    ]
    assert [row.split(".")[0].strip() for row in rows] == list("12345678")
    # home says the motors alone: nothing tells the modes apart
    assert len(result["warnings"]) == 1
    assert "modes 1, 2, 3, 4, 5, 6, 7, 8 are equally near" in result["warnings"][0]
    robot = closed_robots.palletiser({})
    model, _ = closed_robots.robots.dh_to_pinocchio(robot, rotors=False)
    for mode in modes:
        places = closed_robots.frames(model, mode["home"])
        for link in ("tool", "rod", "upper_rod", "level_rod"):
            assert np.array(mode["poses"][link]) == pytest.approx(
                places[link].homogeneous, abs=1e-9
            )
    assert "<svg" in (tmp_path / "modes.svg").read_text()


def test_modes_are_told_by_the_tips_that_tell_them_apart(tmp_path):
    """Two four-bars after four arms of a tree: four modes, and each has places of its own in the
    table, though the arms come first."""
    robot: dict = {"links": [], "loops": [], "actuated": [], "home": {}}

    def link(name: str, parent: str, length: float, y: float = 0.0) -> None:
        joint = {"name": f"q_{name}", "type": "revolute"}
        origin = {"xyz": [0.0, y, 0.0]}
        robot["links"].append(
            {
                "name": name,
                "parent": parent,
                "joint": joint,
                "a": length,
                "mass": 1.0,
                "origin": origin,
            }
        )

    for k in range(4):
        link(f"arm{k}", "base", 0.2)
        robot["actuated"].append(f"q_arm{k}")
    for k in range(2):
        link(f"crank{k}", "base", 0.2, float(k))
        link(f"rod{k}", f"crank{k}", 0.5)
        link(f"rocker{k}", "base", 0.4, k - 0.45)
        ends = ({"link": f"rocker{k}"}, {"link": f"rod{k}"})
        robot["loops"].append(
            {"type": "revolute"} | dict(zip(("predecessor", "successor"), ends, strict=True))
        )
        robot["actuated"].append(f"q_crank{k}")
        robot["home"][f"q_crank{k}"] = 0.4
    modes = close(str(written_robot(tmp_path, robot))).text.splitlines()
    places = [re.split(r"  +", line.strip())[3:] for line in modes if re.match(r" *\d+\. ", line)]
    assert len(places) == 4
    assert len({tuple(place) for place in places}) == 4


@pytest.mark.parametrize(
    "near",
    [
        {"elbow": REAL["elbow"] + 0.3, "level_foot": 1.0, "wrist": 0.0},
        {"elbow": REAL["elbow"] + 2 * np.pi, "triangle_pivot": -1.0, "upper_foot": 0.1},
        {"level_rod": {"xyz": [-0.2, 0, 0]}, "rod_foot": -1.5, "triangle": {"xyz": [0.29, 0, 0.75],
         "rpy": [np.pi / 2, 0, 0]}, "tool": {"xyz": [1.2, 0.1, 0.5], "rpy": [np.pi / 2, 0, 0.2]}},
    ],
)  # fmt: skip
def test_near_says_which_mode_is_meant(near, tmp_path):
    file = written(tmp_path, near=near)
    result = close(file, out=file).result
    assert result["warnings"] == []
    assert is_real(result["home"])
    mechanism = rd.load(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain = closed_robots.ClosedChain(mechanism)
    # its torques are those of Pinocchio's cut tree there
    robot = closed_robots.palletiser(dict(mechanism.home))
    oracle = closed_robots.Oracle(robot, chain.coordinate_names, 2)
    q, qd, qdd = chain.home.q_a + 0.05, np.array([0.4, -0.7]), np.array([-2.0, 3.0])
    expected = oracle.torques(chain.forward_kinematics(q).q_r, qd, qdd)
    assert relative(chain(q, qd, qdd), expected) < 1e-9


def test_near_that_fits_several_modes_is_said(tmp_path):
    """Where the tool is does not tell how the parallelograms behind it are."""
    result = close(written(tmp_path, near={"elbow": REAL["elbow"]})).result
    (words,) = result["warnings"]
    assert words.startswith("near: modes 1, 2, 3, 4 match it about equally well")
    # one is a little nearer than the other, which decides nothing
    near = {"elbow": REAL["elbow"], "triangle_pivot": -1.0, "upper_foot": -0.4}
    (words,) = close(written(tmp_path, near=near)).result["warnings"]
    assert words.startswith("near: modes 1, 2 match it about equally well")


def test_a_home_far_from_near_is_warned_of(tmp_path):
    file = written(tmp_path)
    modes = close(file).result["assembly_modes"]
    crossed = next(mode["home"] for mode in modes if not is_real(mode["home"]))
    robot = closed_robots.palletiser(crossed) | {
        "near": {k: REAL[k] for k in ("elbow", "wrist", "level_foot")}
    }
    with pytest.warns(ClosureWarning, match="palletiser.*home is .* away from `near`"):
        closed_robots.ClosedChain(rd.load(written_robot(tmp_path, robot)))
    assert any("away from `near`" in words for words in survey(file)[1]["warnings"])
    # a rough home that is closed by a search is closed there
    rough = {**crossed, **{name: value + 0.2 for name, value in REAL.items()}}
    robot["home"] = rough
    with pytest.warns(ClosureWarning, match="a search closed it"):
        chain = closed_robots.ClosedChain(rd.load(written_robot(tmp_path, robot)))
    assert is_real(dict(zip(chain.coordinate_names, chain.home.q_r, strict=True)))
    # also one that is rough about another mode
    robot["home"] = {n: x + 0.2 * (n not in MOTORS) for n, x in crossed.items()}
    with pytest.warns(ClosureWarning, match="a search closed it"):
        chain = closed_robots.ClosedChain(rd.load(written_robot(tmp_path, robot)))
    assert is_real(dict(zip(chain.coordinate_names, chain.home.q_r, strict=True)))


@pytest.mark.parametrize(
    ("near", "words"),
    [
        ({"elbo": 1.0}, "near: found 'elbo'"),
        ({"elbow": "x"}, r"near\.elbow: found 'x'"),
        ({"elbow": {"xyz": [0, 0, 0]}}, "near: link"),
        ({"tool": {"rpy": [0, 0, 0]}}, r"near\.tool: .*xyz"),
        ({"tool": {"xyz": [0, 0]}}, r"near\.tool\.xyz"),
        ({"tool": {"xyz": [0, 0, 0], "at": 1}}, r"near\.tool.*unknown key"),
        ([1.0], "near: found"),
    ],
)
def test_near_is_validated(near, words, tmp_path):
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(written(tmp_path, near=near))


def test_check_says_that_there_are_other_modes_unless_near_does(tmp_path):
    file = written(tmp_path)
    close(file, out=file, mode=1)
    home = yaml.safe_load(Path(file).read_text())["home"]
    assert any("one of 8 assembly modes" in note for note in survey(file)[1]["notes"])
    with_near = written_robot(tmp_path, closed_robots.palletiser(home) | {"near": home})
    assert not any("assembly modes" in note for note in survey(str(with_near))[1]["notes"])


def test_angles_are_counted_from_home_on(tmp_path):
    """A closure that a search finds has every joint within half a turn of where home has it."""
    robot = closed_robots.palletiser(dict(MOTORS))
    solver = Closer(LoopGeometry.of(closed_robots.load(robot | {"home": MOTORS | REAL}, tmp_path)))
    names = solver.geometry.names
    whole = HomeSearch(solver.geometry, solver.mobility.row_scale, solver.scale).whole
    turns = np.ones(len(names), dtype=bool)
    turning, sliding = (replace(whole, turns=each) for each in (turns, ~turns))
    near = np.array([4.0, -5.0, 3.0, 9.0, -3.3, 0.0, 6.2, -7.0])
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = turning.unwound(near + rng.uniform(-20, 20, 8), near)
        assert (abs(found - near) <= np.pi).all()
    assert sliding.unwound(near + 30.0, near) == pytest.approx(near + 30.0)
    # and so have the modes
    robot["home"] = {name: value + 2 * np.pi for name, value in (MOTORS | REAL).items()}
    for mode in assembly_modes(closed_robots.load(robot, tmp_path)):
        assert max(abs(mode.home[name] - robot["home"][name]) for name in names) <= np.pi + 1e-9


def test_a_ball_joint_with_two_hinges_in_line_is_caught(tmp_path):
    """There its rank is lower than beside it: it looks closed, and can't move as it should."""
    robot = closed_robots.random_gough_stewart(1)
    solver = Closer(LoopGeometry.of(closed_robots.load(robot, tmp_path)))
    closing = HomeSearch(solver.geometry, solver.mobility.row_scale, solver.scale)
    (part,) = closing.parts
    names = solver.geometry.names
    free = np.arange(len(names)) >= solver.geometry.actuated
    home = solver.mobility.q_home
    assert not part.is_caught(home, free)
    tree = solver.geometry.mechanism
    top = [name for name in tree.path("platform")[:-1] if tree.link(name).joint.moves]
    caught = home.copy()
    # the middle one of three hinges about x, y, z turned by a right angle
    caught[names.index(tree.link(top[1]).joint.name)] = np.pi / 2
    assert part.is_caught(caught, free)


def descent(error, jacobian, columns: int = 1) -> Part:
    """Of joints that turn, with every row as it is."""
    ones = np.ones(columns)
    return Part(
        (), np.ones(columns), np.arange(columns), error, jacobian, ones, np.ones(columns, bool)
    )


@pytest.mark.parametrize("near", [True, False])
def test_the_descent_is_damped_where_a_whole_step_would_overshoot(near):
    part = descent(lambda q: np.tanh(20 * q), lambda q: 20 / np.cosh(20 * q)[:, None] ** 2)
    q, e = part.descend(np.array([0.15]), np.array([True]), near)
    assert abs(q[0]) < 1e-12
    assert abs(e[0]) < 1e-12


@pytest.mark.parametrize("near", [True, False])
def test_the_descent_does_not_leap_over_closures(near):
    part = descent(np.sin, lambda q: np.cos(q)[:, None])
    q, _ = part.descend(np.array([1.5]), np.array([True]), near)
    assert abs(q[0]) < 1e-12


def test_the_descent_sheds_its_damping_and_ends_at_the_least_error():
    """On a row so slight that damping would leave it open."""
    part = descent(lambda q: 0.003 * q, lambda q: np.full((1, 1), 0.003))
    q, _ = part.descend(np.array([0.4]), np.array([True]))
    assert abs(q[0]) < 1e-9


@pytest.mark.parametrize("near", [True, False])
def test_what_only_rounding_resists_is_left_alone(near):
    slopes = np.diag([1.0, 1e-6])
    part = descent(lambda q: slopes @ (q - [0.1, 0.3]), lambda _: slopes, 2)
    start, free = np.array([0.0, 0.2]), np.array([True, True])
    assert part.descend(start, free, near)[0] == pytest.approx([0.1, 0.2], abs=1e-9)
    # what is not free stays
    assert part.descend(start, np.array([False, True]))[0][0] == 0.0


def test_a_closure_far_away_is_not_near():
    """Passive joints that have to turn by more than half a radian need the search that is said."""
    solver = Closer(LoopGeometry.of(rd.load(CONFIG / "five_bar.yaml")))
    search = HomeSearch(solver.geometry, solver.mobility.row_scale, solver.scale)
    home, free = solver.mobility.q_home, np.arange(len(solver.scale)) >= solver.geometry.actuated
    for off, near in ((0.3, True), (0.7, False)):
        start = home + off * free
        assert search.from_pose(start, free) == pytest.approx(home, abs=1e-9)
        found = search.from_near(start, free)
        assert (found is not None) == near
        assert not near or found == pytest.approx(home, abs=1e-9)
    # with nothing to move the loops stay open
    assert search.from_near(home + 0.01 * free, np.zeros_like(free)) is None


def test_rows_that_disagree_end_the_descent_at_once_where_they_disagree_least():
    calls = []

    def error(q: np.ndarray) -> np.ndarray:
        calls.append(q)
        return np.array([q[0] - 0.1, q[0] - 0.1002])

    part = replace(descent(error, lambda _: np.ones((2, 1))), row_scale=np.ones(2))
    q, _ = part.descend(np.zeros(1), np.array([True]), near=True)
    assert q == pytest.approx([0.1001], abs=1e-12)
    assert len(calls) < 6


def test_the_search_measures_lengths_by_the_robots_size():
    solver = Closer(LoopGeometry.of(rd.load(CONFIG / "gough_stewart.yaml")))
    row_scale, scale = solver.mobility.row_scale, solver.scale
    assert set(np.unique(scale).tolist()) == {1.0, solver.size} != {1.0}
    whole = HomeSearch(solver.geometry, row_scale, scale).whole
    q = solver.mobility.q_home + 0.1 * scale
    assert whole.error(q) == pytest.approx(row_scale * solver.geometry.residual(q), abs=1e-15)
    steps = 1e-6 * np.diag(scale)
    slopes = [(whole.error(q + d) - whole.error(q - d)) / 2e-6 for d in steps]
    assert relative(whole.jacobian(q), np.transpose(slopes)) < 1e-8
    # the root mean square of what each joint moves, in such units
    assert whole.distance(q, solver.mobility.q_home) == pytest.approx(0.1)
