"""How an executable with one node starts, runs and ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from ..errors import RobotDynamicsError, one_line

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(
    name: str,
    make: Callable[[], Any],
    arguments: Sequence[str] | None,
    finish: Callable[[Any], None] = lambda _: None,
) -> int:
    """Make a node and run it until SIGINT or SIGTERM, be it once or more often.

    The node has to have a timer: between two callbacks a signal is seen.

    Args:
        name: of the executable, for messages.
        make: makes the node.
        arguments: of the command line; None: those of the process.
        finish: is called with the node at the end, whatever ended it, while it can still publish.

    Returns:
        the exit code: 0 after a signal; 1 after one line on stderr, where it could not start or
        failed in a way that a caller can cause.
    """
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    def on_signals(handler: Any) -> None:
        for number in SIGNALS:
            signal.signal(number, handler)

    node = None
    try:
        # the signals are ours: the last words go out before ROS is shut down
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        # until it runs, a signal ends it at once
        on_signals(signal.default_int_handler)
        node = make()
        on_signals(stop)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not stopped:
            executor.spin_once()
    except KeyboardInterrupt:
        pass
    # RuntimeError: ROS could not read the command line
    except (RobotDynamicsError, ParameterException, OSError, RuntimeError) as error:
        if node is not None and not isinstance(error, RobotDynamicsError):
            raise
        print(f"{name}: {one_line(error)}", file=sys.stderr)
        return 1
    finally:
        on_signals(signal.SIG_IGN)
        if node is not None:
            finish(node)
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
