"""The command line: `robot_dynamics torque|derive|check|compare|demo|identify|replay|excite|…`.

Exit codes: 0 success, 1 failure (one line says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, RobotDynamicsError
from ..formulations import FORMULATIONS
from ..formulations.equations import TERMS
from ..mechanism.transform import ROTOR_MODELS
from . import commands_excite, commands_identify
from .demo import DEMOS

LONGEST = 100_000
"""Steps of a motion above which a unit is probably wrong"""

SIX_AXIS = "package://robot_dynamics/urdf/six_axis.urdf"

Result = dict[str, Any]
"""A command's result: printed as text, or as JSON"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args([_number_or_option(each) for each in arguments])
    complaints: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = options.command(options)
        complaints = [str(each.message) for each in caught]
    except RobotDynamicsError as error:
        _print_error(str(error), options.json)
        return 1
    except KeyboardInterrupt:
        _print_error("stopped", options.json)
        return 130
    for complaint in complaints:
        print(f"warning: {complaint}", file=sys.stderr)
    try:
        _print_result(result, options)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nothing more is to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(result.get("exit_code", 0))


def _number_or_option(argument: str) -> str:
    """-1e-3 is a number; a blank before it keeps argparse from taking it for an option."""
    if argument.startswith("-"):
        try:
            float(argument)
        except ValueError:
            return argument
        return " " + argument
    return argument


