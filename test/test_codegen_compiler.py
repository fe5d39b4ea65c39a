# SPDX-License-Identifier: Apache-2.0
"""Laws of the compiler: any working one is used, and a failing one causes no more than a
warning."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.codegen import BackendWarning, Function, Kernel, compiler, kernel, native
from robot_dynamics.scalar import cos, sign, sin, tanh

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler")


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """A cache of our own, and nothing remembered of other compilers."""
    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path / "kernels"))
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    for cached in (kernel._warn_once, native._host, compiler._find, compiler.accepted):
        cached.cache_clear()
    yield
    native._host.cache_clear()


def wave(x, y, p):
    return [sin(x[0]) * cos(y[0]) + p[0], tanh(x[1]) / (2.0 + sign(y[1])), x[0] * y[1] - x[1]]


def wave_kernel(backend="auto", **options):
    function = Function("wave", ("x", "y"), (2, 2), (3,), 1, wave, "wave")
    return Kernel(function, [0.25], backend, **options)


def is_right(run):
    x, y = np.random.default_rng(0).uniform(-3, 3, (2, 37, 2))
    expected = [wave(*row, [0.25]) for row in zip(x, y, strict=True)]
    return np.allclose(run(x, y), expected, rtol=1e-14, atol=1e-14) and np.allclose(
        run(x[0], y[0]), expected[0], rtol=1e-14, atol=1e-14
    )


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


@needs_compiler
@pytest.mark.parametrize("name", COMPILERS)
def test_kernels_and_their_caller_are_built_without_a_warning(name, monkeypatch):
    monkeypatch.setenv("CC", name)
    found = compiler.find()
    seen = []
    run = compiler.Compiler._run

    def heard(self, place, *each):
        seen.extend(each)
        return run(self, place, *([*command, "-Wall", "-Wextra", "-Werror"] for command in each))

    monkeypatch.setattr(compiler.Compiler, "_run", heard)
    monkeypatch.setattr(native, "_shipped_host", lambda source: None)
    made = wave_kernel("c")
    assert is_right(made)
    assert made.description == "wave: a kernel in C"  # not through ctypes
    assert found.command[0].endswith(name)
    flags = compiler.accepted(found, *compiler.NATIVE)
    # the trial, the kernels for single states and for batches
    assert sum(set(flags) <= set(each) for each in seen) >= 3
    # they are for this process alone; the caller is linked as any library
    assert sum(set(compiler.ALONE) <= set(each) for each in seen) == (3 if compiler.ALONE else 4)


@needs_compiler
@pytest.mark.parametrize(
    ("refused", "taken"),
    [
        ("-march=native", ("-mcpu=native",)),
        ("-mcpu=native", ("-march=native",)),
        ("-m*=native", ()),
        ("-nostdlib", ("-march=native",)),
    ],
)
def test_a_flag_that_the_compiler_does_not_know_is_left_out(refused, taken, monkeypatch, tmp_path):
    real = shutil.which(COMPILERS[0])
    line = f"""for each; do case "$each" in {refused}) exit 1;; esac; done
args=; for each; do case "$each" in -m*=native) ;; *) args="$args $each";; esac; done
exec {real} $args
"""
    monkeypatch.setenv("CC", script(tmp_path / "cc", line))
    made = wave_kernel("c")
    assert is_right(made)
    assert compiler.accepted(compiler.find(), *compiler.NATIVE) == taken


@needs_compiler
@pytest.mark.parametrize("name", COMPILERS)
def test_a_program_in_several_files_is_the_same(name, monkeypatch, caplog):
    counts, lean = [], []
    built = compiler.Compiler.shared_library

    def counted(self, files, flags):
        counts.append(len(files))
        lean.append(set(compiler.LEAN) <= set(flags))
        return built(self, files, flags)

    monkeypatch.setenv("CC", name)
    native._host()  # where the package is installed without it, it is compiled, too
    monkeypatch.setattr(compiler.Compiler, "shared_library", counted)
    monkeypatch.setattr("robot_dynamics.codegen.c_code.CHUNK", 3)
    monkeypatch.setattr(native, "cores", lambda: 3)
    monkeypatch.setattr(native, "PER_SECOND", 1)
    wave_kernel("c")
    monkeypatch.setattr(native, "QUICK", 0)
    x, y = np.random.default_rng(1).uniform(-3, 3, (2, 37, 2))
    results = []
    for part in ("whole", "divided"):
        monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", os.environ["ROBOT_DYNAMICS_CACHE"] + part)
        made = wave_kernel("c")
        assert is_right(made)
        results.append([made(x, y), made(x[0], y[0])])
        monkeypatch.setattr(native, "WORTH_A_FILE", 4)
    assert counts == [1, 1, 1, 3, 3]
    assert lean == [False, *[name == "gcc"] * 4]  # Clang does not know the flags
    told = [
        float(line.split("about ")[1].split()[0]) for line in caplog.messages if "about" in line
    ]
    assert np.array(told[:2]) / told[2:] == pytest.approx(3, abs=0.5)
    for whole, divided in zip(*results, strict=True):
        assert (whole == divided).all()


BROKEN = {
    "quotes": ("gcc '", "No closing quotation"),
    "nothing": ("/bin/true", "it wrote no library"),
    "no program": ("/nowhere/cc", "/nowhere/cc not found"),
    "blank": (" ", "not found"),
    "a directory": ("/tmp", "not found"),
}


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("case", BROKEN)
def test_a_compiler_that_is_none_is_one_warning_and_generated_python(case, batches, monkeypatch):
    command, words = BROKEN[case]
    monkeypatch.setenv("CC", command)
    with pytest.warns(BackendWarning, match=words) as heard:
        made, again = wave_kernel(batches=batches), wave_kernel(batches=batches)
    assert len(heard) == 1
    assert "\n" not in str(heard[0].message)
    assert made.backend == again.backend == "python"
    assert is_right(made)
    with pytest.raises(rd.RobotDynamicsError, match=words):
        wave_kernel("c", batches=batches)


@needs_compiler
@pytest.mark.parametrize(
    "written", ["echo rubbish > kernel.so", "{real} -shared -xc /dev/null -o kernel.so"]
)
def test_what_is_no_library_or_has_no_kernel_is_not_run(written, monkeypatch, tmp_path):
    text = written.format(real=shutil.which(COMPILERS[0]))
    monkeypatch.setenv("CC", script(tmp_path / "cc", text + "\n"))
    with pytest.warns(BackendWarning, match="no C kernel"):
        made = wave_kernel()
    assert made.backend == "python"
    assert is_right(made)


@needs_compiler
@pytest.mark.parametrize("batches", [False, True])
def test_batches_that_are_not_compiled_run_state_by_state(batches, monkeypatch, tmp_path):
    real = shutil.which(COMPILERS[0])
    text = f'case "$*" in *-O3*) echo \'not today\' >&2; exit 1;; esac; exec {real} "$@"\n'
    monkeypatch.setenv("CC", script(tmp_path / "cc", text))
    made = wave_kernel("c", batches=batches)
    with pytest.warns(BackendWarning, match="state by state"):
        assert is_right(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_right(made)


def stopped(tmp_path: Path, command: str) -> str:
    """What a program says that is interrupted while this compiler runs."""
    started = tmp_path / "started"
    code = f"""
