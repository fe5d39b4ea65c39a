# SPDX-License-Identifier: Apache-2.0
"""Torques have no names on their way to a controller, so its parameters must match."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_process import ROOT, Partner, domain_of_ones_own
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

import robot_dynamics as rd
from robot_dynamics.ros import controller_order, torque_topics
from robot_dynamics.ros.controller_order import PATIENCE, ControllerOrder, Subscribers
from robot_dynamics.ros.feed_forward.outlet import Torques
from robot_dynamics.ros.feed_forward.refusal import Tally
from robot_dynamics.ros.torque_topics import TorqueTopics

POLAR = str(ROOT / "config/polar.yaml")
AT = {"theta1": (0.3, 0.2), "d2": (0.7, 0.1)}
TOPIC = "/arm/effort_controller/commands"
REMAP = ("-r", f"~/commands:={TOPIC}")
RIGHT, WRONG = ["theta1", "d2"], ["d2", "theta1"]


WITHOUT_LEASE = (
    sys.executable,
    "-c",
    "import sys\n"
    "from robot_dynamics.ros import executables, torque_topics\n"
    "torque_topics.LEASE = 0.0\n"
    "sys.exit(executables.feed_forward())",
)
"""The node, which knows at once that other publishers are no remains of killed ones"""


def connected(program: tuple[str, ...] = (), **values) -> Partner:
    """The node, whose torques go to a controller that need not be there."""
    values = {"description": POLAR, "max_age": 20.0, "command_timeout": 0.0, **values}
    found = Partner(program=program, arguments=REMAP, **values)
    found._meet = lambda: found.until(
        lambda: (
            found.states_out.get_subscription_count()
            and found.command_out.get_subscription_count()
            and found.node.count_publishers(TOPIC)
            and found.node.count_publishers("/diagnostics")
        ),
        "the node's topics",
    )
    return found


@pytest.fixture
def partner() -> Iterator[Partner]:
    with connected() as found:
        yield found


@contextmanager
def listener(
    partner: Partner, name: str, joints: Sequence[str] = (), *, answers: bool = True, **options
) -> Iterator[Node]:
    """A node that takes torques; its `got` are those that came."""
    options = {"namespace": "arm", "context": partner.node.context, **options}
    node = rclpy.create_node(name, **options)
    node.got = []
    if joints:
        node.declare_parameter("joints", list(joints))
        node.declare_parameter("interface_name", "effort")
    node.create_subscription(Float64MultiArray, TOPIC, lambda m: node.got.append(list(m.data)), 100)
    if answers:
        partner._executor.add_node(node)
    try:
        yield node
    finally:
        partner._executor.remove_node(node)
        node.destroy_node()


@contextmanager
def answering(node: Node) -> Iterator[None]:
    """It answers at once, whatever the test is doing."""
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    thread = Thread(target=executor.spin)
    thread.start()
    try:
        yield
    finally:
        executor.shutdown()
        thread.join()


def ask(partner: Partner) -> None:
    partner.accelerate({"theta1": 2.0, "d2": 1.0})
    partner.state(AT)


def told(partner: Partner, words: str) -> None:
    partner.until(lambda: words in partner.log, words, meanwhile=lambda: ask(partner))


def served(partner: Partner, node: Node) -> None:
    """It gets torques, and right ones alone."""
    partner.until(
        lambda: node.got, f"torques for {node.get_name()}", meanwhile=lambda: ask(partner)
    )
    expected = rd.InverseDynamics(rd.load(POLAR))([0.3, 0.7], [0.2, 0.1], [2.0, 1.0])
    np.testing.assert_allclose(node.got, [expected] * len(node.got))


def test_another_interface_or_order_is_refused_with_both_and_the_right_one_is_served(partner):
    with listener(partner, "effort_controller", WRONG) as node:
        told(
            partner,
            "/arm/effort_controller has a different order: d2, theta1 there, theta1, d2 here",
        )
        node.set_parameters([Parameter("joints", value=["theta1", "wrist"])])
        told(partner, "/arm/effort_controller has different joints: theta1, wrist there")
        right = Parameter("joints", value=RIGHT)
        node.set_parameters([right, Parameter("interface_name", value="position")])
        told(partner, "/arm/effort_controller commands 'position', not effort alone")
        partner.until(
            lambda: partner.diagnostics[-1].status[0].level == b"\x02", "an error in diagnostics"
        )
        assert not node.got, "none from the first moment on"
        node.set_parameters([Parameter("interface_name", value="effort")])
        served(partner, node)


def test_one_that_comes_while_torques_go_out_gets_none_before_it_has_told_its_joints(partner):
    partner.until(lambda: partner.effort, "torques", meanwhile=lambda: ask(partner))
    for joints in (WRONG, RIGHT, WRONG):
        # started anew each time, under the same name
        before = partner.log.count("has a different order")
        with listener(partner, "effort_controller", joints) as node:
            if joints == RIGHT:
                served(partner, node)
                continue
            partner.until(
                lambda before=before: partner.log.count("has a different order") > before,
                "a word about the order",
                meanwhile=lambda: ask(partner),
            )
            assert not node.got
    with listener(partner, "effort_controller", RIGHT):
        partner.until(
            lambda: (
                partner.diagnostics[-1].status[0].message
                == f"publishing torques; subscribers of {TOPIC}: 1"
            ),
            "one subscriber in the diagnostics",
            meanwhile=lambda: ask(partner),
        )
    # nobody is left who could have another order, nor who takes torques
    partner.effort.clear()
    partner.until(lambda: partner.effort, "torques again", meanwhile=lambda: ask(partner))
    partner.until(
        lambda: f"{TOPIC} has no subscriber" in partner.diagnostics[-1].status[0].message,
        "a warning",
        meanwhile=lambda: ask(partner),
    )


@pytest.mark.parametrize("is_told_to_end", [True, False])
def test_torques_at_rest_that_fall_into_a_wait_for_an_answer_are_published_after_it(
    partner, is_told_to_end
):
    still = rd.InverseDynamics(rd.load(POLAR)).gravity([0.3, 0.7])
    with listener(partner, "plotter") as plotter:
        served(partner, plotter)
        with listener(partner, "effort_controller", RIGHT, answers=False) as node:
            told(partner, "waiting for the joints of /arm/effort_controller")
            for _ in range(20):  # torques from before are still on their way
                partner.spin()
            plotter.got.clear()
            if is_told_to_end:
                deactivate(partner)
            else:  # its command is, and then no more states come
                assert partner.set_parameters(command_timeout=0.1).successful
                partner.until(
                    lambda: "applying on_timeout: gravity" in partner.log,
                    "the end of the command",
                    meanwhile=lambda: partner.state(AT),
                )
                partner.state(AT)
            assert not plotter.got, "nobody may be served as long as one is unknown"
            partner._executor.add_node(node)
            partner.until(lambda: plotter.got and node.got, "torques at rest")
            if is_told_to_end:
                for _ in range(20):
                    partner.state(AT)
                    partner.spin()
        for each in (plotter, node):
            np.testing.assert_allclose(each.got, [still], rtol=1e-9)


def deactivate(partner: Partner) -> None:
    step = Transition(id=Transition.TRANSITION_DEACTIVATE)
    assert partner.ask(ChangeState, "/feed_forward/change_state", transition=step).success


def test_only_the_newest_last_torques_are_owed_and_not_for_long(partner, monkeypatch):
    topics = TorqueTopics(partner.node, Tally(print), check=True)
    topics.set_outputs(RIGHT, are_joints=True)
    got = []
    partner.node.create_subscription(
        Float64MultiArray, topics.topic, lambda m: got.append(list(m.data)), 10
    )
    partner.until(lambda: topics.subscribers, "the subscriber")

    def after(
        *some: tuple[float, bool], fit: Sequence[str] = RIGHT, then: float | None = None
    ) -> list[list[float]]:
        """What comes of torques that meet a block, and of one that is published at its end."""
        got.clear()
        topics.set_outputs(RIGHT, are_joints=True)
        topics._order.problem = "unknown"
        monkeypatch.setattr(topics._order, "watch", lambda _: None)
        for value, last in some:
            topics.publish(Torques(np.array([value, 0.0]), 0, last))
        topics.publish_from_thread(np.array([8.0, 0.0]))
        topics.watch()
        topics.set_outputs(fit, are_joints=True)
        topics._order.problem = ""
        if then is not None:
            topics.publish(Torques(np.array([then, 0.0]), 0))
        topics.watch()
        partner.spin()
        topics.publish(Torques(np.array([9.0, 0.0]), 0))
        partner.until(lambda: [9.0, 0.0] in got, "a mark")
        return got[:-1]

    assert after((1.0, False)) == []
    assert after((1.0, False), (2.0, True)) == [[2.0, 0.0]]
    assert after((2.0, True), (3.0, True)) == [[3.0, 0.0]]
    assert after((2.0, True), (1.0, False)) == [], "a motion has begun since"
    assert after((2.0, True), fit=WRONG) == [], "they belong to other joints"
    assert after((2.0, True), then=4.0) == [[4.0, 0.0]], "a motion comes first"

    # a further block does not make them younger
    topics._order.problem = "unknown"
    topics.publish(Torques(np.array([2.0, 0.0]), 0, True))
    since, topics._order.problem = topics._owed_since, ""
    with monkeypatch.context() as blocked:
        blocked.setattr(
            topics._order, "look_for_new", lambda _: setattr(topics._order, "problem", "another")
        )
        topics.watch()
    assert topics._owed is not None
    assert topics._owed_since == since
    monkeypatch.setattr(torque_topics, "OWED_FOR", 0.0)
    assert after((2.0, True)) == []
    topics.close()


def test_one_that_answers_late_gets_none_until_then_and_its_answer_counts(partner):
    with listener(partner, "effort_controller", WRONG, answers=False) as node:
        told(partner, "waiting for the joints of /arm/effort_controller")
        told(partner, "/arm/effort_controller did not answer 2 requests for its joints")
        partner._executor.add_node(node)
        told(partner, "/arm/effort_controller has a different order")
        assert not node.got
        node.set_parameters([Parameter("joints", value=RIGHT)])
        served(partner, node)


@pytest.mark.parametrize("is_there", [True, False])
def test_the_ramp_begins_with_the_first_torques_that_somebody_gets(is_there):
    """The controller has not told its joints yet, or there is nobody at all."""
    with ExitStack() as stack:
        partner = stack.enter_context(connected(ramp_time=1.0))
        for each in list(partner.node.subscriptions):
            if each.topic_name.endswith("/effort"):
                partner.node.destroy_subscription(each)
        name = "effort_controller" if is_there else "simulator"
        late = listener(partner, name, RIGHT, answers=not is_there)
        if is_there:
            node = stack.enter_context(late)
            told(partner, "waiting for the joints of /arm/effort_controller")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            ask(partner)
            partner.spin()
        if is_there:
            partner._executor.add_node(node)
        else:
            node = stack.enter_context(late)
        whole = rd.InverseDynamics(rd.load(POLAR))([0.3, 0.7], [0.2, 0.1], [2.0, 1.0])
        partner.until(
            lambda: node.got and np.allclose(node.got[-1], whole),
            "all of the torques",
            meanwhile=lambda: ask(partner),
        )
        assert np.abs(node.got[0]).max() < 0.5 * np.abs(whole).max()


def test_who_is_no_controller_gets_torques_and_does_not_hold_up_others(partner):
    with listener(partner, "simulator") as plain:
        served(partner, plain)
        with listener(partner, "effort_controller", RIGHT) as other:
            served(partner, other)


def test_a_controller_is_not_asked_for_its_joints_where_nobody_wants_that():
    with (
        connected(check_controller=False) as partner,
        listener(partner, "effort_controller", WRONG) as node,
    ):
        served(partner, node)


def test_a_controller_that_is_unknown_gets_none(partner):
    begin = time.monotonic()
    with listener(partner, "effort_controller", start_parameter_services=False) as driver:
        told(partner, "/arm/effort_controller has no parameters that name its joints")
        assert time.monotonic() - begin >= PATIENCE
        assert not driver.got
    with listener(partner, "effort_controller") as plain:
        told(partner, "/arm/effort_controller does not name its joints")
        assert not plain.got
    with listener(partner, "effort_controller", RIGHT) as right:
        served(partner, right)


class AsRclcpp(Node):
    """A node in C++ as far as its parameters go: one name that is not declared, and the answer is
    empty."""

    def __init__(self, declared, partner: Partner):
        self.declared, self.got = declared, []
        super().__init__(
            "effort_controller",
            namespace="arm",
            context=partner.node.context,
            start_parameter_services=False,
        )
        self.create_service(GetParameters, "~/get_parameters", self.on_request)
        self.create_subscription(
            Float64MultiArray, TOPIC, lambda message: self.got.append(list(message.data)), 100
        )

    def on_request(self, request, response):
        if all(name in self.declared for name in request.names):
            for name in request.names:
                found = Parameter(name, value=self.declared[name])
                response.values.append(found.get_parameter_value())
        return response


@contextmanager
def in_cpp(partner: Partner, **declared) -> Iterator[AsRclcpp]:
    node = AsRclcpp(declared, partner)
    partner._executor.add_node(node)
    try:
        yield node
    finally:
        partner._executor.remove_node(node)
        node.destroy_node()


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"joints": WRONG}, "has a different order: d2, theta1 there"),
        ({"joints": WRONG, "interface_name": "effort"}, "has a different order: d2, theta1 there"),
        ({"joints": RIGHT}, "does not name its command interface"),
        ({"joints": [""], "interface_name": "effort"}, "has different joints"),
        ({"interface_name": "effort"}, "does not name its joints"),
        ({"joint": "d2", "interface_names": ["effort"]}, "has different joints: d2 there"),
        ({"joint": "d2", "interface_names": ["effort", "velocity"]}, "has different joints: d2"),
        ({"joint": "", "interface_names": ["effort"]}, "does not name its joints"),
        ({}, "does not name its joints"),
    ],
)
def test_a_controller_in_cpp_that_has_not_declared_all_is_asked_for_each(partner, declared, words):
    with in_cpp(partner, **declared) as node:
        told(partner, words)
        assert not node.got
        node.declared = {"joints": RIGHT, "interface_name": "effort"}
        served(partner, node)


@pytest.mark.parametrize(
    ("interfaces", "fits"), [(["effort"], True), (["effort", "velocity"], False), ([], False)]
)
def test_a_controller_of_several_interfaces_of_one_joint_has_to_have_effort_alone(interfaces, fits):
    told = {"joint": "theta1", "interface_names": interfaces}
    assert (not controller_order._difference("/c", told, ["theta1"])) == fits


class WithoutTheRight(Node):
    """What SROS 2 makes of a node whose policy does not let it ask."""

    def create_client(self, *arguments, **more):
        raise RuntimeError("failed to create client: denied")


def test_a_controller_that_may_not_be_asked_gets_no_torques_and_the_reason_is_told():
    with domain_of_ones_own() as domain:
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        try:
            node = WithoutTheRight("feed_forward", context=context)
            controller = rclpy.create_node("effort_controller", context=context)
            controller.create_subscription(Float64MultiArray, "~/commands", print, 1)
            order = ControllerOrder(node, "/effort_controller/commands")
            order.set_outputs(["theta1"])
            deadline = time.monotonic() + 30
            while "cannot be called" not in order.problem and time.monotonic() < deadline:
                order.watch(Subscribers(1, 1))
                time.sleep(0.01)
            assert "get_parameters cannot be called" in order.problem
            assert "denied; allow it in the security policy" in order.problem
            controller.destroy_node()
            node.destroy_node()
        finally:
            rclpy.shutdown(context=context)


@pytest.mark.parametrize("it_subscribes_first", [True, False])
def test_one_that_appears_after_a_request_is_asked_at_once(
    partner, it_subscribes_first, monkeypatch
):
    """The request reached the remains of a killed process, which stay in the graph for a while."""
    options = {"namespace": "arm", "context": partner.node.context}
    asks = rclpy.create_node("asks", **options)
    monkeypatch.setattr(controller_order, "PATIENCE", math.inf)  # it would wait forever
    order = ControllerOrder(asks, TOPIC)
    order.set_outputs(RIGHT)
    partner._executor.add_node(asks)

    def watch(problem: str) -> None:
        partner.until(
            lambda: order.problem == problem,
            problem or "no problem",
            meanwhile=lambda: order.watch(Subscribers(asks.count_subscribers(TOPIC), 1)),
        )

    with listener(partner, "effort_controller", RIGHT, answers=False):
        late = None
        if it_subscribes_first:
            late = rclpy.create_node("effort_controller", start_parameter_services=False, **options)
            late.create_subscription(Float64MultiArray, TOPIC, print, 1)
            partner.until(lambda: asks.count_subscribers(TOPIC) == 2, "both")
        watch("waiting for the joints of /arm/effort_controller")
        while order._client is None:
            order.watch(Subscribers(asks.count_subscribers(TOPIC), 1))
        if late is None:
            late = AsRclcpp({"joints": RIGHT, "interface_name": "effort"}, partner)
        else:
            late.declared = {"joints": RIGHT, "interface_name": "effort"}
            late.create_service(
                GetParameters, "~/get_parameters", partial(AsRclcpp.on_request, late)
            )
        partner._executor.add_node(late)
        partner.until(
            lambda: order._answers["joints"],
            "its answer",
            meanwhile=lambda: order.watch(Subscribers(asks.count_subscribers(TOPIC), 1)),
        )
        monkeypatch.setattr(controller_order, "PATIENCE", 0.0)
        watch("")
    for each in (late, asks):
        partner._executor.remove_node(each)
        each.destroy_node()


@pytest.fixture
def order(partner, monkeypatch) -> Iterator[ControllerOrder]:
    """Each of its requests would wait forever, and whoever matches is not asked a second time."""
    monkeypatch.setattr(controller_order, "PATIENCE", math.inf)
    monkeypatch.setattr(controller_order, "AGAIN", math.inf)
    asks = rclpy.create_node("asks", namespace="arm", context=partner.node.context)
    found = ControllerOrder(asks, TOPIC)
    found.set_outputs(RIGHT)
    partner._executor.add_node(asks)
    yield found
    partner._executor.remove_node(asks)
    asks.destroy_node()


@pytest.fixture
def watch(partner, order) -> Callable[..., None]:
    """It looks at the controllers until the problem begins like this, and does so for some s, with
    so many subscribers that the graph does not contain yet."""

    def until(problem: str, seconds: float = 0.0, *, unknown: int = 0) -> None:
        def is_so() -> bool:
            return order.problem[: len(problem) or None] == problem

        def look() -> None:
            order.watch(Subscribers(order._node.count_subscribers(TOPIC) + unknown, 1))

        partner.until(is_so, problem or "no problem", meanwhile=look)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            partner.spin()
            look()
            assert is_so(), order.problem

    return until


@contextmanager
def silent_one(partner: Partner, joints: Sequence[str]) -> Iterator[Node]:
    """A controller that does not answer, in a process of its own for all that DDS knows: of two of
    a name in one, the end of either takes the name from the other."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=partner.node.context.get_domain_id())
    before = partner.node.count_subscribers(TOPIC)
    name = "effort_controller"
    with listener(partner, name, joints, answers=False, context=context) as node:
        partner.until(lambda: partner.node.count_subscribers(TOPIC) > before, "it")
        yield node
    rclpy.shutdown(context=context)


