# SPDX-License-Identifier: Apache-2.0
"""Sums the normal equations of the recordings of the same joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from .fleet import Sum, key_of
from .normal_equations import NormalEquations, quietest
from .passes import Passes
from .per_recording import Reduced, Work, reduced
from .read import Source
from .shared_filter import FEW, SharedFilter, groups


@dataclass(frozen=True, eq=False)
class _Group:
    """Recordings of the same joints."""

    members: dict[int, Reduced] = field(default_factory=dict)
    first: list[NormalEquations] = field(default_factory=list)
    """Those from which the usual noise is determined"""
    total: Sum[NormalEquations] = field(default_factory=Sum)


def _widest(groups: Mapping[tuple[str, ...], _Group]) -> tuple[str, ...]:
    """The set of joints that was recorded for the longest time in total."""

    def motion(joints: tuple[str, ...]) -> tuple[float, int, tuple[str, ...]]:
        members = groups[joints].members.values()
        return math.fsum(each.duration for each in members), len(joints), joints

    return max(groups, key=motion)


def sum_of(
    passes: Passes,
    work: Work,
    sources: Mapping[int, Source],
    excluded: frozenset[str] = frozenset(),
    of: tuple[str, ...] | None = None,
) -> tuple[NormalEquations, dict[int, Reduced], Work]:
    """The sum of all normal equations, the summaries of the recordings used, and the settings with
    which they were reduced.

    Recordings may have different joints; the set that was recorded for the longest time is
    identified. If there are many recordings, the usual noise is determined from a few of them.

    Args:
        passes: the passes over the recordings.
        work: the settings.
        sources: the recordings.
        excluded: the joints whose efforts are not used.
        of: the joints to take; None: all that were recorded.
    """
    work = replace(work, quietest={})
    groups: dict[tuple[str, ...], _Group] = {}

    def take(
        work: Work, joints: tuple[str, ...] | None, some: Mapping[int, Source], needed: bool
    ) -> Iterator[tuple[_Group, NormalEquations]]:
        function = partial(reduced, work, joints=joints, excluded=excluded)
        for k, (normal, each) in passes.over("reducing", function, some, needed):
            group = groups.setdefault(each.joints, _Group())
            group.members[k] = each
            yield group, normal

    few = a_few(sources)
    rest = {k: each for k, each in sources.items() if k not in few}
    for group, normal in take(work, of, few, needed=not rest):
        group.first.append(normal)
    if groups:
        joints = _widest(groups)
        least = quietest(work.unknowns(joints), groups[joints].first)
        work = replace(work, quietest=dict(zip(joints, least.tolist(), strict=True)))
    for joints, group in groups.items():
        for normal in group.first:
            group.total.add(normal.at_least(work.least(joints)))
    for group, normal in take(work, of, rest, needed=not groups) if rest else ():
        group.total.add(normal)
    joints = _widest(groups)
    others = {k: sources[k] for other in groups if other != joints for k in groups[other].members}
    for group, normal in take(work, joints, others, needed=False):
        group.total.add(normal)
    found = groups[joints]
    return found.total.value(), dict(sorted(found.members.items())), work


def a_few(sources: Mapping[int, Source]) -> dict[int, Source]:
    """At most `FEW` recordings that represent all; the choice does not depend on their order."""
    order = sorted(sources, key=lambda k: key_of(sources[k]))
    few = min(FEW, len(order))
    return {k: sources[k] for k in sorted(order[len(order) * i // few] for i in range(few))}


def chosen_filters(
    passes: Passes, work: Work, few: Mapping[int, Source]
) -> tuple[SharedFilter, ...]:
    """The filters that groups of these recordings choose together; none if there is only one
    recording, or the cut-off is given."""
    if work.cutoff is not None or len(few) < 2:
        return ()
    excerpt = partial(work.excerpt, share=1.0 / len(few))
    read = [(key_of(few[k]), raw) for k, raw in passes.over("reading", excerpt, few, needed=False)]
    return tuple(
        SharedFilter.of(work.unknowns(group[0][1].joints), group) for group in groups(read)
    )
