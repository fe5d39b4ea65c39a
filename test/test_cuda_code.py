# SPDX-License-Identifier: Apache-2.0
"""Programs as CUDA: compiled by CUDA's own compiler, and the same text run on the processor."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.codegen.cuda_code import source
from robot_dynamics.codegen.recorder import record
from robot_dynamics.libraries import launched, of_mechanism
from robot_dynamics.scalar import atan, cos, exp, sign, sin, sqrt, tanh

SMALL = 1e-12
"""Of the largest entry: the same operations; another compiler's contractions, and sines"""

SHIM = """\
extern "C" double sin(double), cos(double), tanh(double), exp(double), sqrt(double), atan(double);
#define __global__
#define __device__
struct Three { unsigned x; };
static thread_local Three blockIdx, blockDim, threadIdx;
"""
"""What CUDA has and C++ has not; reading all of <cmath> would take longer than to compile"""


def on_processor(folder: Path) -> Callable[[str], launched.Launch]:
    """Kernels as shared libraries, whose threads run one after the other."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed, which compiles CUDA's text as C++")

    def kernel_of(text: str) -> launched.Launch:
        inputs = [f"x{k}" for k in range(len(set(re.findall(r"__restrict__ x(\d+)", text))))]
        names = ", ".join([*inputs, "out"])
        declared = ", ".join(f"double *{name}" for name in (*inputs, "out"))
        calls = f"""
extern "C" void launch({declared}, long long count)
{{
    const unsigned threads = 32;
    blockDim.x = threads;
    for (unsigned block = 0; block * (long long)threads < count; block++)
        for (unsigned thread = 0; thread < threads; thread++) {{
            blockIdx.x = block;
            threadIdx.x = thread;
            program({names}, count);
        }}
}}
"""
        stem = folder / f"kernel{len(list(folder.glob('*.so')))}"
        stem.with_suffix(".cpp").write_text(SHIM + text + calls)
        made = stem.with_suffix(".so")
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", made, stem.with_suffix(".cpp")]
        subprocess.run(command, check=True, capture_output=True)
        library = ctypes.CDLL(str(made))

        def launch(vectors: Any, out: Any, count: int) -> None:
            pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*vectors, out)]
            library.launch(*pointers, ctypes.c_longlong(count))

        return launch

    return kernel_of


class Nvrtc:
    """CUDA's run-time compiler, which needs no device."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("nvidia")
        folders = [] if found is None else list(found.submodule_search_locations or [])
        files = [x for each in folders for x in Path(each).rglob("libnvrtc.so.*")]
        if not files:
            pytest.skip("CUDA's compiler is not installed: pip install nvidia-cuda-nvrtc-cu12")
        self._library = ctypes.CDLL(str(files[0]))

    def ptx(self, text: str) -> str:
        """Of a GPU of 2018 or later; the compiler's own words where it refuses."""
        library, program = self._library, ctypes.c_void_p()
        made = library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"program.cu", 0, None, None
        )
        assert made == 0
        options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
        failed = library.nvrtcCompileProgram(program, 1, options)
        size = ctypes.c_size_t()
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        assert not failed, log.value.decode()
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        ptx = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, ptx)
        return ptx.value.decode()


class Processor:
    """As the module of a library."""

    def __init__(self, folder: Path):
        self.kernel_of, self.texts = on_processor(folder), []

    def _kernel(self, text: str) -> launched.Launch:
        self.texts.append(text)
        return self.kernel_of(text)

    def function(self, definition: Any) -> Any:
        return launched.function(definition, np, self._kernel)

    def closing(self, definition: Any, closure: Any) -> Any:
        return launched.closing(definition, closure, np, self._kernel)


@pytest.fixture
def processor(tmp_path, monkeypatch) -> Processor:
    """What `rd.functions(…, "cupy")` runs on here: NumPy's arrays in place of CuPy's."""
    made = Processor(tmp_path)
    real = of_mechanism.import_module

    def module(name: str, package: str | None = None) -> Any:
        return made if name == ".cupy" else real(name, package)

    monkeypatch.setattr(of_mechanism, "import_module", module)
    return made


