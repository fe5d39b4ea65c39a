# SPDX-License-Identifier: Apache-2.0
"""Closed mechanisms that are impossible: one clear line each."""

from __future__ import annotations

import re
from dataclasses import replace

import closed_robots
import numpy as np
import pytest
import yaml
from closed_robots import ClosedChain
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.closure.geometry import closer
from robot_dynamics.closure.geometry.corrections import Correction
from robot_dynamics.errors import ClosureError, ClosureWarning, DescriptionError, InputError


@pytest.fixture
def robot():
    return closed_robots.random_rrr(1)


def message(robot, tmp_path, **options) -> str:
    with pytest.raises((DescriptionError, ClosureError)) as caught:
        ClosedChain(closed_robots.load(robot, tmp_path), **options)
    text, file = str(caught.value), f"{robot['robot']}.yaml: "
    assert "\n" not in text
    assert text.startswith(file)
    return text.removeprefix(file)


def test_a_home_that_leaves_joints_out_names_them(robot, tmp_path):
    del robot["home"]["qc"], robot["home"]["qp1"]
    assert message(robot, tmp_path).startswith("home: qp1, qc missing;")


def test_a_mechanism_without_home_names_all_joints(robot, tmp_path):
    robot["home"] = {}
    assert "qa0, qa1, qa2, qp0, qp1, qp2, qc missing" in message(robot, tmp_path)


@pytest.mark.parametrize("off", [0.15, 0.5])
def test_a_rough_home_is_closed_with_the_motors_held_and_that_is_said(off, robot, tmp_path):
    exact = ClosedChain(closed_robots.load(robot, tmp_path)).home.q_r
    robot["home"]["qp1"] += off
    mechanism = closed_robots.load(robot, tmp_path)
    with pytest.warns(ClosureWarning) as caught:
        chain = ClosedChain(mechanism)
    text = str(caught[0].message)
    assert "home: loop 'loop0' does not close: " in text
    assert "a search closed it by moving qp1 from " in text
    assert caught[0].filename == __file__
    assert chain.home.q_r == pytest.approx(exact, abs=1e-9)


def test_a_home_that_is_rounded_is_brought_onto_the_closure(robot, tmp_path):
    exact = ClosedChain(closed_robots.load(robot, tmp_path)).home
    robot["home"] = {name: round(value, 2) for name, value in robot["home"].items()}
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    assert chain.home.residual < 1e-11
    # the motors stay where they were put
    assert chain.home.q_a == pytest.approx([robot["home"][n] for n in chain.actuated_names])
    assert chain.home.q_r == pytest.approx(exact.q_r, abs=0.1)


def test_a_lone_misplaced_hinge_out_of_the_plane_is_refused(robot, tmp_path):
    robot["loops"][0]["successor"]["xyz"][2] += 0.3
    assert "does not close: z is off by" in message(robot, tmp_path)


def test_frames_turned_by_half_a_turn_are_turned_back(tmp_path):
    robot = closed_robots.welded_four_bar(1)
    exact = ClosedChain(closed_robots.load(robot, tmp_path)).home.q_r
    robot["home"]["foot"] += np.pi
    with pytest.warns(ClosureWarning, match="rotated relative to each other by 180°"):
        chain = ClosedChain(closed_robots.load(robot, tmp_path))
    # half a turn on or half a turn back
    assert np.exp(1j * chain.home.q_r) == pytest.approx(np.exp(1j * exact), abs=1e-9)


def tilted_legs(tilt: float, seed: int = 0) -> dict:
    """A 3RRR whose legs are not quite in one plane, closed at home."""
    robot, rng = closed_robots.random_rrr(1), np.random.default_rng(seed)
    for link in robot["links"]:
        if link["name"].startswith("proximal"):
            link["origin"]["rpy"] = rng.uniform(-tilt, tilt, 3).tolist()
    loops = [(f"distal{leg}", "platform", "revolute") for leg in (1, 2)]
    return closed_robots.closed_at_home(robot, loops)


@pytest.mark.parametrize("seed", range(4))
def test_angles_with_three_decimals_do_not_make_redundant_rows_independent(seed, tmp_path, recwarn):
    # 1.571 and 3.142 are 0.2 and 0.4 mrad off
    exact, rounded = (
        ClosedChain(closed_robots.load(tilted_legs(tilt, seed), tmp_path)) for tilt in (0.0, 4e-4)
    )
    assert rounded.degrees_of_freedom == 3
    assert not recwarn
    q, qd, qdd = exact.home.q_a + 0.1, [0.3, -0.2, 0.5], [1.0, 2.0, -1.0]
    assert rounded(q, qd, qdd) == pytest.approx(exact(q, qd, qdd), rel=0.02, abs=0.02)


