# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to a description: a robot of finite numbers comes out, or one line says why not.

A longer look: `pytest test/test_description_fuzz.py --fuzz-seconds 600`.
"""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import yaml
from hypothesis import strategies as st
from lxml import etree
from robots import CONFIG, random_urdf

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text
from robot_dynamics.description.fields import DescriptionWarning

URDF_DIRECTORY = CONFIG.parent / "urdf"
LONGEST_MESSAGE = 500

WEIRD_YAML = [
    "", "~", "true", "no", "on", "1", "-1", "0", "0.0", "-0.0", "1e-320", "1e308", "-1e308",
    "1e400", ".inf", "-.inf", ".nan", "1" + "0" * 400, "7" * 5000, "0b_", "0x", "0o9", "012",
    "1_000", "1:30", "2020-13-45", "2020-01-01", "!!int x", "!!bool x", "!!timestamp x",
    "!!float x", "!!binary x", "!!python/object:os.system x", "!!set {a}", "? !!set {a}",
    "{? [a] : b}", "{a: 1, a: 2}", "{1: 2}", "{~: 2}", "[]", "{}", "[[]]",
    "[" * 3000 + "]" * 3000, "{a: " * 3000 + "}" * 3000, "[" * 3000, "&a [*a]", "*nobody", "<<",
    "{<<: 1}", "{<<: {a: 1}}", '"\\ud800"', '"\\x9b\\n\\0"', "'" + "x" * 5000 + "'", "pi/0",
    "-pi/2", "3*pi", "1/2", "١", "base", "link1", "fixed", "revolute", "floating", "'1'",
    "[1, 2, 3]", "[1, 2]", "[a, b, c]", "[.nan, 0, 0]", "[1e308, 1e308, 1e308]",
    "{xyz: [0, 0, 0]}", "&l1 [x, x, x, x, x, x, x, x]",
    "[&b [&a [0, 0], *a, *a, *a], *b, *b, *b]", "%", "@", "`", "|", "\t",
]  # fmt: skip

WEIRD_XML = [
    "", " ", "0", "-1", "1e308", "-1e308", "1e400", "inf", "nan", "1e-320", "7" * 5000, "0x10",
    "1_0", "1,5", "a", "base", "link1", "1 2", "0 0 0", "1 2 3 4", "nan 0 0", "1e308 1e308 1e308",
    "${1}", "true", "floating", "planar", "fixed", "revolute", "continuous", "x" * 5000, "٣",
    "\u202e", "\u009b",
]  # fmt: skip

WEIRD_TEXT = [
    "<!DOCTYPE robot>", '<!DOCTYPE r [<!ENTITY z "0">]>', "&z;", "&#0;", "<!-- -->", "<?a?>",
    "<![CDATA[1]]>", "<", ">", "&", '"', "\0", "\ud800", "<a>" * 2000, "<link/>", "<joint/>",
    "<limit/>", "</robot>", '<?xml version="1.0" encoding="utf-7"?>',
    '<xacro:include xmlns:xacro="http://www.ros.org/wiki/xacro"/>',
]  # fmt: skip


def yaml_documents():
    files = [file for file in sorted(CONFIG.glob("*.yaml")) if file.name != "feed_forward.yaml"]
    beside = {
        "urdf": "robot.urdf",
        "gravity": [0, 0, -9.81],
        "friction": {"joint2": {"viscous": 1, "stribeck": {"torque": 1, "rate": 1}, "offset": 0.1}},
        "inertials": {"link1": {"mass": 1.0, "center_of_mass": [0, 0, 0], "inertia": {"ixx": 1}}},
        "locked": {"joint3": 0.3},
        "rotors": {"joint5": {"gear_ratio": 100, "inertia": {"izz": 1e-4}}},
        "home": {"joint5": 0.1},
    }
    return [*(yaml.safe_load(file.read_text()) for file in files), beside]


def numbered_urdf():
    """A URDF of everything: mimic joints, friction, limits, transmissions."""
    text = random_urdf(2, joints=6)
    return text.replace(
        "</robot>",
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="joint1"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction>'
        '</actuator></transmission><ros2_control name="c"><joint name="joint2">'
        '<param name="mechanicalReduction">-20.5</param></joint></ros2_control></robot>',
    )


SIX_AXIS = (URDF_DIRECTORY / "six_axis.urdf").read_text()
DOCUMENTS = yaml_documents()
URDFS = [numbered_urdf(), SIX_AXIS]


def places(value, path=()):
    """The path of every value in a document."""
    yield path
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield from places(each, (*path, key))


def mutated_document(rng):
    """A document's text with one to three things done to it."""
    document = copy.deepcopy(rng.choice(DOCUMENTS))
    raw = {}
    for step in range(rng.randint(1, 3)):
        path = rng.choice([path for path in places(document) if path] or [()])
        if not path:
            break
        *way, key = path
        inner = document
        for each in way:
            inner = inner[each]
        token = f"token{step}token"
        kind = rng.choice(["delete", "weird", "weird", "rename", "swap", "repeat", "wrap"])
        if kind == "delete":
            del inner[key]
        elif kind == "weird":
            inner[key] = token
            raw[token] = rng.choice(WEIRD_YAML)
        elif kind == "rename" and isinstance(inner, dict):
            raw[token] = rng.choice([*WEIRD_YAML, str(key)[:-1] or "x", str(key).upper()])
            inner[token] = inner.pop(key)
        elif kind == "swap":
            other = rng.choice(list(places(document)))
            found = document
            for each in other:
                found = found[each]
            inner[key] = copy.deepcopy(found)
        elif kind == "repeat" and isinstance(inner, list):
            inner.extend([copy.deepcopy(inner[key])] * rng.choice([1, 30]))
        elif kind == "repeat":
            raw[token] = f"{key}: 1, {key}"
            inner[token] = inner.pop(key)
        else:
            inner[key] = [inner[key]]
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=rng.random() < 0.5)
    for token, replacement in raw.items():
        text = text.replace(token, replacement)
    return text


