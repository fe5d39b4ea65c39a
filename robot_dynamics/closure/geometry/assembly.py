# SPDX-License-Identifier: Apache-2.0
"""The assembly modes of a mechanism with its motors at home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...mechanism import Attachment, Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Floats, array
from .closer import Closer, mended
from .home_search import SAME, HomeSearch, Place
from .near import LinkPlaces, Near
from .tree_motion import TreeMotion

TINY = 1e-300
AS_NEAR = 1.5
"""An assembly mode up to this many times as far away as the nearest counts as equally near"""
ABOUT = 0.05
"""rad, or relative to the size: a smaller difference never decides between two modes"""
SINGULAR = 1e6
"""A configuration with a larger condition number is not listed"""


@dataclass(frozen=True)
class AssemblyMode:
    """One closed configuration with the motors where home puts them."""

    home: Mapping[str, float]
    """Every joint's position, rad or m"""
    distance: float
    """From the first: root mean square over the joints, rad or shares of the mechanism's size"""
    condition: float
    """Of the passive Jacobian"""
    poses: Mapping[str, Pose]
    """Of every link, in the base frame"""
    off_home: float
    """From home as it is given: the same, over the passive joints that it gives"""
    off_near: float
    """How far it is from what `near` says: the largest of rad and shares of the size"""


def assembly_modes(mechanism: Mechanism, tries: int | None = None) -> list[AssemblyMode]:
    """Those that a seeded search finds: home's first, then the nearest to it.

    Where the description says `near`, the one nearest to that is the first, home's or not.

    Args:
        mechanism: with loops. Joints that `home` leaves out begin at 0.
        tries: how many poses of the passive joints the search begins at; None: 40, or 8 for more
            than 30 joints.

    Raises:
        DescriptionError, ClosureError: home can't be closed, or the motors don't hold it.
    """
    given = mechanism.home
    mechanism, solver, mends = mended(with_whole_home(mechanism))
    rest: dict[str, float] = {}
    for mend in mends:
        rest |= mend.home
    geometry, n = solver.geometry, len(solver.geometry.names)
    home = solver.mobility.home
    closing = HomeSearch(geometry, solver.mobility.row_scale, solver.scale)
    whole = closing.whole
    place, links = _place(solver), LinkPlaces(geometry, mechanism.index())
    meant = Near(geometry, solver.scale, solver.size)
    passive = [
        i for i, name in enumerate(geometry.names) if name in given and i >= geometry.actuated
    ]
    start = np.array([float(given.get(name, 0.0)) for name in geometry.names])
    found = closing.from_anywhere(home, np.arange(n) >= geometry.actuated, tries, place)
    modes: list[AssemblyMode] = []
    at_home = place(home)
    for q in [home, *found]:
        far = whole.distance(q, home) if modes else 0.0
        if modes and np.max(abs(place(q) - at_home), initial=0.0) <= SAME:
            continue
        condition = float(solver.state(q).condition)
        if not modes or condition <= SINGULAR:
            values = rest | dict(zip(geometry.names, map(float, q), strict=True))
            off = (whole.unwound(q, start) - start)[passive] / solver.scale[passive]
            off_home = float(np.sqrt(np.mean(off**2))) if passive else 0.0
            poses = links.at(q)
            modes.append(AssemblyMode(values, far, condition, poses, off_home, meant.miss(q)))
    return sorted(modes, key=lambda mode: round(mode.off_near, 6)) if meant else modes


def undecided(mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> tuple[int, ...]:
    """The modes, numbered from 1, that fit the description equally well; empty: only the first.

    By `near`, where it says that, or else by the passive joints that `home` gives.
    """
    off = [mode.off_near if mechanism.near else mode.off_home for mode in modes]
    alike = [k for k, each in enumerate(off, start=1) if each <= AS_NEAR * off[0] + ABOUT]
    return tuple(alike) if len(alike) > 1 else ()


def with_whole_home(mechanism: Mechanism) -> Mechanism:
    """The same with 0 for the joints that home leaves out."""
    return replace(mechanism, home=dict.fromkeys(mechanism.joint_names, 0.0) | dict(mechanism.home))


def _place(solver: Closer) -> Place:
    """All that can be told apart: joints, centres of mass, inertias and the ends of loops in space.

    A rod that is turned about itself by half a turn, with both its ends where they were, is not.
    """
    geometry = solver.geometry
    closure, mechanism = geometry.constraints, geometry.mechanism
    bodies = standard_form(replace(mechanism, loops=(), platform=None))
    ends = [side for loop in closure.loops for side in (loop.predecessor, loop.successor)]

    def place(q: Floats) -> Floats:
        motion = TreeMotion(bodies, closure.coordinates, q)
        seen = [motion.frame(end).point for end in ends]
        for link in bodies.links:
            seen.append(motion.frame(Attachment(link.name)).point)
            body = link.inertial
            if not body.is_nothing:
                frame = motion.frame(Attachment(link.name, Pose(translation=body.center_of_mass)))
                spread = frame.rotation @ array(body.inertia) @ frame.rotation.T
                seen += [frame.point, (spread / max(np.trace(spread), TINY)).ravel()]
        if geometry.pose_constraints is not None:
            seen.append(geometry.platform_pose(q).ravel())
        return np.concatenate([np.asarray(each, dtype=float) for each in seen])

    return place
