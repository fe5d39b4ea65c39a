# SPDX-License-Identifier: Apache-2.0
"""Cost, per state of the node, of sensors on passive joints and of an external wrench.

    python benchmarks/sensed_states.py [--states N] [--json OUT]

Both models get the same messages: noisy states of a moving robot with all of its encoders, of which
`active` reads only those of the motors. Times are processor time, the best of several loops over 20
states, alternating between the models: of the model's call; of the same with a wrench on the last
link; of the node's handling of a message (its controller); and of this together with the
deserialization of the message and the serialization of both outputs. Transport is not included.
`operations` are those of the kernels that run in a call, and for a state in the node.

Then N states of a Gough–Stewart platform in one call are compared with single calls for the first
of them: the time per state, the difference of the torques, and the largest memory of the call,
including its result.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from timing import keep, parser
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

CONFIG = Path(__file__).resolve().parents[1] / "config"
ROBOTS = ("rrr", "five_bar", "delta", "gough_stewart")
STATES, STRETCH, LOOPS = 200, 20, 40
STEP = 0.002
"""s between states"""
NOISE, RATE_NOISE = 1e-4, 1e-3
"""rad and rad/s, or m and m/s"""
START = 1_000
REACH = 0.02
"""rad, or shares of the size: how far the states of a batch are from home"""
SINGLE = 2_000
"""How many of a batch are asked for one by one"""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--states", type=int, default=1_000_000, help="how many in one call")
    options = asked.parse_args()
    results: dict[str, Any] = {}
    print(
        f"{'us a state':16}"
        + "".join(f"{x:>28}" for x in ("call", "with a wrench", "controller", "with bytes"))
    )
    for name in ROBOTS:
        sides = {kind: Side(name, kind == "sensed") for kind in ("active", "sensed")}
        times = typical({kind: each.doings for kind, each in sides.items()})
        operations = {kind: each.operations() for kind, each in sides.items()}
        results[name] = {"s": times, "operations": operations}
        cells = []
        for what in times["active"]:
            active, sensed = (times[kind][what] for kind in ("active", "sensed"))
            cells.append(f"{1e6 * active:8.1f} {1e6 * sensed:8.1f} {sensed / active:6.2f} x")
        print(f"{name:16}" + "".join(f"{cell:>28}" for cell in cells))
        for what in ("call", "node"):
            active, sensed = (operations[kind][what] for kind in ("active", "sensed"))
            print(f"{'':16}{'operations, ' + what:>20}{active:8}{sensed:8}", flush=True)
    results["batch"] = batches(options.states)
    keep(options.json, {"sensed states": results})


def batches(count: int) -> dict[str, Any]:
    """Torques of many states in one call, those of the motors and with sensors."""
    mechanism, rng, found = rd.load(CONFIG / "gough_stewart.yaml"), np.random.default_rng(0), {}
    truth = rd.InverseDynamics(mechanism).closed
    assert truth is not None
    scale, a = truth.solver.scale, len(truth.actuated_names)
    q_a = truth.home.q_a + REACH * scale[:a] * rng.uniform(-1, 1, (count, a))
    q_r = truth.forward_kinematics(q_a).q_r
    for kind in ("active", "sensed"):
        dynamics = rd.InverseDynamics(mechanism, sensed=kind == "sensed")
        names = dynamics.joint_names
        q = q_r[:, [truth.coordinate_names.index(name) for name in names]]
        qd, qdd = rng.uniform(-1, 1, (2, count, len(names)))
        dynamics(q[:2], qd[:2], qdd[:2])
        start = perf_counter()
        tau = dynamics(q, qd, qdd)
        whole = (perf_counter() - start) / count
        tracemalloc.start()
        dynamics(q, qd, qdd)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = perf_counter()
        one = [
            dynamics(*state) for state in zip(q[:SINGLE], qd[:SINGLE], qdd[:SINGLE], strict=True)
        ]
        single = (perf_counter() - start) / len(one)
        off = float(np.max(abs(tau[: len(one)] - one)) / np.max(abs(tau)))
        found[kind] = {"s": whole, "s alone": single, "off": off, "bytes": memory}
        print(
            f"{count} states of gough_stewart, {kind}: {1e6 * whole:.2f} us a state in one call, "
            f"{1e6 * single:.1f} alone; {off:.1e} apart; {memory / 1e6:.0f} MB at most"
        )
    return found


class Side:
    """One robot's node, and what it is asked to do."""

    def __init__(self, name: str, sensed: bool):
        mechanism = rd.load(CONFIG / f"{name}.yaml")
        settings = Settings.of({"sensed": sensed, "max_age": 3600.0, "command_timeout": 3600.0})
        self.sensed = sensed
        self.model = model = Model(ModelSpec(mechanism, settings))
        truth = rd.InverseDynamics(mechanism).closed
        assert truth is not None
        names = (*mechanism.actuated_names, *mechanism.sensed)
        a, k, rng = len(truth.actuated_names), len(names), np.random.default_rng(0)
        states = []
        for i in range(STATES):
            phase = 2 * np.pi * i / STATES + np.arange(a)
            q = truth.home.q_a + 0.03 * np.sin(phase)
            qd = 0.03 * 2 * np.pi / (STATES * STEP) * np.cos(phase)
            state = truth.forward_kinematics(q, qd)
            noise = rng.normal(0, 1, (2, k))
            states.append(
                (state.q_r[:k] + NOISE * noise[0], state.qd_r[:k] + RATE_NOISE * noise[1])
            )
        messages = [message(names, *state) for state in states]
        raw = [serialize_message(each) for each in messages]
        controller = FeedForward(settings, lambda line: print(line, flush=True))
        controller.adopt(model)
        command = JointTrajectory(
            joint_names=list(model.joints), points=[JointTrajectoryPoint(accelerations=[0.5] * a)]
        )
        controller.command(command, START * 10**9)
        read = len(model.read)
        given = [(q[:read], qd[:read]) for q, qd in states]
        still = np.zeros(read)
        now = START * 10**9

        def tick() -> int:
            nonlocal now
            now += int(STEP * 1e9)
            return now

        def whole(data: bytes) -> None:
            each = deserialize_message(data, JointState)
            at = tick()
            each.header.stamp = Time(sec=at // 10**9, nanosec=at % 10**9)
            torques = controller.state(each, at)
            assert torques is not None
            values = torques.values.tolist()
            serialize_message(Float64MultiArray(data=values))
            serialize_message(JointState(name=list(model.outputs), effort=values))

        def controlled(each: JointState) -> None:
            at = tick()
            each.header.stamp = Time(sec=at // 10**9, nanosec=at % 10**9)
            assert controller.state(each, at) is not None

        push = {mechanism.links[-1].name: np.ones(6)}
        self.doings: dict[str, tuple[Any, list[Any]]] = {
            "call": (lambda state: model.dynamics(*state, still), given),
            "with a wrench": (
                lambda state: model.dynamics(*state, still, wrenches=push),
                given,
            ),
            "controller": (controlled, messages),
            "with bytes": (whole, raw),
        }

    def operations(self) -> dict[str, int]:
        """Of the kernels of a call, and of a state in the node."""
        kernels = self.model.dynamics.closed._kernels
        call, *node = (
            kernels[name]._code.operations for name in ("at_once", *self.kernels_of_the_node)
        )
        return {"call": call, "node": sum(node)}

    @property
    def kernels_of_the_node(self) -> tuple[str, ...]:
        return ("disagreement", "consistent_torques") if self.sensed else ("at_once",)


def typical(sides: dict[str, dict[str, tuple[Any, list[Any]]]]) -> dict[str, dict[str, float]]:
    """The mean over stretches of the best of loops, s a state: other load only adds."""
    stretches = STATES // STRETCH
    best: dict[str, dict[str, Any]] = {
        kind: {what: np.full(stretches, np.inf) for what in doings}
        for kind, doings in sides.items()
    }
    for what in next(iter(sides.values())):
        for _ in range(LOOPS):
            for i in range(stretches):
                for kind, doings in sides.items():
                    function, given = doings[what]
                    stretch = given[i * STRETCH : (i + 1) * STRETCH]
                    start = process_time()
                    for each in stretch:
                        function(each)
                    time = (process_time() - start) / STRETCH
                    best[kind][what][i] = min(best[kind][what][i], time)
    return {
        kind: {what: float(each.mean()) for what, each in whats.items()}
        for kind, whats in best.items()
    }


def message(names: tuple[str, ...], q: np.ndarray, qd: np.ndarray) -> JointState:
    return JointState(name=list(names), position=q.tolist(), velocity=qd.tolist())


if __name__ == "__main__":
    main()
