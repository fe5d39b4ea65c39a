# SPDX-License-Identifier: Apache-2.0
"""Distances that a motion must keep: between links and regions, and between bodies.

The bodies are the collision shapes of a URDF; meshes count as their convex hulls. Distances are
Coal's (GJK and EPA, https://github.com/coal-library/coal), negative where bodies overlap.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..description.files import find, read_text
from ..description.link_shapes import LinkShape, link_shapes
from ..description.xml_text import parsed
from ..errors import DescriptionError, InputError, choices, not_installed, wrong
from ..mechanism import Mechanism
from .recording import Floats

NEAR = 0.12
"""m: for bodies whose bounding spheres are farther apart than this, that distance is used"""
CLEARANCE = 0.01
"""m of clearance from regions, for the motion between grid states: a link at 4 m/s moves this far
in half a grid step"""
ALWAYS = 0.95
"""Fraction of the postures; a pair that is nearer than the clearance in more of them is so by
design, like the links on both sides of a wrist"""

TABLE = "the table"
THIN = 1e-4
"""m: half the thickness that a flat mesh is given"""

Poses = Callable[[str], Floats]
"""By link, its poses (k, 4, 4) in the base frame"""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The distance from a region's boundary, and how it changes with the nearest points."""

    room: Floats
    """(k,), m; negative: the region's condition is violated"""
    points: Mapping[str, tuple[Floats, Floats]]
    """By link: its nearest point (k, 3), m, in the base frame, and the derivative (k, 3) of room by
    that point"""


class Region(Protocol):
    """A condition on the positions of links."""

    def nearest(self, poses: Poses) -> Nearest:
        """The distance at some postures."""


@dataclass(frozen=True)
class Above:
    """A region: a link's origin stays above the plane z = height in the base frame."""

    link: str
    height: float
    """m"""

    def nearest(self, poses: Poses) -> Nearest:
        """The distance from the plane."""
        points = poses(self.link)[:, :3, 3]
        up = np.broadcast_to([0.0, 0.0, 1.0], points.shape)
        return Nearest(points[:, 2] - self.height, {self.link: (points, up)})

    def __str__(self) -> str:
        return f"{self.link} above {self.height:g} m"


@dataclass(frozen=True)
class Outside:
    """A region: a link's origin stays outside a sphere in the base frame."""

    link: str
    center: tuple[float, float, float]
    """m, in the base frame"""
    radius: float
    """m"""

    def nearest(self, poses: Poses) -> Nearest:
        """The distance from the sphere."""
        points = poses(self.link)[:, :3, 3]
        away = points - np.array(self.center)
        distance = np.linalg.norm(away, axis=1)
        out = away / np.where(distance > 0, distance, 1.0)[:, None]
        return Nearest(distance - self.radius, {self.link: (points, out)})

    def __str__(self) -> str:
        center = ", ".join(f"{each:g}" for each in self.center)
        return f"{self.link} outside the sphere of radius {self.radius:g} m at ({center})"


def regions(above: Sequence[str], outside: Sequence[str]) -> tuple[Region, ...]:
    """Parse regions from texts.

    Args:
        above: texts of the form LINK:Z, in m.
        outside: texts of the form LINK:X,Y,Z,R, in m.

    Raises:
        InputError: a text has another form.
    """
    found: list[Region] = []
    for text in above:
        link, numbers = link_numbers(text, (1,), "--above", "LINK:Z")
        found.append(Above(link, numbers[0]))
    for text in outside:
        link, numbers = link_numbers(text, (4,), "--outside", "LINK:X,Y,Z,R with R above 0")
        if not numbers[3] > 0:
            raise wrong(InputError, "--outside", text, "LINK:X,Y,Z,R with R above 0")
        found.append(Outside(link, (numbers[0], numbers[1], numbers[2]), numbers[3]))
    return tuple(found)


def link_numbers(
    text: str, counts: Sequence[int], option: str, expected: str
) -> tuple[str, list[float]]:
    """(link, numbers) of a text such as LINK:X,Y,Z.

    Args:
        text: the text.
        counts: how many numbers there may be.
        option: the option's name, for errors.
        expected: what the text should look like, for errors.

    Raises:
        InputError: the text has another form.
    """
    link, _, rest = text.strip().rpartition(":")
    try:
        numbers = [float(x) for x in rest.split(",")]
    except ValueError:
        numbers = []
    if not link or len(numbers) not in counts or not all(map(math.isfinite, numbers)):
        raise wrong(InputError, option, text, expected)
    return link, numbers


