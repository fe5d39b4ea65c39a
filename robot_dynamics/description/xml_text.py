# SPDX-License-Identifier: Apache-2.0
"""XML of a URDF or an SDF, read so that nothing in it reaches a file, a network or much memory."""

from __future__ import annotations

import re

from lxml import etree

from ..errors import DescriptionError, one_line, shown, wrong
from .files import MOST_BYTES

MOST_TAGS = 3000
"""Of links, and of joints"""

XACRO = ("http://www.ros.org/wiki/xacro", "http://ros.org/wiki/xacro", "http://wiki.ros.org/xacro")

_BLANKS = re.compile(r"[\ufeff\s]*")
_TAG = re.compile(r"<([A-Za-z]+)[\s>/]")
_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")


def parsed(text: str, where: str, wanted: str = "robot") -> etree._Element:
    """The root element, <robot> or another one that is wanted.

    Raises:
        DescriptionError: it is no XML, has another root, has a document type (and so could have
            entities), xacro that nobody expanded, or is too large.
    """
    try:
        # the declaration speaks of bytes that have been read already
        start = _after_blanks(text, 0)
        data = _DECLARATION.sub("", text[start:], count=1).encode()
    except UnicodeEncodeError:
        raise DescriptionError(
            f"{where}: it contains an unpaired surrogate (half a character)"
        ) from None
    if len(data) > MOST_BYTES:
        raise wrong(DescriptionError, f"{where}: bytes", len(data), f"at most {MOST_BYTES}")
    for tag in ("<link", "<joint"):
        if (count := text.count(tag)) > MOST_TAGS:
            raise wrong(DescriptionError, f"{where}: {tag}>", count, f"at most {MOST_TAGS}")
    _refuse_document_type(text, where)
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DescriptionError(
            f"{where}: not readable as XML: {one_line(error.msg, 300)}", name=where
        ) from None
    if root.tag != wanted:
        raise wrong(DescriptionError, f"{where}: root element", root.tag, f"<{wanted}>")
    for element in root.iter(*(f"{{{space}}}*" for space in XACRO)):
        name = etree.QName(element).localname
        raise wrong(
            DescriptionError,
            where,
            f"<xacro:{name}>",
            "what `xacro FILE` makes of it (a file that ends in .xacro is expanded here)",
        )
    return root


def plain_text(element: etree._Element, where: str) -> str:
    """The text of an element that has nothing else in it: <n>5<!-- or -->0</n> is no 50.

    Raises:
        DescriptionError: there is an element, a comment or an instruction within.
    """
    if len(element):
        raise wrong(DescriptionError, where, etree.tostring(element), "text alone")
    return (element.text or "").strip()


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _prolog_end(text: str) -> int:
    """Where blanks, comments and instructions end; the whole length where one never ends."""
    place = 0
    while True:
        place = _after_blanks(text, place)
        for opening, closing in (("<!--", "-->"), ("<?", "?>")):
            if text.startswith(opening, place):
                end = text.find(closing, place + len(opening))
                if end < 0:
                    return len(text)  # the parser says what is wrong
                place = end + len(closing)
                break
        else:
            return place


def first_tag(text: str) -> str:
    """The name of the first element, as far as it can be told without parsing; else empty."""
    found = _TAG.match(text, _prolog_end(text))
    return found[1] if found else ""


def _refuse_document_type(text: str, where: str) -> None:
    """Only blanks, comments and instructions may precede the root element."""
    place = _prolog_end(text)
    if text[place : place + 9].upper() == "<!DOCTYPE":
        found = text[place : text.find(">", place) + 1]
        raise DescriptionError(
            f"{where}: found a document type {shown(found)}; entities are not read: "
            "write out what they stand for",
            name=where,
            value=found,
        )
