# SPDX-License-Identifier: Apache-2.0
"""Laws of the kernels: all backends agree, whatever the inputs."""

from __future__ import annotations

import gc
import logging
import math
import os
import sys
import sysconfig
import threading
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from robots import random_urdf, relative, state

import robot_dynamics as rd
from robot_dynamics.codegen import (
    BackendWarning,
    Function,
    Kernel,
    c_code,
    compiler,
    kernel,
    native,
)  # fmt: skip
from robot_dynamics.scalar import cos, exp, sign, sin, tanh

ROUNDING = 1e-13
"""Relative: the backends do the same operations, C fusing some products into sums"""
SINE = 5e-16
"""Absolute: three units in the last place of a number below 1"""
SINE_FAR = 1e-10
"""Absolute, at angles of a million: the angle itself is known to 1e-10 alone"""

needs_compiler = pytest.mark.skipif(
    not any(
        os.access(os.path.join(p, c), os.X_OK)
        for p in os.get_exec_path()
        for c in ("cc", "gcc", "clang")
    ),
    reason="no C compiler",
)
BACKENDS = [pytest.param("c", marks=needs_compiler), "python"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
    monkeypatch.delenv(kernel.VARIABLE, raising=False)


def wave(x, y, p):
    """Something of everything that a kernel may be made of."""
    return [
        sin(x[0]) * cos(y[1]) + p[0],
        tanh(x[1]) - sign(y[0]) * p[1],
        (x[0] - y[0]) / 3.0 - (-(x[1] * y[1])),
        x[0] / (2.0 + cos(x[1] * y[0])),
        sin(sin(x[0])),
        7.0,
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_exponential_is_good_to_its_last_place_at_any_number(backend):
    function = Function("e", ("x",), (1,), (1,), 0, lambda x, p: [exp(x[0])], "e")
    run = Kernel(function, [], backend)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-750, 750, 300), [0.0, 709.7, 710.0, 1e300, -1e300]])
    x = np.concatenate([x, rng.uniform(-1, 1, 100), [np.inf, -np.inf, np.nan]])
    with np.errstate(over="ignore"):
        expected = np.exp(x)
    for found in (run(x[:, None])[:, 0], np.array([run([each])[0] for each in x])):
        np.testing.assert_allclose(found, expected, rtol=4e-16, atol=5e-324)


def wave_kernel(backend, **options):
    function = Function("wave", ("x", "y"), (2, 2), (2, 3), 2, wave, "wave")
    return Kernel(function, [0.25, -2.0], backend, **options)


def wave_by_hand(x, y, p=(0.25, -2.0)):
    return np.array(wave(x, y, p), dtype=float).reshape(2, 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_kernel_computes_the_function(backend):
    run = wave_kernel(backend)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(-5, 5, (50, 2, 2)):
        assert np.allclose(run(x, y), wave_by_hand(x, y), rtol=ROUNDING, atol=ROUNDING)


def enters_python(function, *arguments):
    events = []
    sys.setprofile(lambda frame, event, _: events.append(event))
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return "call" in events


@needs_compiler
def test_what_comes_first_is_built_first_and_the_other_when_it_comes(monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path))
    built, build = [], native._library

    def noted(function, kind):
        built.append(kind)
        return build(function, kind)

    monkeypatch.setattr(native, "_library", noted)
    x, y = np.random.default_rng(2).uniform(-5, 5, (2, 5, 2))
    for batches, order in ((True, ["batch", "single"]), (False, ["single", "batch"])):
        built.clear()
        run = wave_kernel("c", batches=batches)
        assert built == order[:1]
        for many in (batches, not batches, batches):
            rows = slice(0, 5) if many else 3
            for p, each in (((0.25, -2.0), run), ((0.5, 1.0), run.at([0.5, 1.0]))):
                expected = np.array([wave_by_hand(*at, p) for at in zip(x, y, strict=True)])[rows]
                assert np.allclose(each(x[rows], y[rows]), expected, rtol=ROUNDING, atol=ROUNDING)
        assert built == order
        if native._host()[0]:
            # from now on no Python runs, neither for single states nor for a few rows
            for rows in (3, slice(0, 5)):
                out = np.empty((*x[rows].shape[:-1], 2, 3))
                assert not enters_python(run.call, x[rows], y[rows])
                assert not enters_python(partial(run.call, out=out), x[rows], y[rows])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(1,), (17,), (4, 3), (0,), (2, 0, 3)])
