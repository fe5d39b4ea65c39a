# SPDX-License-Identifier: Apache-2.0
"""Drive gains from a known load: MuJoCo is the arm, and its torques are reported in other units."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded import motion
from test_coupled_wrist import COULOMB, GEARS, INERTIA, VISCOUS, urdf, written

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.commands.identify import _lines
from robot_dynamics.errors import InputError, RecordingError
from robot_dynamics.identification import Recording, Stream
from robot_dynamics.identification.drive_gains import drive_gains
from robot_dynamics.identification.motor_efforts import at_joints, motor_rows
from robot_dynamics.identification.replay import replay
from robot_dynamics.identification.watch import Watch
from robot_dynamics.mechanism import Inertial, Pose, Rotor

pytest.importorskip("scipy", reason="SciPy filters the recordings")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the robot")

URDF = (Path(__file__).parents[1] / "urdf" / "six_axis.urdf").read_text()
ARM = rd.load(URDF)
LINK = ARM.links[-1].name
LOAD = Inertial(6.0, np.array([0.08, -0.05, 0.12]), np.diag([0.03, 0.04, 0.02]))
GAINS = np.array([12.0, -9.5, 11.0, 4.2, 3.9, -2.4])
"""N·m per unit of current; two drives have the opposite sign"""


def log(load: Inertial | None, seed: int, noise: float = 0.01) -> Recording:
    """Currents of MuJoCo's arm, plus friction and offsets that MuJoCo does not have."""
    spec = mujoco.MjSpec.from_string(URDF)
    spec.compiler.fusestatic = False
    if load is not None:
        body = spec.body(LINK).add_body(name="load")
        body.explicitinertial, body.mass = True, load.mass
        body.ipos, body.inertia = load.center_of_mass, np.diag(load.inertia)
    model = spec.compile()
    model.dof_armature[:] = [1.0, 2.0, 1.0, 0.2, 0.1, 0.05]
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # limits and contacts
    data = mujoco.MjData(model)
    assert [model.joint(k).name for k in range(model.njnt)] == list(ARM.joint_names)
    time, q, qd, qdd = motion(model.nv, 20.0, 100.0, seed)
    tau = np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        # MuJoCo's own passive forces do not come from the drives
        tau[k] = data.qfrc_inverse + data.qfrc_passive
    size = np.array([10.0, 12.0, 8.0, 2.0, 2.0, 0.5])
    currents = (tau + size * (0.5 * qd + np.sign(qd) + 0.2)) / GAINS
    rng = np.random.default_rng(seed)
    currents += noise * np.sqrt((currents**2).mean(axis=0)) * rng.normal(size=q.shape)
    return Recording(f"log {seed}", (Stream(ARM.joint_names, time, q, qd, currents),))


@pytest.fixture(scope="module")
def found():
    return drive_gains(ARM, log(None, 1), log(LOAD, 2), LINK, LOAD)


def test_gains_are_found_within_their_deviations(found):
    values = np.array([found.gains[name] for name in ARM.joint_names])
    deviations = np.array([found.deviations[name] for name in ARM.joint_names])
    assert found.warnings == ()
    assert (np.abs(values - GAINS) < 3 * deviations).all()
    assert (deviations < 0.02 * np.abs(GAINS)).all()


def test_deviations_cover(found):
    misses = []
    for seed in range(3, 15):
        told = drive_gains(ARM, log(None, 2 * seed), log(LOAD, 2 * seed + 1), LINK, LOAD)
        misses += [
            (told.gains[name] - gain) / told.deviations[name]
            for name, gain in zip(ARM.joint_names, GAINS, strict=True)
        ]
    misses = np.abs(misses)
    assert (misses < 2).mean() > 0.88  # 95 % of 72, minus 2.7 deviations of that number
    assert (misses < 3).mean() > 0.97
    assert np.sqrt((misses**2).mean()) > 0.6  # nor are they merely large


