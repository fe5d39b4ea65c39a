"""Loads every description: YAML, URDF, xacro, as a path, a package:// URL or a text."""

from __future__ import annotations

import os
from dataclasses import replace

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import urdf, yaml_file
from .check import Origins, check
from .fields import tolerate
from .files import find, shortened


def load(source: str | os.PathLike[str], *, strict: bool = False) -> Mechanism:
    """The mechanism that a description describes.

    Args:
        source: the path of a .yaml, .urdf or .xacro file, a `package://` URL of one, or the
            text of a URDF.
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
    # an XML declaration may only stand at the very start
    text = reference.lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        where = "the URDF text"
        return _finished(urdf.parse(text, where, strict=strict), where, strict)
    path = find(reference)
    match path.suffix.lower():
        case ".yaml" | ".yml":
            mechanism, origins = yaml_file.read(path, strict=strict)
            return _finished(mechanism, path.name, strict, origins)
        case ".urdf" | ".xml" | ".xacro":
            return _finished(urdf.read(path, strict=strict), path.name, strict)
        case suffix:
            raise wrong(
                DescriptionError,
                f"{path.name}: the file's ending",
                suffix,
                ".yaml, .urdf or .xacro",
            )


def load_urdf_text(text: str) -> Mechanism:
    """The mechanism of an untrusted text.

    URDF or nothing: it is never taken for a path or for YAML, xacro in it is never evaluated, and
    no file is opened whatever it contains.

    Raises:
        DescriptionError: it is no URDF, it is too large, or `load` would refuse it.

    Warns:
        DescriptionWarning: as `load`.
    """
    where = "the URDF text"
    if not isinstance(text, str):
        raise wrong(DescriptionError, where, type(text).__name__, "text")
    # an XML declaration may only stand at the very start
    text = text.lstrip("\ufeff \t\r\n")
    if not text.startswith("<"):
        raise wrong(DescriptionError, where, shortened(text), "XML: it begins with <")
    return _finished(urdf.parse(text, where), where, strict=False)


def _finished(
    mechanism: Mechanism, where: str, strict: bool, origins: Origins | None = None
) -> Mechanism:
    """Refuse what cannot be computed with; refuse or report what is unphysical."""
    for complaint in check(mechanism, where, origins or {}):
        tolerate(complaint, strict)
    return replace(mechanism, source=where)
