# SPDX-License-Identifier: Apache-2.0
"""Loose motions that do no work: a rod between two ball joints spins about itself.

The motors neither hold nor feel it, so that one of its joints may be held where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError, listed, wrong
from ...mechanism import Attachment, Mechanism, Pose
from ...mechanism.transform import standard_form
from ...scalar import Floats, array
from .linear import chosen_rows
from .loop_geometry import LoopGeometry
from .mend import Mend
from .near import LinkPlaces
from .tree_motion import TreeMotion

OFF_AXIS = 1e-3
"""How far off the axis a spinning body's centre of mass may lie, relative to the size"""
NEAR_AXIS = 0.1
"""The same, up to which the motion is still called a spin; gravity turns such a body, so none of
its joints is held unasked"""
UNROUND = 1e-2
"""A spinning body's inertia may differ from a body of revolution's by this share without remark"""
FEW = 2
"""Up to this many loose motions are described one by one"""
STILL = 1e-6
"""Relative to the fastest: below it something is at rest"""


@dataclass(frozen=True)
class Spin:
    """One loose motion, with the other ones' held joints at rest."""

    joint: str
    """The one to hold"""
    value: float
    """Where, rad or m"""
    moving: tuple[str, ...]
    """The joints that move"""
    links: tuple[str, ...]
    """The links with a mass that move"""
    off_axis: float
    """m: how far their centres of mass lie off the axis, at the most"""
    axes: Mapping[str, tuple[Floats, Floats]]
    """(a point, the direction) in the frame of each link that moves"""
    unround: float
    """0 of a body of revolution about that axis, in shares of its largest moment"""

    @property
    def place(self) -> str:
        """The value, for messages."""
        return f"{round(self.value, 9) + 0.0:.6g}"

    @property
    def what(self) -> str:
        """For messages."""
        return f"{listed(map(repr, self.links))}" if self.links else "a link without mass"


def loose_spins(geometry: LoopGeometry, spins: list[Spin], home: Floats) -> Mend:
    """The mend that locks loose motions that do no work."""
    if len(spins) <= FEW:
        said = "; ".join(
            f"{spin.what} spins freely about itself ({', '.join(spin.moving)}), which does no "
            f"work: {spin.joint} is held at {spin.place}{_unsaid(spin)}"
            for spin in spins
        )
    else:
        worst = max(spins, key=lambda spin: spin.unround)
        off = f", of {worst.links[0]!r}{_unsaid(worst)}" if _unsaid(worst) else ""
        said = (
            f"{_named(spins)} spin freely about themselves, which does no work: a joint of each "
            f"is held{off}"
        )
    return Mend(
        f"loops: {said}; to say so yourself write {_locks(spins)}, or make the ball joint "
        "at one end universal",
        home=dict(zip(geometry.names, map(float, home), strict=True)),
        held=tuple(spin.joint for spin in spins),
        spins={link: axis for spin in spins for link, axis in spin.axes.items()},
    )


def check_spins(mechanism: Mechanism, size: float) -> None:
    """Check that what spins freely, and is held, still has its centre of mass on the axis.

    Raises:
        InputError: a body was put beside it: gravity would turn the link.
    """
    for name, (point, direction) in mechanism.spins.items():
        body = mechanism.link(name).inertial
        arm = np.asarray(body.center_of_mass, dtype=float) - point
        off = float(np.linalg.norm(arm - direction * (direction @ arm)))
        if body.mass and off > OFF_AXIS * size:
            raise wrong(
                InputError,
                f"link {name!r}: centre of mass",
                f"{off:.3g} m off the axis about which the link spins freely",
                f"at most {OFF_AXIS * size:.2g} m: gravity would turn it, and no motor holds it "
                "(a universal joint at one of its ends does, or `locked` in the description)",
            )


def told(others: list[Spin], size: float) -> str:
    """What to do about loose motions that are not locked."""
    rods = [spin for spin in others if spin.off_axis <= NEAR_AXIS * size]
    rest = [name for spin in others if spin not in rods for name in spin.moving]
    said = [f"{listed(dict.fromkeys(rest))} can still move"] if rest else []
    if len(rods) > FEW:
        off = max(spin.off_axis for spin in rods)
        said.append(
            f"{_named(rods)} spin freely about themselves, their centres of mass up to {off:.2g} m "
            "off those axes: make the ball joint at one end of each universal, or hold them with "
            f"{_locks(rods)}"
        )
        return "; ".join(said)
    for spin in rods:
        said.append(
            f"{spin.what} spins freely about itself ({', '.join(spin.moving)}), its centre of mass "
            f"{spin.off_axis:.2g} m off that axis: make the ball joint at one end universal, or "
            f"hold it with {_locks([spin])}"
        )
    return "; ".join(said)


