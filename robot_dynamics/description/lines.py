# SPDX-License-Identifier: Apache-2.0
"""The line number of the element that an error is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import DescriptionError, RobotDynamicsError
from ..mechanism import BASE
from .files import find, read_text
from .xml_text import parsed
from .yaml_text import PARSER, plain

Token = tuple[str, str]
"""("link" | "joint" | "rotor" | "loop" | "transmission", its name), ("key", name) or
("place", index)"""

_TOKEN = re.compile(
    r"(?P<kind>link|joint|rotor|loop|transmission) '(?P<name>[^']*)'"
    r"|(?P<key>[A-Za-z_]\w*)|\[(?P<place>\d+)\]"
)


def located(error: DescriptionError, source: str | Path) -> DescriptionError:
    """The same error with its line number, if it can be found.

    Args:
        error: about an element of a description.
        source: the description's path, or its text.
    """
    if error.line is not None:
        return error
    try:
        line = _line(error, source)
    except (RobotDynamicsError, OSError, yaml.YAMLError, RecursionError):
        line = None  # if it can't be read again, there are no line numbers
    if line is None:
        return error
    words = f"{error} (line {line})"
    return type(error)(
        words, name=error.name, value=error.value, expected=error.expected, line=line
    )


def _line(error: DescriptionError, source: str | Path) -> int | None:
    where, colon, way = error.name.partition(": ")
    if not colon:
        return None
    if isinstance(source, str):
        return _xml_line(source, where, way)
    file = source
    if where != source.name and source.suffix.lower() in (".yaml", ".yml"):
        content = plain(read_text(source), source.name)
        beside = content.get("urdf") if isinstance(content, dict) else None
        file = find(beside, beside=source.parent) if isinstance(beside, str) else source
    # the lines of a xacro file are not those of the expanded text
    if where != file.name or file.suffix.lower() == ".xacro":
        return None
    text = read_text(file)
    if file.suffix.lower() in (".yaml", ".yml"):
        return yaml_line(text, _tokens(way), error.value)
    return _xml_line(text, where, way)


@lru_cache(maxsize=1)  # there may be a hundred warnings about one file
def _composed(text: str) -> Any:
    return yaml.compose(text, Loader=PARSER)


@lru_cache(maxsize=1)
def _tree(text: str, where: str) -> Any:
    return parsed(text, where)


def _tokens(way: str) -> list[Token]:
    """The steps to a place that an error names, such as `link 'upper': inertia.ixx`, `loops[2]`."""
    found = []
    for match in _TOKEN.finditer(way):
        if match["kind"]:
            found.append((match["kind"], match["name"]))
        else:
            found.append(("key", match["key"]) if match["key"] else ("place", match["place"]))
    return found


def yaml_line(text: str, tokens: Sequence[Token], value: object = None) -> int | None:
    """The line of the element that the tokens lead to, or of its key `value` if it has that key.

    Args:
        text: of the YAML file.
        tokens: the way to the element; those that are not found are skipped.
        value: a key of this element.
    """
    root = node = _composed(text)
    line = None
    for token in tokens:
        found = _step(root, node, token)
        if found is not None:
            node, line = found
    if isinstance(value, str) and (found := _entry(node, value)):
        line = found[1]
    return line


def _step(root: Any, node: Any, token: Token) -> tuple[Any, int] | None:
    kind, name = token
    if kind == "key":
        # errors in expressions name the place as upper.mass, for a link `upper`
        link = _named(root, "links", name, "name") or _named(root, "links", name, "joint", "name")
        return _entry(node, name) or (link if node is root else None)
    if kind == "place":
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        return _at(items[int(name)]) if int(name) < len(items) else None
    if kind == "link":
        found = _named(root, "links", name, "name") or _entry(_inner(root, "inertials"), name)
        return found or (_entry(root, "base_inertial") if name == BASE else None)
    if kind == "loop":
        return _named(root, "loops", name, "name")
    own = _entry(_inner(root, "rotors" if kind == "rotor" else "friction"), name)
    carrier = _named(root, "links", name, "joint", "name")
    return own or (_entry(carrier[0], kind) if carrier else None)


def _entry(node: Any, key: str) -> tuple[Any, int] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    for name, value in node.value:
        if name.value == key:
            return value, name.start_mark.line + 1
    return None


def _inner(node: Any, *keys: str) -> Any:
    for key in keys:
        found = _entry(node, key)
        node = found[0] if found else None
    return node


def _named(root: Any, owner: str, name: str, *keys: str) -> tuple[Any, int] | None:
    """The entry of the list `owner` whose value at `keys` is this name."""
    items = _inner(root, owner)
    for item in items.value if isinstance(items, yaml.SequenceNode) else []:
        said = _inner(item, *keys)
        if said is not None and said.value == name:
            return _at(item)
    return None


def _at(node: Any) -> tuple[Any, int]:
    return node, node.start_mark.line + 1


def _xml_line(text: str, where: str, way: str) -> int | None:
    root = _tree(text, where)
    node = line = None
    for kind, name in _tokens(way):
        if kind == "key" and node is not None:
            inner = next(node.iter(name), None)
            if inner is None:
                break
            node, line = inner, inner.sourceline
        elif kind in ("link", "joint", "transmission"):
            node = next((each for each in root.iter(kind) if each.get("name") == name), None)
            line = node.sourceline if node is not None else line
    # blanks before the first tag have not been parsed
    before = text[: len(text) - len(text.lstrip("\ufeff \t\r\n"))].count("\n")
    return line + before if line is not None else None


def of_path(path: Sequence[str | int], text: str) -> int | None:
    """The line of a place in a YAML file, given by keys and indices."""
    tokens: list[Token] = [
        ("place", str(step)) if isinstance(step, int) else ("key", step) for step in path
    ]
    return yaml_line(text, tokens)
