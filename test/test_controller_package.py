# SPDX-License-Identifier: Apache-2.0
"""The generated controller's C computes what Python computes; names stay names; it builds."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import CONFIG, random_dh, random_urdf, relative, state, unmeasured

import robot_dynamics as rd
from robot_dynamics.chains.kernel_parameters import moments
from robot_dynamics.closure import SensorMonitor
from robot_dynamics.codegen.compiler import Compiler
from robot_dynamics.controller import write_package
from robot_dynamics.dynamics.loadable import loadable
from robot_dynamics.formulations.equations import TERMS
from robot_dynamics.formulations.options import Options
from robot_dynamics.mechanism import Inertial, Joint, Link, Mechanism
from robot_dynamics.mechanism.bodies import body_from
from robot_dynamics.mechanism.transform import with_payload

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
LARGE = 1_000_000
"""bytes of C, from which it is not optimised: that takes three times as long"""
ROUNDING = 1e-12
"""Relative: the same sums in another order"""
FAR = 4000
"""Strides that may be tried of a robot with loops"""
GOOD, NOT_FINITE, NOT_CLOSED, NOT_FITTING = range(4)
TOLERANCE = 0.02
"""rad, or fractions of the robot's size: `sensor_tolerance` as it is by default"""

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
URDF = CONFIG.parent / "urdf"


def library(package: Path) -> Path:
    """What the package's C is compiled to."""
    (source,) = (package / "src").glob("*_dynamics.c")
    result = package / f"{source.stem}.so"
    if not result.exists():
        level = "-O0" if source.stat().st_size > LARGE else "-O1"
        subprocess.run([CC, *STRICT, level, source, "-o", result, "-lm"], check=True)
    return result


class Compiled:
    """The package's C, by ctypes."""

    def __init__(self, package: Path):
        path = library(package)
        self._prefix = path.stem.removesuffix("_dynamics")
        self._library = ctypes.CDLL(str(path))
        self.robot = ctypes.create_string_buffer(1 << 20)
        self.place = ctypes.create_string_buffer(1 << 16)
        self["describe"](self.robot)
        self["home"](self.place)

    def __getitem__(self, name: str):
        function = getattr(self._library, f"{self._prefix}_{name}")
        pointer, number = ctypes.c_void_p, ctypes.c_double
        function.argtypes = {
            "torques": [pointer, pointer, ctypes.c_uint, number, ctypes.c_int, *[pointer] * 4],
            "set_payload": [pointer, ctypes.c_int, number, pointer, pointer],
            "set_gravity": [pointer, pointer],
            "share": [pointer] * 4,
            "read": [pointer, pointer, ctypes.c_int, number, pointer, pointer],
            "read_torques": [pointer, pointer, ctypes.c_uint, number, *[pointer] * 3],
        }.get(name, [pointer])
        return function

    def names(self, kind: str, count: int) -> list[str]:
        array = (ctypes.c_char_p * count).in_dll(self._library, f"{self._prefix}_{kind}_names")
        return [name.decode() for name in array]

    def torques(self, motors, q, qd, qdd, terms=TERMS, smoothing=0.0, strides=FAR):
        mask = sum(1 << k for k, term in enumerate(TERMS) if term in terms)
        tau = np.full(motors, 42.0)
        states = [np.array(x, dtype=float) for x in (q, qd, qdd)]
        arrays = [x.ctypes.data for x in (*states, tau)]
        how = self["torques"](self.robot, self.place, mask, smoothing, strides, *arrays)
        return how, tau

    def read(self, q, strides=FAR, tolerance=TOLERANCE):
        q, left = np.array(q, dtype=float), np.full(len(q), np.nan)
        how = self["read"](
            self.robot, self.place, strides, tolerance, q.ctypes.data, left.ctypes.data
        )
        return how, left

    def read_torques(self, motors, qd, qdd_a, terms=TERMS, smoothing=0.0):
        mask = sum(1 << k for k, term in enumerate(TERMS) if term in terms)
        qd, qdd_a, tau = np.array(qd), np.array(qdd_a), np.full(motors, 42.0)
        arrays = [x.ctypes.data for x in (qd, qdd_a, tau)]
        return self["read_torques"](self.robot, self.place, mask, smoothing, *arrays), tau

    def set_gravity(self, gravity):
        vector = np.array(gravity, dtype=float)
        self["set_gravity"](self.robot, vector.ctypes.data)

    def set_payload(self, link: int, body: Inertial | None):
        I = np.zeros((3, 3)) if body is None else body.inertia
        at = np.zeros(3) if body is None else np.array(body.center_of_mass, dtype=float)
        six = np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]], dtype=float)
        mass = 0.0 if body is None else float(body.mass)
        self["set_payload"](self.robot, link, mass, at.ctypes.data, six.ctypes.data)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """`compiled(file, **options)`: its package, written and compiled once for each of them."""

    def refused(*_, **__):
        raise AssertionError("writing C has to compile none: it would take longer than all else")

    @cache
    def package(file: Path, options: tuple[tuple[str, str], ...]) -> Path:
        out = tmp_path_factory.mktemp("package")
        with unmeasured(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Compiler, "shared_library", refused)
            return out / write_package(str(file), out, **dict(options))["package"]

    return lambda file, **options: Compiled(package(file, tuple(sorted(options.items()))))


