# SPDX-License-Identifier: Apache-2.0
"""Matrices whose entries have names, under which later matrices use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sympy

from ..closure.geometry.linear import Pivots
from ..mechanism.mechanism import new_name
from .short import cost

Assignments = tuple[tuple[sympy.Symbol, sympy.Expr], ...]

BRIEF = 2.5
"""Largest `cost` of an entry that is used itself instead of its name: a letter with a sign"""


class Listing:
    """Named matrices, in the order in which they are computed.

    Args:
        taken: names that are in use.
    """

    def __init__(self, taken: Iterable[str]):
        self.taken = set(taken)
        self.matrices: dict[str, sympy.Matrix] = {}
        """By name, with entries in terms of the letters of entries before them"""
        self.letters: dict[str, sympy.Matrix] = {}
        """By name, what later matrices use: letters, and brief entries themselves"""
        self.entries: dict[str, tuple[str, tuple[int, ...]]] = {}
        """(matrix, indices from 1) of each letter that is an entry's name"""
        self.assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []
        """All letters with their values"""
        self.others: dict[str, list[tuple[sympy.Symbol, sympy.Expr]]] = defaultdict(list)
        """By section, the letters that are no entries"""
        self._known: dict[tuple[str, sympy.Expr], sympy.Symbol] = {}

    def __call__(self, name: str, values: Any, brief: float = BRIEF) -> sympy.Matrix:
        """Name the entries of a matrix, or of a vector, and return their letters.

        Args:
            name: of the matrix.
            values: its entries.
            brief: largest `cost` of an entry that is used itself instead of its name.
        """
        rows = sympy.Matrix(values)
        self.begin(name, *rows.shape)
        for i, j in np.ndindex(*rows.shape):
            self.entry(name, i, j, rows[i, j], brief)
        return self.letters[name]

    def begin(self, name: str, rows: int, columns: int) -> None:
        """A matrix of zeros, whose entries follow."""
        self.matrices[name] = sympy.zeros(rows, columns)
        self.letters[name] = sympy.zeros(rows, columns)

    def entry(
        self, name: str, i: int, j: int, value: sympy.Expr, brief: float = BRIEF
    ) -> sympy.Expr:
        """Name one entry and return its letter."""
        self.matrices[name][i, j] = value
        place = (i + 1, j + 1)[: 1 if self.matrices[name].cols == 1 else 2]
        self.letters[name][i, j] = letter = self._letter(name, place, value, brief)
        return letter

    def _letter(
        self, name: str, place: tuple[int, ...], value: sympy.Expr, brief: float
    ) -> sympy.Expr:
        if cost(value) <= brief:
            return value
        for sign in (1, -1):
            if (name, sign * value) in self._known:
                return sign * self._known[name, sign * value]
        text = new_name("_".join([name, *map(str, place)]), self.taken, "_")
        symbol = sympy.Symbol(text, real=True)
        self.assignments.append((symbol, value))
        self.entries[text], self._known[name, value] = (name, place), symbol
        return symbol

    def assign(self, section: str, name: str, value: sympy.Expr) -> sympy.Symbol:
        """A new letter for a value, which is shown in a section."""
        symbol = sympy.Symbol(new_name(name, self.taken, "_"), real=True)
        self.define(section, symbol, value)
        return symbol

    def define(self, section: str, symbol: sympy.Symbol, value: sympy.Expr) -> None:
        """A value for a letter that is in use, which is shown in a section."""
        self.assignments.append((symbol, value))
        self.others[section].append((symbol, value))


def needed(
    assignments: Sequence[tuple[sympy.Symbol, sympy.Expr]], matrices: Iterable[sympy.Matrix]
) -> Assignments:
    """The assignments that the matrices depend on."""
    wanted = set().union(*(values.free_symbols for values in matrices))
    kept = []
    for symbol, expression in reversed(assignments):
        if symbol in wanted:
            kept.append((symbol, expression))
            wanted |= expression.free_symbols
    return tuple(reversed(kept))


class Factors:
    """A = (1 + L) U for a matrix of letters, with named entries, L below the diagonal.

    Args:
        listing: has the names.
        of: what L and U are called after.
        A: (n, n).
        order: (row, column) of each pivot, in the order of elimination.
    """

    def __init__(self, listing: Listing, of: str, A: sympy.Matrix, order: Pivots):
        self.listing, self.of, self.order, n = listing, of, order, len(order)
        names = [f"{each}_{of}" for each in "LU"]
        for name in names:
            listing.begin(name, n, n)
        L, U = self.L, self.U = [listing.letters[name] for name in names]
        rows, columns = zip(*order, strict=True)
        for t in range(n):
            for k in range(t, n):
                value = A[rows[t], columns[k]] - _product(L[t, :t], U[:t, k])
                listing.entry(names[1], t, k, value)
            for k in range(t + 1, n):
                value = A[rows[k], columns[t]] - _product(L[k, :t], U[:t, t])
                listing.entry(names[0], k, t, value / U[t, t])

    def solve(
        self, name: str, B: sympy.Matrix, places: Sequence[int], columns: Sequence[int]
    ) -> None:
        """Write A⁻¹ B into these rows and columns of a matrix that has been begun, by
        Z = (1 + L)⁻¹ B."""
        Z, X = f"Z_{self.of if name == 'B' else name}", self.listing.letters[name]
        self.listing.begin(Z, *B.shape)
        z = self.listing.letters[Z]
        for j, to in enumerate(columns):
            for t, (row, _) in enumerate(self.order):
                self.listing.entry(Z, t, j, B[row, j] - _product(self.L[t, :t], z[:t, j]))
            for t, (_, column) in reversed([*enumerate(self.order)]):
                after = [places[c] for _, c in self.order[t + 1 :]]
                rest = z[t, j] - _product(self.U[t, t + 1 :], X.extract(after, [to]))
                self.listing.entry(name, places[column], to, rest / self.U[t, t])


def _product(row: sympy.Matrix, column: sympy.Matrix) -> sympy.Expr:
    return sum((x * y for x, y in zip(row, column, strict=True)), sympy.S.Zero)
