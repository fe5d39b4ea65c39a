# SPDX-License-Identifier: Apache-2.0
"""An object derived from a robot: built on first use, and rebound when the robot changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ..formulations.layout import Recompile

T = TypeVar("T")
R = TypeVar("R")


class Companion(Generic[R, T]):
    """An object T derived from a robot R. If two threads build it at once, the results are equal.

    Args:
        make: builds the object from the robot.
        bind: adapts the object of another robot of the same geometry to this robot, without
            compiling anything, or raises Recompile.
        before: the object of the robot before a change; None: there is none.
    """

    def __init__(self, make: Callable[[R], T], bind: Callable[[T, R], T], before: T | None = None):
        self._make, self._bind, self._before = make, bind, before
        self._made: T | None = None

    def of(self, robot: R) -> T:
        """The object for the robot, which must be the same in every call."""
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
        """The companion for the robot after a change."""
        return Companion(self._make, self._bind, self._made or self._before)
