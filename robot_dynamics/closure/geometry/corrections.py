# SPDX-License-Identifier: Apache-2.0
"""Corrections of small errors in a description whose intent is clear.

One kind is a loose motion that does no work, such as the spin of a rod between two ball joints. The
motors can neither hold nor drive it, so one of its joints may be locked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import DescriptionError, InputError, listed, wrong
from ...formulations.kinematics import jacobian
from ...mechanism import Mechanism
from ...mechanism.transform import lumped, with_locked_joints
from ...scalar import Array, Floats, array
from .linear import chosen_rows
from .loop_geometry import LoopGeometry


@dataclass(frozen=True)
class Correction:
    """A correction: of a rough home, loose joints that do no work, or redundant motors."""

    message: str
    """What is wrong, and how it was corrected"""
    home: Mapping[str, float]
    """A closed configuration: positions by joint, rad or m"""
    held: tuple[str, ...] = ()
    """Joints to lock at these positions"""
    spins: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """By link moved by these joints: the axis about which it spins (see `Mechanism.spins`)"""
    driving: tuple[str, ...] = ()
    """If there are redundant motors: the motors whose positions are q"""
    shares: Mapping[str, float] = field(default_factory=dict)
    """By motor: efforts of equal weight in the least-norm distribution, N·m or N"""

    def applied_to(self, mechanism: Mechanism) -> Mechanism:
        """The same robot with these corrections."""
        places = {name: self.home[name] for name in self.held}
        home = {name: value for name, value in self.home.items() if name not in places}
        sensed = tuple(name for name in mechanism.sensed if name not in places)
        driving = self.driving or mechanism.driving
        shares = self.shares or mechanism.shares
        left = with_locked_joints(mechanism, places)
        spins = {**mechanism.spins, **self.spins}
        return replace(left, home=home, sensed=sensed, driving=driving, shares=shares, spins=spins)

    def refusal(self) -> DescriptionError:
        """The error for callers that accept no correction."""
        name = "loops" if self.held else "home"
        return DescriptionError(self.message, name=name, value=list(self.held))


OFF_AXIS = 1e-3
"""How far a spinning body's centre of mass may lie off the axis, as a fraction of the size"""
NEAR_AXIS = 0.1
"""How far it may lie off for the motion still to be called a spin; as gravity turns such a body, it
is locked only if the description says so"""
UNROUND = 1e-2
"""A spinning body's inertia may differ from that of a body of revolution by this fraction without
being mentioned"""
FEW = 2
"""Up to this many loose motions are reported one by one"""
STILL = 1e-6
"""Speeds below this fraction of the fastest count as zero"""


@dataclass(frozen=True)
class Spin:
    """One loose motion, with the joints that lock the other motions at rest."""

    joint: str
    """The joint to lock"""
    value: float
    """The position at which to lock it, rad or m"""
    moving: tuple[str, ...]
    """The joints that move"""
    axes: Mapping[str, tuple[Floats, Floats]]
    """By link that turns: (a point, the direction) of the axis, in the link's frame"""
    links: tuple[str, ...]
    """The links with a mass that move"""
    off_axis: float
    """The largest distance of their centres of mass from the axis, m"""
    unround: float
    """How far the inertia is from that of a body of revolution about the axis, as a fraction of its
    largest entry; 0 for such a body"""

    @property
    def place(self) -> str:
        """The value as text, for messages."""
        return f"{round(self.value, 9) + 0.0:.6g}"

    @property
    def what(self) -> str:
        """The names of the links, for messages."""
        return listed(map(repr, self.links)) if self.links else "a link without mass"


def loose_spins(geometry: LoopGeometry, spins: list[Spin], home: Floats) -> Correction:
    """The correction that locks loose motions that do no work.

    Args:
        geometry: of the mechanism.
        spins: the loose motions.
        home: (n_r,) the closed configuration at which to lock them.
    """
    if len(spins) <= FEW:
        said = "; ".join(
            f"{spin.what} can spin freely about its own axis ({', '.join(spin.moving)}) without "
            f"doing work; {spin.joint} is locked at {spin.place}{_deviation(spin)}"
            for spin in spins
        )
    else:
        worst = max(spins, key=lambda spin: spin.unround)
        off = f", of {worst.links[0]!r}{_deviation(worst)}" if _deviation(worst) else ""
        said = (
            f"{_named(spins)} can spin freely about their own axes without doing work; a joint of "
            f"each is locked{off}"
        )
    return Correction(
        f"loops: {said}; to silence this warning, add {_locks(spins)} to the description, or "
        "replace the ball joint at one end with a universal joint",
        home=dict(zip(geometry.names, map(float, home), strict=True)),
        held=tuple(spin.joint for spin in spins),
        spins={link: axis for spin in spins for link, axis in spin.axes.items()},
    )


