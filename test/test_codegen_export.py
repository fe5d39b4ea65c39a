# SPDX-License-Identifier: Apache-2.0
"""The exported C compiles anywhere and computes what Python computes."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess

import numpy as np
import pytest
import yaml
from robots import CONFIG, random_dh, random_urdf, relative, state, unmeasured

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.dynamics.export import comment, export, identifiers, origin

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
ROUNDING = 1e-12
"""Relative: the numbers are folded in, so that sums come in another order"""

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture
def robot(tmp_path):
    """Writes a description; gives its path."""

    def write(description):
        is_text = isinstance(description, str)
        path = tmp_path / ("robot.urdf" if is_text else "robot.yaml")
        path.write_text(description if is_text else yaml.safe_dump(description))
        return path

    return write


def compiled(out):
    """The exported functions, on arrays."""
    subprocess.run([CC, *STRICT, "robot_dynamics.c", "-o", "robot.so", "-lm"], cwd=out, check=True)
    library = ctypes.CDLL(str(out / "robot.so"))

    def call(name, shape, *states):
        result = np.full(shape, np.nan)
        arguments = [ctypes.c_void_p(x.ctypes.data) for x in (*states, result)]
        getattr(library, f"robot_{name}")(*arguments)
        return result

    return call


def check(path, out, **options):
    with unmeasured():
        export(str(path), out, prefix="robot", force=True, **options)
    call = compiled(out)
    dynamics = rd.InverseDynamics(rd.load(path), **options)
    n = len(dynamics.joint_names)
    for seed in range(3):
        q, qd, qdd = state(seed, n)
        assert relative(call("torques", n, q, qd, qdd), dynamics(q, qd, qdd)) < ROUNDING
        assert relative(call("mass_matrix", (n, n), q), dynamics.mass_matrix(q)) < ROUNDING
        expected = dynamics.coriolis_matrix(q, qd)
        assert relative(call("coriolis_matrix", (n, n), q, qd), expected) < ROUNDING
        assert relative(call("gravity", n, q), dynamics.gravity(q)) < ROUNDING
    for place in range(n):
        q[place] = np.nan
        assert np.isnan(call("torques", n, q, qd, qdd)).all()
        q[place] = 0.0


@needs_compiler
@pytest.mark.parametrize(
    "formulation", ["newton_euler", "gibbs_appell", "murphy", "lagrange_euler"]
)
def test_strict_c99_computes_the_same(robot, tmp_path, formulation):
    check(robot(random_dh(1, joints=4, rotors=True)), tmp_path / "out", formulation=formulation)


@needs_compiler
def test_a_program_in_several_functions_computes_the_same(robot, tmp_path):
    check(robot(random_urdf(7, joints=12)), tmp_path / "out")


@needs_compiler
@pytest.mark.parametrize("name", ["polar", "cartesian"])
def test_the_robots_of_the_package(name, tmp_path):
    check(CONFIG / f"{name}.yaml", tmp_path / "out")
    # unoptimised, GCC also warns of tables that nobody fills
    plain = [CC, *STRICT, "-O0", "robot_dynamics.c", "-o", "plain.so", "-lm"]
    subprocess.run(plain, cwd=tmp_path / "out", check=True)


@needs_compiler
def test_friction_is_exported(robot, tmp_path):
    description = random_dh(2, joints=3)
    description["links"][0]["friction"] = {"viscous": 0.3, "coulomb": 2.0}
    check(robot(description), tmp_path / "plain")
    description["links"][0]["friction"] |= {"offset": 0.1, "coulomb_negative": 1.0}
    description["links"][0]["friction"]["stribeck"] = {"torque": 0.5, "rate": 0.3}
    check(robot(description), tmp_path / "out")


@needs_compiler
def test_c_and_cpp_take_the_header(robot, tmp_path):
    export(str(robot(random_dh(3, joints=3))), tmp_path, prefix="robot")
    for language in ("c", "c++"):
        if language == "c++" and not (shutil.which("c++") or shutil.which("g++")):
            pytest.skip("no C++ compiler")
        done = subprocess.run(
            [
                CC if language == "c" else shutil.which("c++") or shutil.which("g++"),
                "-x",
                language,
                "-fsyntax-only",
                "-Wall",
                "-Werror",
                "robot_dynamics.h",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def test_names_from_descriptions_become_plain_identifiers():
    names = ["shoulder", "shoulder*/ int x;", "ellbow-ß", "ellbow--", "2", "", "a b", "a_b"]
    found = identifiers(names, "ROBOT_JOINT_")
    assert len(set(found)) == len(names)
    assert all(name.isascii() and name.isidentifier() for name in found)
    assert found[0] == "ROBOT_JOINT_SHOULDER"
    awkward = identifiers(["a", "A", "a_1"], "J_")
    assert len(set(awkward)) == 3


@needs_compiler
def test_hostile_names_do_not_get_into_the_text(robot, tmp_path):
    description = random_dh(4, joints=2)
    description["robot"] = '"*/ #error robot'
    description["links"][0]["name"] = "*/ #error link"
    description["links"][0]["joint"]["name"] = '*/ \n#error joint "'
    description["links"][1]["parent"] = "*/ #error link"
    export(str(robot(description)), tmp_path, prefix="robot")
    text = (tmp_path / "robot_dynamics.h").read_text() + (tmp_path / "robot_dynamics.c").read_text()
    assert "#error" not in text
    compiled(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prefix": "1st"}, "prefix: found '1st', expected a C identifier"),
        ({"prefix": "../robot"}, "expected a C identifier"),
        ({"prefix": "n" * 201}, "expected a C identifier of at most 200 characters"),
        ({"lang": "fortran"}, "lang: found 'fortran', expected c"),
    ],
)
def test_bad_options_are_refused(options, words, tmp_path):
    with pytest.raises(rd.RobotDynamicsError, match=words):
        export(str(CONFIG / "polar.yaml"), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_chain_is_refused(tmp_path):
    with pytest.raises(rd.RobotDynamicsError, match="expected an open chain"):
        export(str(CONFIG / "rrr.yaml"), tmp_path)


@pytest.mark.parametrize("kind", ["header", "controller", "fmu"])
@pytest.mark.parametrize("links", [[], [{"name": "a", "joint": {"name": "j", "type": "fixed"}}]])
@pytest.mark.filterwarnings("ignore::robot_dynamics.description.fields.DescriptionWarning")
def test_a_robot_that_cannot_move_is_refused_in_one_line(kind, links, robot, tmp_path, capsys):
    if kind == "fmu":
        pytest.importorskip("fmpy")
    file = robot({"robot": "stone", "links": links})
    code = main(["export", str(file), "--as", kind, "--out", str(tmp_path / "out")])
    *_, last = capsys.readouterr().err.splitlines()
    assert code == 1
    assert "found 'no joint that moves'" in last
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["file", "file" * 100])
def test_a_place_that_cannot_be_written_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rd.RobotDynamicsError, match="file") as refusal:
        export(str(CONFIG / "polar.yaml"), tmp_path / name)
    assert "\n" not in str(refusal.value)


@needs_compiler
def test_two_robots_link_into_one_program_by_their_names(robot, tmp_path):
    """The names are the robots', as far as C has letters for them; a prefix overrides them."""
    names = {"polar": "polar", "my-arm (v2)": "my_arm_v2", "2R": "robot_2R", "腕": "robot"}
    for name, prefix in names.items():
        path = robot(random_dh(3, joints=2) | {"robot": name})
        assert export(str(path), tmp_path / "out")["prefix"] == prefix
    export(str(path), tmp_path / "out", prefix="mine")
    objects = [f"{prefix}_dynamics.c" for prefix in (*names.values(), "mine")]
    subprocess.run([CC, *STRICT, *objects, "-o", "all.so", "-lm"], cwd=tmp_path / "out", check=True)


