"""Whatever fails around the node, or kills it: no wrong torque goes out, and it is right again.

Every state is a function of its stamp (state_source.py), so each torque is held against the
dynamics at the state that it belongs to.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Duration
from node_process import PATIENCE, ROOT, Partner
from scipy.spatial import cKDTree
from sensor_msgs.msg import JointState
from state_source import JOINTS, SECOND, message, state
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd

THREE_AXIS = str(ROOT / "config/three_axis.yaml")
DYNAMICS = rd.InverseDynamics(rd.load(THREE_AXIS), formulation="lagrange_euler")
CLOSE = 1e-6
"""N·m: formulations agree on 1000 N·m to rounding; states 0.1 ms apart differ by some 0.1"""

FIRST, SECOND_WISH = [1.0, -2.0, 3.0], [-2.0, 1.5, 0.5]
"""Accelerations, rad/s²"""

DRIVER = (sys.executable, str(Path(__file__).with_name("state_source.py")))


def torques(stamps: Sequence[int], qdd: Sequence[float]) -> np.ndarray:
    """(N, 3) of the states at these stamps."""
    q, qd = np.array([state(ns) for ns in stamps]).reshape(-1, 2, 3).transpose(1, 0, 2)
    return DYNAMICS(q, qd, np.broadcast_to(qdd, q.shape))


def stamp_of(each: JointState) -> int:
    return each.header.stamp.sec * SECOND + each.header.stamp.nanosec


def following(partner: Partner, qdd: Sequence[float], since: int = 0) -> list[int]:
    """Stamps, from this one on, whose torques have this acceleration."""
    found = [each for each in partner.effort if stamp_of(each) > since]
    if not found:
        return []
    stamps = [stamp_of(each) for each in found]
    off = np.abs([each.effort for each in found] - torques(stamps, qdd)).max(axis=1)
    return [ns for ns, each in zip(stamps, off, strict=True) if each < CLOSE]


def all_belong(partner: Partner, stamps: Sequence[int], *wishes: Sequence[float]) -> None:
    """Every torque so far is that of one of these states and one of these wishes."""
    assert partner.commands
    right = np.vstack([torques(stamps, qdd) for qdd in wishes])
    off, _ = cKDTree(right).query(np.array(partner.commands))
    worst = int(np.argmax(off))
    assert off[worst] < CLOSE, (partner.commands[worst], off[worst])
    # those with a stamp: of the very state that has it
    theirs = [stamp_of(each) for each in partner.effort]
    assert set(theirs) <= set(stamps)
    found = np.array([each.effort for each in partner.effort])
    off = np.min([np.abs(found - torques(theirs, qdd)).max(axis=1) for qdd in wishes], axis=0)
    assert off.max() < CLOSE, (found[np.argmax(off)], off.max())


class Watched(Partner):
    """The node with a robot of three axes.

    Attributes:
        told: stamps of the states that this process has published.
    """

    def __init__(self, **parameters):
        values = {"description": THREE_AXIS, "command_timeout": 0.0, "max_age": 2 * PATIENCE}
        super().__init__(**{**values, **parameters})
        self.told: list[int] = []

    def now(self) -> int:
        return int(self.node.get_clock().now().nanoseconds)

    def tell(self) -> None:
        """Publish a state."""
        ns = self.now() // 2 * 2
        self.told.append(ns)
        self.states_out.publish(message(ns))

    def wish(self, qdd: Sequence[float]) -> None:
        self.accelerate(dict(zip(JOINTS, qdd, strict=True)))

    def follow(self, qdd: Sequence[float]) -> None:
        """Until torques of states from now on are as wished."""
        since = self.now()

        def ask() -> None:
            self.wish(qdd)
            self.tell()

        self.until(lambda: following(self, qdd, since), f"torques for {qdd}", meanwhile=ask)

    @contextmanager
    def driver(self, rate: int, kind: int, *more: str):
        """A driver in a process of its own; a list that has its stamps in the end."""
        stamps: list[int] = []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = self.beside(*DRIVER, str(rate), str(kind), *more, **pipes)
        yield stamps
        said, _ = process.communicate(timeout=PATIENCE)
        start, period, end = map(int, said.split())
        stamps.extend(range(start, end, period))

    def settle(self) -> None:
        """Until the states that were on their way are answered."""
        since = self.now()
        self.until(
            lambda: any(stamp_of(each) > since for each in self.effort[-5:]),
            "torques of a later state",
            meanwhile=self.tell,
        )


def test_killed_and_started_again_it_is_silent_until_a_new_command_and_right_then():
    with Watched() as partner:
        partner.follow(FIRST)
        before = partner.told
        partner.kill_and_restart()
        partner.told = []
        partner.until(
            lambda: (
                partner.counts().get("phase") == "waiting" and int(partner.counts()["states"]) > 20
            ),
            "a node that has states and waits for a command",
            meanwhile=partner.tell,
        )
        all_belong(partner, before, FIRST)
        partner.commands.clear()
        partner.effort.clear()
        partner.follow(SECOND_WISH)
        all_belong(partner, partner.told, SECOND_WISH)
        assert partner.stop() == 0
        assert "Traceback" not in partner.log


def test_two_drivers_and_two_commanders_that_contradict_make_no_torque_of_neither():
    with Watched() as partner:
        partner.follow(FIRST)
        wishes = (FIRST, SECOND_WISH)
        since = partner.now()
        with partner.driver(500, 0) as one, partner.driver(500, 1) as other:

            def all_four() -> bool:
                kinds = [
                    {ns % 2 for ns in following(partner, qdd, since) if ns not in told}
                    for qdd in wishes
                ]
                return kinds == [{0, 1}, {0, 1}]

            told = set(partner.told)
            partner.until(
                all_four,
                "torques of both drivers' states with both commands",
                meanwhile=lambda: [partner.wish(qdd) for qdd in wishes],
            )
        all_belong(partner, [*partner.told, *one, *other], *wishes)


KEY = "rejected: joint_states: missing joint"
MOST_GROWTH = 2**20
"""Bytes: less than half a kilobyte of each state in the flood that reaches the node"""


def memory(pid: int) -> int:
    """Bytes that are in use."""
    words = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
    return 1024 * int(words[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_a_flood_of_states_half_of_them_garbage_leaves_it_right_alive_and_small():
    with Watched() as partner:
        partner.follow(FIRST)
        wishes, sizes = (SECOND_WISH, FIRST), []
        with partner.driver(10_000, 0, "garbage") as flood:
            # the first look is when all that floods bring about once is there
            for qdd in wishes * 2:
                since = partner.now()
                partner.until(
                    lambda qdd=qdd, since=since: following(partner, qdd, since),
                    "torques of a new command",
                    meanwhile=lambda qdd=qdd: partner.wish(qdd),
                )
                heard = len(partner.diagnostics)
                refused = int(partner.counts().get(KEY, 0))
                partner.until(
                    lambda n=heard, r=refused: (
                        len(partner.diagnostics) > n and int(partner.counts().get(KEY, 0)) > r
                    ),
                    "diagnostics that count on",
                )
                sizes.append(memory(partner.process.pid))
        all_belong(partner, [*partner.told, *flood[::2]], *wishes)
        assert sizes[-1] - sizes[0] < MOST_GROWTH, sizes
        partner.settle()
        partner.effort.clear()
        partner.commands.clear()
        partner.follow(SECOND_WISH)
        all_belong(partner, [*partner.told, *flood[::2]], *wishes)


SIMULATED = (
    sys.executable, "-m", "robot_dynamics.ros.simulated_robot", "--ros-args",
    "-p", f"description:={THREE_AXIS}", "-p", "update_rate:=100.0", "-p", "bandwidth:=10.0",
    "-r", "~/joint_trajectory:=/feed_forward/command", "-r", "~/commands:=/feed_forward/commands",
)  # fmt: skip


def test_a_simulated_robot_killed_under_way_is_followed_by_torques_at_rest():
    pytest.importorskip("mujoco", reason="mujoco is not installed: extra `sim`")
    seconds, away = 20, np.array([2.0, -1.5, 1.0])
    with Watched(max_age=3.0) as partner:
        states: dict[int, JointState] = {}

        def hear(state: JointState) -> None:
            partner.heard += 1
            states[stamp_of(state)] = state

        partner.node.create_subscription(JointState, "joint_states", hear, 1000)
        robot = partner.beside(*SIMULATED)
        partner.until(lambda: len(states) > 10, "the robot's states")
        partner.until(lambda: partner.command_out.get_subscription_count() == 2, "both listeners")
        start = partner.now()
        trajectory = JointTrajectory(joint_names=JOINTS)
        trajectory.header.stamp.sec, trajectory.header.stamp.nanosec = divmod(start, SECOND)
        for time, share in ((0, 0.0), (seconds, 1.0)):
            trajectory.points.append(
                JointTrajectoryPoint(positions=(share * away).tolist(), velocities=[0.0] * 3,
                                     time_from_start=Duration(sec=time))
            )  # fmt: skip
        partner.command_out.publish(trajectory)

        def right(stamp: int, *, moves: bool) -> np.ndarray:
            each = states[stamp]
            if not moves:
                return DYNAMICS(each.position, [0.0] * 3, [0.0] * 3)
            # a cubic from rest to rest: q̈ = (6 - 12 u) Δ / h²
            u = (stamp - start) / SECOND / seconds
            return DYNAMICS(each.position, each.velocity, (6 - 12 * u) * away / seconds**2)

        def checked(*, moves: bool) -> int:
            """How many torques there are; all are right."""
            answered = [each for each in partner.effort if stamp_of(each) in states]
            for each in answered:
                expected = right(stamp_of(each), moves=moves)
                np.testing.assert_allclose(each.effort, expected, rtol=0, atol=CLOSE)
            return len(answered)

        def is_under_way() -> bool:
            newest = states[max(states)]
            return len(partner.effort) > 50 and newest.velocity[0] > 0.02

        partner.until(is_under_way, "torques under way")
        assert checked(moves=True) > 20
        robot.kill()
        robot.wait()

        def rests() -> bool:
            last = [right(stamp, moves=False) for stamp in sorted(states)[-20:]]
            return np.abs(np.array(last) - partner.commands[-1]).max(axis=1).min() < CLOSE

        partner.until(rests, "torques at rest")
        partner.until(lambda: partner.counts().get("phase") == "interrupted", "the command's end")
        # it stands up again elsewhere: nothing moves it but a new command
        partner.effort.clear()
        partner.beside(*SIMULATED)
        partner.until(lambda: checked(moves=False) > 20, "torques at rest where it is")
        partner.follow(FIRST)
