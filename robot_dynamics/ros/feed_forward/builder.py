# SPDX-License-Identifier: Apache-2.0
"""The robot as requested: a description, parameters and payloads, changed one at a time.

Accepted values are in effect. For a change, a model is built in the background; the change takes
effect when the finished model is handed over. Until then, and if no model can be built, everything
stays as it was.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...description.files import MOST_BYTES
from ...errors import DescriptionError, RobotDynamicsError, one_line, wrong
from ...mechanism import Inertial, Mechanism
from ...mechanism.dynamic_parameters import numbers_of
from . import payload as payloads
from .background import short_switch_interval
from .parameters import Settings
from .process import BuildProcess, Draft, unexpected
from .refusal import RefusedError, no_robot
from .torque_model import Model

CLOSING = 5.0
"""s to wait at the end for a build to stop"""

MOST_WAITING = 100
"""Changes that may wait in the queue"""


@dataclass(frozen=True, eq=False)
class Change:
    """A requested change."""

    kind: str
    """description, parameters, payload or wrench"""
    value: Any
    """Text; values by name; (link, Inertial); or the link on which wrenches will act"""
    sender: Any = None
    """Any object that the caller wants back in the outcome"""


class Outcome(NamedTuple):
    """The result of a change. It takes effect when it is accepted."""

    change: Change
    model: Model | None = None
    """The new model; None: the model does not change"""
    error: RobotDynamicsError | None = None
    """Why nothing changes; None: the change is possible"""
    still_refused: RobotDynamicsError | None = None
    """Why the newest description is refused with the new parameters as well"""


class Builder:
    """Accepted settings, and a queue of changes to them and to the robot.

    Args:
        settings: the initial settings.
        tell: called with each message of a build, from another thread.
        process: creates the process of a build.

    Attributes:
        settings: the accepted settings.
    """

    def __init__(
        self,
        settings: Settings,
        tell: Callable[[str], None] = lambda _: None,
        process: Callable[[], Any] = BuildProcess,
    ):
        self.settings = settings
        self._tell = tell
        self._process = process
        self._waiting: deque[Change] = deque()
        self._work: _Work | None = None
        self._newest = ""
        self._refused = False

    # Requests

    def describe(self, text: str) -> None:
        """Request another robot.

        An older description that waits or is being built is dropped. Requesting the newest
        description again changes nothing unless it was refused.

        Args:
            text: URDF.

        Raises:
            DescriptionError: it is too large.
        """
        if len(text) > MOST_BYTES:
            raise wrong(DescriptionError, "characters", len(text), f"at most {MOST_BYTES}")
        if text == self._newest and not self._refused:
            return
        self._newest, self._refused = text, False
        self._forget(lambda change: change.kind == "description")
        self._waiting.append(Change("description", text))

    def carry(self, link: str, payload: Inertial, current: Model | None) -> None:
        """Request a payload on a link, or its removal.

        Args:
            link: the link's name.
            payload: the body; one without mass removes the payload.
            current: the model in use; None: there is no robot.

        Raises:
            RefusedError: there is no such link or no robot, or too many changes are waiting.
        """
        if not self.busy:
            if current is None:
                raise no_robot()
            payloads.check_link(link, current.spec.mechanism)
        self._forget(lambda change: change.kind == "payload" and change.value[0] == link)
        self._make_room()
        self._waiting.append(Change("payload", (link, payload)))

    def push(self, link: str) -> bool:
        """Request a model on which wrenches may act at a link.

        Args:
            link: the link's name.

        Returns:
            False if it was requested before.

        Raises:
            RefusedError: too many changes are waiting.
        """
        building = [] if self._work is None else [self._work.change]
        if any(("wrench", link) == (each.kind, each.value) for each in (*self._waiting, *building)):
            return False
        self._make_room()
        self._waiting.append(Change("wrench", link))
        return True

    def set(self, values: Mapping[str, Any], sender: Any = None) -> None:
        """Request other values of parameters.

        Args:
            values: by name.
            sender: see `Change.sender`.

        Raises:
            InputError: the table does not allow a value.
            RefusedError: too many changes are waiting.
        """
        self.settings.changed(values)
        self._make_room()
        self._waiting.append(Change("parameters", dict(values), sender))

    def take(self, values: Mapping[str, Any]) -> None:
        """Set parameters that need no new model; they take effect immediately.

        Args:
            values: by name.

        Raises:
            InputError: the table does not allow a value.
        """
        self.settings = self.settings.changed(values)

    def _make_room(self) -> None:
        if len(self._waiting) >= MOST_WAITING:
            raise RefusedError(
                "too many", f"{MOST_WAITING} changes are already waiting: send it again later"
            )

    def _forget(self, is_outdated: Callable[[Change], bool]) -> None:
        self._waiting = deque(each for each in self._waiting if not is_outdated(each))
        work = self._work
        if work is not None and work.change.kind == "description" and is_outdated(work.change):
            work.cancel()

    # Results

    @property
    def busy(self) -> bool:
        """Is a change being built or waiting?"""
        return self._work is not None or bool(self._waiting)

    @property
    def refused_description(self) -> bool:
        """Was the newest description refused?"""
        return self._refused

    def poll(self, current: Model | None) -> Outcome | None:
        """Return a finished change, if there is one, and start the next.

        Args:
            current: the model in use; None: there is no robot.
        """
        if self._work is None and self._waiting:
            outcome = self._begin(self._waiting.popleft(), current)
            if outcome is not None:
                return outcome
        if self._work is None or self._work.is_alive:
            return None
        work, self._work = self._work, None
        if work.cancelled:
            return None
        return work.outcome

    def accept(self, outcome: Outcome, current: Model | None) -> None:
        """Put a finished change into effect; its model is to be used from the next state on.

        Args:
            outcome: the result of the change.
            current: the model in use until now; None: there was no robot.
        """
        change, model = outcome.change, outcome.model
        if change.kind == "parameters":
            self.settings = self.settings.changed(change.value)
        if model is None:
            return
        # settings that need no new model may have changed in the meantime
        model.spec = replace(model.spec, settings=self.settings)
        if current is not None:
            model.continue_from(current)
        if current is None or model.spec.mechanism is not current.spec.mechanism:
            self._refused = False

    def reject(self, outcome: Outcome) -> None:
        """Record that a change was refused; nothing changes.

        Args:
            outcome: the result of the change.
        """
        if outcome.change.kind == "description" and outcome.change.value == self._newest:
            self._refused = True

    def wait(self, timeout: float) -> None:
        """Wait at most `timeout` s until the current build is finished."""
        if self._work is not None:
            self._work.join(timeout)

    def clear(self) -> list[Change]:
        """Drop all descriptions and changes that are not in effect yet, and return the changes."""
        self._newest, self._refused = "", False
        return self.close()

    def close(self) -> list[Change]:
        """Stop the current build, wait until it has stopped, and return all dropped changes."""
        dropped = [] if self._work is None else [self._work.change]
        dropped += self._waiting
        self._waiting.clear()
        if self._work is not None:
            self._work.cancel()
            self.wait(CLOSING)
            self._work = None
        return dropped

    def _begin(self, change: Change, current: Model | None) -> Outcome | None:
        """Start a build, or return the outcome if there is nothing to build."""
        try:
            drafts = self._drafts(change, current)
        except RobotDynamicsError as error:
            return Outcome(change, error=error)
        if not drafts:
            return Outcome(change)
        self._work = _Work(change, drafts, current, self._process, self._tell)
        return None

    def _drafts(self, change: Change, current: Model | None) -> list[Draft]:
        """The drafts to try for a change, of which the first valid one is used.

        An empty list means that nothing needs to be built.

        Raises:
            RobotDynamicsError: the change is impossible.
        """
        carried = {} if current is None else current.spec.payloads
        wrench_links = frozenset[str]() if current is None else current.spec.wrench_links
        if change.kind == "description":
            return [Draft(change.value, self.settings, carried, wrench_links)]
        if change.kind == "parameters":
            settings = self.settings.changed(change.value)
            if settings == self.settings:
                return []
            # a description that was refused may be valid with other parameters
            sources: list[str | Mechanism] = [self._newest] if self._refused else []
            if current is not None:
                sources.append(current.spec.mechanism)
            return [Draft(source, settings, carried, wrench_links) for source in sources]
        if current is None:
            raise no_robot()
        mechanism = current.spec.mechanism
        if change.kind == "wrench":
            payloads.check_link(change.value, mechanism)
            return [Draft(mechanism, self.settings, carried, wrench_links | {change.value})]
        link, payload = change.value
        payloads.check_link(link, mechanism)
        if (numbers_of(payload) == numbers_of(carried.get(link, Inertial()))).all():
            return []
        kept = {name: each for name, each in carried.items() if name != link}
        added = {} if payload.is_nothing else {link: payload}
        return [Draft(mechanism, self.settings, kept | added, wrench_links)]


class _Work:
    """A thread that builds a model; slow steps run in a separate process."""

    def __init__(
        self,
        change: Change,
        drafts: list[Draft],
        current: Model | None,
        process: Callable[[], Any],
        tell: Callable[[str], None],
    ):
        self.change = change
        self.outcome = Outcome(change)
        self.cancelled = False
        self._drafts, self._current = drafts, current
        self._start_process, self._tell = process, tell
        self._process: Any = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="build", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def cancel(self) -> None:
        """Discard the outcome."""
        with self._lock:
            self.cancelled = True
            if self._process is not None:
                self._process.kill()

    def _run(self) -> None:
        refused: RobotDynamicsError | None = None
        error: RobotDynamicsError | None = None
        for draft in self._drafts:
            try:
                model = self._made(draft)
                self.outcome = Outcome(self.change, model, still_refused=refused)
                return
            except RobotDynamicsError as found:
                error = found.with_traceback(None)
            # on any error the control loop continues, and the error is reported
            except BaseException as found:  # noqa: BLE001
                error = unexpected(found)
            if draft.is_new and self.change.kind == "parameters":
                refused, error = error, None
        self.outcome = Outcome(self.change, error=error, still_refused=refused)

    def _made(self, draft: Draft) -> Model:
        if draft.is_new:
            draft = replace(draft, source=self._prepared(draft))
        elif self._current is None or draft.spec().dynamics_key != self._current.spec.dynamics_key:
            self._prepared(draft)
        with short_switch_interval():
            return Model(draft.spec())

    def _prepared(self, draft: Draft) -> Mechanism:
        with self._start_process() as process:
            with self._lock:
                self._process = process
                if self.cancelled:
                    process.kill()
            try:
                mechanism: Mechanism = process.mechanism(
                    draft, lambda text: self._tell(one_line(text))
                )
                return mechanism
            finally:
                with self._lock:
                    self._process = None