@dataclass(frozen=True, eq=False)
class _Solid:
    """A convex shape on a link."""

    link: str
    geometry: Any
    rotation: Floats
    """(3, 3), of the shape in its link's frame"""
    translation: Floats
    """(3,), m"""
    center: Floats
    """(3,), m: centre of the bounding sphere, in the link's frame"""
    radius: float
    """m, of the bounding sphere"""

    def at(self, pose: Floats) -> tuple[Floats, Floats]:
        """(R, p) in the base frame, given the pose (4, 4) of the link."""
        R, p = pose[:3, :3], pose[:3, 3]
        return R @ self.rotation, R @ self.translation + p

    def centers(self, poses: Floats) -> Floats:
        """(k, 3), m: centre of the bounding sphere in the base frame, for poses (k, 4, 4)."""
        return np.asarray(poses[:, :3, :3] @ self.center + poses[:, :3, 3])


@dataclass(frozen=True, eq=False)
class Apart:
    """A region: two bodies, each of one or more convex shapes, do not touch."""

    names: tuple[str, str]
    pairs: tuple[tuple[_Solid, _Solid], ...]
    """Every shape of the one with every shape of the other"""

    @property
    def links(self) -> tuple[str, ...]:
        """The links of both bodies."""
        return tuple(dict.fromkeys(solid.link for pair in self.pairs for solid in pair))

    def nearest(self, poses: Poses) -> Nearest:
        """The distance between the bodies; where it is large, a lower bound."""
        import coal

        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.enable_signed_distance = True
        where = {link: poses(link) for link in self.links}
        bounds = np.array(
            [
                np.linalg.norm(a.centers(where[a.link]) - b.centers(where[b.link]), axis=1)
                - (a.radius + b.radius)
                for a, b in self.pairs
            ]
        )
        room = bounds.min(axis=0)
        points = {link: (np.zeros((len(room), 3)), np.zeros((len(room), 3))) for link in where}
        for k in np.flatnonzero(room < NEAR):
            room[k] = np.inf
            for (a, b), bound in zip(self.pairs, bounds[:, k], strict=True):
                if bound >= room[k]:
                    continue
                places = [coal.Transform3s(*each.at(where[each.link][k])) for each in (a, b)]
                result.clear()
                distance = coal.distance(
                    a.geometry, places[0], b.geometry, places[1], request, result
                )
                if distance >= room[k]:
                    continue
                room[k] = distance
                for _, slope in points.values():
                    slope[k] = 0.0
                # the normal points from a to b: d distance = normal · (d p_b - d p_a)
                for solid, point, sign in (
                    (a, result.getNearestPoint1(), -1.0), (b, result.getNearestPoint2(), 1.0),
                ):  # fmt: skip
                    points[solid.link][0][k] = np.ravel(point)
                    points[solid.link][1][k] = sign * np.ravel(result.normal)
        return Nearest(room, points)

    def __str__(self) -> str:
        return " from ".join(self.names)


def bodies_apart(
    mechanism: Mechanism,
    source: str,
    poses: Callable[[Floats, str], Floats],
    postures: Floats,
    *,
    table: float | None = None,
    srdf: str | os.PathLike[str] | None = None,
) -> tuple[tuple[Apart, ...], tuple[str, ...]]:
    """The pairs of bodies of a URDF that must not touch.

    Pairs that are connected by a joint, disabled by the SRDF, or nearer than the clearance in
    nearly all postures (hence by design) are left out.

    Args:
        mechanism: the robot.
        source: the file of its description.
        poses: (postures (k, n), link) -> poses (k, 4, 4) in the base frame.
        postures: (k, n), rad or m: random postures within the limits.
        table: m, in the base frame: the height below which nothing may reach; None: no table.
        srdf: an SRDF file as used by MoveIt, of which `disable_collisions` is read.

    Returns:
        (the pairs, notes on what is not checked).

    Raises:
        InputError: the SRDF is broken, or with a table, there are no shapes, or a body touches the
            table in nearly all postures.
        BackendError: there is a table or an SRDF, but Coal is not installed.
    """
    shapes, missing = link_shapes(source, "collision")
    carrier = {link: name for link, (name, _) in mechanism.carriers().items()}
    notes = [f"collisions not checked: {words}" for words in missing]
    notes += [
        f"collisions not checked: {x.link}: not a link of the robot"
        for x in shapes
        if x.link not in carrier
    ]
    shapes = [each for each in shapes if each.link in carrier]
    if not shapes:
        if table is not None:
            raise InputError(
                f"--table: {mechanism.name} has no collision shapes; use --above LINK:Z instead",
                name="table",
                expected="a URDF with readable <collision> elements",
            )
        return (), (*notes, "collisions not checked: no URDF with collision shapes")
    if find_spec("coal") is None:
        absent = not_installed("Coal", "finds collisions", "'robot_dynamics[collisions]'")
        if table is not None or srdf is not None:
            raise absent
        return (), (*notes, str(absent))
    solids: dict[str, list[_Solid]] = {}
    for shape in shapes:
        try:
            solids.setdefault(carrier[shape.link], []).append(_solid(shape))
        except ValueError as error:
            notes.append(f"collisions not checked: {shape.link}: {error}")
    disabled = _disabled(srdf, carrier)
    apart = [
        Apart((a, b), tuple((x, y) for x in solids[a] for y in solids[b]))
        for a, b in _unconnected(mechanism, solids, carrier)
        if frozenset((a, b)) not in disabled
    ]
    if table is not None:
        ground = _ground(mechanism.base, table)
        apart += [
            Apart((name, TABLE), tuple((solid, ground) for solid in each))
            for name, each in solids.items()
            if name != mechanism.base
        ]
    kept = []
    for pair in apart:
        room = pair.nearest(lambda link: poses(postures, link)).room
        touch = (room < 0).mean() > ALWAYS
        if pair.names[1] == TABLE and touch:
            raise wrong(
                InputError, "--table", table, f"a height that {pair.names[0]} can stay above"
            )
        if pair.names[1] == TABLE or (room < CLEARANCE).mean() <= ALWAYS:
            kept.append(pair)
        else:
            what = "touch" if touch else f"are less than {CLEARANCE:g} m apart"
            notes.append(f"{pair} is not checked: they {what} in nearly all configurations")
    return tuple(kept), tuple(notes)


