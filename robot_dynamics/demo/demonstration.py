"""One demo from beginning to end: every run in processes of its own, then table and picture."""

from __future__ import annotations

import signal
import sys
import tempfile
import time as wall
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..description import load
from ..errors import BackendError, InputError, choices, wrong
from ..inverse_dynamics import InverseDynamics
from ..mechanism import Mechanism
from .bounds import bounds
from .processes import Processes
from .record import Track, progress, read
from .robots import ROBOTS, Demo, Run

NEEDED = {"rclpy": "ros", "mujoco": "sim", "matplotlib": "sim"}
"""Module and the extra that brings it"""

LEAD = 0.3
"""s between the message with the trajectory and its beginning"""

COMMAND_WAIT = 2.0
"""s on the wall that the robot waits for the torques of one state, however busy the machine is"""

DEADLINE = 60.0
"""s on the wall without any progress after which a run has failed"""


def demonstrate(robot: str, folder: Path, *, quiet: bool) -> dict[str, Any]:
    """See `robot_dynamics.demo.run`."""
    if robot not in ROBOTS:
        raise wrong(InputError, "robot", robot, choices(ROBOTS))
    if folder.exists() and not folder.is_dir():
        raise wrong(InputError, "output", str(folder), "a folder")
    _check_extras()
    demo = ROBOTS[robot]
    mechanism = load(demo.description)
    gains = pd_gains(mechanism, demo)
    show = _Progress(f"demo {robot}")
    with _terminable(), tempfile.TemporaryDirectory(prefix="robot_dynamics_") as scratch:
        tracks = [_run(each, demo, mechanism, gains, Path(scratch), show) for each in demo.runs]
        rows = []
        if demo.bounded:
            show("what bounds it")
            rows = bounds(mechanism, demo, gains)
        show("picture")
        picture = _picture(robot, demo, mechanism, tracks, folder)
        show.end()
    units = [_unit(mechanism, joint) for joint in mechanism.actuated_names]
    result = {
        "robot": robot,
        "joints": list(mechanism.actuated_names),
        "units": units,
        "update_rate": demo.update_rate,
        "delay": demo.delay,
        "bandwidth": demo.bandwidth,
        "p_gains": gains[0],
        "d_gains": gains[1],
        "runs": [_numbers(track, tracks[0]) for track in tracks],
        "bounds": rows,
        "picture": str(picture),
    }
    return result if quiet else {**result, "text": _text(result)}


def pd_gains(mechanism: Mechanism, demo: Demo) -> tuple[list[float], list[float]]:
    """Kp, Kd of the actuated joints: critical damping of each on its own, at the start."""
    D = InverseDynamics(mechanism).mass_matrix(demo.motion.start)
    # Kp = w² D_jj,  Kd = 2 w D_jj
    w, diagonal = demo.bandwidth, np.diag(D)
    return (w**2 * diagonal).tolist(), (2 * w * diagonal).tolist()


