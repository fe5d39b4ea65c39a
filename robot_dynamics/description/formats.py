# SPDX-License-Identifier: Apache-2.0
"""Selection of the reader for a file or a text that is not YAML."""

from __future__ import annotations

from pathlib import Path

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import mujoco_model, sdf, urdf
from .files import read_text
from .xml_text import first_tag

ENDINGS = (".urdf", ".xacro", ".sdf", ".world", ".xml")
NAMES = {"urdf": "URDF", "mujoco": "MJCF", "sdf": "SDF"}
READERS = {"urdf": urdf.read, "mujoco": mujoco_model.read, "sdf": sdf.read}


def read(source: Path | str, where: str, *, strict: bool = False) -> Mechanism:
    """The mechanism of a URDF, xacro, SDF or MJCF, recognised by its first element.

    Args:
        source: the path, or the text (not of a xacro).
        where: how messages refer to it.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: another extension, or an error of the format's reader.
    """
    form = "urdf"
    if isinstance(source, str):
        form = form_of(source)
    elif (ending := source.suffix.lower()) not in ENDINGS:
        expected = ".yaml, .urdf, .xacro, .sdf, .world, or .xml (MJCF)"
        raise wrong(DescriptionError, f"{where}: the file's extension", ending, expected)
    elif ending != ".xacro":
        form = form_of(read_text(source))
    return READERS[form](source, where, strict=strict)


def form_of(text: str) -> str:
    """The format of a text: mujoco or sdf if that is the first element, otherwise urdf."""
    tag = first_tag(text)
    return tag if tag in NAMES else "urdf"
