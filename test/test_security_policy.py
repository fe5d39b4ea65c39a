# SPDX-License-Identifier: Apache-2.0
"""The SROS 2 policy allows what the node uses, and nothing else."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
POLICY = ROOT / "config" / "sros2" / "policy.xml"
NAMES = {
    "topics": ("topic", {"subscribe", "publish"}),
    "services": ("service", {"request", "reply"}),
}


def allowed(node: str) -> dict[str, set[str]]:
    """What a node may do: publish, subscribe, reply or request, and which names."""
    profile = ElementTree.parse(POLICY).find(f".//profile[@node='{node}']")
    found: dict[str, set[str]] = {}
    for rule in profile:
        (right,) = rule.attrib
        found.setdefault(right, set()).update(each.text for each in rule)
    return found


SLIDE = """<robot name="slide"><link name="world"/><link name="cart"><inertial><mass value="3"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="x" type="prismatic"><parent link="world"/><child link="cart"/><axis xyz="1 0 0"/>
  <limit lower="-1" upper="1" effort="0" velocity="0"/></joint></robot>"""


def test_the_policy_has_the_form_that_sros2_reads():
    """As its schema of version 0.2.0 says; comments inside it are taken for enclaves."""
    assert "<!--" not in POLICY.read_text().split("<policy")[1]
    root = ElementTree.parse(POLICY).getroot()
    assert (root.tag, root.attrib) == ("policy", {"version": "0.2.0"})
    assert [each.tag for each in root] == ["enclaves"]
    enclaves = root.findall("enclaves/enclave")
    assert [each.get("path") for each in enclaves] == ["/feed_forward", "/commander"]
    for enclave in enclaves:
        (profiles,) = enclave
        (profile,) = profiles
        assert profile.get("ns") + profile.get("node") == enclave.get("path")
        for rule in profile:
            name, rights = NAMES[rule.tag]
            assert len(rule.attrib) == 1
            assert set(rule.attrib) < rights
            assert set(rule.attrib.values()) == {"ALLOW"}
            assert {each.tag for each in rule} == {name}
            assert all(each.text == each.text.strip() for each in rule)
            assert all(each.text.startswith("/") and "*" not in each.text for each in rule)


@pytest.fixture(scope="module")
def used() -> dict[str, dict[str, set[str]]]:
    """What the node uses beside a controller, and a node that does nothing but command."""
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    import rclpy
    from node_process import Conversation, command_line
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import Float64MultiArray, String
    from trajectory_msgs.msg import JointTrajectory

    remapped = ("-r", "~/commands:=effort_controller/commands")
    found: dict[str, dict[str, set[str]]] = {"feed_forward": {}, "commander": {}}
    with Conversation(tuple(command_line()), {"use_sim_time": True}, remapped) as talk:
        ask = talk.node
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        ask.create_publisher(String, "robot_description", latched).publish(String(data=SLIDE))
        # it is not spun: the node waits for its answer, and what it asks can be seen
        others = [
            rclpy.create_node(name, context=ask.context)
            for name in ("effort_controller", "commander")
        ]
        others[0].create_subscription(Float64MultiArray, "~/commands", lambda _: None, 1)
        others[1].create_publisher(JointTrajectory, "/feed_forward/command", 10)
        kinds = {
            "publish": ask.get_publisher_names_and_types_by_node,
            "subscribe": ask.get_subscriber_names_and_types_by_node,
            "reply": ask.get_service_names_and_types_by_node,
            "request": ask.get_client_names_and_types_by_node,
        }

        def look() -> bool:
            for node, rights in found.items():
                if node not in ask.get_node_names():
                    return False
                for right, kind in kinds.items():
                    names = {name for name, _ in kind(node, "/")}
                    rights.setdefault(right, set()).update(names)
            # discovery brings them one by one
            return all(
                names <= found["feed_forward"][right]
                for right, names in allowed("feed_forward").items()
            )

        try:
            talk.until(look, f"{allowed('feed_forward')}; found {found}")
            talk.spin(1.0)
            look()
            assert talk.stop() == 0
        finally:
            for node in others:
                node.destroy_node()
    return found


def test_the_node_uses_what_the_policy_allows_and_nothing_else(used):
    assert used["feed_forward"] == allowed("feed_forward")


def test_a_commander_needs_nothing_that_the_policy_denies(used):
    """The services of its parameters, too: without the right a node does not even start."""
    may = allowed("commander")
    for right, names in used["commander"].items():
        assert names <= may.get(right, set())


def test_who_commands_may_do_nothing_but_that():
    may = allowed("commander")
    assert set(may) == {"publish", "subscribe", "reply"}
    assert allowed("feed_forward")["subscribe"] & may["publish"] == {"/feed_forward/command"}
    assert all(name.startswith("/commander/") for name in may["reply"])