def test_torques_wait_for_the_answers_of_all_of_one_name(partner, watch):
    with (
        listener(partner, "effort_controller", RIGHT),
        silent_one(partner, WRONG) as other,
    ):
        watch("waiting for the joints of /arm/effort_controller")
        watch("waiting for the ", 1.0)
        with answering(other):
            watch("several nodes are named /arm/effort_controller")


def test_those_that_replace_one_that_was_served_wait_for_each_other(partner, watch):
    """None of them holds the torques of a motion, which would be worth a guess."""
    with listener(partner, "effort_controller", RIGHT):
        watch("")
    partner.until(lambda: partner.node.count_subscribers(TOPIC) == 0, "its end")
    with silent_one(partner, WRONG) as other, listener(partner, "effort_controller", RIGHT):
        partner.until(lambda: partner.node.count_subscribers(TOPIC) == 2, "both")
        watch("waiting for the ")
        watch("waiting for the ", 1.5)
        with answering(other):
            watch("several nodes are named /arm/effort_controller")


def test_one_of_that_name_that_answers_late_is_heard_all_the_same(partner, watch, monkeypatch):
    """The first one is served meanwhile: the other may be the remains of a killed process."""
    monkeypatch.setattr(controller_order, "PATIENCE", 0.5)
    with (
        listener(partner, "effort_controller", RIGHT),
        silent_one(partner, WRONG) as other,
    ):
        watch("waiting for the joints of /arm/effort_controller")
        watch("")
        watch("", 2.0)
        with answering(other):
            watch("several nodes are named /arm/effort_controller")


