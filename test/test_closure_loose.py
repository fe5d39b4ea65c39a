# SPDX-License-Identifier: Apache-2.0
"""Rods between ball joints spin about themselves; poses that do not close are searched for."""

from __future__ import annotations

import pickle
import re
from copy import deepcopy

import numpy as np
import pytest
import yaml
from closed_robots import Oracle, load, revolute

import robot_dynamics as rd
from robot_dynamics.closure import assembly_modes, prepared
from robot_dynamics.closure.geometry.home_search import HomeSearch
from robot_dynamics.errors import ClosureWarning, DescriptionError, InputError
from robot_dynamics.mechanism import Pose
from robot_dynamics.scalar import rotation_rpy

QUARTER = np.pi / 2


def spatial_four_bar(izz: float = 0.0, center: float = 0.0) -> dict:
    """Crank, rod on two ball joints, rocker (RSSR): the rod's spin is idle. Home is rough."""
    thin = {"ixx": 0.02, "iyy": 0.02, "izz": izz}
    stout = {"ixx": 0.01, "iyy": 0.02, "izz": 0.03}
    return {
        "robot": "rssr",
        "gravity": [1.0, -2.0, -9.0],
        "links": [
            {
                "name": "crank",
                "joint": revolute("crank"),
                "a": 0.15,
                "mass": 1.5,
                "center_of_mass": [-0.05, 0.02, 0.01],
                "inertia": stout,
            },
            {"name": "wrist0", "joint": revolute("yaw"), "alpha": QUARTER},
            {"name": "wrist1", "joint": revolute("pitch"), "theta": QUARTER, "alpha": QUARTER},
            {
                "name": "rod",
                "joint": revolute("spin"),
                "d": 0.45,
                "mass": 0.8,
                "center_of_mass": [center, 0.0, -0.2],
                "inertia": thin,
            },
            {
                "name": "rocker",
                "parent": "base",
                "origin": {"xyz": [0.4, 0.15, 0.1], "rpy": [0.6, 0.3, 0.2]},
                "joint": revolute("rocker"),
                "a": 0.3,
                "mass": 1.2,
                "center_of_mass": [-0.1, 0.0, 0.03],
                "inertia": stout,
                "friction": {"viscous": 0.3},
            },
        ],
        "loops": [
            {
                "name": "ball",
                "type": "spherical",
                "predecessor": {"link": "rocker"},
                "successor": {"link": "rod"},
            }
        ],
        "actuated": ["crank"],
        "home": {"crank": 0.4, "yaw": 0.3, "pitch": 0.4, "spin": 0.7, "rocker": 1.0},
    }


def built(robot: dict, folder) -> rd.InverseDynamics:
    with pytest.warns(ClosureWarning):
        return rd.InverseDynamics(load(robot, folder), backend="python")


def test_a_rod_that_spins_about_itself_is_held_and_its_spin_does_no_work(tmp_path):
    robot = spatial_four_bar()
    with pytest.warns(ClosureWarning) as caught:
        dynamics = rd.InverseDynamics(load(robot, tmp_path), backend="python")
    rough, loose = (str(each.message) for each in caught)
    assert "home: loop 'ball' does not close" in rough
    assert "'rod' can spin freely about its own axis (spin)" in loose
    assert "spin is locked at " in loose
    assert "`locked: {spin: " in loose
    assert {each.filename for each in caught} == {__file__}
    chain = dynamics.closed
    assert chain.degrees_of_freedom == 1
    assert "spin" not in dynamics.mechanism.joint_names
    # the motors are where home puts them
    assert chain.home.q_a == pytest.approx([0.4], abs=1e-12)

    # Pinocchio's cut tree with the spin as a coordinate of its own, turned anyhow
    names = ("crank", "spin", "yaw", "pitch", "rocker")
    oracle = Oracle(robot, names, 2)
    generator = np.random.default_rng(3)
    for _ in range(3):
        q, qd, qdd = generator.uniform(-0.3, 0.3, (3, 1))
        found = chain.forward_kinematics(q + 0.4)
        joints = dict(zip(chain.coordinate_names, found.q_r, strict=True))
        spin, rate, acceleration = generator.uniform(-2, 2, 3)
        whole = np.array([spin if name == "spin" else joints[name] for name in names])
        tau = oracle.torques(whole, np.array([qd[0], rate]), np.array([qdd[0], acceleration]))
        assert tau[1] == pytest.approx(0.0, abs=1e-12)
        assert dynamics(q + 0.4, qd, qdd) == pytest.approx(tau[:1], abs=1e-9)


