# SPDX-License-Identifier: Apache-2.0
"""A robot at a position, with the same interface with and without loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numpy.typing import ArrayLike

from ..scalar import Floats


class Placed(Protocol):
    """A robot's tree at the robot's position q (…, k); links are given by name."""

    @property
    def q(self) -> Floats:
        """(…, n) of the tree"""

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """The torques (…, n_m) that a wrench (…, 6) on the link, on base axes, provides."""

    def state(
        self, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """(q, qd, qdd) (…, n) of the tree's joints of these names, at rates and accelerations
        (…, k)."""

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:
        """The motors' torques (…, n_m) equivalent to torques (…, n) at these joints."""
