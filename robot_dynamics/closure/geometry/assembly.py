# SPDX-License-Identifier: Apache-2.0
"""The assembly modes of a mechanism with its motors at home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.kinematics import poses
from ...mechanism import Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Array, array
from .closer import Closer, corrected
from .home_search import SAME, Discriminator, HomeSearch
from .near import Near

TINY = 1e-300
AS_NEAR = 1.5
"""A mode counts as equally near up to this multiple of the nearest mode's distance"""
ABOUT = 0.05
"""rad, or fractions of the size: a smaller difference never decides between two modes"""
SINGULAR = 1e6
"""A configuration with a larger condition number is not listed"""


@dataclass(frozen=True)
class AssemblyMode:
    """One closed configuration with the motors at their home positions."""

    home: Mapping[str, float]
    """The position of every joint, rad or m"""
    distance: float
    """Distance from the first mode: root mean square over the joints, rad or fractions of the
    mechanism's size"""
    condition: float
    """Condition number of the passive Jacobian"""
    poses: Mapping[str, Pose]
    """The pose of every link, in the base frame"""
    off_home: float
    """Distance from the home in the description: root mean square over the passive joints that it
    gives, rad or fractions of the size"""
    off_near: float
    """Distance from what `near` specifies: the largest difference, rad or a fraction of the size"""


def assembly_modes(mechanism: Mechanism, tries: int | None = None) -> list[AssemblyMode]:
    """The assembly modes that a seeded search finds: that of home first, then by distance from it.

    If the description has a `near` entry, the modes are ordered by their distance from that.

    Args:
        mechanism: with loops. Joints that `home` does not give start at 0.
        tries: number of poses of the passive joints that the search starts from; None: 40, or 8
            for more than 30 joints.

    Raises:
        DescriptionError, ClosureError: home can't be closed, or the motors don't hold it.
    """
    given = mechanism.home
    whole_home = dict.fromkeys(mechanism.joint_names, 0.0) | dict(given)
    mechanism, closer, corrections = corrected(replace(mechanism, home=whole_home))
    rest: dict[str, float] = {}
    for correction in corrections:
        rest |= correction.home
    geometry, n = closer.geometry, len(closer.geometry.names)
    home = closer.mobility.q_home
    closing = HomeSearch(geometry, closer.mobility.row_scale, closer.scale)
    whole = closing.whole
    discriminator, meant = _discriminator(closer), Near(geometry, closer.scale, closer.size)
    passive = [
        i for i, name in enumerate(geometry.names) if name in given and i >= geometry.actuated
    ]
    start = np.array([float(given.get(name, 0.0)) for name in geometry.names])
    found = closing.from_anywhere(home, np.arange(n) >= geometry.actuated, tries, discriminator)
    modes: list[AssemblyMode] = []
    at_home = discriminator(home)
    for q in [home, *found]:
        far = whole.distance(q, home) if modes else 0.0
        if modes and np.max(abs(discriminator(q) - at_home), initial=0.0) <= SAME:
            continue
        condition = float(closer.state(q).condition)
        if not modes or condition <= SINGULAR:
            values = rest | dict(zip(geometry.names, map(float, q), strict=True))
            off = (whole.unwound(q, start) - start)[passive] / closer.scale[passive]
            off_home = float(np.sqrt(np.mean(off**2))) if passive else 0.0
            modes.append(
                AssemblyMode(values, far, condition, geometry.poses(q), off_home, meant.miss(q))
            )
    return sorted(modes, key=lambda mode: round(mode.off_near, 6)) if meant else modes


def undecided(mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> tuple[int, ...]:
    """The modes, numbered from 1, that fit the description equally well; empty: only the first.

    They are compared with `near` if the description has it, otherwise with the passive joints that
    `home` gives.

    Args:
        mechanism: with loops.
        modes: as from `assembly_modes`, at least one: the best fit first.

    Returns:
        The numbers of the modes whose distance is at most 1.5 times the first one's plus 0.05 (rad,
        or fractions of the mechanism's size).
    """
    off = [mode.off_near if mechanism.near else mode.off_home for mode in modes]
    alike = [k for k, each in enumerate(off, start=1) if each <= AS_NEAR * off[0] + ABOUT]
    return tuple(alike) if len(alike) > 1 else ()


def _discriminator(closer: Closer) -> Discriminator:
    """A function of q_r whose values differ if and only if two configurations look different.

    It gives the origins of links, centres of mass, inertias and the ends of loops in space. A rod
    turned about its own axis by half a turn thus looks the same.
    """
    geometry = closer.geometry
    closure, mechanism = geometry.constraints, geometry.mechanism
    bodies = standard_form(replace(mechanism, loops=(), platform=None))
    ends = [side for loop in closure.loops for side in (loop.predecessor, loop.successor)]

    def discriminator(q: Array) -> Array:
        frames = poses(bodies, q[geometry.back])
        seen = [(frames[end.link] @ end.pose).translation for end in ends]
        for link in bodies.links:
            body, R, p = link.inertial, frames[link.name].rotation, frames[link.name].translation
            seen.append(p)
            if not body.is_nothing:
                inertia = array(body.inertia) / max(np.trace(array(body.inertia)), TINY)
                seen += [p + R @ body.center_of_mass, (R @ inertia @ R.T).ravel()]
        if geometry.pose_constraints is not None:
            seen.append(geometry.platform_pose(q).ravel())
        return np.concatenate(seen)

    size = len(discriminator(closer.mobility.q_home))
    shapes = [(link.name, link.inertial) for link in bodies.links]
    return geometry.compiled("discriminator", discriminator, (size,), shapes)
