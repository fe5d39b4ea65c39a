"""One door for every description: YAML, URDF, xacro, as a path, a package:// URL or a text."""

from __future__ import annotations

import os

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import urdf, yaml_file
from .check import check
from .fields import tolerate
from .files import find, shortened


def load(source: str | os.PathLike[str], *, strict: bool = False) -> Mechanism:
    """The mechanism that a description describes.

    Args:
        source: the path of a .yaml, .urdf or .xacro file, a `package://` URL of one, or the
            text of a URDF.
        strict: refuse in a URDF what is otherwise a warning: an inertia that no body can have.

    Raises:
        DescriptionError: the description is missing, broken or impossible; the message names
            the file, the thing in it and what was expected.

    Warns:
        DescriptionWarning: an impossible inertia in a URDF, unless strict.
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
            mechanism, is_ours = yaml_file.read(path, strict=strict)
            return _finished(mechanism, path.name, strict or is_ours)
        case ".urdf" | ".xml" | ".xacro":
            return _finished(urdf.read(path, strict=strict), path.name, strict)
        case suffix:
            raise wrong(
                DescriptionError,
                f"{path.name}: the file's ending",
                suffix,
                ".yaml, .urdf or .xacro",
            )


MOST_BYTES = 10_000_000
"""Of a text that comes from elsewhere: what is larger is refused unread"""

MOST_TAGS = 10_000
"""Of `<link` and of `<joint` in such a text"""


def load_urdf_text(text: str) -> Mechanism:
    """The mechanism of a text that anybody may have sent.

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
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise DescriptionError(f"{where}: it has half a character (a surrogate)") from None
    if size > MOST_BYTES:
        raise wrong(DescriptionError, f"{where}: bytes", size, f"at most {MOST_BYTES}")
    for tag in ("<link", "<joint"):
        if (count := text.count(tag)) > MOST_TAGS:
            raise wrong(DescriptionError, f"{where}: {tag}>", count, f"at most {MOST_TAGS}")
    return _finished(urdf.parse(text, where), where, strict=False)


def _finished(mechanism: Mechanism, where: str, strict: bool) -> Mechanism:
    """Refuse what cannot be computed with; refuse or report what no body can be."""
    for complaint in check(mechanism, where):
        tolerate(complaint, strict)
    return mechanism