def test_noise_of_velocities_does_not_bias_gains():
    def noisy(recording: Recording, seed: int) -> Recording:
        (stream,) = recording.streams
        rng = np.random.default_rng(seed)
        q, qd = stream.position, stream.velocity
        q, qd = q + 5e-5 * rng.normal(size=q.shape), qd + 5e-3 * rng.normal(size=q.shape)
        return Recording(recording.source, (replace(stream, position=q, velocity=qd),))

    misses = []
    for seed in range(3, 9):
        logs = [noisy(log(load, 2 * seed + k), seed) for k, load in enumerate((None, LOAD))]
        told = drive_gains(ARM, *logs, LINK, LOAD)
        misses += [
            (told.gains[name] / gain - 1) / told.deviations[name] * abs(gain)
            for name, gain in zip(ARM.joint_names, GAINS, strict=True)
        ]
    # a bias by half a deviation, where 36 independent misses leave a sixth
    assert abs(np.mean(misses)) < 0.5
    assert np.sqrt(np.mean(np.square(misses))) < 1.4


def test_gains_do_not_depend_on_the_described_bodies(found):
    wrong = rd.load(URDF.replace('<mass value="', '<mass value="1'))
    other = drive_gains(wrong, log(None, 1), log(LOAD, 2), LINK, LOAD)
    for name, gain in found.gains.items():
        assert other.gains[name] == pytest.approx(gain, rel=1e-6)


def test_recordings_in_any_order_say_the_same(found):
    empty = [log(None, 1), log(None, 3)]
    one = drive_gains(ARM, empty, log(LOAD, 2), LINK, LOAD)
    other = drive_gains(ARM, empty[::-1], log(LOAD, 2), LINK, LOAD)
    for name in ARM.joint_names:
        assert other.gains[name] == pytest.approx(one.gains[name], rel=1e-9)
        assert one.deviations[name] < found.deviations[name]


def test_a_load_on_an_axis_does_not_tell_of_it_alone():
    """The last joint's gain follows from the bodies that also act on other joints."""
    axial = Inertial(6.0, np.array([0.0, 0.0, 0.1]), np.zeros((3, 3)))
    told = drive_gains(ARM, log(None, 1), log(axial, 2), LINK, axial)
    for name, gain in zip(ARM.joint_names, GAINS, strict=True):
        assert abs(told.gains[name] - gain) < 4 * told.deviations[name]


def test_what_a_load_cannot_tell_is_said():
    speck = Inertial(1e-4, np.array([0.05, 0.0, 0.05]), np.zeros((3, 3)))
    with pytest.raises(RecordingError, match="too light"):
        drive_gains(ARM, log(None, 1), log(speck, 2), LINK, speck)
    with pytest.raises(InputError, match="a known mass"):
        drive_gains(ARM, log(None, 1), log(LOAD, 2), LINK, Inertial())
    with pytest.raises(InputError, match="at least one recording without"):
        drive_gains(ARM, [], log(LOAD, 2), LINK, LOAD)
    with pytest.raises(InputError, match="tool0"):
        drive_gains(ARM, log(None, 1), log(LOAD, 2), "tool0", LOAD)


SHAFTS = np.diag(GEARS)
SHAFTS[5, 4] = 32.0
"""Motor rates over joint rates: the sixth motor turns with joints 5 and 6"""
CONSTANTS = np.array([0.4, -0.3, 0.25, 0.09, -0.08, 0.07])
"""N·m of the motor per unit of current"""
TOOL = Inertial(2.0, np.array([0.05, -0.03, 0.08]), np.diag([0.01, 0.012, 0.006]))


def wrist_log(load: Inertial | None, seed: int, noise: float = 0.01) -> Recording:
    """Currents of MuJoCo's arm, whose motors are tendons; joint 6 has friction of its own, too."""
    spec = mujoco.MjSpec.from_string(urdf(1.0))
    spec.compiler.fusestatic = False
    for k, row in enumerate(SHAFTS):
        tendon = spec.add_tendon(name=f"motor{k}", armature=INERTIA[k], damping=VISCOUS[k])
        for j in np.flatnonzero(row):
            tendon.wrap_joint(f"j{j + 1}", row[j])
    if load is not None:
        body = spec.body("flange").add_body(name="load")
        body.explicitinertial, body.mass = True, load.mass
        body.ipos, body.inertia = load.center_of_mass, np.diag(load.inertia)
    model = spec.compile()
    data = mujoco.MjData(model)
    time, q, qd, qdd = motion(model.nv, 20.0, 100.0, seed)
    tau = np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse
    tau[:, 5] += 0.3 * np.sign(qd[:, 5]) + 0.2 * qd[:, 5]
    of_motors = np.linalg.solve(SHAFTS.T, tau.T).T + COULOMB * np.sign(qd @ SHAFTS.T)
    currents = of_motors / CONSTANTS
    rng = np.random.default_rng(seed)
    currents += noise * np.sqrt((currents**2).mean(axis=0)) * rng.normal(size=q.shape)
    names = tuple(f"j{k}" for k in range(1, 7))
    return Recording(f"log {seed}", (Stream(names, time, q, qd, currents),))


