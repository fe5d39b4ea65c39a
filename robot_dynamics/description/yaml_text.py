# SPDX-License-Identifier: Apache-2.0
"""YAML as plain values: null, booleans, numbers, strings, lists and mappings, and nothing else.

Values are built from the parser's events: no tag can construct an object, and no nesting can
exceed the interpreter's stack. A word is a string unless it is `true`, `false`, `null` or a decimal
number: a joint may be called `no`, and 012 is twelve.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ..errors import DescriptionError, one_line, shown
from .fields import LONGEST_NAME

DEEPEST = 50
"""Largest depth of nesting"""
MOST_ALIASES = 1000
MOST_VALUES = 500_000

EXACT_DIGITS = 15
"""Number of digits of integers that a float represents exactly"""

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
    builder = _Builder(where)
    try:
        for event in yaml.parse(text, Loader=PARSER):
            builder.take(event)
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
    return builder.documents[0] if builder.documents else None


class _Builder:
    """Builds values from events. `_open` are the lists and mappings that have not ended yet."""

    def __init__(self, where: str):
        self._where = where
        self._open: list[_List | _Mapping] = []
        self._anchors: dict[str, Any] = {}
        self._values = self._aliases = 0
        self.documents: list[Any] = []

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                is_key = bool(self._open) and self._open[-1].wants_key
                self._check(event)
                self._put(event, _scalar(event, is_key=is_key))
            case yaml.SequenceStartEvent():
                self._begin(event, _List(event.anchor))
            case yaml.MappingStartEvent():
                self._begin(event, _Mapping(event.anchor))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end(event)
            case yaml.AliasEvent():
                self._aliases += 1
                if self._aliases > MOST_ALIASES:
                    raise self._wrong(event, f"more than {MOST_ALIASES} aliases")
                anchor = str(event.anchor)
                if anchor not in self._anchors:
                    raise self._wrong(event, f"alias {shown(anchor)} without an anchor before it")
                self._put(event, self._anchors[anchor])
            case yaml.DocumentStartEvent():
                if self.documents:
                    raise self._wrong(event, "a second document")

    def _begin(self, event: Any, container: _List | _Mapping) -> None:
        self._check(event)
        if len(self._open) >= DEEPEST:
            raise self._wrong(event, f"nested deeper than {DEEPEST} levels")
        if self._open and self._open[-1].wants_key:
            raise self._wrong(event, "a key that is not a name")
        self._open.append(container)

    def _end(self, event: Any) -> None:
        container = self._open.pop()
        if container.anchor:
            self._anchors[container.anchor] = container.value
        self._put(event, container.finished())

    def _put(self, event: Any, value: Any) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            raise self._wrong(event, f"more than {MOST_VALUES} values")
        if isinstance(event, yaml.ScalarEvent) and event.anchor:
            self._anchors[event.anchor] = value
        if not self._open:
            self.documents.append(value)
        elif complaint := self._open[-1].add(value):
            raise self._wrong(event, complaint)

    def _check(self, event: Any) -> None:
        if event.tag is not None:
            raise self._wrong(event, f"tag {shown(event.tag)}: only plain values are read")

    def _wrong(self, event: Any, what: str) -> DescriptionError:
        line = event.start_mark.line + 1
        return DescriptionError(f"{self._where}: line {line}: {what}", name=self._where, line=line)


class _List:
    wants_key = False

    def __init__(self, anchor: str | None):
        self.anchor = anchor
        self.value: list[Any] = []

    def add(self, value: Any) -> str | None:
        self.value.append(value)
        return None

    def finished(self) -> list[Any]:
        return self.value


class _Mapping:
    def __init__(self, anchor: str | None):
        self.anchor = anchor
        self.value: dict[str, Any] = {}
        self._inherited: dict[str, Any] = {}
        self._key: str | None = None

    @property
    def wants_key(self) -> bool:
        return self._key is None

    def add(self, value: Any) -> str | None:
        """Add a key or its value; return a complaint, or None."""
        if self._key is None:
            if not isinstance(value, str):
                return "a key that is not a name"
            if len(value) > LONGEST_NAME:
                return f"key {shown(value)}: longer than {LONGEST_NAME} characters"
            if value in self.value:
                return f"key {shown(value)} appears twice"
            self._key = value
            return None
        key, self._key = self._key, None
        if key != "<<":
            self.value[key] = value
            return None
        # <<: entries of other mappings that this one does not have itself
        for other in value if isinstance(value, list) else [value]:
            if not isinstance(other, dict):
                return "<<: found something other than mappings"
            self._inherited = {**other, **self._inherited}
        return None

    def finished(self) -> dict[str, Any]:
        own = dict(self.value)
        self.value.update({k: v for k, v in self._inherited.items() if k not in own})
        return self.value


def _scalar(event: Any, *, is_key: bool) -> Any:
    text = event.value
    text.encode()  # refuses unpaired surrogates
    if is_key or not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    is_count = len(text) <= EXACT_DIGITS and text.lstrip("+-").isdigit()
    return int(text) if is_count else float(text)
