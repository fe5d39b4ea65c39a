# SPDX-License-Identifier: Apache-2.0
"""How an executable with one node reads its command line, starts, runs and ends.

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

from ..errors import RobotDynamicsError, interrupt_handled, one_line, shown

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""The signals that end a process and can be handled: Ctrl-C, kill, a closed terminal, Ctrl-\\"""

SHUTDOWN_TIMEOUT = 20.0
"""s after which an ending process is killed, whatever a library's threads are still doing"""

USAGE = """usage: {name} --ros-args [-p PARAMETER:=VALUE ...] [--params-file FILE] [-r FROM:=TO ...]

{examples}

`ros2 param list` and `ros2 param describe` show the parameters of a running node; they and the
topics of feed_forward are in docs/node.md."""

EXAMPLES = {
    "feed_forward": (
        "-p description:=/path/to/robot.urdf",
        "-r ~/commands:=/effort_controller/commands   # the robot comes from robot_description",
    ),
    "simulated_robot": (
        "-p description:=/path/to/robot.urdf -r ~/commands:=/effort_controller/commands",
    ),
    "trajectory_source": (
        "-p file:=/path/to/motion.yaml -r joint_trajectory:=/feed_forward/command",
    ),
    "watch": (
        "-p link:=tool0 -r ~/robot_description:=/robot_description "
        "-r ~/payloads:=/feed_forward/payloads",
    ),
}

_PATHS = {"trajectory_source": ("a motion", "file")}


class SignalHandler:
    """Handles the signals that end the process.

    The first signal is handled according to the current phase; any others are ignored.
    """

    def __init__(self) -> None:
        self.received = False
        self._respond: Callable[[], None] = _leave
        for number in SIGNALS:
            # with nohup, SIGHUP stays ignored
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        first, self.received = not self.received, True
        if first:
            self._respond()

    def interrupt(self) -> None:
        """From now on, let a signal interrupt the running code by KeyboardInterrupt."""
        self._respond = _interrupt

    def record(self) -> None:
        """From now on, only record a signal."""
        self._respond = _note

    def begin_shutdown(self) -> None:
        """From now on, ignore signals, and end the process within `SHUTDOWN_TIMEOUT`."""
        self.received = True
        # a thread in C, which does not need the interpreter that a hanging library may hold
        faulthandler.dump_traceback_later(SHUTDOWN_TIMEOUT, exit=True, file=2)
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
    signals = SignalHandler()
    _open_standard_streams()
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    faults: list[str] = []
    node = None
    try:
        make = load()
        signals.interrupt()
        # we handle the signals: the last torques are published before ROS is shut down
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        node = make()
        signals.record()
        # an executor that is not shut down may print a traceback when the interpreter exits
        with SingleThreadedExecutor() as executor:
            executor.add_node(node)
            while not signals.received:
                executor.spin_once()
    except KeyboardInterrupt:
        interrupt_handled()
    except Exception as error:  # noqa: BLE001  on any error, publish the last torques first
        # code that a signal interrupts may raise any error
        if node is not None or not signals.received:
            faults.append(error_line(error))
    signals.begin_shutdown()
    if node is not None:
        for last in (finish, lambda node: node.destroy_node()):
            try:
                last(node)
            except Exception as error:  # noqa: BLE001
                faults.append(error_line(error))
    rclpy.try_shutdown()
    for fault in faults:
        print_error(f"{name}: {fault}")
    _flush()
    return 1 if faults else 0


def answered(name: str, arguments: Sequence[str] | None) -> int | None:
    """Respond to arguments that are not ROS arguments.

    Args:
        name: the executable's name, one of `EXAMPLES`.
        arguments: the command line's arguments; None: those of the process.

    Returns:
        the exit code, or None if there are no such arguments.
    """
    own = _own(sys.argv[1:] if arguments is None else arguments)
    if not own:
        return None
    if {"--help", "-h"} & set(own):
        lines = (f"  {name} --ros-args {example}" for example in EXAMPLES[name])
        print(USAGE.format(name=name, examples="\n".join(lines)))
        return 0
    first = own[0]
    if first[0] == "-":
        hint = f"put ROS arguments after --ros-args: {name} --ros-args {' '.join(own)}"
    elif ":=" in first:
        # this form is valid in ROS 1 and for `ros2 launch`
        flag = "-r" if first[0] in "/~_" else "-p"
        hint = f"set a parameter with -p, remap a name with -r: {name} --ros-args {flag} {first}"
    else:
        what, parameter = _PATHS.get(name, ("a robot", "description"))
        hint = f"{what} is a parameter: {name} --ros-args -p {parameter}:={first}"
    print(f"{name}: {shown(first)} is not understood; {one_line(hint)}", file=sys.stderr)
    return 2


def _own(arguments: Sequence[str]) -> list[str]:
    """The arguments outside the ROS arguments, which stand between --ros-args and --."""
    own, ros = [], False
    for each in arguments:
        if each == "--ros-args":
            ros = True
        elif each == "--":
            ros = False
        elif not ros:
            own.append(each)
    return own


def error_line(error: Exception) -> str:
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


def print_error(line: str) -> None:
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
