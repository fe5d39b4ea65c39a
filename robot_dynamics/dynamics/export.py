# SPDX-License-Identifier: Apache-2.0
"""A robot's dynamics as a C99 header and source that need only libm.

robot_torques(q, qd, qdd, tau);   the robot's parameters are compiled in; no allocation, no state
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..chains.functions import FUNCTIONS as OF_CHAINS
from ..chains.functions import Signature
from ..chains.open_chain import OpenChain
from ..codegen.c_code import C99, C99_SINGLE, CCode, Dialect
from ..codegen.guard import guarded
from ..codegen.recorder import Program, record
from ..description import load
from ..description.fields import LONGEST_NAME
from ..description.files import arguments_of, find, is_text, writable, write_bytes
from ..errors import InputError, choices, listed, wrong
from ..formulations.equations import TERMS
from ..formulations.forward import solved
from ..formulations.options import Options
from ..formulations.terms import names_of_terms
from ..mechanism import Mechanism
from ..scalar import Array, array
from ..version import version
from . import checked

LANGUAGES = ("c",)
PATIENCE = 60.0
"""s: time limit of the compiler that determines the size of the code"""
LEVELS = 3
"""Depth of calls: an exported function, a part of its program, `sign`"""
PRECISIONS = {"double": C99, "single": C99_SINGLE}

_FUNCTIONS = {
    "torques": ("tau", "tau = D(q) qdd + C(q, qd) qd + g(q) + friction(q, qd), N m or N"),
    "mass_matrix": ("D", "D(q), kg m^2 (kg m, kg), row by row"),
    "coriolis_matrix": ("C", "C(q, qd) of Christoffel symbols, row by row"),
    "gravity": ("g", "g(q), N m or N"),
    "forward": ("qdd", "qdd: accelerations under tau, rad/s^2 or m/s^2"),
    "derivatives": ("J", "dtau/dq, dtau/dqd and dtau/dqdd = D at qdd, three matrices row by row"),
    "linearize": ("AB", "A, then B of d/dt dx = A dx + B dtau, x = [q; qd], row by row"),
    "pose": ("X", "the frame of the link in the base frame, 4 x 4 row by row, m"),
    "jacobian": ("J", "[dp/dt; omega] = J qd of the origin of the link's frame, row by row"),
}
FUNCTIONS = tuple(_FUNCTIONS)
"""The functions that can be exported"""
USUAL = FUNCTIONS[:4]
_SIGNATURES = OF_CHAINS | {"linearize": Signature(("q", "qd", "tau"), (6, "qd", "qd"))}
_UNITS = {
    "q": "positions, rad or m",
    "qd": "rates, rad/s or m/s",
    "qdd": "accelerations, rad/s^2 or m/s^2",
    "tau": "torques, N m or N",
}

_SIGN = """/* -1, 0 or 1; nan for nan */
static {0} {1}({0} x)
{{
    return x > 0 ? {2} : x < 0 ? -{2} : x;
}}
"""


def export(
    file: str,
    out: str | Path,
    *,
    formulation: str = "newton_euler",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    prefix: str | None = None,
    lang: str = "c",
    force: bool = False,
    functions: Iterable[str] = USUAL,
    precision: str = "double",
    friction_smoothing: float = 0.0,
    link: str | None = None,
) -> dict[str, Any]:
    """Write `<prefix>_dynamics.h` and `.c` for a description into the directory `out`.

    Both begin with the robot, this package's version, the description and its hash, and the
    options. The same description gives the same files.

    Args:
        file: a description as for `rd.load`.
        out: the directory, which is created if needed.
        formulation: as in `InverseDynamics`.
        rotors: as in `InverseDynamics`.
        terms: as in `InverseDynamics`.
        prefix: prefix of all names, a C identifier; None: the robot's name.
        lang: c.
        force: overwrite existing files.
        functions: any of FUNCTIONS; `linearize` linearises about the motion that tau causes.
        precision: double or single.
        friction_smoothing: rad/s or m/s; see `InverseDynamics`.
        link: the link for `pose` and `jacobian`; None: the last one of the description.

    Returns:
        {"robot", "prefix", "joints", "files": […], "operations": {function: number}, "size",
        "text"}; size: size of code and stack by a compiler on this machine, or None.

    Raises:
        RobotDynamicsError: the description, an option or the directory is invalid, or a file
            already exists.
    """
    if lang not in LANGUAGES:
        raise wrong(InputError, "lang", lang, " or ".join(LANGUAGES))
    mechanism, terms, functions = load(file), tuple(terms), tuple(functions)
    prefix = identifier(mechanism.name) if prefix is None else prefix
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix) or len(prefix) > LONGEST_NAME:
        allowed = f"a C identifier of at most {LONGEST_NAME} characters"
        raise wrong(InputError, "prefix", prefix, allowed)
    *texts, operations = sources(
        mechanism,
        formulation,
        rotors,
        terms,
        prefix,
        functions=functions,
        precision=precision,
        friction_smoothing=friction_smoothing,
        link=link,
    )
    about = [
        f"robot: {mechanism.name}",
        *origin(file),
        f"formulation {formulation}, rotors {rotors}, terms: {', '.join(terms)}",
    ]
    if friction_smoothing:
        about.append(f"friction_smoothing {friction_smoothing:g}")
    files = {
        f"{prefix}_dynamics.{ending}": comment(about) + text
        for ending, text in zip("hc", texts, strict=True)
    }
    paths = write_files(Path(out), files, force=force)
    lines = [f"wrote {path}" for path in paths]
    lines += [f"{prefix}_{name}: {count} operations" for name, count in operations.items()]
    return {
        "robot": mechanism.name,
        "prefix": prefix,
        "joints": list(mechanism.joint_names),
        **written(paths, operations, lines),
    }


def written(
    files: Sequence[Path], operations: Mapping[str, int], lines: Iterable[str], levels: int = LEVELS
) -> dict[str, Any]:
    """{"files", "operations", "size", "text"} of what was written.

    Args:
        files: the paths; the size is that of the C file among them.
        operations: number of operations by function.
        lines: the text to print, without the size.
        levels: as in `compiled_size`.
    """
    source = next((path for path in files if path.suffix == ".c"), None)
    size = None if source is None else compiled_size(source, levels)
    lines = list(lines)
    if size is not None:
        code, stack = size["code"] / 1e3, math.ceil(size["stack"] / 100) / 10
        compiler = f"{size['compiler']} on this machine"
        lines.append(f"code {code:.1f} kB, stack at most {stack:.1f} kB ({compiler})")
    return {
        "files": [str(path) for path in files],
        "operations": operations,
        "size": size,
        "text": "\n".join(lines),
    }


def write_files(
    folder: Path, contents: Mapping[str, str] | Mapping[str, bytes], *, force: bool
) -> list[Path]:
    """Write files to a folder: all of them, or none if one already exists.

    Args:
        folder: created if needed.
        contents: text or bytes by relative path.
        force: overwrite existing files.

    Raises:
        InputError: a file exists and may not be overwritten, or cannot be written.
    """
    files = {folder / name: content for name, content in contents.items()}
    if there := [str(path) for path in files if os.path.exists(path) and not force]:
        raise wrong(InputError, "out", listed(there), "no such file yet, or --force to overwrite")
    for path, content in files.items():
        writable(path.parent)
        write_bytes(path, content if isinstance(content, bytes) else content.encode())
    return list(files)


def compiled_size(source: Path, levels: int = LEVELS) -> dict[str, Any] | None:
    """{"compiler", "code": bytes, "stack": bytes} of a C file by gcc -O2; None: no gcc found.

    The stack is an upper bound for the deepest call, without libm.

    Args:
        source: a C file that includes only its header and standard headers.
        levels: depth of calls among its functions.
    """
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "robot.o"
        options = ["-std=c99", "-O2", "-c", "-fstack-usage"]
        command = [gcc, *options, str(source.absolute()), "-o", str(target)]
        try:
            subprocess.run(  # noqa: S603
                command,
                cwd=scratch,
                capture_output=True,
                check=True,
                timeout=PATIENCE,
            )
            used = target.with_suffix(".su").read_text().splitlines()
            listing = subprocess.run(  # noqa: S603
                [shutil.which("size") or "size", str(target)],
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE,
            ).stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            return None
    stacks = sorted((int(line.split("\t")[1]) for line in used), reverse=True)
    code, data = (int(x) for x in listing[1].split()[:2])
    return {"compiler": "gcc -O2", "code": code + data, "stack": sum(stacks[:levels])}


def identifier(robot: str) -> str:
    """A C identifier for a robot's name."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", robot).strip("_")
    return plain if plain[:1].isalpha() else f"robot_{plain}".rstrip("_")