def _run(
    run: Run,
    demo: Demo,
    mechanism: Mechanism,
    gains: tuple[list[float], list[float]],
    scratch: Path,
    show: _Progress,
) -> Track:
    motion, joints = demo.motion, list(mechanism.actuated_names)
    record = scratch / f"{run.label}.csv"
    end = motion.duration + demo.settle
    helped = run.feed_forward is not None
    topics = {"command": "feed_forward/command", "commands": "simulated_robot/commands"}
    with Processes(scratch) as processes:
        processes.start(
            "simulated_robot",
            {
                "description": demo.description,
                "joints": joints,
                "start": list(motion.start),
                "update_rate": demo.update_rate,
                "timestep": demo.timestep,
                "p_gains": gains[0],
                "d_gains": gains[1],
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
                "node",
                {
                    "description": demo.description,
                    "joints": joints,
                    "use_sim_time": True,
                    **(run.feed_forward or {}),
                },
                {"~/commands": topics["commands"]},
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
            before, seen = seen, progress(record)
            if seen != before:
                deadline = wall.monotonic() + DEADLINE
            if wall.monotonic() > deadline:
                raise BackendError(
                    f"{run.label}: no progress for {DEADLINE:g} s at "
                    + ("the start" if seen is None else f"{seen:.2f} s of {end:.2f} s"),
                    name=run.label,
                )
            show(run.label, 0.0 if seen is None else min(1.0, seen / end))
    return read(record, run.label, motion, joints, end)


def _picture(
    robot: str, demo: Demo, mechanism: Mechanism, tracks: Sequence[Track], folder: Path
) -> Path:
    from .. import plots

    joints = mechanism.actuated_names
    return plots.tracking(
        folder / f"{robot}_demo.png",
        demo.title,
        _conditions(demo.update_rate, demo.delay),
        joints,
        [_unit(mechanism, joint) for joint in joints],
        demo.motion(tracks[0].time)[0],
        tracks,
    )


def _conditions(rate: float, delay: int) -> str:
    period = "period" if delay == 1 else "periods"
    return (
        f"MuJoCo robot over ROS 2 topics, controller at {rate:g} Hz, feed-forward torques used "
        f"{delay} {period} after the state that they answer"
    )


def _unit(mechanism: Mechanism, joint: str) -> str:
    return "rad" if mechanism.joint(joint).turns else "m"


def _numbers(track: Track, alone: Track) -> dict[str, Any]:
    return {
        "label": track.label,
        "rms": track.rms.tolist(),
        "peak": track.peak.tolist(),
        "rms_ratio": (alone.rms / track.rms).tolist(),
        "peak_ratio": (alone.peak / track.peak).tolist(),
        "missed": track.missed,
    }


def _text(result: dict[str, Any]) -> str:
    lines = [
        _conditions(result["update_rate"], result["delay"]),
        f"PD: Kp = w² D_jj, Kd = 2 w D_jj at the start, w = {result['bandwidth']:g} rad/s, "
        "nothing against gravity",
        "",
    ]
    width = max(len(run["label"]) for run in result["runs"])
    columns = f"{'RMS error':>14} {'÷':>7} {'peak error':>14} {'÷':>7}"
    lines.append(f"{'joint':12} {'controller':{width}} {columns}")
    for j, (joint, unit) in enumerate(zip(result["joints"], result["units"], strict=True)):
        for k, run in enumerate(result["runs"]):
            ratios = [f"{run[key][j]:,.0f}" if k else "" for key in ("rms_ratio", "peak_ratio")]
            lines.append(
                f"{'' if k else joint:12} {run['label']:{width}} {run['rms'][j]:10.3e} {unit:>3} "
                f"{ratios[0]:>7} {run['peak'][j]:10.3e} {unit:>3} {ratios[1]:>7}"
            )
    lines += [
        f"{run['label']}: {run['missed']} states were not answered in time (a busy machine)"
        for run in result["runs"]
        if run["missed"]
    ]
    if result["bounds"]:
        lines += ["", "What bounds it: the worst joint's RMS error, in one process without ROS"]
        widest = max(len(row["case"]) for row in result["bounds"])
        lines += [
            f"  {row['case']:{widest}}  torques {row['age'] * 1e3:4.1f} ms old on average, "
            f"error ÷ {row['ratio']:,.0f}"
            for row in result["bounds"]
        ]
    return "\n".join([*lines, "", f"picture: {result['picture']}"])


def _check_extras() -> None:
    missing = [module for module in NEEDED if find_spec(module) is None]
    if missing:
        extras = ",".join(sorted({NEEDED[module] for module in missing}))
        raise BackendError(
            f"the demo needs {', '.join(missing)}: pip install 'robot_dynamics[{extras}]'"
            + (" (or source the ROS 2 setup file)" if "rclpy" in missing else ""),
            name=missing[0],
            expected=f"an installed {missing[0]}",
        )


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: with its processes."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Progress:
    """A line on stderr: overwritten on a terminal, one a stage elsewhere."""

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
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