def test_one_that_does_not_match_is_asked_again_whatever_another_does_not_answer(
    partner, watch, monkeypatch
):
    monkeypatch.setattr(controller_order, "PATIENCE", 0.5)
    with listener(partner, "effort_controller", WRONG) as node, silent_one(partner, RIGHT):
        watch("/arm/effort_controller has a different order")
        node.set_parameters([Parameter("joints", value=RIGHT)])
        watch("")


def test_one_in_motion_is_not_left_with_its_last_torques_until_another_answers(partner, watch):
    with listener(partner, "effort_controller", RIGHT):
        watch("waiting for the joints of /arm/effort_controller")
        watch("")
        with silent_one(partner, WRONG) as other:
            watch("waiting for the joints of /arm/effort_controller")
            watch("")
            with answering(other):
                watch("several nodes are named /arm/effort_controller")


def test_a_subscriber_without_a_name_is_waited_for_in_motion_only_if_it_may_have_that_name(
    partner, order, watch, monkeypatch
):
    monkeypatch.setattr(controller_order, "INTRODUCTION", math.inf)
    with listener(partner, "effort_controller", RIGHT):
        watch("waiting for the joints of /arm/effort_controller")
        watch("waiting for the node name of a subscriber", 0.3, unknown=1)
        watch("")
        watch("", 0.3, unknown=1)
        # the services of a second one are discovered before its name
        with listener(partner, "other") as other:
            service = f"{order.controller}/get_parameters"
            other.create_service(GetParameters, service, lambda _, response: response)
            watch("waiting for the node name of a subscriber", 0.3, unknown=1)
            assert not order.may_be_released
        watch("", unknown=1)


