# SPDX-License-Identifier: Apache-2.0
"""Many recordings: reduced where they are, by processes that may die."""

from __future__ import annotations

import contextlib
import csv
import errno
import math
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fleet_tasks import deadly, endless, faulty, flaky, length, size, slow, slow_to_send, unreadable
from recorded import changed, recording

import robot_dynamics as rd
from robot_dynamics.errors import BackendError, InputError, RecordingError
from robot_dynamics.identification import Recording, identify
from robot_dynamics.identification import fleet as fleets
from robot_dynamics.identification.fleet import Here, Sum, Workers, _Waiting, fleet_at
from robot_dynamics.identification.passes import Passes
from robot_dynamics.identification.per_recording import Work, reduced
from robot_dynamics.identification.prepared_cache import PreparedCache
from robot_dynamics.identification.reduction import sum_of
from robot_dynamics.identification.shared_filter import FEW

pytest.importorskip("scipy", reason="SciPy filters the recordings")
distributed = pytest.importorskip("distributed", reason="distributed is the fleet's scheduler")
psutil = pytest.importorskip("psutil", reason="distributed needs it, too")
threadpoolctl = pytest.importorskip(
    "threadpoolctl", reason="without it answers agree but for rounding"
)

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


@pytest.fixture(scope="module", autouse=True)
def blas_with_a_thread_for_each_core():
    """As for users, whose answers must not depend on it; other tests have one (conftest.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        with threadpoolctl.threadpool_limits(max(2, os.cpu_count() or 1), user_api="blas"):
            yield


@pytest.fixture(scope="module")
def arm():
    return rd.load(ROBOT)


@pytest.fixture(scope="module")
def truth(arm):
    return changed(arm, seed=3)


@pytest.fixture(scope="module")
def logs(truth, tmp_path_factory) -> list[str]:
    """Six recordings, and one that is not a recording."""
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


class Killing:
    """Kills a worker once the first recording is done and others are in progress."""

    def __init__(self, victim: int):
        self.victim, self.said = victim, []

    def __call__(self, words: str) -> None:
        if ": 1 of" in words and not any(": 1 of" in each for each in self.said):
            os.kill(self.victim, signal.SIGKILL)
        self.said.append(words)


def test_workers_of_which_one_is_killed_find_what_one_process_finds(arm, logs, alone, cluster):
    progress = Killing(min(pids(cluster)))
    found = identify(arm, logs, scheduler=cluster.scheduler_address, progress=progress)
    assert_same(alone, found)
    assert progress.victim not in pids(cluster)
    (left_out,) = [words for words in found.warnings if words.startswith("left out")]
    assert "broken.csv" in left_out
    assert found.duration == pytest.approx(COUNT * 4.0, rel=0.1)


def own_processes() -> list[int]:
    """Those of `Processes`, without those of a cluster."""
    found = multiprocessing.active_children()
    return [each.pid for each in found if each.name.startswith("SpawnProcess")]


def test_processes_of_which_one_is_killed_find_what_one_process_finds(arm, logs, alone):
    killed = []

    def progress(words: str) -> None:
        if ": 1 of" in words and not killed:
            killed.append(min(own_processes()))
            os.kill(killed[0], signal.SIGKILL)

    found = identify(arm, logs, workers=2, progress=progress)
    assert killed
    assert_same(alone, found)
    assert not own_processes()


def test_processes_are_ended_with_the_pass_and_leave_out_what_kills_them(logs):
    # the deadly one shares its task with others
    some = [*5 * [logs[0]], logs[4], *10 * [logs[1]]]
    with fleet_at(None, 2) as fleet:
        found = dict(fleet.map(deadly, some))
        assert isinstance(found[5], RecordingError)
        assert "3.csv: every worker that took it died" in str(found[5])
        assert {k: found[k] for k in range(16) if k != 5} == {
            k: some[k] for k in range(16) if k != 5
        }
        with pytest.raises(ZeroDivisionError):
            list(fleet.map(faulty, [logs[0]]))
        # paths are the caller's
        assert dict(fleet.map(deadly, [os.path.relpath(logs[0])])) == {0: logs[0]}
        assert next(fleet.map(endless, logs)) == (0, logs[0])
        begin = time.monotonic()
    assert time.monotonic() - begin < 10  # the others take far longer
    assert not own_processes()


def test_results_that_find_no_room_are_one_clear_line(logs):
    with fleet_at(None, 1) as fleet:
        shutil.rmtree(fleet._results.name)  # as good as a full disk
        with pytest.raises(BackendError, match=r"intermediate results are stored there; free some"):
            list(fleet.map(deadly, logs[:1]))
        os.mkdir(fleet._results.name)


def kill_one(fleet):
    """Kill a process, and wait until the pool has noticed."""
    os.kill(min(own_processes()), signal.SIGKILL)
    end = time.monotonic() + 10
    while time.monotonic() < end and not fleet._pool._broken:
        time.sleep(0.01)
    assert fleet._pool._broken


def test_a_process_that_dies_before_the_next_task_is_submitted_loses_nothing(logs):
    with fleet_at(None, 2) as fleet:
        outcomes = fleet.map(slow, 12 * [logs[0]])
        found = dict([next(outcomes)])
        kill_one(fleet)  # others are pending
        found.update(outcomes)
        assert found == dict.fromkeys(range(12), 0)
        kill_one(fleet)  # nothing is pending
        assert dict(fleet.map(deadly, logs[:2])) == {0: logs[0], 1: logs[1]}
    assert not own_processes()


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers, arm, logs):
    with pytest.raises(InputError, match=r"workers: found .*, expected a number of processes"):
        identify(arm, logs, workers=workers)
    with pytest.raises(InputError, match="workers: found 2, expected none: a scheduler has"):
        identify(arm, logs, workers=2, scheduler="tcp://127.0.0.1:9")


def is_there(group: int) -> bool:
    """Whether any process of a group still runs, which is no longer ours to wait for."""
    for each in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(each.pid) == group and each.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def test_a_script_that_every_process_would_run_anew_is_told_so(logs, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import robot_dynamics as rd\nrd.identify({ROBOT!r}, {logs!r}, workers=2)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    # Python's own resource tracker may complain after it
    (line,) = (each for each in done.stderr.splitlines() if "BackendError: " in each)
    assert "BackendError: workers: worker processes exit at once" in line
    assert 'if __name__ == "__main__":' in line


def test_the_command_line_starts_processes(logs, tmp_path):
    """None of them imports SymPy, which they do not need."""
    python = [sys.executable, "-X", "importtime", "-m", "robot_dynamics"]
    command = [*python, "identify", ROBOT, *logs, "--workers", "2"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "a")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "identified.yaml").exists()
    # all three processes say it
    assert len(re.findall(r"\| +robot_dynamics\.identification\.fleet$", done.stderr, re.M)) >= 3
    assert not re.findall(r"\| +sympy$", done.stderr, re.M)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_processes_too(number, logs, tmp_path):
    command = [sys.executable, "-m", "robot_dynamics", "identify", ROBOT, "--workers", "2"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [*command, *(20 * logs), "--out", str(tmp_path / "b")],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as running:  # fmt: skip
        assert running.stderr is not None
        for line in running.stderr:
            if ": 1 of" in line:
                break
        if number == signal.SIGINT:
            os.killpg(running.pid, number)  # as a terminal does
        else:
            running.send_signal(number)
        code = running.wait(30)
        rest = "" if number == signal.SIGKILL else running.stderr.read()
        assert code == (-number if number == signal.SIGKILL else 130), rest
    assert "Traceback" not in rest
    end = time.monotonic() + 10  # for multiprocessing's own process, which sees ours end
    while time.monotonic() < end and is_there(running.pid):
        time.sleep(0.1)
    assert not is_there(running.pid)
    if number != signal.SIGKILL:  # what a compiler had begun in a process aside
        assert not [*scratch.glob("robot_dynamics_*")]


def test_any_thread_may_start_processes(logs):
    def started() -> dict:
        with fleet_at(None, 1) as fleet:
            return dict(fleet.map(length, logs[:1]))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(started).result() == {0: length(logs[0])}


INTERRUPTED = """
import multiprocessing.context, os, signal, sys, threading
process, here, seen = multiprocessing.context.SpawnProcess, threading.get_ident(), []
start, at, which = process.start, sys.argv[1], int(sys.argv[2])
def interrupt(where):
    seen.extend([where] * (where == at))
    if where == at and len(seen) == which:
        os.kill(os.getpid(), signal.SIGINT)
