# SPDX-License-Identifier: Apache-2.0
"""Rigorous bounds on the change of a closure's Jacobian along a step, computed from lengths only.

Seen from its predecessor's frame, a loop is a serial chain that ends in its successor's frame. A
revolute joint k moves that end with z_k × (p - p_k). A derivative of the end's position with
respect to several joints is therefore bounded by the lever |p - p_k| of the outermost of them, or
by 1 if the outermost one is prismatic; it is zero if one further in is prismatic. The cosine of
the angle between two directions has derivatives of at most 1, and only with respect to revolute
joints. Offsets along fixed axes are differences of the ends of two chains from the base.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanism import Attachment
from ...scalar import Array, Floats, Mask, array
from .constraints import Constraints
from .loop_geometry import LoopGeometry
from .tree_motion import TreeMotion, between


@dataclass(frozen=True)
class _Chain:
    """A serial chain that some rows of a loop depend on."""

    loop: int
    path: list[int]
    end: Attachment
    of_places: bool
    of_cosines: bool


class Curvature:
    """Bounds of the second and third derivatives of all rows of a closure.

    Steps d (n_tree,) are the half-widths of a box, rad or m.
    """

    def __init__(self, geometry: LoopGeometry):
        closure, tree = geometry.constraints, geometry.constraints.tree
        chains = [each for i in range(len(closure.loops)) for each in _chains(closure, i)]
        paths = [chain.path for chain in chains]
        longest = max(map(len, paths), default=0)
        # paths are padded to one length with a prismatic joint that never moves
        beyond = len(tree.links)
        self._paths = np.array(
            [path + [beyond] * (longest - len(path)) for path in paths], dtype=np.intp
        ).reshape(len(paths), longest)
        self._turns: Mask = np.array([*(link.joint.turns for link in tree.links), False])[
            self._paths
        ]
        self._chain_loop = np.array([chain.loop for chain in chains], dtype=np.intp)
        # first the rows of cosines, then those of offsets
        self._counts = np.array(
            [[chain.of_cosines for chain in chains], [chain.of_places for chain in chains]]
        ).reshape(2, len(chains), 1)
        self._is_place: Mask = np.array([row.is_length for row in closure.rows], dtype=bool)
        self._loop = closure.owners
        self._shape = (2, len(closure.loops), beyond + 1)
        self._levers = geometry.compiled(
            "levers", lambda q: _squared_levers(geometry, chains, longest, q), self._paths.shape
        )

    def levers(self, q: Floats) -> Floats:
        """The levers |p - p_k| (chains, joints), m, of the joints along each chain at q (n_r,)."""
        return np.sqrt(self._levers(q))

    def bound(self, levers: Floats, d: Floats, order: int) -> Floats:
        """A bound of Σ |∂ⁿ⁺¹φ/∂q_j∂q_k…∂q_l| d_k…d_l (m, n_tree), n = order (1 or 2), for the given
        levers."""
        d, t = self._along(d), self._turns
        turned = np.where(t, d, 0.0)
        inner = np.cumsum(turned, axis=1) - turned
        # either j is the outermost joint, or one of the others is
        own = levers * (inner + turned) ** order
        out = np.where(t, (inner + d) ** order - inner**order, order * d * inner ** (order - 1))
        place = own + t * _beyond(levers * out)
        cosine = t * turned.sum(axis=1, keepdims=True) ** order
        # from chains and their joints to rows and joints of the tree
        every = np.zeros(self._shape)
        for kind, values in enumerate((cosine * self._counts[0], place * self._counts[1])):
            np.add.at(every[kind], (self._chain_loop[:, None], self._paths), values)
        return np.asarray(every[self._is_place.astype(int), self._loop, :-1])

    def longest(self, levers: Floats, d: Floats) -> Floats:
        """Upper bounds of the levers (chains, joints) within the box of half-widths d."""
        d, longest = self._along(d), np.where(self._turns, levers, 1.0)
        growth = np.zeros(len(longest))
        for k in reversed(range(longest.shape[1])):
            # ∂(p - p_k)/∂q_i is no longer than the lever of i
            longest[:, k] += np.where(self._turns[:, k], growth, 0.0)
            growth += longest[:, k] * d[:, k]
        return longest

    def _along(self, d: Floats) -> Floats:
        return np.append(d, 0.0)[self._paths]


def _beyond(values: Floats) -> Floats:
    """Sums over the joints further out, along each chain."""
    return np.asarray(values[:, ::-1].cumsum(axis=1)[:, ::-1] - values)


def _chains(closure: Constraints, i: int) -> list[_Chain]:
    loop, tree = closure.loops[i], closure.tree
    start, end = loop.predecessor.link, loop.successor.link
    around = between(tree, start, end)
    if not closure.has_fixed_axes(loop):
        return [_Chain(i, around, loop.successor, True, True)]
    return [
        _Chain(i, between(tree, tree.base, start), loop.predecessor, True, False),
        _Chain(i, between(tree, tree.base, end), loop.successor, True, False),
        _Chain(i, around, loop.successor, False, True),
    ]


def _squared_levers(geometry: LoopGeometry, chains: list[_Chain], longest: int, q: Array) -> Array:
    closure = geometry.constraints
    motion = TreeMotion(closure.tree, closure.coordinates, q)
    rows = []
    for chain in chains:
        end = motion.frame(chain.end).point
        arms = [end - motion.p[i] for i in chain.path]
        rows.append([arm @ arm for arm in arms] + [0.0] * (longest - len(chain.path)))
    return array(rows)
