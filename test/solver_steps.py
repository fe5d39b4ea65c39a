# SPDX-License-Identifier: Apache-2.0
"""Counts the steps of the solver of the fit."""

from __future__ import annotations

import pytest

from robot_dynamics.identification import solve


def steps_of_paths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of steps on each primal-dual path from now on."""
    steps: list[int] = []
    path, changes = solve._near_minimum, solve._relative_changes

    def begun(cost):
        steps.append(0)
        monkeypatch.setattr(solve, "_relative_changes", counted)
        try:
            return path(cost)
        finally:
            monkeypatch.setattr(solve, "_relative_changes", changes)

    def counted(*given):
        steps[-1] += 1
        return changes(*given)

    monkeypatch.setattr(solve, "_near_minimum", begun)
    return steps
