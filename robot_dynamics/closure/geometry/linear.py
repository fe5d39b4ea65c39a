# SPDX-License-Identifier: Apache-2.0
"""Linear equations over any scalar, with an order of elimination that is chosen in advance.

The solvers are straight-line and do not search for pivots. `spread` shows how close the chosen
order is to failing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from ...scalar import Array, Floats, Scalar, array, from_columns, is_zero, sign, sqrt

Pivots = Sequence[tuple[int, int]]

SOUND = 0.3
"""Smallest ratio of a pivot to the largest remaining entry; above it, the choice preserves zeros"""
_NOTHING = 1e-12


def pivots(matrices: Sequence[Array]) -> tuple[tuple[int, int], ...]:
    """(row, column) of each pivot for square matrices of one structure, in the order of use.

    By Markowitz's criterion: of the entries that are large in all matrices, the one that preserves
    the most zeros.

    Args:
        matrices: (n, n) the same matrix at several configurations.
    """
    rest = [np.array(matrix, dtype=float) for matrix in matrices]
    n = len(rest[0])
    rows, columns = list(range(n)), list(range(n))
    chosen = []
    for _ in range(n):
        least = np.min([abs(A[np.ix_(rows, columns)]) for A in rest], axis=0)
        most = np.max([abs(A[np.ix_(rows, columns)]) for A in rest], axis=0)
        filled = most > _NOTHING * max(float(most.max()), 1.0)
        cost = np.outer(filled.sum(axis=1) - 1, filled.sum(axis=0) - 1)
        candidates = np.where(least >= SOUND * least.max(), cost, n * n)
        row, column = np.unravel_index(int(np.argmin(candidates)), candidates.shape)
        i, j = rows.pop(row), columns.pop(column)
        chosen.append((i, j))
        for A in rest:
            A[rows] -= np.outer(A[rows, j] / A[i, j], A[i])
    return tuple(chosen)


def chosen_rows(matrices: Sequence[Array], count: int, weights: Array | None = None) -> list[int]:
    """Indices of rows that are independent in all matrices, chosen greedily.

    Each row maximises the norm, smallest over the matrices, of its part that the earlier rows do
    not span. Of nearly equal rows the first is taken, so that rounding does not decide.

    Args:
        matrices: (m, n) each, of one shape.
        count: number of rows to choose.
        weights: (m,) factors of the rows' norms; None: 1.
    """
    rest = [np.array(matrix) for matrix in matrices]
    chosen: list[int] = []
    for _ in range(count):
        left = np.min([np.linalg.norm(A, axis=1) for A in rest], axis=0)
        left = left if weights is None else weights * left
        best = int(np.argmax(left > 0.999 * left.max()))
        chosen.append(best)
        for A in rest:
            without_row(A, best)
    return chosen


def without_row(A: Floats, row: int) -> None:
    """Remove the component along one row from all rows of A (m, n), in place."""
    direction = A[row] / np.linalg.norm(A[row])
    A -= np.outer(A @ direction, direction)
    A[row] = 0.0


def parity(order: Pivots) -> float:
    """The sign of the permutation that maps the pivots' rows to their columns."""
    columns = [j for _, j in sorted(order)]
    swaps = sum(a > b for i, a in enumerate(columns) for b in columns[i + 1 :])
    return -1.0 if swaps % 2 else 1.0


def code(signs: Iterable[Scalar]) -> Scalar:
    """One number for several signs, each 1 or -1: Σ 2ᵏ sign_k, which differs if any sign does."""
    return sum(x if k == 0 else 2.0**k * x for k, x in enumerate(signs))


class Dense:
    """A solver over floats that uses the (pseudo-)inverse (…, n, m) of matrices; b is (…, m, j)."""

    def __init__(self, inverse: Array):
        self._inverse: Floats = np.asarray(inverse, dtype=float)

    def solve(self, b: Floats) -> Floats:
        """x (…, n, j)"""
        return self._inverse @ b

    def solve_normal(self, c: Floats) -> Floats:
        """(AᵀA)⁻¹ c (…, n, j)"""
        # A⁺ A⁺ᵀ = (AᵀA)⁻¹
        return self._inverse @ (transposed(self._inverse) @ c)


class _Columns(ABC):
    """A straight-line solver for one right-hand side at a time, with scaled columns:
    x = scale y, A scale y = b."""

    def __init__(self, scale: Array):
        self.scale = scale
        """(n,)"""

    def solve(self, b: Array) -> Array:
        """x (n,) for b (m,), or x (n, j) for b (m, j): A x = b, or the least |A x - b|."""
        if b.ndim == 1:
            return array(self.scale * self._solved(b))
        return from_columns([self.solve(each) for each in b.T], len(self.scale))

    @abstractmethod
    def _solved(self, b: Array) -> Array:
        """y (n,)"""