def body(rng) -> Inertial:
    points = rng.uniform(-0.3, 0.3, (4, 3))
    I = sum(0.5 * (p @ p * np.eye(3) - np.outer(p, p)) for p in points - points.mean(axis=0))
    return Inertial(2.0, points.mean(axis=0), I)


def facade(*described, **options) -> rd.InverseDynamics:
    """What the C is compared with; in Python, so that no other C is compiled for it."""
    return rd.InverseDynamics(*described, **options, backend="python")


def check(c, file, states, formulation="newton_euler", rotors="full", some_terms=True):
    """Every choice of terms, gravity, payload and smoothing, against the façade."""
    mechanism = rd.load(file)
    links = [link.name for link in mechanism.links]
    rng = np.random.default_rng(3)
    sets = [TERMS, *((term,) for term in TERMS), ("inertia", "gravity"), TERMS[:4]]
    for terms in sets if some_terms else sets[:1]:
        for smoothing in (0.0, 0.3):
            dynamics = facade(
                mechanism, formulation, rotors=rotors, terms=terms, friction_smoothing=smoothing
            )
            motors = len(dynamics.actuated_names)
            assert c.names("motor", motors) == list(dynamics.actuated_names)
            assert c.names("joint", len(dynamics.joint_names)) == list(dynamics.joint_names)
            for q, qd, qdd in states(dynamics):
                for loaded in (False, True):
                    link = int(rng.integers(len(links)))
                    load = body(rng) if loaded else None
                    gravity = [1.0, -2.0, 9.0] if loaded else mechanism.gravity
                    c.set_payload(link, load)
                    c.set_gravity(gravity)
                    dynamics.set_payload(links[link], load)
                    dynamics.gravity_vector = gravity
                    how, tau = c.torques(motors, q, qd, qdd, terms, smoothing)
                    assert how == GOOD
                    assert relative(tau, dynamics(q, qd, qdd)) < ROUNDING
                    c.set_payload(link, None)
                    dynamics.set_payload(links[link], None)


def anywhere(dynamics):
    return [state(seed, len(dynamics.joint_names)) for seed in range(3)]


def along_a_way(dynamics):
    """From home on, in steps that a controller makes and in one that it does not."""
    rng = np.random.default_rng(1)
    home = dynamics.mechanism.home
    q = np.array([home[name] for name in dynamics.joint_names])
    for step in (0.0, 1e-3, 0.02, 0.1):
        q = q + step * rng.uniform(-1, 1, len(q)) * (0.1 if step > 0.05 else 1.0)
        yield q, *rng.uniform(-1, 1, (2, len(q)))


@needs_compiler
@pytest.mark.parametrize("robot", ["polar", "cartesian", "three_axis"])
def test_shipped_chains_compute_the_same(robot, compiled):
    file = CONFIG / f"{robot}.yaml"
    check(compiled(file), file, anywhere)


