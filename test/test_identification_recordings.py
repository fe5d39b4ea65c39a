# SPDX-License-Identifier: Apache-2.0
"""Two real robots: a UR10 at 125 Hz and a Panda at 30 Hz (see data/recordings/LICENSE)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from robots import example_robots
from scipy.signal import butter, filtfilt

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.identification import identify, read
from robot_dynamics.identification.bodies import is_possible
from robot_dynamics.mechanism.dynamic_parameters import numbers_of
from robot_dynamics.mechanism.transform import lumped

pytest.importorskip("rosbags", reason="rosbags reads the recordings")
pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is the yardstick")

RECORDINGS = Path(__file__).parent / "data" / "recordings"
PLAIN = {
    "ur10": (8.0, [14.5, 5.7, 5.3, 11.3, 11.5, 16.7]),
    "panda": (4.0, [41.7, 2.6, 2.8, 2.1, 10.5, 6.4, 16.9]),
}
"""Hz; what plain least squares miss of the last 30 %, in % (viscous, Coulomb and constant friction,
rotor inertia; scipy.signal.filtfilt, central differences, numpy.linalg.lstsq(rcond=1e-4))"""
RENAME = {"ur10": {}, "panda": {"fer_joint": "panda_joint"}}


def urdf(robot: str) -> Path:
    name = {"ur10": "ur10_robot.urdf", "panda": "panda.urdf"}[robot]
    found = [path for path in example_robots() if path.name == name]
    if not found:
        pytest.skip("example-robot-data is not installed, which has the robots' URDFs")
    return found[0]


def first_part(robot: str, fraction: float):
    recording = read(RECORDINGS / robot).renamed(RENAME[robot])
    (stream,) = recording.streams
    k = round(fraction * len(stream.time))
    return type(recording)(robot, (stream.rows(slice(0, k)),)), stream, k


@pytest.mark.parametrize("robot", ["ur10", "panda"])
def test_unseen_motion_is_foretold_better_than_by_plain_least_squares(robot):
    cutoff, plain = PLAIN[robot]
    train, stream, k = first_part(robot, 0.7)
    # nothing of the last 30 % is seen: not to fit, not to choose
    result = identify(str(urdf(robot)), train, validate=train)
    mechanism = result.mechanism
    dynamics = rd.InverseDynamics(mechanism)
    stream = stream.of(dynamics.joint_names)
    time = np.linspace(stream.time[0], stream.time[-1], len(stream.time))
    period = time[1] - time[0]
    b, a = butter(4, cutoff * 2 * period)
    q, qd, tau = (
        filtfilt(b, a, [np.interp(time, stream.time, x) for x in field.T]).T
        for field in (stream.position, stream.velocity, stream.effort)
    )
    qdd = np.gradient(qd, period, axis=0)
    unseen = slice(k, len(time) - round(0.4 / period))
    miss = tau[unseen] - dynamics(q[unseen], qd[unseen], qdd[unseen])
    error = 100 * np.sqrt((miss**2).mean(axis=0) / (tau[unseen] ** 2).mean(axis=0))
    assert (error <= 1.05 * np.array(plain)).all(), error
    assert error.mean() <= 0.9 * np.mean(plain), error
    assert all(is_possible(numbers_of(link.inertial)) for link in lumped(mechanism).links)


@pytest.mark.parametrize("robot", ["ur10", "panda"])
def test_what_is_written_is_what_was_judged(robot, tmp_path, capsys):
    rename = [f"{old}:{new}" for old, new in RENAME[robot].items()]
    options = ["--rename", *rename] if rename else []
    command = ["identify", str(urdf(robot)), str(RECORDINGS / robot), "--out", str(tmp_path)]
    assert main([*command, *options, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "report.json").read_text())["errors"] == said["errors"]
    assert np.mean(said["errors"]["held_out"]["identified"]) < 0.15
    loaded = rd.load(tmp_path / "identified.yaml")
    assert loaded.joint_names == tuple(said["joints"])
    both = [str(urdf(robot)), str(tmp_path / "identified.yaml")]
    command = ["replay", *both, str(RECORDINGS / robot), "--out", str(tmp_path), "--json"]
    assert main([*command, *options]) == 0
    compared = json.loads(capsys.readouterr().out)
    before, after = compared["errors"]
    assert (np.array(after) < np.array(before)).all()

    # the URDF has the same rigid bodies
    rigid = {"inertia", "coriolis", "gravity"}
    model = pinocchio.buildModelFromUrdf(str(tmp_path / "identified.urdf"))
    dynamics = rd.InverseDynamics(rd.load(tmp_path / "identified.urdf"), terms=rigid)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, qd, qdd = rng.uniform(-2, 2, (3, model.nv))
        ours = dynamics(*(x[: len(dynamics.joint_names)] for x in (q, qd, qdd)))
        if len(ours) == model.nv:
            theirs = pinocchio.rnea(model, model.createData(), q, qd, qdd)
            np.testing.assert_allclose(ours, theirs, atol=1e-10 * np.abs(theirs).max())