def test_motors_that_only_rounded_numbers_make_redundant_do_not_share_the_load(tmp_path):
    text = message(tilted_legs(4e-3), tmp_path)
    assert "3 motors for 2 degrees of freedom, but only 4 constraints are clearly" in text
    assert "Write them with more digits" in text


def test_too_few_motors_are_named_under_actuated(robot, tmp_path):
    robot["actuated"] = ["qa0", "qa1"]
    text = message(robot, tmp_path)
    assert text.startswith(
        "actuated: under-actuated: 2 motors for 3 degrees of freedom: qa0, qa1; name 1 more"
    )


def test_no_list_of_motors_means_every_joint(robot, tmp_path):
    del robot["actuated"]
    robot["sensed"] = []
    text = message(robot, tmp_path)
    assert "over-actuated: 7 motors (no `actuated` is given: every joint that is not" in text


@pytest.mark.timeout(60)
def test_without_a_list_of_motors_they_are_the_joints_without_sensors():
    described = rd.load(CONFIG / "five_bar.yaml")
    assert described.sensed
    silent = replace(described, actuated=())
    assert silent.actuated_names == described.actuated
    assert replace(silent, loops=()).actuated_names == described.joint_names
    assert rd.InverseDynamics(silent).joint_names == described.actuated
    with_passive_motors = replace(silent, sensed=())
    with pytest.raises(rd.DescriptionError, match="over-actuated"):
        rd.InverseDynamics(with_passive_motors)


@pytest.mark.parametrize("actuated", [(), ("qp1",), ("qp1", "qp2")])
@pytest.mark.parametrize("sensed", [(), ("qp2",)])
def test_loops_that_leave_no_motion_are_named(actuated, sensed, tmp_path):
    text = (CONFIG / "five_bar.yaml").read_text()
    lists = {"actuated": actuated, "sensed": [each for each in sensed if each not in actuated]}
    for key, names in lists.items():
        text = re.sub(rf"^{key}:.*$", f"{key}: [{', '.join(names)}]", text, flags=re.MULTILINE)
    (tmp_path / "rigid.yaml").write_text(f"{text}\nlocked: {{qa1: 2.2, qa2: 0.9416}}\n")
    with pytest.raises(rd.DescriptionError) as error:
        rd.InverseDynamics(rd.load(tmp_path / "rigid.yaml"))
    assert "loops: nothing can move: they impose 2 independent constraints on" in str(error.value)


def test_motors_that_do_not_hold_the_mechanism_are_refused(tmp_path):
    # two chains side by side: a four-bar with two motors and one with none
    first, second = (closed_robots.welded_four_bar(seed) for seed in (1, 2))
    robot = closed_robots.beside(first, second) | {"actuated": ["crank", "coupler"]}
    text = message(robot, tmp_path)
    assert text.startswith("actuated: with crank, coupler held, ")
    assert "other crank" in text
    assert "can still move" in text


def test_a_singular_home_is_named(tmp_path):
    # a parallelogram stretched out: coupler and rocker in line
    robot = stretched_four_bar()
    text = message(robot, tmp_path)
    # the passive joints that move with the crank held; not the joint that is free everywhere
    assert text.startswith("home is singular: 1 passive motion of coupler, rocker is undetermined")
    assert "choose another home" in text


def test_a_home_that_is_singular_in_two_sets_of_loops_is_named_with_both(tmp_path):
    """Parallelograms folded flat, beside which their singular values grow slowly: at no
    configuration within 0.02 of home are those of both above a thousandth of the largest."""
    robot = folded_four_bar()
    text = message(closed_robots.beside(robot, robot), tmp_path)
    start = "home is singular: 2 passive motions of crank, rod, other crank, other rod are"
    assert text.startswith(start)