def near(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    assert abs(found - expected).max() <= SMALL * max(abs(expected).max(), 1e-3)


def every_operation(x: Any, y: Any) -> list[Any]:
    a, b, c = x
    return [
        sin(a) * cos(b), tanh(c) / (y[0] * y[0] + 1.0), exp(-(a * a)), sqrt(b * b), atan(a - b),
        sign(c), sign(0.0 * a + y[1]), -a - (-b), a - (b - c), -3.0 * a, 2.0 / y[0], 7.0, -1.5,
        a / 3.0 - 1e-300, 1e300 * a,
    ]  # fmt: skip


def test_every_operation_is_what_it_is_in_numpy(tmp_path):
    program = record(every_operation, (3, 2))
    launch = on_processor(tmp_path)(source(program))
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (100, 3)), rng.uniform(0.5, 2, (100, 2))
    y[::3, 1], y[1::3, 1] = 0.0, -1.0
    x[7, 2] = np.nan
    out = np.full((100, len(program.outputs)), 5.0)
    launch([x, y], out, 97)
    for i in range(97):
        expected = [float(each) for each in every_operation(x[i], y[i])]
        np.testing.assert_allclose(out[i], expected, rtol=1e-14, atol=0)
    # what is behind the last state is not touched
    assert (out[97:] == 5.0).all()


def test_cudas_compiler_takes_every_operation():
    ptx = Nvrtc().ptx(source(record(every_operation, (3, 2))))
    assert ".visible .entry program(" in ptx
    assert ".f64" in ptx


@pytest.mark.parametrize("name", ["three_axis.yaml", "polar.yaml"])
def test_functions_over_many_states_are_our_own_kernels(processor, name):
    mechanism = rd.load(CONFIG / name)
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, "cupy")
    n = len(mechanism.joint_names)
    rng = np.random.default_rng(3)
    state = q, qd, qdd = rng.uniform(-2, 2, (3, 1000, n))
    near(theirs.torques(*state), ours(*state))
    near(theirs.mass_matrix(q), ours.mass_matrix(q))
    near(theirs.gravity(q), ours.gravity(q))
    near(theirs.regressor(*state), ours.regressor(*state))
    for found, expected in zip(theirs.derivatives(*state), ours.derivatives(*state), strict=True):
        near(found, expected)
    for found, expected in zip(
        theirs.energies(q, qd), (ours.kinetic_energy(q, qd), ours.potential_energy(q)), strict=True
    ):
        near(found, expected)
    # leading axes broadcast, one state is one, none are none
    near(theirs.torques(q[:6].reshape(2, 3, n), qd[0], 0 * qd[:3]),
         ours(q[:6].reshape(2, 3, n), qd[0], 0 * qd[:3]))  # fmt: skip
    near(theirs.torques(q[0], qd[0], qdd[0]), ours(q[0], qd[0], qdd[0]))
    assert theirs.torques(q[:0], qd[:0], qdd[:0]).shape == (0, n)
    single = [x.astype(np.float32) for x in state]
    near(theirs.torques(*single), ours(*single))
    compiler = Nvrtc()
    for text in processor.texts:
        assert ".visible .entry program(" in compiler.ptx(text)


def test_loops_are_closed_in_batches(processor):
    mechanism = rd.load(CONFIG / "rrr.yaml")
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, "cupy")
    rng = np.random.default_rng(1)
    q = ours.closed.home.q_r[:3] + rng.uniform(-0.1, 0.1, (50, 3))
    qd, qdd = rng.uniform(-1, 1, (2, 50, 3))
    near(theirs.torques(q, qd, qdd), ours(q, qd, qdd))


def test_what_is_on_the_same_device_is_not_copied(processor):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    mechanism = rd.load(CONFIG / "polar.yaml")
    theirs = rd.functions(mechanism, "cupy")
    q = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64)
    taken = launched._taken(q, np)
    assert np.shares_memory(taken, q.numpy())
    near(theirs.gravity(q), rd.InverseDynamics(mechanism).gravity(q.numpy()))


def test_names_of_a_description_do_not_get_into_the_text(processor):
    text = (CONFIG / "polar.yaml").read_text()
    rd.functions(rd.load(CONFIG / "polar.yaml"), "cupy").torques  # noqa: B018
    for name in re.findall(r"name: (\w+)", text):
        assert all(name not in each for each in processor.texts)


def test_a_wrong_argument_is_named(processor):
    theirs = rd.functions(rd.load(CONFIG / "polar.yaml"), "cupy")
    with pytest.raises(rd.InputError, match="qd"):
        theirs.torques(np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(rd.InputError, match="arguments"):
        theirs.torques(np.zeros(2))


def test_on_a_device_it_is_what_our_own_kernels_compute():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, "cupy")
    state = np.random.default_rng(0).uniform(-2, 2, (3, 1000, 3))
    found = theirs.torques(*map(cupy.asarray, state))
    assert isinstance(found, cupy.ndarray)
    near(cupy.asnumpy(found), ours(*state))