@needs_compiler
def test_a_shipped_urdf_computes_the_same(compiled):
    file = URDF / "six_axis.urdf"
    check(compiled(file), file, anywhere)


@needs_compiler
@pytest.mark.parametrize("rounded", ["1.5708", "1.570796"])
def test_a_payload_behind_a_rounded_right_angle_computes_the_same(rounded, compiled, tmp_path):
    file = tmp_path / "robot.urdf"
    text = (URDF / "six_axis.urdf").read_text()
    file.write_text(re.sub(r'rpy="[^"]*"', f'rpy="{rounded} 0 -{rounded}"', text))
    check(compiled(file), file, anywhere)


@needs_compiler
@pytest.mark.parametrize("formulation", ["gibbs_appell", "murphy", "lagrange_euler"])
@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_all_formulations_and_rotors_compute_the_same(formulation, rotors, compiled, tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(random_dh(1, joints=4, rotors=True)))
    c = compiled(file, formulation=formulation, rotors=rotors)
    check(c, file, anywhere, formulation, rotors)


def test_a_heavy_load_of_a_heavy_crane_is_added_to_its_body():
    own, load = (
        Inertial(mass, np.array([1.0, 0.2, height]), mass * np.diag([2.0, 3.0, 4.0]))
        for mass, height in ((3e5, 2.0), (4e4, -5.0))
    )
    crane = Mechanism("crane", (Link("tower", "base", Joint("turn", "revolute"), own),))
    robot = loadable(crane, Options("gibbs_appell"))
    (change,) = robot.parameters(["tower"]).loads
    p = robot.values(crane)
    place = slice(change.block, None if change.block is None else change.block + 10)
    # the mass, its centre and the inertia about it are not linear in the load, the moments are
    sums = moments(body_from(Inertial, p[place]))
    for k, row in change.rows:
        sums[k] += np.dot(row, moments(load))
    expected = robot.values(with_payload(crane, "tower", load))
    assert relative(sums, moments(body_from(Inertial, expected[place]))) < ROUNDING


@needs_compiler
@pytest.mark.parametrize("seed", range(3))
def test_random_urdfs_compute_the_same(seed, compiled, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(random_urdf(seed))
    check(compiled(file), file, anywhere, some_terms=seed == 0)


@needs_compiler
@pytest.mark.parametrize("robot", ["five_bar", "rrr"])
def test_robots_with_loops_compute_the_same(robot, compiled):
    file = CONFIG / f"{robot}.yaml"
    check(compiled(file), file, along_a_way, some_terms=robot == "five_bar")


@needs_compiler
@pytest.mark.parametrize("robot", ["delta", "gough_stewart"])
def test_spatial_robots_with_loops_compute_the_same(robot, compiled):
    file = CONFIG / f"{robot}.yaml"
    check(compiled(file), file, along_a_way, some_terms=False)


@needs_compiler
def test_more_motors_than_degrees_of_freedom_share_the_work(compiled, tmp_path):
    text = (CONFIG / "rrr.yaml").read_text()
    description = yaml.safe_load(text)
    passive = next(name for name in description["home"] if name not in description["actuated"])
    description["actuated"] = [*description["actuated"], passive]
    description["sensed"] = [name for name in description.get("sensed", []) if name != passive]
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(description))
    check(compiled(file), file, along_a_way, some_terms=False)


@needs_compiler
def test_what_is_no_state_leaves_torques_and_place_alone(compiled):
    c = compiled(CONFIG / "five_bar.yaml")
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    q = np.array([mechanism.home[name] for name in mechanism.actuated])
    still = np.zeros(2)
    assert c.torques(2, q, still, still)[0] == GOOD
    before = c.place.raw
    for wrong in (np.nan, np.inf, -np.inf):
        for vector in range(3):
            states = [q.copy(), still.copy(), still.copy()]
            states[vector][1] = wrong
            how, tau = c.torques(2, *states)
            assert how == NOT_FINITE
            assert (tau == 42.0).all()
    how, tau = c.torques(
        2, q + np.array([1.4, -1.4]), still, still
    )  # the legs cannot reach that far
    assert how == NOT_CLOSED
    assert (tau == 42.0).all()
    assert c.torques(2, q + 0.3, still, still, strides=2)[0] == NOT_CLOSED  # nor in two strides
    assert c.place.raw == before


