# SPDX-License-Identifier: Apache-2.0
"""Angles as people write them: rounded, tiny, near π and π/2. What runs by default, against
Pinocchio, at each joint's own scale."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from robots import (
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    example_robots_that_move,
    inertia,
    numbers,
    pin,
)

import robot_dynamics as rd
from robot_dynamics.mechanism import Joint, Pose
from robot_dynamics.mechanism.base_parameters import FARTHEST, sparse_frames
from robot_dynamics.mechanism.transform import standard_form

STATES = 4
ROUNDING = 1e-14
"""Of a robot's largest torque: what a joint that carries nothing may show"""


def angle(rng):
    """A multiple of π/2 as it stands in descriptions, and now and then any angle."""
    right = float(rng.integers(-2, 3)) * np.pi / 2
    kind = rng.integers(6)
    if kind == 0:
        return right
    if kind <= 2:
        return round(right, int(rng.integers(2, 13)))
    if kind <= 4:
        return right + float(rng.choice([-1, 1])) * 10.0 ** rng.uniform(-15, -3)
    return float(rng.uniform(-3, 3))


def rounded_urdf(seed, joints=6, branching=False, offset=0.5, scale=1.0, angle=angle):
    """A chain or a tree; lengths in `scale` metres, joints up to `offset` of them apart."""
    rng = np.random.default_rng(seed)
    parts = ['<robot name="rounded">', '<link name="link0"/>']
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    axes = ("0 0 1", "0 0 -1", "0 1 0", "-1 0 0", "0 0 1", "0 0.000001 1", "0 0.7071068 0.7071068")
    for i in range(1, joints + 1):
        parent = int(rng.integers(max(0, i - 3), i)) if branching else i - 1
        kinds = ["revolute", "continuous", "revolute", "prismatic", "fixed"]
        kind = (
            "revolute" if i in (1, joints) else str(rng.choice(kinds, p=[0.3, 0.3, 0.2, 0.1, 0.1]))
        )
        mass = float(rng.uniform(0.1, 5)) if i == joints or rng.random() < 0.9 else 0.0
        I = (inertia(rng, mass or 1.0) * bool(mass) * scale**2).tolist()
        lever = rng.uniform(-0.3, 0.3, 3) * scale * (rng.random(3) < 0.7)
        turned = [angle(rng) for _ in range(3)]
        parts.append(
            f'<link name="link{i}"><inertial>'
            f'<origin xyz="{numbers(lever)}" rpy="{numbers(turned)}"/>'
            f'<mass value="{mass!r}"/><inertia ixx="{I[0][0]!r}" ixy="{I[0][1]!r}" '
            f'ixz="{I[0][2]!r}" iyy="{I[1][1]!r}" iyz="{I[1][2]!r}" izz="{I[2][2]!r}"/>'
            "</inertial></link>"
        )
        xyz = rng.uniform(-1, 1, 3) * offset * scale * (rng.random(3) < 0.6)
        rpy = [angle(rng) if rng.random() < 0.6 else 0.0 for _ in range(3)]
        parts.append(
            f'<joint name="joint{i}" type="{kind}"><parent link="link{parent}"/>'
            f'<child link="link{i}"/><origin xyz="{numbers(xyz)}" rpy="{numbers(rpy)}"/>'
            f'<axis xyz="{rng.choice(axes)}"/>{limit}</joint>'
        )
    return "\n".join([*parts, "</robot>"])


