# SPDX-License-Identifier: Apache-2.0
"""Descriptions that are malicious, or broken by accident: refused quickly, in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import robot_dynamics as rd
from robot_dynamics.controller.package import write_package
from robot_dynamics.description import child_process, load_urdf_text, xacro_process, yaml_text
from robot_dynamics.description.fields import LARGEST, LONGEST_NAME, number
from robot_dynamics.description.urdf_text import replaced
from robot_dynamics.description.yaml_text import plain
from robot_dynamics.dynamics.export import export
from robot_dynamics.mechanism import Inertial

BODY = """<inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial>"""
ROBOT = f"""<robot name="r"><link name="a"/><link name="b">{BODY}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>"""


def refused(load, source, *words):
    with pytest.raises(rd.RobotDynamicsError) as error:
        load(source)
    message = str(error.value)
    assert message.isprintable()
    assert len(message) < 500
    for word in words:
        assert word in message, message


# --- XML -------------------------------------------------------------------------------------

LAUGHS = '<!DOCTYPE r [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12)
)


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE r [<!ENTITY i "{BODY.replace(chr(34), chr(39))}">]>'
        + ROBOT.replace(BODY, "&i;"),
        '<!DOCTYPE r [<!ENTITY z "0">]>' + ROBOT.replace('value="5"', 'value="5&z;"'),
        '<?xml version="1.0"?><!-- a --><?b?>\n<!DOCTYPE robot>' + ROBOT,
        '<!DOCTYPE r SYSTEM "http://localhost/r.dtd">' + ROBOT,
        "<!DOCTYPE r [<!ATTLIST mass value CDATA '9'>]>" + ROBOT.replace(' value="5"', ""),
        LAUGHS + "]>" + ROBOT.replace('"r"', '"&m;"'),
    ],
    ids=["element", "number", "empty", "external", "default", "laughs"],
)
def test_a_document_type_is_refused_and_with_it_every_entity(text):
    for load in (rd.load, load_urdf_text):
        refused(load, text, "the URDF text: found a document type", "<!DOCTYPE", "entities")


def test_an_encoding_that_is_declared_hides_nothing():
    hidden = '<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE r+AD4-' + ROBOT
    refused(rd.load, hidden, "the URDF text")
    named = ROBOT.replace('"r"', '"Größe"')
    for encoding in ("latin-1", "UTF-16", "utf-8", "EBCDIC-CP-US"):
        text = f'<?xml version="1.0" encoding="{encoding}"?>{named}'
        assert rd.load(text).name == "Größe"


@pytest.mark.parametrize("within", ["<!-- or -->", "<?or?>", "<b/>"])
@pytest.mark.parametrize("where", ["transmission", "ros2_control"])
def test_a_number_with_something_within_is_none(within, where):
    gears = {
        "transmission": "<transmission name='t'><joint name='j'/><actuator name='m'>"
        "<mechanicalReduction>5{}0</mechanicalReduction></actuator></transmission>",
        "ros2_control": "<ros2_control><joint name='j'><param name='mechanical_reduction'>5{}0"
        "</param></joint></ros2_control>",
    }[where]
    whole = ROBOT.replace("</robot>", gears.format("") + "</robot>")
    (rotor,) = rd.load(whole).rotors
    assert rotor.ratios == (("j", 50.0),)
    broken = ROBOT.replace("</robot>", gears.format(within) + "</robot>")
    refused(rd.load, broken, where, "mechanicalReduction", "only text")


def test_comments_and_instructions_elsewhere_do_no_harm():
    for extra in ("<!-- <link name='c'/> -->", "<?link name='c'?>"):
        assert (
            rd.load(f"{extra}{ROBOT}{extra}".replace("<mass", f"{extra}<mass")).links[0].name == "b"
        )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (BODY, BODY * 2, ("link 'b': <inertial>", "2 of them")),
        ('<mass value="5"/>', '<mass value="5"/><mass value="6"/>', ("link 'b': <mass>",)),
        ('<mass value="5"/>', '<origin/><mass value="5"/><origin/>', ("link 'b': <origin>",)),
        ('<parent link="a"/>', '<parent link="a"/><axis xyz="1 0 0"/><axis/>', ("<axis>", "2 of")),
        ('<parent link="a"/>', '<parent link="a"/><axis xzy="1 0 0"/>',
         ("joint 'j': <axis>", "no xyz", "xyz='0 0 1'")),
        ('<parent link="a"/>', '<parent link="a"/><limit/><limit effort="1"/>', ("<limit>",)),
        ('<link name="a"/>', '<link name="a"/><xacro:m xmlns:xacro="http://ros.org/wiki/xacro"/>',
         ("<xacro:m>", "`xacro FILE`")),
        ('<link name="a"/>', '<link name="a"/><sensor:s/><xacro:m/>', ("<xacro:m>", "`xacro")),
        ('<link name="a"/>', '<link name="a"/><sensor:s>', ("not readable as XML",)),
        ('name="b"', f'name="{"x" * (LONGEST_NAME + 1)}"', ("link name", "at most 200")),
        ("</robot>", "</robot><robot/>", ("not readable as XML",)),
        ('value="5"', 'value="5" value="6"', ("not readable as XML",)),
        ('value="5"', f'value="{LARGEST * 10}"', ("inertial.mass.value", "at most 1e+30")),
    ],
)  # fmt: skip
def test_what_stands_twice_or_is_another_language_is_refused(old, new, words):
    assert old in ROBOT
    refused(rd.load, ROBOT.replace(old, new), *words)


def test_prefixes_that_are_not_declared_are_read_as_ros_does():
    gazebo = '<gazebo><sensor:camera name="c" a:b="1"><x:link/></sensor:camera></gazebo>'
    found = rd.load(ROBOT.replace('<link name="a"/>', f'<link name="a"/>{gazebo}'))
    assert [link.name for link in found.links] == [link.name for link in rd.load(ROBOT).links]
    # another prefix makes another element
    refused(rd.load, ROBOT.replace("<mass", "<x:mass"), "mass")


@pytest.mark.parametrize(
    "comment", ["<!-- 1 -- 2 -->", "<!----- arm ----->", '<!-- -- <link name="z"/> --->']
)
def test_hyphens_in_comments_are_read_as_ros_and_gazebo_do(comment):
    text = f"{comment}{ROBOT}".replace("<joint", f"{comment}<joint")
    assert rd.load(text).joint_names == rd.load(ROBOT).joint_names
    new = replaced(text.encode(), {"b": Inertial(3.0, np.zeros(3), np.eye(3))}, {}).decode()
    assert new.count(comment) == text.count(comment)
    assert rd.load(new).link("b").inertial.mass == 3.0
    # a comment ends where it does, and what is data is no comment
    data = text.replace('"j"', '"j-j"').replace("<joint", "<g><![CDATA[<!--]]></g><joint")
    assert rd.load(f"{data}{comment}").joint_names == ("j-j",)
    refused(rd.load, f"{ROBOT}<!-- -- ", "not readable as XML")


@pytest.mark.parametrize("axis", ['xzy="1 0 0"', "", 'xyz="0 0 0"', 'xyz="z"'])
@pytest.mark.parametrize(("kind", "number"), [("fixed", 1), ("floating", 7)])
def test_the_axis_of_a_joint_that_has_none_is_not_read(axis, kind, number):
    ends = f'<parent link="b"/><axis {axis}/><child link="c"/>'
    joint = f'<joint name="k" type="{kind}">{ends}</joint>'
    whole = ROBOT.replace("</robot>", f'<link name="c"/>{joint}</robot>')
    assert len(rd.load(whole).joint_names) == number


MODEL = """<mujoco model="r"><worldbody><body name="a"><joint name="j"/><geom size="0.1"/></body>
</worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>"""


@pytest.mark.parametrize("text", [ROBOT, MODEL], ids=["urdf", "mjcf"])
@pytest.mark.parametrize("where", ["r", "a", "j"])
def test_names_are_limited_in_length_that_of_the_robot_too(text, where):
    if text is MODEL:
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: extra `sim`")
    name = "n" * (LONGEST_NAME + 1)
    long = text.replace(f'"{where}"', f'"{name}"')
    refused(rd.load, long, "name: found 'nnn", f"at most {LONGEST_NAME} characters")
    assert rd.load(long.replace(name, name[1:]))


def test_the_longest_name_of_a_robot_is_that_of_files_that_can_be_written(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(ROBOT.replace('"r"', f'"{"n" * LONGEST_NAME}"'))
    export(str(file), tmp_path)
    write_package(str(file), tmp_path)


def test_a_text_and_a_file_are_limited_in_size(tmp_path, monkeypatch):
    for module in ("files", "xml_text"):
        monkeypatch.setattr(f"robot_dynamics.description.{module}.MOST_BYTES", len(ROBOT))
    assert rd.load(ROBOT)
    refused(rd.load, ROBOT + " ", "the URDF text: bytes", f"at most {len(ROBOT)}")
    file = tmp_path / "r.urdf"
    file.write_text(ROBOT)
    assert rd.load(file)
    file.write_text(ROBOT + " ")
    refused(rd.load, file, "r.urdf: bytes")
    monkeypatch.setattr("robot_dynamics.description.xml_text.MOST_TAGS", 1)
    refused(rd.load, ROBOT, "the URDF text: <link>", "found 2, expected at most 1")


def test_many_links_in_any_order_take_no_time_that_grows_with_their_square():
    count = 2500
    links = "".join(f"<link name='l{i}'/>" for i in range(count))
    joints = [
        f"<joint name='j{i}' type='fixed'><parent link='l{i - 1}'/><child link='l{i}'/></joint>"
        for i in range(1, count)
    ]
    with pytest.warns(UserWarning, match="no joint that moves"):
        mechanism = rd.load(f"<robot name='r'>{links}{''.join(reversed(joints))}</robot>")
    assert [link.name for link in mechanism.links] == [f"l{i}" for i in range(1, count)]


def test_many_motors_and_followers_take_no_time_that_grows_with_their_cube():
    count, last = 1900, 950
    inertial = "<inertial><mass value='1'/></inertial>"
    text = "<link name='l0'/>"
    for i in range(1, count):
        mimic = f"<mimic joint='j{i + 1}'/>" if i < last else ""
        text += (
            f"<link name='l{i}'>{inertial}</link><joint name='j{i}' type='continuous'>"
            f"<parent link='l{i - 1}'/><child link='l{i}'/>{mimic}</joint>"
        )
        if not mimic:
            text += (
                f"<transmission name='t{i}'><joint name='j{i}'/><actuator name='m{i}'>"
                "<mechanicalReduction>5</mechanicalReduction></actuator></transmission>"
            )
    begin = time.process_time()
    robot = rd.load(f"<robot name='r'>{text}</robot>")
    assert len(robot.rotors) == len(robot.joint_names) == count - last
    assert robot.coordinates()[0].sum() == count - 1
    assert time.process_time() - begin < 5


# --- YAML ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: no", {"a": "no"}),
        ("a: [on, off, y, n, yes]", {"a": ["on", "off", "y", "n", "yes"]}),
        ("no: 1", {"no": 1}),
        ("1: 2", {"1": 2}),
        ("null: ~", {"null": None}),
        ("a: [true, False, null, ~, ]", {"a": [True, False, None, None]}),
        ("a: [012, 1e3, -.5, +7, 1., 1_000, 0x10, 1:30]",
         {"a": [12, 1000.0, -0.5, 7, 1.0, "1_000", "0x10", "1:30"]}),
        ("a: ['1', \"true\", '']", {"a": ["1", "true", ""]}),
        ("a: 2020-01-01", {"a": "2020-01-01"}),
        ("a: 1234567890123456", {"a": 1234567890123456.0}),
        ("{a: &x [1], b: *x}", {"a": [1], "b": [1]}),
        ("{a: &x 1, b: *x}", {"a": 1, "b": 1}),
        ("{d: &d {m: 1, n: 2}, a: {<<: *d, n: 3}}", {"d": {"m": 1, "n": 2}, "a": {"n": 3, "m": 1}}),
        ("{d: &d {m: 1}, e: &e {m: 2}, a: {<<: [*d, *e]}}",
         {"d": {"m": 1}, "e": {"m": 2}, "a": {"m": 1}}),
        ("", None),
        ("a: |\n  x\n", {"a": "x\n"}),
    ],
)  # fmt: skip
def test_words_are_words_and_decimals_are_numbers(text, expected):
    found = plain(text, "f")
    assert found == expected
    assert repr(found) == repr(expected)  # 1 is not True, nor 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n- !!int x", ("line 2", "tag 'tag:yaml.org,2002:int'", "plain values")),
        ("!!python/object/apply:os.system ['true']", ("tag", "plain values")),
        ("a: !own {b: 1}", ("tag '!own'",)),
        ("a: !!set {a}", ("tag",)),
        ("? !!set {a}\n: 1", ("tag",)),
        ("? [a]\n: 1", ("line 1", "a key that is not a name")),
        ("? {a: 1}\n: 1", ("a key that is not a name",)),
        ("a: 1\nb: 2\na: 3", ("line 3", "key 'a' appears twice")),
        (f"{'k' * 201}: 1", ("longer than 200",)),
        ("&a [*a]", ("alias 'a' without an anchor before it",)),
        ("a: *b", ("'b'",)),
        ("a: {<<: 1}", ("<<: found something other",)),
        ("a: {<<: [1]}", ("<<: found something other",)),
        ("a: 1\n---\na: 2", ("line 2", "a second document")),
        ("[" * 51 + "]" * 51, ("nested deeper than 50",)),
        ("[" * 3000, ("nest",)),  # libyaml may tell first
        ("{a: " * 3000, ("nest",)),
        ("a: 1\n  b: 2", ("not readable as YAML", "(line 2)")),
        ('a: "\\ud800"', ("f",)),
        ("a: \x07", ("f",)),
    ],
)
def test_yaml_that_is_more_than_plain_values_is_refused(text, words):
    refused(lambda text: plain(text, "f"), text, *words)


def test_the_pure_parser_reads_and_refuses_the_same(monkeypatch):
    import yaml

    monkeypatch.setattr(yaml_text, "PARSER", yaml.SafeLoader)
    assert plain("{a: [1, no, &x 2., *x], b: 'c'}", "f") == {"a": [1, "no", 2.0, 2.0], "b": "c"}
    for text in ("[" * 3000, 'a: "\\ud800"', "a: !!int x", "a: [1", "a: \x07"):
        refused(lambda text: plain(text, "f"), text, "f: ")


def test_aliases_values_and_levels_are_counted(monkeypatch):
    assert plain("[" * 50 + "]" * 50, "f")
    monkeypatch.setattr(yaml_text, "MOST_ALIASES", 2)
    assert plain("[&a 1, *a, *a]", "f") == [1, 1, 1]
    refused(lambda text: plain(text, "f"), "[&a 1, *a, *a, *a]", "more than 2 aliases")
    monkeypatch.setattr(yaml_text, "MOST_VALUES", 4)
    assert plain("[1, 2, 3]", "f") == [1, 2, 3]
    refused(lambda text: plain(text, "f"), "[1, 2, 3, 4]", "more than 4 values")


def test_what_aliases_make_large_is_not_written_out(tmp_path):
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 12))
    file = tmp_path / "robot.yaml"
    file.write_text("l0: &l0 [x, x, x]\n" + levels + "links: *l11\n")
    refused(rd.load, file, "robot.yaml: unknown key 'l0'")
    file.write_text(f"links: [&a {{name: &n {'[' * 40}x{']' * 40}, joint: *n}}]")
    refused(rd.load, file, "links[0].name", "a name")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        ("1e-3", 1e-3),
        (" -pi/2 ", -1.5707963267948966),
        ("3*pi/4", 2.356194490192345),
        ("pi", 3.141592653589793),
        (LARGEST, LARGEST),
    ],
)
def test_numbers_are_what_they_say(value, expected):
    assert number(value, "f") == expected


@pytest.mark.parametrize(
    "value", [True, None, "", "x", [1], "nan", "inf", 10**400, -(10**400), 2e30, "pi/0", "1..2*pi"]
)
def test_what_is_no_number_of_a_robot_is_refused(value):
    refused(lambda value: number(value, "f"), value, "f: found")


# --- xacro -----------------------------------------------------------------------------------

XACRO = ROBOT.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"', 1)


@pytest.fixture
def xacro(tmp_path):
    pytest.importorskip("xacro", reason="xacro is not installed: extra `dev`")

    def file(expression):
        path = tmp_path / "robot.xacro"
        path.write_text(XACRO.replace('value="5"', f'value="{expression}"'))
        return path

    return file


def test_xacro_takes_the_time_it_is_given(xacro, monkeypatch):
    monkeypatch.setattr(xacro_process, "LONGEST", 2.0)
    begin = time.monotonic()
    refused(rd.load, xacro("${9**9**9}"), "robot.xacro: xacro: found 'no result within 2 s'")
    assert time.monotonic() - begin < 60  # and not for ever


def test_what_a_xacro_file_started_ends_with_it(xacro, tmp_path, monkeypatch):
    left = tmp_path / "pid"
    child = f"""