def check_spins(mechanism: Mechanism, size: float) -> None:
    """Check that links whose free spin was locked still have their centres of mass on the axis.

    Args:
        mechanism: with `spins`.
        size: the mechanism's size, m.

    Raises:
        InputError: a centre of mass is off the axis, so gravity would turn the link.
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
                f"at most {OFF_AXIS * size:.2g} m: gravity would rotate it, and no motor resists "
                "(use a universal joint at one end, or `locked` in the description)",
            )


def advice(others: list[Spin], size: float) -> str:
    """Advice on loose motions that are not locked automatically, for messages."""
    rods = [spin for spin in others if spin.off_axis <= NEAR_AXIS * size]
    rest = [name for spin in others if spin not in rods for name in spin.moving]
    said = [f"{listed(dict.fromkeys(rest))} can still move"] if rest else []
    if len(rods) > FEW:
        off = max(spin.off_axis for spin in rods)
        said.append(
            f"{_named(rods)} can spin freely about their own axes, with centres of mass up to "
            f"{off:.2g} m off them: replace the ball joint at one end of each with a universal "
            f"joint, or lock them with {_locks(rods)}"
        )
        return "; ".join(said)
    for spin in rods:
        said.append(
            f"{spin.what} can spin freely about its own axis ({', '.join(spin.moving)}), with its "
            f"centre of mass {spin.off_axis:.2g} m off it: replace the ball joint at one end with "
            f"a universal joint, or lock it with {_locks([spin])}"
        )
    return "; ".join(said)


def _named(spins: list[Spin]) -> str:
    """The name of the last link that moves in each spin, for messages."""
    return listed((repr((spin.links or spin.moving)[-1]) for spin in spins), 6)


def _locks(spins: list[Spin]) -> str:
    """The `locked` entry of a description that holds them."""
    return "`locked: {" + ", ".join(f"{spin.joint}: {spin.place}" for spin in spins) + "}`"


def _deviation(spin: Spin) -> str:
    if spin.unround <= UNROUND:
        return ""
    return f" (its inertia differs by {100 * spin.unround:.2g} % from a body of revolution's)"


def loose_motions(jacobians: list[Floats], rank: int) -> list[Floats]:
    """A basis (n_passive, k), for each configuration, of the passive joints' motions with the
    motors held.

    Args:
        jacobians: (m, n_passive) the scaled passive Jacobian at each configuration.
        rank: of these Jacobians.
    """
    return [np.linalg.svd(J)[2][rank:].T for J in jacobians]


def spins(
    geometry: LoopGeometry, home: Floats, motions: list[Floats], column_scale: Floats, size: float
) -> tuple[list[Spin], list[Spin]]:
    """(loose motions that do no work, the others).

    Args:
        geometry: of the mechanism.
        home: (n_r,) closed.
        motions: as from `loose_motions`, scaled, at home and at configurations nearby.
        column_scale: (n_r,), scales of the joints.
        size: the mechanism's size, m.
    """
    a, names = geometry.actuated, geometry.names[geometry.actuated :]
    # the joints that move most in these motions; one with a sensor only if there is no other
    weights = np.where(np.arange(len(names)) < geometry.sensed, 1e-3, 1.0)
    chosen = chosen_rows(motions, motions[0].shape[1], weights)
    # one motion for each joint that may be locked, with the other such joints at rest
    apart = motions[0] @ np.linalg.inv(motions[0][chosen])
    bodies = lumped(geometry.mechanism)
    found: list[Spin] = []
    others: list[Spin] = []
    for place, column in zip(chosen, apart.T, strict=True):
        moving = tuple(
            name for name, x in zip(names, column, strict=True) if abs(x) > STILL * max(abs(column))
        )
        way = np.concatenate([np.zeros(a), column]) * column_scale
        still = STILL * float(np.linalg.norm(way))
        twists = _twists(geometry, home, way)
        # o + ω × v / ω² is at rest, or slides along the axis
        axes = {
            name: (np.cross(w, v) / (w @ w), w / np.linalg.norm(w))
            for name, (v, w) in twists.items()
            if np.linalg.norm(w) > still
        }
        spin = Spin(names[place], float(home[a + place]), moving, axes, *_of(bodies, twists))
        platform = twists.get(geometry.mechanism.platform or "", np.zeros((2, 3)))
        harmless = spin.off_axis <= OFF_AXIS * size and np.linalg.norm(platform) <= still
        (found if harmless else others).append(spin)
    return found, others


def _twists(geometry: LoopGeometry, home: Floats, way: Floats) -> dict[str, Floats]:
    """[velocity of the origin, angular velocity] (2, 3) of each link, on its own axes, when q_r
    moves along `way` (n_r,)."""
    tree, back = geometry.mechanism, geometry.back
    return {
        name: np.asarray((J @ way[back]).reshape(2, 3) @ pose.rotation, dtype=float)
        for name, pose in geometry.poses(home).items()
        for J in [jacobian(tree, name, home[back])]
    }


def _of(bodies: Mechanism, twists: Mapping[str, Floats]) -> tuple[tuple[str, ...], float, float]:
    """(links with a mass that move, their centres' largest distance from the axis, their largest
    deviation from bodies of revolution)."""
    speeds = {}
    for link in bodies.links:
        v, w = twists[link.name]
        v = v + np.cross(w, link.inertial.center_of_mass)
        speeds[link.name] = float(np.linalg.norm(v)), float(np.linalg.norm(w))
    still = STILL * max(map(max, speeds.values()))
    moved: list[str] = []
    off = unround = 0.0
    for link in bodies.links:
        speed, turning = speeds[link.name]
        if link.inertial.is_nothing or max(turning, speed) <= still:
            continue
        moved.append(link.name)
        off = max(off, speed / turning if turning > still else np.inf)
        if turning > still:
            inertia = array(link.inertial.inertia)
            unround = max(unround, _unround(inertia, twists[link.name][1] / turning))
    return tuple(moved), off, unround


def _unround(inertia: Floats, axis: Floats) -> float:
    """The deviation of a tensor from that of a body of revolution about the axis, as a fraction of
    its largest entry."""
    # two axes normal to it
    across = np.linalg.svd(axis[None])[2][1:]
    I = np.vstack([axis, across]) @ np.asarray(inertia, dtype=float) @ np.vstack([axis, across]).T
    parts = (I[0, 1], I[0, 2], I[1, 2], (I[1, 1] - I[2, 2]) / 2)
    largest = float(np.max(abs(I), initial=0.0))
    return float(max(map(abs, parts)) / largest) if largest else 0.0
