# SPDX-License-Identifier: Apache-2.0
"""What a robot has beside its torques: built on first use, bound again when the robot changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ..formulations.layout import Recompile

T = TypeVar("T")
R = TypeVar("R")


class Companion(Generic[R, T]):
    """One thing made of a robot R. Two threads may both make it: what they make is the same.

    Args:
        make: from the robot.
        bind: from what was made of another robot of the same geometry, and the robot; it compiles
            nothing, or raises Recompile.
    """

    def __init__(self, make: Callable[[R], T], bind: Callable[[T, R], T], before: T | None = None):
        self._make, self._bind, self._before = make, bind, before
        self._made: T | None = None

    def of(self, robot: R) -> T:
        """The robot's own; it is always the same robot that asks."""
        made = self._made
        if made is None:
            try:
                made = (
                    self._make(robot) if self._before is None else self._bind(self._before, robot)
                )
            except Recompile:
                made = self._make(robot)
            self._made = made
        return made

    def after(self) -> Companion[R, T]:
        """For the robot after a change."""
        return Companion(self._make, self._bind, self._made or self._before)
