# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import DescriptionError, InputError, counted, listed, wrong
from ..formulations import FORMULATIONS
from ..formulations.equations import TERMS
from ..inputs import frequency
from ..mechanism import Mechanism
from ..mechanism.transform import ROTOR_MODELS
from .command import Several

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

description = click.argument("file", metavar="FILE", type=click.Path())
"""A .yaml, .urdf or .xacro file, or package://…"""


def together(*decorators: Decorator) -> Decorator:
    """Combine several decorators into one; their options are listed in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


def path(name: str, metavar: str, help: str, **more: Any) -> Decorator:
    """An option that takes a file or a folder; `more` are arguments of `click.option`."""
    return click.option(name, type=click.Path(), metavar=metavar, help=help, **more)


def flag(name: str, help: str) -> Decorator:
    """An option without a value."""
    return click.option(name, is_flag=True, help=help)


def number(
    name: str, metavar: str, help: str, *, show_default: bool = True, **more: Any
) -> Decorator:
    """An option that takes a number; `more` are arguments of `click.option`."""
    more = {"type": float, **more}
    return click.option(name, metavar=metavar, help=help, show_default=show_default, **more)


def several(name: str, metavar: str, help: str, **more: Any) -> Decorator:
    """An option with one or more values; `more` are arguments of `click.option`."""
    return click.option(name, cls=Several, metavar=metavar, help=help, **more)


rotors_option = click.option(
    "--rotors",
    type=click.Choice(ROTOR_MODELS),
    default="full",
    show_default=True,
    help="Model of the motors' rotors: full motion, reflected inertia, or none.",
)
terms_option = several(
    "--terms",
    "TERM...",
    f"Which terms to compute, of {', '.join(TERMS)} (default: all).",
    type=click.Choice(TERMS),
    default=TERMS,
)


Parser = Callable[[Any], Any] | None
"""Converts the value of an option; None: the value stays as it is"""


def gathered(argument: str, *options: Decorator, **parsers: Parser) -> Decorator:
    """Options whose values are passed to the command as one dictionary.

    Args:
        argument: the name of the command's argument.
        options: the options.
        parsers: the options' parsers, by name.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            values = {name: given.pop(name) for name in parsers}
            values |= {name: parse(values[name]) for name, parse in parsers.items() if parse}
            return function(**given, **{argument: values})

        return together(*options)(called)

    return decorate


def model(
    default: str = "newton_euler",
    formulations: Sequence[str] = tuple(FORMULATIONS),
    help: str = "Formulation of inverse dynamics.",
) -> Decorator:
    """FILE, and as one dictionary `model` the arguments of `InverseDynamics`: --formulation,
    --rotors and --terms.

    Args:
        default: the default formulation.
        formulations: the formulations to choose from.
        help: the help text of --formulation.
    """
    return together(
        description,
        gathered(
            "model",
            click.option(
                "--formulation",
                type=click.Choice(formulations),
                default=default,
                show_default=True,
                help=help,
            ),
            rotors_option,
            terms_option,
            **dict.fromkeys(("formulation", "rotors", "terms")),
        ),
    )


def vector(
    texts: Sequence[str], option: str, joints: Sequence[str], default: float | list[float] = 0.0
) -> list[float]:
    """One number for each joint, separated by blanks or commas; -pi/2 and 3*pi/4 are also allowed.

    Args:
        texts: the option's values; empty if the option is not given.
        option: its name, for errors.
        joints: (n) names.
        default: without the option, the value for each joint, or a list of all values.

    Raises:
        InputError: a number is not finite, or there is not one number per joint.
    """
    from ..description.fields import number

    if not texts:
        return default if isinstance(default, list) else [default] * len(joints)
    entries = [part for text in texts for part in text.replace(",", " ").split()]
    if len(entries) != len(joints):
        raise InputError(
            f"{option}: found {counted(len(entries), 'number')}, expected "
            f"{len(joints)}, one for each of {listed(joints)}",
            name=option,
            value=entries,
        )
    try:
        return [number(entry, option) for entry in entries]
    except DescriptionError:
        form = "numbers such as 0.5, -1e-3 or 3*pi/4"
        raise wrong(InputError, option, " ".join(entries), form) from None


def home(mechanism: Mechanism, joints: Sequence[str]) -> list[float]:
    """The description's home positions of the joints, rad or m; 0 for those it does not contain."""
    return [mechanism.home_of(name) for name in joints]


def pairs(
    entries: Sequence[str], option: str = "--rename", form: str = "OLD:NEW"
) -> dict[str, str]:
    """New names by old names, from entries of the form OLD:NEW.

    Args:
        entries: the option's values.
        option: its name, for errors.
        form: what an entry looks like, for errors.

    Raises:
        InputError: an entry has another form, or an old name appears twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        old, colon, new = entry.strip().rpartition(":")
        if not (old and colon and new):
            raise wrong(InputError, option, entry, form)
        if old in found:
            raise wrong(InputError, option, entry, f"{old} once")
        found[old] = new
    return found


def numbers_by_joint(option: str, entries: Sequence[str]) -> dict[str, float]:
    """Numbers by joint, from entries of the form JOINT:NUMBER.

    Args:
        option: its name, for errors.
        entries: the option's values.

    Raises:
        InputError: an entry has another form, or a joint appears twice.
    """
    found = {}
    for joint, text in pairs(entries, option, "JOINT:NUMBER").items():
        try:
            found[joint] = float(text)
        except ValueError:
            raise wrong(InputError, f"{option} {joint}", text, "a number") from None
    return found


factors = functools.partial(numbers_by_joint, "--effort-scale")
offsets = functools.partial(numbers_by_joint, "--position-offset")


def _reading(cutoff: str, *own: Decorator, **parsers: Parser) -> Decorator:
    """The argument `reading`: options for reading any recording, and additional ones.

    Args:
        cutoff: the end of the help text of --cutoff.
        own: the additional options.
        parsers: their parsers, by name.
    """
    return gathered(
        "reading",
        *own,
        click.option(
            "--topic",
            help="Topic of a bag, of type sensor_msgs/JointState (default: /joint_states).",
        ),
        several(
            "--rename",
            "OLD:NEW...",
            "Rename a joint, or a prefix that several share, from OLD as recorded to NEW as "
            "described.",
        ),
        number("--cutoff", "HZ", f"Cut-off frequency of the filter {cutoff}."),
        **parsers,
        topic=None,
        rename=pairs,
        cutoff=functools.partial(frequency, "--cutoff"),
    )


recordings = _reading(
    "(default: the one whose fit predicts torques best)",
    several(
        "--effort-scale",
        "JOINT:FACTOR...",
        "Factor that converts a joint's efforts to N·m or N, such as a torque constant.",
    ),
    several(
        "--position-offset",
        "JOINT:OFFSET...",
        "Encoder offset in rad or m, added to the joint's positions.",
    ),
    effort_scale=factors,
    position_offset=offsets,
)
"""The argument `reading` of `identify` and `replay`: how recordings are read"""

motor_efforts = flag(
    "--motor-efforts",
    "Treat efforts as motor efforts. A motor that drives several joints is recorded at one joint; "
    "its share of the other joints' torques is added (`identify --drive-gains` implies this).",
)

motions = _reading(
    "for a recorded motion (default: not filtered)",
    number("--step", "S", "Time between the samples of a trajectory (default: 0.01)."),
    step=None,
)
"""The argument `reading` of `sampled_motion.states`: how a motion is read"""