# --- sensors on passive joints --------------------------------------------------------------


def readings(model, q, noise, rng):
    """q, q̇ of motors and sensors, which miss each other by some noise."""
    state = model.forward_kinematics(q, rng.uniform(-1, 1, len(q)))
    k = len(q) + len(model.mechanism.sensed)
    off = noise * rng.uniform(-1, 1, k)
    return state.q_r[:k] + off, state.qd_r[:k] + 10 * off


@needs_compiler
@pytest.mark.parametrize(
    ("robot", "sets"),
    [
        ("five_bar", [TERMS, ("inertia", "friction"), ("coriolis", "rotors"), ("gravity",)]),
        ("rrr", [TERMS]),
    ],
)
def test_readings_of_passive_joints_compute_the_same(robot, sets, compiled):
    file = CONFIG / f"{robot}.yaml"
    c = compiled(file)
    mechanism = rd.load(file)
    # of the robot without sensors: where its passive joints are
    plain = facade(mechanism).closed
    way = list(along_a_way(facade(mechanism, terms=())))
    motors = len(plain.actuated_names)
    rng = np.random.default_rng(5)
    link = mechanism.links[-1].name
    for terms in sets:
        for smoothing in (0.0, 0.3) if len(sets) > 1 else (0.0,):
            c["home"](c.place)
            dynamics = facade(mechanism, terms=terms, friction_smoothing=smoothing, sensed=True)
            assert [*c.names("joint", motors), *c.names("sensed", len(mechanism.sensed))] == [
                *dynamics.joint_names
            ]
            for loaded in (False, True):
                load = body(rng) if loaded else None
                c.set_payload(len(mechanism.links) - 1, load)
                dynamics.set_payload(link, load)
                for q, _, qdd in way:
                    # a step that the readings have to follow in strides; for Python by hand
                    read, rates = readings(plain, q, 1e-3, rng)
                    dynamics.closed.reset(plain.forward_kinematics(q))
                    judged = dynamics.closed.disagreement(read, TOLERANCE)
                    assert judged is not None
                    how, left = c.read(read)
                    assert how == GOOD
                    assert abs(left).max() == pytest.approx(judged[1], rel=1e-6, abs=1e-12)
                    how, tau = c.read_torques(motors, rates, qdd, terms, smoothing)
                    assert how == GOOD
                    assert (
                        relative(tau, dynamics.closed.consistent_torques(read, rates, qdd))
                        < ROUNDING
                    )


@needs_compiler
@pytest.mark.parametrize("robot", ["five_bar", "rrr"])
def test_a_sensor_that_does_not_fit_leaves_the_place_alone(robot, compiled):
    c = compiled(CONFIG / f"{robot}.yaml")
    plain = facade(rd.load(CONFIG / f"{robot}.yaml")).closed
    home = plain.home.q_r
    motors, k = len(plain.joint_names), len(plain.joint_names) + len(plain.mechanism.sensed)
    good = home[:k]
    monitor = SensorMonitor(plain.mechanism, threshold=TOLERANCE)
    assert c.read(good)[0] == GOOD
    before = c.place.raw
    for joint in range(k):
        for off in (0.05, -0.05, 0.5, 3.0):
            q = good.copy()
            q[joint] += off
            how, left = c.read(q)
            # one that is small may be explained by all joints together
            monitor.reset()
            assert (how == GOOD) == monitor.update(q).consistent
            if how == GOOD:
                assert abs(off) < 0.1
                c["home"](c.place)
                c.read(good)
                continue
            # a motor that is far away may be where the loops can't be
            assert how == NOT_FITTING or (joint < motors and how == NOT_CLOSED)
            if how == NOT_FITTING:
                assert abs(left).max() > TOLERANCE
            if joint >= motors and len(plain.mechanism.sensed) > 2:
                assert np.argmax(abs(left)) == joint
            assert c.place.raw == before
        for wrong in (np.nan, np.inf):
            q = good.copy()
            q[joint] = wrong
            assert c.read(q)[0] == NOT_FINITE
    assert c.read(good + 1e-3)[0] == GOOD  # within the tolerance
    assert c.read(good, tolerance=1e-9)[0] == GOOD
    assert c.read(good + 1e-3 * np.arange(k), tolerance=1e-6)[0] == NOT_FITTING


