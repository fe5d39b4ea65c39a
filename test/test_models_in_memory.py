# SPDX-License-Identifier: Apache-2.0
"""Pinocchio's and robotics-toolbox's models in memory: their torques and ours agree."""

from __future__ import annotations

import numpy as np
import pytest
from robots import RELATIVE_TO_PINOCCHIO, example_robots, inertia, pin, relative
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.description.fields import DescriptionWarning

RIGID = {"inertia", "coriolis", "gravity", "rotors"}
BRANCHED = ("talos_reduced.urdf", "icub_reduced.urdf", "panda.urdf", "ur10_robot.urdf", "go2.urdf")


def compared(model, seed: int = 0) -> None:
    dynamics = InverseDynamics(rd.from_pinocchio(model), terms=RIGID)
    assert dynamics.joint_names == tuple(model.names)[1:]
    q, v, a = np.random.default_rng(seed).uniform(-2, 2, (3, model.nv))
    theirs = []
    for joint in list(model.joints)[1:]:
        angle = q[joint.idx_v]
        theirs += [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
    expected = pin.rnea(model, model.createData(), np.array(theirs), v, a)
    assert relative(dynamics(q, v, a), expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", BRANCHED)
def test_the_order_and_the_torques_are_pinocchios(name):
    found = [path for path in example_robots() if path.name == name]
    if not found:
        pytest.skip("example-robot-data is not installed, which has this robot")
    compared(pin.buildModelFromUrdf(str(found[0])))


@pytest.mark.parametrize("seed", range(3))
def test_every_joint_of_one_degree_of_freedom_is_pinocchios(seed):
    rng = np.random.default_rng(seed)
    oblique = np.array([0.6, 0.0, 0.8])
    kinds = [
        pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ(), pin.JointModelPX(),
        pin.JointModelPY(), pin.JointModelPZ(), pin.JointModelRUBX(), pin.JointModelRUBZ(),
        pin.JointModelRevoluteUnaligned(oblique), pin.JointModelPrismaticUnaligned(oblique),
    ]  # fmt: skip
    model = pin.Model()
    for k in rng.permutation(len(kinds)):
        parent = int(rng.integers(0, model.njoints))
        joint = model.addJoint(parent, kinds[k], pin.SE3.Random(), f"joint{k}")
        mass = float(rng.uniform(1, 3))
        body = pin.Inertia(mass, rng.uniform(-0.2, 0.2, 3), inertia(rng, mass))
        model.appendBodyToJoint(joint, body, pin.SE3.Random())
    model.armature = rng.uniform(0, 1, model.nv)
    model.gravity.linear = rng.normal(size=3)
    compared(model, seed)


def test_a_free_flyer_and_a_ball_are_joints_of_several_parts():
    model = pin.Model()
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "root")
    model.appendBodyToJoint(base, pin.Inertia.Random(), pin.SE3.Identity())
    hip = model.addJoint(base, pin.JointModelSpherical(), pin.SE3.Random(), "hip")
    model.appendBodyToJoint(hip, pin.Inertia.Random(), pin.SE3.Random())
    dynamics = InverseDynamics(rd.from_pinocchio(model))
    assert dynamics.joint_names == tuple(
        [f"root_{part}" for part in ("x", "y", "z", "rz", "ry", "rx")]
        + [f"hip_{part}" for part in ("rz", "ry", "rx")]
    )
    # at rest, not turned: gravity on Pinocchio's axes, ours in the order z, y, x
    q = pin.neutral(model)
    g = pin.computeGeneralizedGravity(model, model.createData(), q)
    ours = dynamics.gravity(np.zeros(9))
    np.testing.assert_allclose(ours, g[[0, 1, 2, 5, 4, 3, 8, 7, 6]], atol=1e-12 * np.abs(g).max())


def test_limits_and_friction_are_kept():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "turn")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.lowerPositionLimit[:], model.upperPositionLimit[:] = -1.0, 2.0
    model.damping[:], model.friction[:] = 0.3, 0.4
    turn = rd.from_pinocchio(model).joint("turn")
    assert (turn.limits.lower, turn.limits.upper, turn.limits.effort) == (-1.0, 2.0, None)
    assert (turn.friction.viscous, turn.friction.coulomb) == (0.3, 0.4)


