# SPDX-License-Identifier: Apache-2.0
"""The demo's processes, which are started together, monitored, and ended with the demo."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import BackendError
from ...identification.fleet import signals_later

PATIENCE = 5.0
"""s that a process may take to end after a signal"""

PR_SET_PDEATHSIG = 1


class Processes:
    """ROS nodes of this package in their own DDS domain and namespace.

    Leaving the `with` block for any reason ends all of them. If the demo itself is killed, the
    kernel ends them (Linux).

    Args:
        folder: for parameter files and logs.
        namespace: the namespace of all nodes of this package; None: a unique one.

    Attributes:
        namespace: the namespace of its nodes.
    """

    def __init__(self, folder: Path, namespace: str | None = None):
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.namespace = f"/demo_{secrets.token_hex(4)}" if namespace is None else namespace
        self._environment = {
            **os.environ,
            # domains whose ports no operating system uses as ephemeral ports
            "ROS_DOMAIN_ID": str(1 + secrets.randbelow(100)),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def start(
        self, name: str, parameters: Mapping[str, Any], remappings: Mapping[str, str]
    ) -> None:
        """Start a node.

        Args:
            name: the name of its executable.
            parameters: the node's parameters, by name.
            remappings: new names, by name.
        """
        # JSON is valid YAML; a file needs no quoting
        file = self._folder / f"{name}.yaml"
        file.write_text(json.dumps({"/**": {"ros__parameters": dict(parameters)}}))
        command = [sys.executable, "-m", "robot_dynamics.ros.executables", name, "--ros-args"]
        command += ["--params-file", str(file), "-r", f"__ns:={self.namespace or '/'}"]
        for source, target in {**remappings, "/clock": "clock"}.items():
            command += ["-r", f"{source}:={target}"]
        self.launch(name, command)

    def launch(self, name: str, command: Sequence[str | Path]) -> None:
        """Start any program.

        Args:
            name: its name here, and that of its log.
            command: the program and its arguments.
        """
        # Python's hooks around a fork swallow exceptions, KeyboardInterrupt as well
        with self._log(name).open("wb") as log, signals_later():
            self._running[name] = subprocess.Popen(  # noqa: S603  our own modules, and ROS's
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # only the demo gets Ctrl-C, and then ends them in order
                preexec_fn=_die_with_parent,
            )

    def pid(self, name: str) -> int:
        """The id of a process."""
        return self._running[name].pid

    def wait(
        self, name: str, timeout: float, each_second: Callable[[], None] | None = None
    ) -> None:
        """Wait until a process has ended.

        Args:
            name: the process.
            timeout: the longest time to wait, s.
            each_second: called every second until then.

        Raises:
            BackendError: it failed or took too long, or another process ended first.
        """
        last = time.monotonic()
        deadline = last + timeout
        while self._running[name].poll() is None:
            if each_second is not None and time.monotonic() > last + 1.0:
                last = time.monotonic()
                each_second()
            if time.monotonic() > deadline:
                raise BackendError(f"the demo's process {name} did not finish in time", name=name)
            self.check()
            time.sleep(0.1)
        if self._running[name].returncode:
            self.check()
        del self._running[name]

    def check(self) -> None:
        """Check that all processes are running.

        Raises:
            BackendError: a process has ended; the error has its last line.
        """
        for module, process in self._running.items():
            if process.poll() is not None:
                raise BackendError(
                    f"the demo's process {module} ended with exit code {process.returncode}: "
                    + self.last_line(module),
                    name=module,
                    value=process.returncode,
                )

    def last_line(self, module: str) -> str:
        """The last line that the process printed."""
        lines = self._log(module).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def stop(self) -> None:
        """End all processes: by SIGINT, then SIGTERM, then SIGKILL."""
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for process in self._running.values():
                if process.poll() is None:
                    process.send_signal(kind)
            for process in self._running.values():
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    continue
        self._running.clear()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _log(self, module: str) -> Path:
        return self._folder / f"{module}.log"


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
