"""Every name once, and parents before children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..errors import DescriptionError, choices, wrong
from ..mechanism import Link


def no_name_twice(names: Iterable[str], what: str) -> None:
    """Raises DescriptionError for the first name that stands more than once."""
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise wrong(
            DescriptionError, f"{what} name", name, f"every name once (it stands {count} times)"
        )


def parents_first(links: list[Link], base: str, where: str) -> tuple[Link, ...]:
    """The links in an order in which every parent stands before its children.

    Raises:
        DescriptionError: a parent that is nowhere, or links that carry one another.
    """
    no_name_twice([base, *(link.name for link in links)], f"{where}: link")
    placed: dict[str, Link] = {}
    waiting = list(links)
    names = {base, *(link.name for link in links)}
    for link in links:
        if link.parent not in names:
            raise wrong(
                DescriptionError,
                f"{where}: parent of link {link.name!r}",
                link.parent,
                choices(sorted(names)),
            )
    while waiting:
        ready = [link for link in waiting if link.parent == base or link.parent in placed]
        if not ready:
            ring = ", ".join(repr(link.name) for link in waiting)
            raise DescriptionError(
                f"{where}: links {ring} carry one another: none leads to {base!r}; close a chain "
                "with `loops`",
                name=waiting[0].name,
            )
        # only the first, so that a description in order stays in order
        placed[ready[0].name] = ready[0]
        waiting.remove(ready[0])
    return tuple(placed.values())
