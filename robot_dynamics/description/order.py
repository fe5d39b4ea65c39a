# SPDX-License-Identifier: Apache-2.0
"""Unique names, and parents before children."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from ..errors import DescriptionError, Named, Place, listed, wrong
from ..mechanism import Link
from .fields import unknown


def no_name_twice(names: Iterable[str], what: Place) -> None:
    """Raise a DescriptionError for the first name that appears more than once.

    Raises:
        DescriptionError: a name appears twice.
    """
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise wrong(
            DescriptionError, what + " name", name, f"each name once (it appears {count} times)"
        )


def parents_first(links: list[Link], base: str, where: Place) -> tuple[Link, ...]:
    """The links in an order in which every parent comes before its children.

    Args:
        links: in any order.
        base: name of the base link.
        where: the file's name, for messages.

    Raises:
        DescriptionError: an unknown parent, or links that form a cycle.
    """
    no_name_twice([base, *(link.name for link in links)], where + ": link")
    names = {base, *(link.name for link in links)}
    carried: dict[str, list[int]] = {}
    for i, link in enumerate(links):
        if link.parent not in names:
            at = (where + f": parent of link {link.name!r}").at(Named("link", link.name), "parent")
            raise unknown(at, link.parent, sorted(names))
        carried.setdefault(link.parent, []).append(i)
    # always the first one whose parent is placed, so that a description in order keeps its order
    placed: list[Link] = []
    ready = carried.pop(base, [])
    while ready:
        link = links[heapq.heappop(ready)]
        placed.append(link)
        for child in carried.pop(link.name, ()):
            heapq.heappush(ready, child)
    if carried:
        done = {link.name for link in placed}
        ring = [link.name for link in links if link.name not in done]
        raise DescriptionError(
            f"{where}: links {listed(map(repr, ring))} form a cycle that does not reach {base!r}; "
            "close a chain with `loops`",
            name=where.at(Named("link", ring[0])),
        )
    return tuple(placed)