def origin(file: str) -> list[str]:
    """The generator, the description's name and the hash of its bytes or text, as lines."""
    text = os.fspath(file)
    if is_text(text):
        content, name = text.encode(), "a URDF text"
    else:
        source = find(text)
        content, name = source.read_bytes(), " ".join((source.name, *arguments_of(source)))
    made = f"made by: robot_dynamics {version()}"
    return [made, f"source: {name}", f"SHA-256 {sha256(content).hexdigest()}"]


def comment(lines: Iterable[str]) -> str:
    """A C comment. Sequences in external text that could end the comment are removed."""
    plain = [
        re.sub(r"[^A-Za-z0-9 _.,:=()+-]", "_", line.encode("ascii", "replace").decode())
        for line in lines
    ]
    return "/* " + "\n * ".join(plain) + " */\n"


def sources(
    mechanism: Mechanism,
    formulation: str = "newton_euler",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    prefix: str = "robot",
    *,
    functions: Iterable[str] = USUAL,
    precision: str = "double",
    friction_smoothing: float = 0.0,
    link: str | None = None,
) -> tuple[str, str, dict[str, int]]:
    """(header, source, number of operations of each function) of a mechanism.

    Args:
        mechanism: an open chain.
        prefix: prefix of all names, a C identifier.
        formulation, rotors, terms, functions, precision, friction_smoothing, link: as in `export`.

    Raises:
        InputError: a mechanism that cannot move, or one with loops, as these need a solver, or an
            unknown function, precision or link.
    """
    checked.robot(mechanism)
    if mechanism.loops:
        loops = "a loop" if len(mechanism.loops) == 1 else f"{len(mechanism.loops)} loops"
        raise wrong(InputError, "export", f"a robot with {loops}", "an open chain")
    if precision not in PRECISIONS:
        raise wrong(InputError, "precision", precision, choices(PRECISIONS))
    names = tuple(dict.fromkeys(functions))
    if unknown := [name for name in names if name not in _FUNCTIONS]:
        raise wrong(InputError, "functions", unknown[0], choices(_FUNCTIONS))
    link = mechanism.links[-1].name if link is None else link
    if link not in mechanism.index():
        raise wrong(InputError, "link", link, choices(mechanism.index()))
    options = Options(formulation, rotors, names_of_terms(terms), friction_smoothing)
    chain = OpenChain(mechanism, options)
    pieces = [_Piece.of(name, chain, link) for name in names]
    joints = identifiers(mechanism.joint_names, f"{prefix.upper()}_JOINT_")
    dialect = PRECISIONS[precision]
    header = _header(prefix, joints, pieces, dialect)
    body = [_function(prefix, piece, dialect) for piece in pieces]
    uses_sign = any(step[0] == "sign" for p in pieces for step in p.program.instructions)
    one = dialect.literal.format("1.0")
    sign = _SIGN.format(dialect.type, dialect.function.format("sign"), one)
    top = [
        "/* Generated. Straight-line code of the recorded formulation. */",
        f'#include "{prefix}_dynamics.h"',
        "",
        "#include <math.h>",
        "",
        *([sign] if uses_sign else []),
    ]
    operations = {piece.name: piece.program.operations for piece in pieces}
    return header, "\n".join([*top, *body]), operations


