"""Torques have no names on their way to a controller: its parameters have to fit."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import rclpy
from node_process import ROOT, Partner, domain_of_ones_own
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

import robot_dynamics as rd
from robot_dynamics.ros.controller_order import ControllerOrder

POLAR = str(ROOT / "config/polar.yaml")
AT = {"theta1": (0.3, 0.2), "d2": (0.7, 0.1)}
REMAP = ("-r", "~/commands:=/arm/effort_controller/commands")


@pytest.fixture(scope="module")
def controlled():
    """The node, and what runs as its controller."""
    values = {"description": POLAR, "max_age": 20.0, "command_timeout": 0.0}
    partner = Partner(arguments=REMAP, **values)
    node = rclpy.create_node("effort_controller", namespace="arm", context=partner.node.context)
    node.declare_parameter("joints", ["d2", "theta1"])
    node.declare_parameter("interface_name", "effort")
    node.create_subscription(
        Float64MultiArray, "~/commands", lambda m: partner.commands.append(list(m.data)), 10
    )
    partner._executor.add_node(node)
    partner.controller = node
    partner._meet = lambda: partner.until(
        lambda: (
            partner.states_out.get_subscription_count()
            and node.count_publishers("/arm/effort_controller/commands")
            and partner.node.count_publishers("/diagnostics")
        ),
        "the node's topics",
    )
    with partner:
        yield partner
        partner._executor.remove_node(node)
        node.destroy_node()


def ask(partner: Partner) -> None:
    partner.accelerate({"theta1": 2.0, "d2": 1.0})
    partner.state(AT)


def test_another_interface_or_order_is_refused_with_both_and_the_right_one_is_served(controlled):
    node = controlled.controller

    def told(words: str) -> None:
        found = lambda: words in controlled.log  # noqa: E731
        controlled.until(found, words, meanwhile=lambda: ask(controlled))

    told("/arm/effort_controller has other order: d2, theta1 there, theta1, d2 here")
    node.set_parameters([Parameter("joints", value=["theta1", "wrist"])])
    told("/arm/effort_controller has other joints: theta1, wrist there, theta1, d2 here")
    joints = Parameter("joints", value=["theta1", "d2"])
    node.set_parameters([joints, Parameter("interface_name", value="position")])
    told("/arm/effort_controller takes 'position', not torques")
    controlled.commands.clear()
    for _ in range(10):
        ask(controlled)
        controlled.spin()
    assert not controlled.commands
    controlled.until(
        lambda: controlled.diagnostics[-1].status[0].level == b"\x02", "an error in the diagnostics"
    )
    node.set_parameters([Parameter("interface_name", value="effort")])
    expected = rd.InverseDynamics(rd.load(POLAR))([0.3, 0.7], [0.2, 0.1], [2.0, 1.0])
    controlled.until(
        lambda: any(np.allclose(each, expected) for each in controlled.commands),
        "torques for a controller that fits",
        meanwhile=lambda: ask(controlled),
    )


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
            now = iter(range(10**6))
            order = ControllerOrder(node, "/effort_controller/commands", lambda: float(next(now)))
            deadline = time.monotonic() + 30
            while not order.problem and time.monotonic() < deadline:
                order.watch(["theta1"])
                time.sleep(0.01)
            assert "get_parameters can't be asked" in order.problem
            assert "denied; allow it in the security policy" in order.problem
            controller.destroy_node()
            node.destroy_node()
        finally:
            rclpy.shutdown(context=context)
