# SPDX-License-Identifier: Apache-2.0
"""The node as a lifecycle node: states and transitions over DDS, as a lifecycle manager sees
them."""

from __future__ import annotations

import signal
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import rclpy
from geometry_msgs.msg import InertiaStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from node_bench import Bench, point
from node_process import ENVIRONMENT, PATIENCE, ROOT, Partner, domain_of_ones_own
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.event_handler import EventHandler, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from rclpy.waitable import Waitable
from robots import CONFIG
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from type_description_interfaces.srv import GetTypeDescription

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward.diagnostics import ERROR, Diagnosis
from robot_dynamics.ros.idle_group import ACTIVE_TIME, IdleGroup
from robot_dynamics.ros.managed import Managed

POLAR = str(ROOT / "config/polar.yaml")
AT = {"theta1": (0.3, 0.2), "d2": (0.7, 0.1)}
WANTED = {"theta1": 2.0, "d2": 1.0}
STEPS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "shutdown": Transition.TRANSITION_ACTIVE_SHUTDOWN,
    "cleanup": Transition.TRANSITION_CLEANUP,
}


def change(partner: Partner, **transition: Any) -> bool:
    service = "/feed_forward/change_state"
    return partner.ask(ChangeState, service, transition=Transition(**transition)).success


def take(partner: Partner, step: str) -> bool:
    return change(partner, id=STEPS[step])


def current(partner: Partner) -> State:
    return partner.ask(GetState, "/feed_forward/get_state").current_state


def state(partner: Partner) -> str:
    return current(partner).label


def asked(partner: Partner) -> None:
    partner.accelerate(WANTED)
    partner.state(AT)


def is_silent(partner: Partner) -> bool:
    """Do states and commands make no torques? The diagnostics come a second later."""
    partner.commands.clear()
    before = len(partner.diagnostics)
    partner.until(
        lambda: len(partner.diagnostics) > before + 1,
        "diagnostics",
        meanwhile=lambda: asked(partner),
    )
    return not partner.commands


def torques(partner: Partner) -> list[float]:
    partner.commands.clear()
    expected = rd.InverseDynamics(rd.load(POLAR))([0.3, 0.7], [0.2, 0.1], [2.0, 1.0])
    partner.until(
        lambda: any(np.allclose(each, expected) for each in partner.commands),
        "torques",
        meanwhile=lambda: asked(partner),
    )
    return expected.tolist()


def test_a_manager_takes_it_through_its_states_and_only_an_active_one_has_torques():
    with Partner(description=POLAR, autostart=False, max_age=20.0, command_timeout=0.0) as partner:
        assert state(partner) == "unconfigured"
        assert is_silent(partner)
        assert take(partner, "configure")
        assert state(partner) == "inactive"
        assert is_silent(partner)
        assert partner.counts()["state"] == "inactive"
        assert take(partner, "activate")
        torques(partner)
        # the torques at rest, of a robot that turns about a vertical axis, once
        assert take(partner, "deactivate")
        partner.until(lambda: np.allclose(partner.commands[-1], 0.0), "the last torques")
        assert is_silent(partner)
        assert take(partner, "activate")
        partner.commands.clear()
        for _ in range(20):
            partner.state(AT)
            partner.spin(0.01)
        assert not partner.commands, "the command before counts no more"
        torques(partner)
        assert take(partner, "deactivate")
        assert take(partner, "cleanup")
        assert state(partner) == "unconfigured"
        assert not take(partner, "activate")
        partner.until(
            lambda: "unconfigured: no transition 3 from here" in partner.log, "the reason"
        )
        assert not change(partner, label="acti\nvate")
        assert take(partner, "configure")
        assert take(partner, "activate")
        torques(partner)
        assert partner.stop() == 0


