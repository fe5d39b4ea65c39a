# SPDX-License-Identifier: Apache-2.0
"""Replacement of `home` in the text of a description, leaving everything else unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from ..errors import DescriptionError
from .fields import number
from .yaml_text import plain

DECIMALS = 12
"""Decimals of rad or m that are written; smaller differences are rounding errors"""


def rounded(home: Mapping[str, float]) -> dict[str, float]:
    """The positions as rounded for writing."""
    return {name: round(value, DECIMALS) + 0.0 for name, value in home.items()}


def with_home(text: str, home: Mapping[str, float], where: str) -> str:
    """The same YAML with another home: numbers are changed in place, new joints are appended.

    Comments and layout are kept. If the old home has joints that the new one does not have, the
    whole entry is rewritten.

    Args:
        text: of the YAML file.
        home: positions by joint, rad or m.
        where: the file's name, for messages.

    Raises:
        DescriptionError: `home` is written in a way that cannot be changed (with an anchor, say).
    """
    home = rounded(home)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    entries = root.value if isinstance(root, yaml.MappingNode) else []
    old = next(((key, value) for key, value in entries if key.value == "home"), None)
    if old is None:
        made = f"{text.rstrip()}\n{_block({'home': home})}\n"
    else:
        made = _changed(text, *old, home)
    expected = {**plain(text, where), "home": home}
    try:
        found = plain(made, where)
        read = {name: number(value, where) for name, value in found["home"].items()}
        same = {**found, "home": rounded(read)} == expected
    except (DescriptionError, AttributeError):  # something else refers to home
        same = False
    if not same:
        raise DescriptionError(
            f"{where}: home: cannot be changed in place; write it as a plain mapping",
            name="home",
        )
    return made


def _changed(text: str, key: yaml.Node, value: yaml.Node, home: Mapping[str, float]) -> str:
    """The text with this home in place of the old one."""
    is_mapping = isinstance(value, yaml.MappingNode)
    known = {name.value: (name, number) for name, number in value.value} if is_mapping else {}
    start, end = key.start_mark.index, _end(value)
    if not set(known) <= set(home):
        return text[:start] + _block({"home": home}) + text[end:]
    added = {name: place for name, place in home.items() if name not in known}
    edits: list[tuple[int, int, str]] = []
    for name, (_, node) in known.items():
        if _is_already(node, home[name]):
            continue
        edits.append((node.start_mark.index, node.end_mark.index, _scalar(home[name])))
    if added and isinstance(value, yaml.MappingNode) and value.flow_style:
        close = value.end_mark.index - 1
        more = ", ".join(_block(added).splitlines())
        behind = _end(value.value[-1][1]) if known else close
        edits.append((behind, behind, f", {more}" if known else more))
    elif added:
        # after the line of the last entry, or of the key, whose comments stay on that line
        last = _end(value.value[-1][1]) if known else key.end_mark.index
        indent = value.value[0][0].start_mark.column if known else key.start_mark.column + 2
        behind = text.find("\n", last)
        behind = len(text) if behind < 0 else behind
        lines = "".join(f"\n{' ' * indent}{line}" for line in _block(added).splitlines())
        edits.append((behind, behind, lines))
    for first, after, words in sorted(edits, reverse=True):
        text = text[:first] + words + text[after:]
    return text


def _block(entries: Mapping[str, object]) -> str:
    return yaml.safe_dump(
        dict(entries), sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False
    ).rstrip("\n")


def _scalar(value: float) -> str:
    return _block({"x": value}).removeprefix("x: ")


def _is_already(node: yaml.Node, value: float) -> bool:
    try:
        return abs(number(node.value, "home") - value) < 10.0**-DECIMALS
    except (DescriptionError, TypeError):
        return False


def _end(node: yaml.Node) -> int:
    """The position where its text ends, before any comments."""
    block = isinstance(node, yaml.MappingNode) and not node.flow_style and node.value
    return _end(node.value[-1][1]) if block else int(node.end_mark.index)