def test_where_a_round_rod_is_held_makes_no_difference(tmp_path):
    robot = spatial_four_bar(izz=0.004)
    free = built(robot, tmp_path)
    robot["locked"] = {"spin": -1.3}
    del robot["home"]["spin"]
    locked = built(robot, tmp_path)
    state = np.random.default_rng(4).uniform(-0.3, 0.3, (3, 6, 1))
    assert free(*state) == pytest.approx(locked(*state), abs=1e-10)


def test_what_was_held_stays_so_in_copies_and_is_said_once(tmp_path, recwarn):
    dynamics = built(spatial_four_bar(), tmp_path)
    recwarn.clear()
    state = np.array([[0.5], [0.2], [0.1]])
    for copy in (pickle.loads(pickle.dumps(dynamics)), deepcopy(dynamics)):
        assert copy(*state) == pytest.approx(dynamics(*state), abs=1e-12)
    dynamics.gravity_vector = [0.0, 0.0, -3.7]
    assert np.isfinite(dynamics(*state)).all()
    assert not [each for each in recwarn if issubclass(each.category, ClosureWarning)]


def test_a_rod_that_gravity_turns_is_refused_with_the_line_that_holds_it(tmp_path):
    robot = spatial_four_bar(center=0.01)
    with pytest.raises(DescriptionError) as error:
        rd.InverseDynamics(load(robot, tmp_path))
    text = str(error.value)
    assert "under-actuated: 1 motor for 2 degrees of freedom" in text
    assert "'rod' can spin freely about its own axis (spin), with its centre of mass 0.01 m" in text
    assert "`locked: {spin: 0.7" in text


def test_a_rod_beside_motors_in_excess_is_no_reason_to_name_fewer_of_them(tmp_path):
    """Of three motors two are in excess; the rod's spin, which none of them drives, is what is to
    be mended, and with the line of the message they share the torque."""
    robot = spatial_four_bar(center=0.01)
    robot["actuated"] = ["crank", "rocker", "yaw"]
    with pytest.raises(DescriptionError) as error:
        rd.InverseDynamics(load(robot, tmp_path))
    text = str(error.value)
    assert "fewer" not in text
    assert "actuated: with crank, rocker, yaw held, 'rod' can spin freely" in text
    robot["locked"] = yaml.safe_load(re.search(r"`(locked: {spin: .*?})`", text)[1])["locked"]
    del robot["home"]["spin"]
    dynamics = built(robot, tmp_path)
    assert (len(dynamics.joint_names), len(dynamics.actuated_names)) == (1, 3)


def test_a_rod_that_is_not_round_says_by_how_much(tmp_path):
    robot = spatial_four_bar()
    robot["links"][3]["inertia"] = {"ixx": 0.02, "iyy": 0.016, "izz": 0.0}
    with pytest.warns(
        ClosureWarning, match=r"its inertia differs by 10 % from a body of revolution's"
    ):
        rd.InverseDynamics(load(robot, tmp_path), backend="python")


def test_the_axis_of_a_spin_is_told_in_each_links_own_frame(tmp_path):
    """The rod's own axis is z; that of what is welded to it is wherever z is from there."""
    robot = spatial_four_bar()
    R = Pose(rotation_rpy(0.4, -0.7, 1.1), np.array([0.03, 0.02, 0.1]))
    weld = {"xyz": R.translation.tolist(), "rpy": [0.4, -0.7, 1.1]}
    clamp = {"name": "clamp", "parent": "rod", "origin": weld, "joint": {"type": "fixed"}}
    robot["links"].insert(4, clamp)
    spins = built(robot, tmp_path).mechanism.spins
    assert set(spins) == {"rod", "clamp"}
    for link, frame in (("rod", Pose()), ("clamp", R)):
        point, direction = spins[link]
        assert abs(frame.rotation @ direction) == pytest.approx([0, 0, 1], abs=1e-9)
        assert (frame.rotation @ point + frame.translation)[:2] == pytest.approx([0, 0], abs=1e-9)