def started(self):
    start(self)
    interrupt("process")
def locked(self):
    self._lock.acquire()
    caller = sys._getframe(1).f_code.co_filename
    if threading.get_ident() == here and "concurrent" in caller:
        interrupt("lock")
process.start, threading.Condition.__enter__ = started, locked
if __name__ == "__main__":
    from robot_dynamics.app.cli import main
    sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize(
    ("where", "which"), [("process", 2), ("lock", 1), ("lock", 5), ("lock", 9)]
)
def test_an_interrupt_at_a_bad_moment_ends_it_too(where, which, logs, tmp_path):
    """Otherwise a process is left behind that its pool does not know, or a lock of a future, for
    which another thread waits forever."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    command = [sys.executable, str(script), where, str(which), "identify", ROBOT, "--workers", "2"]
    with subprocess.Popen(
        [*command, *logs, "--out", str(tmp_path / "b")],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            _, said = running.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, said
    assert said.rstrip().endswith("robot_dynamics: stopped")


def test_no_more_processes_are_started_than_there_are_recordings(logs):
    with fleet_at(None, 200, 1) as fleet:
        assert fleet.workers == 1
    for workers in (0, 257, 100_000, True):
        with pytest.raises(InputError, match=r"workers: .*1 to 256"):
            fleet_at(None, workers)


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3])
def test_processes_end_while_they_send_their_results(seconds):
    """Through a pipe, 40 MB would take seconds while this thread leaves others little time."""
    with fleet_at(None, 1) as fleet:
        for _ in fleet.map(slow_to_send, ["first", "second"]):
            break
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass


def test_processes_share_what_one_of_them_has_prepared(arm, logs):
    with PreparedCache() as cache:
        work = Work(arm, None, {}, {}, None, None, 1 / 3, cache)
        with fleet_at(None, 1) as fleet:
            (outcome,) = fleet.map(partial(reduced, work), logs[:1])
        assert not isinstance(outcome[1], Exception)
        kept = cache.get((logs[0], arm.joint_names, ()))
        assert kept is not None
        assert kept.source == "0.csv"
        assert cache.get((logs[1], arm.joint_names, ())) is None
        # a recording in memory has no name in another process
        copy = pickle.loads(pickle.dumps(cache))
        one, other = Recording("same", ()), Recording("same", ())
        cache.put((one, kept.joints, ()), kept)
        copy.put((other, kept.joints, ()), kept)
        assert cache.get((one, kept.joints, ())) is not None
        assert copy.get((one, kept.joints, ())) is None
        assert cache.get((other, kept.joints, ())) is None
        assert copy.get((os.path.relpath(logs[0]), kept.joints, ())) is not None


@pytest.mark.parametrize("wrong", [1.0, -1.0])
@pytest.mark.parametrize("count", [1, 3])
def test_each_recording_is_read_once_for_each_scale_of_its_efforts(
    count, wrong, truth, monkeypatch
):
    times, original = [], Work.raw
    monkeypatch.setattr(Work, "raw", lambda *a: times.append(a[1].source) or original(*a))
    logs = []
    for seed in range(count):
        log = recording(truth, 6.0, 100.0, seed=seed, noise=0.02)
        (stream,) = log.streams
        factors = np.where(np.arange(len(stream.names)) == 1, wrong, 1.0)
        stream = replace(stream, effort=stream.effort * factors)
        logs.append(Recording(str(seed), (stream,)))
    found = identify(truth, logs)
    assert len(found.doubts) == (wrong < 0)
    assert sorted(times) == sorted((2 if wrong < 0 else 1) * [log.source for log in logs])


def test_the_order_of_recordings_is_not_seen(arm, logs, alone):
    other = identify(arm, logs[::-1])
    assert alone.parameters == other.parameters
    assert (alone.errors.identified == other.errors.identified).all()
    assert alone.errors.duration == pytest.approx(COUNT * 2.0, rel=0.15)  # the last third
    assert alone.errors.duration < alone.fitted.duration
    assert alone.traces[0].source == "0.csv"
    assert other.traces[0].source == f"{COUNT - 1}.csv"


class Backwards(Here):
    def map(self, function, sources):
        return reversed([*super().map(function, sources)])


def test_what_is_told_of_recordings_comes_in_their_order(arm, logs):
    work = Work(arm, None, {}, {}, None, None, 1 / 3, None)
    passes = Passes(Backwards(), lambda words: None)
    _, kept, _ = sum_of(passes, work, dict(enumerate(logs[:3])))
    assert [*kept] == [0, 1]
    assert [each.source for each in kept.values()] == ["0.csv", "1.csv"]


def test_recordings_that_judge_are_read_by_workers_too(arm, logs, cluster):
    fitted, judges = [logs[0], logs[1]], [logs[3], logs[2], logs[4]]
    here = identify(arm, fitted, validate=judges)
    there = identify(arm, fitted, validate=judges, scheduler=cluster.scheduler_address)
    assert_same(here, there)
    assert here.errors.duration == pytest.approx(2 * 6.0, rel=0.1)
    assert here.fitted.duration == pytest.approx(2 * 6.0, rel=0.1)
    assert set(here.cutoffs) == {"0.csv", "1.csv", "2.csv", "3.csv"}
    assert [(each.source, each.seen) for each in here.traces] == [("0.csv", True), ("2.csv", False)]


def test_memory_is_flat_in_the_number_of_recordings(arm, logs, alone):
    peaks = []
    for some in ((FEW + 2) * logs[:1], (FEW + 14) * logs[:1]):
        with PreparedCache() as cache:
            # a large fleet shares its filters
            work = Work(arm, None, {}, {}, None, 10.0, 1 / 3, cache)
            passes = Passes(Here(), lambda words: None)
            tracemalloc.start()
            _, kept, _ = sum_of(passes, work, dict(enumerate(some)))
            assert len(kept) == len(some)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # 12 recordings more: their normal equations alone are half a megabyte
    assert peaks[1] - peaks[0] < 2e5


def test_what_finds_no_room_on_the_shelf_is_prepared_again(arm, logs, alone, monkeypatch):
    monkeypatch.setattr(PreparedCache.__init__, "__defaults__", (100_000,))
    assert identify(arm, logs).parameters == alone.parameters
    cache = PreparedCache()
    with cache:
        cache.put(("small", ("j",), ()), np.zeros(10_000))
        cache.put(("none left", ("j",), ()), np.zeros(10_000))
        cache.put(("a little", ("j",), ()), np.zeros(1_000))
        assert len(cache.get(("small", ("j",), ()))) == 10_000
        assert len(cache.get(("a little", ("j",), ()))) == 1_000
        assert cache.get(("none left", ("j",), ())) is None
        assert len([*Path(cache._folder.name).iterdir()]) == 2


def test_a_cache_that_cannot_be_written_keeps_nothing(arm, logs, alone, monkeypatch):
    """The disk is full, or another process has just moved a file whose size was asked for."""

    def full(content, file):
        file.write(pickle.dumps(content)[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    with PreparedCache() as cache:
        key = ("a", ("j",), ())
        monkeypatch.setattr("robot_dynamics.identification.prepared_cache.pickle.dump", full)
        cache.put(key, np.zeros(1_000))
        assert cache.get(key) is None
        assert not [*Path(cache._folder.name).iterdir()]
        assert identify(arm, logs).parameters == alone.parameters
        monkeypatch.undo()
        cache.put(key, np.zeros(1_000))
        assert len(cache.pop(key)) == 1_000
        assert cache.pop(key) is None


def test_a_file_that_vanishes_between_two_calls_is_not_kept():
    with PreparedCache() as cache:
        gone = Path(cache._folder.name) / "gone.1"
        gone.symlink_to("nothing")  # its size cannot be asked for
        cache.put(("a", ("j",), ()), np.zeros(1_000))
        assert cache.get(("a", ("j",), ())) is None


def test_joints_that_most_of_the_motion_has_are_fitted_to(arm, truth):
    first, second, third = (recording(truth, 6.0, 100.0, seed=k, noise=0.02) for k in range(3))
    fewer = arm.joint_names[:-1]
    found = []
    for recordings in ((first, second, third), (second, third, first)):
        some = [
            replace(each, streams=(each.streams[0].of(fewer),)) if each is not first else each
            for each in recordings
        ]
        found.append(identify(arm, some))
    one, other = found
    assert one.joints == other.joints == fewer
    assert one.parameters == other.parameters
    # the first is used without its last; filters leave five sixths of each
    assert one.duration == pytest.approx(3 * 4.0 * 5 / 6, rel=0.1)
    lacking = replace(first, streams=(first.streams[0].of(arm.joint_names[1:]),))
    third_of = replace(third, streams=(third.streams[0].of(fewer),))
    second_of = replace(second, streams=(second.streams[0].of(fewer),))
    said = identify(arm, [lacking, second_of, third_of]).warnings[0]
    assert "left out: simulated 0" in said
    assert arm.joint_names[0] in said


def test_recordings_that_are_left_out_for_the_same_reason_share_a_line(arm, truth):
    whole = recording(truth, 6.0, 100.0, noise=0.02)
    short = [recording(truth, 1.0 + k / 10, 100.0, seed=k, noise=0.02) for k in range(1, 5)]
    lacking = replace(whole, streams=(whole.streams[0].of(arm.joint_names[1:]),), source="fewer")
    lines = identify(arm, [*short, whole, lacking]).warnings
    one, other = sorted(words for words in lines if words.startswith("left out"))
    assert one.startswith("left out: fewer: ")
    assert other.startswith("left out: simulated 1: too short: 1.09 s")
    assert other.endswith("; likewise 3 more: simulated 2, simulated 3, simulated 4")


def test_alike_notes_of_many_recordings_share_a_line(arm, truth):
    logs = [
        replace(recording(truth, 6.0, 100.0, seed=k, noise=0.02), notes=(f"{k + 0.5} s odd at q1",))
        for k in range(5)
    ]
    logs[4] = replace(logs[4], notes=("4.5 s odd at q2",))
    odd = [note for note in identify(arm, logs).notes if "odd" in note]
    likewise = "; likewise 3 more: simulated 1, simulated 2, simulated 3"
    assert odd == [f"simulated 0: 0.5 s odd at q1{likewise}", "simulated 4: 4.5 s odd at q2"]
    few = [note for note in identify(arm, logs[:3]).notes if "odd" in note]
    assert few == [f"simulated {k}: {k}.5 s odd at q1" for k in range(3)]


def test_a_sum_does_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    terms = [Term(rng.normal(size=(3, 4)) * 10.0 ** rng.integers(-9, 9), k / 7) for k in range(60)]
    sums = []
    for order in (terms, terms[::-1], [terms[k] for k in rng.permutation(60)]):
        total = Sum()
        for term in order:
            total.add(term)
        sums.append(total.value())
    exact = [[math.fsum(t.a[i, j] for t in terms) for j in range(4)] for i in range(3)]
    for each in sums:
        assert (each.a == exact).all()
        assert each.b == math.fsum(k / 7 for k in range(60))


@dataclass
class Term:
    a: np.ndarray
    b: float


def test_what_comes_of_recordings_is_not_held(logs, cluster):
    with fleet_at(cluster.scheduler_address) as fleet:
        some = [logs[0], logs[1]] * 30
        tracemalloc.start()
        for k, found in fleet.map(size, some):
            assert found[0] == k % 2
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2e7  # of 60 MB


def test_a_recording_that_is_nowhere_or_kills_its_worker_is_left_out(logs, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    # the deadly one shares its task with others
    some = [*5 * [logs[0]], logs[4], *10 * [logs[1]], "/nowhere/log.csv"]
    with fleet_at(cluster.scheduler_address) as fleet:
        found = dict(fleet.map(deadly, some))
        assert isinstance(found[5], RecordingError)
        assert "3.csv: every worker that took it died" in str(found[5])
        assert "/nowhere/log.csv: no worker" in str(found[16])
        assert {k: found[k] for k in range(16) if k != 5} == {
            k: some[k] for k in range(16) if k != 5
        }
        # a fault that is not the recording's own is retried
        assert dict(fleet.map(flaky, [logs[0]])) == {0: "read"}
        found = dict(fleet.map(unreadable, [logs[0], logs[1]]))
        assert "0.csv: no worker can read it (the disk is away)" in str(found[0])
        assert found[1] == logs[1]
        with pytest.raises(ZeroDivisionError):
            list(fleet.map(faulty, [logs[0]]))
        # paths are the client's, whatever the workers' directory
        assert dict(fleet.map(deadly, [os.path.relpath(logs[0])])) == {0: logs[0]}


@pytest.mark.parametrize(
    ("count", "threads", "first"), [(1, 1, 1), (3, 2, 1), (24, 2, 6), (900, 3, 8)]
)
def test_batches_become_smaller_so_that_all_workers_finish_together(count, threads, first):
    waiting = _Waiting([None] * count)
    batches = []
    while batch := waiting.batch(threads, alone=False):
        batches.append(batch)
    assert [k for batch in batches for k in batch] == [*range(count)]
    sizes = [*map(len, batches)]
    assert sizes[0] == first
    assert sizes == sorted(sizes, reverse=True)
    assert len(batches) >= min(count, 2 * threads)
    assert sizes[-1] == 1


def test_a_batch_lies_on_the_same_hosts_and_suspects_are_tried_alone():
    here, there = frozenset({"here"}), frozenset({"there"})
    waiting = _Waiting([here, here, frozenset(), here, there, there, None, *3 * [here]])
    assert waiting.nowhere == [2]
    found = [waiting.batch(1, alone=False) for _ in range(7)]
    assert found == [[0, 1, 3], [4, 5], [6], [7], [8], [9], []]
    assert waiting.failed([4, 5], 0)
    assert waiting.failed([9], 0)
    assert waiting.batch(1, alone=False) == []
    assert waiting.batch(1, alone=True) == [4]
    assert not waiting.failed([4], 0)
    assert waiting.failed([4], 1)
    assert [waiting.batch(1, alone=True) for _ in range(4)] == [[5], [9], [4], []]
    assert not waiting.failed([4], 1)
    assert not waiting.failed([5], 0)


def few(**options):
    return distributed.LocalCluster(
        processes=False, protocol="tcp", dashboard_address=None, silence_logs=50,
        threads_per_worker=1, **options,
    )  # fmt: skip


def test_a_fleet_that_is_not_there_is_one_clear_line(monkeypatch, logs, tmp_path):
    monkeypatch.setattr(fleets, "PATIENCE", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "tcp://no.such.host.invalid:1", "7"):
        begin = time.monotonic()
        with pytest.raises(BackendError, match="no scheduler answers at") as caught:
            Workers(address)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - begin < 30  # a hang, not a speed
    # nor does a client that is half connected say more at the end
    options = ["--out", str(tmp_path), "--scheduler", "nonsense://x"]
    done = subprocess.run(
        [sys.executable, "-m", "robot_dynamics", "identify", ROBOT, logs[0], *options],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no scheduler answers at nonsense://x" in line
    with few(n_workers=0) as empty, pytest.raises(BackendError, match="has no worker"):
        Workers(empty.scheduler_address)
    monkeypatch.setattr(fleets, "LOOK", 0.2)
    with few(n_workers=1) as leaving, fleet_at(leaving.scheduler_address) as fleet:
        outcomes = fleet.map(slow, logs)
        next(outcomes)
        leaving.scale(0)
        with pytest.raises(BackendError, match="all workers are gone"):
            list(outcomes)


def test_versions_that_differ_are_one_line():
    same = {"python": "3.11", "numpy": "2.0", "dask": "1"}
    assert fleets._differences([same, {"python": "3.11", "numpy": None, "dask": "1"}, same]) == []
    other = same | {"numpy": "1.26", "python": "3.12", "msgpack": "9"}
    assert fleets._differences([same, same, other]) == [
        "python 3.11 and 3.12",
        "numpy 1.26 and 2.0",
    ]


def test_recordings_go_where_they_lie():
    class Seen(Workers):
        def __init__(self, answers):
            self._client, self.answers = self, answers

        def run(self, function, paths, on_error):
            return {worker: answer(paths) for worker, answer in self.answers.items()}

    answers = {
        "tcp://one:1": lambda paths: [path.startswith("/a") for path in paths],
        "tcp://one:2": lambda paths: [path == "/c" for path in paths],
        "tcp://two:1": lambda paths: [path == "/c" for path in paths],
        "tcp://three:1": lambda paths: OSError("just died"),
    }
    places = ["/a", Recording("in memory", ()), "/c", "/nowhere"]
    found = Seen(answers)._hosts(places)
    assert found == [frozenset({"one"}), None, None, frozenset()]
    answers["tcp://four:1"] = lambda paths: ModuleNotFoundError("robot_dynamics")
    with pytest.raises(BackendError, match="lacks robot_dynamics"):
        Seen(answers)._hosts(places)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_fleet_over_tls_takes_those_alone_who_have_a_certificate(arm, logs, tmp_path):
    import dask

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    tls = "distributed.comm.tls"
    wanted = {"distributed.comm.require-encryption": True, f"{tls}.ca-file": str(cert)}
    for role in ("scheduler", "worker", "client"):
        wanted |= {f"{tls}.{role}.cert": str(cert), f"{tls}.{role}.key": str(key)}
    with (
        dask.config.set(wanted),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, protocol="tls", silence_logs=50,
            security=distributed.Security(), dashboard_address=None,
        ) as cluster,
    ):  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        with fleet_at(cluster.scheduler_address) as fleet:
            assert dict(fleet.map(length, logs[:2])) == {0: 600, 1: 600}
        nobody = {f"{tls}.client.cert": None, f"{tls}.client.key": None}
        with (
            dask.config.set(nobody),
            pytest.raises(BackendError, match="no scheduler answers"),
        ):
            fleet_at(cluster.scheduler_address)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is told, which is Linux's")
def test_a_worker_does_not_page_in_every_array_anew():
    """Dask makes its workers return memory at once, by an environment variable."""
    code = (
        "import pickle, fleet_tasks; from robot_dynamics.identification.fleet import _run\n"
        "given_back = fleet_tasks.touch('')\n"  # first: what was kept may leave a hole
        "print(*_run(pickle.dumps(fleet_tasks.touch), ['']), given_back)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parent, env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
    )  # fmt: skip
    kept, given_back = map(int, told.stdout.split())
    assert given_back > 100 * 700  # a page has 4 kB
    assert kept < given_back / 20
