"""Many recordings: reduced where they lie, by processes that may die."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from recorded import changed, recording

import robot_dynamics as rd
from robot_dynamics.identification import identify

pytest.importorskip("scipy", reason="SciPy filters the recordings")
distributed = pytest.importorskip("distributed", reason="distributed is the fleet's scheduler")
pytest.importorskip("threadpoolctl", reason="without it answers agree but for rounding")

ROBOT = "config/three_axis.yaml"
COUNT = 6


def write(path: Path, found) -> str:
    (stream,) = found.streams
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        fields = ("position", "velocity", "effort")
        rows.writerow(["time", *(f"{name}/{each}" for each in fields for name in stream.names)])
        values = [stream.time, stream.position, stream.velocity, stream.effort]
        rows.writerows(np.column_stack(values).tolist())
    return str(path)


@pytest.fixture(scope="module")
def arm():
    return rd.load(ROBOT)


@pytest.fixture(scope="module")
def truth(arm):
    return changed(arm, seed=3)


@pytest.fixture(scope="module")
def logs(truth, tmp_path_factory) -> list[str]:
    """Six recordings, and one that is none."""
    folder = tmp_path_factory.mktemp("logs")
    paths = [
        write(folder / f"{k}.csv", recording(truth, 6.0, 100.0, seed=k, noise=0.02))
        for k in range(COUNT)
    ]
    broken = folder / "broken.csv"
    broken.write_text("time,axis/position\n1,x\n")
    return [*paths[:2], str(broken), *paths[2:]]


@pytest.fixture(scope="module")
def alone(arm, logs):
    return identify(arm, logs)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        silence_logs=50,
    ) as found:  # fmt: skip
        yield found


def assert_same(one, other, rel=1e-10):
    assert one.parameter_names == other.parameter_names
    assert [*other.parameters.values()] == pytest.approx([*one.parameters.values()], rel=rel)
    for field in ("torque", "described", "identified", "unfiltered", "duration"):
        for errors in ("errors", "fitted"):
            expected = getattr(getattr(one, errors), field)
            assert getattr(getattr(other, errors), field) == pytest.approx(expected, rel=rel)
    scale = np.sqrt(np.diag(one.covariance))
    assert np.allclose(
        other.covariance / scale, one.covariance / scale, rtol=rel, atol=rel * scale[:, None].T
    )
    for field in ("notes", "warnings", "cutoffs", "locked", "excitation", "duration"):
        assert (
            getattr(other, field) == pytest.approx(getattr(one, field), rel=rel)
            if (field == "duration")
            else getattr(other, field) == getattr(one, field)
        )
    assert [(t.source, t.seen, len(t.samples)) for t in other.traces] == [
        (t.source, t.seen, len(t.samples)) for t in one.traces
    ]


def pids(cluster) -> set[int]:
    with distributed.Client(cluster, set_as_default=False) as client:
        return set(client.run(os.getpid).values())


def test_workers_of_which_one_is_killed_find_what_one_process_finds(arm, logs, alone, cluster):
    before = pids(cluster)
    victim = min(before)
    said = []

    def killing(words):
        if not said or "1 of" in words:  # at work on the first and then on another
            os.kill(victim, signal.SIGKILL) if "1 of" in words and victim in alive else None
            alive.discard(victim) if "1 of" in words else None
        said.append(words)

    alive = {victim}
    found = identify(arm, logs, scheduler=cluster.scheduler_address, progress=killing)
    assert_same(alone, found)
    assert not alive
    assert victim not in pids(cluster)
    assert f"reducing: {len(logs)} of {len(logs)}" in " ".join(said)
