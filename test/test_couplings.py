# SPDX-License-Identifier: Apache-2.0
"""Joints that follow others, and motors that several joints share: offsets, friction, inertia."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import yaml
from robots import (
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    pin,
    pinocchio_torques,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import Equations

MIMIC = '<mimic joint="{}" multiplier="{}" offset="{}"/>'
RUBS = '<dynamics damping="{}" friction="{}"/>'


def arm(additions):
    """(URDF text with these additions to joints by number, the joints' names)"""
    text = random_urdf(11, joints=8, branching=False).replace('type="fixed"', 'type="revolute"', 1)
    names = rd.load(text).joint_names
    for place, addition in additions.items():
        end = text.index("</joint>", text.index(f'<joint name="{names[place]}"'))
        text = text[:end] + addition.format(*names) + text[end:]
    return text, names


def shares(names):
    """Joint 1 follows joint 3, which follows joint 0: {joint: (ratio, offset)} by hand."""
    text, _ = arm(
        {
            1: MIMIC.format(names[3], -0.5, 0.7) + RUBS.format(0.4, 0.9),
            3: MIMIC.format(names[0], -1.7, 0.3) + RUBS.format(0.2, 0.0),
            0: RUBS.format(0.1, 0.6),
        }
    )
    return text, {names[0]: (1.0, 0.0), names[3]: (-1.7, 0.3), names[1]: (0.85, -0.15 + 0.7)}


@pytest.fixture
def chained():
    _, names = arm({})
    text, followed = shares(names)
    return text, names, followed


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_chain_of_mimics_has_its_ratios_and_offsets(chained, name):
    text, names, followed = chained
    mechanism = rd.load(text)
    assert mechanism.joint_names == (names[0], names[2], *names[4:])
    n = len(mechanism.joint_names)
    S, s = np.zeros((len(names), n)), np.zeros(len(names))
    for row, joint in enumerate(names):
        ratio, offset = followed.get(joint, (1.0, 0.0))
        S[row, 0 if joint in followed else mechanism.joint_names.index(joint)] = ratio
        s[row] = offset
    q, qd, qdd = state(5, n)
    model = pin.buildModelFromXML(text)
    expected = S.T @ pinocchio_torques(model, names, S @ q + s, S @ qd, S @ qdd)
    terms = {"inertia", "coriolis", "gravity"}
    found = Equations.of(mechanism, name, terms=terms).torques(q, qd, qdd)
    assert relative(found, expected) < RELATIVE_TO_PINOCCHIO
    compiled = rd.InverseDynamics(mechanism, name, terms=terms, backend="python")
    assert relative(compiled(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_followers_hand_their_friction_to_their_master(chained):
    text, _, followed = chained
    mechanism = rd.load(text)
    dynamics = rd.InverseDynamics(mechanism, terms=["friction"])
    n = len(mechanism.joint_names)
    for rate in (0.8, -1.3):
        qd = np.zeros(n)
        qd[0] = rate
        found = dynamics(np.zeros(n), qd, np.zeros(n))
        laws = zip(followed.values(), [(0.1, 0.6), (0.2, 0.0), (0.4, 0.9)], strict=True)
        expected = sum(
            ratio * (viscous * ratio * rate + coulomb * np.sign(ratio * rate))
            for (ratio, _), (viscous, coulomb) in laws
        )
        assert found[0] == pytest.approx(expected, rel=1e-14)
        assert not found[1:].any()


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_reflected_differential_is_felt_by_both_of_its_joints(tmp_path, name):
    robot = random_dh(1, joints=4, rotors=False)
    bare = copy.deepcopy(robot)
    first, second = robot["links"][1]["joint"]["name"], robot["links"][3]["joint"]["name"]
    spins = {"left": (0.003, {first: 12.0, second: 7.0}), "right": (0.002, {second: -5.0})}
    robot["rotors"] = {
        rotor: {"mount": "base", "gear_ratio": ratio, "inertia": {"izz": izz}}
        for rotor, (izz, ratio) in spins.items()
    }
    mechanisms = []
    for each in (robot, bare):
        (tmp_path / "robot.yaml").write_text(yaml.safe_dump(each))
        mechanisms.append(rd.load(tmp_path / "robot.yaml"))
    names = mechanisms[0].joint_names
    gears = np.array([[ratio.get(joint, 0.0) for joint in names] for _, ratio in spins.values()])
    expected = gears.T @ np.diag([izz for izz, _ in spins.values()]) @ gears
    q, qd, qdd = state(1, len(names))
    with_, without = (Equations.of(each, name, "reflected") for each in mechanisms)
    # they are differences of D, with entries a hundred times as large
    assert relative(with_.mass_matrix(q) - without.mass_matrix(q), expected) < 1e-10
    gained = with_.torques(q, qd, qdd) - without.torques(q, qd, qdd)
    assert relative(gained, expected @ qdd) < 1e-10
    assert relative(with_.gravity(q), without.gravity(q)) < RELATIVE_TO_SISTERS
