"""The ways to put a mechanism together with its motors where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...mechanism import Attachment, Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Floats, array
from .closing import SAME, Closing, Place
from .kinematics import TreeMotion
from .prepared import mended
from .solver import ClosureSolver

TINY = 1e-300
SINGULAR = 1e6
"""Condition number from which on a configuration is no assembly mode"""


@dataclass(frozen=True)
class AssemblyMode:
    """One closed configuration with the motors where home puts them."""

    home: Mapping[str, float]
    """Every joint's position, rad or m"""
    distance: float
    """From the first: root mean square over the joints, rad or shares of the mechanism's size"""
    condition: float
    """Of the passive Jacobian"""


def assembly_modes(mechanism: Mechanism, tries: int | None = None) -> list[AssemblyMode]:
    """Those that a seeded search finds: home's first, then the nearest to it.

    Args:
        mechanism: with loops. Joints that `home` leaves out begin at 0.
        tries: how many poses of the passive joints the search begins at; None: 40, or 8 for more
            than 30 joints.

    Raises:
        DescriptionError, ClosureError: home can't be closed, or the motors don't hold it.
    """
    mechanism, solver, complaints = mended(with_whole_home(mechanism))
    rest: dict[str, float] = {}
    for complaint in complaints:
        rest |= complaint.home
    geometry, n = solver.geometry, len(solver.geometry.names)
    home = solver.mobility.home
    closing = Closing.of(geometry, solver.mobility.row_scale, solver.mobility.column_scale)
    place = _place(solver)
    found = closing.from_anywhere(home, np.arange(n) >= geometry.actuated, tries, place)
    modes: list[AssemblyMode] = []
    at_home = place(home)
    for q in [home, *found]:
        far = closing.distance(q, home) if modes else 0.0
        if modes and np.max(abs(place(q) - at_home), initial=0.0) <= SAME:
            continue
        condition = float(solver.state(q).condition)
        if not modes or condition <= SINGULAR:
            values = rest | dict(zip(geometry.names, map(float, q), strict=True))
            modes.append(AssemblyMode(values, far, condition))
    return modes


def with_whole_home(mechanism: Mechanism) -> Mechanism:
    """The same with 0 for the joints that home leaves out."""
    return replace(mechanism, home=dict.fromkeys(mechanism.joint_names, 0.0) | dict(mechanism.home))


def _place(solver: ClosureSolver) -> Place:
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
