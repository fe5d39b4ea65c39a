# SPDX-License-Identifier: Apache-2.0
"""What a description gets slightly wrong, though only one thing can be meant."""

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
    """What is wrong, and what was made of it"""
    home: Mapping[str, float]
    """A closed configuration, by joint, rad or m"""
    held: tuple[str, ...] = ()
    """Joints to hold where they are in it"""
    spins: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """Of links that these joints move: the axis about which they spin (see `Mechanism.spins`)"""
    driving: tuple[str, ...] = ()
    """Where there are more motors than needed: those whose positions are q"""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of all motors: efforts of equal weight in the least-norm distribution, N·m or N"""

    def mended(self, mechanism: Mechanism) -> Mechanism:
        """The same robot, home closed and these joints held."""
        places = {name: self.home[name] for name in self.held}
        home = {name: value for name, value in self.home.items() if name not in places}
        sensed = tuple(name for name in mechanism.sensed if name not in places)
        driving = self.driving or mechanism.driving
        shares = self.shares or mechanism.shares
        left = with_locked_joints(mechanism, places)
        spins = {**mechanism.spins, **self.spins}
        return replace(left, home=home, sensed=sensed, driving=driving, shares=shares, spins=spins)

    def refusal(self) -> DescriptionError:
        """The error for callers that accept no mend."""
        name = "loops" if self.held else "home"
        return DescriptionError(self.message, name=name, value=list(self.held))