def test_one_that_has_vanished_is_not_waited_for(partner, watch):
    with listener(partner, "effort_controller", RIGHT):
        with silent_one(partner, RIGHT):
            watch("waiting for the joints of /arm/effort_controller")
        watch("")


def test_the_answer_of_one_that_has_vanished_does_not_count_for_another(
    partner, watch, monkeypatch
):
    with silent_one(partner, WRONG) as other:
        with listener(partner, "effort_controller", RIGHT):
            partner.until(lambda: partner.node.count_subscribers(TOPIC) == 2, "both")
            watch("waiting for the joints of /arm/effort_controller")
            # one has answered by then
            watch("waiting for the ", 1.0)
        partner.until(lambda: partner.node.count_subscribers(TOPIC) == 1, "its end")
        monkeypatch.setattr(controller_order, "PATIENCE", 0.5)
        watch("/arm/effort_controller did not answer 2 requests for its joints")
        with answering(other):
            watch("/arm/effort_controller has a different order")


def test_two_that_disagree_do_so_until_both_have_answered_again(partner, watch, monkeypatch):
    with listener(partner, "effort_controller", RIGHT), silent_one(partner, WRONG) as other:
        with answering(other):
            watch("several nodes are named /arm/effort_controller")
        monkeypatch.setattr(controller_order, "PATIENCE", 0.3)
        watch("several nodes are named /arm/effort_controller", 3.0)
        other.set_parameters([Parameter("joints", value=RIGHT)])
        with answering(other):
            watch("")