def mutated_urdf(rng):
    """A URDF's text with one to three things done to it."""
    root = etree.fromstring(rng.choice(URDFS).encode())
    texts = []
    for step in range(rng.randint(1, 3)):
        elements = [element for element in root.iter() if isinstance(element.tag, str)][1:]
        if not elements:
            break
        element = rng.choice(elements)
        kind = rng.choice(
            ["delete", "twice", "attribute", "attribute", "drop", "rename", "move", "text"]
        )
        if kind == "delete":
            element.getparent().remove(element)
        elif kind == "twice":
            element.addnext(copy.deepcopy(element))
        elif kind in ("attribute", "drop") and element.attrib:
            name = rng.choice(sorted(element.attrib))
            if kind == "drop":
                del element.attrib[name]
            else:
                element.set(name, rng.choice(WEIRD_XML))
        elif kind == "rename":
            element.tag = rng.choice(sorted({each.tag for each in elements}))
        elif kind == "move":
            rng.choice(elements).append(copy.deepcopy(element))
        else:
            element.text = f"token{step}token"
            texts.append((element.text, rng.choice([*WEIRD_TEXT, *WEIRD_XML])))
    text = etree.tostring(root, encoding="unicode")
    for token, replacement in texts:
        text = text.replace(token, replacement)
    if rng.randint(0, 5) == 0:
        place = rng.randint(0, len(text))
        text = text[:place] + rng.choice(WEIRD_TEXT) + text[place:]
    return text


def all_numbers(value):
    """Every number that a mechanism is made of."""
    if is_dataclass(value):
        for field in fields(value):
            yield from all_numbers(getattr(value, field.name))
    elif isinstance(value, dict):
        yield from all_numbers(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from all_numbers(each)
    elif isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def sound_or_refused(load, *arguments, **options):
    """The law itself. Whether it was a robot."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mechanism = load(*arguments, **options)
    except rd.RobotDynamicsError as error:
        words = str(error)
        assert 10 < len(words) < LONGEST_MESSAGE, words
        assert words.isprintable(), words
        return False
    for each in caught:
        assert issubclass(each.category, DescriptionWarning), each
        assert len(str(each.message)) < LONGEST_MESSAGE
        assert str(each.message).isprintable()
    assert all(math.isfinite(x) for x in all_numbers(mechanism))
    assert all(link.inertial.mass >= 0 for link in mechanism.links)
    return True


@pytest.fixture
def count():
    """Both outcomes must happen, or the law says nothing."""
    outcomes = {True: 0, False: 0}
    yield outcomes
    assert min(outcomes.values()) > 10, outcomes


def test_mutations_of_yaml_descriptions_are_robots_or_one_line(examples, tmp_path, count):
    (tmp_path / "robot.urdf").write_text(URDFS[0])
    file = tmp_path / "robot.yaml"

    def check(rng):
        text = mutated_document(rng)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        count[sound_or_refused(rd.load, file)] += 1

    examples(check, 400, rng=st.randoms(use_true_random=False))


def test_mutations_of_urdfs_are_robots_or_one_line(examples, count):
    def check(rng):
        text = mutated_urdf(rng)
        found = sound_or_refused(rd.load, text)
        assert sound_or_refused(load_urdf_text, text) is found
        count[found] += 1

    examples(check, 400, rng=st.randoms(use_true_random=False))


@pytest.mark.parametrize("weird", WEIRD_YAML, ids=range(len(WEIRD_YAML)))
def test_every_weird_value_in_every_kind_of_place(weird, tmp_path):
    (tmp_path / "robot.urdf").write_text(URDFS[0])
    file = tmp_path / "robot.yaml"
    template = (
        "{urdf: robot.urdf, robot: %s, gravity: %s, friction: {joint2: %s}, "
        "inertials: {link1: %s}, locked: {joint3: %s}, "
        "rotors: {%s: {gear_ratio: 1}}, home: %s, actuated: %s}"
    )
    good = ("r", "[0, 0, 1]", "{viscous: 1}", "{mass: 1}", "0.1", "joint5", "{}", "[]")
    for place in range(len(good)):
        values = [weird if i == place else value for i, value in enumerate(good)]
        file.write_text(template % tuple(values))
        sound_or_refused(rd.load, file)
    file.write_text(template % good)
    assert sound_or_refused(rd.load, file), "the template itself is no robot"