# --- the package ----------------------------------------------------------------------------


def test_the_package_is_complete_and_the_same_each_time(tmp_path):
    first = write_package(str(CONFIG / "three_axis.yaml"), tmp_path / "a")
    second = write_package(str(CONFIG / "three_axis.yaml"), tmp_path / "b")
    assert first["package"] == "three_axis_feed_forward_controller"
    place = tmp_path / "a" / first["package"]
    files = sorted(path for path in place.rglob("*") if path.is_file())
    assert sorted(first["files"]) == [str(path) for path in files]
    for one, other in zip(first["files"], second["files"], strict=True):
        text = Path(one).read_text(encoding="utf-8")
        assert text == Path(other).read_text(encoding="utf-8")
        assert not re.search(r"{%|%}|{{ | }}|Undefined", text), one
        assert str(tmp_path) not in text
    for path in files:
        if path.suffix == ".xml":
            ET.parse(path)
        if path.suffix == ".yaml":
            yaml.safe_load(path.read_text())
    parameters = yaml.safe_load((place / "src/feed_forward_controller_parameters.yaml").read_text())
    joints = parameters[first["package"]]["joints"]["default_value"]
    assert joints == list(rd.load(CONFIG / "three_axis.yaml").actuated_names)
    assert (place / "CMakeLists.txt").read_text().count("robot_dynamics") == 0
    assert "robot_dynamics" not in (place / "package.xml").read_text()


def test_parameters_mean_what_the_nodes_mean(tmp_path):
    from robot_dynamics.ros.feed_forward.parameters import BY_NAME

    result = write_package(str(CONFIG / "polar.yaml"), tmp_path)
    place = tmp_path / result["package"]
    known = yaml.safe_load((place / "src/feed_forward_controller_parameters.yaml").read_text())
    shared = ("terms", "effort_limits", "slew_limits", "ramp_time", "friction_smoothing", "gravity")
    for name in (*shared, "max_acceleration", "command_timeout", "on_timeout"):
        mine, its = known[result["package"]][name], BY_NAME[name]
        assert mine["type"] == its.type
        default = mine["default_value"]
        assert (tuple(default) if isinstance(default, list) else default) == its.default, name


def test_files_that_are_there_stay_unless_forced(tmp_path):
    write_package(str(CONFIG / "polar.yaml"), tmp_path)
    with pytest.raises(rd.RobotDynamicsError, match="force"):
        write_package(str(CONFIG / "polar.yaml"), tmp_path)
    write_package(str(CONFIG / "polar.yaml"), tmp_path, force=True)


HOSTILE = [
    'a"; system("true"); //',
    "a*/ int b",
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "a\\",
    "a/effort",
    "a b",
    "ключ",
    "a\n- b",
    "${HOME}",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_joints_name_that_is_more_than_a_name_is_refused(name, tmp_path):
    description = random_dh(1, joints=2)
    description["links"][0]["joint"]["name"] = name
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(description))
    with pytest.raises(rd.RobotDynamicsError):
        write_package(str(file), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@needs_compiler
@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "a b"])  # a comment may
def test_other_names_never_reach_the_text(name, tmp_path):
    description = random_dh(1, joints=2)
    old = description["links"][1]["name"]
    description["robot"] = name
    description["links"][1]["name"] = name
    for link in description["links"]:
        if link.get("parent") == old:
            link["parent"] = name
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(description, allow_unicode=True))
    try:
        rd.load(file)
    except rd.RobotDynamicsError:
        pytest.skip("such a description is refused as such")
    with unmeasured():
        result = write_package(str(file), tmp_path / "out")
    assert re.fullmatch(r"[a-z][a-z0-9_]*_feed_forward_controller", result["package"])
    Compiled(tmp_path / "out" / result["package"])
    for path in result["files"]:
        assert name not in Path(path).read_text(encoding="utf-8")


