"""Samples per second of many recordings reduced, against workers and the length of the data."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import robot_dynamics as rd
from robot_dynamics.identification.fleet import fleet_at
from robot_dynamics.identification.passes import Reduction, Work

ROBOT = "package://robot_dynamics/urdf/six_axis.urdf"
RATE = 250.0


def record(path: Path, mechanism: rd.Mechanism, duration: float, seed: int) -> None:
    """A CSV of a moving robot with noise on its torques."""
    rng = np.random.default_rng(seed)
    n, names = len(mechanism.joint_names), mechanism.joint_names
    t = np.arange(round(duration * RATE))[:, None] / RATE
    w = 2 * np.pi * np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    a, b = rng.normal(0, 0.4, (2, len(w), n))
    s, c = np.sin(t * w), np.cos(t * w)
    q, qd, qdd = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
    tau = rd.InverseDynamics(mechanism)(q, qd, qdd)
    tau += 0.02 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    header = ["time", *(f"{x}/{f}" for f in ("position", "velocity", "effort") for x in names)]
    table = np.hstack([t, q, qd, tau])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--recordings", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--duration", type=float, default=20.0, help="s of each recording")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from distributed import LocalCluster

    mechanism = rd.load(ROBOT)
    work = Work(mechanism, None, {}, {}, None, None, 1 / 3, None)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{k}.csv" for k in range(max(options.recordings))]
        for k, path in enumerate(paths):
            record(path, mechanism, options.duration, k)
        for workers in (0, *options.workers):
            with (
                LocalCluster(
                    n_workers=max(workers, 1), threads_per_worker=1, dashboard_address=None,
                    silence_logs=50,
                ) as cluster,
                fleet_at(cluster.scheduler_address if workers else None) as fleet,
            ):  # fmt: skip
                # every worker has its kernels before the clock starts
                list(fleet.map(Reduction(work), paths[: 2 * max(workers, 1)]))
                for count in options.recordings:
                    begin = time.perf_counter()
                    list(fleet.map(Reduction(work), paths[:count]))
                    seconds = time.perf_counter() - begin
                    samples = count * round(options.duration * RATE)
                    each = {"workers": workers, "samples": samples, "per_second": samples / seconds}
                    results.append(each)
                    who = f"{workers} workers" if workers else "this process"
                    print(f"{who:14} {samples:9,} samples: {samples / seconds:9,.0f} per second")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
