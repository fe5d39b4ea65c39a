# SPDX-License-Identifier: Apache-2.0
"""A robot's dynamics as a C99 header and source that need nothing but libm.

robot_torques(q, qd, qdd, tau);   the robot's numbers are compiled in; no allocation, no state
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..codegen.c_code import C99, CCode
from ..codegen.guard import guarded
from ..codegen.recorder import Program, record
from ..description import load
from ..description.files import find
from ..errors import InputError, listed, wrong
from ..formulations.equations import TERMS
from ..mechanism import Mechanism
from ..version import version
from .open_chain import OpenChain

LANGUAGES = ("c",)

_FUNCTIONS = {
    "torques": ("tau", "tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd), N m or N"),
    "mass_matrix": ("D", "D(q), kg m^2 (kg m, kg), row by row"),
    "coriolis_matrix": ("C", "C(q, qd) of Christoffel symbols, row by row"),
    "gravity": ("g", "g(q), N m or N"),
}
_UNITS = {
    "q": "positions, rad or m",
    "qd": "rates, rad/s or m/s",
    "qdd": "accelerations, rad/s^2 or m/s^2",
}

_SIGN = """/* -1, 0 or 1; nan of nan */
static double sign(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}
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
) -> dict[str, Any]:
    """Write `<prefix>_dynamics.h` and `.c` for a description into the directory `out`.

    Both begin with the robot, this package's version, the description and its hash, and what was
    asked for. The same description gives the same files.

    Args:
        file: what `rd.load` takes.
        prefix: what all names in the text begin with, a C identifier; None: the robot's name.
        force: overwrite files that are there.

    Returns:
        {"robot", "prefix", "joints", "files": […], "operations": {function: number}, "text"}

    Raises:
        RobotDynamicsError: the description, an option or the directory is invalid, or a file is
            there already.
    """
    if lang not in LANGUAGES:
        raise wrong(InputError, "lang", lang, " or ".join(LANGUAGES))
    mechanism, terms = load(file), tuple(terms)
    prefix = _name(mechanism.name) if prefix is None else prefix
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        raise wrong(InputError, "prefix", prefix, "a C identifier")
    place = Path(out)
    files = [place / f"{prefix}_dynamics.{ending}" for ending in "hc"]
    if there := [str(path) for path in files if path.exists() and not force]:
        raise wrong(InputError, "out", listed(there), "no such file yet, or --force to overwrite")
    *texts, operations = sources(mechanism, formulation, rotors, terms, prefix)
    about = [
        f"robot: {mechanism.name}",
        f"made by: robot_dynamics {version()}",
        *_origin(file),
        f"formulation {formulation}, rotors {rotors}, terms: {', '.join(terms)}",
    ]
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, text in zip(files, texts, strict=True):
            path.write_text(_comment(about) + text, encoding="ascii")
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}", name="out", value=str(place)) from None
    lines = [f"wrote {path}" for path in files]
    lines += [f"{prefix}_{name}: {count} operations" for name, count in operations.items()]
    return {
        "robot": mechanism.name,
        "prefix": prefix,
        "joints": list(mechanism.joint_names),
        "files": [str(path) for path in files],
        "operations": operations,
        "text": "\n".join(lines),
    }