def test_files_that_are_there_are_overwritten_by_force_alone(tmp_path):
    polar = str(CONFIG / "polar.yaml")
    export(polar, tmp_path)
    (tmp_path / "polar_dynamics.h").unlink()
    (tmp_path / "polar_dynamics.c").write_text("mine")
    with pytest.raises(rd.RobotDynamicsError, match=r"polar_dynamics\.c.*--force"):
        export(polar, tmp_path)
    assert (tmp_path / "polar_dynamics.c").read_text() == "mine"
    assert not (tmp_path / "polar_dynamics.h").exists()
    export(polar, tmp_path, force=True)
    assert "polar_torques" in (tmp_path / "polar_dynamics.c").read_text()


def test_the_files_say_what_they_were_made_of(tmp_path):
    polar = CONFIG / "polar.yaml"
    for place in ("a", "b"):
        export(str(polar), tmp_path / place, terms=["inertia", "gravity"])
    for name in ("polar_dynamics.h", "polar_dynamics.c"):
        text = (tmp_path / "a" / name).read_text()
        head = text.split("*/")[0]
        for words in (
            "robot: polar\n",
            f"robot_dynamics {rd.__version__}\n",
            "source: polar.yaml\n",
            f"SHA-256 {hashlib.sha256(polar.read_bytes()).hexdigest()}\n",
            "terms: inertia, gravity",
        ):
            assert words in head
        assert (tmp_path / "b" / name).read_text() == text


def test_a_xacros_arguments_are_in_the_comment_and_cannot_end_it(tmp_path):
    file = CONFIG.parent / "urdf" / "six_axis.urdf.xacro"
    made = origin(f"{file} hardware:=mine controllers:='/* */ x'")
    assert made[1] == "source: six_axis.urdf.xacro hardware:=mine controllers:=/* */ x"
    assert comment(made).count("*/") == 1
    assert "hardware:=mine controllers:=__ __ x" in comment(made)


