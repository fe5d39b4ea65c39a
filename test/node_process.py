# SPDX-License-Identifier: Apache-2.0
"""The node in its own process, and a partner that talks to it over DDS."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from forked import Forked
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ROOT = Path(__file__).resolve().parents[1]

PATIENCE = 90.0
"""s until a test gives up: far beyond what a loaded machine needs"""
ROUNDS = 100
"""messages of a topic that are taken at once, at the most: no stream keeps a test from looking"""
FAREWELL = 5.0
"""s that a process has to exit by itself when it is no longer needed"""
UNSENT = "failed to send response"
"""What rclpy warns where the middleware gives an answer up: it does not know the client yet"""
ANSWER_PATIENCE = 5.0
"""s until a request whose answer may have been given up is sent again"""

ENVIRONMENT = ChainMap(
    {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    },
    os.environ,
)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
if sys.dont_write_bytecode:
    # hundreds of processes would each compile the package from its sources: they share a folder
    # that goes with the kernels, and nothing is written beside the sources
    ENVIRONMENT["PYTHONDONTWRITEBYTECODE"] = ""
    ENVIRONMENT["PYTHONPYCACHEPREFIX"] = os.path.join(
        os.environ["ROBOT_DYNAMICS_CACHE"], "bytecode"
    )


@contextmanager
def domain_of_ones_own() -> Iterator[int]:
    """A ROS domain that no other test on this machine uses meanwhile: nobody else is heard.

    The claim is an abstract socket: whatever TMPDIR is, and whoever runs the tests, there is one of
    a name, and it is gone with its process.
    """
    for k in range(100):
        domain = 1 + (os.getpid() + k) % 100
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(f"\0robot_dynamics_ros_domain_{domain}")
            except OSError:
                continue
            yield domain
            return
    raise RuntimeError("all ROS domains are in use")


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "robot_dynamics.node", *arguments]


DIAGNOSED_OFTEN = (
    sys.executable,
    "-c",
    "import sys\n"
    "from robot_dynamics.ros import executables, feed_forward_node\n"
    "feed_forward_node.DIAGNOSTICS_PERIOD = 0.0\n"
    "sys.exit(executables.feed_forward())",
)
"""The node with diagnostics ten times a second, for tests that wait for many of them"""


def parameters_on_command_line(parameters: dict[str, Any]) -> list[str]:
    pairs = (("-p", f"{name}:={_yaml(value)}") for name, value in parameters.items())
    return ["--ros-args", *(part for pair in pairs for part in pair)]


def refusal(parameters: Mapping[str, Any], program: Sequence[str] = ()) -> str:
    """The one line with which the node, or another program, refuses to start so.

    On a busy machine, the node first says that it is compiling.
    """
    whole = [*(program or command_line()), *parameters_on_command_line(dict(parameters))]
    with tempfile.TemporaryFile() as file:
        process = started(whole, ENVIRONMENT, file)
        try:
            code = process.wait(PATIENCE)
        finally:
            end(process)
        file.seek(0)
        said = file.read().decode().strip().splitlines()
    lines = [line for line in said if "compiling the dynamics" not in line]
    assert (code, len(lines)) == (1, 1), said
    return lines[0]


def _yaml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_yaml, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def started(
    program: Sequence[str], environment: Mapping[str, str], output: Any, *, fresh: bool = False
) -> subprocess.Popen[bytes] | Forked:
    """Start a program that prints all to this file. Python forks from a process that has imported
    what a node needs, unless it is to be a fresh one."""
    # what coverage measures begins with a process of Python
    measured = any(name.startswith("COVERAGE_PROCESS") for name in environment)
    if program[0] == sys.executable and program[1] in ("-m", "-c") and not (fresh or measured):
        return Forked(program[1:], ROOT, environment, output)
    return subprocess.Popen(
        program, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
    )


def end(process: subprocess.Popen[Any] | Forked) -> None:
    """End a process that nobody needs any more: asked first, so that it can say which lines it
    ran, where coverage is measured; then by force."""
    process.terminate()
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(FAREWELL)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Conversation:
    """A process with a node, and a node of ours to talk to it, in a ROS domain of their own.

    Args:
        program: its command line, without what belongs to ROS.
        parameters: of the node, by name.
        arguments: what else stands at the end of the command line.
        fresh: it is started as users do, by a Python of its own; see `started`.

    Attributes:
        domain: of both.
        node: ours.
    """

    def __init__(
        self,
        program: Sequence[str],
        parameters: Mapping[str, Any],
        arguments: Sequence[str] = (),
        fresh: bool = False,
    ):
        self._end = ExitStack()
        self._fresh = fresh
        self.domain = self._end.enter_context(domain_of_ones_own())
        self._log = self._end.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._command_line = [
            *program,
            *parameters_on_command_line(dict(parameters)),
            *arguments,
        ]
        self.process = self._started()
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=self.domain)
        self._end.callback(rclpy.shutdown, context=context)
        self.node = rclpy.create_node("partner", context=context)
        self._end.callback(self.node.destroy_node)
        self._executor = SingleThreadedExecutor(context=context)
        self._end.callback(self._executor.shutdown)
        self._executor.add_node(self.node)

    def beside(self, *program: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a program in the same ROS domain. It ends with the conversation at the latest."""
        process = subprocess.Popen(program, cwd=ROOT, env=self._environment, **options)
        self._end.callback(end, process)
        return process

    @property
    def _environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "ROS_DOMAIN_ID": str(self.domain)}

    def _started(self) -> subprocess.Popen[bytes] | Forked:
        process = started(self._command_line, self._environment, self._log, fresh=self._fresh)
        self._end.callback(end, process)
        return process

    def kill_and_restart(self) -> None:
        """End the process by force, and start it once more."""
        self.process.kill()
        self.process.wait()
        self.process = self._started()

    def __enter__(self) -> Any:
        try:
            self._meet()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _meet(self) -> None:
        """Wait until the two have found each other."""

    def __exit__(self, *_: object) -> None:
        end(self.process)
        self._end.close()

    @property
    def log(self) -> str:
        """What the process has printed so far."""
        # it writes at the file's offset, which is shared: it stays where it is
        file = self._log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def spin(self, seconds: float = 0.02) -> None:
        """Take in all that has come; wait this long where there is nothing."""
        # asked with another timeout, an executor begins with its first subscription anew: rounds
        # are finished, or the last subscriptions starve
        with suppress(TimeoutException):
            self._take(seconds)
            for _ in range(ROUNDS):
                self._take_all_ready()

    def _take(self, seconds: float) -> None:
        task, *_ = self._executor.wait_for_ready_callbacks(seconds)
        task()
        task.result()

    def _take_all_ready(self) -> None:
        """A round of all subscriptions, services and timers; TimeoutException if none is ready."""
        self._take(0.0)
        with suppress(TimeoutException):
            while True:
                self._take(0.0)

    def until(
        self,
        done: Callable[[], Any],
        what: str,
        *,
        meanwhile: Callable[[], Any] = lambda: None,
        ended: bool = False,
    ) -> Any:
        """Wait for something to become true, and say what there was instead where it does not."""
        deadline = time.monotonic() + PATIENCE
        while not (result := done()):
            assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}; {self.found()}"
            assert ended or self.process.poll() is None, (
                f"the node ended, waiting for {what}:\n{self.log}"
            )
            meanwhile()
            self.spin()
        return result

    def ask(self, kind: Any, service: str, **fields: Any) -> Any:
        """The service's response to a request with these fields.

        A request may arrive before the server has discovered the client's reader: on a busy
        machine, the middleware then gives the response up. Where the process says so, and there is
        no response, the request is sent again.
        """
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f"the service {service}")
        futures: list[Any] = []
        sent = 0.0

        def answered() -> list[Any]:
            nonlocal sent
            if not futures or (time.monotonic() > sent + ANSWER_PATIENCE and UNSENT in self.log):
                futures.append(client.call_async(kind.Request(**fields)))
                sent = time.monotonic()
            return [future for future in futures if future.done()]

        first, *_ = self.until(answered, f"an answer of {service}")
        self.node.destroy_client(client)
        return first.result()

    def found(self) -> str:
        """What there is, for a failed test."""
        return f"log:\n{self.log}"

    def stop(self, number: int = signal.SIGINT) -> int:
        """Signal the process; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


class Partner(Conversation):
    """Starts the node, publishes for it and keeps what it publishes. A context manager."""

    def __init__(
        self,
        *,
        arguments: tuple[str, ...] = (),
        program: tuple[str, ...] = (),
        fresh: bool = False,
        **parameters: Any,
    ):
        super().__init__(program or command_line(), parameters, arguments, fresh)
        self.commands: list[list[float]] = []
        self.effort: list[JointState] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.newest = 0.0
        """When the newest of these came, by `time.monotonic`"""
        node = self.node
        node.create_subscription(
            Float64MultiArray, "/feed_forward/commands", self._on_commands, 100
        )
        node.create_subscription(JointState, "/feed_forward/effort", self._on_effort, 100)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        # as most drivers do: best effort
        self.states_out = node.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
        self.command_out = node.create_publisher(JointTrajectory, "/feed_forward/command", 10)
        self.payload_out = node.create_publisher(InertiaStamped, "/feed_forward/payload", 10)
        self.wrench_out = node.create_publisher(WrenchStamped, "/feed_forward/wrench", 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.description_out = node.create_publisher(String, "robot_description", latched)

    def _meet(self) -> None:
        self.until(
            lambda: (
                self.states_out.get_subscription_count()
                and self.command_out.get_subscription_count()
                and self.payload_out.get_subscription_count()
                and self.node.count_publishers("/feed_forward/commands")
                and self.node.count_publishers("/diagnostics")
            ),
            "the node's topics",
        )

    def _on_commands(self, message: Float64MultiArray) -> None:
        self.commands.append(list(message.data))

    def _on_effort(self, message: JointState) -> None:
        self.effort.append(message)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self.diagnostics.append(message)
        self.newest = time.monotonic()

    def state(self, joints: dict[str, tuple[float, float]], stamp: Any = None) -> JointState:
        """Publish a state: name to position and rate; stamped now, where nothing else is said."""
        message = JointState(name=list(joints))
        message.position = [q for q, _ in joints.values()]
        message.velocity = [qd for _, qd in joints.values()]
        message.header.stamp = self.node.get_clock().now().to_msg() if stamp is None else stamp
        self.states_out.publish(message)
        return message

    def accelerate(self, joints: dict[str, float]) -> None:
        """Command accelerations, as one point."""
        point = JointTrajectoryPoint(accelerations=list(joints.values()))
        self.command_out.publish(JointTrajectory(joint_names=list(joints), points=[point]))

    def found(self) -> str:
        return f"commands {self.commands[-3:]}, counts {self.counts()}, {super().found()}"

    def counts(self) -> dict[str, str]:
        """The newest diagnostics, by key."""
        if not self.diagnostics:
            return {}
        return {each.key: each.value for each in self.diagnostics[-1].status[0].values}

    def set_parameters(self, **values: Any) -> Any:
        """SetParametersResult of setting these parameters at once."""
        wanted = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        service = "/feed_forward/set_parameters_atomically"
        return self.ask(SetParametersAtomically, service, parameters=wanted).result

    def get_parameter(self, name: str) -> Any:
        return self.ask(GetParameters, "/feed_forward/get_parameters", names=[name]).values[0]

    def describe_parameters(self, names: list[str]) -> Any:
        service = "/feed_forward/describe_parameters"
        return self.ask(DescribeParameters, service, names=names).descriptors