@pytest.fixture(scope="module")
def coupled(tmp_path_factory):
    path = written(tmp_path_factory.mktemp("wrist") / "arm", known=False, heavier=0.8)
    return path, drive_gains(str(path), wrist_log(None, 1), wrist_log(TOOL, 2), "flange", TOOL)


def test_gains_of_motors_that_turn_with_several_joints(coupled):
    path, sharp = coupled
    logs = wrist_log(None, 3), wrist_log(TOOL, 4)
    smooth = drive_gains(str(path), *logs, "flange", TOOL, cutoff=20.0)
    misses = []
    for told in (sharp, smooth):
        assert told.coupled
        for name, gain in zip(told.gains, CONSTANTS * np.diag(SHAFTS), strict=True):
            misses.append((told.gains[name] - gain) / told.deviations[name])
            assert told.deviations[name] < 0.03 * abs(gain)
    assert np.abs(misses).max() < 4
    assert 0.5 < np.sqrt((np.array(misses) ** 2).mean()) < 1.6


def test_the_model_of_coupled_motors_is_identified_with_their_gains(coupled):
    path, told = coupled
    logs = wrist_log(None, 1)
    found = rd.identify(str(path), logs, cutoff=100.0, effort_scale=told.gains, motor_efforts=True)
    assert (found.errors.relative < 0.03).all()
    (motor,) = (each for each in found.mechanism.rotors if len(each.ratios) > 1)
    assert motor.friction.coulomb == pytest.approx(COULOMB[5], rel=0.2)
    assert found.mechanism.joint("j6").friction.coulomb == pytest.approx(0.3, rel=0.3)
    # taken as joint torques, those of the fifth joint are not explained
    apart = rd.identify(str(path), logs, cutoff=100.0, effort_scale=told.gains)
    assert apart.errors.relative[4] > 2 * found.errors.relative[4]


def test_where_motors_share_a_joint_a_wrong_effort_may_be_that_of_each_of_them(coupled):
    path, told = coupled
    log = wrist_log(None, 1)
    (stream,) = log.streams
    effort = stream.effort * [1, 1, 1, 1, 1, -1]
    wrong = replace(log, streams=(replace(stream, effort=effort),))
    found = rd.identify(
        str(path), wrong, validate=wrist_log(None, 3), cutoff=50.0, effort_scale=told.gains,
        motor_efforts=True,
    )  # fmt: skip
    (line,) = (each for each in found.warnings if each.startswith("j5: the model leaves"))
    assert "which is that of the motors recorded at j5, j6" in line


