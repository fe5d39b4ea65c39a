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


def allowed(node: str) -> dict[str, list[str]]:
    """What a node may do: publish, subscribe, reply or request, and which names."""
    profile = ElementTree.parse(POLICY).find(f".//profile[@node='{node}']")
    found: dict[str, list[str]] = {}
    for rule in profile:
        (right,) = rule.attrib
        found.setdefault(right, []).extend(each.text for each in rule)
    return found


def test_the_policy_has_the_form_that_sros2_reads():
    """As its schema of version 0.2.0 says."""
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


def test_the_node_uses_what_the_policy_allows_and_nothing_else():
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import Conversation, command_line

    remapped = ("-r", "~/commands:=effort_controller/commands")
    with Conversation(tuple(command_line()), {"use_sim_time": True}, remapped) as talk:

        def used() -> dict[str, list[str]]:
            ask = talk.node
            kinds = {
                "publish": ask.get_publisher_names_and_types_by_node,
                "subscribe": ask.get_subscriber_names_and_types_by_node,
                "reply": ask.get_service_names_and_types_by_node,
                "request": ask.get_client_names_and_types_by_node,
            }
            names = {
                right: sorted(name for name, _ in kind("feed_forward", "/"))
                for right, kind in kinds.items()
            }
            return {right: found for right, found in names.items() if found}

        talk.until(lambda: "feed_forward" in talk.node.get_node_names(), "the node")
        # discovery brings them one by one
        expected = {right: sorted(names) for right, names in allowed("feed_forward").items()}
        count = sum(map(len, expected.values()))
        talk.until(lambda: sum(map(len, used().values())) >= count, f"{expected}")
        talk.spin(1.0)
        assert used() == expected
        assert talk.stop() == 0


def test_who_commands_may_do_nothing_but_that():
    may = allowed("commander")
    assert set(may) == {"publish", "subscribe"}
    heard = set(allowed("feed_forward")["subscribe"])
    assert heard & set(may["publish"]) == {"/feed_forward/command"}
