"""Another `home` in the text of a description, of which nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from ..errors import DescriptionError
from .yaml_text import plain

DECIMALS = 12
"""Of rad or m: what is smaller is rounding"""


def rounded(home: Mapping[str, float]) -> dict[str, float]:
    """The same home as it is written."""
    return {name: round(value, DECIMALS) + 0.0 for name, value in home.items()}


def with_home(text: str, home: Mapping[str, float], where: str) -> str:
    """The same YAML with this home, comments and layout kept.

    Raises:
        DescriptionError: its `home` is not written so that it can be replaced (by an anchor, say).
    """
    block = yaml.safe_dump(
        {"home": rounded(home)},
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    ).rstrip("\n")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    entries = root.value if isinstance(root, yaml.MappingNode) else []
    for key, value in entries:
        if key.value == "home":
            made = text[: key.start_mark.index] + block + text[_end(value) :]
            break
    else:
        made = f"{text.rstrip()}\n{block}\n"
    expected = {**plain(text, where), "home": plain(block, where)["home"]}
    try:
        same = plain(made, where) == expected
    except DescriptionError:  # something else refers to it
        same = False
    if not same:
        raise DescriptionError(
            f"{where}: home: it can't be replaced where it stands; write it as a plain mapping",
            name="home",
        )
    return made


def _end(node: yaml.Node) -> int:
    """Where its text ends; comments behind it stay."""
    block = isinstance(node, yaml.MappingNode) and not node.flow_style and node.value
    return _end(node.value[-1][1]) if block else int(node.end_mark.index)
