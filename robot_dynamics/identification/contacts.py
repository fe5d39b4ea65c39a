# SPDX-License-Identifier: Apache-2.0
"""Detects contacts: stretches in which external forces act on the robot.

Every model leaves residuals: friction, noise, unmodelled effects. A contact is a stretch in which
residuals are far larger than usual, which lasts longer than a spike and covers only a small part of
the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .normal_equations import robust_deviation
from .recording import Floats, runs
from .samples import Samples

WINDOW = 0.25
"""Length in s of the windows over which residuals are averaged"""
FEW = 25
"""Number of samples used per window, about"""
LASTING = 3
"""Smallest number of consecutive windows of a contact; fewer are a spike"""
FEWEST = 24
"""Smallest number of windows needed to identify outliers"""
FAR = 12.0
"""A window is an outlier if its residual exceeds the usual one (from the median) by this factor"""
LEAST = 0.1
"""Fraction of a joint's RMS torque; smaller residuals do not matter"""
RARE = 0.15
"""Fraction of the windows; if more are outliers, the model is wrong and there is no contact"""
HOLDS = 0.5
"""Fraction of a joint's RMS torque; if the usual residual is larger, the model is wrong"""
MOST = 0.7
"""Fraction of the outlier windows that must belong to contacts; otherwise none is reported"""
MANY = 5
"""Number of contacts in a recording; if there are more, one line tells of all"""
FIRST = 3
"""Number of contacts that it names"""
ASKED, AGAIN = "Was the robot touched or loaded? Remove", "or record again"


@dataclass(frozen=True)
class Contact:
    """A stretch in which a joint's residual torque is far larger than usual."""

    source: str
    joint: str
    begin: float
    """s since the recording's first stamp"""
    end: float
    most: float
    """N·m or N: the largest residual, averaged over a window"""
    times: float
    """The largest residual divided by the usual one"""


def contacts(
    source: str, joints: tuple[str, ...], missed: Iterable[tuple[Samples, Floats]]
) -> Iterator[Contact]:
    """The contacts in one recording.

    Args:
        source: the recording's name.
        joints: the names of the n joints.
        missed: for each stretch, its samples and (k, n) measured minus modelled torque, N·m or N.
    """
    places, means, squares, count = [], [], np.zeros(len(joints)), np.zeros(len(joints))
    for samples, residual in missed:
        step = max(1, int(WINDOW / FEW / max(samples.period, 1e-9)))
        usable, residual = samples.usable[::step], residual[::step]
        first, which, sizes = np.unique(
            np.floor(samples.time[::step] / WINDOW).astype(int),
            return_inverse=True,
            return_counts=True,
        )
        known = np.where(usable, residual, np.nan)
        places.append(first)
        means.append(np.column_stack([np.bincount(which, each) / sizes for each in known.T]))
        squares += (np.where(samples.usable, samples.tau, 0.0) ** 2).sum(axis=0)
        count += samples.usable.sum(axis=0)
    if not places:
        return
    window, mean = np.concatenate(places), np.concatenate(means)
    level = np.sqrt(squares / np.maximum(count, 1))
    for j, joint in enumerate(joints):
        for a, b, usual in _outlier_runs(window, mean[:, j], float(level[j])):
            most = float(mean[a:b, j][np.argmax(np.abs(mean[a:b, j]))])
            yield Contact(
                source, joint, WINDOW * float(window[a]), WINDOW * float(window[b - 1] + 1), most,
                abs(most) / usual,
            )  # fmt: skip


def _outlier_runs(window: Floats, mean: Floats, level: float) -> Iterator[tuple[int, int, float]]:
    """(first, last + 1, usual residual) of each run of consecutive outlier windows."""
    known = np.isfinite(mean)
    if known.sum() < FEWEST:
        return
    usual = max(robust_deviation(mean[known]), LEAST / FAR * level)
    far = known & (np.abs(np.nan_to_num(mean)) > FAR * usual)
    if usual > HOLDS * level or far.sum() > RARE * known.sum():
        return
    apart = np.flatnonzero(np.diff(window) != 1) + 1
    found = [
        (part[0] + a, part[0] + b)
        for part in np.split(np.arange(len(window)), apart)
        for a, b in runs(far[part])
        if b - a >= LASTING
    ]
    if sum(b - a for a, b in found) >= MOST * far.sum():
        yield from ((a, b, usual) for a, b in found)


def words(found: Iterable[Contact]) -> Iterator[str]:
    """One line for each contact, with all joints whose contacts overlap in time; one for all of a
    recording with many."""
    by_source: dict[str, list[list[Contact]]] = {}
    for each in sorted(found, key=lambda c: (c.source, c.begin, c.joint)):
        together = by_source.setdefault(each.source, [])
        if together and each.begin < max(c.end for c in together[-1]):
            together[-1].append(each)
        else:
            together.append([each])
    for source, together in by_source.items():
        if len(together) <= MANY:
            for some in together:
                yield f"{source}: {_interval(some)} {_missed(some)}. {ASKED} this interval {AGAIN}"
            continue
        first = ", ".join(map(_interval, together[:FIRST]))
        every = [contact for some in together for contact in some]
        yield (
            f"{source}: in {len(together)} intervals ({first}, …; all under contacts in "
            f"report.json) {_missed(every)}. {ASKED} these intervals {AGAIN}"
        )


def _interval(some: Sequence[Contact]) -> str:
    return f"from {min(c.begin for c in some):.4g} s to {max(c.end for c in some):.4g} s"


def _missed(some: Sequence[Contact]) -> str:
    worst = max(some, key=lambda c: c.times)
    joints = sorted({c.joint for c in some})
    most = f" (largest at {worst.joint})" if len(joints) > 1 else ""
    return (
        f"the model leaves up to {abs(worst.most):.3g} N·m (or N) unexplained at "
        f"{', '.join(joints)}{most}, {worst.times:.0f} times the usual error"
    )