def _print_error(message: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": message}))
    else:
        print(f"robot_dynamics: {message}", file=sys.stderr)


def _print_result(result: Result, options: argparse.Namespace) -> None:
    text = result.pop("text", None)
    if options.json:
        print(json.dumps(result))
    elif text:
        print(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="robot_dynamics", description="Feed-forward joint torques from a robot's description."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(
        name: str, function: Callable[[argparse.Namespace], Result], help_text: str
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help_text, description=help_text)
        sub.set_defaults(command=function)
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    torque = command("torque", _torque, "Joint torques at a state.")
    _add_robot(torque)
    for name, unit in (("q", "rad or m"), ("qd", "rad/s or m/s"), ("qdd", "rad/s² or m/s²")):
        torque.add_argument(
            f"--{name}",
            nargs="+",
            required=name == "q",
            metavar="X",
            help=f"one number a joint ({unit}), in the order that `check` prints"
            + ("" if name == "q" else "; zeros if left out"),
        )
    torque.add_argument("--motor", action="store_true", help="motor-side torques as well")

    derive = command("derive", _derive, "The equations of motion in symbols.")
    _add_robot(derive, default="lagrange_euler")
    derive.add_argument("--latex", action="store_true", help="as LaTeX")
    derive.add_argument("--steps", action="store_true", help="every step of Lagrange–Euler")
    derive.add_argument(
        "--parameters",
        choices=("symbols", "numbers"),
        default="symbols",
        help="masses and lengths as symbols (default) or as the description's numbers",
    )
    derive.add_argument(
        "--no-simplify", action="store_true", help="faster, with longer expressions"
    )

    check = command(
        "check", _check, "Check a description, and that the kernels of all formulations agree."
    )
    check.add_argument("file", help="a .yaml, .urdf or .xacro file, or package://…")
    check.add_argument("--strict", action="store_true", help="warnings are errors")

    compare = command("compare", _compare, "One motion by every formulation and rotor model.")
    compare.add_argument("file", help="a .yaml, .urdf or .xacro file, or package://…")
    for name, default in (("q", "0, or home"), ("qd", "1"), ("qdd", "5")):
        compare.add_argument(
            f"--{name}",
            nargs="+",
            metavar="X",
            help=f"at the start, one number a joint (default: {default} each); accelerations stay",
        )
    compare.add_argument("--duration", type=float, default=0.2, metavar="S")
    compare.add_argument("--step", type=float, default=0.01, metavar="S")
    compare.add_argument("--picture", metavar="FILE", help="draw the torques as well")

    demo = command("demo", _demo, "A simulated robot tracked with and without feed-forward.")
    demo.add_argument("robot", choices=DEMOS)
    demo.add_argument("--output", metavar="DIR", help="where the picture goes (default: here)")

    commands_identify.add(command)
    commands_excite.add(command)

    bench = command("bench", _bench, "Time calls and batches on this machine.")
    bench.add_argument(
        "file", nargs="?", default=SIX_AXIS, help="a description (default: the six-axis arm)"
    )

    cache = command("cache", _cache, "List or clear the compiled kernels in the cache.")
    cache.add_argument("action", choices=("list", "clear"), nargs="?", default="list")

    export = command("export", _export, "Export the dynamics as C source for a controller.")
    _add_robot(export)
    export.add_argument("--lang", choices=("c",), default="c")
    export.add_argument("--out", required=True, metavar="DIR")
    return parser


def _add_robot(parser: argparse.ArgumentParser, default: str = "newton_euler") -> None:
    parser.add_argument("file", help="a .yaml, .urdf or .xacro file, or package://…")
    parser.add_argument("--formulation", choices=tuple(FORMULATIONS), default=default)
    parser.add_argument("--rotors", choices=ROTOR_MODELS, default="full")
    parser.add_argument("--terms", nargs="+", choices=TERMS, default=list(TERMS), metavar="TERM")


def _torque(options: argparse.Namespace) -> Result:
    from ..description import load
    from ..dynamics import InverseDynamics

    dynamics = InverseDynamics(
        load(options.file), options.formulation, rotors=options.rotors, terms=options.terms
    )
    n = len(dynamics.joint_names)
    q = _vector(options.q, "--q", n)
    qd = _vector(options.qd or ["0"] * n, "--qd", n)
    qdd = _vector(options.qdd or ["0"] * n, "--qdd", n)
    tau = dynamics(q, qd, qdd).tolist()
    result: Result = {
        "joints": list(dynamics.actuated_names),
        "torques": tau,
        "formulation": options.formulation,
        "rotors": options.rotors,
    }
    lines = [
        f"{name}: {value:.12g}" for name, value in zip(dynamics.actuated_names, tau, strict=True)
    ]
    if options.motor:
        drive, gear = (side.tolist() for side in dynamics.motor_torques(q, qd, qdd))
        result["motors"] = {"names": list(dynamics.motor_names), "drive": drive, "gear": gear}
        lines += [
            f"motor {name}: drive {field:.12g}, gear {shaft:.12g}"
            for name, field, shaft in zip(dynamics.motor_names, drive, gear, strict=True)
        ]
    return {**result, "text": "\n".join(lines)}


def _vector(texts: list[str], name: str, n: int) -> list[float]:
    entries = [part for text in texts for part in text.replace(",", " ").split()]
    try:
        numbers = [float(entry) for entry in entries]
    except ValueError:
        raise InputError(f"{name}: found {' '.join(entries)!r}, expected numbers") from None
    if len(numbers) != n:
        raise InputError(f"{name}: found {len(numbers)} numbers, expected {n}, one a joint")
    return numbers


def _derive(options: argparse.Namespace) -> Result:
    from ..description import load
    from ..symbolic import derive

    model = derive(
        load(options.file),
        options.formulation,
        parameters=options.parameters,
        rotors=options.rotors,
        terms=options.terms,
        simplify=not options.no_simplify,
        intermediates=False if options.steps else None,
        progress=_progress,
    )
    text = model.latex() if options.latex else model.text()
    if options.steps:
        from ..symbolic.show import steps_text

        text = steps_text(model) + "\n" + text
    return {
        "joints": list(model.joint_names),
        "torques": [str(entry) for entry in model.torques],
        "intermediates": {str(symbol): str(value) for symbol, value in model.intermediates},
        "latex": model.latex(),
        "parameters": {str(symbol): value for symbol, value in model.parameters.items()},
        "text": text,
    }


def _check(options: argparse.Namespace) -> Result:
    from .report import report

    return report(options.file, strict=options.strict)


def _compare(options: argparse.Namespace) -> Result:
    from ..description import load
    from .compare import compare, constant_acceleration, coordinates, table

    mechanism = load(options.file)
    names = coordinates(mechanism)
    n = len(names)
    home = [str(mechanism.home.get(name, 0.0)) for name in names]
    q, qd, qdd = (
        _vector(given or start, f"--{name}", n)
        for name, start, given in (
            ("q", home, options.q),
            ("qd", ["1"] * n, options.qd),
            ("qdd", ["5"] * n, options.qdd),
        )
    )
    if not (options.step > 0 and 0 < options.duration / options.step < LONGEST):
        raise InputError(
            f"--duration {options.duration:g} --step {options.step:g}: expected two positive "
            f"times with fewer than {LONGEST} steps"
        )
    time = np.arange(round(options.duration / options.step) + 1) * options.step
    compared = compare(mechanism, time, *constant_acceleration(q, qd, qdd, time))
    text = table(compared)
    if options.picture:
        from .plots import comparison

        path = comparison(Path(options.picture), mechanism.name, compared)
        text += f"\npicture: {path}"
    return {
        "joints": list(names),
        "disagreement": {name: row.tolist() for name, row in compared.disagreement().items()},
        "model_error": {name: row.tolist() for name, row in compared.model_error().items()},
        "text": text,
    }


def _demo(options: argparse.Namespace) -> Result:
    from .demo import run

    return run(options.robot, output=options.output, as_json=options.json)


def _bench(options: argparse.Namespace) -> Result:
    from .bench import bench

    return bench(options.file)


def _cache(options: argparse.Namespace) -> Result:
    from ..codegen import cache

    return cache.clear() if options.action == "clear" else cache.listing()


def _export(options: argparse.Namespace) -> Result:
    from ..dynamics.export import export

    return export(
        options.file,
        options.out,
        formulation=options.formulation,
        rotors=options.rotors,
        terms=options.terms,
    )


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"… {words}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
