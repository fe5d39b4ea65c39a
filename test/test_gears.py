# SPDX-License-Identifier: Apache-2.0
"""What the reflected model of rotors neglects, by gear ratio, speed and balance."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.app import plots
from robot_dynamics.app.compare import constant_acceleration
from robot_dynamics.app.gears import (
    RATIOS,
    SPEEDS,
    WORTH,
    GearErrors,
    balanced,
    gear_errors,
    text,
)

FILE = CONFIG / "three_axis.yaml"


@pytest.fixture(scope="module")
def motion():
    time = np.linspace(0, 0.2, 11)
    return constant_acceleration([0.1, 0.2, -0.3], [1.0, 2.0, 1.5], [5.0, -2.0, 4.0], time)


@pytest.fixture(scope="module")
def found(motion):
    return gear_errors(rd.load(FILE), *motion)


@pytest.mark.parametrize("kind", ["as described", "balanced"])
def test_errors_are_those_of_the_robot_described_with_that_gear_at_that_speed(
    kind, motion, found, tmp_path
):
    i, k = 3, 36
    content = yaml.safe_load(FILE.read_text())
    for link in content["links"]:
        link["rotor"]["gear_ratio"] *= float(RATIOS[k]) / 2.5
        if kind == "balanced":
            link["rotor"]["center_of_mass"][:2] = [0.0, 0.0]
            moments = link["rotor"]["inertia"]
            moments["ixx"] = moments["iyy"] = (moments["ixx"] + moments["iyy"]) / 2
    (tmp_path / "geared.yaml").write_text(yaml.safe_dump(content))
    mechanism = rd.load(tmp_path / "geared.yaml")
    q, qd, qdd = motion
    states = q, SPEEDS[i] * qd, SPEEDS[i] ** 2 * qdd
    full, reflected = (
        rd.InverseDynamics(mechanism, rotors=model)(*states) for model in ("full", "reflected")
    )
    expected = (np.abs(full - reflected).max(axis=0) / np.abs(full).max(axis=0)).max()
    assert found.errors[kind][i, k] == pytest.approx(expected, rel=1e-9)
    assert found.rates[i] == pytest.approx(SPEEDS[i] * np.abs(qd).max())


def test_balanced_rotors_are_balanced_and_weigh_and_spin_as_before():
    for before, after in zip(rd.load(FILE).rotors, balanced(rd.load(FILE)).rotors, strict=True):
        assert after.is_symmetric
        assert after.inertial.mass == before.inertial.mass
        assert after.inertial.inertia[2, 2] == before.inertial.inertia[2, 2]
        assert after.ratios == before.ratios
        assert np.trace(after.inertial.inertia) == pytest.approx(np.trace(before.inertial.inertia))


def test_the_full_model_is_worth_having_from_the_last_crossing_on():
    rows = np.full((len(SPEEDS), len(RATIOS)), WORTH / 2)
    rows[1, 20:] = rows[2, 5] = rows[2, 30:] = rows[3] = 2 * WORTH
    errors = GearErrors(np.array(SPEEDS), {"as described": rows})
    assert errors.worth() == {"as described": [None, RATIOS[20], RATIOS[30], RATIOS[0]]}
    last = text(errors)[-1]
    assert "0.25 rad/s nowhere" in last
    assert f"0.5 rad/s from Γ = {RATIOS[20]:.2g} on" in last


def test_robots_without_rotors_or_with_loops_have_no_such_errors(motion):
    bare = rd.load(CONFIG / "cartesian.yaml")
    assert gear_errors(bare, *motion) is None
    assert gear_errors(rd.load(CONFIG / "five_bar.yaml"), *motion) is None


def test_rotors_that_are_balanced_as_described_are_told_once(motion):
    errors = gear_errors(balanced(rd.load(FILE)), *motion)
    assert list(errors.errors) == ["as described"]


def test_they_are_drawn(found, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = plots.gears(tmp_path / "gears.png", "three_axis", found)
    assert path.read_bytes().startswith(b"\x89PNG")
