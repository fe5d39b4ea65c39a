# SPDX-License-Identifier: Apache-2.0
"""Call overhead of different ways to call the same compiled program from Python.

    python benchmarks/routes.py [--json OUT] [--picture OUT]

cffi and numba are measured if they are installed.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from limits import linked
from robots import chain, states
from timing import keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.app.plots import figure
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.codegen import Kernel, c_kernels, compiler, python_code
from robot_dynamics.codegen.c_code import SCALAR, CCode
from robot_dynamics.formulations.options import Options

N = 7
AGREEMENT = 1e-12


def main() -> None:
    options = parser(__doc__, draws=True).parse_args()
    model = OpenChain(chain(N), Options())
    function, parameters = model.function("torques"), model.parameters
    q, qd, qdd = states(N)
    expected = rd.InverseDynamics(chain(N))(q, qd, qdd)
    results: dict[str, Any] = {}
    print(f"{N} joints, one call")
    for name, route in ROUTES.items():
        start = time.perf_counter()
        try:
            call = route(function, parameters)
            found = call(q, qd, qdd)
        except ImportError as error:
            print(f"  {name}: NOT MEASURED: {error}")
            continue
        ready = time.perf_counter() - start
        assert abs(found - expected).max() < AGREEMENT * abs(expected).max(), name
        results[name] = {"ready": ready, **per_call(lambda c=call: c(q, qd, qdd))}
        print(f"  {name:34} {results[name]['typical'] * 1e6:9.3f} µs   ready in {ready:.2f} s")
    keep(options.json, {"call": results})
    if options.picture:
        draw(results, options.picture)


def extension(function: Any, parameters: np.ndarray) -> Callable[..., Any]:
    """Ours: a C extension module that reads the arrays and calls the kernel."""
    return Kernel(function, parameters, "c").call


def through_ctypes(function: Any, parameters: np.ndarray) -> Callable[..., Any]:
    library = linked(_built(function))

    def call(*states: np.ndarray) -> np.ndarray:
        out = np.empty(N)
        vectors = (ctypes.c_void_p * 4)(*(x.ctypes.data for x in (*states, parameters)))
        library.kernel(vectors, ctypes.c_void_p(out.ctypes.data))
        return out

    return call


def through_cffi(function: Any, parameters: np.ndarray) -> Callable[..., Any]:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef("void kernel(double **x, double *out);")
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        Path(file.name).write_bytes(_built(function))
        library = ffi.dlopen(file.name)

    def call(*states: np.ndarray) -> np.ndarray:
        out = np.empty(N)
        views = [ffi.from_buffer("double[]", x) for x in (*states, parameters)]
        library.kernel(ffi.new("double *[]", views), ffi.from_buffer("double[]", out))
        return out

    return call


def through_numba(function: Any, parameters: np.ndarray) -> Callable[..., Any]:
    import math

    import numba

    program = function.record()
    text = python_code.source(program).splitlines()[2:-2]
    where = [(i, j) for i, size in enumerate(program.sizes) for j in range(size)]
    lines = ["def function(a0, a1, a2, a3):"]
    lines += [f"    x{k} = a{i}[{j}]" for k, (i, j) in enumerate(where)]
    lines += [line[4:] for line in text]
    ends = python_code.source(program).splitlines()[-2].split("return ")[1].strip("(), ")
    lines += ["    out = empty(7)"]
    lines += [f"    out[{k}] = {end.strip()}" for k, end in enumerate(ends.split(","))]
    lines += ["    return out"]
    sign = numba.njit(lambda x: 1.0 if x > 0 else -1.0 if x < 0 else x)
    space = {"sin": math.sin, "cos": math.cos, "sign": sign, "empty": np.empty}
    exec("\n".join(lines), space)
    compiled = numba.njit(space["function"])
    return lambda *states: compiled(*states, parameters)


def python_alone(function: Any, parameters: np.ndarray) -> Callable[..., Any]:
    return Kernel(function, parameters, "python").call


def _built(function: Any) -> bytes:
    return compiler.find().shared_library(
        c_kernels.single_files(CCode(function.record(), SCALAR)), ("-O2",)
    )


ROUTES = {
    "C, our extension module (taken)": extension,
    "C, ctypes (without Python.h)": through_ctypes,
    "C, cffi in ABI mode": through_cffi,
    "numba": through_numba,
    "generated Python (no compiler)": python_alone,
}


def draw(results: dict[str, Any], path: Any) -> None:
    drawing, ((axis,),) = figure(1, 1, width=8, height=3)
    values = [each["typical"] * 1e6 for each in results.values()]
    bars = axis.barh(list(results), values)
    axis.bar_label(bars, fmt="%.3g", padding=3)
    axis.set_xscale("log")
    axis.set_xlim(right=max(values) * 3)
    axis.invert_yaxis()
    axis.set_xlabel(f"µs a call, {N} joints")
    drawing.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
