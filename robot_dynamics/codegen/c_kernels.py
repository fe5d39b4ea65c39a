# SPDX-License-Identifier: Apache-2.0
"""The C files of a kernel: a program's functions, divided among them, and the exported function
that calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .c_code import LANES, SCALAR, CCode, Dialect
from .compiler import prelude
from .guard import lacking


def single_files(code: CCode, count: int = 1) -> list[str]:
    """The C files of `kernel(x, out)` for one state; x[i] is the program's vector i.

    A nan in the state makes all results nan, so the program itself needs no guard.

    Args:
        code: the program, without a guard, in `SCALAR`.
        count: the number of files, at most.
    """
    program = code.program
    lines = [f"double w[{max(code.handed_on, 1)}];"]
    if code.angles:
        room = f"({code.angles} + LANES - 1) / LANES * LANES"
        lines += [
            f"double sin_[{room}], cos_[{room}];",
            f"double angle[{room}] = {{0}};",
            "angles(x, angle);",
            f"sincos_all(angle, sin_, cos_, {code.angles});",
        ]
    lines += code.constants + code.calls
    doubts = lacking(program, len(program.sizes) - 1)
    if doubts:
        lines += [
            f"const double doubt = {' + '.join(f'0.0 * x[{i}][{j}]' for i, j in doubts)};",
            "if (doubt != doubt)",
            f"    for (int k = 0; k < {len(program.outputs)}; k++)",
            "        out[k] = doubt;",
        ]
    head = "void kernel(const double *const *x, double *out)"
    return _files(code, head, lines, count, "#define FEW_LANES\n")


def batch_files(code: CCode, count: int = 1) -> list[str]:
    """The C files of `kernel(x, out, count)` for rows of states, computed several at a time.

    x[i] is (count, sizes[i]), but (sizes[i],) for the last vector, the parameters; out is
    (count, …).
    A nan in a state makes its row nan, so the program itself needs no guard.

    Args:
        code: the program, without a guard, in `LANES`.
        count: the number of files, at most.
    """
    program = code.program
    sizes, ends = program.sizes, len(program.outputs)
    rows = range(len(sizes) - 1)
    lines = [
        *(f"lanes x{i}[{max(size, 1)}];" for i, size in enumerate(sizes)),
        f"const lanes *const x[] = {{{', '.join(f'x{i}' for i in range(len(sizes)))}}};",
        f"lanes out[{max(ends, 1)}], w[{max(code.handed_on, 1)}];",
        *([f"lanes sin_[{code.angles}], cos_[{code.angles}];"] if code.angles else []),
        f"for (int j = 0; j < {sizes[-1]}; j++)",
        f"    x{len(rows)}[j] = all(states[{len(rows)}][j]);",
    ]
    # most entries of a regressor are zero, and nothing is computed for them
    zero = ["01"[not isinstance(end, int) and end == 0.0] for end in program.outputs]
    known = "zero" if "1" in zero else "0"
    if "1" in zero:
        lines.append(f"static const char zero[] = {{{', '.join(zero)}}};")
    lines += [
        *code.constants,
        "for (long i = 0; i < count; i += LANES) {",
        # the lanes left over at the end repeat the last state
        "    long row[LANES];",
        "    for (int k = 0; k < LANES; k++)",
        "        row[k] = i + k < count ? i + k : count - 1;",
    ]
    for i in rows:
        lines += [
            f"    for (int j = 0; j < {sizes[i]}; j++)",
            "        for (int k = 0; k < LANES; k++)",
            f"            x{i}[j][k] = states[{i}][row[k] * {sizes[i]} + j];",
        ]
    if code.angles:
        lines += [
            f"    lanes angle[{code.angles}];",
            "    angles(x, angle);",
            f"    for (int j = 0; j < {code.angles}; j++)",
            "        sincos_lanes(angle[j], &sin_[j], &cos_[j]);",
        ]
    # results are stored while they are still in the processor's cache
    for call, runs in zip(code.calls, code.complete, strict=True):
        lines.append("    " + call)
        lines += [
            f"    store_rows(out, results + i * {ends}, count - i, {ends}, "
            f"{run.start}, {run.stop}, {known});"
            for run in runs
        ]
    doubts = [f"0.0 * x{i}[{j}]" for i, j in lacking(program, len(rows))]
    if doubts:
        lines.append(
            f"    spoil_rows({' + '.join(doubts)}, results + i * {ends}, count - i, {ends});"
        )
    lines.append("}")
    head = "void kernel(const double *const *states, double *results, long count)"
    return _files(code, head, lines, count)


KINDS: Mapping[str, tuple[Dialect, Callable[[CCode, int], list[str]]]] = {
    "single": (SCALAR, single_files),
    "batch": (LANES, batch_files),
}
"""For single states and for batches: the dialect of the program, and the function that returns the
C files"""


def _files(code: CCode, head: str, lines: list[str], count: int, before: str = "") -> list[str]:
    """The C files; the first has the kernel itself, and declares the functions of the others."""
    functions, start = code.functions(), before + prelude()
    shares = [functions[k::count] for k in range(min(count, max(len(functions), 1)))]
    elsewhere = [text[: text.index("\n{")] + ";" for share in shares[1:] for text in share]
    body = ["    " + line for line in lines]
    own = [start, *elsewhere, *shares[0], head, "{", *body, "}", ""]
    return ["\n".join(own), *("\n".join([start, *share]) for share in shares[1:])]
