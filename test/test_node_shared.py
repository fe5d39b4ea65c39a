# SPDX-License-Identifier: Apache-2.0
"""The node for a robot with more motors than degrees of freedom, beside Pinocchio's cut tree."""

from __future__ import annotations

import copy

import closed_robots
import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import robots
from closed_robots import Oracle
from node_bench import Bench, point
from node_process import Partner
from robots import relative
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd
from robot_dynamics.errors import ClosureWarning, InputError
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

pytestmark = pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")

MOTORS = ("qp0", "qa0", "qa1")
LIMITS = np.array([60.0, 250.0, 120.0])
SAME = 1e-8
"""Relative: torques of Pinocchio, over the closure's condition"""


def five_bar() -> dict:
    """Two arms that meet, motors at both shoulders and at an elbow; friction everywhere."""
    made, rng = closed_robots.random_five_bar(2), np.random.default_rng(5)
    made |= {"actuated": list(MOTORS), "sensed": []}
    for link in made["links"]:
        name = link["joint"].get("name")
        if name is not None:
            link["friction"] = {"viscous": 0.2, "coulomb": 0.1}
        if name in MOTORS:
            link["joint"]["type"] = "continuous"
            link["joint"]["limits"] = {"effort": float(LIMITS[MOTORS.index(name)])}
            link.setdefault("rotor", robots.random_rotor(rng, "proximal0"))
    return made


class Robot:
    """The description's file, a state of it, and what it takes by Pinocchio."""

    def __init__(self, folder, made=None):
        self.made = five_bar() if made is None else made
        self.file = str(folder / "five_bar.yaml")
        (folder / "five_bar.yaml").write_text(yaml.safe_dump(self.made))
        with pytest.warns(ClosureWarning):
            dynamics = rd.InverseDynamics(rd.load(self.file), backend="python")
        self.chain = dynamics.closed
        self.driving = dynamics.joint_names
        (self.follower,) = set(MOTORS) - set(self.driving)
        names = self.chain.coordinate_names
        self.oracle = Oracle(self.made, names, len(self.driving))
        self.at = [names.index(name) for name in MOTORS]
        self.q, self.qd = self.chain.home.q_a + 0.05, np.array([0.4, -0.3])
        self.qdd = np.array([2.0, -1.5])
        self.q_r = self.chain.forward_kinematics(self.q).q_r
        self.A = self.oracle.T(self.q_r)[self.at]
        everywhere = (self.q_r, self.oracle.T(self.q_r) @ self.qd,
                      self.oracle.accelerations(self.q_r, self.qd, self.qdd))  # fmt: skip
        self.of_motors = [x[self.at] for x in everywhere]

    def shared(self, forces):
        """The least torques, each in shares of its limit, that do what forces at q do."""
        return np.linalg.lstsq(self.A.T * LIMITS, forces, rcond=None)[0] * LIMITS

    def torques(self, qd, qdd):
        return self.shared(self.oracle.torques(self.q_r, qd, qdd))

    def state(self):
        return dict(zip(self.driving, zip(self.q.tolist(), self.qd.tolist(), strict=True),
                        strict=True))  # fmt: skip


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return Robot(tmp_path_factory.mktemp("shared"))


def bench(robot, **values) -> Bench:
    return Bench(robot.file, max_age=1.0, **values)


def asked(robot, of: Bench, **state):
    """Torques after a command of the driving joints, at the robot's state."""
    of.command(0.0, point(qdd=robot.qdd, **state), names=robot.driving)
    return of.state(0.01, robot.q, robot.qd, names=robot.driving)


