# SPDX-License-Identifier: Apache-2.0
"""The model with sensors on passive joints is the paper's (39): of all legs, by least squares."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import closed_robots
import numpy as np
import pytest
import sympy
from closed_robots import ClosedChain
from robots import CONFIG, relative
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import robot_dynamics as rd
from robot_dynamics import closure
from robot_dynamics.closure.geometry.free_platform import free_platform
from robot_dynamics.errors import ClosureError
from robot_dynamics.mechanism import Attachment, Joint, Link, Loop, Mechanism, Pose
from robot_dynamics.symbolic.closed_equations import derive

SAME = 1e-10
OFF = 0.05
"""rad (or m): by how much readings miss"""
PLANE = [0, 1, 5]


def state_of(chains: list, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, q̇, q̈) of the control coordinates, whose readings don't fit together."""
    rng = np.random.default_rng(seed)
    active = ClosedChain(chains[0].mechanism)
    closed = active.forward_kinematics(
        active.home.q_a + rng.uniform(-0.04, 0.04, len(active.home.q_a))
    )
    k = len(chains[0].joint_names)
    turns = [chains[0].mechanism.joint(name).turns for name in chains[0].joint_names]
    off = rng.uniform(-OFF, OFF, k) * np.where(turns, 1.0, 0.1)
    return closed.q_r[:k] + off, rng.uniform(-1, 1, k), rng.uniform(-3, 3, k)


def assert_same_model(chains: list, seed: int) -> None:
    """All that there is of the model is the same for all of them, at readings that don't agree."""
    q, qd, qdd = state_of(chains, seed)
    wrench = np.random.default_rng(seed).uniform(-5, 5, 6)
    first, *others = chains
    assert first.forward_kinematics(q).residual > OFF / 100
    for chain in others:
        assert chain.joint_names == first.joint_names
        for name, given in (
            ("torques", (q, qd, qdd)),
            ("mass_matrix", (q,)),
            ("coriolis_matrix", (q, qd)),
            ("gravity", (q,)),
            ("external_force", (q, wrench)),
        ):
            found, expected = (getattr(each, name)(*given) for each in (chain, first))
            assert relative(found, expected) < SAME, name
        # for good: from another state, and in a batch
        assert relative(chain(q[None], qd, qdd)[0], first(q, qd, qdd)) < SAME
        places = [each.forward_kinematics(q).platform_pose for each in (chain, first)]
        assert relative(*places) < SAME


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_matter_which_leg_of_the_3rrr_carries_the_platform(seed, tmp_path):
    robots = (closed_robots.random_rrr(seed, leg, rotors=True) for leg in range(3))
    chains = [ClosedChain(closed_robots.load(robot, tmp_path), sensed=True) for robot in robots]
    assert_same_model(chains, seed)


def test_it_does_not_matter_which_leg_carries_a_platform_beside_slides(tmp_path):
    seed = 7
    robots = [closed_robots.random_rrr(seed, leg, sliding=1) for leg in range(3)]
    chains = [ClosedChain(closed_robots.load(robot, tmp_path), sensed=True) for robot in robots]
    assert_same_model(chains, seed)
    # all legs' ends are nearest to the platform's hinges in the plane that they move in
    chain = chains[0]
    q, *_ = state_of(chains, seed)
    reference = chain.home.platform_pose
    ends = {name: [] for name in ("home", "read")}
    for which, joints in (("home", chain.home.q_r[:6]), ("read", q)):
        tree = robots[0]["home"] | dict(zip(chain.joint_names, joints, strict=True))
        places = closed_robots.frames(
            closed_robots.robots.dh_to_pinocchio(robots[0], rotors=False)[0], tree
        )
        ends[which] = [places[f"distal{leg}"].translation for leg in range(3)]
    normal = places["ground"].rotation[:, 2]
    moved = nearest_in_plane(np.array(ends["home"]), np.array(ends["read"]), normal)
    # SciPy's slopes are differences
    assert relative(chain.forward_kinematics(q).platform_pose, moved @ reference) < 1e-7


