# SPDX-License-Identifier: Apache-2.0
"""Loading of descriptions (YAML, URDF, xacro, SDF, MJCF) from a path, a package:// URL or a text,
and of other libraries' models in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import (
    formats,
    mujoco_compiler,
    mujoco_model,
    pinocchio_model,
    toolbox_model,
    urdf,
    yaml_file,
)
from .check import Origins, check
from .fields import tolerate
from .files import BLANKS, find, is_text, is_yaml, shortened
from .lines import located

TEXT = "the URDF text"
"""How messages refer to a description that is not a file"""


def load(source: str | os.PathLike[str], *, strict: bool = False) -> Mechanism:
    """The mechanism of a description.

    Args:
        source: the path of a .yaml, .urdf, .xacro, .sdf or .world file, or of an MJCF (an .xml
            whose root is `mujoco`); a `package://` URL of one (a .xacro may be followed by its
            arguments: `ur.urdf.xacro name:=left ur_type:=ur5e`); the text of a URDF, SDF or MJCF;
            or, if there is no file of that name, the name of a known robot (extra `robots`).
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: the description is missing, broken or impossible; the message names
            the file, the element and what was expected.

    Warns:
        DescriptionWarning: an inconsistent inertia, a link with an inertia but no mass, a robot
            without moving links or mass, or a joint that mimics a missing one. The warning is
            attributed to the caller's line.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise wrong(DescriptionError, "description", source, "a path or the text of a URDF")
    reference = os.fspath(source)
    if is_text(reference):
        form = formats.NAMES[formats.form_of(reference)]
        return _loaded(reference, strict, f"the {form} text")
    file = find(reference)
    return _loaded(file, strict, file.name)


def _loaded(source: str | Path, strict: bool, where: str) -> Mechanism:
    """The mechanism of a path or a text; errors name the line if it is known."""
    try:
        if isinstance(source, Path) and is_yaml(source):
            mechanism, origins = yaml_file.read(source, strict=strict)
            return finished(mechanism, where, strict, source, origins)
        return finished(formats.read(source, where, strict=strict), where, strict, source)
    except DescriptionError as error:
        raise located(error, source) from None


def load_urdf_text(text: str) -> Mechanism:
    """The mechanism of an untrusted URDF text.

    Only URDF is accepted: the text is never treated as a path or as YAML, xacro in it is never
    evaluated, and no file is opened, whatever it contains.

    Args:
        text: the URDF.

    Raises:
        DescriptionError: not a URDF, too large, or refused by `load`.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not isinstance(text, str):
        raise wrong(DescriptionError, TEXT, type(text).__name__, "text")
    if not is_text(text):
        raise wrong(DescriptionError, TEXT, shortened(text.lstrip(BLANKS)), "XML: it begins with <")
    try:
        return finished(urdf.read(text, TEXT), TEXT, False, text)
    except DescriptionError as error:
        raise located(error, text) from None


def finished(
    mechanism: Mechanism,
    where: str,
    strict: bool,
    source: str | Path = "",
    origins: Origins | None = None,
) -> Mechanism:
    """The mechanism after all checks.

    Args:
        mechanism: the robot.
        where: the file's name, for messages.
        strict: raise an error instead of warnings.
        source: the file or the text, from which line numbers are found.
        origins: the parts that come from other files.

    Raises:
        DescriptionError: it cannot be computed or, if strict, is unphysical.

    Warns:
        DescriptionWarning: it is unphysical.
    """
    for complaint in check(mechanism, where, origins or {}):
        tolerate(located(complaint, source), strict)
    return replace(mechanism, source=where)


def from_dh(robot: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a Robotics Toolbox `DHRobot`, standard or modified, with its motors.

    Args:
        robot: the `roboticstoolbox.DHRobot`; q has the same meaning.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: not such a robot, or one that cannot be computed.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not all(hasattr(robot, name) for name in ("links", "gravity", "base", "mdh")):
        raise wrong(DescriptionError, "robot", type(robot).__name__, "a roboticstoolbox.DHRobot")
    where = robot.name or "the DHRobot"
    return finished(toolbox_model.made(robot, where), where, strict)


def from_pinocchio(model: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a `pinocchio.Model`, its joints in Pinocchio's order.

    Args:
        model: the model; `description.pinocchio_model` explains how it is converted.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: not a model, or one with an unsupported kind of joint.

    Warns:
        DescriptionWarning: armature, friction or damping of a joint with several degrees of
            freedom, which is left out; or as `load`.
    """
    if not all(hasattr(model, name) for name in ("joints", "inertias", "jointPlacements")):
        raise wrong(DescriptionError, "model", type(model).__name__, "a pinocchio.Model")
    where = model.name or "the Pinocchio model"
    return finished(pinocchio_model.made(model, where, strict), where, strict)


def from_mujoco(model: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a `mujoco.MjModel`.

    Args:
        model: the compiled model; `description.mujoco_model` explains how it is converted.
        strict: raise an error instead of warnings.

    Raises:
        BackendError: MuJoCo is not installed.
        DescriptionError: not a model, or one that cannot be computed.

    Warns:
        DescriptionWarning: an element that is left out, which it names; or as `load`.
    """
    if not isinstance(model, mujoco_compiler.library().MjModel):
        raise wrong(DescriptionError, "model", type(model).__name__, "a mujoco.MjModel")
    where = mujoco_model.model_name(model.names) or "the MuJoCo model"
    return finished(mujoco_model.made(model, where, strict), where, strict)