@pytest.mark.parametrize("end", ["cleanup", "shutdown", "signal"])
def test_who_waits_for_a_model_is_told_when_it_will_never_be(end, tmp_path, monkeypatch):
    slow = tmp_path / "cc"
    slow.write_text('#!/bin/sh\ncase "$*" in *-shared*) sleep 2;; esac\nexec cc "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "CC", str(slow))
    # nothing is in the cache
    monkeypatch.setitem(ENVIRONMENT, "ROBOT_DYNAMICS_CACHE", str(tmp_path))
    values = {"description": str(ROOT / "urdf/six_axis.urdf"), "max_age": 20.0}
    with Partner(**values) as partner:
        partner.until(lambda: partner.counts().get("state") == "active", "an active node")
        clients, futures = [], []
        for formulation in ("lagrange_euler", "gibbs_appell"):
            client = partner.node.create_client(SetParameters, "/feed_forward/set_parameters")
            partner.until(client.service_is_ready, "the service")
            wanted = Parameter("formulation", value=formulation).to_parameter_msg()
            futures.append(client.call_async(SetParameters.Request(parameters=[wanted])))
            clients.append(client)
        time.sleep(1.0)  # a build begins, and its process alone takes longer to start
        if end == "signal":
            partner.process.send_signal(signal.SIGINT)
        else:
            if end == "cleanup":
                assert take(partner, "deactivate")
            assert take(partner, end)
        for future in futures:
            partner.until(future.done, "an answer", ended=end == "signal")
            (result,) = future.result().results
            assert not result.successful
            assert (
                "the node is shutting down" if end == "signal" else "cleaned up"
            ) in result.reason
        if end == "cleanup":
            assert take(partner, "configure")
            assert take(partner, "activate")
        for client in clients:
            partner.node.destroy_client(client)


def test_after_shutdown_the_diagnostics_say_that_there_will_be_no_torques():
    with Partner(description=POLAR, max_age=20.0) as partner:
        assert take(partner, "shutdown")
        partner.until(lambda: partner.counts().get("state") == "finalized", "diagnostics")
        status = partner.diagnostics[-1].status[0]
        assert status.level == b"\x01"
        assert "restart the node" in status.message


def test_questions_are_answered_while_the_equations_are_compiled(tmp_path, monkeypatch):
    # nothing is in the cache
    monkeypatch.setitem(ENVIRONMENT, "ROBOT_DYNAMICS_CACHE", str(tmp_path))
    values = {"description": str(ROOT / "urdf/six_axis.urdf"), "formulation": "lagrange_euler"}
    partner = Partner(autostart=False, **values)
    partner._meet = lambda: None
    with partner:
        change = partner.node.create_client(ChangeState, "/feed_forward/change_state")
        partner.until(change.service_is_ready, "the node")
        configure = Transition(id=STEPS["configure"])
        done = change.call_async(ChangeState.Request(transition=configure))
        partner.until(lambda: state(partner) == "configuring", "the step")
        name = partner.get_parameter("formulation").string_value
        assert not done.done(), "the machine is too fast for this test"
        assert name == "lagrange_euler"
        partner.until(done.done, "the equations")
        assert done.result().success
        assert state(partner) == "inactive"
        partner.node.destroy_client(change)


def test_a_step_that_fails_says_why_and_may_be_taken_again(tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text("robot: [")
    with Partner(description=str(file), autostart=False, max_age=20.0) as partner:
        assert not take(partner, "configure")
        assert state(partner) == "unconfigured"
        partner.until(lambda: "robot.yaml" in partner.log, "the reason")
        assert "Traceback" not in partner.log
        file.write_text((ROOT / "config/polar.yaml").read_text())
        assert take(partner, "configure")
        assert take(partner, "activate")
        torques(partner)


def test_a_robot_from_the_topic_waits_for_its_configuration():
    urdf = """<robot name="slide"><link name="world"/><link name="cart"><inertial><mass value="3"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="x" type="prismatic"><parent link="world"/><child link="cart"/><axis xyz="1 0 0"/>
      <limit lower="-1" upper="1" effort="0" velocity="0"/></joint></robot>"""
    with Partner(autostart=False, max_age=20.0) as partner:
        partner.description_out.publish(String(data=urdf))
        assert is_silent(partner)
        assert "robot" not in partner.counts()
        for _ in range(2):
            assert take(partner, "configure")
            assert take(partner, "activate")

            def ask():
                partner.accelerate({"x": 2.0})
                partner.state({"x": (0.1, 0.0)})

            partner.commands.clear()
            partner.until(lambda: [6.0] in partner.commands, "torques", meanwhile=ask)
            assert take(partner, "deactivate")
            assert take(partner, "cleanup")


ENDS_IN = {1: 2, 2: 1, 3: 3, 4: 2, 5: 4}
"""The number of a transition to that of the primary state after it"""

COMMANDS = {
    "startup": (1, 3),
    "pause": (4,),
    "resume": (3,),
    "reset": (4, 2),
    "configure": (1,),
    "cleanup": (2,),
    "shutdown": (4, 2, 5),
}
"""The transitions that nav2_lifecycle_manager asks for, by their numbers"""


class Nav2Manager:
    """The requests of nav2_lifecycle_manager: a transition by its number, then the state's."""

    def __init__(self, partner: Partner) -> None:
        self.partner = partner

    def __call__(self, command: str) -> bool:
        """As its service manage_nodes: was every step taken? It stops at the first that is not."""
        return all(self.change(number) for number in COMMANDS[command])

    def change(self, number: int) -> bool:
        if not change(self.partner, id=number):
            return False
        return bool(current(self.partner).id == ENDS_IN[number])


def test_nav2s_manager_brings_it_up_pauses_resets_and_shuts_it_down():
    with Partner(description=POLAR, autostart=False, max_age=20.0, command_timeout=0.0) as partner:
        manage = Nav2Manager(partner)
        assert manage("startup")
        torques(partner)
        assert manage("pause")
        assert not manage("reset"), "the manager's own order: what is paused is not deactivated"
        assert manage("resume")
        torques(partner)
        assert manage("reset")
        assert manage("configure")
        assert manage("cleanup")
        assert manage("startup")
        torques(partner)
        assert manage("shutdown")
        assert state(partner) == "finalized"
        assert not manage("startup")
        assert partner.stop() == 0


def test_nav2s_manager_cannot_start_what_starts_by_itself_and_does_not_disturb_it():
    with Partner(description=POLAR, max_age=20.0, command_timeout=0.0) as partner:
        manage = Nav2Manager(partner)
        expected = torques(partner)
        assert not manage("startup")
        assert state(partner) == "active"
        partner.commands.clear()
        partner.until(lambda: partner.commands, "torques", meanwhile=lambda: partner.state(AT))
        np.testing.assert_allclose(partner.commands[0], expected)
        assert manage("pause")
        assert manage("resume")
        torques(partner)
        assert manage("shutdown")


def test_activated_again_a_robot_with_loops_is_solved_from_home():
    bench = Bench(str(CONFIG / "rrr.yaml"))
    dynamics = bench.controller.model.dynamics
    names, home = dynamics.actuated_names, dynamics.closed.home.q_r
    bench.command(0.0, point(qdd=np.zeros(3)), names=names)
    bench.state(0.0, home[:3] + 0.05, np.zeros(3), names=names)
    assert not np.allclose(dynamics.closed.last.q_r, home)
    bench.controller.deactivate(0)
    assert bench.state(0.1, home[:3], np.zeros(3), names=names) is None
    bench.controller.model.assume_home()
    np.testing.assert_allclose(dynamics.closed.last.q_r, home)


def test_what_cannot_be_followed_is_told_with_what_to_do():
    bench = Bench(str(CONFIG / "rrr.yaml"))
    dynamics, diagnosis = bench.controller.model.dynamics, Diagnosis(0.0)
    home, elsewhere = dynamics.closed.home.q_r[:3], [9.0, 3.0, -4.0]
    for k, q in enumerate((home, elsewhere, elsewhere)):
        bench.command(0.1 * k, point(qdd=np.zeros(3)), names=dynamics.actuated_names)
        bench.state(0.1 * k, q, np.zeros(3), names=dynamics.actuated_names)
        report = diagnosis.report(bench.controller, False, 10**9, 1.0 + k)
    assert report.level == ERROR
    assert "deactivate and activate" in report.message


def test_what_sleeps_is_looked_at_all_the_same():
    with Partner(description=POLAR) as partner:
        torques(partner)
        # what must not be lost: who sends it as best effort is told
        topics = {"command": JointTrajectory, "payload": InertiaStamped}
        topics["trajectory_in"] = JointTrajectory
        for topic, kind in topics.items():
            partner.node.create_publisher(kind, f"/feed_forward/{topic}", qos_profile_sensor_data)
        partner.until(
            lambda: all(
                f"topic '~/{topic}', offering incompatible" in partner.log for topic in topics
            ),
            "the warnings",
            meanwhile=lambda: asked(partner),
        )
        assert partner.log.count("incompatible QoS") == len(topics)
        kind = partner.node.get_publishers_info_by_topic("/joint_states")[0]
        answer = partner.ask(
            GetTypeDescription,
            "/feed_forward/get_type_description",
            type_name=kind.topic_type,
            type_hash=str(kind.topic_type_hash),
        )
        described = answer.type_description.type_description
        assert answer.successful, answer.failure_reason
        assert described.type_name == "sensor_msgs/msg/JointState"


def test_a_description_that_is_not_latched_is_told_where_it_is_waited_for():
    with Partner() as partner:
        partner.node.destroy_publisher(partner.description_out)
        partner.node.create_publisher(String, "robot_description", 1)
        words = "topic 'robot_description', offering incompatible QoS"
        partner.until(lambda: words in partner.log, "the warning")


def test_who_is_spoken_to_is_served_at_once_until_nothing_has_come_for_a_while():
    with domain_of_ones_own() as domain:
        rclpy.init(domain_id=domain)
        now, got, asked = 0.0, [], []
        node, other = Managed("sleeper"), Node("other")
        node.idle_group = group = IdleGroup(lambda: now)

        def answer(request, response):
            asked.append(request.names)
            return response

        options = {
            "callback_group": group,
            "event_callbacks": SubscriptionEventCallbacks(use_default_callbacks=False),
        }
        topic = node.create_subscription(
            String, "words", lambda message: got.append(message.data), 10, **options
        )
        node.destroy_subscription(node.create_subscription(String, "gone", print, 1, **options))
        service = node.create_service(GetParameters, "asked", answer, callback_group=group)
        publisher = other.create_publisher(String, "words", 10)
        client = other.create_client(GetParameters, "asked")
        executor = SingleThreadedExecutor()
        for each in (node, other):
            executor.add_node(each)

        def until(done, step=lambda: None):
            deadline = time.monotonic() + PATIENCE
            while not done():
                assert time.monotonic() < deadline
                step()
                executor.spin_once(0.01)

        def are_active(*expected):
            assert set(node.subscriptions) & {topic} | set(node.services) & {service} == {*expected}

        until(lambda: publisher.get_subscription_count() and client.service_is_ready())
        for words in ("ab", "cd"):  # in the second round, idle once more
            for word in words:
                publisher.publish(String(data=word))
            for _ in range(20):
                executor.spin_once(0.01)
            assert not got
            are_active()
            until(lambda: got, node.poll)
            are_active(topic)
            until(lambda words=words: got == [*words])
            publisher.publish(String(data="!"))
            until(lambda: got[-1] == "!")
            future = client.call_async(GetParameters.Request(names=list(words)))
            until(future.done, node.poll)
            are_active(topic, service)
            group.answer(except_for=service)
            future = client.call_async(GetParameters.Request(names=["at once"]))
            until(future.done)
            now += ACTIVE_TIME - 1.0
            node.poll()
            are_active(topic, service)
            publisher.publish(String(data="?"))
            until(lambda: got[-1] == "?")
            now += 1.0
            node.poll()
            are_active(topic)
            # a service that sleeps may be asked from within a long step
            future = client.call_async(GetParameters.Request(names=["in between"]))
            for _ in range(20):
                executor.spin_once(0.01)
                group.answer(except_for=service)
            assert not future.done()
            until(future.done, lambda: group.answer(except_for=None))
            got.clear()
            now += ACTIVE_TIME
            node.poll()
            are_active()
        rest = [["at once"], ["in between"]]
        assert asked == [["a", "b"], *rest, ["c", "d"], *rest]
        executor.shutdown()
        node.destroy_node()
        other.destroy_node()
        rclpy.shutdown()


def test_events_are_shown_for_one_wait_after_each_look_and_other_waitables_always():
    class Other(Waitable):
        """As an action server is one."""

    with domain_of_ones_own() as domain:
        rclpy.init(domain_id=domain)
        node = Managed("sleeper")
        node.create_subscription(String, "words", print, 1)
        node.add_waitable(other := Other(node.default_callback_group))
        events = [each for each in Node.waitables.fget(node) if isinstance(each, EventHandler)]
        assert len(events) >= 2
        for _ in range(3):
            assert list(node.waitables) == [other]
        node.poll()
        for _ in range(2):  # before the wait, and after
            assert set(node.waitables) == {other, *events}
        assert list(node.waitables) == [other]
        asleep = {each.srv_name for each in node._services} - {
            each.srv_name for each in node.services
        }
        assert "sleeper/get_type_description" in asleep
        node.destroy_node()
        rclpy.shutdown()