def nearest_in_plane(points, goals, normal) -> np.ndarray:
    """The motion (4, 4) in the plane of `normal` that brings points nearest to goals."""

    def motion(x: np.ndarray) -> np.ndarray:
        M = np.eye(4)
        M[:3, :3] = Rotation.from_rotvec(x[2] * normal).as_matrix()
        M[:3, 3] = plane @ x[:2]
        return M

    def miss(x: np.ndarray) -> np.ndarray:
        M = motion(x)
        return (points @ M[:3, :3].T + M[:3, 3] - goals).ravel()

    plane = np.linalg.svd(normal[None])[2][1:].T
    return motion(least_squares(miss, np.zeros(3), xtol=1e-15, ftol=1e-15, gtol=1e-15).x)


@pytest.mark.parametrize("sliding", [None, 1])
def test_planes_whose_angles_were_rounded_are_planes(sliding, tmp_path):
    """Exporters write 1.5708: a platform can't leave its plane for that where readings disagree."""
    robots = [closed_robots.random_rrr(7, leg, sliding=sliding) for leg in range(2)]
    exact, other = (ClosedChain(closed_robots.load(x, tmp_path), sensed=True) for x in robots)
    rng = np.random.default_rng(0)
    for link in robots[1]["links"][1:]:
        tilted = {"xyz": [0.0, 0.0, 0.0], **link.get("origin", {})}
        link["origin"] = {**tilted, "rpy": rng.uniform(-4e-6, 4e-6, 3).tolist()}
    rounded = ClosedChain(closed_robots.load(robots[1], tmp_path), sensed=True)
    assert rounded.model.hinged is not None
    given = state_of([exact], 7)
    assert exact.forward_kinematics(given[0]).residual > OFF / 100
    assert relative(other(*given), exact(*given)) < SAME
    assert relative(rounded(*given), exact(*given)) < 3e-5  # some times what was rounded


def on_another_leg(mechanism: Mechanism, name: str) -> Mechanism:
    """The platform hung on the leg of a loop, by joints that do what the loop does; where it hung
    before is a loop."""
    chain = ClosedChain(mechanism)
    home = dict(zip(chain.coordinate_names, chain.home.q_r.tolist(), strict=True))
    dynamics = rd.InverseDynamics(mechanism, backend="python")

    def place(end: Attachment) -> Pose:
        T = dynamics.pose(chain.home.q_a, end.link) if end.link != "base" else np.eye(4)
        return Pose(T[:3, :3], T[:3, 3]) @ end.pose

    (loop,) = (each for each in mechanism.loops if each.name == name)
    leg, at_platform = loop.predecessor, loop.successor
    assert at_platform.link == mechanism.platform
    freed = free_platform(mechanism).mechanism
    carriers = {
        link.name for link in mechanism.links if freed.link(link.name).parent != link.parent
    }
    path = mechanism.path(mechanism.platform)
    where = freed.loops[0]
    carriers |= set(path[: path.index(where.predecessor.link)])
    pose = place(Attachment(mechanism.platform)).inverse() @ place(where.successor)
    old = Loop("old", loop.type, where.predecessor, Attachment(mechanism.platform, pose))

    X, Y, Z = np.eye(3)
    R = place(leg).rotation.T @ place(at_platform).rotation
    if loop.type == "universal":  # Rx(a) Ry(b)
        turns = [(X, np.arctan2(R[2, 1], R[1, 1])), (Y, np.arctan2(R[0, 2], R[0, 0]))]
        rest = Pose()
    else:  # any three axes that cross
        turns, rest = [(X, 0.0), (Y, 0.0), (Z, 0.0)], Pose(R)
    links = [link for link in mechanism.links if link.name not in carriers]
    parent, origin = leg.link, leg.pose
    for k, (axis, angle) in enumerate(turns):
        joint = Joint(f"turn{k}", "revolute", origin=origin, axis=axis)
        links.append(Link(f"wrist{k}", parent, joint))
        parent, origin = f"wrist{k}", Pose()
        home[f"turn{k}"] = float(angle)
    fixed = Joint("platform", "fixed", origin=rest @ at_platform.pose.inverse())
    links.append(replace(mechanism.link("platform"), parent=parent, joint=fixed))
    loops = tuple(old if each is loop else each for each in mechanism.loops)
    names = {link.joint.name for link in links}
    home = {joint: angle for joint, angle in home.items() if joint in names}
    return replace(mechanism, links=tuple(links), loops=loops, home=home)


