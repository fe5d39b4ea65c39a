"""What a description does not say quite right, but can only mean one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import DescriptionError
from ...mechanism import Mechanism
from ...mechanism.transform import with_locked_joints


class Mendable(DescriptionError):  # noqa: N818  it is caught, mended and said as a warning
    """A rough home, loose joints that do no work, more motors than are needed. `mended` gives the
    robot without it.

    Args:
        home: a closed configuration, by joint.
        held: joints to hold where they are in it.
        driving: of too many motors those whose positions are q.
        shares: torques of all motors that count alike, N·m or N.
    """

    def __init__(
        self,
        message: str,
        *,
        home: Mapping[str, float],
        held: tuple[str, ...] = (),
        driving: tuple[str, ...] = (),
        shares: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(message, name="loops" if held else "home", value=list(held))
        self.home: Mapping[str, float] = dict(home)
        self._held, self._driving, self._shares = held, driving, shares

    def mended(self, mechanism: Mechanism) -> Mechanism:
        """The same robot, home closed and these joints held."""
        places = {name: self.home[name] for name in self._held}
        home = {name: value for name, value in self.home.items() if name not in places}
        sensed = tuple(name for name in mechanism.sensed if name not in places)
        driving = self._driving or mechanism.driving
        shares = mechanism.shares if self._shares is None else self._shares
        left = with_locked_joints(mechanism, places)
        return replace(left, home=home, sensed=sensed, driving=driving, shares=shares)
