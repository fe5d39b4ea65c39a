# SPDX-License-Identifier: Apache-2.0
"""Identification of robots with loops from logs such as drives write.

    python benchmarks/identification_closed.py [five_bar rrr gough_stewart …]

The true robot has other bodies than the description, friction at every joint, and rotors. Each line
is a kind of log, with the RMS errors of the worst motor in % of its torque: on another log, whose
noise (2 % of the torque, and the effect of the motion's noise) is included, and on a third motion
without noise, compared with the true robot.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import robot_dynamics as rd
from robot_dynamics.identification import Recording, Stream

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from test_identification_closed import REACH, moves, robots  # noqa: E402

DURATION = 20.0
TORQUE_NOISE = 0.02
SLIDE = 0.1
"""m for each rad of noise, of a motor that slides"""


@dataclass(frozen=True)
class Log:
    """What a log is like."""

    name: str
    rate: float
    """Hz"""
    noise: float = 2e-5
    """rad, of the positions"""
    rate_noise: float | None = None
    """rad/s; None: no rates are recorded"""
    quantum: float = 0.0
    """rad, of the positions"""
    lost: float = 0.0
    """Of the messages"""
    jitter: float = 0.0
    """Of a period, of the stamps"""


LOGS = (
    Log("100 Hz, exact motion", 100.0, 0.0, 0.0),
    Log("25 Hz", 25.0),
    Log("125 Hz, jittered stamps", 125.0, jitter=0.3),
    Log("200 Hz, 20 % lost", 200.0, lost=0.2),
    Log("200 Hz, positions of 1e-3 rad", 200.0, 0.0, quantum=1e-3),
    Log("1 kHz", 1000.0),
    Log("1 kHz, noisy rates", 1000.0, rate_noise=5e-3),
    Log("5 kHz", 5000.0),
)


def recorded(truth: rd.Mechanism, log: Log, reach: float, seed: int) -> Recording:
    """A log of the true robot's motors."""
    dynamics = rd.InverseDynamics(truth)
    joints = dynamics.joint_names
    t, q, qd, qdd = moves(truth, joints, reach, seed, DURATION, log.rate)
    tau = dynamics(q, qd, qdd)[:, [dynamics.actuated_names.index(name) for name in joints]]
    rng = np.random.default_rng(seed)
    size = np.array([SLIDE if truth.joint(name).slides else 1.0 for name in joints])
    tau = tau + TORQUE_NOISE * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    q = q + log.noise * size * rng.normal(size=q.shape)
    if log.quantum:
        q = np.round(q / (log.quantum * size)) * log.quantum * size
    if log.rate_noise is None:
        qd = np.full_like(q, np.nan)
    else:
        qd = qd + log.rate_noise * size * rng.normal(size=q.shape)
    t = t + log.jitter / log.rate * rng.uniform(-0.5, 0.5, len(t))
    kept = rng.uniform(size=len(t)) >= log.lost
    stream = Stream(joints, t[kept], q[kept], qd[kept], tau[kept])
    return Recording(f"log {seed}", (stream,))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="*", default=[*REACH], choices=[*REACH])
    warnings.simplefilter("ignore")
    for name in parser.parse_args().robots:
        described, truth = robots(name)
        true = rd.InverseDynamics(truth)
        _, *states = moves(truth, true.joint_names, REACH[name], 9)
        right = true(*states)
        print(f"{name}\n  {'':32}{'held out':>10}{'true':>8}{'cut-off':>10}{'seconds':>9}")
        for log in LOGS:
            seen, unseen = (recorded(truth, log, REACH[name], seed) for seed in (1, 2))
            begin = time.process_time()
            found = rd.identify(described, seen, validate=unseen)
            seconds = time.process_time() - begin
            missed = rd.InverseDynamics(found.mechanism)(*states) - right
            error = np.sqrt((missed**2).mean(axis=0) / (right**2).mean(axis=0)).max()
            cutoff = found.cutoffs[seen.source]
            print(
                f"  {log.name:32}{100 * found.errors.relative.max():9.1f} {100 * error:7.2f} "
                f"{'-' if cutoff is None else f'{cutoff:.3g} Hz':>9}{seconds:9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