@pytest.mark.parametrize(("name", "loop"), [("gough_stewart", "S4"), ("delta", "U3")])
def test_it_does_not_matter_which_leg_carries_a_platform_in_space(name, loop):
    """Wrists of several joints, and closures of places and directions."""
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    other = on_another_leg(mechanism, loop)
    # it is the same robot
    active = [ClosedChain(each) for each in (mechanism, other)]
    q = active[0].home.q_a + 0.03
    qd, qdd = np.random.default_rng(0).uniform(-1, 1, (2, len(q)))
    assert relative(active[1](q, qd, qdd), active[0](q, qd, qdd)) < SAME
    assert_same_model([ClosedChain(each, sensed=True) for each in (mechanism, other)], 0)


def test_wrists_whose_angles_were_rounded_are_wrists(tmp_path):
    """Two hinges that cross at 1.5708 rad are a universal joint, on whichever leg."""
    text = (CONFIG / "delta.yaml").read_text()
    (tmp_path / "rounded.yaml").write_text(text.replace("pi/2", "1.5708"))
    exact = ClosedChain(rd.load(CONFIG / "delta.yaml"), sensed=True)
    rounded = on_another_leg(rd.load(tmp_path / "rounded.yaml"), "U3")
    given = state_of([exact], 0)
    assert exact.forward_kinematics(given[0]).residual > OFF / 100
    assert relative(ClosedChain(rounded, sensed=True)(*given), exact(*given)) < 3e-5


def test_rd_derive_gives_the_same_model():
    mechanism = rd.load(CONFIG / "rrr.yaml")
    chain, model = ClosedChain(mechanism, sensed=True), derive(mechanism)
    q, qd, qdd = state_of([chain], 0)
    state = chain.forward_kinematics(q, qd)
    pose = state.platform_pose
    x = [*pose[:2, 3], np.arctan2(pose[1, 0], pose[0, 0])]
    known = {
        **model.parameters,
        **dict(zip((*model.q_a, *model.q_s), q, strict=True)),
        **dict(zip(model.x, x, strict=True)),
        **dict(zip(model.qd, qd, strict=True)),
        **dict(zip(model.xd, state.v[PLANE], strict=True)),
    }
    # lambdify would walk through every copy of what they have in common
    common, rest = sympy.cse(list(model.sensed().values()))
    matrices = sympy.lambdify(list(known), rest, modules="numpy", cse=lambda _: (common, rest))
    D, C, G, F = matrices(*map(float, known.values()))
    assert state.residual > OFF / 100
    assert relative(chain.mass_matrix(q), D) < SAME
    assert relative(chain.coriolis_matrix(q, qd), C) < SAME
    assert relative(chain.gravity(q), G[:, 0]) < SAME
    assert relative(chain(q, qd, qdd), D @ qdd + C @ qd + G[:, 0]) < SAME
    wrench = np.array([3.0, -2.0, 0, 0, 0, 0.7])
    assert relative(chain.external_force(q, wrench), F @ wrench[PLANE]) < SAME