class Oracle:
    """Pinocchio's torques, and what each joint's torque is made of."""

    def __init__(self, text, names):
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        joints = [self.model.joints[self.model.getJointId(name)] for name in names]
        self.columns = [joint.idx_v for joint in joints]
        self.joints = joints

    def placed(self, q, *rates):
        x = pin.neutral(self.model)
        for value, joint in zip(q, self.joints, strict=True):
            if joint.nq == 2:
                x[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                x[joint.idx_q] = value
        full = [np.zeros(self.model.nv) for _ in rates]
        for vector, rate in zip(full, rates, strict=True):
            vector[self.columns] = rate
        return x, *full

    def torques(self, q, qd, qdd):
        return pin.rnea(self.model, self.data, *self.placed(q, qd, qdd))[self.columns]

    def contributions(self, q, qd, qdd):
        """Σ_k |D_jk q̈_k| + Σ_k |C_jk q̇_k| + |g_j| of each joint j."""
        x, v, a = self.placed(q, qd, qdd)
        D = pin.crba(self.model, self.data, x)
        D = np.triu(D) + np.triu(D, 1).T
        C = pin.computeCoriolisMatrix(self.model, self.data, x, v)
        g = pin.computeGeneralizedGravity(self.model, self.data, x)
        return (np.abs(D) @ np.abs(a) + np.abs(C) @ np.abs(v) + np.abs(g))[self.columns]


def states(seed, n, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, (STATES, n)), *rng.uniform(-3, 3, (2, STATES, n))


def compared(text, dynamics, seed):
    """Largest error of any joint over its own scale."""
    oracle = Oracle(text, dynamics.joint_names)
    q, qd, qdd = states(seed, len(dynamics.joint_names))
    expected = np.array([oracle.torques(*each) for each in zip(q, qd, qdd, strict=True)])
    own = np.max([oracle.contributions(*e) for e in zip(q, qd, qdd, strict=True)], axis=0)
    allowed = RELATIVE_TO_PINOCCHIO * own + ROUNDING * own.max(initial=0.0)
    batch = dynamics(q, qd, qdd)
    single = np.array([dynamics(*each) for each in zip(q, qd, qdd, strict=True)])
    worst = 0.0
    for found in (batch, single):
        worst = max(worst, float((np.abs(found - expected) / allowed).max(initial=0.0)))
    return worst * RELATIVE_TO_PINOCCHIO


def quietly(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(text)


@pytest.mark.parametrize("branching", [False, True], ids=["chains", "trees"])
@pytest.mark.parametrize("scale", [1e-3, 1.0], ids=["millimetres", "metres"])
def test_generated_python_has_pinocchios_torques_whatever_the_angles(branching, scale):
    for seed in range(80):
        text = rounded_urdf(seed, joints=3 + seed % 7, branching=branching, scale=scale)
        dynamics = rd.InverseDynamics(rd.load(text), backend="python")
        assert compared(text, dynamics, seed) < RELATIVE_TO_PINOCCHIO, seed


@pytest.mark.parametrize("seed", range(100, 124))
def test_a_compiled_kernel_has_pinocchios_torques_whatever_the_angles(seed):
    text = rounded_urdf(seed, joints=3 + seed % 5, branching=seed % 2 == 1)
    assert compared(text, rd.InverseDynamics(rd.load(text)), seed) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("formulation", ["gibbs_appell", "murphy", "lagrange_euler"])
def test_the_formulations_agree_to_rounding_whatever_the_angles(formulation):
    for seed in range(16 if formulation == "lagrange_euler" else 40):
        text = rounded_urdf(seed, joints=3 + seed % 4, branching=seed % 2 == 1)
        dynamics, other = (
            rd.InverseDynamics(rd.load(text), name, backend="python")
            for name in ("newton_euler", formulation)
        )
        q, qd, qdd = states(seed, len(dynamics.joint_names))
        oracle = Oracle(text, dynamics.joint_names)
        own = np.max([oracle.contributions(*e) for e in zip(q, qd, qdd, strict=True)], axis=0)
        allowed = RELATIVE_TO_SISTERS * (own + 1e-3 * own.max())
        assert (np.abs(dynamics(q, qd, qdd) - other(q, qd, qdd)) <= allowed).all(), seed


@pytest.mark.parametrize("tilt", [10.0**-k for k in range(1, 16)])
@pytest.mark.parametrize("near", [0.0, np.pi], ids=["parallel", "antiparallel"])
def test_no_tilt_between_axes_is_dropped_and_none_throws_a_frame_away(tilt, near):
    """Everywhere between parallel and skew, for a joint that feels the tilt alone.

    The first joint is vertical but for the tilt: its gravity torque is m g l sin(tilt).
    """
    text = TILTED.format(tilt=repr(float(tilt)), near=repr(float(near + tilt)))
    dynamics = rd.InverseDynamics(rd.load(text), backend="python")
    oracle = Oracle(text, dynamics.joint_names)
    q, still = np.array([0.7, -0.4, 1.1, 0.2]), np.zeros(4)
    # own scale here: tilt itself, known to 1e-16 rad
    allowed = RELATIVE_TO_PINOCCHIO * tilt + 1e-14
    g = dynamics.gravity(q)
    assert np.abs(g - oracle.torques(q, still, still)).max() < allowed * 10 * 9.81
    assert np.abs(g).max() > tilt
    assert compared(text, dynamics, 0) < 1e-12


LINK = (
    '<link name="{0}"><inertial><origin xyz="0.3 0.2 0.1"/><mass value="3"/><inertia ixx="0.1" '
    'iyy="0.1" izz="0.1" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial></link>'
)
JOINT = (
    '<joint name="j{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
    '<origin xyz="0.4 0.3 0.2" rpy="{3}"/><axis xyz="0 0 1"/></joint>'
)
TILTED = "".join(
    [
        '<robot name="tilted"><link name="base"/>',
        *(LINK.format(name) for name in "abcd"),
        *(
            JOINT.format(i, parent, child, rpy)
            for i, (parent, child, rpy) in enumerate(
                [
                    ("base", "a", "{tilt} 0 0.3"),
                    ("a", "b", "{near} 0 0.5"),
                    ("b", "c", "0 {near} 0.7"),
                    ("c", "d", "{near} {tilt} 1.1"),
                ]
            )
        ),
        "</robot>",
    ]
)


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_frames_are_chosen_alike_whatever_the_unit_of_length(unit):
    def in_units(joint: Joint) -> Joint:
        return replace(joint, origin=Pose(joint.origin.rotation, unit * joint.origin.translation))

    for seed in range(10):
        tree = standard_form(rd.load(rounded_urdf(seed, joints=8)))
        links = tuple(replace(link, joint=in_units(link.joint)) for link in tree.links)
        moved, other = sparse_frames(tree), sparse_frames(replace(tree, links=links))
        for one, same in zip(moved.links, other.links, strict=True):
            expected, found = in_units(one.joint).origin, same.joint.origin
            np.testing.assert_array_equal(found.translation, expected.translation)
            np.testing.assert_array_equal(found.rotation, expected.rotation)


def test_frames_stay_within_reach_and_tilts_of_a_urdfs_rounding_stay_in_them():
    for seed in range(40):
        tree = standard_form(rd.load(rounded_urdf(seed, joints=8)))
        moved = sparse_frames(tree)
        reach = sum(np.linalg.norm(link.joint.origin.translation) for link in tree.links)
        for before, after in zip(tree.links, moved.links, strict=True):
            far = np.linalg.norm(after.joint.origin.translation)
            assert far <= 2 * (1 + FARTHEST) * reach
            # the angle between neighbouring axes is what it was, to rounding
            tilts = [np.linalg.norm(link.joint.origin.rotation[:2, 2]) for link in (before, after)]
            if before.parent != tree.base:
                assert abs(tilts[0] - tilts[1]) < 1e-14


def rounded(text):
    """Every rpy to six decimals, as most URDFs have it."""

    def six(found):
        return f'rpy="{" ".join(f"{float(x):.6f}" for x in found.group(1).split())}"'

    return re.sub(r'rpy="([-+.\deE\s]+)"', six, text)


@pytest.mark.parametrize("file", example_robots_that_move(), ids=lambda file: file.stem)
def test_every_example_robot_with_rounded_angles_has_pinocchios_torques(file):
    text = rounded(file.read_text())
    mechanism = quietly(text)
    if any(link.joint.coupling for link in mechanism.moving):
        text = re.sub(r"<mimic[^>]*/>", "", text)  # this oracle has no mimic joints
        mechanism = quietly(text)
    if not mechanism.joint_names:
        with pytest.raises(rd.InputError, match="no joint that moves"):
            rd.InverseDynamics(mechanism)
        return
    dynamics = rd.InverseDynamics(
        mechanism, terms=["inertia", "coriolis", "gravity"], backend="python"
    )
    assert compared(text, dynamics, 3) < RELATIVE_TO_PINOCCHIO
