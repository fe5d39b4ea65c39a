# SPDX-License-Identifier: Apache-2.0
"""A description's own symbols, `symbols: {m1: 2.0}`, and expressions in them for numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import DescriptionError, wrong
from .expression import FUNCTIONS, evaluate, letters
from .fields import mapping, number

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESERVED = ("pi", *FUNCTIONS)

SCALARS = ("theta", "d", "a", "alpha", "mass")
BODIES = ("center_of_mass", "inertia")

Place = tuple[Any, Any, str]
"""(mapping or list, key, what `Mechanism.notation` calls it)"""


def in_numbers(
    entries: Mapping[str, Any], where: str
) -> tuple[Mapping[str, Any], dict[str, float], dict[str, str]]:
    """(entries with numbers for expressions, the symbols' values, place to expression).

    Raises:
        DescriptionError: a symbol whose name or value is none, an expression with unknown names.
    """
    given = mapping(entries.get("symbols"), entries.get("symbols") or (), f"{where}: symbols")
    symbols = {}
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED:
            raise wrong(
                DescriptionError,
                f"{where}: symbols",
                name,
                "a name of letters, digits and _ that begins with a letter",
            )
        symbols[name] = number(value, f"{where}: symbols.{name}")
    if not symbols:
        return entries, {}, {}
    changed = _copied(entries)
    notation = {}
    for owner, key, place in _places(changed):
        text = owner[key]
        if not isinstance(text, str):
            continue
        try:
            used = letters(text)
        except DescriptionError:
            continue  # no expression: who reads the number says so
        if not used:
            continue
        try:
            value = evaluate(text, symbols)
        except DescriptionError as error:
            raise DescriptionError(
                f"{where}: {place}: {error}", name=f"{where}: {place}", value=text
            ) from None
        owner[key] = number(value, f"{where}: {place}")
        if place == "gravity" and value < 0:
            text = f"-({text})"
        notation[place] = text
    return changed, symbols, notation


def _copied(value: Any) -> Any:
    """Nothing shared: what YAML's anchors repeat is a value of its own wherever it stands."""
    if isinstance(value, Mapping):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return value


def _places(entries: Mapping[str, Any]) -> Iterator[Place]:
    gravity = entries.get("gravity")
    if isinstance(gravity, list):
        yield from ((gravity, k, "gravity") for k in range(len(gravity)))
    if isinstance(entries.get("base_inertial"), dict):
        yield from _body(entries["base_inertial"], "base_inertial", ("mass",))
    links = entries.get("links")
    for link in links if isinstance(links, Sequence) else ():
        if not isinstance(link, dict):
            continue
        name, joint, rotor = link.get("name"), link.get("joint"), link.get("rotor")
        yield from _body(link, str(name), SCALARS)
        if isinstance(link.get("friction"), dict):
            law = link["friction"]
            yield from ((law, key, f"{name}.friction.{key}") for key in law)
        if isinstance(rotor, dict) and isinstance(joint, dict):
            yield from _body(rotor, f"{joint.get('name')}.rotor", ("mass", "gear_ratio"))


def _body(entries: dict[str, Any], owner: str, scalars: Sequence[str]) -> Iterator[Place]:
    yield from ((entries, key, f"{owner}.{key}") for key in scalars if key in entries)
    for key in BODIES:
        inner = entries.get(key)
        if isinstance(inner, list):
            yield from ((inner, k, f"{owner}.{key}[{k}]") for k in range(len(inner)))
        elif isinstance(inner, dict):
            yield from ((inner, k, f"{owner}.{key}.{k}") for k in inner)
