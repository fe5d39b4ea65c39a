# SPDX-License-Identifier: Apache-2.0
"""Matrices that consist of blocks, over any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..scalar import Array, is_zero


def determinant(A: Array) -> Any:
    """The determinant, expanded along the first row."""
    if len(A) == 1:
        return A[0, 0]
    minors = (np.delete(A[1:], j, axis=1) for j in range(len(A)))
    return sum((-1) ** j * A[0, j] * determinant(minor) for j, minor in enumerate(minors))


def adjugate(A: Array) -> Array:
    """The adjugate: A adjugate(A) = determinant(A) · 1."""
    result = np.empty(A.shape, dtype=object)
    for i, j in np.ndindex(*A.shape):
        minor = np.delete(np.delete(A, j, axis=0), i, axis=1)
        result[i, j] = (-1) ** (i + j) * (determinant(minor) if len(minor) else 1.0)
    return result


def blocks(A: Array) -> list[list[int]]:
    """The groups of columns that are coupled by non-zero entries in a common row."""
    groups: list[set[int]] = []
    for i in range(A.shape[0]):
        joined = {j for j in range(A.shape[1]) if not is_zero(A[i, j])}
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return [sorted(group) for group in groups if group]