def test_rows_that_are_redundant_at_home_alone_are_named(tmp_path):
    """A rhombus folded flat may unfold in two ways: there, and there alone, x says nothing; out of
    the plane no row says anything anywhere, and none of them is named."""
    arm = {"a": 0.3, "mass": 1.0}
    robot = {
        "robot": "rhombus",
        "links": [
            {"name": "a", "joint": closed_robots.revolute("a"), **arm},
            {"name": "b", "joint": closed_robots.revolute("b"), **arm},
            {"name": "c", "parent": "base", "origin": {"xyz": [0.3, 0, 0]},
             "joint": closed_robots.revolute("c"), **arm},
        ],
        "loops": [
            {"name": "pin", "type": "revolute",
             "predecessor": {"link": "b"}, "successor": {"link": "c"}}
        ],
        "actuated": ["a"],
        "home": {"a": 0.0, "b": 0.0, "c": 0.0},
    }  # fmt: skip
    text = message(robot, tmp_path)
    assert text.startswith("home is singular")
    named = re.search(r"nearby; (.*) redundant there, but not nearby", text)[1]
    assert named in ("pin: x", "pin: y")


def folded_four_bar() -> dict:
    links = [
        {"name": "foot", "joint": closed_robots.revolute("foot"), "mass": 1.0,
         "origin": {"xyz": [0.35, -0.006, 0.0]}},
        {"name": "crank", "parent": "base", "joint": closed_robots.revolute("crank"), "a": 0.055},
        {"name": "rod", "joint": closed_robots.revolute("rod"), "a": 0.35, "mass": 1.0},
    ]  # fmt: skip
    end = {"link": "foot", "xyz": [0.055, 0.006, 0.0]}
    return {
        "robot": "folded",
        "links": links,
        "loops": [
            {"name": "pin", "type": "spherical", "predecessor": {"link": "rod"}, "successor": end}
        ],
        "actuated": ["foot"],
        "home": {"foot": 0.0, "crank": 0.0, "rod": 0.0},
    }


def stretched_four_bar() -> dict:
    arm = {"mass": 1.0, "inertia": {"ixx": 0.01, "iyy": 0.01, "izz": 0.01}}
    links = [
        {"name": "crank", "joint": closed_robots.revolute("crank"), "a": 0.2, **arm},
        {"name": "coupler", "joint": closed_robots.revolute("coupler"), "a": 0.4, **arm},
        {"name": "rocker", "joint": closed_robots.revolute("rocker"), "a": 0.3, **arm},
    ]
    # crank straight up, coupler and rocker in one line: the rocker's end is a dead point
    return {
        "robot": "stretched",
        "links": links,
        "loops": [
            {
                "name": "foot",
                "type": "revolute",
                "predecessor": {"link": "base", "xyz": [0.7, 0.2, 0.0]},
                "successor": {"link": "rocker"},
            }
        ],
        "actuated": ["crank"],
        "home": {"crank": np.pi / 2, "coupler": -np.pi / 2, "rocker": 0.0},
    }


def test_near_a_singularity_torques_are_refused_with_the_condition_number():
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    chain = ClosedChain(mechanism, condition_limit=20.0)

    def apart(spread: float) -> np.ndarray:
        tau = chain(chain.home.q_a + np.array([spread, -spread]), [0.1, 0.1], [0.0, 0.0])
        assert np.all(np.isfinite(tau))
        assert chain.last.condition <= 20.0 * (1 + 1e-9)
        return tau

    # the motors turn apart until the forearms are nearly one line
    with pytest.raises(ClosureError, match=r"condition number is [\d.]+.*the limit 20") as caught:
        list(map(apart, np.linspace(0.0, 1.2, 400)))
    assert caught.value.name == "condition"
    assert 20 < caught.value.value < 1000
    assert chain.forward_kinematics(chain.home.q_a).residual < 1e-11


@pytest.mark.parametrize("said", ["five_bar.yaml", "five_bar.yaml (arm)", "arm"])
def test_what_a_call_refuses_names_the_robot_and_its_file_where_that_is_known(said):
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    if "arm" in said:
        mechanism = replace(mechanism, name="arm", source="five_bar.yaml" * ("yaml" in said))
    chain = ClosedChain(replace(mechanism, platform=None), condition_limit=20.0)
    beyond, near = np.add(chain.home.q_a, [[1.0, -1.0], [-1.0, 1.0]])
    zero = np.zeros(2)
    for call in (
        lambda: chain.forward_kinematics(chain.home.q_a + 100.0),
        lambda: chain(beyond, zero, zero),
        lambda: chain.mass_matrix(near),
        lambda: chain.inverse_kinematics(np.eye(4)),
        lambda: chain.home.platform_pose,
        lambda: chain.solver.forward_kinematics(beyond, chain.home.q_r),
    ):
        chain.reset()
        with pytest.raises(ClosureError) as caught:
            call()
        assert str(caught.value).startswith((f"{said}: closure: ", f"{said}: platform: "))
        assert caught.value.name in ("closure", "platform", "condition")
        assert type(caught.value.value) in (list, float, type(None))
    with pytest.warns(ClosureWarning) as heard:
        chain.gravity([beyond, chain.home.q_a])
    assert str(heard[0].message).startswith(f"{said}: 1 of 2 states could not be computed (NaN)")
    assert heard[0].filename == __file__


