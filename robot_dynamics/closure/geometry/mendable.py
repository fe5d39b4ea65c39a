"""What a description does not say quite right, but can only mean one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import DescriptionError
from ...mechanism import Mechanism
from ...mechanism.transform import with_locked_joints


class Mendable(DescriptionError):  # noqa: N818  it is caught, mended and said as a warning
    """A rough home, or loose joints that do no work. `mended` gives the robot without it.

    Args:
        home: a closed configuration, by joint.
        held: joints to hold where they are in it.
    """

    def __init__(
        self, message: str, *, home: Mapping[str, float], held: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, name="loops" if held else "home", value=list(held))
        self.home: Mapping[str, float] = dict(home)
        self._held = held

    def mended(self, mechanism: Mechanism) -> Mechanism:
        """The same robot, home closed and these joints held."""
        places = {name: self.home[name] for name in self._held}
        home = {name: value for name, value in self.home.items() if name not in places}
        sensed = tuple(name for name in mechanism.sensed if name not in places)
        return replace(with_locked_joints(mechanism, places), home=home, sensed=sensed)