def transcribed(chain, q, P, theta):
    """(T (6, 3), J_C (3, 6), J_x (6, 3), Γ (6,)) of the 3RRR by hand, by (19).

    Any of them may be complex, for derivatives by a complex step.
    """
    A = np.array([chain.mechanism.link(f"proximal{i}").joint.origin.translation for i in (1, 2, 3)])
    L = l = 0.2
    q_a, q_p = q[:3], q[3:]
    # the platform's hinges C_i: d_i at θ_z + φ_i, seen from P
    corners = 0.1 * np.exp(1j * np.array([np.pi, -np.pi / 3, np.pi / 3]))
    c, s = np.cos(theta), np.sin(theta)
    to_hinge = np.column_stack([c * corners.real - s * corners.imag,
                                s * corners.real + c * corners.imag])  # fmt: skip
    J_x, J_q = np.zeros((6, 3), dtype=complex), np.zeros((6, 6), dtype=complex)
    gamma = np.zeros(6, dtype=complex)
    for i in range(3):
        proximal = L * np.array([np.cos(q_a[i]), np.sin(q_a[i])])
        distal = l * np.array([np.cos(q_a[i] + q_p[i]), np.sin(q_a[i] + q_p[i])])
        turn = np.array([[0, -1], [1, 0]])
        rows = slice(2 * i, 2 * i + 2)
        # Γ_i = OP + PC_i - OA_i - A_iB_i - B_iC_i
        gamma[rows] = P + to_hinge[i] - A[i, :2] - proximal - distal
        J_x[rows] = np.column_stack([np.eye(2), turn @ to_hinge[i]])
        J_q[rows, i] = -turn @ (proximal + distal)
        J_q[rows, 3 + i] = -turn @ distal
    J_C = -np.linalg.solve(J_x.T @ J_x, J_x.T @ J_q)
    K = -np.linalg.solve(J_q, J_x)
    T = K @ np.linalg.inv(K[:3])
    return T, J_C, J_x, gamma


def legs_by_hand(q, qd):
    """(D_q, C_q q̇, G_q) of (33), mended, by the complex step where derivatives are wanted."""
    L, m_L, l_cL, I_L, m_s = 0.2, 1.0, 0.1, 0.0034, 0.1
    m_l, l_cl, I_l, I_s, g = 0.6, 0.1, 0.002, 2e-5, 9.81

    def lagrangian(q, qd):
        q_a, q_p, qd_a, qd_p = q[:3], q[3:], qd[:3], qd[3:]
        cos = np.cos(q_p)
        first = m_L * l_cL**2 + m_l * (L**2 + l_cl**2 + 2 * L * l_cl * cos) + m_s * L**2
        kinetic = (first + I_L + I_l + I_s) * qd_a**2 / 2
        kinetic = kinetic + (m_l * (l_cl**2 + L * l_cl * cos) + I_l) * qd_a * qd_p
        kinetic = kinetic + (m_l * l_cl**2 + I_l) * qd_p**2 / 2
        potential = (m_L * l_cL + m_s * L + m_l * L) * g * np.sin(q_a)
        potential = potential + m_l * l_cl * g * np.sin(q_a + q_p)
        return np.sum(kinetic - potential)

    step, units = 1e-30, np.eye(6)

    def momentum(q):
        # it is linear in q̇: exact
        D = np.array([[lagrangian(q, a + b) - lagrangian(q, a) - lagrangian(q, b)
                       + lagrangian(q, 0 * a) for a in units] for b in units])  # fmt: skip
        return D

    D = momentum(q)
    slope = np.array([lagrangian(q + 1j * step * e, qd).imag / step for e in units])
    still = np.array([lagrangian(q + 1j * step * e, 0 * qd).imag / step for e in units])
    D_rate = momentum(q + 1j * step * qd).imag / step
    return D.real, D_rate @ qd - (slope - still), -still


def test_it_is_a_transcription_of_39_with_its_errata_mended():
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"), sensed=True)
    for seed in range(3):
        q, qd, qdd = state_of([chain], seed)
        state = chain.forward_kinematics(q, qd)
        pose = state.platform_pose
        P, theta = pose[:2, 3], np.arctan2(pose[1, 0], pose[0, 0])
        T, J_C, J_x, gamma = transcribed(chain, q, P, theta)
        # the platform is where Γ is least, though it is not zero
        assert np.abs(gamma).max() > OFF / 100
        assert np.abs(J_x.T @ gamma).max() < 1e-12
        xd, step = (J_C @ qd).real, 1e-30
        assert relative(state.v[PLANE], xd) < SAME
        J_rate = transcribed(
            chain, q + 1j * step * qd, P + 1j * step * xd[:2], theta + 1j * step * xd[2]
        )[1].imag / step  # fmt: skip
        D_q, C_qd, G_q = legs_by_hand(q, qd)
        D_x, G_x = np.diag([1.3, 1.3, 0.0045]), np.array([0, 1.3 * 9.81, 0])
        T, J = T.real, J_C.real
        D = T.T @ (D_q + J.T @ D_x @ J)
        bias = T.T @ (C_qd + J.T @ D_x @ J_rate @ qd)
        G = T.T @ (G_q + J.T @ G_x)
        assert relative(chain.mass_matrix(q), D) < SAME
        assert relative(chain.coriolis_matrix(q, qd) @ qd, bias) < SAME
        assert relative(chain.gravity(q), G) < SAME
        assert relative(chain(q, qd, qdd), D @ qdd + bias + G) < SAME


