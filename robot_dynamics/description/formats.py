# SPDX-License-Identifier: Apache-2.0
"""Selection of the reader for a file or a text that is not YAML."""

from __future__ import annotations

from pathlib import Path

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import mujoco_model, sdf, urdf
from .files import read_text
from .xml_text import first_tag

BLANKS = "\ufeff \t\r\n"
ENDINGS = (".urdf", ".xacro", ".sdf", ".xml")
NAMES = {"urdf": "URDF", "mujoco": "MJCF", "sdf": "SDF"}


def read(file: Path, *, strict: bool = False) -> Mechanism:
    """The mechanism of a URDF, xacro, SDF or MJCF file, recognised by its first element.

    Args:
        file: path of the file.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: another extension, or an error of the format's reader.
    """
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        expected = ".yaml, .urdf, .xacro, .sdf, or .xml (MJCF)"
        raise wrong(DescriptionError, f"{file.name}: the file's extension", ending, expected)
    form = "urdf" if ending == ".xacro" else form_of(read_text(file))
    if form == "urdf":
        return urdf.read(file, strict=strict)
    if form == "sdf":
        return sdf.read(file, file.name, strict=strict)
    return mujoco_model.read(file, file.name, strict=strict)


def of_text(text: str, where: str, *, strict: bool = False) -> Mechanism:
    """The mechanism of a URDF, SDF or MJCF text.

    Args:
        text: the text.
        where: what messages call it.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: an error of the format's reader.
    """
    form = form_of(text)
    if form == "urdf":
        return urdf.parse(text, where, strict=strict)
    if form == "sdf":
        return sdf.read(text, where, strict=strict)
    return mujoco_model.read(text, where, strict=strict)


def form_of(text: str) -> str:
    """The format of a text: mujoco or sdf if that is the first element, otherwise urdf."""
    tag = first_tag(text)
    return tag if tag in NAMES else "urdf"