class Eliminated(_Columns):
    """Gaussian elimination of a square matrix with given pivots.

    Args:
        A: (n, n), block-diagonal except for the order of its rows and columns.
        order: of the pivots.
        scale: (n,) of the columns.
        blocks: the columns of each block; None: A is one block.
    """

    def __init__(
        self, A: Array, order: Pivots, scale: Array, blocks: Sequence[Sequence[int]] | None = None
    ):
        super().__init__(scale)
        self.order = order
        self.blocks = [[p for p in order if p[1] in each] for each in blocks or [range(len(A))]]
        """The pivots of each block"""
        U = [list(row) for row in A * scale]
        self.squares: list[Scalar] = [
            sum(U[i][j] * U[i][j] for i, _ in sorted(each) for j in sorted(j for _, j in each))
            for each in self.blocks
        ]
        """Σ a² of each block"""
        self.L: list[dict[int, Scalar]] = []
        self.inverses: list[Scalar] = []
        signs: dict[int, Scalar] = {}
        rows, columns = {i for i, _ in order}, {j for _, j in order}
        for i, j in order:
            rows.discard(i)
            columns.discard(j)
            inverse = 1.0 / U[i][j]
            signs[i] = sign(U[i][j])
            below = {}
            for r in sorted(rows):
                if not is_zero(U[r][j]):
                    below[r] = U[r][j] * inverse
                    for c in sorted(columns):
                        U[r][c] = U[r][c] - below[r] * U[i][c]
            self.L.append(below)
            self.inverses.append(inverse)
        self.U = U
        self.orientation: Scalar = code(
            math.prod((signs[i] for i, _ in each), start=parity(each)) for each in self.blocks
        )
        """The signs of the blocks' determinants, see `code`: the product of the pivots' signs and
        that of their order"""

    def _solved(self, b: Array) -> Array:
        y, x = list(b), [0.0] * len(b)
        for (i, _), below in zip(self.order, self.L, strict=True):
            for r, share in below.items():
                y[r] = y[r] - share * y[i]
        for t in reversed(range(len(y))):
            i, j = self.order[t]
            entry = y[i]
            for _, c in self.order[t + 1 :]:
                entry = entry - self.U[i][c] * x[c]
            x[j] = entry * self.inverses[t]
        return array(x)

    @property
    def spread(self) -> Scalar:
        """Σ a² · Σ 1/pivot², large near a singularity or if the pivots are badly chosen; the sum
        over all blocks."""
        inverses = dict(zip(self.order, self.inverses, strict=True))
        pairs = zip(self.squares, self.blocks, strict=True)
        return sum(
            square * sum((inverses[p] * inverses[p] for p in each), 0.0) for square, each in pairs
        )


class Orthogonalised(_Columns):
    """QR decomposition of a tall matrix of full column rank, by Householder reflections.

    A reflection acts only on the rows in which its column is not structurally zero, and leaves one
    row fewer for the columns after it. So unknowns of one leg cost nothing for the other legs.
    """

    def __init__(self, A: Array, scale: Array | None = None):
        n = A.shape[1]
        super().__init__(np.ones(n) if scale is None else scale)
        self.R = [list(row) for row in A * self.scale]
        self.diagonal: list[tuple[int, Scalar]] = []
        """(row, 1 / its entry) of each column of R"""
        self._reflections: list[tuple[dict[int, Scalar], Scalar]] = []
        rest = list(range(len(A)))
        for k in range(n):
            x = {i: self.R[i][k] for i in rest if not is_zero(self.R[i][k])}
            first = next(iter(x), rest[0])
            rest.remove(first)
            if len(x) < 2:
                # no reflection is needed
                self.diagonal.append((first, 1.0 / self.R[first][k]))
                self._reflections.append(({}, 0.0))
                continue
            # v = x ± |x| e, 1 - 2 v vᵀ / vᵀv takes x to ∓|x| e; the sign that avoids cancellation
            length = sqrt(sum(each * each for each in x.values()))
            to = length * sign(sign(x[first]) + 0.5)
            v = {**x, first: x[first] + to}
            share = 1.0 / (to * v[first])
            for j in range(k + 1, n):
                column = {i: self.R[i][j] for i in v}
                for i, entry in _reflected(column, v, share).items():
                    self.R[i][j] = entry
            self.diagonal.append((first, -1.0 / to))
            self._reflections.append((v, share))

    def _solved(self, b: Array) -> Array:
        y = list(b)
        for v, share in self._reflections:
            for i, entry in _reflected({i: y[i] for i in v}, v, share).items():
                y[i] = entry
        return self._back([y[i] for i, _ in self.diagonal])

    def solve_normal(self, c: Array) -> Array:
        """(AᵀA)⁻¹ c (n,)."""
        if c.ndim == 2:
            return from_columns([self.solve_normal(each) for each in c.T], len(self.scale))
        z: list[Scalar] = []
        c = self.scale * c
        # Rᵀ z = c
        for k, (_, inverse) in enumerate(self.diagonal):
            entry = c[k]
            for j, (i, _) in enumerate(self.diagonal[:k]):
                entry = entry - self.R[i][k] * z[j]
            z.append(entry * inverse)
        return array(self.scale * self._back(z))

    def _back(self, y: Sequence[Scalar]) -> Array:
        """The solution x of R x = y."""
        x = list(y)
        for k, (i, inverse) in reversed([*enumerate(self.diagonal)]):
            for j in range(k + 1, len(x)):
                x[k] = x[k] - self.R[i][j] * x[j]
            x[k] = x[k] * inverse
        return array(x)


Solver = Dense | Eliminated | Orthogonalised


def _reflected(x: dict[int, Scalar], v: dict[int, Scalar], share: Scalar) -> dict[int, Scalar]:
    """x - v (vᵀx)·share, only in the rows of v."""
    if all(map(is_zero, x.values())):
        return {}
    along = sum(v[i] * entry for i, entry in x.items()) * share
    return {i: entry - v[i] * along for i, entry in x.items()}


def transposed(matrix: Array) -> Array:
    """The transposes (…, n, m) of matrices (…, m, n)."""
    return np.swapaxes(matrix, -1, -2)
