# SPDX-License-Identifier: Apache-2.0
"""Generated code stays the same until changed on purpose: `pytest --update-golden` rewrites it.

What the same code computes is tested beside (test_codegen_kernels, test_codegen_export); here it
is run too, so that no golden file can be of code that is wrong.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.codegen import c_kernels, compiler, python_code
from robot_dynamics.codegen.c_code import LANES, SCALAR, CCode
from robot_dynamics.codegen.recorder import record
from robot_dynamics.dynamics.export import sources
from robot_dynamics.formulations.options import Options
from robot_dynamics.scalar import cos, sign, sin, tanh

GOLDEN = Path(__file__).parent / "golden"
ROUNDING = 1e-14
"""Absolute, on values of about one"""


def every_operation(x, y):
    """One of each operation, on two vectors (2,)."""
    angle = x[0] + 0.5
    return [
        sin(angle) * y[0] + cos(angle) * y[1],
        tanh(x[1]) - sign(y[0]) / (2.0 + x[1] * x[1]),
        -(x[0] * y[1]),
        sin(y[0] * cos(x[1])),
        1.0,
    ]


@pytest.fixture
def program():
    return record(every_operation, (2, 2))


def expected_of(x, y):
    return np.array(every_operation(x, y), dtype=float)


def compare(request, name, text):
    """The text is the golden file's."""
    path = GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: run pytest --update-golden"
    assert text == path.read_text(encoding="utf-8"), "meant so? then run pytest --update-golden"


def loaded(text, tmp_path):
    try:
        library = compiler.find().shared_library([text])
    except rd.RobotDynamicsError as error:
        pytest.skip(str(error))
    path = tmp_path / "kernel.so"
    path.write_bytes(library)
    return ctypes.CDLL(str(path)).kernel


def pointers(*arrays):
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def test_python(request, program):
    text = python_code.source(program)
    compare(request, "every_operation.py.txt", text)
    bind, _ = python_code.compile_text(text)
    x, y = np.array([0.3, -0.7]), np.array([-1.1, 0.4])
    assert np.allclose(bind()(*x, *y), expected_of(x, y), rtol=0, atol=ROUNDING)


def test_c_for_one_state(request, program, tmp_path):
    [text] = c_kernels.single_files(CCode(program, SCALAR))
    compare(
        request, "every_operation_single.c", text.replace(c_kernels.prelude(), "/* lanes.h */\n")
    )
    x, y, out = np.array([0.3, -0.7]), np.array([-1.1, 0.4]), np.empty(5)
    loaded(text, tmp_path)(pointers(x, y), ctypes.c_void_p(out.ctypes.data))
    assert np.allclose(out, expected_of(x, y), rtol=0, atol=ROUNDING)


def test_c_for_batches(request, program, tmp_path):
    [text] = c_kernels.batch_files(CCode(program, LANES))
    compare(
        request, "every_operation_batch.c", text.replace(c_kernels.prelude(), "/* lanes.h */\n")
    )
    x, y = np.random.default_rng(0).uniform(-2, 2, (13, 2)), np.array([-1.1, 0.4])
    out = np.full((14, 5), 99.0)
    kernel = loaded(text, tmp_path)
    kernel(pointers(x, y), ctypes.c_void_p(out.ctypes.data), ctypes.c_long(13))
    expected = [expected_of(row, y) for row in x]
    assert np.allclose(out[:13], expected, rtol=0, atol=ROUNDING)
    assert (out[13] == 99.0).all(), "written beyond the last row"


def test_the_polar_robots_torques(request):
    mechanism = rd.load(CONFIG / "polar.yaml")
    chain = OpenChain(mechanism, Options(terms=("inertia", "coriolis", "gravity")))
    compare(request, "polar_torques.py.txt", python_code.source(chain.function("torques").record()))


def test_the_polar_robots_export(request):
    header, source, _ = sources(rd.load(CONFIG / "polar.yaml"), prefix="polar")
    compare(request, "polar_dynamics.h", header)
    compare(request, "polar_dynamics.c", source)
