# SPDX-License-Identifier: Apache-2.0
"""Duration of identification: one minute of a seven-joint arm at 1 kHz, read, fitted, reported."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from robots import measured

import robot_dynamics as rd
from robot_dynamics.app.demo.identification_demo import write_bag
from robot_dynamics.app.identification_report import write
from robot_dynamics.identification import identify
from robot_dynamics.identification.result_files import save

LINKS = 7


def description(joints: int) -> str:
    """An arm of alternating axes, as URDF."""
    links = ['<link name="base"/>']
    for k in range(joints):
        mass = 5.0 - 0.5 * k
        axis = "0 0 1" if k % 2 == 0 else "0 1 0"
        links.append(
            f'<link name="link{k}"><inertial><origin xyz="0.01 0.02 0.1"/><mass value="{mass}"/>'
            f'<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.02"/></inertial></link>'
            f'<joint name="joint{k}" type="revolute"><origin xyz="0 0 0.2"/><axis xyz="{axis}"/>'
            f'<parent link="{"base" if k == 0 else f"link{k - 1}"}"/><child link="link{k}"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="3"/>'
            '<dynamics damping="1.0" friction="2.0"/></joint>'
        )
    return f'<robot name="arm">{"".join(links)}</robot>'


def record(path: Path, urdf: str, duration: float, rate: float) -> None:
    """A bag of JointState messages."""
    mechanism = rd.load(urdf)
    rng = np.random.default_rng(0)
    t, q, qd, tau = measured(mechanism, duration, rate, rng)
    q = q + 1e-5 * rng.normal(size=q.shape)
    qd = qd + 1e-3 * rng.normal(size=q.shape)
    write_bag(path, mechanism.joint_names, t, q, qd, tau)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=60.0, metavar="S")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    urdf = description(LINKS)
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "bag"
        record(bag, urdf, options.duration, options.rate)
        steps: list[tuple[float, float, str]] = []

        def note(words: str) -> None:
            steps.append((time.perf_counter(), time.process_time(), words))

        note("begin")
        result = identify(urdf, bag, progress=note)
        note("writing")
        save(result, Path(folder) / "out")
        write(result, Path(folder) / "out")
        note("end")
    found = {
        words: {"wall": after[0] - before[0], "cpu": after[1] - before[1]}
        for before, after, words in zip(
            steps, steps[1:], [step[2] for step in steps[:-1]], strict=False
        )
    }
    found["all"] = {"wall": steps[-1][0] - steps[0][0], "cpu": steps[-1][1] - steps[0][1]}
    found["error"] = float(np.nanmean(result.errors.relative))
    if options.json:
        print(json.dumps(found))
    else:
        for words, taken in found.items():
            if isinstance(taken, dict):
                print(f"{taken['wall']:7.2f} s ({taken['cpu']:6.2f} s of cores)  {words}")
        print(f"torque error on held-out motion: {100 * found['error']:.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
