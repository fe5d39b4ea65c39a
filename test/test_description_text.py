# SPDX-License-Identifier: Apache-2.0
"""A description that anybody may have sent: URDF text, or nothing is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robot_dynamics.description import load, load_urdf_text
from robot_dynamics.description.files import MOST_BYTES
from robot_dynamics.description.urdf_text import replaced
from robot_dynamics.description.xml_text import MOST_TAGS
from robot_dynamics.errors import DescriptionError
from robot_dynamics.mechanism import Inertial

ROOT = Path(__file__).resolve().parents[1]
ROBOT = """<robot name="lift"><link name="world"/><link name="box"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="world"/><child link="box"/></joint></robot>"""


def test_a_text_gives_what_its_file_gives():
    path = ROOT / "urdf" / "six_axis.urdf"
    assert load_urdf_text("\ufeff\n" + path.read_text()).joint_names == load(path).joint_names


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        str(ROOT / "urdf" / "six_axis.urdf"),
        "config/polar.yaml",
        "package://robot_dynamics/config/polar.yaml",
        "~nosuchuser/x.urdf",
        f"urdf: {ROOT}/urdf/six_axis.urdf",
        "robot: a\nlinks: []",
        "a.xacro",
        "\udc9b<robot/>",
        "<robot name='\udc9b'/>",
        None,
        b"<robot/>",
        ROBOT + " " * MOST_BYTES,
        ROBOT.replace("</robot>", "<link name='a'/>" * (MOST_TAGS + 1) + "</robot>"),
        ROBOT.replace("</robot>", "<joint name='a'/>" * (MOST_TAGS + 1) + "</robot>"),
        ROBOT.replace("</robot>", "<a>" * 5000 + "</a>" * 5000 + "</robot>"),
    ],
    ids=range(17),
)
def test_what_is_no_urdf_text_is_refused_in_one_short_line(text):
    with pytest.raises(DescriptionError) as caught:
        load_urdf_text(text)
    words = str(caught.value)
    assert "URDF text" in words
    assert words.isprintable()
    assert len(words) < 500


HOSTILE = {
    "xacro": ROBOT.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"').replace(
        "<link", '<xacro:include filename="/etc/passwd"/><link', 1
    ),
    "expression": ROBOT.replace('"2"', "\"${open('/etc/passwd')}\""),
    "entity": '<!DOCTYPE robot [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    + ROBOT.replace("<link", "<a>&e;</a><link", 1),
    "document type": '<!DOCTYPE robot SYSTEM "file:///etc/passwd">' + ROBOT,
    "inclusion": ROBOT.replace(
        "<link",
        '<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="/etc/passwd"/><link',
        1,
    ),
    "style": '<?xml-stylesheet href="file:///etc/passwd"?>' + ROBOT,
}
OPENED: list[str] = []


def _watch(event: str, arguments: tuple) -> None:
    if event in ("open", "os.listdir", "socket.connect", "subprocess.Popen"):
        OPENED.append(f"{event} {arguments[0]}")


def test_no_file_is_opened_whatever_a_text_contains():
    load_urdf_text(ROBOT)  # modules that are imported with the first text
    sys.addaudithook(_watch)
    for text in HOSTILE.values():
        OPENED.clear()
        try:
            load_urdf_text(text)
        except DescriptionError as error:
            assert str(error).isprintable()  # noqa: PT017  both ways are right
        assert OPENED == []


@pytest.mark.parametrize("encoding", ["utf-8", "ISO-8859-1", "gb2312", "utf-16"])
def test_a_text_is_no_longer_in_the_encoding_that_it_declares(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + (
        '<robot name="r"><link name="base"/><link name="Prüfling"/><joint name="j" type="revolute">'
        '<parent link="base"/><child link="Prüfling"/><limit effort="1" velocity="1"/></joint>'
        "</robot>"
    )
    body = Inertial(2.0, np.zeros(3), np.eye(3))
    new = replaced(text.encode(), {"Prüfling": body}, {}, "utf-8").decode()
    assert load_urdf_text(new).link("Prüfling").inertial.mass == 2.0


@pytest.mark.parametrize("head", ["", "\n", "\ufeff", "\ufeff \t\r\n"])
@pytest.mark.parametrize("declaration", ["", "<?xml version='1.0'?>"])
def test_what_stands_before_a_urdf_stays_there(head, declaration):
    text = head + declaration + ROBOT
    new = replaced(text.encode(), {"box": Inertial(3.0, np.zeros(3), np.eye(3))}, {}).decode()
    assert new.startswith(head + declaration + "<robot")
    assert load_urdf_text(new).link("box").inertial.mass == 3.0


def test_a_file_whose_encoding_is_not_readable_is_refused_in_one_line():
    text = '<?xml version="1.0" encoding="gb2312"?><robot name="r"/>'
    with pytest.raises(DescriptionError, match="not readable as XML"):
        replaced(text.encode(), {}, {})
