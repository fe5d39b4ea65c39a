# SPDX-License-Identifier: Apache-2.0
"""Runs a build in a separate process, to keep it from holding up the control loop.

    the caller             the process of one build
    ----------             ------------------------
    BuildProcess()   ──→   starts: in its own session, low priority, this process's module path
    Draft            ──→   reads the description, compiles the kernels into the cache
                     ←──   its messages, then the mechanism, or why there is none

The process ends after its answer. It is killed, together with the compilers it has started, if it
takes too long, if its answer is no longer needed, or if the process that started it ends for any
reason, which closes that side of the connection.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from ...description import load_urdf_text
from ...description.fields import DescriptionWarning
from ...errors import RobotDynamicsError, one_line
from ...mechanism import Inertial, Mechanism
from .parameters import Settings
from .torque_model import Model, ModelSpec

PATIENCE = 300.0
"""The longest time of a build, s"""

MOST_WORDS = 20
"""Number of warnings of one build that are passed on"""

NICENESS = 10
"""The niceness of a build, which gives the control loop priority on a busy machine"""

_START = (
    f"import sys; sys.path[:] = sys.argv[2:]; from {__name__} import main; main(int(sys.argv[1]))"
)


class BuildError(RobotDynamicsError):
    """A build that did not finish."""


@dataclass(frozen=True)
class Draft:
    """The basis of a model; a new description is still text."""

    source: str | Mechanism
    """URDF text, or the mechanism that is in use"""
    settings: Settings
    payloads: Mapping[str, Inertial] = field(default_factory=dict)
    wrench_links: frozenset[str] = frozenset()

    @property
    def is_new(self) -> bool:
        """Is there a new description to read?"""
        return isinstance(self.source, str)

    def spec(self) -> ModelSpec:
        """What the model is built from, with those payloads and links with wrenches that the robot
        has.

        Raises:
            DescriptionError: the text does not describe a robot.
        """
        mechanism = self.source
        if isinstance(mechanism, str):
            mechanism = load_urdf_text(mechanism)
        links = {link.name for link in mechanism.links}
        carried = {link: each for link, each in self.payloads.items() if link in links}
        return ModelSpec(mechanism, self.settings, carried, self.wrench_links & links)


class BuildProcess:
    """The caller's side of the process of one build.

    A context manager: at its end the process no longer exists.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self) -> None:
        self._connection, other = Pipe()
        with other:
            self._process = subprocess.Popen(  # noqa: S603  no shell, our own arguments
                [sys.executable, "-c", _START, str(other.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )

    def __enter__(self) -> BuildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.wait()
        self._connection.close()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process and everything it has started.

        May be called repeatedly and from any thread.
        """
        # it has its own session: the group exists as long as one of its processes does
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def mechanism(
        self, draft: Draft, tell: Callable[[str], None], patience: float = PATIENCE
    ) -> Mechanism:
        """Build a draft; afterwards, a model of its mechanism can be created quickly.

        Args:
            draft: what to build.
            tell: called with each message of the build.
            patience: the longest time it may take, s.

        Returns:
            the mechanism.

        Raises:
            RobotDynamicsError: the draft is invalid.
            BuildError: the process ended without an answer, or took too long.
        """
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(patience, give_up)
        timer.daemon = True
        timer.start()
        try:
            self._connection.send(draft)
            while True:
                kind, content = self._connection.recv()
                if kind == "word":
                    tell(content)
                elif kind == "error":
                    raise content
                else:
                    mechanism: Mechanism = content
                    return mechanism
        except (EOFError, OSError):
            if late.is_set():
                raise BuildError(f"the build took longer than {patience:g} s") from None
            code = self._process.wait()
            raise BuildError(
                f"the build process ended without an answer ({_words(code)})"
            ) from None
        finally:
            timer.cancel()


def _words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


# The other side


def main(descriptor: int) -> None:
    """Run one build; this is the entry point of the process.

    Args:
        descriptor: the file descriptor of the connection to the caller.
    """
    os.nice(NICENESS)
    # ends the process even if the interpreter hangs
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 1.1 * PATIENCE)
    connection = Connection(descriptor)
    lock = threading.Lock()

    def say(kind: str, content: object) -> None:
        with lock:
            connection.send((kind, content))

    with suppress(EOFError, OSError):
        draft = connection.recv()
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        _pass_on(lambda text: say("word", text))
        say(*_answer(draft))
    os._exit(0)


def _answer(draft: Draft) -> tuple[str, object]:
    try:
        return "mechanism", Model(draft.spec()).spec.mechanism
    except RobotDynamicsError as error:
        return "error", _portable(error)
    # any error is reported by the other process
    except BaseException as error:  # noqa: BLE001
        return "error", unexpected(error)


def unexpected(error: BaseException) -> BuildError:
    """An unexpected error, in one line."""
    words = str(error)
    return BuildError(f"{type(error).__name__}{': ' if words else ''}{words}")


def _portable(error: RobotDynamicsError) -> RobotDynamicsError:
    error.value = None
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    except Exception:  # noqa: BLE001  with arguments of its own
        return RobotDynamicsError(str(error), name=error.name)
    return error


def _end_with(connection: Connection) -> None:
    """Kill this process when the other one ends: nothing else can arrive on the connection."""
    connection.poll(None)
    os.killpg(0, signal.SIGKILL)


def _pass_on(say: Callable[[str], None]) -> None:
    """Send warnings about the description and about long builds to the other side.

    Those about backends are not sent: they appear there when the model is created again.
    """
    count = 0

    def tell(text: object) -> None:
        nonlocal count
        count += 1
        if count <= MOST_WORDS:
            say(one_line(text))
        elif count == MOST_WORDS + 1:
            say("further warnings are not shown")

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    logging.getLogger("robot_dynamics").addHandler(Handler(logging.WARNING))
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", DescriptionWarning)
    warnings.showwarning = lambda message, *_: tell(message)