def test_sensed_without_sensors_is_refused(robot, tmp_path):
    robot["sensed"] = []
    assert "sensed: the description lists no sensed joints" in message(robot, tmp_path, sensed=True)


def test_sensed_of_an_open_chain_is_refused():
    with pytest.raises(InputError, match=r"sensed.*no loops"):
        rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), sensed=True)


def test_without_a_platform_its_pose_is_refused(robot, tmp_path):
    del robot["platform"]
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    for ask in (
        lambda: chain.home.platform_pose,
        lambda: chain.home.J_R,
        lambda: chain.inverse_kinematics(np.eye(4)),
    ):
        with pytest.raises(ClosureError, match="platform: the description names none") as caught:
            ask()
        assert (caught.value.name, caught.value.expected) == ("platform", "a link's name")


def test_wrong_shapes_are_named(robot, tmp_path):
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    with pytest.raises(InputError, match=r"qd: found \(4,\), expected shape \(…, 3\): qa0, qa1"):
        chain(np.zeros(3), np.zeros(4), np.zeros(3))
    with pytest.raises(InputError, match=r"wrench: found \(3,\)"):
        chain.external_force(chain.home.q_a, np.zeros(3))
    with pytest.raises(InputError, match="pose: rotation"):
        chain.inverse_kinematics(np.diag([1.0, 1.0, -1.0, 1.0]))
    with pytest.raises(InputError, match="batches that broadcast"):
        chain(np.zeros((2, 3)), np.zeros((5, 3)), np.zeros(3))
    with pytest.raises(InputError, match=r"q: found .* expected real numbers"):
        chain("here", np.zeros(3), np.zeros(3))


def test_a_mechanism_made_in_code_has_finite_numbers(robot, tmp_path):
    mechanism = closed_robots.load(robot, tmp_path)
    for gravity, words in (
        ([0.0, 0.0, np.nan], r"gravity: found \[0.0, 0.0, nan\], expected finite numbers"),
        ([0.0, 0.0, None], r"gravity: found \[0.0, 0.0, None\], expected real numbers"),
        ([0.0, 0.0], r"gravity: found \(2,\), expected shape \(3,\)"),
    ):
        with pytest.raises(InputError, match=words):
            ClosedChain(replace(mechanism, gravity=np.array(gravity)))
    body = replace(mechanism.links[1].inertial, mass=np.inf)
    links = (mechanism.links[0], replace(mechanism.links[1], inertial=body), *mechanism.links[2:])
    with pytest.raises(InputError, match=f"links: {links[1].name}: inertial: mass: found inf"):
        ClosedChain(replace(mechanism, links=links))
    for option, value in {"condition_limit": np.inf, "friction_smoothing": -1.0}.items():
        with pytest.raises(InputError, match=f"{option}: found .*, expected a finite number"):
            ClosedChain(mechanism, **{option: value})


def test_an_infinite_angle_neither_hangs_nor_crashes(robot, tmp_path):
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    for bad in (np.nan, np.inf, -np.inf):
        assert np.isnan(chain([bad, 0.0, 0.0], np.zeros(3), np.zeros(3))).all()
    assert np.isnan(chain(chain.home.q_a, [np.nan, 0, 0], np.zeros(3))).any()
    assert np.isfinite(chain(chain.home.q_a, np.zeros(3), np.zeros(3))).all()


def test_a_huge_angle_is_refused_in_time(robot, tmp_path):
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    with pytest.raises(ClosureError, match="too far from the last state"):
        chain.forward_kinematics([1e6, -1e6, 1e6])


