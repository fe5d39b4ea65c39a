# SPDX-License-Identifier: Apache-2.0
"""YAML as plain values: null, booleans, numbers, strings, lists and mappings, and nothing else.

Values are built from the parser's events: no tag can construct an object, and no nesting can
overflow the interpreter's stack. A word is a string unless it is `true`, `false`, `null` or a
decimal number: a joint may be called `no`, and 012 is twelve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from ..errors import DescriptionError, one_line, shown
from .fields import LONGEST_NAME

DEEPEST = 50
"""Largest depth of nesting"""
MOST_ALIASES = 1000
MOST_VALUES = 500_000

EXACT_DIGITS = 15
"""Number of digits up to which a float represents every integer exactly"""

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_WORDS = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain(text: str, where: str) -> Any:
    """The value of a YAML document.

    Raises:
        DescriptionError: it is not YAML, has a tag or a duplicate key, or exceeds the bounds.
    """
    try:
        return _Reader(text, where).document()
    except yaml.YAMLError as error:
        words, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        complaint = f"{where}: not readable as YAML: {one_line(words or error, 300)}"
        complaint += f" (line {line})" if line else ""
        raise DescriptionError(complaint, name=where, line=line) from None
    except UnicodeError:
        raise DescriptionError(
            f"{where}: it contains an unpaired surrogate (half a character)"
        ) from None


class _Reader:
    """Reads values from events; the depth of its recursion is bounded by DEEPEST."""

    def __init__(self, text: str, where: str):
        self._where = where
        self._events = yaml.parse(text, Loader=PARSER)
        self._anchors: dict[str, Any] = {}
        self._values = self._aliases = 0

    def document(self) -> Any:
        """The value of the only document; None if there is none."""
        documents: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if documents:
                    raise self._wrong(event, "a second document")
                documents.append(self._value(next(self._events), 0))
        return documents[0] if documents else None

    def _value(self, event: Any, depth: int) -> Any:
        self._values += 1
        if self._values > MOST_VALUES:
            raise self._wrong(event, f"more than {MOST_VALUES} values")
        if isinstance(event, yaml.AliasEvent):
            return self._repeated(event)
        if event.tag is not None:
            raise self._wrong(event, f"tag {shown(event.tag)}: only plain values are read")
        if isinstance(event, yaml.ScalarEvent):
            found = _scalar(event)
        elif depth >= DEEPEST:
            raise self._wrong(event, f"nested deeper than {DEEPEST} levels")
        elif isinstance(event, yaml.SequenceStartEvent):
            found = [self._value(each, depth + 1) for each in self._inner()]
        else:
            found = self._mapping(depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = found
        return found

    def _inner(self) -> Iterator[Any]:
        """The events at which the values of a list, or the keys of a mapping, begin."""
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _repeated(self, event: Any) -> Any:
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            raise self._wrong(event, f"more than {MOST_ALIASES} aliases")
        anchor = str(event.anchor)
        if anchor not in self._anchors:
            raise self._wrong(event, f"alias {shown(anchor)} without an anchor before it")
        return self._anchors[anchor]

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        inherited: dict[str, Any] = {}
        for event in self._inner():
            if isinstance(event, yaml.ScalarEvent):
                event.implicit = (False, True)  # a key is text, whatever it looks like
            key = self._value(event, depth)
            if not isinstance(key, str):
                raise self._wrong(event, "a key that is not a name")
            if len(key) > LONGEST_NAME:
                words = f"key {shown(key)}: longer than {LONGEST_NAME} characters"
                raise self._wrong(event, words)
            if key in found:
                raise self._wrong(event, f"key {shown(key)} appears twice")
            value = self._value(next(self._events), depth)
            if key != "<<":
                found[key] = value
                continue
            # entries of merged mappings that this one does not have itself
            for other in value if isinstance(value, list) else [value]:
                if not isinstance(other, dict):
                    raise self._wrong(event, "<<: found something other than mappings")
                inherited = {**other, **inherited}
        return found | {key: value for key, value in inherited.items() if key not in found}

    def _wrong(self, event: Any, what: str) -> DescriptionError:
        line = event.start_mark.line + 1
        return DescriptionError(f"{self._where}: line {line}: {what}", name=self._where, line=line)


def _scalar(event: Any) -> Any:
    text = event.value
    text.encode()  # refuses unpaired surrogates
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    is_count = len(text) <= EXACT_DIGITS and text.lstrip("+-").isdigit()
    return int(text) if is_count else float(text)