def test_efforts_of_motors_are_those_of_joints_by_their_rows():
    mechanism = rd.load(urdf(1.0))
    a, b = (
        Rotor(n, "base", Pose(), r, Inertial())
        for n, r in (("m5", (("j5", 40.0),)), ("m6", (("j5", -16.0), ("j6", 32.0))))
    )
    robot = replace(mechanism, rotors=(b, a))
    rows = np.eye(6)
    rows[5, 4] = -0.5
    np.testing.assert_array_equal(motor_rows(robot), rows)
    log = wrist_log(None, 1)
    (stream,) = log.streams
    effort = stream.effort.copy()
    effort[3, 4], effort[7, 5], effort[9, 0] = np.nan, np.nan, np.nan
    (moved,) = at_joints(replace(log, streams=(replace(stream, effort=effort),)), robot).streams
    expected = effort.copy()
    expected[:, 4] -= 0.5 * effort[:, 5]
    np.testing.assert_array_equal(moved.effort, expected)
    # the sixth motor's drive measures nothing
    silent = replace(stream, effort=np.where(np.arange(6) == 5, 0.0, stream.effort))
    (moved,) = at_joints(replace(log, streams=(silent,)), robot).streams
    assert np.isnan(moved.effort).all(axis=0).tolist() == 4 * [False] + 2 * [True]
    alone = replace(log, streams=(stream.of(["j6", "j5"]), stream.of(["j1"])))
    np.testing.assert_array_equal(
        at_joints(alone, robot).streams[0].effort, (stream.effort @ rows)[:, [5, 4]]
    )
    apart = replace(log, streams=(stream.of(["j5"]), stream.of(["j6"])))
    with pytest.raises(RecordingError, match="messages that contain j5 lack efforts for j6"):
        at_joints(apart, robot)
    both = (("j5", 16.0), ("j6", 32.0))
    differential = replace(robot, rotors=(b, replace(b, name="m7", ratios=both)))
    with pytest.raises(InputError, match="rotor m6: it is coupled to j5, j6"):
        motor_rows(differential)
    named = replace(robot, rotors=(replace(b, name="j5"), replace(b, name="j6", ratios=both)))
    np.testing.assert_allclose(motor_rows(named)[4:, 4:], [[1, -2], [0.5, 1]])
    twins = replace(robot, rotors=(replace(b, name="j5"), replace(b, name="j6")))
    with pytest.raises(InputError, match="depend on each other"):
        motor_rows(twins)


@pytest.fixture(scope="module")
def wrist(tmp_path_factory):
    """The description of `wrist_log`'s arm, without the own friction of its last joint."""
    return written(tmp_path_factory.mktemp("wrist") / "arm", known=True, heavier=1.0)


SCALES = {f"j{k}": x for k, x in enumerate(CONSTANTS * np.diag(SHAFTS), 1)}


def test_motors_efforts_are_replayed_as_the_torques_of_joints(wrist):
    log = wrist_log(None, 1)
    (stream,) = log.streams
    plain = wrist.with_name("arm.urdf")
    options = {"effort_scale": SCALES, "cutoff": 20.0}
    found = replay([plain, wrist], log, motor_efforts=True, **options)
    # τ = Nᵀ τ_motors
    torques = replace(stream, effort=(stream.effort * CONSTANTS) @ SHAFTS)
    by_hand = replay([plain, wrist], Recording("by hand", (torques,)), cutoff=20.0)
    (samples,), (expected,) = found.stretches, by_hand.stretches
    assert samples.unfiltered == pytest.approx(expected.unfiltered, rel=1e-9, abs=1e-9)
    assert found.relative == pytest.approx(by_hand.relative, rel=1e-9)
    _, right = found.relative
    assert (right[:5] < 0.1).all()
    _, apart = replay([plain, wrist], log, **options).relative
    assert apart[4] > 3 * right[4]


def test_models_of_other_couplings_are_not_replayed_on_motors_efforts(wrist, tmp_path):
    robot = rd.load(wrist)
    others = tuple(
        replace(each, ratios=(("j5", -32.0), ("j6", 32.0))) if len(each.ratios) > 1 else each
        for each in robot.rotors
    )
    other = replace(robot, name="other", rotors=others)
    log = wrist_log(None, 1)
    with pytest.raises(InputError, match="arm, other: their gear ratios"):
        replay([robot, other], log, motor_efforts=True, cutoff=20.0)
    assert replay([robot, robot], log, motor_efforts=True, cutoff=20.0).labels == ("arm", "arm (2)")


def test_the_replay_command_takes_motors_efforts(wrist, tmp_path, capsys):
    (path,) = tables(tmp_path, wrist_log(None, 1))
    scales = [f"{name}:{factor}" for name, factor in SCALES.items()]
    command = ["replay", str(wrist), path, "--cutoff", "20", "--out", str(tmp_path)]
    errors = []
    for more in ([], ["--motor-efforts"]):
        assert main([*command, "--effort-scale", *scales, *more, "--json"]) == 0
        errors.append(json.loads(capsys.readouterr().out)["errors"][0][4])
    assert errors[1] < 0.1 < errors[0] / 3


