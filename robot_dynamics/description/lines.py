# SPDX-License-Identifier: Apache-2.0
"""The line number of the element that an error is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from lxml import etree

from ..errors import DescriptionError, Named, Place, RobotDynamicsError, Step
from ..mechanism import BASE
from .files import BLANKS, is_yaml, read_text, urdf_of
from .xml_text import first_tag, parsed
from .yaml_text import PARSER

_IN_YAML = {
    "link": (("links", "name"), ("inertials",)),
    "joint": (("friction",), ("links", "joint", "name")),
    "rotor": (("rotors",), ("links", "joint", "name")),
}
"""Where elements of a kind are: in a list, with the path to an item's name, or in a mapping"""
_IN_XML = {"link": ("link", "body"), "loop": ("joint",)}
"""The tags of elements of a kind, if it is not the kind itself: MJCF's links are bodies, and in SDF
a joint may close a loop"""


def located(error: DescriptionError, source: str | Path) -> DescriptionError:
    """The same error with its line number, if it can be found.

    Args:
        error: about an element of a description.
        source: the description's path, or its text.
    """
    if error.line is not None or not error.place.path:
        return error
    try:
        line = _line(error.place, source)
    except (RobotDynamicsError, OSError, yaml.YAMLError, RecursionError):
        line = None  # without reading it again there are no line numbers
    if line is None:
        return error
    words = f"{error} (line {line})"
    return type(error)(
        words, name=error.name, value=error.value, expected=error.expected, line=line
    )


def _line(place: Place, source: str | Path) -> int | None:
    if isinstance(source, str):
        return xml_line(source, place.path)
    inner = urdf_of(source) if place.document != source.name else None
    file = inner or source
    # the lines of a xacro file are not those of the expanded text
    if file.suffix.lower() == ".xacro":
        return None
    line = yaml_line if is_yaml(file) else xml_line
    return line(read_text(file), place.path)


@lru_cache(maxsize=1)  # there may be a hundred warnings about one file
def _composed(text: str) -> Any:
    return yaml.compose(text, Loader=PARSER)


@lru_cache(maxsize=1)
def _tree(text: str) -> etree._Element:
    return parsed(text, "", first_tag(text))


Found = tuple[Any, int]
"""(a node of a YAML document, the line on which it, or its key, begins)"""


def yaml_line(text: str, path: Iterable[Step]) -> int | None:
    """The line of the last step of a path that is found in a YAML file.

    Args:
        text: of the file.
        path: the path to an element; steps that are not found are skipped.
    """
    root = _composed(text)
    nodes, line = [root], None
    for step in path:
        if isinstance(step, Named):
            found = list(_elements(root, step))
        else:
            found = [each for node in nodes for each in _inner(node, step)]
        if found:
            nodes, line = [node for node, _ in found], found[0][1]
    return line


def _inner(node: Any, step: Step) -> Iterator[Found]:
    """The entry of a mapping or the item of a list, if there is one."""
    if isinstance(node, yaml.MappingNode):
        yield from ((v, k.start_mark.line + 1) for k, v in node.value if k.value == step)
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        yield node.value[step], node.value[step].start_mark.line + 1


def _elements(root: Any, step: Named) -> Iterator[Found]:
    """The nodes that describe a named element, the narrowest first."""
    for owner, *way in _IN_YAML.get(step.kind, ()):
        for group, _ in _inner(root, owner):
            if not way:
                yield from _inner(group, step.name)
                continue
            for item in group.value if isinstance(group, yaml.SequenceNode) else ():
                nodes = [(item, item.start_mark.line + 1)]
                for key in way:
                    known = nodes
                    nodes = [each for node, _ in nodes for each in _inner(node, key)]
                if any(node.value == step.name for node, _ in nodes):
                    # a joint's motor and friction are entries of its link
                    own = [] if step.kind == "joint" else list(_inner(item, step.kind))
                    yield from own or known
                    yield item, item.start_mark.line + 1
    if step == Named("link", BASE):
        yield from _inner(root, "base_inertial")


def xml_line(text: str, path: Iterable[Step]) -> int | None:
    """The line of the last step of a path that is found in a URDF, SDF or MJCF.

    Args:
        text: of the file.
        path: the path to an element; attributes and steps that are not found are skipped.
    """
    root = _tree(text)
    nodes, line = [root], None
    for step in path:
        if isinstance(step, Named):
            tags, name = _IN_XML.get(step.kind, (step.kind,)), step.name
        else:
            tags, name = (str(step),), None
        found = [
            each
            for node in nodes
            for each in node.iterdescendants(*tags)
            if name is None or each.get("name") == name
        ]
        if found:
            nodes, line = found, found[0].sourceline
    # blanks before the first tag have not been parsed
    before = text[: len(text) - len(text.lstrip(BLANKS))].count("\n")
    return line + before if line is not None else None