def test_nothing_is_solved_for_the_3rrr():
    """T_q is the identity for the legs' joints; the platform is a closed form of them."""
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"), sensed=True)
    q, *_ = state_of([chain], 1)
    state = chain.forward_kinematics(q)
    assert np.array_equal(state.q_r[:6], q)
    assert np.array_equal(state.T_q[:6], np.eye(6))
    assert chain.model.hinged is not None
    # from anywhere, at once
    far = chain.home.q_r[:6] + 0.4
    q_r, guard = chain.model.close(far, np.zeros(4), 0, 1.0)
    assert guard == 0.0
    gradient = chain.model.closure.jacobian(q_r)[:, 6:].T @ chain.model.closure.residual(q_r)
    assert np.abs(gradient).max() < 1e-12


def test_a_hinge_that_the_platform_hung_on_keeps_its_friction(tmp_path):
    robot = closed_robots.random_rrr(3)
    next(x for x in robot["links"] if x["name"] == "hub")["friction"] = {
        "viscous": 0.8,
        "coulomb": 0.3,
    }
    mechanism = closed_robots.load(robot, tmp_path)
    active, sensed = ClosedChain(mechanism), ClosedChain(mechanism, sensed=True)
    bare = replace(mechanism, links=tuple(
        replace(x, joint=x.joint.geometry) if x.name == "hub" else x for x in mechanism.links
    ))  # fmt: skip
    q, qd = active.home.q_a + 0.02, np.array([0.5, -0.3, 0.8])
    state = active.forward_kinematics(q, qd)
    given = state.q_r[:6], state.qd_r[:6], state.accelerations(np.zeros(3))[:6]
    expected = active(q, qd, np.zeros(3))
    assert relative(sensed(*given), expected) < SAME
    assert relative(ClosedChain(bare, sensed=True)(*given), expected) > 1e-3


def test_poses_jacobians_energies_and_the_regressor_are_of_the_same_model():
    """Through the façade, at readings that don't fit together."""
    mechanism = rd.load(CONFIG / "rrr.yaml")
    dynamics = rd.InverseDynamics(mechanism, sensed=True, backend="python")
    chain = dynamics.closed
    q, qd, qdd = state_of([chain], 2)
    state = chain.forward_kinematics(q, qd)
    assert relative(dynamics.pose(q, "load"), state.platform_pose) < SAME
    assert relative(dynamics.jacobian(q, "load") @ qd, state.v) < SAME
    wrench = np.array([2.0, -1.0, 0.5, 0.1, 0.2, -0.7])
    pushed = dynamics(q, qd, qdd) - dynamics(q, qd, qdd, wrenches={"platform": wrench})
    assert relative(pushed, chain.external_force(q, wrench)) < 1e-9  # a difference of torques
    Y = dynamics.regressor(q, qd, qdd)
    assert relative(Y @ dynamics.parameters, dynamics(q, qd, qdd)) < SAME
    active = rd.InverseDynamics(mechanism, backend="python")
    assert dynamics.parameter_names == active.parameter_names


