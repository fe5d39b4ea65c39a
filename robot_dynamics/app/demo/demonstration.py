# SPDX-License-Identifier: Apache-2.0
"""One demo from start to end: each run in separate processes, then table and picture."""

from __future__ import annotations

import sys
import tempfile
import time as wall
from importlib.util import find_spec
from pathlib import Path

import yaml

from ...description.files import check_writable, find, writable
from ...errors import BackendError, InputError, choices, wrong
from ...outputs import Output
from .bounds import bounds
from .processes import Processes
from .record import Track, progress, read
from .results import gear_table, numbers, picture, played_page, text
from .robots import ROBOTS, Run
from .subject import Subject

NEEDED = {"rclpy": "ros", "mujoco": "sim"}
"""The required modules, and the extra that provides each"""

LEAD = 1.0
"""s of rest between the message with the trajectory and the motion"""

COMMAND_WAIT = 20.0
"""s of wall time that the robot waits for the torques of one state, even on a busy machine"""

ATTEMPTS = 3
"""Attempts for one controller; the first one that stays in lock step throughout counts"""

DEADLINE = 60.0
"""s of wall time without any progress after which a run has failed"""


def demonstrate(robot: str, folder: Path) -> Output:
    """Run a demo; see `robot_dynamics.app.demo.run`.

    Args:
        robot: one of `ROBOTS`.
        folder: the folder for the picture.

    Raises:
        InputError: there is no such demo, or the folder cannot be written.
    """
    if robot not in ROBOTS:
        raise wrong(InputError, "robot", robot, choices(ROBOTS))
    check_writable(folder)
    check_extras()
    writable(folder)
    show = Stages(f"demo {robot}")
    with tempfile.TemporaryDirectory(prefix="robot_dynamics_") as scratch:
        show("preparation")
        demo = ROBOTS[robot]
        if demo.identified:
            from .identification_demo import identified

            demo = identified(demo, folder / f"{robot}_demo", Path(scratch), show)
        subject = Subject.of(demo)
        tracks = [_sound_run(each, subject, Path(scratch), show) for each in subject.demo.runs]
        rows = []
        if subject.demo.bounded:
            show("what limits the error")
            rows = bounds(subject)
        show("picture")
        drawn = picture(robot, subject, tracks, folder)
        show("page")
        page = played_page(subject, tracks[-1], folder / f"{robot}_demo.html")
        geared, lines = None, list[str]()
        if demo.geared:
            geared, lines = gear_table(subject, folder / f"{robot}_demo_gears.png")
        show.end()
    result = numbers(
        subject, tracks, robot=robot, bounds=rows, picture=drawn, page=page, gears=geared
    )
    return Output(result, "\n".join([text(result), *lines]))


def _sound_run(run: Run, subject: Subject, scratch: Path, show: Stages) -> Track:
    """A run in which every torque belongs to its state from the beginning of the motion."""
    for attempt in range(ATTEMPTS):
        track = _run(run, subject, scratch, show)
        if not track.problem:
            return track
        show(f"{run.label}: {track.problem}; attempt {attempt + 2}")
    raise BackendError(
        f"{run.label}: {track.problem}, in each of {ATTEMPTS} attempts; the machine is too busy",
        name=run.label,
        value=track.problem,
    )