def test_a_batch_is_its_states_one_by_one(backend, shape):
    run = wave_kernel(backend)
    x, y = np.random.default_rng(1).uniform(-5, 5, (2, *shape, 2))
    found = run(x, y)
    assert found.shape == (*shape, 2, 3)
    for place in np.ndindex(shape):
        assert np.allclose(found[place], run(x[place], y[place]), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_that_was_asked_for_before_is_asked_for_again(backend):
    run = wave_kernel(backend)
    rng = np.random.default_rng(5)
    for count in (3, 0, 40, 3, 1, 9):  # the second time rows go straight to the kernel
        x, y = rng.uniform(-5, 5, (2, count, 2))
        expected = np.array([wave_by_hand(*each) for each in zip(x, y, strict=True)])
        expected = expected.reshape(count, 2, 3)
        assert np.allclose(run.call(x, y), expected, rtol=ROUNDING, atol=ROUNDING)
        out = np.full((count, 2, 3), 9.0)
        assert run.call(x, y, out=out) is out
        assert np.array_equal(out, run.call(x, y))
        # what it reads must not be written over
        both = np.empty((count, 6))
        both[:, :2] = x
        aliased = both.reshape(-1)[: 2 * count].reshape(count, 2)
        aliased[...] = x
        assert np.allclose(run.call(aliased, y, out=both.reshape(count, 2, 3)), expected, ROUNDING)
    with pytest.raises(rd.InputError, match="broadcast"):
        run.call(x, y[:-1])
    for wrong in (x[:, :1], x[:, None, :1]):
        with pytest.raises(rd.InputError, match="expected"):
            run.call(wrong, y)
    with pytest.raises(rd.InputError, match="out"):
        run.call(x, y, out=np.empty((9, 3, 2)))
    other = run.at([1.0, 1.0])
    for _ in range(2):
        found = other.call(x, y)[0]
        assert np.allclose(found, wave_by_hand(x[0], y[0], (1.0, 1.0)), atol=ROUNDING)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_broadcast(backend):
    run = wave_kernel(backend)
    x, y = np.random.default_rng(2).uniform(-1, 1, (2, 5, 2))
    expected = run(x, y[0])
    assert np.array_equal(expected, run(x, np.broadcast_to(y[0], x.shape)))
    # into memory that is not aligned, too
    out = np.zeros(expected.nbytes + 1, np.uint8)[1:].view(float).reshape(expected.shape)
    assert run(x, y[0], out=out) is out
    assert np.array_equal(out, expected)


@needs_compiler
@pytest.mark.parametrize("width", [5, 16, 43])
def test_results_in_any_order_from_many_small_parts_are_those_of_one(width, monkeypatch):
    """Parts hand values on in places that are used again, and results leave in groups."""
    monkeypatch.setattr(c_code, "CHUNK", 7)
    shuffled = np.random.default_rng(width).permutation(width)

    def results(x, p):
        made = [x[0], sin(x[1]), 0.0, p[0], 2.5]
        while len(made) < width:
            k = len(made)
            made.append(made[k - 1] * made[k // 2] + made[k % 5] - x[k % 3] * made[-5])
        return [made[k] for k in shuffled]

    function = Function("mixed", ("x",), (3,), (width,), 1, results, ("mixed", width))
    compiled, plain = (Kernel(function, [0.3], backend) for backend in ("c", "python"))
    states = np.random.default_rng(1).uniform(-1, 1, (21, 3))
    expected = plain(states)
    assert len(set(map(tuple, expected))) == len(states)
    for count in (1, 7, 8, 9, 21):
        assert relative(compiled(states[:count]), expected[:count]) < ROUNDING, count
        assert relative(compiled(states[-1]), expected[-1]) < ROUNDING
    room = np.full((22, width), 99.0)
    compiled(states, out=room[:21])
    assert relative(room[:21], expected) < ROUNDING
    assert (room[21] == 99.0).all(), "written beyond the last row"


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
def test_results_that_no_cache_holds_are_the_same(threads, monkeypatch):
    """They are written past the caches wherever they begin, and nothing beside them."""
    monkeypatch.setattr(kernel, "WORTH_A_THREAD", 1)
    run = wave_kernel("c", threads=threads)
    x, y = np.random.default_rng(4).uniform(-1, 1, (2, 1001, 2))
    expected = run(x, y)
    host, past = native._host()[0], []
    spy = SimpleNamespace(rows=lambda *of: (past.append(of[-1]), host.rows(*of))[1])
    monkeypatch.setattr(run._code, "host", spy)
    for large in (expected.nbytes, expected.nbytes - 1):
        monkeypatch.setattr(native, "LARGE", large)
        for start in range(4):
            room = np.full(expected.size + 5, 99.0)
            out = room[start : start + expected.size].reshape(expected.shape)
            run(x, y, out=out)
            assert np.array_equal(out, expected)
            assert (np.delete(room, range(start, start + expected.size)) == 99.0).all()
    assert np.array_equal(run(x, y), expected)
    assert past == [False] * 4 + [True] * 4 + [False]


@needs_compiler
def test_rows_of_whole_lines_begin_where_a_line_does():
    function = Function("lines", ("x",), (1,), (8,), 0, lambda x, p: list(x) * 8, "lines")
    found = [Kernel(function, [], "c")(np.ones((count, 1))) for count in range(1000, 1016)]
    assert all(each.ctypes.data % 64 == 0 for each in found)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_nothing(threads, monkeypatch):
    monkeypatch.setattr(kernel, "WORTH_A_THREAD", 1)
    x, y = np.random.default_rng(3).uniform(-1, 1, (2, 1001, 2))
    assert np.array_equal(
        wave_kernel("c", threads=threads)(x, y), wave_kernel("c", threads=1)(x, y)
    )


@needs_compiler
def test_the_way_through_ctypes_computes_the_same(monkeypatch):
    x, y = np.random.default_rng(4).uniform(-1, 1, (2, 100, 2))
    direct = wave_kernel("c")
    expected, expected_one = direct(x, y), direct(x[0], y[0])
    monkeypatch.setattr(native, "_host", lambda: (None, "no headers"))
    monkeypatch.setattr(kernel, "WORTH_A_THREAD", 1)
    through = wave_kernel("c", threads=2)
    assert "no headers" in through.description
    assert np.array_equal(through(x, y), expected)
    assert np.array_equal(through(x[0], y[0]), expected_one)
    other = through.at([1.0, 1.0])
    assert np.allclose(other(x[0], y[0]), wave_by_hand(x[0], y[0], (1.0, 1.0)), atol=ROUNDING)


@needs_compiler
def test_a_target_that_other_threads_replace_is_called_or_its_successor_is():
    """Without the interpreter's lock, the one that is called must not be freed meanwhile."""
    host, why = native._host()
    if host is None:
        pytest.skip(why)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "the extension module brought the lock back"

    class Called(host.Forwarding):
        """Forwards to its target."""

        def __call__(self, *states):
            raise AssertionError("no target")

    called = host.shortened(Called)()
    function = Function("sum", ("x", "y", "z"), (1,) * 3, (1,), 1, lambda x, y, z, p: [
        x[0] + y[0] + z[0] + p[0]
    ], "sum")  # fmt: skip
    build, x = Kernel(function, [0.0], "c"), np.ones(1)
    called._target = build.call
    found: list[set[float]] = [set() for _ in range(3)]
    done = threading.Event()

    def calling(seen):
        while not done.is_set():
            seen.update(float(called(x, x, x)[0]) for _ in range(50))

    def replacing():
        for k in range(3000):
            called._target = build.at([k % 2]).call

    callers = [threading.Thread(target=calling, args=(seen,)) for seen in found]
    writers = [threading.Thread(target=replacing) for _ in range(2)]
    for thread in callers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in callers:
        thread.join()
    assert set.union(*found) <= {3.0, 4.0}


@needs_compiler
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells what is loaded")
def test_machine_code_is_unloaded_with_the_last_that_can_call_it():
    def is_loaded() -> bool:
        gc.collect()
        return key in Path("/proc/self/maps").read_text()

    # equations of its own: nobody else has this code
    function = Function("alone", ("x",), (1,), (1,), 1, lambda x, p: [x[0] * p[0] + 41.0], "alone")
    for kind, call in (("single", [2.0]), ("batch", [[2.0], [3.0]])):
        key = function.key("c", kind, compiler.find().identity)
        made = Kernel(function, [1.0], "c")
        other, x = made.at([10.0]), np.array(call)
        expected = 10.0 * x + 41.0
        np.testing.assert_array_equal(other(x), expected)
        fast = other.call
        del made, other
        assert is_loaded()
        np.testing.assert_array_equal(fast(x), expected)
        del fast
        assert not is_loaded()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_kernel_at_other_parameters_is_another_kernel(backend):
    first = wave_kernel(backend)
    x, y = np.array([0.3, -0.2]), np.array([0.1, 0.7])
    batch = np.tile(x, (20, 1))
    for p in ([1.0, 2.0], [-3.0, 0.0]):
        values = np.array(p)
        run = first.at(values)
        values[:] = 99.0  # the caller's own
        assert np.allclose(run(x, y), wave_by_hand(x, y, p), atol=ROUNDING)
        assert np.allclose(run(batch, y), wave_by_hand(x, y, p), atol=ROUNDING)
    assert np.allclose(first(x, y), wave_by_hand(x, y), atol=ROUNDING)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sine_and_cosine_are_right_near_and_far(backend):
    def both(x, p):
        return [sin(x[0]), cos(x[0])]

    run = Kernel(Function("both", ("x",), (1,), (2,), 0, both, "both"), backend=backend)
    rng = np.random.default_rng(5)
    near = np.concatenate([rng.uniform(-7, 7, 4000), np.arange(-40, 41) * np.pi / 4])
    far = np.concatenate([rng.uniform(-2e6, 2e6, 4000), [1e22, -1e300]])
    for angles, tolerance in ((near, SINE), (far, SINE_FAR)):
        for found in (run(angles[:, None]), np.array([run([x]) for x in angles[:200]])):
            some = angles[: len(found)]
            expected = np.stack([np.sin(some), np.cos(some)], axis=-1)
            assert np.abs(found - expected).max() < tolerance


@pytest.mark.parametrize("backend", BACKENDS)
def test_sine_and_cosine_keep_their_digits_where_they_vanish(backend):
    """Next to multiples of π/2 as far as 1e6, relative to what is left: some 1e-11."""

    def both(x, p):
        return [sin(x[0]), cos(x[0])]

    run = Kernel(Function("both", ("x",), (1,), (2,), 0, both, "both"), backend=backend)
    k = np.random.default_rng(7).integers(-600_000, 600_000, 4000)
    angles = k * (np.pi / 2)
    expected = np.array([[math.sin(x), math.cos(x)] for x in angles])
    found = run(angles[:, None])
    assert np.abs(expected).min() < 1e-10
    assert (np.abs(found - expected) <= 1e-15 * np.abs(expected)).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sine_and_cosine_are_right_to_the_last_places_next_to_their_zeros(backend):
    def both(x, p):
        return [sin(x[0]), cos(x[0])]

    run = Kernel(Function("both", ("x",), (1,), (2,), 0, both, "both"), backend=backend)
    # the doubles next to multiples of pi/2, up to where the C library takes over, and beyond
    k = np.random.default_rng(8).integers(-640_000, 640_000, 4000)
    angles = np.concatenate([k * (np.pi / 2), np.array([0.999999e6, 1e6, 1.000001e6, -1e6, 0.0])])
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    for found in (run(angles[:, None]), np.array([run(x) for x in angles[:, None]])):
        assert np.abs(found - expected).max() < SINE
        # near a zero it is the angle's own distance from it
        small = np.abs(expected) < 1e-3
        assert small.sum() >= 4000
        assert (np.abs(found - expected)[small] <= 1e-13 * np.abs(expected)[small] + 1e-24).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_or_an_infinity_in_gives_nan_out_and_leaves_its_neighbours_alone(backend):
    run = wave_kernel(backend)
    x, y = np.random.default_rng(6).uniform(-1, 1, (2, 21, 2))
    clean = run(x, y)
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = x.copy()
        spoilt[9, 0] = bad
        found = run(spoilt, y)
        assert np.array_equal(np.delete(found, 9, 0), np.delete(clean, 9, 0))
        single = run(spoilt[9], y[9])
        if np.isnan(bad):
            assert np.isnan(found[9]).all()
            assert np.isnan(single).all()
        else:
            assert np.isnan(found[9]).any()
            assert np.isnan(single).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_sort_of_real_numbers_is_taken(backend):
    run = wave_kernel(backend)
    x, y = np.array([1.0, -2.0]), np.array([3.0, 0.0])
    expected = run(x, y)
    for other in (
        [1, -2],
        (1.0, -2.0),
        x.astype(np.float32),
        x.astype(int),
        x.astype(">f8"),
        np.array([1.0, 9.0, -2.0])[::2],
        np.array([[1.0], [-2.0]])[:, 0],
        np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(float),
    ):
        assert np.array_equal(run(other, y), expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1.0, 2.0, 3.0], r"x: found shape \(3,\), expected \(2,\) or"),
        (1.0, r"x: found shape \(\)"),
        (np.zeros((4, 1)), r"x: found shape \(4, 1\)"),
        ("12", "x: found .*, expected real numbers"),
        ([1.0, None], r"x: found \[1.0, None\], expected real numbers"),
        ([1.0, True], "x: found 'True or False among numbers', expected real numbers"),
        ((0, np.False_), "x: found .* among numbers', expected real numbers"),
        ([[1.0, 2.0], [3.0, False]], "x: found .* among numbers'"),
        ([np.array([1.0, 2.0]), np.array([True, False])], "x: found .* among numbers'"),
        ([True, False], r"x: found \[True, False\]"),
        ([1.0, [2.0]], r"x: found \[1.0, \[2.0\]\], expected real numbers"),
        (np.array([1.0, None]), r"x: found \[1.0, None\], expected real numbers"),
        (np.array([1j, 2]), r"x: found \[1j, \(2\+0j\)\]"),
        (np.zeros((3, 2)), "the batches do not broadcast"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "x: found 'masked entries', .*fill"),
        (np.ma.array([[1.0, 2.0]] * 3, mask=[[0, 0], [0, 1], [0, 0]]), "x: found 'masked"),
        ([np.ma.array([1, 2], mask=[True, False]), (1.0, 2.0)], "x: found 'masked entries'"),
        ([1.0, np.ma.masked], "x: found 'masked entries'"),
    ],
)
def test_what_is_no_state_is_refused_in_one_line(backend, x, words):
    run = wave_kernel(backend)
    with pytest.raises(rd.RobotDynamicsError, match=words) as refusal:
        run(x, np.zeros((5, 2)) if words.endswith("broadcast") else [0.0, 0.0])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_without_a_masked_entry_and_other_arrays_are_numbers(backend, tmp_path):
    run, y = wave_kernel(backend), np.array([0.5, 0.2])
    x = np.array([1.0, -2.0])
    assert np.array_equal(run(np.ma.array(x), y), run(x, y))
    with pytest.raises(rd.RobotDynamicsError, match="out: found 'a masked array'"):
        run(x, y, out=np.ma.array(run(x, y)))
    many = np.tile(x, (5, 1))
    file = np.memmap(tmp_path / "out", float, "w+", shape=run(many, y).shape)
    assert run(many, y, out=file) is file
    assert np.array_equal(file, run(many, y))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_wrong_number_of_arguments_is_refused(backend):
    with pytest.raises(rd.RobotDynamicsError, match="found 1 arguments, expected x, y"):
        wave_kernel(backend)([0.0, 0.0])


