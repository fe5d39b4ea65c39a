# SPDX-License-Identifier: Apache-2.0
"""Condition numbers of exciting motions of equal duration: ours, FIGAROH's and published ones.

    python benchmarks/excitation.py [--duration 20] [--seeds 3] [--recording ROBOT BAG [PREFIX]]...

FIGAROH (with cyipopt) gets the same robot, duration and limits, but no acceleration limits. It is
restarted until it has used as much processor time as our search, and its best motion counts. A
published motion is that of a recording; ours stays within the positions, rates and accelerations of
that motion. There are two criteria: `condition` is the condition number of the base parameters'
regressor, with columns scaled by their typical size and rows by each joint's effort; `raw` is that
of FIGAROH's regressor without scaling, which FIGAROH minimises.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml
from identification_methods import bounded

import robot_dynamics as rd
from robot_dynamics.identification import excitation
from robot_dynamics.identification.excitation import excite
from robot_dynamics.identification.motion_limits import motion_limits
from robot_dynamics.identification.preparation import even
from robot_dynamics.identification.read import read
from robot_dynamics.identification.unknowns import locked

MARGIN = 0.1
CUTOFF = 5.0
"""Hz: of the filter through which a recorded motion passes"""
ROBOT = "package://robot_dynamics/urdf/six_axis.urdf"


@contextmanager
def silent() -> Iterator[None]:
    """What compiled code prints meanwhile is dropped."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


class Figaroh:
    """FIGAROH's regressor of a robot, and its search."""

    def __init__(self, mechanism: rd.Mechanism, duration: float) -> None:
        from figaroh.optimal.base_optimal_trajectory import (
            BaseOptimalTrajectory,
            BaseTrajectoryIPOPTProblem,
        )
        from figaroh.tools.load_robot import load_robot

        logging.getLogger("figaroh").setLevel(logging.CRITICAL)
        names = list(mechanism.joint_names)

        class Search(BaseOptimalTrajectory):  # type: ignore[misc]
            def create_ipopt_problem(self, *arguments: Any) -> Any:
                return BaseTrajectoryIPOPTProblem(self, *arguments)

        with tempfile.TemporaryDirectory() as folder:
            urdf = Path(folder) / "robot.urdf"
            urdf.write_text(bounded(mechanism))
            robot = load_robot(str(urdf), loader="figaroh", load_by_urdf=True)
            robot.model.gravity.linear = np.asarray(mechanism.gravity)
            components = {"friction": True, "actuator_inertia": True, "joint_offset": False}
            content = {
                "robot": {"name": "robot", "properties": {"joints": {"active_joints": names}}},
                "tasks": {
                    "identification": {
                        "enabled": True,
                        "signal_processing": {"sampling_frequency": 100, "cutoff_frequency": 10},
                        "problem": {"model_components": components},
                    },
                    "optimal_trajectory": {
                        "enabled": True,
                        "problem": {"soft_lim": MARGIN, "max_iterations": 60},
                        # two segments of four pieces
                        "trajectory": {
                            "waypoints": 5, "frequency": 20, "segment_duration": duration / 8,
                        },
                    },
                },
            }  # fmt: skip
            config = Path(folder) / "config.yaml"
            config.write_text(yaml.safe_dump(content))
            self.search = Search(robot, names, str(config))
        joints = [robot.model.joints[robot.model.getJointId(name)].idx_v for name in names]
        assert joints == sorted(joints), "joints in the description's order"
        self.search.identif_config |= {"act_idxq": joints, "act_idxv": joints}
        self.search.initialize()
        self.duration = duration

    def motion(self) -> SimpleMotion | None:
        """One search; None: it failed."""
        for each in self.search.results.values():
            if isinstance(each, list):
                each.clear()
        with warnings.catch_warnings(), silent():
            warnings.simplefilter("ignore")
            found = self.search.solve(stack_reps=2)
        if len(found["T_F"]) < 2:
            return None
        t, q, qd, qdd = (
            np.concatenate([np.asarray(each) for each in found[key]])
            for key in ("T_F", "P_F", "V_F", "A_F")
        )
        return sampled(np.ravel(t), q, qd, qdd)

    def condition(self, motion: Any, duration: float) -> float:
        """The condition number of FIGAROH's regressor over the motion."""
        q, qd, qdd = motion(np.arange(round(20 * duration)) / 20)
        return float(np.linalg.cond(self.search._stack_base_regressors(q, qd, qdd)))


