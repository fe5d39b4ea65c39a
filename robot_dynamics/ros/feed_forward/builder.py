"""New models are built beside the control loop, one at a time, and handed over finished."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ...description import load, load_urdf_text
from ...errors import RobotDynamicsError
from ...mechanism import Inertial, Mechanism
from .model import Model, Wish
from .parameters import Settings

SWITCH_INTERVAL = 2e-4
"""s: how long a build may keep Python's lock from the control loop (5 ms where nobody builds)"""


class Built(NamedTuple):
    """A finished change: a model, or why there is none."""

    change: str
    model: Model | None
    error: RobotDynamicsError | None


def build(
    current: Model | None,
    change: str,
    value: Any,
    settings: Settings,
    read: Callable[[str], Mechanism] = load,
) -> Model:
    """The model after one change.

    Args:
        current: the model in use; None: there is no robot yet.
        change: description, parameters or payload.
        value: a description's path or text; settings; or (link, Inertial).
        settings: those to start from while there is no model.
        read: what makes a mechanism of a description; `load_urdf_text` where it comes by topic.

    Raises:
        RobotDynamicsError: the change makes no robot; nothing has changed.
    """
    if change == "description":
        mechanism = read(value)
        payloads = {} if current is None else dict(current.wish.payloads)
        links = {link.name for link in mechanism.links}
        payloads = {link: payload for link, payload in payloads.items() if link in links}
        settings = settings if current is None else current.wish.settings
        return Model(Wish(mechanism, settings, payloads), current)
    assert current is not None
    if change == "parameters":
        return Model(replace(current.wish, settings=value), current)
    link, payload = value
    payloads = {**current.wish.payloads, link: payload}
    if payload.is_nothing:
        del payloads[link]
    return Model(replace(current.wish, payloads=payloads), current)


class Builder:
    """A queue of changes and one thread at a time that works on it.

    A later change of the same kind (of the same link) takes the place of one that still waits.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self._waiting: dict[tuple[str, str], Any] = {}
        self._running: threading.Thread | None = None
        self._result: Built | None = None

    def ask(self, change: str, value: Settings | str | tuple[str, Inertial]) -> None:
        """Have a change made."""
        link = value[0] if isinstance(value, tuple) else ""
        self._waiting[change, link] = value

    def withdraw(self, change: str) -> None:
        """Forget the changes of a kind that still wait."""
        self._waiting = {key: value for key, value in self._waiting.items() if key[0] != change}

    @property
    def busy(self) -> bool:
        return self._running is not None or bool(self._waiting)

    def poll(self, current: Model | None) -> Built | None:
        """A finished change, if there is one; starts the next one on the current model."""
        if self._running is not None:
            if self._running.is_alive():
                return None
            result, self._running, self._result = self._result, None, None
            return result
        if self._waiting:
            # nothing but a description can come first
            key = next((key for key in self._waiting if current or key[0] == "description"), None)
            if key is None:
                self._waiting.clear()
                return None
            value = self._waiting.pop(key)
            work = self._working(current, key[0], value)
            self._running = threading.Thread(target=work, name="build", daemon=True)
            self._running.start()
        return None

    def _working(self, current: Model | None, change: str, value: Any) -> Callable[[], None]:
        def work() -> None:
            usual = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_INTERVAL)
            try:
                model = build(current, change, value, self.settings, load_urdf_text)
                self._result = Built(change, model, None)
            except RobotDynamicsError as error:
                self._result = Built(change, None, error)
            finally:
                sys.setswitchinterval(usual)

        return work
