# SPDX-License-Identifier: Apache-2.0
"""What repeats in a program becomes a loop in C, and computes the same."""

from __future__ import annotations

import ctypes
import os
import shutil

import numpy as np
import pytest
from robots import random_urdf, relative, state

import robot_dynamics as rd
from robot_dynamics.codegen import (
    Function,
    Kernel,
    c_code,
    cache,
    compiler,
    loops,
    native,
)  # fmt: skip
from robot_dynamics.codegen.c_code import C99, SCALAR, CCode
from robot_dynamics.codegen.recorder import record
from robot_dynamics.dynamics.export import body
from robot_dynamics.scalar import cos, sin

ROUNDING = 1e-13
"""Relative: the backends do the same operations, C fusing some products into sums"""
INPUTS, LOOPS = 4, 3
ROUNDS = loops.FEWEST + 5

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))


def repeated(seed, rounds=ROUNDS, steps=40, differs=(), other="constant"):
    """A function whose program repeats random steps, over and over.

    Operands are of the same round, of the round of the loop before, the same in all rounds,
    constants, of the round before, and of the first round. `differs` are rounds in which one
    operand of a kind is another.
    """

    def function(x, p):
        rng = np.random.default_rng(seed)
        shared = [sin(x[0]), x[1], cos(x[2] + p[0]), x[3] * p[0]]
        rows = [[x[0] * (0.3 + 0.01 * j), x[1] - 0.02 * j] for j in range(rounds)]
        rows[0], rows[-1] = [x[2], x[3]], [x[1], x[0]]
        results = []
        for _ in range(LOOPS):
            kinds = ("own", "row", "shared", "constant", "before", "first")
            sources = [str(rng.choice(kinds)) for _ in range(steps)]
            sources[steps // 2] = other
            picks = rng.integers(0, 2**30, (steps, 2))
            constants = rng.uniform(0.2, 0.8, steps)
            shared.append(shared[0] * shared[-1] + rows[3][0])
            before, first = shared * steps, []
            new = []
            for j, row in enumerate(rows):
                own = list(row)
                first = first or own
                for k, source in enumerate(sources):
                    shift = int(j in differs and k == steps // 2)
                    constant = constants[k] + 0.1 * shift
                    others = {"own": own, "row": row, "shared": shared, "constant": [constant],
                              "before": before, "first": first[: len(own)]}[source]  # fmt: skip
                    a, b = (
                        own[-1 - picks[k][0] % min(len(own), 3)],
                        others[(picks[k][1] + shift) % len(others)],
                    )
                    own.append([a * b, 0.5 * (a + b), 0.5 * (b - a)][picks[k][0] % 3])
                results += [own[-1], own[steps // 2]] if j else [own[-1], 1.5]
                new.append([own[-1], own[-2]])
                before = own[2:]
            rows = new
            results.append(sum(row[0] for row in rows))
        return results + results[:2]

    return function


def compared(function):
    """The results of C for single states and for batches, and those of Python."""
    width = len(function(np.ones(INPUTS), np.ones(1)))
    made = Function("loops", ("x",), (INPUTS,), (width,), 1, function, os.urandom(8).hex())
    compiled, plain = (Kernel(made, [0.3], backend) for backend in ("c", "python"))
    x = np.random.default_rng(1).uniform(-1, 1, (11, INPUTS))
    expected = plain(x)
    assert len(set(map(tuple, expected))) == len(x)
    assert relative(compiled(x), expected) < ROUNDING
    for k in (0, 3):
        assert relative(compiled(x[k]), expected[k]) < ROUNDING


def saved(function):
    """The number of instructions that are not printed, as they repeat others."""
    program = record(function, (INPUTS, 1))
    return len(program.instructions) - CCode(program, SCALAR).statements


@needs_compiler
@pytest.mark.parametrize("chunk", [7, 150, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_loops_compute_the_same(seed, chunk, monkeypatch):
    monkeypatch.setattr(loops, "PER_OPERAND", 0)
    monkeypatch.setattr(c_code, "WHOLE", 1)
    monkeypatch.setattr(c_code, "CHUNK", chunk)
    function = repeated(seed)
    assert saved(function) > LOOPS * (ROUNDS - 5) * loops.SHORTEST
    compared(function)


@needs_compiler
@pytest.mark.parametrize("other", ["constant", "shared", "own", "row"])
@pytest.mark.parametrize("seed", range(3))
def test_a_loop_ends_where_a_round_differs(seed, other, monkeypatch):
    monkeypatch.setattr(loops, "PER_OPERAND", 0)
    monkeypatch.setattr(c_code, "WHOLE", 1)
    monkeypatch.setattr(loops, "FEWEST", 4)
    whole, cut = (repeated(seed, 15, differs=each, other=other) for each in ((), (7,)))
    # a value from another place in the round may be read as one that varies
    assert saved(whole) - (other in ("constant", "shared")) >= saved(cut) > 0.5 * saved(whole)
    compared(cut)


def test_what_repeats_too_seldom_or_reads_too_much_is_no_loop(monkeypatch):
    many = repeated(0, rounds=3 * ROUNDS)
    monkeypatch.setattr(loops, "PER_OPERAND", 0)
    assert saved(many) > 0
    for name, limit in (("PER_OPERAND", 100), ("FEWEST", 3 * ROUNDS + 1), ("SHORTEST", 200)):
        with monkeypatch.context() as patch:
            patch.setattr(loops, name, limit)
            assert saved(many) == 0, name
    monkeypatch.setattr(c_code, "WHOLE", 1000)
    assert saved(many) == 0, "a short program"


@needs_compiler
def test_loops_in_what_repeats_itself_compute_the_same(monkeypatch):
    monkeypatch.setattr(c_code, "WHOLE", 1)

    def function(x, p):
        rows = [x[0] * (0.3 + 0.01 * j) for j in range(ROUNDS)]
        for _ in range(ROUNDS):
            shared, new = x[1] * p[0], []
            for k in range(loops.SHORTEST // 2):
                shared = 0.9 * (shared - x[2] * rows[k % ROUNDS])
            for row in rows:
                value = row
                for k in range(loops.SHORTEST // 2):
                    value = 0.9 * (value - shared * (0.01 + 0.01 * k))
                new.append(value)
            rows = new
        return rows

    assert saved(function) > ROUNDS * (ROUNDS - 2) * loops.SHORTEST
    compared(function)


@needs_compiler
def test_sines_from_the_table_are_in_no_loop(monkeypatch):
    monkeypatch.setattr(c_code, "WHOLE", 0)

    def function(x, p):
        rows = []
        for angle in [x[0] + 0.1 * j for j in range(ROUNDS)]:
            value = angle
            for k in range(loops.SHORTEST // 2):
                value = 0.9 * (value - sin(angle) * (0.01 + 0.01 * k) * p[0])
            rows.append(value * x[1])
        return rows

    assert saved(function) == 0
    compared(function)


def test_each_repetition_is_examined_once(monkeypatch):
    examined, loop = [], loops._loop
    monkeypatch.setattr(loops, "_loop", lambda *of: (examined.append(of[3]), loop(*of))[1])
    monkeypatch.setattr(loops, "FEWEST", 1000)
    assert saved(repeated(0, rounds=200)) == 0
    assert 0 < len(examined) < 20 * LOOPS


@needs_compiler
@pytest.mark.parametrize("seed", range(3))
def test_loops_in_exported_code_compute_the_same(seed, monkeypatch, tmp_path):
    monkeypatch.setattr(loops, "PER_OPERAND", 0)
    function = repeated(seed, rounds=3 * ROUNDS)
    program = record(function, (INPUTS, 1))
    code = CCode(program, C99, "f_")
    assert code.statements < len(program.instructions) / 2
    text = "\n".join(
        [
            "#include <math.h>",
            *code.functions(),
            "void f(const double *a, const double *b, double *out)",
            "{",
            *body(code, "f", ("a", "b")),
            "}",
            "",
        ]
    )
    (tmp_path / "f.so").write_bytes(
        compiler.find().shared_library([text], ["-std=c99", "-pedantic", "-Wall", "-Werror"])
    )
    x, p = np.random.default_rng(2).uniform(-1, 1, INPUTS), np.array([0.3])
    expected = np.array(function(x, p), dtype=float)
    found = np.full_like(expected, np.nan)
    arguments = [ctypes.c_void_p(each.ctypes.data) for each in (x, p, found)]
    ctypes.CDLL(str(tmp_path / "f.so")).f(*arguments)
    assert relative(found, expected) < ROUNDING


@needs_compiler
def test_the_regressor_of_many_turning_joints_is_mostly_loops(monkeypatch, tmp_path, caplog):
    made = []
    monkeypatch.setattr(native, "QUICK", 0)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(native, "CCode", lambda *of: (made.append(CCode(*of)), made[-1])[1])
    text = random_urdf(0, joints=24, branching=False).replace('"prismatic"', '"revolute"')
    compiled, plain = (rd.InverseDynamics(rd.load(text), backend=each) for each in ("c", "python"))
    n = len(compiled.joint_names)
    q, qd, qdd = (np.stack(each) for each in zip(*(state(k, n) for k in range(9)), strict=True))
    caplog.clear()
    cache.clear()
    made.clear()
    expected = plain.regressor(q, qd, qdd)
    assert relative(compiled.regressor(q, qd, qdd), expected) < ROUNDING
    assert relative(compiled.regressor(q[3], qd[3], qdd[3]), expected[3]) < ROUNDING
    assert len(made) == 2
    assert all(code.statements < 0.6 * code.program.operations for code in made)
    told = [line.split("compiling ")[1] for line in caplog.messages if "compiling" in line]
    assert [int(words.split()[0]) for words in told] == [code.statements for code in made]
    kept = {entry.about["operations"] for entry in cache.entries() if entry.path.suffix == ".so"}
    assert kept == {code.program.operations for code in made}
