# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import DescriptionError, InputError, listed, shown, wrong
from ..formulations import FORMULATIONS
from ..formulations.equations import TERMS
from ..mechanism import Mechanism
from ..mechanism.transform import ROTOR_MODELS
from .command import Several

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

description = click.argument("file", metavar="FILE", type=click.Path())
"""A .yaml, .urdf or .xacro file, or package://…"""


def together(*decorators: Decorator) -> Decorator:
    """One decorator for several; their options are listed in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


rotors_option = click.option(
    "--rotors", type=click.Choice(ROTOR_MODELS), default="full", show_default=True
)
terms_option = click.option(
    "--terms",
    cls=Several,
    type=click.Choice(TERMS),
    default=TERMS,
    metavar="TERM...",
    help=f"Which terms to compute, of {', '.join(TERMS)} (default: all).",
)


def gathered(argument: str, *options: Decorator, **parsers: Callable[[Any], Any]) -> Decorator:
    """Options whose values reach the command as one dictionary, `argument`, each by its parser."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            values = {name: parse(given.pop(name)) for name, parse in parsers.items()}
            return function(**given, **{argument: values})

        return together(*options)(called)

    return decorate


def one_a_joint(name: str, help: str) -> Decorator:
    """An option that takes a number for each joint, see `vector`."""
    return click.option(f"--{name}", cls=Several, metavar="X...", help=help)


def model(
    default: str = "newton_euler",
    formulations: Sequence[str] = tuple(FORMULATIONS),
    help: str | None = None,
) -> Decorator:
    """FILE, --formulation, --rotors and --terms: what `InverseDynamics` takes."""
    return together(
        description,
        click.option(
            "--formulation",
            type=click.Choice(formulations),
            default=default,
            show_default=True,
            help=help,
        ),
        rotors_option,
        terms_option,
    )


def vector(
    texts: Sequence[str], option: str, joints: Sequence[str], default: float | list[float] = 0.0
) -> list[float]:
    """One number for each of these joints, separated by blanks or commas; -pi/2 and 3*pi/4 too.

    Args:
        default: where the option is not given, of each joint or of all of them.

    Raises:
        InputError: they are not finite numbers, or not as many as joints.
    """
    from ..description.fields import number

    if not texts:
        return default if isinstance(default, list) else [default] * len(joints)
    entries = [part for text in texts for part in text.replace(",", " ").split()]
    if len(entries) != len(joints):
        raise InputError(
            f"{option}: found {len(entries)} number{'' if len(entries) == 1 else 's'}, expected "
            f"{len(joints)}, one for each of {listed(joints)}",
            name=option,
            value=entries,
        )
    try:
        return [number(entry, option) for entry in entries]
    except DescriptionError:
        found = shown(" ".join(entries))
        raise InputError(
            f"{option}: found {found}, expected numbers such as 0.5, -1e-3 or 3*pi/4",
            name=option,
            value=entries,
        ) from None


def home(mechanism: Mechanism, joints: Sequence[str]) -> list[float]:
    """The description's home (rad or m), 0 where it says nothing."""
    return [float(mechanism.home.get(name, 0.0)) for name in joints]


def pairs(entries: Sequence[str], option: str = "--rename") -> dict[str, str]:
    """OLD:NEW, each old name once.

    Raises:
        InputError: one is not of this form, or comes twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        old, colon, new = entry.strip().rpartition(":")
        if not (old and colon and new):
            raise wrong(InputError, option, entry, "OLD:NEW")
        if old in found:
            raise wrong(InputError, option, entry, f"{old} once")
        found[old] = new
    return found


def factors(entries: Sequence[str]) -> dict[str, float]:
    """JOINT:FACTOR

    Raises:
        InputError: one is not of this form, or comes twice.
    """
    found = {}
    for joint, text in pairs(entries, "--effort-scale").items():
        try:
            found[joint] = float(text)
        except ValueError:
            raise wrong(InputError, f"--effort-scale {joint}", text, "a number") from None
    return found


def frequency(value: float | None) -> float | None:
    """A positive number of Hz, or None.

    Raises:
        InputError: it is something else.
    """
    if value is not None and not (math.isfinite(value) and value > 0):
        raise wrong(InputError, "--cutoff", value, "a frequency in Hz")
    return value


def _same(value: Any) -> Any:
    return value


def _reading(cutoff: str, own: Decorator, **parsers: Callable[[Any], Any]) -> Decorator:
    """`reading`: what any recording is read with, and an option of its own.

    Args:
        cutoff: the help of --cutoff goes on so.
    """
    return gathered(
        "reading",
        own,
        click.option(
            "--topic",
            help="Topic of a bag, of type sensor_msgs/JointState (default: /joint_states).",
        ),
        click.option(
            "--rename",
            cls=Several,
            metavar="OLD:NEW...",
            help="Rename a joint, or a prefix that several share, from OLD as recorded to NEW as "
            "described.",
        ),
        click.option(
            "--cutoff", type=float, metavar="HZ", help=f"Cutoff frequency of the filter {cutoff}."
        ),
        **parsers,
        topic=_same,
        rename=pairs,
        cutoff=frequency,
    )


recordings = _reading(
    "(default: the one whose fit predicts torques best)",
    click.option(
        "--effort-scale",
        cls=Several,
        metavar="JOINT:FACTOR...",
        help="Factor that turns the efforts of a joint into N·m or N: a sign, a torque constant.",
    ),
    effort_scale=factors,
)
"""`reading`: how recordings are read, as `identify` and `replay` take it"""

motions = _reading(
    "for a recorded motion",
    click.option(
        "--step",
        type=float,
        metavar="S",
        help="Time between the samples of a trajectory (default: 0.01).",
    ),
    step=_same,
)
"""`reading`: how a motion is read, as `drives.states` takes it"""