def sampled(t: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> SimpleMotion:
    """A motion as a function of time that knows its duration, from samples."""
    order = np.unique(t, return_index=True)[1]
    t = t[order] - t[order][0]

    def at(time: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(
            np.stack([np.interp(time, t, column) for column in table[order].T], axis=1)
            for table in (q, qd, qdd)
        )

    return SimpleMotion(at, float(t[-1]))


class SimpleMotion(SimpleNamespace):
    """A motion given by a function."""

    def __init__(self, at: Any, duration: float) -> None:
        super().__init__(at=at, duration=duration)

    def __call__(self, time: Any) -> Any:
        return self.at(np.asarray(time))


def line(name: str, score: Any, raw: float, seconds: float | None = None) -> None:
    took = "" if seconds is None else f"{seconds:8.1f} s of processor time"
    print(
        f"{name:32} log det {score.log_det:8.1f}  condition {score.condition:9.1f}  "
        f"raw {raw:10.0f}{took}",
        flush=True,
    )


def beside_figaroh(robot: str, duration: float, seeds: int) -> None:
    mechanism = rd.load(robot)
    other = Figaroh(mechanism, duration)
    given = motion_limits(mechanism)
    design = excitation._Design(mechanism, given, given.within(MARGIN), (), 0)
    spent = 0.0
    for seed in range(seeds):
        begin = time.process_time()
        found = excite(mechanism, duration, margin=MARGIN, seed=seed)
        spent = max(spent, time.process_time() - begin)
        raw = other.condition(found.motion, duration)
        line(f"{mechanism.name}: ours, seed {seed}", found.after, raw, spent)
        line("  the joints swinging", found.before, other.condition(found.plain, duration))
    np.random.seed(0)
    best, begin, tries, failed = None, time.process_time(), 0, 0
    while time.process_time() - begin < spent or best is None:
        motion = other.motion()
        tries += 1
        if motion is None:
            failed += 1
            if failed > 20:
                break
            continue
        raw = other.condition(motion, duration)
        if best is None or raw < best[0]:
            best = raw, motion
    seconds = time.process_time() - begin
    if best is None:
        print(f"{mechanism.name}: FIGAROH found no motion in {tries} searches, {seconds:.0f} s")
        return
    score = excitation._score(design, best[1])
    line(f"  FIGAROH, best of {tries} ({failed} failed)", score, best[0], seconds)
    over = design.margins(best[1], given)
    print(
        "  FIGAROH's shares of the limits: position "
        f"{over.position.max():.2f}, rate {over.rate.max():.2f}, effort {over.effort.max():.2f}, "
        f"acceleration (not known to it) {over.acceleration.max():.2f}"
    )


def beside_published(robot: str, bag: str, prefix: str, seeds: int) -> None:
    mechanism = rd.load(robot)
    names = mechanism.joint_names
    recording = read(bag)
    if prefix:  # the names in the recording have another one
        recording = recording.renamed({prefix: names[0].partition("_")[0] + "_"})
    at_rest = {name: 0.0 for name in names if name not in recording.names}  # fingers
    mechanism = locked(mechanism, at_rest)
    names = mechanism.joint_names
    samples = even(recording, names).filtered(CUTOFF, rests=True).stretches[0]
    published = sampled(
        np.arange(len(samples)) * samples.period, samples.q, samples.qd, samples.qdd
    )
    q, qd, qdd = samples.q, np.abs(samples.qd), np.abs(samples.qdd)
    limits = {
        name: {
            "has_position_limits": True,
            "min_position": float(q[:, j].min()),
            "max_position": float(q[:, j].max()),
            "has_velocity_limits": True,
            "max_velocity": float(qd[:, j].max()),
            "has_acceleration_limits": True,
            "max_acceleration": float(qdd[:, j].max()),
        }
        for j, name in enumerate(names)
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "joint_limits.yaml"
        file.write_text(yaml.safe_dump({"joint_limits": limits}))
        given = motion_limits(mechanism, file)
        design = excitation._Design(mechanism, given, given, (), 0)
        other = Figaroh(mechanism, published.duration)
        score = excitation._score(design, published)
        line(f"{mechanism.name}: published", score, other.condition(published, published.duration))
        for seed in range(seeds):
            begin = time.process_time()
            found = excite(mechanism, published.duration, limits=file, margin=0.0, seed=seed)
            spent = time.process_time() - begin
            raw = other.condition(found.motion, published.duration)
            line(f"  ours within its limits, seed {seed}", found.after, raw, spent)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default=ROBOT)
    parser.add_argument("--duration", type=float, default=20.0, help="s")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--recording", nargs="+", action="append", default=[], metavar="ROBOT BAG [PREFIX]",
        help="a published motion; PREFIX is that of the recording's joint names, if it is another",
    )  # fmt: skip
    options = parser.parse_args()
    beside_figaroh(options.robot, options.duration, options.seeds)
    for robot, bag, *prefix in options.recording:
        beside_published(robot, bag, prefix[0] if prefix else "", options.seeds)


if __name__ == "__main__":
    main()
