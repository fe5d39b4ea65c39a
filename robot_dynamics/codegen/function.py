# SPDX-License-Identifier: Apache-2.0
"""A function of vectors over any scalar, from which a kernel is made, and its identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .guard import guarded
from .recorder import Program, record


@dataclass(frozen=True, eq=False)
class Function:
    """The function y = equations(x1, x2, …, p), written once over any scalar.

    The vectors x are states and may be batched; p are parameters, the same for all states.
    """

    name: str
    """What it computes: torques, mass_matrix, …"""
    arguments: tuple[str, ...]
    """The names of the states, for messages"""
    sizes: tuple[int, ...]
    """The lengths of the states"""
    shape: tuple[int, ...]
    """The shape of the result"""
    parameters: int
    """The length of p"""
    equations: Callable[..., Iterable[Any]]
    """Returns the result's entries in row-major order"""
    content: Any
    """Everything that `equations` depends on: dataclasses, arrays, numbers, texts and
    collections of them"""
    robot: str = ""

    def record(self, most: int | None = None, guard: bool = True) -> Program:
        """Record the function as a straight-line program, whose last vector is p.

        Args:
            most: the largest number of operations; None: no limit.
            guard: add operations that make all results nan if a state contains nan. Without them,
                the caller has to ensure this.

        Raises:
            ProgramTooLarge: it would have more than `most` operations.
        """
        program = record(self.equations, (*self.sizes, self.parameters), most)
        return guarded(program, len(self.sizes)) if guard else program

    def key(self, *more: str) -> str:
        """A hash of everything that determines the kernel.

        Args:
            more: further properties, such as the backend and the compiler.
        """
        head = (self.name, self.sizes, self.shape, self.parameters, more)
        return digest((_package(), head, self.content))


def digest(content: Any) -> str:
    """A hash of dataclasses, arrays, numbers, texts and collections of them."""
    pieces: list[str] = []
    _spell(content, pieces)
    return hashlib.sha256("".join(pieces).encode()).hexdigest()


def _spell(value: Any, pieces: list[str]) -> None:
    """Append the value as text; different values have different texts."""
    if isinstance(value, (str, int, float, bool, type(None), np.number)):
        text = repr(value.item() if isinstance(value, np.number) else value)
        pieces.append(f"{len(text)}:{text}")
    elif isinstance(value, np.ndarray):
        pieces.append(f"array{value.shape}")
        if value.dtype == float:
            pieces.append(repr(value.tolist()))
        else:
            _spell(value.tolist(), pieces)
    elif isinstance(value, (tuple, list)):
        pieces.append(f"[{len(value)}")
        for entry in value:
            _spell(entry, pieces)
    elif is_dataclass(value) and not isinstance(value, type):
        pieces.append(f"{type(value).__name__}(")
        for name, head in _heads(type(value)):
            pieces.append(head)
            _spell(getattr(value, name), pieces)
    elif isinstance(value, Mapping):
        _spell(sorted(value.items()), pieces)
    elif isinstance(value, (set, frozenset)):
        _spell(sorted(value), pieces)
    elif callable(value):
        pieces.append(f"{value.__module__}.{value.__qualname__}")
    else:
        raise TypeError(f"{type(value)} cannot be part of a kernel's content")


@cache
def _heads(kind: type) -> list[tuple[str, str]]:
    """The name of each field of a dataclass, and the text that precedes its value."""
    return [(field.name, f"[2{len(repr(field.name))}:{field.name!r}") for field in fields(kind)]


@lru_cache
def _package() -> str:
    """A hash of this package's whole source, so that kernels of another version are not used."""
    found = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.[ch]")]):
        found.update(str(path.relative_to(root)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()
