# SPDX-License-Identifier: Apache-2.0
"""Drive gains from a known load: MuJoCo is the arm, its torques are told in other units."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recorded import motion

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.errors import InputError, RecordingError
from robot_dynamics.identification import Recording, Stream
from robot_dynamics.identification.drive_gains import drive_gains
from robot_dynamics.mechanism import Inertial

pytest.importorskip("scipy", reason="SciPy filters the recordings")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the robot")

URDF = (Path(__file__).parents[1] / "urdf" / "six_axis.urdf").read_text()
ARM = rd.load(URDF)
LINK = ARM.links[-1].name
LOAD = Inertial(6.0, np.array([0.08, -0.05, 0.12]), np.diag([0.03, 0.04, 0.02]))
GAINS = np.array([12.0, -9.5, 11.0, 4.2, 3.9, -2.4])
"""N·m for one unit of current; two drives count the other way"""


def log(load: Inertial | None, seed: int, noise: float = 0.01) -> Recording:
    """Currents of MuJoCo's arm, with friction and offsets that MuJoCo knows nothing of."""
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
        # MuJoCo's own passive forces are none of the drives' torques
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
    assert (misses < 2).mean() > 0.88  # 95 % of 72, less 2.7 deviations of that count
    assert (misses < 3).mean() > 0.97
    assert np.sqrt((misses**2).mean()) > 0.6  # nor are they merely large


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
    """The last joint's gain comes through the bodies that it shares with the others."""
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


def test_the_command_finds_gains_and_identifies_with_them(tmp_path, capsys):
    paths = []
    for name, told in (("empty", log(None, 1)), ("loaded", log(LOAD, 2))):
        (stream,) = told.streams
        header = [f"{n}/{f}" for f in ("position", "velocity", "effort") for n in stream.names]
        table = [stream.time[:, None], stream.position, stream.velocity, stream.effort]
        paths.append(tmp_path / f"{name}.csv")
        np.savetxt(
            paths[-1], np.hstack(table), delimiter=",", header=",".join(["time", *header]),
            comments="",
        )  # fmt: skip
    (tmp_path / "arm.urdf").write_text(URDF)
    command = ["identify", str(tmp_path / "arm.urdf"), str(paths[0]), "--out", str(tmp_path / "o")]
    gains = ["--drive-gains", str(paths[1]), "--load"]
    load = f"{LINK}:6,0.08,-0.05,0.12,0.03,0.04,0.02"
    assert main([*command, *gains, load, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for name, gain in zip(ARM.joint_names, GAINS, strict=True):
        each = told["drive_gains"][name]
        assert abs(each["gain"] - gain) < 4 * each["standard_deviation"]
    assert max(told["errors"]["unseen"]["identified"]) < 0.2
    for wrong in (LINK, f"{LINK}:6,0", f"{LINK}:x,0,0,0", f"{LINK}:-1,0,0,0"):
        assert main([*command, *gains, wrong]) == 1
        assert "load" in capsys.readouterr().err
    assert main([*command, "--drive-gains", str(paths[1])]) == 1
    assert "--load" in capsys.readouterr().err
