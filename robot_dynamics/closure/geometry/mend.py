# SPDX-License-Identifier: Apache-2.0
"""Corrections of small errors in a description, where only one thing can be meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...errors import DescriptionError
from ...mechanism import Mechanism
from ...mechanism.transform import with_locked_joints
from ...scalar import Array


@dataclass(frozen=True)
class Mend:
    """A rough home, loose joints that do no work, or more motors than are needed."""

    message: str
    """What is wrong, and how it was corrected"""
    home: Mapping[str, float]
    """A closed configuration: positions by joint, rad or m"""
    held: tuple[str, ...] = ()
    """Joints to lock at these positions"""
    spins: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """By link moved by these joints: the axis about which it spins (see `Mechanism.spins`)"""
    driving: tuple[str, ...] = ()
    """If there are more motors than needed: those whose positions are q"""
    shares: Mapping[str, float] = field(default_factory=dict)
    """By motor: efforts of equal weight in the least-norm distribution, N·m or N"""

    def mended(self, mechanism: Mechanism) -> Mechanism:
        """The same robot with these corrections."""
        places = {name: self.home[name] for name in self.held}
        home = {name: value for name, value in self.home.items() if name not in places}
        sensed = tuple(name for name in mechanism.sensed if name not in places)
        driving = self.driving or mechanism.driving
        shares = self.shares or mechanism.shares
        left = with_locked_joints(mechanism, places)
        spins = {**mechanism.spins, **self.spins}
        return replace(left, home=home, sensed=sensed, driving=driving, shares=shares, spins=spins)

    def refusal(self) -> DescriptionError:
        """The error for callers that accept no correction."""
        name = "loops" if self.held else "home"
        return DescriptionError(self.message, name=name, value=list(self.held))
