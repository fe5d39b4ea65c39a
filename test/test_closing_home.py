"""A closed home, found and written; what can't be."""

from __future__ import annotations

import closed_robots
import numpy as np
import pytest
import yaml
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.app.closing_home import close
from robot_dynamics.closure import ClosureSolver, LoopGeometry, assembly_modes
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


def test_an_anchored_home_is_left_alone():
    text = "home: &h {a: 1}\nlocked: *h\n"
    with pytest.raises(rd.DescriptionError, match=r"x\.yaml: home: it can't be replaced"):
        with_home(text, {"a": 2.0}, "x.yaml")


def test_the_modes_of_a_five_bar_are_mirrored_at_its_motors(tmp_path):
    """Two circles meet twice: the same motors, the tip on either side."""
    mechanism = rd.load(FIVE_BAR)
    first, second = assembly_modes(mechanism)
    solver = ClosureSolver(LoopGeometry.of(mechanism))
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
    result = close(str(copy), out=str(copy), mode=2)
    assert result["home"] == pytest.approx(dict(second.home))
    other = ClosureSolver(LoopGeometry.of(rd.load(copy)))
    assert other.home.platform_pose[:3, 3] == pytest.approx(tips[1], abs=1e-9)
    assert abs(other.mobility.miss).max() < 1e-10


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
    with pytest.warns(ClosureWarning, match="closed by a search"):
        chain = closed_robots.ClosedChain(closed_robots.load(robot, tmp_path))
    assert 1e-9 < chain.home.residual < 1e-4
    assert chain.home.condition < 100
    assert chain.home.q_a == pytest.approx([robot["home"][name] for name in robot["actuated"]])


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
    with pytest.raises(rd.RobotDynamicsError, match="no loops"):
        close(str(CONFIG / "polar.yaml"))