def other_way_round(mechanism: Mechanism, name: str) -> Mechanism:
    """The same loop told from its other end."""
    flip = Pose()
    (loop,) = (each for each in mechanism.loops if each.name == name)
    if loop.type == "universal":  # about the predecessor's x and the successor's y
        flip = Pose(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]]))
    ends = [Attachment(end.link, end.pose @ flip) for end in (loop.successor, loop.predecessor)]
    turned = Loop(loop.name, loop.type, *ends)
    return replace(
        mechanism, loops=tuple(turned if each is loop else each for each in mechanism.loops)
    )


@pytest.mark.parametrize(("name", "loop"), [("rrr", "C2"), ("delta", "U2")])
def test_it_does_not_matter_from_which_end_a_loop_is_told(name, loop):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    other = other_way_round(mechanism, loop)
    assert_same_model([ClosedChain(each, sensed=True) for each in (mechanism, other)], 1)
    # its wrench is what the other end exerts
    q, qd, qdd = np.array([0.03, -0.02, 0.01]), np.full(3, 0.3), np.ones(3)
    q = ClosedChain(mechanism).home.q_a + q
    found, expected = (
        rd.InverseDynamics(each, backend="python").constraint_forces(q, qd, qdd)
        for each in (other, mechanism)
    )
    assert relative(found.loops[loop], -expected.loops[loop]) < 1e-9
    assert relative(found.platform, expected.platform) < 1e-9


def test_steps_from_the_state_before_are_enough_where_readings_disagree():
    """What the quick way accepts is off by 1e-10 rad at most."""
    mechanism = rd.load(CONFIG / "delta.yaml")
    chain, careful = (ClosedChain(mechanism, sensed=True) for _ in range(2))
    q, qd, qdd = state_of([chain], 3)
    q = chain.home.q_r[: len(q)] + 0.2 * (q - chain.home.q_r[: len(q)])
    chain(q, qd, qdd)
    quick = 0
    for step in np.linspace(1e-4, 1e-2, 20):
        here = q + step * np.array([1.0, -1, 1, 0.5, 0.5, -1])
        tau = chain._continuation.torques(here, qd, qdd)
        if tau is not None:
            quick += 1
            assert relative(tau, careful(here[None], qd, qdd)[0]) < 1e-9
        else:
            chain(here, qd, qdd)
    assert quick > 10