def identifiers(names: Iterable[str], prefix: str) -> list[str]:
    """Unique C identifiers for names, in upper-case ASCII.

    Args:
        names: any names, such as those of joints.
        prefix: of every identifier.
    """
    found: list[str] = []
    for place, name in enumerate(names):
        plain = prefix + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        taken = plain in found
        found.append(f"{plain}_{place}" if taken else plain)
    while len(set(found)) < len(found):  # a_1 may be one of the given names
        found = [name + f"_{place}" for place, name in enumerate(found)]
    return found


@dataclass(frozen=True)
class _Piece:
    """One exported function, with the robot's parameters as constants."""

    name: str
    arguments: tuple[str, ...]
    program: Program

    @classmethod
    def of(cls, name: str, chain: OpenChain, link: str) -> _Piece:
        """The function of a chain; `link` is that of a function of a link."""
        n, arguments = len(chain.joint_names), _SIGNATURES[name].arguments
        function = _recorded(name, chain, link)
        program = record(lambda *states: np.ravel(function(*states)), (n,) * len(arguments))
        return cls(name, arguments, guarded(program, len(arguments)))

    def head(self, prefix: str, dialect: Dialect) -> str:
        """The function's declaration."""
        T = dialect.type
        states = ", ".join(f"const {T} *{each}" for each in self.arguments)
        return f"void {prefix}_{self.name}({states}, {T} *{_FUNCTIONS[self.name][0]})"