import signal, robot_dynamics as rd
signal.signal(signal.SIGINT, signal.default_int_handler)
rd.InverseDynamics(rd.load({str(CONFIG / "polar.yaml")!r}))
"""
    environment = {**os.environ, "CC": command, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=30)[1].decode()
    assert process.returncode == -signal.SIGINT
    return words.strip()


@needs_compiler
def test_a_stop_while_it_compiles_ends_at_once_and_leaves_nothing(tmp_path):
    begin = f"touch $TMPDIR/cc.s {tmp_path / 'started'}"
    words = stopped(tmp_path, script(tmp_path / "cc", f"{begin}; exec sleep 60\n"))
    assert words.endswith("KeyboardInterrupt")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "kernels").exists() or list((tmp_path / "kernels").iterdir()) == []


@needs_compiler
def test_a_stop_while_a_part_of_the_compiler_still_writes_is_no_error(tmp_path):
    # as cc1, which outlives the driver that started it
    writes = "(k=0; while [ $k -lt 200000 ] && : >$TMPDIR/$k; do k=$((k+1)); done) >&- 2>&- &"
    begin = f"touch {tmp_path / 'started'}"
    words = stopped(tmp_path, script(tmp_path / "cc", f"{writes}\n{begin}; exec sleep 60\n"))
    assert words.endswith("KeyboardInterrupt")
    assert "OSError" not in words


OTHER_SYSTEMS = """
import builtins, os, platform, sys, warnings
for name in ("geteuid", "getuid", "sched_getaffinity", "register_at_fork", "fork"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("grp", "pwd", "fcntl", "resource"):
    sys.modules[name] = None
platform.machine = lambda: {machine!r}
opened = builtins.open
def without_proc(file, *more, **others):
    if str(file).startswith("/proc"):
        raise FileNotFoundError(2, "no such file", file)
    return opened(file, *more, **others)
builtins.open = without_proc
import numpy as np
import robot_dynamics as rd
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    dynamics = rd.InverseDynamics(rd.load({description!r}))
    Q = np.ones((3, 100, 2))
    tau = dynamics(*Q)
assert np.allclose(tau, dynamics(*Q[:, 0]))
print(len(heard), dynamics.backend)
"""


@pytest.mark.parametrize("machine", ["AMD64", "arm64", ""])
@pytest.mark.parametrize("has_compiler", [True, False])
def test_other_systems_compute_without_a_traceback(machine, has_compiler, tmp_path):
    if has_compiler and not COMPILERS:
        pytest.skip("no C compiler")
    code = OTHER_SYSTEMS.format(machine=machine, description=str(CONFIG / "polar.yaml"))
    path = os.environ["PATH"] if has_compiler else str(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "CC"} | {"PATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    expected = "0 torques: a kernel in C" if has_compiler else "1 torques: generated Python"
    assert done.stdout.startswith(expected)


@needs_compiler
def test_what_was_built_of_another_source_is_not_called(monkeypatch):
    source = (Path(native.__file__).parent / "c" / "caller.c").read_bytes()
    shipped = SimpleNamespace(built_from=hashlib.sha256(source).hexdigest())
    monkeypatch.setattr(native, "import_module", lambda *name: shipped)
    assert native._host() == (shipped, "")
    native._host.cache_clear()
    shipped.built_from = hashlib.sha256(source + b" ").hexdigest()
    found, why = native._host()
    assert found is not shipped
    assert found.rows, why


@pytest.mark.parametrize("told", [{"built_from": "another"}, {}])
def test_an_extension_of_another_version_is_said_in_one_line(monkeypatch, told):
    shipped = SimpleNamespace(__file__="/somewhere/_caller.so", **told)
    monkeypatch.setattr(native, "import_module", lambda *name: shipped)
    with pytest.warns(native.BackendWarning) as said:
        kind, shortened = native._forwarding()
    assert kind is native._Forwarding
    assert shortened(kind) is kind
    (line,) = [str(each.message) for each in said]
    assert line.startswith("/somewhere/_caller.so was built with another version")
    assert "install the package again" in line
    assert "\n" not in line
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native._forwarding()[0] is native.Forwarding  # as when it was imported
