# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on this machine: an empty call, and the processor's peak of additions."""

from __future__ import annotations

import ctypes
import sysconfig
import tempfile
from collections.abc import Callable
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from timing import per_call

from robot_dynamics.codegen import compiler

EMPTY = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject *empty(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module, (void)arguments, (void)count;
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"empty", (PyCFunction)(void (*)(void))empty, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_empty", .m_size = -1, .m_methods = functions};
PyMODINIT_FUNC PyInit__empty(void) { return PyModule_Create(&definition); }
"""

CHAINS = 12
"""Sums that do not wait for each other: more than an addition's latency in additions"""
ROUNDS = 100_000
PEAK = f"""
#ifdef __AVX512F__
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
typedef double lanes __attribute__((vector_size(8 * LANES)));
int width(void) {{ return LANES; }}
double kernel(double start, double step)
{{
    lanes sum[{CHAINS}], total = {{0}};
    const lanes b = step - (lanes){{0}};
    for (int k = 0; k < {CHAINS}; k++)
        sum[k] = start + k - (lanes){{0}};
    for (long i = 0; i < {ROUNDS}; i++) {{
        {" ".join(f"sum[{k}] = sum[{k}] + b;" for k in range(CHAINS))}
    }}
    for (int k = 0; k < {CHAINS}; k++)
        total += sum[k];
    return total[0] + total[LANES - 1];
}}
"""


@lru_cache
def empty_call() -> Callable[..., None]:
    """A function in C that does nothing with its arguments."""
    paths = sysconfig.get_paths()
    flags = ["-O2", f"-I{paths['include']}", f"-I{paths['platinclude']}"]
    built = compiler.find().shared_library([EMPTY], flags, compiler.LINKED_LATE, native=False)
    module: Any = _loaded("_empty", built)
    call: Callable[..., None] = module.empty
    return call


@lru_cache
def operations_a_second() -> float:
    """Additions of float64 that one core does, many at a time and none waiting for another."""
    library = linked(compiler.find().shared_library([PEAK], ["-O2"]))
    library.kernel.argtypes, library.kernel.restype = [ctypes.c_double] * 2, ctypes.c_double
    seconds = per_call(lambda: library.kernel(1.0, 1e-3))["typical"]
    return CHAINS * ROUNDS * library.width() / seconds


def linked(content: bytes) -> ctypes.CDLL:
    """A shared library from the bytes of its file."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        Path(file.name).write_bytes(content)
        return ctypes.CDLL(file.name)


def _loaded(name: str, content: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.so")
        path.write_bytes(content)
        loader = ExtensionFileLoader(name, str(path))
        spec = spec_from_loader(name, loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
    return module