@pytest.mark.parametrize("field", ["armature", "damping", "friction"])
def test_what_joints_of_several_parts_lose_is_said(field):
    model = pin.Model()
    hip = model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "hip")
    model.appendBodyToJoint(hip, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    getattr(model, field)[:] = 0.5
    said = rf"joint 'hip': {field}: found \[0\.5, 0\.5, 0\.5\], expected none: it is left out"
    with pytest.warns(DescriptionWarning, match=said):
        rd.from_pinocchio(model)
    with pytest.raises(rd.DescriptionError, match=said):
        rd.from_pinocchio(model, strict=True)


def test_a_joint_that_is_not_known_is_named():
    model = pin.Model()
    composite = pin.JointModelComposite(pin.JointModelRX())
    composite.addJoint(pin.JointModelRY())
    model.addJoint(0, composite, pin.SE3.Identity(), "gimbal")
    with pytest.raises(rd.DescriptionError, match="'gimbal': kind: found 'JointModelComposite'"):
        rd.from_pinocchio(model)
    with pytest.raises(rd.DescriptionError, match=r"pinocchio\.Model"):
        rd.from_pinocchio("talos")


@pytest.mark.parametrize("modified", [False, True], ids=["standard", "modified"])
@pytest.mark.parametrize("seed", range(3))
def test_a_dh_robot_of_the_toolbox_is_ours(seed, modified):
    rtb = pytest.importorskip("roboticstoolbox", reason="roboticstoolbox-python is not installed")
    from spatialmath import SE3

    rng = np.random.default_rng(seed)
    made = {
        (False, False): rtb.RevoluteDH, (False, True): rtb.RevoluteMDH,
        (True, False): rtb.PrismaticDH, (True, True): rtb.PrismaticMDH,
    }  # fmt: skip
    links = []
    for _ in range(4):
        mass, slides = float(rng.uniform(1, 5)), bool(rng.integers(2))
        numbers = {"a": rng.uniform(-0.5, 0.5), "alpha": rng.uniform(-2, 2)}
        numbers["theta" if slides else "d"] = rng.uniform(-0.5, 0.5)
        links.append(
            made[slides, modified](
                **numbers, offset=rng.uniform(-1, 1), m=mass, r=rng.uniform(-0.2, 0.2, 3),
                I=inertia(rng, mass), Jm=1e-4, G=float(rng.choice([-60, 50])),
                B=float(rng.uniform(1e-4, 1e-2)), Tc=[0.02, -0.03],
            )
        )  # fmt: skip
    robot = rtb.DHRobot(links, base=SE3.Rand(), gravity=rng.normal(0, 5, 3).tolist())
    dynamics = rd.InverseDynamics(rd.from_dh(robot), rotors="reflected")
    q, qd, qdd = rng.uniform(-1, 1, (3, 4))
    tip = dynamics.mechanism.links[-1].name
    np.testing.assert_allclose(dynamics.pose(q, tip), robot.fkine(q).A, atol=1e-12)
    # its compiled rne differs from its own Python where a modified link slides
    expected = np.ravel(robot.rne_python(q, qd, qdd))
    assert relative(dynamics(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_the_toolboxs_puma_is_ours():
    rtb = pytest.importorskip("roboticstoolbox", reason="roboticstoolbox-python is not installed")
    robot = rtb.models.DH.Puma560()
    with pytest.warns(DescriptionWarning, match="triangle"):  # as published
        mechanism = rd.from_dh(robot)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    ours = InverseDynamics(mechanism, rotors="reflected")(q, qd, qdd)
    assert relative(ours, np.ravel(robot.rne(q, qd, qdd))) < RELATIVE_TO_PINOCCHIO
    with pytest.raises(rd.DescriptionError, match="DHRobot"):
        rd.from_dh("puma")