@pytest.mark.parametrize("name", ["gough_stewart", "delta", "rrr", "five_bar"])
@pytest.mark.parametrize("off", [0.05, 0.2, 0.6])
def test_readings_that_agree_are_answered_whatever_was_read_before(name, off):
    """Each state after one that disagrees, at once or by and by, is that of a new model."""
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    active = closure.ClosedChain(mechanism)
    chain, fresh = (closure.ClosedChain(mechanism, sensed=True) for _ in range(2))
    k, a = len(chain.joint_names), len(chain.actuated_names)
    order = [active.coordinate_names.index(joint) for joint in chain.joint_names]
    rng = np.random.default_rng(3)
    for attempt in range(12):
        q_a = active.home.q_a + rng.uniform(-0.15, 0.15, a) * active.solver.scale[:a]
        active.reset()
        q = active.forward_kinematics(q_a).q_r[order]
        wrong = np.zeros(k)
        one = np.eye(k - a)[attempt // 2 % (k - a)]
        wrong[a:] = off * (rng.uniform(-1, 1, k - a) if attempt % 2 else one)
        qd, qdd = rng.uniform(-1, 1, (2, k))
        for share in (1.0,) if attempt % 3 else np.linspace(0.1, 1, 10):
            with suppress(ClosureError):
                chain(q + share * wrong, qd, qdd)
        fresh.reset()
        assert relative(chain(q, qd, qdd), fresh(q, qd, qdd)) < 1e-9


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "rrr"])
def test_a_body_on_any_link_makes_the_model_that_is_built_with_it(name, tmp_path):
    """Bodies don't decide what kind of joint a closure is, and none is lost, whenever it comes."""
    robot = closed_robots.shipped(name)
    # something that the platform carries by a joint with a motor
    robot["links"].append(
        {
            "name": "jaw",
            "parent": "platform",
            "joint": {"name": "jaw", "type": "revolute"},
            "a": 0.1,
        }
    )
    robot["actuated"] = [*robot["actuated"], "jaw"]
    robot["home"]["jaw"] = 0.2
    mechanism = closed_robots.load(robot, tmp_path)
    body = rd.Inertial(2.0, np.array([0.01, 0.02, 0.03]), np.diag([0.02, 0.03, 0.04]))

    def made(of: Mechanism, sensed: bool) -> rd.InverseDynamics:
        return rd.InverseDynamics(of, sensed=sensed, backend="python")

    dynamics, active = made(mechanism, True), made(mechanism, False)
    k = len(dynamics.joint_names)
    rng = np.random.default_rng(7)
    agreeing = dynamics.closed.home.q_r[:k]
    q = agreeing + rng.uniform(-OFF, OFF, k) * dynamics.closed.solver.scale[:k]
    qd, qdd = rng.uniform(-1, 1, (2, k))
    # the middle link of a universal joint among them
    for link in mechanism.links:
        if link.name not in (*mechanism.path("platform")[:4], "jaw"):
            continue
        dynamics.set_payload(link.name, body)
        active.set_payload(link.name, body)
        loaded = replace(link, inertial=link.inertial + body)
        links = tuple(loaded if each is link else each for each in mechanism.links)
        built = made(replace(mechanism, links=links), True)
        forces, expected = (each.constraint_forces(q, qd, qdd) for each in (dynamics, built))
        assert forces.rows == expected.rows
        assert relative(forces.multipliers, expected.multipliers) < SAME
        assert relative(dynamics.mass_matrix(q), built.mass_matrix(q)) < SAME
        assert relative(dynamics(q, qd, qdd), built(q, qd, qdd)) < SAME
        # where the readings agree it is the model without sensors
        G = active.gravity(active.closed.home.q_a)
        assert relative(dynamics.gravity(agreeing), G) < SAME
        for one in (dynamics, built):
            one.set_friction(mechanism.joint_names[0], 0.3, 0.1)
        assert relative(dynamics(q, qd, qdd), built(q, qd, qdd)) < SAME
        for one in (dynamics, active):
            one.set_payload(link.name, None)
            one.set_friction(mechanism.joint_names[0], 0.0, 0.0)


@pytest.mark.parametrize("name", ["gough_stewart", "delta"])
def test_a_start_with_open_loops_is_closed_on_the_way(name):
    """From readings that are off the solver comes to where it comes from a closed start."""
    chain = closure.ClosedChain(rd.load(CONFIG / f"{name}.yaml"), free_platform=True)
    solver, a = chain.solver, len(chain.actuated_names)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q_a = chain.home.q_a + rng.uniform(-0.1, 0.1, a) * solver.scale[:a]
        off = (
            chain.home.q_r
            + np.where(np.arange(len(solver.scale)) < a, 0.0, 0.2)
            * rng.choice([-1, 1], len(solver.scale))
            * solver.scale
            / 2
        )
        found = solver.forward_kinematics(q_a, off)
        assert solver.state(found).residual < 1e-11
        assert found == pytest.approx(solver.forward_kinematics(q_a, chain.home.q_r), abs=1e-9)


def test_hinges_of_a_ball_joint_may_stand_anywhere_on_their_axes(tmp_path):
    """Its centre is where they meet, whichever points of them the description has."""
    robot = closed_robots.random_gough_stewart(4) | {"sensed": ["qu1", "qv1", "qu2"]}
    mechanism = closed_robots.load(robot, tmp_path)

    def slid(link: Link) -> Link:
        """Along its own axis, and back behind the joint."""
        if not link.name.startswith("wrist"):
            return link
        way = link.joint.axis * {"wrist0": 0.05, "wrist1": -0.08, "wrist2": 0.06}[link.name]
        joint = replace(
            link.joint,
            origin=link.joint.origin @ Pose(translation=way),
            tail=Pose(translation=-way) @ link.joint.tail,
        )
        return replace(link, joint=joint)

    moved = replace(mechanism, links=tuple(map(slid, mechanism.links)))
    chains = [ClosedChain(each, sensed=True) for each in (mechanism, moved)]
    for seed in range(2):
        assert_same_model(chains, seed)
