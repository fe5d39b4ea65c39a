"""Loads every description: YAML, URDF, xacro, SDF, MJCF, as a path, a package:// URL or a text."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import mujoco_model, sdf, urdf, yaml_file
from .check import Origins, check
from .fields import tolerate
from .files import find, read_text, shortened
from .lines import located

BLANKS = "\ufeff \t\r\n"
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
    if reference.lstrip(BLANKS).startswith("<"):
        if (form := _format(reference)) != "urdf":
            return _foreign(reference, form, f"the {form} text", strict)
        return _loaded(reference, strict)
    return _loaded(find(reference), strict)


_ROOT = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)*<(mujoco|sdf)[\s>/]", re.DOTALL)
"""What precedes the first element, and that where it is not a URDF's"""


def _format(text: str) -> str:
    """mujoco or sdf, where that is the first element; else urdf."""
    found = _ROOT.match(text.lstrip(BLANKS)[:100_000])
    return found[1] if found else "urdf"


def _foreign(source: Path | str, form: str, where: str, strict: bool) -> Mechanism:
    """Of an MJCF or an SDF."""
    if form == "sdf":
        return finished(sdf.read(source, where), where, strict)
    return finished(mujoco_model.read(source, where, strict=strict), where, strict)


def _loaded(source: str | Path, strict: bool) -> Mechanism:
    """Of a path or a URDF's text; errors name the line where it can be told."""
    try:
        if isinstance(source, str):
            return finished(urdf.parse(source, TEXT, strict=strict), TEXT, strict, source)
        match source.suffix.lower():
            case ".yaml" | ".yml":
                mechanism, origins = yaml_file.read(source, strict=strict)
                return finished(mechanism, source.name, strict, source, origins)
            case ".xml" | ".sdf" if (form := _format(read_text(source))) != "urdf":
                return _foreign(source, form, source.name, strict)
            case ".urdf" | ".xml" | ".xacro":
                mechanism = urdf.read(source, strict=strict)
                return finished(mechanism, source.name, strict, source)
            case suffix:
                raise wrong(
                    DescriptionError,
                    f"{source.name}: the file's ending",
                    suffix,
                    ".yaml, .urdf, .xacro, .sdf, or .xml (MJCF)",
                )
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
    if not text.lstrip(BLANKS).startswith("<"):
        raise wrong(DescriptionError, TEXT, shortened(text.lstrip(BLANKS)), "XML: it begins with <")
    return _loaded(text, strict=False)


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