def test_a_urdf_gets_its_loops_from_a_yaml_beside_it(tmp_path):
    """A four-bar by URDF and YAML is the one by YAML alone."""
    arm = '<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    urdf = ['<robot name="four_bar"><link name="base"/>']
    before = ("base", 0.0)
    lengths = {"crank": 0.2, "coupler": 0.5, "rocker": 0.4}
    for name, length in lengths.items():
        urdf.append(
            f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/>{arm}</inertial></link>'
            f'<joint name="{name}" type="continuous"><parent link="{before[0]}"/>'
            f'<child link="{name}"/><origin xyz="{before[1]} 0 0"/><axis xyz="0 0 1"/></joint>'
        )
        before = (name, length)
    (tmp_path / "four_bar.urdf").write_text("".join([*urdf, "</robot>"]))
    extras = {
        "loops": [
            {
                "name": "foot",
                "type": "revolute",
                "predecessor": {"link": "base", "xyz": [0.6, 0.0, 0.0]},
                "successor": {"link": "rocker", "xyz": [0.4, 0.0, 0.0]},
            }
        ],
        "gravity": [0, -9.81, 0],
        "actuated": ["crank"],
        "sensed": ["rocker"],
        "home": {"crank": 1.2, "coupler": -0.8, "rocker": -1.4},
    }
    links = [
        {
            "name": name,
            "joint": closed_robots.revolute(name),
            "a": length,
            "mass": 1.0,
            "center_of_mass": [-length / 2, 0, 0],
            "inertia": {"ixx": 0.01, "iyy": 0.01, "izz": 0.01},
        }
        for name, length in lengths.items()
    ]
    tree = {**extras, "robot": "four_bar", "links": links}
    tree["loops"] = [{**extras["loops"][0], "successor": {"link": "rocker"}}]
    # where the foot is, so that home closes
    angles = np.cumsum([1.2, -0.8, -1.4])
    ends = [
        length * np.array([np.cos(a), np.sin(a)])
        for length, a in zip(lengths.values(), angles, strict=True)
    ]
    foot = [*np.sum(ends, axis=0).tolist(), 0.0]
    for loops in (extras["loops"], tree["loops"]):
        loops[0]["predecessor"] = {"link": "base", "xyz": foot}
    (tmp_path / "extras.yaml").write_text(yaml.safe_dump({"urdf": "four_bar.urdf", **extras}))
    (tmp_path / "tree.yaml").write_text(yaml.safe_dump(tree))
    from_urdf, from_tree = (
        ClosedChain(rd.load(tmp_path / name)) for name in ("extras.yaml", "tree.yaml")
    )
    state = [1.25], [0.7], [2.0]
    assert from_urdf.degrees_of_freedom == from_tree.degrees_of_freedom == 1
    assert from_urdf(*state) == pytest.approx(from_tree(*state), rel=1e-12)


def test_redundant_rows_are_left_out_by_name():
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    assert chain.redundant_rows == (
        "C2: z",
        "C2: x ⟂ z",
        "C2: y ⟂ z",
        "C3: z",
        "C3: x ⟂ z",
        "C3: y ⟂ z",
    )
    assert ClosedChain(rd.load(CONFIG / "gough_stewart.yaml")).redundant_rows == ()


def test_a_chain_that_is_redundant_only_where_it_is_closed_is_seen_through(tmp_path):
    """A Sarrus linkage: two pairs of hinges that cross, one degree of freedom by no count of
    joints. Off the closure its rows are independent."""
    arm = {"mass": 1.0, "inertia": {"ixx": 0.01, "iyy": 0.01, "izz": 0.01}}
    links, home = [], {}
    for side, rpy in (("x", [np.pi / 2, 0, 0]), ("y", [np.pi / 2, 0, np.pi / 2])):
        foot = {"x": [0.5, 0, 0], "y": [0, 0.5, 0]}[side]
        links += [
            {
                "name": f"lower_{side}",
                "parent": "base",
                "origin": {"xyz": foot, "rpy": rpy},
                "joint": closed_robots.revolute(f"lower_{side}"),
                "a": 0.3,
                **arm,
            },
            {
                "name": f"upper_{side}",
                "joint": closed_robots.revolute(f"upper_{side}"),
                "a": 0.3,
                **arm,
            },
        ]
        home |= {f"lower_{side}": np.pi / 4, f"upper_{side}": np.pi / 2}
    links.insert(
        2, {"name": "plate", "parent": "upper_x", "joint": closed_robots.revolute("plate"), **arm}
    )
    home["plate"] = np.pi / 4
    robot = {
        "robot": "sarrus",
        "links": links,
        "actuated": ["lower_x"],
        "platform": "plate",
        "home": {name: float(x) for name, x in home.items()},
    }
    robot = closed_robots.closed_at_home(robot, [("upper_y", "plate", "revolute")])
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    assert chain.degrees_of_freedom == 1
    assert len(chain.redundant_rows) == 1
    oracle = closed_robots.Oracle(robot, chain.coordinate_names, 1)
    state = chain.forward_kinematics([np.pi / 4 + 0.2])
    miss, _, _ = oracle.closure(state.q_r, 0 * state.q_r)
    assert np.abs(miss).max() < 1e-11
    # the plate goes up and down and does not turn
    assert state.J_R[[0, 1, 3, 4, 5]] == pytest.approx(np.zeros((5, 1)), abs=1e-10)
    found = chain([np.pi / 4 + 0.2], [0.5], [1.0])
    assert found == pytest.approx(oracle.torques(state.q_r, np.array([0.5]), np.array([1.0])))


