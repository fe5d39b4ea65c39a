# SPDX-License-Identifier: Apache-2.0
"""The files of a controller's package, from templates.

The content of a description enters the generated files only as numbers, as names whose characters
have all been checked, or in comments that it cannot end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from ..description import load
from ..description.fields import LONGEST_NAME
from ..dynamics import checked
from ..dynamics.export import (
    body,
    comment,
    identifier,
    origin,
    write_files,
    written,
)
from ..errors import InputError, wrong
from ..formulations.terms import RIGID, TERMS
from ..version import version
from .expected_torques import read_table, table
from .programs import READ, CFunction, Programs, Request, programs

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""A valid name of a joint or link in ros2_control and in the names of parameters"""
PACKAGE = re.compile(r"[a-z](_?[a-z0-9]+)*")
"""A valid name of a ROS package (REP 144)"""
SUFFIX = "_feed_forward_controller"
LEVELS = 7
"""Depth of calls between the C functions: read, go, advance, step, kernel, its parts, sign"""
SOURCES = ("src/__robot___dynamics.h", "src/__robot___dynamics.c")


def write_package(
    file: str,
    out: str | Path,
    *,
    formulation: str = "newton_euler",
    rotors: str = "full",
    prefix: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a ros2_control controller, in the ament_cmake package
    `<prefix>_feed_forward_controller`.

    `colcon build` builds it without robot_dynamics; see its README.md.

    Args:
        file: the description, as for `rd.load`.
        out: the directory in which the package's folder is created.
        formulation, rotors: for the C code, as in `InverseDynamics`.
        prefix: the robot's part of the package's name, consisting of lower-case letters, digits and
            single underscores; None: derived from the robot's name.
        force: overwrite existing files.

    Returns:
        A dict with robot, prefix, package, joints, files, operations (their number by kernel), size
        (of the code and stack in bytes; None without gcc) and text (to print).

    Raises:
        RobotDynamicsError: the description, an option or the directory is invalid, a joint has a
            name that ros2_control does not allow, or a file exists already.
    """
    request = checked_request(file, formulation, rotors, prefix)
    texts, operations = rendered(request)
    package = request.prefix + SUFFIX
    files = write_files(Path(out) / package, texts, force=force)
    done = (
        f"wrote {Path(out) / package}: {len(files)} files; build it with colcon, see its README.md"
    )
    return {"package": package, **result(request, operations, files, [done])}


def write_source(
    file: str,
    out: str | Path,
    *,
    formulation: str = "newton_euler",
    rotors: str = "full",
    prefix: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write only the dynamics of the controller: `<prefix>_dynamics.h` and `<prefix>_dynamics.c`.

    The source is C99, needs only libm, and works for any robot, with or without loops. Terms,
    gravity, payloads and the smoothing of friction are arguments.

    Args:
        file: the description, as for `rd.load`.
        out: the directory to write to.
        formulation, rotors: as in `InverseDynamics`.
        prefix: as in `write_package`.
        force: overwrite existing files.

    Returns:
        A dict as from `write_package`, without package.

    Raises:
        RobotDynamicsError: as in `write_package`.
    """
    request = checked_request(file, formulation, rotors, prefix)
    texts, operations = rendered(request, SOURCES)
    files = write_files(Path(out), texts, force=force)
    return result(request, operations, files, [f"wrote {path}" for path in files])


def result(
    request: Request, operations: dict[str, int], files: Sequence[Path], lines: Sequence[str]
) -> dict[str, Any]:
    """The result of a function that writes files; see `write_package`.

    Args:
        request: the robot and the choices.
        operations: their number by kernel.
        files: the paths that were written.
        lines: the first lines of the text to print.
    """
    lines = [*lines, *(f"{name}: {count} operations" for name, count in operations.items())]
    return {
        "robot": request.mechanism.name,
        "prefix": request.prefix,
        "joints": list(request.mechanism.actuated_names),
        **written(files, operations, lines, LEVELS),
    }


def checked_request(file: str, formulation: str, rotors: str, prefix: str | None) -> Request:
    """A robot whose names have all been checked, and the choices.

    Args:
        file: the description, as for `rd.load`.
        formulation, rotors: as in `InverseDynamics`.
        prefix: as in `write_package`.

    Raises:
        RobotDynamicsError: an invalid description, prefix or name of a joint.
    """
    mechanism = checked.robot(load(file))
    robot = identifier(mechanism.name.lower()) if prefix is None else prefix
    if not PACKAGE.fullmatch(robot) or len(robot) > LONGEST_NAME:
        allowed = (
            f"up to {LONGEST_NAME} lower-case letters, digits and single underscores (REP 144)"
        )
        raise wrong(InputError, "prefix", robot, allowed)
    for name in mechanism.joint_names + mechanism.actuated_names + mechanism.sensed:
        if not NAME.fullmatch(name):
            raise wrong(
                InputError,
                "joint",
                name,
                "letters, digits, _, . and -, not starting with . or -: interfaces and parameters "
                "are named after it",
            )
    about = f"robot: {mechanism.name}", *origin(file), f"formulation {formulation}, rotors {rotors}"
    return Request(mechanism, robot, formulation, rotors, about)


def rendered(
    request: Request,
    names: Sequence[str] = (),
    more: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {},
) -> tuple[dict[str, str], dict[str, int]]:
    """(the text of each file by its path, the number of operations by kernel).

    Args:
        request: the robot and the choices.
        names: the templates to render, which must not need tables; their files are in one folder.
            Empty: the whole package.
        more: returns further variables for the templates, given those that all templates have.
    """
    links = [link.name for link in request.mechanism.links if NAME.fullmatch(link.name)]
    found = programs(request, links)
    context = _context(request, found, links)
    if not names:
        context["table"] = table(request, found, links)
        context["read_table"] = read_table(request, context["table"])
    context |= more(context)
    environment = _environment()
    texts = {}
    every = (name.removesuffix(".j2") for name in environment.list_templates(extensions=["j2"]))
    for name in names or [name for name in every if not name.startswith("fmu/")]:
        target = name.replace("__robot__", request.prefix)
        target = target.replace("__package__", request.prefix + SUFFIX)
        text = environment.get_template(f"{name}.j2").render(context)
        texts[Path(target).name if names else target] = text
    operations = {name: each.program.operations for name, each in found.kernels.items()}
    return texts, operations


def _context(request: Request, found: Programs, links: Sequence[str]) -> dict[str, Any]:
    mechanism, prefix = request.mechanism, request.prefix
    kernels = found.kernels
    steps = [step for each in kernels.values() for step in each.program.instructions]
    loads = [load for each in found.parameters for load in each.loads if load.rows]
    joints = {name: mechanism.joint(name) for name in {*found.joints, *found.motors}}
    return {
        **vars(found),
        "about": request.about,
        "robot": prefix,
        "prefix": prefix,
        "PREFIX": prefix.upper(),
        "package": prefix + SUFFIX,
        "links": links,
        "terms": TERMS,
        "rigid_terms": RIGID,
        "rigid_mask": sum(2**k for k, term in enumerate(TERMS) if term in RIGID),
        "kernels": list(kernels.values()),
        **_kinds(kernels, ""),
        "read": _kinds(kernels, READ) if found.reading else None,
        "share": kernels.get("share"),
        # of robots with loops, the friction at the last configuration has them
        "springs": not found.closure
        and any(law.stiffness for *_, law in mechanism.friction_rows()),
        "presliding": any(law.presliding for *_, law in mechanism.friction_rows()),
        "any_loads": bool(loads),
        "any_blocks": any(load.block is not None for load in loads),
        "uses_sign": any(step[0] == "sign" for step in steps),
        "memory": found.closure.memory if found.closure else (),
        "gravity": [float(x) for x in mechanism.gravity],
        # as for the node, None and zero are no limits
        "effort_limits": [float(joints[name].ends.effort or math.inf) for name in found.motors],
        "turns_forever": [int(joints[name].type == "continuous") for name in found.joints],
        "version": version(),
    }


def _kinds(kernels: dict[str, CFunction], prefix: str) -> dict[str, Any]:
    """A model's kernels by what they compute; None for one whose result is zero."""
    names = ("rigid", "closing", "friction", "friction_smoothed")
    terms = [(term, kernels[prefix + term]) for term in RIGID if prefix + term in kernels]
    return {name: kernels.get(prefix + name) for name in names} | {"of_terms": terms}


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  no HTML
    )
    environment.filters |= {
        "comment": lambda lines: comment(lines).rstrip("\n"),
        "hashes": lambda lines: comment(lines)[3:-4].replace("\n * ", "\n# ").join(["# ", ""]),
        "plain": lambda text: comment([text])[3:-4],
        "literals": _literals,
        "numbers": lambda values: ", ".join(map(_number, values)),
        "number": _number,
        "functions": _functions,
        "yaml_names": lambda names: "[" + ", ".join(f'"{_checked(name)}"' for name in names) + "]",
    }
    return environment


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise AssertionError(name)
    return name


def _literals(names: Iterable[str]) -> str:
    """The names, which are checked, as C string literals."""
    return ", ".join(f'"{_checked(name)}"' for name in names)


def _number(x: float) -> str:
    if math.isinf(x):
        return "HUGE_VAL" if x > 0 else "-HUGE_VAL"
    if isinstance(x, int):
        return str(x)
    return repr(float(x))


def _functions(kernel: CFunction) -> str:
    """The source of a kernel's C functions; the last one is `name(arguments…, out)`."""
    code, name = kernel.code, kernel.name
    arguments = ", ".join(f"const double *{each}" for each in kernel.arguments)
    lines = [*code.functions(), f"static void {name}({arguments}, double *out)", "{"]
    return "\n".join([*lines, *body(code, name, kernel.arguments), "}", ""])
