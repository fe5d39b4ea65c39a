# SPDX-License-Identifier: Apache-2.0
"""A program as a CUDA kernel, with one thread for each state and one local constant for each value.

The source is C++ with CUDA's keywords. It needs no header and is compiled at run time. Names in it
consist of fixed letters and numbers: nothing from a description enters it.
"""

from __future__ import annotations

from .c_code import FORMS, constant_or_name
from .recorder import Program

NAME = "program"
"""The name of the kernel"""

_SIGN = """\
__device__ static double sign_(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}
"""


def source(program: Program) -> str:
    """The source of `program(x0, x1, …, out, count)`, whose thread i computes state i.

    The arrays are double, in row-major order: (count, size) for each vector, (count, results) for
    out.
    """
    places = program.places
    arguments = [f"const double *__restrict__ x{i}" for i in range(len(program.sizes))]
    arguments += ["double *__restrict__ out", "const long long count"]
    lines = [
        _SIGN,
        f'extern "C" __global__ void {NAME}({", ".join(arguments)})',
        "{",
        "    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
        "    if (i >= count)",
        "        return;",
        f"    out += i * {len(program.outputs)};",
        *(f"    x{k} += i * {size};" for k, size in enumerate(program.sizes)),
    ]
    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            vector, entry = places[operands[0]]
            value = f"x{vector}[{entry}]"
        else:
            name = "sign_" if operation == "sign" else operation
            value = FORMS.get(operation, f"{name}({{}})").format(*map(constant_or_name, operands))
        lines.append(f"    const double v{place} = {value};")
    lines += [f"    out[{k}] = {constant_or_name(end)};" for k, end in enumerate(program.outputs)]
    return "\n".join([*lines, "}", ""])
