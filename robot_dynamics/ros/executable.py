# SPDX-License-Identifier: Apache-2.0
"""How an executable with one node starts, runs and ends.

This module imports quickly, which lets signals be handled while everything else is being imported.
"""

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
"""s after which an ending process is terminated, whatever the threads of a library still do"""


class Ending:
    """Handles the signals that end the process.

    The first signal is handled according to the current phase; any others are ignored.
    """

    def __init__(self) -> None:
        self.asked = False
        self._answer: Callable[[], None] = _leave
        for number in SIGNALS:
            # with nohup, SIGHUP stays ignored
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first:
            self._answer()

    def interrupts(self) -> None:
        """From now on, let a signal interrupt the running code by KeyboardInterrupt."""
        self._answer = _interrupt

    def waits(self) -> None:
        """From now on, only record a signal."""
        self._answer = _note

    def comes(self) -> None:
        """From now on, ignore signals, and end the process within `LAST_SECONDS`."""
        self.asked = True
        # a thread in C, which does not need the interpreter that a hanging library may hold
        faulthandler.dump_traceback_later(LAST_SECONDS, exit=True, file=2)
        for number in SIGNALS:
            # a Python handler would cease to exist before the process does
            signal.signal(number, signal.SIG_IGN)


def _leave() -> None:
    # there is nothing to clean up yet, and an exception during an import might be swallowed
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
    """Create a node and run it until one or more signals end it.

    The node must have a timer, as signals are checked between two callbacks.

    Args:
        name: the executable's name, for messages.
        load: imports the modules and returns a function that creates the node.
        arguments: the command line's arguments; None: those of the process.
        finish: called with the node at the end, for whatever reason it ends, while it can still
            publish.

    Returns:
        the exit code: 0 after a signal; 1, after one line on stderr, if the node could not start
        or failed; 2 for invalid arguments.
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
        # we handle the signals: the last torques are published before ROS is shut down
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        node = make()
        ending.waits()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not ending.asked:
            executor.spin_once()
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  on any error, publish the last torques first
        # code that a signal interrupts may raise any error
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
    """An error as one line.

    It is the error's text if a user can cause the error; otherwise its type and the line of this
    package where it occurred are added.
    """
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
    """Open closed standard streams on /dev/null; otherwise the next socket would get such a
    stream's number, and receive log lines as data."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _flush() -> None:
    """Flush the standard streams; a closed one is not an error of the node."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
