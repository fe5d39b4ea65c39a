# SPDX-License-Identifier: Apache-2.0
"""Processes of a node that fork from one in which everything is imported: the imports take longer
than most tests of a node.

    the test             the server              a warden           the node
    --------             ----------              --------           --------
    Forked()     ──→     imports, once; forks ─→ forks        ──→   python ARGUMENTS
                 ←───────────────────────────    its id, its
                                                 exit code    ←──   ends

What runs is what `python -m MODULE` or `python -c CODE` runs, in a process of its own. The server
ends with the process that started it.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import FileIO
from pathlib import Path
from select import select

IMPORTED = ("robot_dynamics.ros.feed_forward.controller", "geometry_msgs.msg", "sensor_msgs.msg")
"""What starts no thread: none would be in a fork. rclpy loads LTTng, which has two"""
MOST = 1 << 20
"""Bytes of a request"""


class Forked:
    """A process that runs `python ARGUMENTS`, with the interface of `subprocess.Popen`.

    Args:
        arguments: -m and a module, or -c and its code; then what it finds in `sys.argv`.
        cwd, env: its directory and environment.
        output: the file for all that it prints.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: str | os.PathLike[str],
        env: Mapping[str, str],
        output: FileIO,
    ):
        self.args = [sys.executable, *arguments]
        self.returncode: int | None = None
        self._told, theirs = os.pipe()
        request = json.dumps([list(arguments), str(cwd), dict(env)]).encode()
        try:
            socket.send_fds(_server(os.getpid()), [request], [output.fileno(), theirs])
        finally:
            os.close(theirs)
        self.pid = self._number()

    def _number(self) -> int:
        said = b""
        while not said.endswith(b"\n"):
            byte = os.read(self._told, 1)
            if not byte:
                raise RuntimeError("the process that forks is gone")
            said += byte
        return int(said)

    def poll(self) -> int | None:
        """Its exit code, or the signal that ended it as a negative number; None: it runs."""
        if self.returncode is None and select([self._told], [], [], 0)[0]:
            self.returncode = self._number()
            os.close(self._told)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs for longer than `timeout` s.
        """
        if self.returncode is None and not select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _server(_pid: int) -> socket.socket:
    """The way to this process's server, which it starts."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    return ours


def serve(channel: socket.socket) -> Callable[[], object]:
    """Fork until nobody is left who asks. Only in a fork this returns: what is to run."""
    for name in IMPORTED:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a warden
    while True:
        request, handles, *_ = socket.recv_fds(channel, MOST, 2)
        if not request:
            os._exit(0)
        if os.fork():
            for each in handles:
                os.close(each)
            continue
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if watched(handles[1]):
            return become(*json.loads(request), handles[0])


def watched(told: int) -> bool:
    """Fork, and tell the process's id and its exit code. Only in that process this returns."""
    pid = os.fork()
    if pid == 0:
        os.close(told)
        return True
    # a signal for the group is not for the one who tells what became of it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.write(told, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(
    arguments: Sequence[str], cwd: str, env: Mapping[str, str], output: int
) -> Callable[[], object]:
    """Take on what `python ARGUMENTS` would begin with; what it runs."""
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)

    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[0] = cwd
    kind, what, *rest = arguments
    if kind == "-c":
        sys.argv = [kind, *rest]
        return lambda: exec(what, {"__name__": "__main__"})
    sys.argv = [what, *rest]
    return lambda: runpy.run_module(what, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run = serve(socket.socket(fileno=int(sys.argv[1])))
    # and at its end Python ends as always
    run()