def test_one_that_takes_long_for_each_answer_is_given_time(partner, watch, monkeypatch):
    monkeypatch.setattr(controller_order, "PATIENCE", 0.4)

    class Slow(AsRclcpp):
        def on_request(self, request, response):
            time.sleep(0.2)
            return super().on_request(request, response)

    node = Slow({"joints": RIGHT, "interface_name": "effort"}, partner)
    with answering(node):
        watch("/arm/effort_controller did not answer 2 requests for its joints")
        watch("")
    node.destroy_node()


def test_of_two_of_one_name_both_are_heard(partner):
    """The torques reach both. The first one does not keep those of a motion."""
    with listener(partner, "effort_controller", RIGHT, answers=False) as node, answering(node):
        served(partner, node)
        with (
            listener(partner, "effort_controller", WRONG, answers=False) as other,
            answering(other),
        ):
            told(
                partner,
                "several nodes are named /arm/effort_controller, and their joints differ: ",
            )
            partner.until(
                lambda: node.got[-1] == [0.0, 0.0], "zeros", meanwhile=lambda: ask(partner)
            )
            for _ in range(20):
                ask(partner)
                partner.spin()
            assert node.got[-1] == [0.0, 0.0]
            assert not np.any(other.got)
        node.got.clear()
        served(partner, node)
        with listener(partner, "effort_controller", RIGHT) as other:
            served(partner, other)