def _name(robot: str) -> str:
    """A C identifier for a robot's name."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", robot).strip("_")
    return plain if plain[:1].isalpha() else f"robot_{plain}".rstrip("_")


def _origin(file: str) -> list[str]:
    """The description's name and the hash of its bytes; the text's, where it is one."""
    text = os.fspath(file)
    is_text = text.lstrip("\ufeff \t\r\n").startswith("<")
    content = text.encode() if is_text else find(text).read_bytes()
    name = "a URDF text" if is_text else find(text).name
    return [f"source: {name}", f"SHA-256 {sha256(content).hexdigest()}"]


def _comment(lines: Iterable[str]) -> str:
    """Words from outside lose what could end a comment or begin something else."""
    plain = [
        re.sub(r"[^A-Za-z0-9 _.,:()+-]", "_", line.encode("ascii", "replace").decode())
        for line in lines
    ]
    return "/* " + "\n * ".join(plain) + " */\n"


def sources(
    mechanism: Mechanism,
    formulation: str = "newton_euler",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    prefix: str = "robot",
) -> tuple[str, str, dict[str, int]]:
    """(header, source, operations of each function) of a mechanism.

    Raises:
        InputError: it has loops, which need a solver.
    """
    if mechanism.loops:
        raise wrong(
            InputError, "export", f"{len(mechanism.loops)} loops", "an open chain, without loops"
        )
    chain = OpenChain(mechanism, formulation, rotors, terms)
    programs = {name: _program(chain, name) for name in _FUNCTIONS}
    names = identifiers(mechanism.joint_names, f"{prefix.upper()}_JOINT_")
    header = _header(prefix, names, chain)
    body = [_function(prefix, name, chain, program) for name, program in programs.items()]
    uses_sign = any(step[0] == "sign" for p in programs.values() for step in p.instructions)
    top = [
        "/* Generated. Straight-line code of the recorded formulation. */",
        f'#include "{prefix}_dynamics.h"',
        "",
        "#include <math.h>",
        "",
        *([_SIGN] if uses_sign else []),
    ]
    operations = {name: program.operations for name, program in programs.items()}
    return header, "\n".join([*top, *body]), operations


def identifiers(names: Iterable[str], prefix: str) -> list[str]:
    """C identifiers for these names: ASCII, upper case, no two alike."""
    found: list[str] = []
    for place, name in enumerate(names):
        plain = prefix + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        taken = plain in found
        found.append(f"{plain}_{place}" if taken else plain)
    while len(set(found)) < len(found):  # a_1 may have been there already
        found = [name + f"_{place}" for place, name in enumerate(found)]
    return found


def _program(chain: OpenChain, name: str) -> Program:
    """The program with the robot's numbers folded in."""
    function, numbers = chain.function(name), chain.parameters
    program = record(lambda *states: function.equations(*states, numbers), function.sizes)
    return guarded(program, len(function.sizes))


def _header(prefix: str, names: list[str], chain: OpenChain) -> str:
    guard = f"{prefix.upper()}_DYNAMICS_H"
    count = f"{prefix.upper()}_JOINTS"
    lines = [
        "/* Generated: the dynamics of a robot. SI units; joints in the order of the enum.",
        " * No allocation, no state, nothing but libm: every function may run in any thread.",
        " * A nan in the state makes the whole result nan.",
        " * The robot's numbers, gravity and friction are compiled in. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "enum {",
        *(f"    {name} = {place}," for place, name in enumerate(names)),
        f"    {count} = {len(names)}",
        "};",
        "",
    ]
    for name, (result, meaning) in _FUNCTIONS.items():
        lines += [f"/* {meaning}"]
        lines += [f" * {each} [{count}]: {_UNITS[each]}" for each in _arguments(chain, name)]
        size = f"{count} * {count}" if name.endswith("matrix") else count
        lines += [f" * {result} [{size}]: the result */", _head(prefix, name, chain) + ";", ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)


def _arguments(chain: OpenChain, name: str) -> tuple[str, ...]:
    return chain.function(name).arguments


def _head(prefix: str, name: str, chain: OpenChain) -> str:
    states = ", ".join(f"const double *{each}" for each in _arguments(chain, name))
    return f"void {prefix}_{name}({states}, double *{_FUNCTIONS[name][0]})"


def _function(prefix: str, name: str, chain: OpenChain, program: Program) -> str:
    code = CCode(program, C99, f"{name}_")
    arguments = ", ".join(_arguments(chain, name))
    lines = [
        *code.functions(),
        _head(prefix, name, chain),
        "{",
        f"    const double *const x[] = {{{arguments}}};",
        f"    double *const out = {_FUNCTIONS[name][0]};",
        f"    double w[{max(code.handed_on, 1)}];",
        f"    double sin_[{max(code.angles, 1)}], cos_[{max(code.angles, 1)}];",
    ]
    if code.angles:
        lines += [
            f"    double angle[{code.angles}];",
            "    int i;",
            f"    {name}_angles(x, angle);",
            f"    for (i = 0; i < {code.angles}; i++) {{",
            "        sin_[i] = sin(angle[i]);",
            "        cos_[i] = cos(angle[i]);",
            "    }",
        ]
    lines += ["    " + call for call in code.constants + code.calls]
    return "\n".join([*lines, "}", ""])
