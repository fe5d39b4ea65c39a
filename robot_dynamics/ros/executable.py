# SPDX-License-Identifier: Apache-2.0
"""How an executable with one node starts, runs and ends. Light to import: signals are handled from
here on, while everything else is still being imported."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import RobotDynamicsError, one_line
from .arguments import answered

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""The signals that end a process and can be handled: Ctrl-C, kill, a closed terminal, Ctrl-\\"""

LAST_SECONDS = 20.0
"""s from the order to end until the process is gone, whatever a library's threads do meanwhile"""


class Ending:
    """Signals that ask for the end. The first is handled as the phase demands, the others change
    nothing."""

    def __init__(self) -> None:
        self.asked = False
        self._answer: Callable[[], None] = _leave
        for number in SIGNALS:
            # who said nohup means it
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first:
            self._answer()

    def interrupts(self) -> None:
        """From now on a signal breaks off what runs, by KeyboardInterrupt."""
        self._answer = _interrupt

    def waits(self) -> None:
        """From now on a signal is noted, and no more."""
        self._answer = _note

    def comes(self) -> None:
        """From now on a signal changes nothing, and the process ends soon."""
        self.asked = True
        # a thread in C: it needs no interpreter, which a hanging library may hold
        faulthandler.dump_traceback_later(LAST_SECONDS, exit=True, file=2)
        for number in SIGNALS:
            # a handler of Python's own is gone before the process is
            signal.signal(number, signal.SIG_IGN)


def _leave() -> None:
    # nothing is there yet that could be left behind, and an exception in the midst of an import
    # might not get through
    os._exit(0)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _note() -> None:
    pass


def run(
    name: str,
    load: Callable[[], Callable[[], Any]],
    arguments: Sequence[str] | None,
    finish: Callable[[Any], None] = lambda _: None,
) -> int:
    """Make a node and run it until a signal asks for its end, be it once or more often.

    The node has to have a timer: between two callbacks a signal is seen.

    Args:
        name: of the executable, for messages.
        load: imports what makes the node.
        arguments: of the command line; None: those of the process.
        finish: is called with the node at the end, whatever ended it, while it can still publish.

    Returns:
        the exit code: 0 after a signal; 1 after one line on stderr, where it could not start or
        failed; 2 for arguments that ROS does not know.
    """
    if (code := answered(name, arguments)) is not None:
        return code
    ending = Ending()
    _open_standard_streams()
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    faults: list[str] = []
    node = None
    try:
        make = load()
        ending.interrupts()
        # the signals are ours: the last words go out before ROS is shut down
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        node = make()
        ending.waits()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not ending.asked:
            executor.spin_once()
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  whatever it is, the last words come first
        # what a signal broke off may come out as anything
        if node is not None or not ending.asked:
            faults.append(told(error))
    ending.comes()
    if node is not None:
        for last in (finish, lambda node: node.destroy_node()):
            try:
                last(node)
            except Exception as error:  # noqa: BLE001
                faults.append(told(error))
    rclpy.try_shutdown()
    for fault in faults:
        say(f"{name}: {fault}")
    _flush()
    return 1 if faults else 0


def told(error: Exception) -> str:
    """An error in one line: its words where it is one that a caller can cause, else also its kind
    and the line of this package that it comes from."""
    from rclpy.exceptions import ParameterException

    # RuntimeError: ROS could not read the command line
    if isinstance(error, (RobotDynamicsError, ParameterException, OSError, RuntimeError)):
        return one_line(error)
    here = str(Path(__file__).parent.parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"unexpected {type(error).__name__}: {one_line(error)}{where}"


def say(line: str) -> None:
    """Print a line on stderr, if it is open."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _open_standard_streams() -> None:
    """A closed one is nowhere: else the next socket gets its number, and log lines for data."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _flush() -> None:
    """A closed stream is no failure of the node."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