def _unconnected(
    mechanism: Mechanism, solids: Mapping[str, Sequence[_Solid]], carrier: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The pairs of bodies without a joint between them; bodies without shapes are skipped."""
    above = {link.name: carrier[link.parent] for link in mechanism.links if link.joint.moves}
    joined = set()
    for name in solids:
        parent = above.get(name)
        while parent is not None and parent not in solids:
            parent = above.get(parent)
        joined.add((parent, name))
    order = [name for name in carrier if name in solids]
    return [
        (a, b) for k, a in enumerate(order) for b in order[k + 1 :] if not {(a, b), (b, a)} & joined
    ]


def _disabled(
    file: str | os.PathLike[str] | None, carrier: Mapping[str, str]
) -> set[frozenset[str]]:
    """The pairs of bodies that an SRDF disables."""
    if file is None:
        return set()
    name = Path(file).name
    try:
        root = parsed(read_text(find(os.fspath(file))), name)
    except DescriptionError as error:
        raise InputError(f"--srdf {error}", name=name) from None
    found = set()
    for each in root.iterfind("disable_collisions"):
        links = [str(each.get(key)) for key in ("link1", "link2")]
        for link in links:
            if link not in carrier:
                raise wrong(InputError, f"--srdf {name}: link", link, choices(carrier))
        found.add(frozenset(carrier[link] for link in links))
    return found


def _solid(shape: LinkShape) -> _Solid:
    """A shape as a Coal geometry; a mesh as its convex hull."""
    import coal

    if shape.kind == "mesh":
        geometry = _hull(shape.points)
    else:
        if not (shape.size > 0).all():
            raise ValueError(f"a {shape.kind} of {shape.size} m")
        kinds = {"box": coal.Box, "cylinder": coal.Cylinder, "sphere": coal.Sphere}
        geometry = kinds[shape.kind](*map(float, shape.size))
    geometry.computeLocalAABB()
    R = np.asarray(shape.pose.rotation, dtype=float)
    p = np.asarray(shape.pose.translation, dtype=float)
    center = R @ np.ravel(geometry.aabb_center) + p
    return _Solid(shape.link, geometry, R, p, center, float(geometry.aabb_radius))


def _hull(points: Floats) -> Any:
    """The convex hull; of points in a plane, with a thickness of 0.2 mm."""
    import coal

    for spread in (0.0, THIN):
        corners = coal.StdVec_Vec3s()
        offsets = np.vstack([np.zeros(3), spread * np.eye(3), -spread * np.eye(3)])
        corners.extend(list((points[:, None] + offsets[: 7 if spread else 1]).reshape(-1, 3)))
        try:
            return coal.Convex.convexHull(corners, False, "Qt")
        except (RuntimeError, ValueError):  # all points are in a plane, or fewer than four
            continue
    raise ValueError("its mesh has no convex hull")


def _ground(base: str, height: float) -> _Solid:
    """The half-space below a height, m, in the base frame."""
    import coal

    below = coal.Halfspace(np.array([0.0, 0.0, 1.0]), height)
    return _Solid(base, below, np.eye(3), np.zeros(3), np.zeros(3), np.inf)
