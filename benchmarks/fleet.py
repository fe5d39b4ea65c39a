# SPDX-License-Identifier: Apache-2.0
"""Throughput of reading recordings: each step alone on one core, then by number of workers.

    python benchmarks/fleet.py [--workers 1 2] [--recordings 4 8 16] [--json OUT]

The filter is that chosen from the first recordings, as for any large fleet. One worker should reach
0.9 times the throughput of this process alone, two workers 1.8 times. Workers are processes of this
machine (`--workers`), or those of a Dask scheduler on it (`--scheduler`), which needs two more
processes on the same cores. Each row is the fastest of three runs.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from distributed import LocalCluster
from robots import measured
from timing import keep, parser

import robot_dynamics as rd
from robot_dynamics.identification.fleet import fleet_at, one_blas_thread
from robot_dynamics.identification.normal_equations import reduce
from robot_dynamics.identification.per_recording import Work, key_of, reduced
from robot_dynamics.identification.preparation import even
from robot_dynamics.identification.read import read
from robot_dynamics.identification.shared_filter import SharedFilter, octaves

ROBOT = "package://robot_dynamics/urdf/six_axis.urdf"
RATE = 250.0
REPEATS = 3


def record(path: Path, mechanism: rd.Mechanism, duration: float, seed: int) -> None:
    """A CSV of a moving robot with noise on its torques."""
    names = mechanism.joint_names
    t, *columns = measured(mechanism, duration, RATE, np.random.default_rng(seed))
    header = ["time", *(f"{x}/{f}" for f in ("position", "velocity", "effort") for x in names)]
    table = np.hstack([t[:, None], *columns])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


def shared(work: Work, paths: list[Path]) -> SharedFilter:
    """The filter that these recordings choose together."""
    raws = [(key_of(path), work.usable(work.raw(path))) for path in paths]
    with one_blas_thread():
        return SharedFilter.of(work.unknowns(raws[0][1].joints), raws)


def steps(work: Work, paths: list[Path]) -> dict[str, float]:
    """Samples per second of processor time, by step. `all, choosing` is all of them in a row; `all`
    is what a recording takes that is like those that have chosen the filter.

    Choosing the filter, and the weights within summing, look at some thousand samples, however many
    there are.
    """
    clock = time.process_time
    taken = dict.fromkeys(("reading", "choosing", "comparing", "filtering", "summing"), 0.0)
    samples = 0
    begin = clock()
    choice = shared(work, paths).choice
    taken["choosing"] += clock() - begin
    for path in paths:
        begin = clock()
        recording = read(path)
        taken["reading"] += clock() - begin
        begin = clock()
        raw = even(recording, work.mechanism.joint_names)
        taken["filtering"] += clock() - begin
        unknowns = work.unknowns(raw.joints)
        begin = clock()
        octaves(raw)
        taken["comparing"] += clock() - begin
        begin = clock()
        prepared = raw.filtered(choice.cutoff)
        taken["filtering"] += clock() - begin
        begin = clock()
        with one_blas_thread():
            reduce(unknowns, prepared)
        taken["summing"] += clock() - begin
        samples += sum(len(stream.time) for stream in recording.streams)
    comparing, choosing = taken["comparing"], taken["choosing"]
    taken["all"] = sum(taken.values()) - choosing
    taken["all, choosing"] = taken["all"] - comparing + choosing
    return {name: samples / seconds for name, seconds in taken.items()}


def seconds_to_reduce(work: Work, paths: list[Path], workers: int, dask: bool) -> float:
    """s to reduce the recordings; 0 workers: this process."""
    with ExitStack() as stack:
        scheduler = None
        if dask:
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
            scheduler = stack.enter_context(cluster).scheduler_address
        local = workers if workers and not dask else None
        fleet = stack.enter_context(fleet_at(scheduler, local))
        # every process has its imports and kernels before the clock starts
        list(fleet.map(partial(reduced, work), 4 * max(workers, 1) * paths[:1]))
        begin = time.perf_counter()
        list(fleet.map(partial(reduced, work), paths))
        return time.perf_counter() - begin


def main() -> None:
    reader = parser(__doc__)
    reader.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    reader.add_argument("--recordings", type=int, nargs="+", default=[4, 8, 16])
    reader.add_argument("--duration", type=float, default=20.0, help="s of each recording")
    options = reader.parse_args()
    mechanism = rd.load(ROBOT)
    work = Work(mechanism, None, {}, {}, None, None, 1 / 3, None)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{k}.csv" for k in range(max(options.recordings))]
        for k, path in enumerate(paths):
            record(path, mechanism, options.duration, k)
        reduced(work, paths[0])  # the kernels are there before a clock starts
        few = paths[: max(2, min(options.recordings))]
        alone = steps(work, few)
        # the first recordings have chosen for all
        work = replace(work, filters=(shared(work, few),))
        for name, rate in alone.items():
            print(f"{name:14} {rate:29,.0f} per second of one core")
        own: dict[int, float] = {}
        kinds = [(0, False), *((each, dask) for dask in (False, True) for each in options.workers)]
        for workers, dask in kinds:
            kind = "Dask workers" if dask else "processes"
            who = f"{workers} {kind}" if workers else "this process"
            for count in options.recordings:
                seconds = min(
                    seconds_to_reduce(work, paths[:count], workers, dask) for _ in range(REPEATS)
                )
                samples = count * round(options.duration * RATE)
                each = {"workers": workers, "dask": dask, "samples": samples, "seconds": seconds}
                results.append(each)
                own.setdefault(count, samples / seconds)
                print(
                    f"{who:14} {samples:9,} samples: {samples / seconds:9,.0f} per second, "
                    f"{samples / seconds / own[count]:.2f} of this process",
                    flush=True,
                )
    seconds_each = {name: 1.0 / rate for name, rate in alone.items()}
    keep(options.json, {"seconds a sample": seconds_each, "workers": results})


if __name__ == "__main__":
    main()
