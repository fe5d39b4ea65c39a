# SPDX-License-Identifier: Apache-2.0
"""Removes jumps of positions that no robot makes: whole turns, and glitches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .recording import Floats, Stream

TURN = 2 * np.pi
SUDDEN = 10.0
"""A jump differs from the steps nearby by this many times what they usually differ"""
FAST = 0.95
"""Share of all steps, of which a jump is more than twice as large as the largest"""
LEAST = 0.01
"""rad or m: smaller differences are no jumps"""
NEARBY = 6
"""Number of steps on either side that are nearby"""
GLITCH = 0.1
"""s: the longest glitch, though three messages at least"""
RETURNED = 0.5
"""Share of a jump that is left, at most, after its return"""
TRIED = 8
"""Jumps among which the return is looked for"""


def without_jumps(stream: Stream, turns: NDArray[np.bool_], notes: list[str]) -> Stream:
    """Add the whole turns that positions between -pi and pi leave out, and leave out the messages
    between a jump of a position and its return: an encoder's glitch, or a value that was lost.

    Args:
        stream: messages in order.
        turns: (n,) whether each joint turns; the others slide.
        notes: findings are appended to it.
    """
    position = stream.position.copy()
    wrapped, glitches = [], np.zeros(len(position), dtype=bool)
    example = ""
    for j, name in enumerate(stream.names):
        steps = np.diff(position[:, j])
        if 2 * np.abs(steps).max(initial=0.0) <= LEAST:
            continue  # no two of them differ by more
        usual, most = _usual(steps)
        whole = turns[j] * TURN * np.sign(steps - usual)
        # with a whole turn a step is as usual again
        whole[(np.abs(steps - usual) <= most) | (np.abs(steps - usual - whole) > most)] = 0.0
        if whole.any():
            wrapped.append(name)
            position[1:, j] -= np.cumsum(whole)
        for begin, end in _glitches(stream.time, position[:, j], usual, most):
            glitches[begin:end] = True
            example = example or f"{name} at {stream.time[begin]:.3f} s"
    if wrapped:
        notes.append(f"whole turns were added to the positions of {', '.join(wrapped)}")
    if glitches.any():
        notes.append(
            f"{glitches.sum()} messages in which a position jumps and returns were left out, such "
            f"as {example}"
        )
    return Stream(
        stream.names, stream.time, position, stream.velocity, stream.effort
    ).rows(~glitches)  # fmt: skip


def _usual(steps: Floats) -> tuple[Floats, Floats]:
    """(the median of the steps near each of them (k,), the most by which a step differs from it
    without being a jump (k,))."""
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
            # it moves on as before, or as after
            left = abs(position[back + 1] - position[jump] - count * before)
            after = usual[min(back + NEARBY, len(usual) - 1)]
            way = most[jump] + most[back] + count * abs(after - before)
            if left <= min(way, RETURNED * off):
                yield jump + 1, back + 1
                returned = back + 1
                break
