# SPDX-License-Identifier: Apache-2.0
"""Safe parsing of XML: nothing in a URDF or an SDF can access files or a network, or use much
memory."""

from __future__ import annotations

import re

from lxml import etree

from ..errors import DescriptionError, one_line, shown, wrong
from .files import MOST_BYTES

MOST_TAGS = 3000
"""Largest number of links, and of joints"""

XACRO = ("http://www.ros.org/wiki/xacro", "http://ros.org/wiki/xacro", "http://wiki.ros.org/xacro")

XACRO_VALUES = ("property", "arg")
"""Its elements that have no effect unless an expression, ${…} or $(…), uses their value"""

UNDECLARED = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
"""The parser's complaint about a prefix, such as that of <sensor:camera>, that is not declared"""

_BLANKS = re.compile(r"[\ufeff\s]*")
_PROLOG = re.compile(r"[\ufeff\s]*(?:(?:<!--.*?-->|<\?.*?\?>)[\ufeff\s]*)*", re.DOTALL)
"""Blanks, comments and processing instructions"""
_TAG = re.compile(r"<([A-Za-z]+)[\s>/]")
_COMMENT = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--(.*?)(-->|\Z)", re.DOTALL)
"""A CDATA section, or a comment with its text and its end, which may be missing"""
_DECLARATION = re.compile(r"<\?xml\s[^>]*\?>")


def parsed(text: str, where: str, wanted: str = "robot") -> etree._Element:
    """The root element of a text.

    Args:
        text: the XML.
        where: how messages refer to it.
        wanted: tag of the root element.

    Raises:
        DescriptionError: it is not XML, is too large, has another root, a document type (and thus
            possibly entities), or xacro that has not been expanded.
    """
    try:
        # the declaration's encoding no longer applies, as the bytes have been decoded
        data = _DECLARATION.sub("", _BLANKS.sub("", text, count=1), count=1).encode()
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
    data = without_hyphens_in_comments(data)
    parser = _parser()
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if {each.type for each in parser.error_log} != {UNDECLARED}:
            raise DescriptionError(
                f"{where}: not readable as XML: {one_line(error.msg, 300)}", name=where
            ) from None
        # nothing but prefixes that are not declared, which ROS's and Gazebo's parsers accept
        root = etree.fromstring(data, _parser(recover=True))
    if root.tag != wanted:
        raise wrong(DescriptionError, f"{where}: root element", root.tag, f"<{wanted}>")
    without_effect = () if "${" in text or "$(" in text else XACRO_VALUES
    for tag in dict.fromkeys(str(element.tag) for element in root.iter(etree.Element)):
        name = re.split("[}:]", tag)[-1]
        is_xacro = tag.startswith(("xacro:", *(f"{{{space}}}" for space in XACRO)))
        if is_xacro and name not in without_effect:
            raise wrong(
                DescriptionError,
                where,
                f"<xacro:{name}>",
                "the output of `xacro FILE` (a file that ends in .xacro is expanded here)",
            )
    return root


def without_hyphens_in_comments(data: bytes) -> bytes:
    """The XML with spaces for the hyphens in its comments, where XML allows no two in a row, unlike
    ROS's, Gazebo's and MuJoCo's parser (tinyxml2). The length does not change."""

    def blanked(found: re.Match[bytes]) -> bytes:
        return b"<!--" + found[1].replace(b"-", b" ") + b"-->" if found[2] else found[0]

    return _COMMENT.sub(blanked, data)


def _parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False,
        recover=recover,
    )  # fmt: skip


def plain_text(element: etree._Element, where: str) -> str:
    """The text of an element that contains nothing else: <n>5<!-- or -->0</n> is not read as 50.

    Raises:
        DescriptionError: it contains an element, a comment or a processing instruction.
    """
    if len(element):
        raise wrong(DescriptionError, where, etree.tostring(element), "only text")
    return (element.text or "").strip()


def _after_prolog(text: str) -> str:
    """The text without leading blanks, comments and processing instructions."""
    return _PROLOG.sub("", text, count=1)


def first_tag(text: str) -> str:
    """The name of the first element, if it can be found without parsing; otherwise empty."""
    found = _TAG.match(_after_prolog(text))
    return found[1] if found else ""


def _refuse_document_type(text: str, where: str) -> None:
    """Refuse a document type; only blanks, comments and instructions may precede the root."""
    rest = _after_prolog(text)
    if rest[:9].upper() == "<!DOCTYPE":
        found = rest[: rest.find(">") + 1]
        raise DescriptionError(
            f"{where}: found a document type {shown(found)}; entities are not supported: "
            "replace them by their text",
            name=where,
            value=found,
        )
