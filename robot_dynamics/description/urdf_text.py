# SPDX-License-Identifier: Apache-2.0
"""Replacement of bodies and friction in a URDF, leaving everything else byte for byte unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from ..errors import DescriptionError
from ..mechanism import Friction, Inertial
from .files import BLANKS
from .xml_text import without_hyphens_in_comments

_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")


@dataclass
class _Element:
    """An element and its position in the text, in bytes."""

    tag: str
    name: str
    start: int
    open_end: int = 0
    """End of its start tag"""
    close: int = 0
    """Start of its end tag; for an empty element, the end of its only tag"""
    end: int = 0
    children: list[_Element] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether it has the form <tag …/>."""
        return self.close == self.end

    def child(self, tag: str) -> _Element | None:
        return next((each for each in self.children if each.tag == tag), None)


def replaced(
    text: bytes,
    inertials: Mapping[str, Inertial],
    frictions: Mapping[str, Friction],
    encoding: str | None = None,
) -> bytes:
    """The URDF with other bodies and friction.

    The parts of friction that URDF cannot express (an offset, the Stribeck torque) are left out; if
    the two directions differ, the mean is written.

    Args:
        text: the URDF.
        inertials: new bodies by link.
        frictions: new friction laws by joint.
        encoding: that of the text; None: the one that it declares, or UTF-8.

    Raises:
        DescriptionError: it is not XML.
    """
    # expat allows nothing before a declaration
    begin = len(text) - len(text.lstrip(BLANKS.encode()))
    head, text = text[:begin], text[begin:]
    edits: list[tuple[int, int, bytes]] = []
    for element in _elements(text, encoding):
        if element.tag == "link" and element.name in inertials:
            body = inertial_text(inertials[element.name])
            edits.append(_edit(element, "inertial", body))
        elif element.tag == "joint" and element.name in frictions:
            old = element.child("dynamics")
            law = dynamics_text(frictions[element.name], old.attributes if old else {})
            edits.append(_edit(element, "dynamics", law))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return head + text


def _edit(element: _Element, tag: str, new: str) -> tuple[int, int, bytes]:
    """(start, end, bytes) that replace the child, or insert it as the element's last."""
    old = element.child(tag)
    if old is not None:
        return old.start, old.end, new.encode()
    if element.is_empty:
        return element.end - 2, element.end, f">{new}</{element.tag}>".encode()
    return element.close, element.close, new.encode()


def inertial_text(body: Inertial) -> str:
    """The <inertial> element of a body, with all digits."""
    x, y, z = (repr(float(c)) for c in body.center_of_mass)
    I = body.inertia
    moments = " ".join(
        f'i{a}{b}="{float(I["xyz".index(a), "xyz".index(b)])!r}"'
        for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    return (
        f'<inertial><origin xyz="{x} {y} {z}" rpy="0 0 0"/><mass value="{float(body.mass)!r}"/>'
        f"<inertia {moments}/></inertial>"
    )


def dynamics_text(law: Friction, others: Mapping[str, str]) -> str:
    """The <dynamics> element with viscous friction and the mean of the Coulomb friction.

    Args:
        law: the friction law.
        others: attributes of the element to keep.
    """
    dry = (law.coulomb + law.coulomb_backwards) / 2
    values = dict(others) | {"damping": repr(float(law.viscous)), "friction": repr(float(dry))}
    return f"<dynamics {' '.join(f'{key}={quoteattr(value)}' for key, value in values.items())}/>"


def _elements(text: bytes, encoding: str | None) -> list[_Element]:
    """The robot's links and joints with their child elements."""
    parser = expat.ParserCreate(encoding)
    stack: list[_Element] = []
    found: list[_Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        element = _Element(tag, attributes.get("name", ""), at, attributes=attributes)
        element.open_end = _tag_end(text, at)
        if stack:
            stack[-1].children.append(element)
        stack.append(element)

    def end(tag: str) -> None:
        element = stack.pop()
        empty = text[element.open_end - 2 : element.open_end] == b"/>"
        element.close = element.open_end if empty else parser.CurrentByteIndex
        element.end = element.open_end if empty else _tag_end(text, element.close)
        if len(stack) == 1 and tag in ("link", "joint"):
            found.append(element)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(without_hyphens_in_comments(text), True)
    except (expat.ExpatError, ValueError) as error:  # ValueError: an encoding of several bytes
        raise DescriptionError(f"the URDF: not readable as XML: {error}", name="URDF") from None
    return found


def _tag_end(text: bytes, start: int) -> int:
    """The position after the > of the tag that begins at `start`, ignoring any > in quotes."""
    found = _TAG.match(text, start)
    return found.end() if found else len(text)