def test_a_launch_that_watches_the_torques_is_not_told_as_their_receiver(partner):
    def message() -> str:
        return partner.diagnostics[-1].status[0].message if partner.diagnostics else ""

    def gently() -> None:
        # a flood of states is a warning, too
        ask(partner)
        time.sleep(0.02)

    nobody, one = f"nobody receives the torques: {TOPIC} has no", f"subscribers of {TOPIC}: 1"
    with listener(partner, "launch_ros_4711") as launch:
        partner.until(lambda: nobody in message(), nobody, meanwhile=gently)
        served(partner, launch)
        with listener(partner, "effort_controller", RIGHT):
            partner.until(lambda: one in message(), one, meanwhile=gently)


def test_whoever_else_commands_the_controller_is_named_even_under_the_same_name():
    with connected(WITHOUT_LEASE) as partner, listener(partner, "effort_controller", RIGHT) as node:
        served(partner, node)

        def level() -> bytes:
            return partner.diagnostics[-1].status[0].level if partner.diagnostics else b""

        # a launch file's node, which publishes zeros after a crash, is no rival
        launch = rclpy.create_node("launch_ros_1", context=partner.node.context)
        launch.create_publisher(Float64MultiArray, TOPIC, 1)
        partner.until(lambda: node.count_publishers(TOPIC) == 2, "the launch")
        for name in ("stranger", "feed_forward"):
            rival = rclpy.create_node(name, context=partner.node.context)
            rival.create_publisher(Float64MultiArray, TOPIC, 1)
            words = f"{TOPIC} has torques of /{name} as well"
            told(partner, words)
            partner.until(
                lambda words=words: (
                    level() == b"\x01" and words in partner.diagnostics[-1].status[0].message
                ),
                "a warning",
                meanwhile=lambda: ask(partner),
            )
            rival.destroy_node()
            partner.until(lambda: level() == b"\x00", "its end", meanwhile=lambda: ask(partner))
        assert partner.log.count("as well, and the controller") == 2
        launch.destroy_node()


def test_what_a_killed_process_leaves_in_the_graph_is_no_rival(partner):
    rival = rclpy.create_node("feed_forward", context=partner.node.context)
    rival.create_publisher(Float64MultiArray, TOPIC, 1)
    seen = len(partner.diagnostics)
    partner.until(lambda: len(partner.diagnostics) > seen + 3, "more diagnostics")
    assert "as well" not in partner.log
    rival.destroy_node()