@needs_compiler
@pytest.mark.parametrize(
    "formulation", ["newton_euler", "gibbs_appell", "murphy", "lagrange_euler"]
)
def test_the_backends_agree_on_every_formulation(formulation):
    mechanism = rd.load(random_urdf(3, joints=9))
    in_c, in_python = (
        rd.InverseDynamics(mechanism, formulation, backend=b) for b in ("c", "python")
    )
    n = len(mechanism.joint_names)
    q, qd, qdd = state(1, n)
    assert relative(in_c(q, qd, qdd), in_python(q, qd, qdd)) < ROUNDING
    batch = np.random.default_rng(2).uniform(-1, 1, (3, 33, n))
    assert relative(in_c(*batch), in_python(*batch)) < ROUNDING
    assert relative(in_c.mass_matrix(q), in_python.mass_matrix(q)) < ROUNDING
    assert relative(in_c.coriolis_matrix(q, qd), in_python.coriolis_matrix(q, qd)) < ROUNDING
    assert relative(in_c.gravity(q), in_python.gravity(q)) < ROUNDING


def test_without_a_compiler_generated_python_runs_and_says_why_once(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    kernel._warn_once.cache_clear()
    with pytest.warns(BackendWarning, match="no C compiler"):
        run = wave_kernel("auto")
    assert run.backend == "python"
    assert "no C compiler" in run.description
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wave_kernel("auto")
    with pytest.raises(rd.RobotDynamicsError, match="no C compiler"):
        wave_kernel("c")


def test_a_compiler_that_refuses_is_heard_in_its_own_words(monkeypatch, tmp_path):
    refusing = tmp_path / "cc"
    refusing.write_text("#!/bin/sh\necho 'kernel.c:1: I will not' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("CC", str(refusing))
    kernel._warn_once.cache_clear()
    with pytest.warns(BackendWarning, match="I will not"):
        run = wave_kernel("auto")
    x, y = np.array([0.3, -0.2]), np.array([0.1, 0.7])
    assert np.allclose(run(x, y), wave_by_hand(x, y), atol=ROUNDING)
    with pytest.raises(compiler.CompileError, match="I will not"):
        wave_kernel("c")


def test_an_unknown_backend_is_refused(monkeypatch):
    with pytest.raises(
        rd.RobotDynamicsError, match="backend: found 'fortran', expected one of auto"
    ):
        wave_kernel("fortran")
    monkeypatch.setenv(kernel.VARIABLE, "cobol")
    with pytest.raises(rd.RobotDynamicsError, match="ROBOT_DYNAMICS_BACKEND: found 'cobol'"):
        wave_kernel("auto")


def test_a_program_too_long_to_compile_runs_as_it_is_written_and_says_so(
    monkeypatch, caplog, tmp_path
):
    from robot_dynamics.codegen import python_kernel

    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(native, "MOST", 5)
    monkeypatch.setattr(python_kernel, "MOST", 5)
    with caplog.at_level(logging.WARNING, "robot_dynamics"):
        assert wave_kernel("python").backend == "formulation"
        assert not caplog.text
        run = wave_kernel("auto")
    assert run.backend == "formulation"
    assert "too many operations" in run.description
    assert "too many operations" in caplog.text
    x, y = np.random.default_rng(7).uniform(-1, 1, (2, 4, 2))
    assert np.allclose(run(x, y)[2], wave_by_hand(x[2], y[2]), atol=ROUNDING)
    assert np.isnan(run([np.nan, 0.0], y[0])).all()