def test_a_motion_that_takes_the_platform_along_is_no_spin(tmp_path):
    robot = spatial_four_bar() | {"platform": "rod"}
    with pytest.raises(DescriptionError, match=r"name 1 more"):
        rd.InverseDynamics(load(robot, tmp_path))


def test_a_pose_is_closed_from_anywhere_the_same_way_each_time(tmp_path):
    """Whatever the guess of the passive joints, the motors stay, and the loops are closed."""
    robot = spatial_four_bar()
    robot["locked"] = {"spin": 0.0}
    del robot["home"]["spin"]
    generator = np.random.default_rng(5)
    homes = []
    for _ in range(6):
        for name in ("yaw", "pitch", "rocker"):
            robot["home"][name] = float(generator.uniform(-np.pi, np.pi))
        chain, again = (built(robot, tmp_path).closed for _ in range(2))
        assert chain.home.residual < 1e-11
        assert chain.home.q_a == pytest.approx([0.4], abs=1e-12)
        assert np.array_equal(chain.home.q_r, again.home.q_r)
        # not a whole turn away from where it was to be
        rough = [robot["home"][name] for name in chain.coordinate_names]
        assert abs(chain.home.q_r - rough).max() <= np.pi + 1e-9
        homes.append(np.exp(1j * chain.home.q_r))
    # there are two ways to put it together, and a wrist of three turns has each twice
    distinct = {tuple(np.round(home, 6)) for home in homes}
    assert 1 < len(distinct) <= 4
    modes = assembly_modes(chain.mechanism)
    assert [mode.distance for mode in modes] == sorted(mode.distance for mode in modes)
    assert len({round(float(np.cos(mode.home["rocker"])), 6) for mode in modes}) == 2


def several(count: int, center: float) -> dict:
    """As many of these four-bars on one base, each with a crank of its own."""
    robot: dict = {"robot": "many", "links": [], "loops": [], "actuated": [], "home": {}}
    for k in range(count):
        one = spatial_four_bar(center=center)
        named = {name: f"{name}_{k}" for name in [link["name"] for link in one["links"]]}
        for link in one["links"]:
            link["name"] = named[link["name"]]
            link["joint"]["name"] += f"_{k}"
            if "parent" in link or link["name"] == f"crank_{k}":
                link["parent"] = "base"
        for loop in one["loops"]:
            loop["name"] += f"_{k}"
            for side in ("predecessor", "successor"):
                loop[side]["link"] = named[loop[side]["link"]]
        robot["links"] += one["links"]
        robot["loops"] += one["loops"]
        robot["actuated"].append(f"crank_{k}")
        robot["home"] |= {f"{name}_{k}": value for name, value in one["home"].items()}
    return robot


@pytest.mark.parametrize("center", [0.0, 0.01])
def test_many_rods_are_told_in_one_line_that_holds_all_of_them(center, tmp_path):
    mechanism = load(several(3, center), tmp_path)
    if center:
        with pytest.raises(DescriptionError) as error:
            rd.InverseDynamics(mechanism)
        text = str(error.value)
        assert "; name 3 more: with these held, 'rod_0', 'rod_1'" in text
        assert "with centres of mass up to 0.01 m off them" in text
    else:
        with pytest.warns(ClosureWarning) as caught:
            prepared(mechanism)
        text = str(caught[1].message)
        assert "without doing work; a joint of each is locked" in text
    assert "'rod_0', 'rod_1', 'rod_2' can spin freely about their own axes" in text
    lock = yaml.safe_load(re.search(r"`(locked: {spin_0: .*?})`", text)[1])["locked"]
    assert list(lock) == ["spin_0", "spin_1", "spin_2"]
    # what the line says is all that there is to say
    robot = several(3, center) | {"locked": lock}
    robot["home"] = {name: x for name, x in robot["home"].items() if name not in lock}
    with pytest.warns(ClosureWarning) as caught:
        assert prepared(load(robot, tmp_path))[1].mobility.degrees_of_freedom == 3
    assert len(caught) == 1