@needs_compiler
@pytest.mark.parametrize("name", ["polar", "five_bar"])
def test_springs_of_all_joints_are_in_the_text(name, tmp_path, compiled):
    """The interface of the solver's friction vector has no positions: those of open chains are
    added to its other torques."""
    description = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    for k, link in enumerate(description["links"]):
        link["friction"] = {"viscous": 0.2, "offset": 0.1 * k, "stiffness": 3.0 + k}
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump(description))
    mechanism = rd.load(file)
    c, dynamics = compiled(file), facade(mechanism)
    near = np.array(dynamics.home, dtype=float) + 0.05
    qd, qdd = np.random.default_rng(0).uniform(-0.5, 0.5, (2, len(near)))
    for terms in (TERMS, ("friction",)):
        expected = facade(mechanism, terms=terms)(near, qd, qdd)
        assert (
            relative(c.torques(len(dynamics.actuated_names), near, qd, qdd, terms)[1], expected)
            < 1e-9
        )
    bare = facade(rd.load(CONFIG / f"{name}.yaml"))(near, qd, qdd)
    assert relative(dynamics(near, qd, qdd), bare) > 0.01
    (solver,) = Path(c._library._name).parent.glob("src/*solver*.cpp")
    added = solver.read_text().count("+ springs(q)")
    assert added == (2 if name == "polar" else 0)


def turning(name: str, folder: Path) -> Path:
    """A shipped robot whose friction turns round after each reversal."""
    description = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    for link in description["links"]:
        link["friction"] = {"viscous": 0.2, "coulomb": 2.0, "presliding": 0.05}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(description))
    return file


@needs_compiler
@pytest.mark.parametrize("name", ["polar", "five_bar"])
def test_presliding_of_all_joints_is_in_the_text(name, tmp_path, compiled):
    file = turning(name, tmp_path)
    c, dynamics = compiled(file), facade(rd.load(file))
    near = np.array(dynamics.home, dtype=float) + 0.05
    developed = dynamics(near, np.full(len(near), 0.2), np.zeros(len(near)))
    for qd in (0.2, -0.2, 0.0):
        for qdd in (3.0, -3.0, 0.0):
            state = near, np.full(len(near), qd), np.full(len(near), qdd)
            expected = dynamics(*state)
            found = c.torques(len(dynamics.actuated_names), *state, TERMS)[1]
            assert relative(found, expected) < 1e-9
    assert relative(dynamics(near, state[1] + 0.2, state[2] + 3.0), developed) > 0.01
    # the solver's friction vector has no accelerations, the table has
    (check,) = Path(c._library._name).parent.glob("test/*solver*.cpp")
    assert "getFrictionVector(qd) + turning" in check.read_text()


LAWS = (
    {"viscous": 0.3, "coulomb": 1.5, "smoothing": 0.05},
    {"coulomb": 1.0, "coulomb_negative": 1.7, "smoothing": 0.4, "offset": 0.2},
    {"coulomb": 0.8, "stribeck": {"torque": 0.5, "rate": 0.1}, "smoothing": 0.02},
    {"coulomb": 0.8, "stribeck": {"torque": -0.5, "rate": 0.3}},
    {"coulomb": 0.8, "presliding": 0.03, "smoothing": 0.3},
    {"viscous": 0.2, "coulomb": 2.0},
)
"""Of joints, one after the other: what is smoothed, at rates of its own, beside what is not"""
OF_ROTORS = {"viscous": 1e-4, "coulomb": 1e-3, "smoothing": 20.0}