# --- more than torques --------------------------------------------------------------------------

ALL = ("torques", "forward", "derivatives", "linearize", "pose", "jacobian")


def held_against_python(path, out, bound, dtype, **options):
    link = rd.load(path).links[-2].name
    with unmeasured():
        export(str(path), out, prefix="robot", force=True, functions=ALL, link=link, **options)
    subprocess.run([CC, *STRICT, "robot_dynamics.c", "-o", "robot.so", "-lm"], cwd=out, check=True)
    library = ctypes.CDLL(str(out / "robot.so"))

    def call(name, shape, *states):
        result, states = np.full(shape, np.nan, dtype), [np.array(x, dtype) for x in states]
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*states, result)]
        getattr(library, f"robot_{name}")(*pointers)
        return result

    smoothing = options.get("friction_smoothing", 0.0)
    dynamics = rd.InverseDynamics(rd.load(path), friction_smoothing=smoothing)
    n = len(dynamics.joint_names)
    for seed in range(3):
        q, qd, qdd = state(seed, n)
        tau = dynamics(q, qd, qdd)
        near = dynamics.linearize(q, qd, tau)
        expected = [
            ("torques", (n,), (q, qd, qdd), tau),
            ("forward", (n,), (q, qd, tau), qdd),
            ("derivatives", (3, n, n), (q, qd, qdd), dynamics.derivatives(q, qd, qdd)),
            ("pose", (4, 4), (q,), dynamics.pose(q, link)),
            ("jacobian", (6, n), (q,), dynamics.jacobian(q, link)),
        ]
        for name, shape, states, truth in expected:
            assert relative(call(name, shape, *states), truth) < bound, name
        found = call("linearize", 6 * n * n, q, qd, tau)
        assert relative(found[: 4 * n * n].reshape(2 * n, 2 * n), near.A) < bound
        assert relative(found[4 * n * n :].reshape(2 * n, n), near.B) < bound


@needs_compiler
@pytest.mark.parametrize("formulation", ["newton_euler", "lagrange_euler"])
def test_forward_derivatives_linearize_and_frames_compute_the_same(formulation, robot, tmp_path):
    path = robot(random_dh(2, joints=4, rotors=True))
    # D is solved by another factorisation than LAPACK's
    held_against_python(path, tmp_path / "out", 1e-10, float, formulation=formulation)


@needs_compiler
def test_friction_fades_where_that_is_asked_for(robot, tmp_path):
    path = robot(random_dh(3, joints=3))
    held_against_python(path, tmp_path / "out", 1e-10, float, friction_smoothing=0.7)


@needs_compiler
def test_single_precision_is_single_throughout(robot, tmp_path):
    path, out = robot(random_dh(2, joints=3)), tmp_path / "out"
    held_against_python(path, out, 2e-4, np.float32, precision="single")
    # a double anywhere would be slow where there is no unit for it
    strict = [*STRICT, "-Wdouble-promotion", "-Wconversion"]
    subprocess.run([CC, *strict, "robot_dynamics.c", "-o", "x.so"], cwd=out, check=True)
    assert "double" not in (out / "robot_dynamics.c").read_text()
    assert "double" not in (out / "robot_dynamics.h").read_text()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"functions": ["torque"]}, "functions"),
        ({"precision": "half"}, "precision"),
        ({"link": "hand"}, "link"),
        ({"friction_smoothing": -1.0}, "friction_smoothing"),
    ],
)
def test_what_is_no_option_is_refused(options, word, tmp_path):
    with pytest.raises(rd.RobotDynamicsError, match=word):
        export(str(CONFIG / "polar.yaml"), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_size_is_that_of_the_compiled_code(tmp_path):
    small = export(str(CONFIG / "polar.yaml"), tmp_path / "a", functions=["gravity"])
    large = export(str(CONFIG.parent / "urdf/six_axis.urdf"), tmp_path / "b", functions=["forward"])
    assert 0 < small["size"]["code"] < large["size"]["code"] < 100_000
    assert 0 < small["size"]["stack"] < large["size"]["stack"] < 20_000
    assert "stack" in small["text"]


@needs_compiler
def test_the_command_exports_a_robot_with_loops(tmp_path, capsys):
    command = ["export", str(CONFIG / "five_bar.yaml"), "--out", str(tmp_path)]
    assert main([*command, "--precision", "single"]) == 1
    assert "precision" in capsys.readouterr().err
    assert main(command) == 0
    strict = [CC, *STRICT, "five_bar_dynamics.c", "-o", "x.so", "-lm"]
    subprocess.run(strict, cwd=tmp_path, check=True)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".c", ".h", ".so"]
