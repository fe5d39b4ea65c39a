# SPDX-License-Identifier: Apache-2.0
"""External wrenches on links, from WrenchStamped messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import listed, shown
from ...mechanism import Mechanism
from ...scalar import Floats
from .limits import check_added
from .parameters import Settings
from .payload import check_link
from .refusal import RefusedError, Tally
from .stamps import SECOND, Stamps, stamped
from .torque_model import Model

MOST_LINKS = 10
"""Number of links on which wrenches may act at a time: each costs time for every state"""


class Wrench(NamedTuple):
    """An external wrench on a link."""

    value: Floats
    """(6,): the force (N) and the moment (N·m) about the origin of the link's frame, on its axes"""
    time: int
    """Its stamp or the time of its arrival, ns"""


def read(message: Any) -> tuple[str, Floats]:
    """The link's name (frame_id) and the wrench on it, as in `Wrench.value`.

    Raises:
        RefusedError: it is not finite.
    """
    link, force, torque = message.header.frame_id, message.wrench.force, message.wrench.torque
    value = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
    if not np.isfinite(value).all():
        words = f"on {shown(link)}: found NaN or infinity, expected finite numbers"
        raise RefusedError("not finite", words)
    return link, value


class Wrenches:
    """The newest wrench on each link.

    Args:
        tally: logs dropped wrenches.

    Attributes:
        on: the current wrenches, by link.
    """

    def __init__(self, tally: Tally) -> None:
        self.on: dict[str, Wrench] = {}
        self._tally = tally
        self._stamps: dict[str, Stamps] = {}
        self._unchecked: set[str] = set()

    def take(self, message: Any, mechanism: Mechanism, now: int, max_age: float) -> str:
        """Replace the previous wrench on a link by a message's; a zero wrench removes it.

        Args:
            message: a WrenchStamped.
            mechanism: the robot.
            now: the clock, ns.
            max_age: s; 0: no check of its age.

        Returns:
            the link's name.

        Raises:
            RefusedError: it is not finite, its link is unknown, there are wrenches on too many
                links, or its stamp is wrong.
        """
        link, value = read(message)
        check_link(link, mechanism)
        stamps = self._stamps.setdefault(link, Stamps())
        time = stamps.checked(stamped(message.header), now, max_age)
        self._unchecked.add(link)
        if not value.any():
            self.on.pop(link, None)
        elif link not in self.on and len(self.on) >= MOST_LINKS:
            raise RefusedError(
                "too many",
                f"on {shown(link)}: wrenches already act on {MOST_LINKS} other links, the most "
                "allowed; remove one with a zero wrench",
            )
        else:
            # a stamp ahead of the clock must not extend its life
            self.on[link] = Wrench(value, min(time, now) if now else time)
        stamps.accept(time, now)
        return link

    def torques(self, model: Model, q: Floats, now: int, settings: Settings) -> Floats:
        """The wrenches' contribution (m,) to the torques, N·m or N; see `Model.wrench_torques`.

        A wrench that exceeds what the joints can need is dropped and logged.

        Args:
            model: the robot's model.
            q: (k,) positions that the model reads, rad or m.
            now: the clock, ns.
            settings: the current settings.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self.drop_old(now, settings.max_age)
        for link in self._unchecked & model.spec.wrench_links if self._unchecked else ():
            if settings.max_acceleration and link in self.on:
                self._check(link, model, q, settings.max_acceleration)
            # only now: in a state that the mechanism cannot have, it is not checked
            self._unchecked.discard(link)
        return model.wrench_torques({link: wrench.value for link, wrench in self.on.items()}, q)

    def _check(self, link: str, model: Model, q: Floats, largest: float) -> None:
        with np.errstate(all="ignore"):
            added = model.wrench_torques({link: self.on[link].value}, q)
        try:
            check_added(model, largest, q, added, f"the wrench on {shown(link)}")
        except RefusedError as error:
            del self.on[link]
            self._tally.refuse("wrench", error)

    def drop_old(self, now: int, max_age: float) -> None:
        """Drop old wrenches.

        Args:
            now: the clock, ns.
            max_age: the largest age, s; 0: no limit.
        """
        ages = {link: (now - wrench.time) / SECOND for link, wrench in self.on.items()}
        for link, age in ages.items():
            if 0 < max_age < age:
                del self.on[link]
                self._tally.note(
                    "wrench",
                    "over",
                    f"wrench on {shown(link)} dropped: the newest is {age:.3f} s old, expected at "
                    f"most max_age = {max_age:g} s",
                    anew=True,
                )

    def drop_all(self, why: str) -> None:
        """Drop all wrenches, and log the reason."""
        if self.on:
            text = f"wrench on {listed(sorted(self.on))} dropped: {why}"
            self._tally.note("wrench", "dropped", text)
        self.on.clear()

    def clear(self) -> None:
        """Drop all wrenches and their stamps."""
        self.on.clear()
        self._stamps.clear()