def test_the_reach_is_the_most_that_any_signs_of_the_accelerations_take(robot):
    model = bench(robot).controller.model
    still, none = np.zeros(2), {"viscous": 0.0, "coulomb": 0.0}
    bare = copy.deepcopy(robot.made)
    for link in bare["links"]:
        if "friction" in link:
            link["friction"] = none
    oracle = Oracle(bare, robot.chain.coordinate_names, 2)
    signs = [np.array([a, b]) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    torques = [robot.shared(oracle.torques(robot.q_r, still, 50.0 * each)) for each in signs]
    outputs = [MOTORS.index(name) for name in model.outputs]
    expected = np.abs(torques).max(axis=0)[outputs]
    order = [[*robot.driving].index(name) for name in model.joints]
    np.testing.assert_allclose(model.required_torques(robot.q[order], 50.0), expected, rtol=1e-7)


def test_the_node_gives_each_motor_its_share_and_says_so(robot):
    """In its own process: torques, what is told, and commands that name every motor."""
    wanted = dict(zip(robot.driving, robot.qdd.tolist(), strict=True))
    expected = robot.torques(robot.qd, robot.qdd)
    with Partner(description=robot.file, max_age=20.0, command_timeout=0.0) as partner:

        def become(tau, command, then=lambda: True):
            partner.commands.clear()

            def publish():
                command()
                # a motor that follows is not needed, and not asked
                partner.state({**robot.state(), robot.follower: (99.0, 99.0)})

            def there():
                return any(np.allclose(x, tau, SAME, SAME) for x in partner.commands) and then()

            partner.until(there, f"torques {tau}", meanwhile=publish)

        become(expected, lambda: partner.accelerate(wanted))
        assert "least-norm distribution" in partner.log
        assert "weights: the motors' effort limits" in partner.log
        become(
            expected,
            lambda: partner.accelerate(wanted),
            lambda: "least norm" in partner.counts().get("motors", ""),
        )
        assert f"dependent motors: {robot.follower}" in partner.counts()["motors"]

        back = np.linalg.lstsq(robot.A, -robot.of_motors[2], rcond=None)[0]
        consistent = robot.A @ back

        def together(off=0.0):
            qdd = consistent + off * (np.array(MOTORS) == robot.follower)
            still = point(q=robot.of_motors[0], qd=np.zeros(3), qdd=qdd)
            partner.command_out.publish(JointTrajectory(joint_names=MOTORS, points=[still]))

        tau = robot.torques(robot.qd, back)
        become(tau, together)
        key = "rejected: command: inconsistent"
        become(tau, lambda: together(off=1.0), lambda: int(partner.counts().get(key, 0)) > 2)
        assert f"as loop closure requires for {', '.join(robot.driving)}" in partner.log


def test_a_command_of_all_motors_has_to_be_one_of_the_robot(robot, nothing_is_built):
    q, qd, qdd = robot.of_motors
    fitting = point(q=q, qd=qd, qdd=qdd)
    one = bench(robot)
    nothing_is_built()
    one.command(0.0, fitting, names=MOTORS)
    assert relative(one.state(0.01, robot.q, robot.qd, names=robot.driving),
                    robot.torques(robot.qd, robot.qdd)) < SAME  # fmt: skip
    k = MOTORS.index(robot.follower)
    for what in range(3):
        state = [np.array(x) for x in (q, qd, qdd)]
        state[what][k] += 0.02 if what == 0 else 0.1
        one.command(0.02, point(0.0, *state), names=MOTORS)
    assert one.rejected() == {"command: inconsistent": 3}
    # little is rounding, and counts for nothing
    state = [np.array(x) for x in (q, qd, qdd)]
    state[1][k] += 1e-4
    state[0][k] += 2 * np.pi  # the same place
    one.command(0.02, point(0.0, *state), names=MOTORS)
    # what is not said is not compared
    one.command(0.02, point(0.5, q=q, qd=qd), names=MOTORS)
    # what can't be known can't be compared
    one.command(0.02, point(qdd=qdd), names=MOTORS)
    one.command(0.02, point(q=q, qdd=0 * qdd), names=MOTORS)
    one.command(0.02, point(q=q + 3.0, qd=qd, qdd=qdd), names=MOTORS)
    one.command(0.02, point(q=q[:2], qd=qd, qdd=qdd), names=MOTORS)
    one.command(0.02, point(q=q * np.nan, qd=qd, qdd=qdd), names=MOTORS)
    one.command(0.02, point(q=q[:2], qd=qd[:2], qdd=qdd[:2]), names=MOTORS[:2])
    assert one.rejected() == {
        "command: missing joint": 1,
        "command: inconsistent": 5,
        "command: closure": 1,
        "command: wrong length": 1,
        "command: not finite": 1,
    }
    assert one.controller.commands.count == 3


def test_a_command_of_all_motors_fits_in_any_order_of_the_joints(robot):
    one = bench(robot, joints=list(MOTORS[::-1]))
    q, qd, qdd = robot.of_motors
    one.command(0.0, point(q=q, qd=qd, qdd=qdd), names=MOTORS)
    assert one.rejected() == {}
    assert one.controller.commands.count == 1


def test_gains_are_of_the_joints_that_are_commanded_and_shared_like_the_rest(robot):
    p, d = np.array([30.0, 20.0]), np.array([2.0, 3.0])
    one = bench(robot, p_gains=p.tolist(), d_gains=d.tolist())
    tau = asked(robot, one, q=robot.q + 0.02, qd=robot.qd - 0.1)
    feedback = robot.shared(p * 0.02 - d * 0.1)
    assert relative(tau, robot.torques(robot.qd, robot.qdd) + feedback) < SAME


def test_a_push_is_shared_and_limits_cut_each_motor(robot):
    one = bench(robot)
    expected = robot.torques(robot.qd, robot.qdd)
    k = int(np.argmax(np.abs(expected)))
    limits = np.full(3, 1e3)
    limits[k] = abs(expected[k]) / 2
    assert relative(asked(robot, one), expected) < SAME
    cut = asked(robot, bench(robot, effort_limits=limits.tolist()))
    assert cut[k] == pytest.approx(np.sign(expected[k]) * limits[k])
    assert np.delete(cut, k) == pytest.approx(np.delete(expected, k), rel=SAME)
    # in another order
    turned = asked(robot, bench(robot, joints=list(MOTORS[::-1])))
    assert relative(turned[::-1], expected) < SAME
    # the description's limits are those of every motor
    assert np.array_equal(one.controller.model.limits, LIMITS)

    w = np.array([3.0, -2.0, 1.0, 0.3, 0.1, -0.2])
    pushed = Model(ModelSpec(one.controller.model.spec.mechanism, one.settings, {}, {"distal0"}))
    J = pushed.dynamics.jacobian(robot.q, "distal0")
    R = pushed.dynamics.pose(robot.q, "distal0")[:3, :3]
    on_base = np.concatenate([R @ w[:3], R @ w[3:]])
    taken = pushed.wrench_torques({"distal0": w}, robot.q)
    assert relative(taken, -robot.shared(J.T @ on_base)) < SAME


def test_on_the_motors_side_each_torque_is_over_its_gear(robot):
    one = bench(robot, side="drive")
    rotors = {link["joint"]["name"]: link["rotor"] for link in robot.made["links"]
              if "rotor" in link}  # fmt: skip
    gears = np.array([rotors[name]["gear_ratio"] for name in MOTORS])
    found = dict(zip(one.controller.model.outputs, asked(robot, one), strict=True))
    by_joint = dict(zip(MOTORS, robot.torques(robot.qd, robot.qdd) / gears, strict=True))
    mechanism = one.controller.model.spec.mechanism
    for rotor in mechanism.rotors:
        ((joint, _),) = rotor.ratios
        assert found[rotor.name] == pytest.approx(by_joint[joint], rel=1e-7)


def test_a_trajectory_gets_the_effort_of_every_motor(robot):
    one = bench(robot)
    q, *_ = robot.of_motors
    message = JointTrajectory(joint_names=MOTORS[::-1])
    message.points = [point(t, q[::-1], 0 * q, 0 * q) for t in (0.5, 1.0)]
    one.fill(message, 0.0)
    still = np.zeros(2)
    for each in message.points:
        assert relative(np.array(each.effort)[::-1], robot.torques(still, still)) < SAME
    message = JointTrajectory(joint_names=robot.driving, points=[point(0.5, robot.q, still)])
    with pytest.raises(rd.RobotDynamicsError, match="efforts are computed for all motors"):
        one.fill(message, 0.0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"joints": ["qa0", "qa1"]}, "qp0 as well"),
        ({"locked_joints": ["qp0:0.1"]}, "none: redundant motors share the torque"),
        ({"residual": True}, "false: redundant motors may"),
        ({"p_gains": [1.0, 1.0, 1.0]}, "2 numbers, one for each of"),
    ],
)
def test_what_only_one_motor_a_joint_can_have_is_refused(robot, values, said):
    settings = Settings.of(values)
    with pytest.raises(InputError, match=said) as caught:
        Model(ModelSpec(rd.load(robot.file), settings))
    assert "\n" not in str(caught.value)


def test_with_sensors_it_is_the_same(robot, tmp_path):
    made = copy.deepcopy(robot.made)
    passive = [name for name in robot.chain.coordinate_names if name not in MOTORS]
    made["sensed"] = passive[:1]
    sensed = Robot(tmp_path, made)
    assert sensed.driving == robot.driving
    one = bench(sensed, sensed=True)
    names = (*sensed.driving, *passive[:1])
    one.command(0.0, point(qdd=sensed.qdd), names=sensed.driving)
    at = [sensed.chain.coordinate_names.index(name) for name in names]
    rates = sensed.oracle.T(sensed.q_r) @ sensed.qd
    tau = one.state(0.01, sensed.q_r[at], rates[at], names=names)
    assert relative(tau, sensed.torques(sensed.qd, sensed.qdd)) < SAME
