# SPDX-License-Identifier: Apache-2.0
"""Expressions in a description: arithmetic of numbers and names only.

The text is parsed, never executed. It may contain +, -, *, /, **, parentheses, numbers, pi, known
names, and sin, cos, tan, sqrt and exp.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import DescriptionError, Place, Step, choices, shown, wrong
from .fields import mapping, number

LONGEST = 2000
"""Largest number of characters of an expression"""
LARGEST_POWER = 16

FUNCTIONS = ("sin", "cos", "tan", "sqrt", "exp")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESERVED = ("pi", *FUNCTIONS)

SEVERAL = ("center_of_mass", "inertia", "friction")
"""Entries of a link, the base or a rotor that consist of several numbers"""
NUMBERS = ("theta", "d", "a", "alpha", "mass", "gear_ratio", *SEVERAL)
"""Entries that may contain expressions"""

Entry = tuple[Any, Any, str, tuple[Step, ...]]
"""(mapping or list, key, its name in `Mechanism.notation`, its path in the document)"""


def letters(text: str) -> tuple[str, ...]:
    """The names in an expression, each once, except functions and pi.

    Raises:
        DescriptionError: not a valid expression.
    """
    found: dict[str, None] = {}
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Name) and node.id not in (*FUNCTIONS, "pi"):
            found[node.id] = None
    return tuple(found)


def evaluate(text: str, names: Mapping[str, Any], pi: Any = math.pi) -> Any:
    """The value of an expression.

    Args:
        text: the expression.
        names: values of the names: numbers or SymPy symbols.
        pi: the value of pi, of the same kind.

    Raises:
        DescriptionError: not a valid expression, an unknown name, or a division by zero.
    """
    try:
        return _value(_tree(text), names, pi, text)
    except DescriptionError:
        raise
    except RecursionError:
        raise _refused(text, "fewer brackets") from None
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise DescriptionError(f"{shown(text)}: {error}", name="expression", value=text) from None


def _tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise _refused(text, f"an expression of at most {LONGEST} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(text, "an expression such as m1*(a1 + l_c2)**2") from None


def _value(node: ast.expr, names: Mapping[str, Any], pi: Any, text: str) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id="pi"):
            return pi
        case ast.Name(id=name):
            if name not in names:
                raise _refused(text, f"a known name instead of {name!r}: {choices(names)}")
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names, pi, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _value(inner, names, pi, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = _value(right, names, pi, text)
            if not isinstance(exponent, int) or abs(exponent) > LARGEST_POWER:
                raise _refused(text, f"a whole exponent of at most {LARGEST_POWER}")
            base = _value(left, names, pi, text)
            # powers of Python integers would grow without bound
            return (float(base) if isinstance(base, int) else base) ** exponent
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            a, b = (_value(each, names, pi, text) for each in (left, right))
            return _ARITHMETIC[type(operator)](a, b)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in FUNCTIONS:
            return _function(name, _value(inner, names, pi, text))
        case _:
            raise _refused(text, "numbers, names, + - * / ** and " + ", ".join(FUNCTIONS))


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def _function(name: str, x: Any) -> Any:
    if isinstance(x, (int, float)):
        return getattr(math, name)(x)
    import sympy

    return getattr(sympy, name)(x)


def _refused(text: str, expected: str) -> DescriptionError:
    return DescriptionError(
        f"expression {shown(text)}: expected {expected}",
        name="expression",
        value=text,
        expected=expected,
    )


# --- a description's own symbols, `symbols: {m1: 2.0}` ------------------------------------------


def in_numbers(
    entries: Mapping[str, Any], where: Place
) -> tuple[Mapping[str, Any], dict[str, float], dict[str, str]]:
    """(entries with expressions replaced by numbers, the symbols' values, expressions by place).

    Args:
        entries: of a description.
        where: the file's name, for messages.

    Raises:
        DescriptionError: an invalid name or value of a symbol, or an expression with unknown names.
    """
    given = mapping(entries.get("symbols"), entries.get("symbols") or (), where / "symbols")
    symbols = {}
    for name, value in given.items():
        if name in RESERVED:
            expected = f"a name other than {', '.join(RESERVED)}, which are reserved"
            raise wrong(DescriptionError, (where / "symbols").at(name), name, expected)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise wrong(
                DescriptionError,
                (where / "symbols").at(name),
                name,
                "a name of letters, digits and _ that begins with a letter",
            )
        symbols[name] = number(value, where / "symbols" / name)
    if not symbols:
        return entries, {}, {}
    changed = _copied(entries)
    notation = {}
    for owner, key, place, path in _places(changed):
        text = owner[key]
        if not isinstance(text, str):
            continue
        at = (where + f": {place}").at(*path)
        try:
            used = letters(text)
        except DescriptionError:
            continue  # not an expression: reading it as a number will fail
        if not used:
            continue
        try:
            value = evaluate(text, symbols)
        except DescriptionError as error:
            raise DescriptionError(f"{at}: {error}", name=at, value=text) from None
        owner[key] = number(value, at)
        if place == "gravity" and value < 0:
            text = f"-({text})"
        notation[place] = text
    return changed, symbols, notation


def _copied(value: Any) -> Any:
    """A deep copy in which values repeated by YAML's anchors are no longer shared."""
    if isinstance(value, Mapping):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return value


def _places(entries: Mapping[str, Any]) -> Iterator[Entry]:
    gravity = entries.get("gravity")
    if isinstance(gravity, list):
        yield from ((gravity, k, "gravity", ("gravity", k)) for k in range(len(gravity)))
    if isinstance(entries.get("base_inertial"), dict):
        yield from _body(entries["base_inertial"], "base_inertial", ("base_inertial",))
    links = entries.get("links")
    for i, link in enumerate(links if isinstance(links, Sequence) else ()):
        if not isinstance(link, dict):
            continue
        joint, rotor = link.get("joint"), link.get("rotor")
        yield from _body(link, str(link.get("name")), ("links", i))
        if isinstance(rotor, dict) and isinstance(joint, dict):
            yield from _body(rotor, f"{joint.get('name')}.rotor", ("links", i, "rotor"))


def _body(entries: dict[str, Any], owner: str, path: tuple[Step, ...]) -> Iterator[Entry]:
    for key in (key for key in NUMBERS if key in entries):
        inner = entries[key]
        if key not in SEVERAL:
            yield entries, key, f"{owner}.{key}", (*path, key)
        elif isinstance(inner, list):
            steps = range(len(inner))
            yield from ((inner, k, f"{owner}.{key}[{k}]", (*path, key, k)) for k in steps)
        elif isinstance(inner, dict):
            yield from ((inner, k, f"{owner}.{key}.{k}", (*path, key, k)) for k in inner)