@needs_compiler
@pytest.mark.parametrize("name", ["three_axis", "rrr"])
def test_each_friction_law_has_its_own_smoothing(name, tmp_path, compiled):
    description = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    for k, link in enumerate(description["links"]):
        link["friction"] = LAWS[(k + 2) % len(LAWS)]
        if "rotor" in link:
            link["rotor"]["friction"] = OF_ROTORS | {"stribeck": {"torque": 5e-4, "rate": 30.0}}
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump(description))
    mechanism, c = rd.load(file), compiled(file)
    near = np.array(facade(mechanism).home, dtype=float) + 0.02
    rng = np.random.default_rng(5)
    for smoothing in (0.0, 0.3):
        dynamics = facade(mechanism, friction_smoothing=smoothing)
        motors = len(dynamics.actuated_names)
        for rate in (0.0, 1e-3, 0.02, 0.3, 3.0):
            qd, qdd = rate * rng.uniform(-1, 1, len(near)), rng.uniform(-2, 2, len(near))
            how, tau = c.torques(motors, near, qd, qdd, TERMS, smoothing)
            assert how == GOOD
            assert relative(tau, dynamics(near, qd, qdd)) < ROUNDING


@pytest.mark.parametrize(
    "prefix", ["Arm", "1arm", "a__b", "a-b", "a_", "", "../a", 'a"', "a" * 201]
)
def test_a_prefix_is_a_packages_name(prefix, tmp_path):
    with pytest.raises(rd.RobotDynamicsError, match="prefix"):
        write_package(str(CONFIG / "polar.yaml"), tmp_path, prefix=prefix)


def test_the_command_line_refuses_terms_that_are_a_parameter(tmp_path, capsys):
    from robot_dynamics.app.cli import main

    arguments = ["export", str(CONFIG / "polar.yaml"), "--as", "controller", "--out", str(tmp_path)]
    assert main([*arguments, "--terms", "gravity"]) == 1
    assert "parameter" in capsys.readouterr().err
    assert main(arguments) == 0
    assert (tmp_path / "polar_feed_forward_controller" / "package.xml").exists()


def test_the_benchmark_says_what_is_missing():
    script = CONFIG.parent / "benchmarks" / "controller.py"
    environment = os.environ | {"AMENT_PREFIX_PATH": ""}
    run = subprocess.run(
        [sys.executable, script, "polar"], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 1
    assert "controller_manager" in run.stderr
    assert "Traceback" not in run.stderr


CMAKE = shutil.which("cmake")
NO_GMOCK = """
macro(ament_add_gmock name)
  message(WARNING "no gmock: ${name} is left out")
endmacro()
"""
"""What ament_cmake_gmock does where gmock's sources are missing"""


@needs_compiler
@pytest.mark.skipif(CMAKE is None, reason="no CMake")
def test_without_gmock_the_package_is_configured_without_its_tests(tmp_path):
    write_package(str(CONFIG / "polar.yaml"), tmp_path)
    written = (tmp_path / "polar_feed_forward_controller" / "CMakeLists.txt").read_text()
    tests = written[written.index("if(BUILD_TESTING)") : written.rindex("ament_package()")]
    assert tests.count("ament_add_gmock(") == 3
    package = tmp_path / "alone"
    package.mkdir()
    (package / "ament_cmake_gmockConfig.cmake").write_text(NO_GMOCK)
    (package / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(alone C)\nset(BUILD_TESTING ON)\n"
        f"set(inverse_dynamics_solver_FOUND ON)\n{tests}"
    )
    run = subprocess.run(
        [CMAKE, "-S", package, "-B", package / "build", f"-DCMAKE_PREFIX_PATH={package}"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("is left out") == 3


def ros2_control() -> bool:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    needed = ("controller_interface", "generate_parameter_library", "realtime_tools")
    return all(
        any(prefix and (Path(prefix) / "share" / name).is_dir() for prefix in prefixes)
        for name in needed
    )


@pytest.mark.skipif(
    not ros2_control(), reason="ros2_control is not sourced: the generated package is not built"
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("robot", "turns"), [("polar", True), ("five_bar", False)])
def test_colcon_builds_it_and_its_own_tests_pass(robot, turns, tmp_path):
    description = turning(robot, tmp_path) if turns else CONFIG / f"{robot}.yaml"
    write_package(str(description), tmp_path / "src")
    colcon = shutil.which("colcon") or str(Path(sys.executable).with_name("colcon"))
    for verb in (["build"], ["test"], ["test-result", "--verbose"]):
        run = subprocess.run([colcon, *verb], cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
