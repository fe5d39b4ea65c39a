"""The ways to put a mechanism together with its motors where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...mechanism import Attachment, Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Floats, array
from .closing import Closing
from .functions import fast
from .kinematics import TreeMotion
from .prepared import mended
from .solver import ClosureSolver

SAME = 1e-5
"""m, cosines and shares of an inertia: what is no farther apart is in one place"""
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
    closing = _closing(solver)
    found = [home, *closing.from_anywhere(home, np.arange(n) >= geometry.actuated, tries)]
    modes: list[AssemblyMode] = []
    places: list[Floats] = []
    for q in found:
        place = _places(solver, q)
        if any(np.max(abs(place - other), initial=0.0) <= SAME for other in places):
            continue
        places.append(place)
        condition = float(solver.state(q).condition)
        if not modes or condition <= SINGULAR:
            values = rest | dict(zip(geometry.names, map(float, q), strict=True))
            far = closing.distance(q, home) if modes else 0.0
            modes.append(AssemblyMode(values, far, condition))
    return modes


def with_whole_home(mechanism: Mechanism) -> Mechanism:
    """The same with 0 for the joints that home leaves out."""
    return replace(mechanism, home=dict.fromkeys(mechanism.joint_names, 0.0) | dict(mechanism.home))


def _closing(solver: ClosureSolver) -> Closing:
    geometry, n = solver.geometry, len(solver.geometry.names)
    closure, found = geometry.constraints, solver.mobility
    m = len(closure.rows)
    residual, jacobian = (
        fast(function, [n], shape)
        for function, shape in ((closure.residual, (m,)), (closure.jacobian, (m, n)))
    )
    return Closing.of(geometry, residual, jacobian, found.row_scale, found.column_scale)


def _places(solver: ClosureSolver, q: Floats) -> Floats:
    """All that can be told apart: joints, centres of mass, inertias and the ends of loops in space.

    A rod that is turned about itself by half a turn, with both its ends where they were, is not.
    """
    geometry = solver.geometry
    closure, mechanism = geometry.constraints, geometry.mechanism
    bodies = standard_form(replace(mechanism, loops=(), platform=None))
    motion = TreeMotion(bodies, closure.coordinates, q)
    ends = [side for loop in closure.loops for side in (loop.predecessor, loop.successor)]
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