def _run(run: Run, subject: Subject, scratch: Path, show: Stages) -> Track:
    demo, motion, joints = subject.demo, subject.demo.motion, list(subject.joints)
    record = scratch / f"{run.label}.csv"
    record.unlink(missing_ok=True)  # from an earlier attempt
    end = motion.duration + demo.settle
    helped = run.feed_forward is not None
    topics = {"command": "feed_forward/command", "answers": "simulated_robot/stamped_commands"}
    with Processes(scratch) as processes:
        processes.start(
            "simulated_robot",
            {
                "description": demo.description,
                "joints": joints,
                "start": subject.start,
                "update_rate": demo.update_rate,
                "timestep": demo.timestep,
                **subject.gains,
                "delay": demo.delay,
                "command_wait": COMMAND_WAIT if helped else 0.0,
                "real_time_factor": 1.0,
                "publish_clock": True,
                "record": str(record),
            },
            {"~/joint_trajectory": topics["command"]},
        )
        if helped:
            processes.start(
                "feed_forward",
                {
                    "description": _model(run, demo.description, scratch),
                    "joints": joints,
                    "use_sim_time": True,
                    # in lock step a busy machine only takes longer, so no message is too old
                    "max_age": 0.0,
                    # a lost state would never get torques
                    f"qos_overrides.{processes.namespace}/joint_states.subscription.reliability": (
                        "reliable"
                    ),
                    **(run.feed_forward or {}),
                },
                {"~/effort": topics["answers"]},
            )
        processes.start(
            "trajectory_source",
            {
                "joints": joints,
                "start": list(motion.start),
                "swing": list(motion.swing),
                "cycles": list(motion.cycles),
                "duration": motion.duration,
                "lead": LEAD,
                "subscribers": 2 if helped else 1,
            },
            {"joint_trajectory": topics["command"]},
        )
        seen, deadline = None, wall.monotonic() + DEADLINE
        while seen is None or seen < end:
            wall.sleep(0.1)
            processes.check()
            before, (seen, missed) = seen, progress(record)
            if missed:
                break
            if seen != before:
                deadline = wall.monotonic() + DEADLINE
            if wall.monotonic() > deadline:
                reached = "the start" if seen is None else f"{seen:.2f} s of {end:.2f} s"
                words = f"{run.label}: no progress for {DEADLINE:g} s at {reached}"
                if helped:
                    words += f"; the node's last line: {processes.last_line('feed_forward')}"
                raise BackendError(words, name=run.label)
            show(run.label, 0.0 if seen is None else min(1.0, seen / end))
    return read(record, run.label, subject)


def _model(run: Run, description: str, scratch: Path) -> str:
    """The description for the node: the robot's own, another one, or one with other lengths."""
    if run.description:
        return run.description
    if not run.lengths:
        return description
    robot = yaml.safe_load(find(description).read_text())
    for link in robot["links"]:
        if link["name"] in run.lengths:
            # a number, or an expression in the description's symbols
            link["a"] = f"({link['a']}) * {run.lengths[link['name']]!r}"
    file = scratch / "model.yaml"
    file.write_text(yaml.safe_dump(robot))
    return str(file)


def check_extras() -> None:
    """Check that the packages that every demo needs are installed.

    Raises:
        BackendError: one is missing.
    """
    missing = [module for module in NEEDED if find_spec(module) is None]
    if missing:
        extras = ",".join(sorted({NEEDED[module] for module in missing}))
        raise BackendError(
            f"the demo needs {', '.join(missing)}: pip install 'robot_dynamics[{extras}]'"
            + (" (or source the ROS 2 setup file)" if "rclpy" in missing else ""),
            name=missing[0],
            expected=f"an installed {missing[0]}",
        )


class Stages:
    """Shows progress on stderr: a line that is overwritten on a terminal, otherwise one per stage.

    Args:
        title: begins each line.
    """

    BAR = 24

    def __init__(self, title: str):
        self._title = title
        self._stage = ""
        self._terminal = sys.stderr.isatty()

    def __call__(self, stage: str, done: float | None = None) -> None:
        if self._terminal:
            bar = ""
            if done is not None:
                filled = round(done * self.BAR)
                bar = f"[{'#' * filled}{'.' * (self.BAR - filled)}] {done:4.0%}"
            print(f"\r\x1b[K{self._title}: {stage} {bar}", end="", file=sys.stderr, flush=True)
        elif stage != self._stage:
            print(f"{self._title}: {stage} …", file=sys.stderr, flush=True)
        self._stage = stage

    def end(self) -> None:
        """Erase the line."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