def test_a_watch_takes_motors_efforts(wrist):
    robot = rd.load(wrist)
    watch, by_hand = Watch(robot, "flange", motor_efforts=True), Watch(robot, "flange")
    log = wrist_log(TOOL, 1)
    (stream,) = log.streams
    torques = replace(stream, effort=(stream.effort * CONSTANTS) @ SHAFTS)
    found = watch.add(log.scaled(SCALES)).numbers
    expected = by_hand.add(replace(log, streams=(torques,))).numbers
    for name, number in found.items():
        assert number.value == pytest.approx(expected[name].value, rel=1e-6, abs=1e-9)
    # a load of 2 kg on a flange of 0.2 kg
    assert abs(found["flange.mass"].value - 2.2) < 4 * found["flange.mass"].deviation < 0.05
    taken = Watch(robot, "flange").add(log.scaled(SCALES)).numbers
    assert abs(taken["j5.viscous"].value - found["j5.viscous"].value) > 0.05
    twins = tuple(
        replace(each, ratios=(("j5", 32.0), ("j6", 32.0))) if each.name in ("motor5", "motor6")
        else each
        for each in robot.rotors
    )  # fmt: skip
    with pytest.raises(InputError, match="not clear"):
        Watch(replace(robot, rotors=twins), "flange", motor_efforts=True)


def test_motors_efforts_of_a_robot_with_loops_are_refused(tmp_path, capsys):
    loops = rd.load("package://robot_dynamics/config/five_bar.yaml")
    log = Recording("log", ())
    with pytest.raises(InputError, match="five_bar: it has loops"):
        at_joints(log, loops)


def tables(folder: Path, *logs: Recording) -> list[str]:
    """The paths of recordings that are written to this folder."""
    paths = []
    for k, told in enumerate(logs):
        (stream,) = told.streams
        header = [f"{n}/{f}" for f in ("position", "velocity", "effort") for n in stream.names]
        table = [stream.time[:, None], stream.position, stream.velocity, stream.effort]
        paths.append(str(folder / f"{k}.csv"))
        np.savetxt(
            paths[-1], np.hstack(table), delimiter=",", header=",".join(["time", *header]),
            comments="",
        )  # fmt: skip
    return paths


def test_the_command_takes_coupled_motors_and_says_how_to_do_so_again(coupled, tmp_path, capsys):
    path, told = coupled
    empty, loaded = tables(tmp_path, wrist_log(None, 1), wrist_log(TOOL, 2))
    command = ["identify", str(path), empty, "--out", str(tmp_path / "o"), "--cutoff", "100"]
    load = "flange:2,0.05,-0.03,0.08,0.01,0.012,0.006"
    (line,) = (each for each in _lines(told) if each.startswith("to use them again: "))
    again = line.removeprefix("to use them again: ").split()
    assert again[-1] == "--motor-efforts"
    errors = []
    for options in (["--drive-gains", loaded, "--load", load], again):
        assert main([*command, *options, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        errors.append(found["errors"]["held_out"]["identified"])
    assert max(errors[0]) < 0.05
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_the_command_finds_gains_and_identifies_with_them(tmp_path, capsys):
    paths = tables(tmp_path, log(None, 1), log(LOAD, 2))
    (tmp_path / "arm.urdf").write_text(URDF)
    command = ["identify", str(tmp_path / "arm.urdf"), paths[0], "--out", str(tmp_path / "o")]
    gains = ["--drive-gains", paths[1], "--load"]
    load = f"{LINK}:6,0.08,-0.05,0.12,0.03,0.04,0.02"
    assert main([*command, *gains, load, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_default = drive_gains(tmp_path / "arm.urdf", *paths, LINK, LOAD)
    for name, gain in zip(ARM.joint_names, GAINS, strict=True):
        each = told["drive_gains"][name]
        assert each["gain"] == pytest.approx(by_default.gains[name], rel=1e-9)
        assert abs(each["gain"] - gain) < 4 * each["standard_deviation"]
    assert max(told["errors"]["held_out"]["identified"]) < 0.2
    for wrong in (LINK, f"{LINK}:6,0", f"{LINK}:x,0,0,0", f"{LINK}:-1,0,0,0"):
        assert main([*command, *gains, wrong]) == 1
        assert "load" in capsys.readouterr().err
    assert main([*command, "--drive-gains", paths[1]]) == 1
    assert "--load" in capsys.readouterr().err
