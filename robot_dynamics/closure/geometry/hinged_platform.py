# SPDX-License-Identifier: Apache-2.0
"""Closed-form pose of a planar platform on hinges whose positions all follow from readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...scalar import Array, Scalar, array, atan, cross, sqrt
from .constraints import Constraints
from .free_platform import FreePlatform


@dataclass(frozen=True, eq=False)
class HingedPlatform:
    """The platform's x, y and turn, and the position of the joint that carried it.

    With the legs' ends c_i and the platform's hinges b_i, Σ |c_i - b_i|² is least if their means
    coincide and the platform is turned by a further δ,

        tan δ = Σ (b_i - b̄) × (c_i - c̄) / Σ (b_i - b̄) · (c_i - c̄)
    """

    constraints: Constraints
    free: FreePlatform

    @classmethod
    def of(
        cls, constraints: Constraints, free: FreePlatform, unread: Sequence[str]
    ) -> HingedPlatform | None:
        """The closed form for a mechanism; None if it does not apply, as the platform is not on
        hinges in a plane, or the legs have joints that are not read.

        Args:
            constraints: of the mechanism with the free platform.
            free: its free platform.
            unread: the joints that are neither actuated nor sensed, except those of the platform.
        """
        tree, (*hinges, orientation) = constraints.tree, constraints.loops
        ghost, body = orientation.predecessor.link, orientation.successor.link
        fits = all(
            loop.type == "revolute"
            and loop.successor.link == body
            and body not in tree.path(loop.predecessor.link)
            and ghost not in tree.path(loop.predecessor.link)
            for loop in hinges
        )
        own = [tree.link(ghost).joint.name]
        return cls(constraints, free) if free.is_planar and fits and own == [*unread] else None

    def solved(self, q: Array, u: Array) -> Array:
        """[angle of the joint that carried it; x; y; turn] at the readings q (k,).

        u (4,) are any earlier values of these; angles continue from them without jumps.
        """
        A = self.free.axes
        *hinges, (ghost, body) = self.constraints.frames(array([*q, *u]))
        c = [(A.T @ leg.point)[:2] for leg, _ in hinges]
        b = [(A.T @ own.point)[:2] for _, own in hinges]
        c_mean, b_mean = sum(c) / len(c), sum(b) / len(b)
        ways = [(x - b_mean, y - c_mean) for x, y in zip(b, c, strict=True)]
        along = sum(x @ y for x, y in ways)
        across = sum(x[0] * y[1] - x[1] * y[0] for x, y in ways)
        size = sqrt(along * along + across * across)
        cosine, sine = along / size, across / size
        # P moves so that the means coincide: p' = c̄ + Rot(δ) (p - b̄)
        p = (A.T @ self.free.reference.translation)[:2] + u[1:3]
        arm = p - b_mean
        turned = array([cosine * arm[0] - sine * arm[1], sine * arm[0] + cosine * arm[1]])
        x, y = u[1:3] + c_mean + turned - p
        # the joint turns by the angle from the leg's x to the platform's
        x_axis = body.rotation[:, 0] * cosine + cross(A[:, 2], body.rotation[:, 0]) * sine
        joint = u[0] + _angle(x_axis @ ghost.rotation[:, 1], x_axis @ ghost.rotation[:, 0])
        return array([joint, x, y, u[3] + _angle(sine, cosine)])


def _angle(sine: Scalar, cosine: Scalar) -> Scalar:
    """The angle with this sine and cosine, from -π to π, rad."""
    # tan ½α = sin α / (1 + cos α)
    return 2.0 * atan(sine / (1.0 + cosine))