import os, subprocess, time
process = subprocess.Popen(["sleep", "600"])
open({str(left) + "_"!r}, "w").write(str(process.pid))
os.rename({str(left) + "_"!r}, {str(left)!r})
time.sleep(600)
"""
    monkeypatch.setattr(xacro_process, "LONGEST", 3.0)
    monkeypatch.setattr(xacro_process, "_CHILD", child)
    refused(rd.load, xacro("5"), "no result within 3 s")
    pid = int(left.read_text())
    for _ in range(200):
        if not _runs(pid):
            break
        time.sleep(0.02)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail("what the xacro file started goes on")


def _runs(pid):
    """Is it there, and no zombie that waits for its parent?"""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_xacro_complains_in_one_line_and_into_the_error_alone(xacro, capfd):
    assert rd.load(xacro("${2*3}")).links[0].inertial.mass == 6.0
    refused(rd.load, xacro("${hevy}"), "robot.xacro: xacro: ", "hevy")
    refused(rd.load, xacro("${1/0}"), "robot.xacro: xacro: ", "division")
    assert capfd.readouterr() == ("", "")


def test_xacro_has_no_input_to_wait_for(xacro, monkeypatch):
    monkeypatch.setattr(xacro_process, "_CHILD", "import sys; sys.stdout.write(sys.stdin.read())")
    refused(rd.load, xacro("5"), "robot.xacro: not readable as XML")


def test_a_xacro_process_that_dies_in_silence_is_told(xacro, monkeypatch):
    monkeypatch.setattr(xacro_process, "_CHILD", "import os; os._exit(7)")
    refused(rd.load, xacro("5"), "robot.xacro: xacro: it ended with 7")


def test_a_process_has_the_last_word_whatever_its_letters(capfd):
    words = r"import sys; sys.stderr.buffer.write(b'first\n\xff last\n')"
    told = child_process.output(f"{words}; sys.exit(3)", [], "it", 30.0)
    assert told == (b"", "� last")
    assert child_process.output(words, [], "it", 30.0) == (b"", "")
    assert capfd.readouterr() == ("", "")


def test_a_process_that_says_too_much_is_told_from_one_that_says_enough(monkeypatch):
    monkeypatch.setattr(child_process, "MOST_BYTES", 10)
    for count, read in ((10, 10), (11, 11), (12, 11)):
        out, _ = child_process.output(f"print('0' * {count}, end='')", [], "it", 30.0)
        assert len(out) == read


def test_a_process_reads_nothing_of_what_is_typed():
    inside = textwrap.dedent("""
        from robot_dynamics.description import child_process
        print(child_process.output("import sys; print(sys.stdin.read())", [], "it", 30.0))
    """)
    found = subprocess.run(
        [sys.executable, "-c", inside], input=b"typed", capture_output=True, check=True
    )
    assert found.stdout == b"(b'\\n', '')\n"


def test_a_process_that_does_not_want_to_end_is_ended(tmp_path):
    deaf = textwrap.dedent("""
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open(sys.argv[1], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(60)
    """)
    begin = time.monotonic()
    with pytest.raises(rd.DescriptionError, match="no result within 3 s"):
        child_process.output(deaf, [str(tmp_path / "pid")], "it", 3.0)
    assert time.monotonic() - begin < 50
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_what_xacro_makes_is_limited_and_must_be_a_urdf(xacro, monkeypatch):
    monkeypatch.setattr(xacro_process, "MOST_BYTES", 1000)
    assert rd.load(xacro("5"))
    refused(rd.load, xacro("${'0' * 1000}"), "robot.xacro: bytes", "at most 1000")


def test_a_text_that_is_sent_is_never_expanded():
    sent = XACRO.replace('value="5"', 'value="${2*3}"')
    refused(load_urdf_text, sent, "the URDF text", "${2*3}")
    refused(rd.load, sent, "the URDF text", "${2*3}")