def test_rows_left_out_are_not_trusted_blindly(monkeypatch, tmp_path):
    """What was redundant at home is looked at where the loops are closed."""
    from robot_dynamics.closure.geometry import closer

    # hinges that are off the plane's normal by a rounding: their layers part as it moves
    robot = closed_robots.random_five_bar(0)
    rng = np.random.default_rng(0)
    for link in robot["links"][1:]:
        place = {"xyz": [0.0, 0.0, 0.0], **link.get("origin", {})}
        link["origin"] = {**place, "rpy": rng.uniform(-4e-6, 4e-6, 3).tolist()}
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    oracle = closed_robots.Oracle(robot, chain.coordinate_names, 2)
    target = chain.home.q_a + 0.05
    q_r = chain.solver.forward_kinematics(target, chain.home.q_r)
    lengths = abs(oracle.closure(q_r, 0 * q_r)[0][:3])
    worst = float(lengths.max()) / chain.solver.size
    assert 1e-8 < worst < 1e-4
    monkeypatch.setattr(closer, "LEFT_OUT_TOLERANCE", 10 * worst)
    chain.solver.forward_kinematics(target, chain.home.q_r)
    monkeypatch.setattr(closer, "LEFT_OUT_TOLERANCE", worst / 10)
    with pytest.raises(ClosureError, match="is redundant at home, but violated by") as caught:
        chain.solver.forward_kinematics(target, chain.home.q_r)
    assert f"closure: {caught.value.name} is redundant" in str(caught.value)
    assert worst / 10 < caught.value.value < 10 * worst


def test_a_joint_that_something_is_geared_to_has_no_whole_turns(tmp_path):
    robot = closed_robots.slider_crank(1)
    robot["links"][1]["joint"]["type"] = "continuous"
    mechanism = closed_robots.load(robot, tmp_path)
    free = ClosedChain(mechanism).solver.way(np.array([0.0]), np.array([6.0]))
    assert free == pytest.approx([6.0 - 2 * np.pi])
    crank = mechanism.link("crank")
    wheel = replace(
        crank,
        name="wheel",
        parent=mechanism.link("ground").name,
        joint=replace(crank.joint, name="wheel", coupling=rd.mechanism.Coupling((("crank", 0.5),))),
    )
    geared = replace(mechanism, links=(*mechanism.links, wheel))
    way = ClosedChain(geared).solver.way(np.array([0.0]), np.array([6.0]))
    assert way == pytest.approx([6.0])


def test_platform_on_the_base_is_refused(robot, tmp_path):
    mechanism = closed_robots.load(robot, tmp_path)
    with pytest.raises(
        DescriptionError, match="platform: found 'ground', expected a link that moves"
    ):
        ClosedChain(replace(mechanism, platform="ground"))


def test_check_tells_what_holds_a_robot_together():
    from robot_dynamics.app.check_report import report

    found = report(str(CONFIG / "rrr.yaml")).result["closure"]
    assert found["degrees_of_freedom"] == 3
    assert "C3: z" in found["redundant_rows"]
    assert found["error_at_home"] < 1e-9
    assert 1 < found["condition_at_home"] < 10


def test_corrections_that_do_not_help_are_not_repeated_forever(monkeypatch):
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    useless = Correction("home: still not closed", home=mechanism.home)
    monkeypatch.setattr(closer, "explore", lambda geometry: useless)
    with pytest.raises(DescriptionError, match="home: still not closed"):
        rd.InverseDynamics(mechanism)
