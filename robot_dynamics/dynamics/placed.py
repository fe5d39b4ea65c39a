# SPDX-License-Identifier: Apache-2.0
"""A robot where it is: what asks for forces and rates need not know of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numpy.typing import ArrayLike

from ..scalar import Floats


class Placed(Protocol):
    """A robot's tree where the robot is at q (…, k). Links are known by name."""

    @property
    def q(self) -> Floats:
        """(…, n) of the tree"""

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """What a wrench (…, 6) on the link, on base axes, takes of the torques (…, n_m)."""

    def state(
        self, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """(q, qd, qdd) (…, n) of the tree's joints of these names, at rates and accelerations
        (…, k)."""

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:
        """Torques (…, n_m) of the motors that do what torques (…, n) at these joints do."""