def test_loops_without_a_joint_in_common_are_closed_each_by_itself(tmp_path):
    with pytest.warns(ClosureWarning):
        left, solver = prepared(load(several(2, 0.0), tmp_path))
    alone = assembly_modes(load(several(1, 0.0), tmp_path))
    found, names = solver.mobility, solver.geometry.names
    parts = HomeSearch(solver.geometry, found.row_scale, solver.scale).parts
    assert [{names[i] for i in part.columns} for part in parts] == [
        {f"{joint}_{k}" for joint in ("crank", "yaw", "pitch", "rocker")} for k in range(2)
    ]
    modes = assembly_modes(left)
    # every combination of those of each, the nearest first
    rockers = sorted({round(mode.home["rocker_0"], 6) for mode in alone})
    assert len(rockers) == 2
    assert len(modes) == len(alone) ** 2
    assert {tuple(round(mode.home[f"rocker_{k}"], 6) for k in range(2)) for mode in modes} == {
        (one, other) for one in rockers for other in rockers
    }
    assert [mode.distance for mode in modes] == sorted(mode.distance for mode in modes)


def test_loops_that_say_too_much_are_refused_with_their_count_and_how_near_they_come(tmp_path):
    robot = several(2, 0.0)
    # a rod welded to its rocker, as an exporter writes a ball joint that nobody told it of
    robot["loops"][1]["type"] = "fixed"
    with pytest.raises(DescriptionError) as error:
        rd.InverseDynamics(load(robot, tmp_path))
    text = str(error.value)
    assert (
        "no configuration was found that closes ball_1 (smallest error from home: ball_1: " in text
    )
    assert "they impose 6 constraints on 5 joints" in text
    assert "`joints: {NAME: spherical}`" in text


def test_a_motor_that_its_loops_hold_fast_does_not_share_the_work_of_others(tmp_path):
    robot = several(1, 0.0)
    bar = {"mass": 1.0, "inertia": {"ixx": 0.01, "iyy": 0.01, "izz": 0.01}}
    # hinge, slide and hinge between two points of the base: a triangle
    robot["links"] += [
        {"name": "arm", "parent": "base", "joint": revolute("hinge"), **bar},
        {
            "name": "tip",
            "origin": {"rpy": [0, QUARTER, 0]},
            "joint": {"name": "slide", "type": "prismatic"},
            **bar,
        },
    ]
    robot["loops"].append(
        {
            "name": "pin",
            "type": "revolute",
            "predecessor": {"link": "base", "xyz": [0.5, 0, 0]},
            "successor": {"link": "tip", "rpy": [0, -QUARTER, 0]},
        }
    )
    robot["actuated"].append("slide")
    robot["home"] |= {"hinge": 0.0, "slide": 0.5}
    with pytest.raises(
        DescriptionError, match=r"many.yaml: home: slide cannot move at or"
    ) as error:
        rd.InverseDynamics(load(robot, tmp_path))
    assert "another position of slide" in str(error.value)
    assert "or leave it out of `actuated`" in str(error.value)


@pytest.mark.parametrize("way", [lambda x: x, deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_payload_beside_the_axis_of_a_rod_that_is_held_is_refused(way, tmp_path):
    """As a description with that body is: gravity would turn the rod. On the axis it may be."""
    dynamics = way(built(spatial_four_bar(), tmp_path))
    # the rod lies along z of its link
    inertia = np.diag([1e-3, 1e-3, 1e-4])
    q, qd, qdd = dynamics.closed.home.q_a + 0.05, np.array([0.7]), np.array([-1.3])
    before = dynamics(q, qd, qdd)
    for beside in ([0.05, 0.0, 0.2], [0.0, -0.02, 0.3]):
        with pytest.raises(InputError, match=r"link .rod.: centre of mass: .* off the axis"):
            dynamics.set_payload("rod", rd.Inertial(1.0, np.array(beside), inertia))
        assert dynamics(q, qd, qdd) == pytest.approx(before, rel=1e-12)
    body = rd.Inertial(1.0, np.array([0.0, 0.0, 0.2]), inertia)
    dynamics.set_payload("rod", body)
    robot = spatial_four_bar()
    rod = next(link for link in robot["links"] if link["name"] == "rod")
    loaded = dynamics.mechanism.link("rod").inertial
    rod |= {
        "mass": float(loaded.mass),
        "center_of_mass": np.array(loaded.center_of_mass).tolist(),
        "inertia": {"ixx": float(loaded.inertia[0, 0]), "iyy": float(loaded.inertia[1, 1]),
                    "izz": float(loaded.inertia[2, 2])},
    }  # fmt: skip
    expected = built(robot, tmp_path)(q, qd, qdd)
    assert dynamics(q, qd, qdd) == pytest.approx(expected, rel=1e-9)
