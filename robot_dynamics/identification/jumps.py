# SPDX-License-Identifier: Apache-2.0
"""Removes jumps of positions that no robot can make: whole turns, and glitches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import counted
from .recording import Floats, Stream

TURN = 2 * np.pi
SUDDEN = 10.0
"""Smallest ratio of a jump's deviation from the median of nearby steps to their median deviation"""
FAST = 0.95
"""Quantile of the sizes of all steps; a jump deviates by more than twice that"""
LEAST = 0.01
"""rad or m: smaller deviations are no jumps"""
NEARBY = 6
"""Number of steps on either side that count as nearby"""
GLITCH = 0.1
"""s: the longest glitch; one of up to three messages may be longer"""
RETURNED = 0.5
"""Largest fraction of a jump that may be left after its return"""
TRIED = 8
"""Number of jumps after a jump among which its return is searched for"""


def without_jumps(stream: Stream, turns: NDArray[np.bool_], notes: list[str]) -> Stream:
    """Unwrap positions that are published within one turn or within a range of several, and leave
    out the messages between a position's jump and its return: a glitch of an encoder, or a lost
    value.

    Args:
        stream: messages in order.
        turns: (n,), whether each joint turns; the others slide.
        notes: findings are appended to it.
    """
    position = stream.position.copy()
    glitches = np.zeros(len(position), dtype=bool)
    wrapped: dict[str, list[str]] = {}
    example = ""
    for j, name in enumerate(stream.names):
        steps = np.diff(position[:, j])
        # by how much, at most, a step differs from the others, and from those nearby
        off = (2 * np.abs(steps), NEARBY * np.abs(np.diff(steps)))
        if min(each.max(initial=0.0) for each in off) <= LEAST:
            continue
        usual, most = _usual(steps)
        for period in (TURN, _range(position[:, j], steps, usual, most)) if turns[j] else ():
            whole = period * np.sign(steps - usual)
            # subtracting it must make a step usual again
            whole[(np.abs(steps - usual) <= most) | (np.abs(steps - usual - whole) > most)] = 0.0
            if whole.any():
                wrapped.setdefault(f"{period:.4g} rad" if period != TURN else "", []).append(name)
                position[1:, j] -= np.cumsum(whole)
                break
        for begin, end in _glitches(stream.time, position[:, j], usual, most):
            glitches[begin:end] = True
            example = example or f"{name} at {stream.time[begin]:.3f} s"
    for span, names in wrapped.items():
        what = f"multiples of {span}, their range," if span else "whole turns"
        notes.append(f"{what} were added to the positions of {', '.join(names)}")
    if glitches.any():
        notes.append(
            f"left out: {counted(glitches.sum(), 'message')} in which a position jumps and "
            f"returns, such as {example}"
        )
    return replace(stream, position=position).rows(~glitches)


def _range(position: Floats, steps: Floats, usual: Floats, most: Floats) -> float:
    """rad: the range of more than a turn within which an encoder publishes its positions (k,), or
    0 if it does not show: motion that passes one end goes on from the other, and does not return at
    once, as a glitch does."""
    off = steps - usual
    pairs = np.sort([position[:-1], position[1:]], axis=0)
    ends = (pairs[0] <= position.min() + most) & (pairs[1] >= position.max() - most)
    jumps = np.where(np.abs(off) > most, np.sign(off), 0.0)
    alone = np.convolve(jumps, np.ones(2 * NEARBY + 1))[NEARBY:-NEARBY] == jumps
    passing = ends & alone & (off * usual < 0) & (np.abs(off) > np.maximum(most, TURN))
    beside = np.convolve(steps, (0.5, 0.0, 0.5), "same")
    return float(np.median(np.abs(steps - beside)[passing])) if passing.any() else 0.0


def _usual(steps: Floats) -> tuple[Floats, Floats]:
    """(the median of the steps near each step (k,), the largest deviation from it (k,) that is not
    a jump)."""
    from scipy.ndimage import median_filter

    width = 2 * NEARBY + 1
    usual = median_filter(steps, width, mode="nearest")
    spread = median_filter(np.abs(steps - usual), width, mode="nearest")
    fast = np.quantile(np.abs(steps), FAST)
    return usual, np.maximum(SUDDEN * spread, max(2 * fast, LEAST))


def _glitches(
    time: Floats, position: Floats, usual: Floats, most: Floats
) -> Iterator[tuple[int, int]]:
    """(begin, end) of the messages from each jump to its return."""
    jumps = np.flatnonzero(np.abs(np.diff(position) - usual) > most).tolist()
    returned = -1
    for k, jump in enumerate(jumps):
        if jump < returned:
            continue
        before = usual[max(jump - NEARBY, 0)]
        off = abs(position[jump + 1] - position[jump] - before)
        for back in jumps[k + 1 : k + 1 + TRIED]:
            count = back + 1 - jump
            if count > 4 and time[back] - time[jump] > GLITCH:
                break
            # meanwhile it has moved on at the rate before the jump, or that after the return
            left = abs(position[back + 1] - position[jump] - count * before)
            after = usual[min(back + NEARBY, len(usual) - 1)]
            way = most[jump] + most[back] + count * abs(after - before)
            if left <= min(way, RETURNED * off):
                yield jump + 1, back + 1
                returned = back + 1
                break