def _named(spins: list[Spin]) -> str:
    """Each spin's link, the last of those that move."""
    return listed((repr((spin.links or spin.moving)[-1]) for spin in spins), 6)


def _locks(spins: list[Spin]) -> str:
    """The `locked` entry that holds them."""
    return "`locked: {" + ", ".join(f"{spin.joint}: {spin.place}" for spin in spins) + "}`"


def _unsaid(spin: Spin) -> str:
    if spin.unround <= UNROUND:
        return ""
    return f" (its inertia is {100 * spin.unround:.2g} % off a body of revolution's)"


def loose_motions(jacobians: list[Floats], rank: int) -> list[Floats]:
    """(n_passive, k) of each place: what is left of the passive joints with the motors held."""
    return [np.linalg.svd(J)[2][rank:].T for J in jacobians]


def spins(
    geometry: LoopGeometry, home: Floats, motions: list[Floats], column_scale: Floats, size: float
) -> tuple[list[Spin], list[Spin]]:
    """(loose motions that do no work, the others).

    Args:
        motions: (n_passive, k) of each place, the first of them home; scaled columns.
    """
    a, names = geometry.actuated, geometry.names[geometry.actuated :]
    # the joints that take most part in them; one with a sensor only where there is no other
    weights = np.where(np.arange(len(names)) < geometry.sensed, 1e-3, 1.0)
    chosen = chosen_rows(motions, motions[0].shape[1], weights)
    # one motion for each joint that may be held, the other such joints at rest
    apart = motions[0] @ np.linalg.inv(motions[0][chosen])
    bodies = standard_form(replace(geometry.mechanism, loops=(), platform=None))
    motion = TreeMotion(bodies, geometry.constraints.coordinates, home)
    places = LinkPlaces(geometry, geometry.mechanism.index())
    found: list[Spin] = []
    others: list[Spin] = []
    for place, column in zip(chosen, apart.T, strict=True):
        moving = tuple(
            name for name, x in zip(names, column, strict=True) if abs(x) > STILL * max(abs(column))
        )
        way = np.concatenate([np.zeros(a), column]) * column_scale
        links, off, unround = _at(bodies, motion, way)
        joint = names[place]
        axes = places.axes(home, way)
        spin = Spin(joint, float(home[a + place]), moving, links, off, axes, unround)
        if off <= OFF_AXIS * size and not _moves_platform(geometry, home, way):
            found.append(spin)
        else:
            others.append(spin)
    return found, others


def _at(bodies: Mechanism, motion: TreeMotion, way: Floats) -> tuple[tuple[str, ...], float, float]:
    """(links with a mass that move, m their centres are off the axis, how unround they are)."""
    moved: list[str] = []
    off = unround = 0.0
    fastest = 0.0
    rates = []
    for link in bodies.links:
        body = link.inertial
        frame = motion.frame(Attachment(link.name, Pose(translation=body.center_of_mass)))
        v, w = frame.V @ way, frame.W @ way
        rates.append((link.name, body, frame.rotation.T @ w, float(np.linalg.norm(v))))
        fastest = max(fastest, float(np.linalg.norm(w)), float(np.linalg.norm(v)))
    for name, body, turn, speed in rates:
        turning = float(np.linalg.norm(turn))
        if body.is_nothing or max(turning, speed) <= STILL * fastest:
            continue
        moved.append(name)
        off = max(off, speed / turning if turning > STILL * fastest else np.inf)
        if turning > STILL * fastest:
            unround = max(unround, _unround(array(body.inertia), turn / turning))
    return tuple(moved), off, unround


def _unround(inertia: Floats, axis: Floats) -> float:
    """How far a tensor is from one of revolution about the axis, in shares of its largest entry."""
    # two axes normal to it
    across = np.linalg.svd(axis[None])[2][1:]
    I = np.vstack([axis, across]) @ np.asarray(inertia, dtype=float) @ np.vstack([axis, across]).T
    parts = (I[0, 1], I[0, 2], I[1, 2], (I[1, 1] - I[2, 2]) / 2)
    largest = float(np.max(abs(I), initial=0.0))
    return float(max(map(abs, parts)) / largest) if largest else 0.0


def _moves_platform(geometry: LoopGeometry, home: Floats, way: Floats) -> bool:
    if geometry.pose_constraints is None:
        return False
    J = geometry.constraint_jacobian(home)
    return bool(np.linalg.norm(J @ way) > STILL * np.linalg.norm(way))