def _recorded(name: str, chain: OpenChain, link: str) -> Callable[..., Array]:
    """The function over any scalar."""
    if name != "linearize":
        return chain.equations(name, link)
    forward, derivatives = chain.equations("forward"), chain.equations("derivatives")
    n = len(chain.joint_names)

    def linearized(q: Array, qd: Array, tau: Array) -> Array:
        of_q, of_qd, D = derivatives(q, qd, forward(q, qd, tau))
        # A = [0, 1; -D⁻¹ ∂τ/∂q, -D⁻¹ ∂τ/∂q̇],  B = [0; D⁻¹]
        right = np.hstack([-of_q, -of_qd, np.eye(n)])
        lower = array([solved(D, column) for column in right.T]).T
        A = np.vstack([np.hstack([np.zeros((n, n)), np.eye(n)]), lower[:, : 2 * n]])
        return array([*A.ravel(), *np.zeros(n * n), *lower[:, 2 * n :].ravel()])

    return linearized


def _header(prefix: str, joints: list[str], pieces: Sequence[_Piece], dialect: Dialect) -> str:
    guard = f"{prefix.upper()}_DYNAMICS_H"
    count = f"{prefix.upper()}_JOINTS"
    lines = [
        "/* Generated: the dynamics of a robot. SI units; joints in the order of the enum.",
        " * No allocation, no state, nothing but libm: every function may run in any thread.",
        " * A nan in the state makes the whole result nan.",
        " * The robot's parameters, gravity and friction are compiled in. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "enum {",
        *(f"    {name} = {place}," for place, name in enumerate(joints)),
        f"    {count} = {len(joints)}",
        "};",
        "",
    ]
    for piece in pieces:
        result, meaning = _FUNCTIONS[piece.name]
        lines += [f"/* {meaning}"]
        lines += [f" * {each} [{count}]: {_UNITS[each]}" for each in piece.arguments]
        shape = _SIGNATURES[piece.name].result
        size = " * ".join(str(x) if isinstance(x, int) else count for x in shape)
        lines += [f" * {result} [{size}]: the result */", piece.head(prefix, dialect) + ";", ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)


def _function(prefix: str, piece: _Piece, dialect: Dialect) -> str:
    code = CCode(piece.program, dialect, f"{piece.name}_")
    lines = [
        *code.functions(),
        piece.head(prefix, dialect),
        "{",
        *body(code, piece.name, piece.arguments, dialect, _FUNCTIONS[piece.name][0]),
    ]
    return "\n".join([*lines, "}", ""])


def body(
    code: CCode, name: str, arguments: Sequence[str], dialect: Dialect = C99, result: str = "out"
) -> list[str]:
    """The body of a C function that takes these arguments and runs a program's parts.

    Args:
        code: the program; the names of its functions begin with `name` and an underscore.
        name: of the C function.
        arguments: names of its arguments.
        dialect: of the generated C.
        result: name of the argument for the result.
    """
    T = dialect.type
    lines = [f"    const {T} *const x[] = {{{', '.join(arguments)}}};"]
    if result != "out":
        lines.append(f"    {T} *const out = {result};")
    lines.append(f"    {T} w[{max(code.handed_on, 1)}];")
    if code.angles:
        sin, cos = (dialect.function.format(each) for each in ("sin", "cos"))
        lines += [
            f"    {T} sin_[{code.angles}], cos_[{code.angles}];",
            f"    {T} angle[{code.angles}];",
            "    int i;",
            f"    {name}_angles(x, angle);",
            f"    for (i = 0; i < {code.angles}; i++) {{",
            f"        sin_[i] = {sin}(angle[i]);",
            f"        cos_[i] = {cos}(angle[i]);",
            "    }",
        ]
    return lines + ["    " + call for call in code.constants + code.calls]
