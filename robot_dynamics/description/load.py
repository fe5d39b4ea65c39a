# SPDX-License-Identifier: Apache-2.0
"""Loads every description: YAML, URDF, xacro, SDF, MJCF, as a path, a package:// URL or a text, and
the models of other libraries in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import formats, mujoco_model, pinocchio_model, toolbox_model, urdf, yaml_file
from .check import Origins, check
from .fields import tolerate
from .files import find, shortened
from .lines import located

TEXT = "the URDF text"
"""What messages call a description that is no file"""


def load(source: str | os.PathLike[str], *, strict: bool = False) -> Mechanism:
    """The mechanism that a description describes.

    Args:
        source: the path of a .yaml, .urdf, .xacro or .sdf file, or of an MJCF (an .xml whose root
            is `mujoco`), a `package://` URL of one, the text of a URDF, SDF or MJCF, or, where
            there is no file of that name, the name of a known robot (extra `robots`).
        strict: refuse what is otherwise a warning.

    Raises:
        DescriptionError: the description is missing, broken or impossible; the message names
            the file, the thing in it and what was expected.

    Warns:
        DescriptionWarning: an inconsistent inertia, a link with an inertia but no mass, a
            robot in which nothing moves or has a mass, a joint that mimics one that is not there.
            It points at the line that called this package.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise wrong(DescriptionError, "description", source, "a path or the text of a URDF")
    reference = os.fspath(source)
    if reference.lstrip(formats.BLANKS).startswith("<"):
        form = formats.NAMES[formats.form_of(reference)]
        return _loaded(reference, strict, f"the {form} text")
    return _loaded(find(reference), strict)


def _loaded(source: str | Path, strict: bool, where: str = TEXT) -> Mechanism:
    """Of a path or a text; errors name the line where it is known."""
    try:
        if isinstance(source, str):
            made = formats.of_text(source, where, strict=strict)
            return finished(made, where, strict, source)
        if source.suffix.lower() in (".yaml", ".yml"):
            mechanism, origins = yaml_file.read(source, strict=strict)
            return finished(mechanism, source.name, strict, source, origins)
        return finished(formats.read(source, strict=strict), source.name, strict, source)
    except DescriptionError as error:
        raise located(error, source) from None


def load_urdf_text(text: str) -> Mechanism:
    """The mechanism of an untrusted text.

    URDF or nothing: it is never taken for a path or for YAML, xacro in it is never evaluated, and
    no file is opened whatever it contains.

    Raises:
        DescriptionError: it is no URDF, it is too large, or `load` would refuse it.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not isinstance(text, str):
        raise wrong(DescriptionError, TEXT, type(text).__name__, "text")
    if not text.lstrip(formats.BLANKS).startswith("<"):
        raise wrong(
            DescriptionError, TEXT, shortened(text.lstrip(formats.BLANKS)), "XML: it begins with <"
        )
    try:
        return finished(urdf.parse(text, TEXT), TEXT, False, text)
    except DescriptionError as error:
        raise located(error, text) from None


def finished(
    mechanism: Mechanism,
    where: str,
    strict: bool,
    source: str | Path = "",
    origins: Origins | None = None,
) -> Mechanism:
    """Refuse what cannot be computed with; refuse or report what is unphysical."""
    for complaint in check(mechanism, where, origins or {}):
        tolerate(located(complaint, source), strict)
    return replace(mechanism, source=where)


def from_dh(robot: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of robotics-toolbox's `DHRobot`, standard or modified, motors and friction too.

    Args:
        robot: the `roboticstoolbox.DHRobot`; its q is ours.
        strict: refuse what is otherwise a warning.

    Raises:
        DescriptionError: no such robot, or one that cannot be computed with.

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
        model: the model; see `description.pinocchio_model` for what becomes what.
        strict: refuse what is otherwise a warning.

    Raises:
        DescriptionError: no model, or one with a joint of a kind that is not known here.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not all(hasattr(model, name) for name in ("joints", "inertias", "jointPlacements")):
        raise wrong(DescriptionError, "model", type(model).__name__, "a pinocchio.Model")
    where = model.name or "the Pinocchio model"
    return finished(pinocchio_model.made(model, where), where, strict)


def from_mujoco(model: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a `mujoco.MjModel`; see `description.mujoco_model` for what becomes what.

    Args:
        model: the compiled model.
        strict: refuse what is otherwise a warning.

    Raises:
        BackendError: MuJoCo is not installed.
        DescriptionError: no model, or one that cannot be computed with.

    Warns:
        DescriptionWarning: something of it is left out, by name; or as `load`.
    """
    if not isinstance(model, mujoco_model.library().MjModel):
        raise wrong(DescriptionError, "model", type(model).__name__, "a mujoco.MjModel")
    where = mujoco_model.model_name(model.names) or "the MuJoCo model"
    return finished(mujoco_model.made(model, where, strict), where, strict)
