# SPDX-License-Identifier: Apache-2.0
"""Checks that the parameter files on the command line apply to the node that they are meant for.

ROS silently ignores a section whose key does not match the node's full name: a node in a namespace
would run with its defaults, with which gravity might be compensated twice.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from ..errors import InputError, listed, one_line

FLAG = "--params-file"
PARAMETERS = "ros__parameters"
ALIKE = 0.9
"""Similarity (difflib's ratio) from which on a name is probably a misspelt other one"""


def check_parameter_files(node: str, arguments: Sequence[str], warn: Callable[[str], None]) -> None:
    """Check that each file that has parameters for a node of this name has some for this node.

    Args:
        node: the node's full name, such as `/left/feed_forward`.
        arguments: the command line's arguments.
        warn: called for a file without parameters for a node of this name, but with some for one
            of a similar name; a file for other nodes alone may be given to all.

    Raises:
        InputError: all of a file's sections for such nodes are for other namespaces.
    """
    own = node.rpartition("/")[2]
    for file in (value for flag, value in pairwise(arguments) if flag == FLAG):
        if not os.path.isfile(file):  # a pipe, which ROS has read to its end
            continue
        text = Path(file).read_text(encoding="utf-8", errors="replace")
        try:
            content = yaml.load(text, yaml.BaseLoader)  # noqa: S506  every value is text
        except yaml.YAMLError:  # ROS judges what it reads
            continue
        keys = [*_sections(content)]
        names = {key.rpartition("/")[2]: key for key in keys}
        if own not in names:
            for name in difflib.get_close_matches(own, names, n=1, cutoff=ALIKE):
                warn(
                    f"{one_line(file)}: no parameters for {own}, but for {listed([names[name]])}: "
                    "is this name misspelt?"
                )
        meant = [key for key in keys if key.rpartition("/")[2] == own]
        if meant and not any(_matches(key, node) for key in meant):
            raise InputError(
                f"{one_line(file)}: the parameters for {listed(meant)} do not apply to the node "
                f"{node}; put them under /**/{own}",
                name=FLAG,
                value=meant,
                expected=f"/**/{own}",
            )


def _sections(content: Any, above: str = "") -> Iterator[str]:
    """The keys of a parameter file's sections, with the namespaces above them."""
    for key, inner in content.items() if isinstance(content, Mapping) else ():
        if key == PARAMETERS:
            yield above
        else:
            yield from _sections(inner, f"{above}/{key}".replace("//", "/"))


def _matches(key: str, node: str) -> bool:
    """As ROS does: `*` is any name, `/**` any number of namespaces."""
    names = re.escape(key).replace(r"/\*\*", r"(/\w+)*").replace(r"\*", r"\w+")
    return re.fullmatch(names, node) is not None
