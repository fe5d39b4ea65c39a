# SPDX-License-Identifier: Apache-2.0
"""The shapes of the links in a URDF, for display (<visual>) or for collisions (<collision>).

They are never read for dynamics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from ..errors import DescriptionError, RobotDynamicsError, choices, wrong
from ..mechanism import Pose
from ..scalar import Floats
from .files import find, is_text, urdf_of
from .xacro_process import read_urdf
from .xml_text import parsed

MOST_BYTES = 30_000_000
"""The largest size of a mesh's file; larger ones are left out"""
ENDINGS = (".stl", ".obj", ".dae", ".ply", ".glb")
SIZES = {"box": ("size", 3), "sphere": ("radius", 1), "cylinder": ("radius", 1, "length", 1)}
"""The attributes of shapes without a mesh, and how many numbers each attribute has"""


@dataclass(frozen=True, eq=False)
class LinkShape:
    """A shape in the frame of its link."""

    link: str
    pose: Pose
    kind: str
    """box, cylinder (along z), sphere or mesh"""
    size: Floats
    """m: three edges of a box, radius of a sphere, radius and length of a cylinder"""
    points: Floats
    """(m, 3), m: the vertices of a mesh"""
    triangles: Any
    """(k, 3): the indices of the vertices"""


def link_shapes(source: str, element: str) -> tuple[list[LinkShape], list[str]]:
    """Read the shapes of a description's links.

    Args:
        source: the description's file, or its text.
        element: visual or collision.

    Returns:
        (the shapes, notes on what was left out); both are empty if it is not a URDF.
    """
    file = _urdf(source)
    found: list[LinkShape] = []
    missing: list[str] = []
    cache: dict[tuple[str, str], tuple[Floats, Any]] = {}
    if file is None:
        return found, missing
    for link, each in _elements(file, element):
        try:
            shape = _read(link, each, file, cache)
        except (DescriptionError, ValueError) as error:
            missing.append(f"{link}: {error}")
            continue
        if shape is not None:
            found.append(shape)
    return found, missing


def _urdf(source: str) -> Path | None:
    try:
        if is_text(source):
            return None
        file = find(source)
        file = urdf_of(file) or file
        return file if file.suffix.lower() in (".urdf", ".xacro") else None
    except RobotDynamicsError:
        return None


def _elements(file: Path, element: str) -> Iterator[tuple[str, etree._Element]]:
    root = parsed(read_urdf(file), file.name)
    for link in root.iterfind("link"):
        for each in link.iterfind(element):
            yield str(link.get("name")), each


def _numbers(text: str | None, count: int, default: float) -> Floats:
    words = (text or "").split()
    values = np.array([float(x) for x in words]) if len(words) == count else np.full(count, default)
    if not np.isfinite(values).all():
        raise ValueError("a value is not a number")
    return values


def _origin(element: etree._Element) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose()
    xyz, rpy = (_numbers(origin.get(key), 3, 0.0) for key in ("xyz", "rpy"))
    return Pose.from_xyz_rpy(xyz, rpy)


def _read(
    link: str, element: etree._Element, file: Path, cache: dict[tuple[str, str], tuple[Floats, Any]]
) -> LinkShape | None:
    pose, no_points = _origin(element), np.zeros((0, 3))
    for shape in element.iterfind("geometry/*"):
        if shape.tag == "mesh":
            name, scale = str(shape.get("filename")), str(shape.get("scale") or "1 1 1")
            if (name, scale) not in cache:
                mesh = _mesh(find(name, beside=file.parent))
                points = np.asarray(mesh.vertices, dtype=float) * _numbers(scale, 3, 1.0)
                cache[name, scale] = points, np.asarray(mesh.faces)
            return LinkShape(link, pose, "mesh", np.zeros(0), *cache[name, scale])
        if shape.tag in SIZES:
            kind = SIZES[shape.tag]
            size = [
                _numbers(shape.get(str(key)), int(count), 0.0)
                for key, count in zip(kind[::2], kind[1::2], strict=True)
            ]
            return LinkShape(link, pose, shape.tag, np.concatenate(size), no_points, no_points)
    return None


def _mesh(path: Path) -> Any:
    try:
        import trimesh
    except ImportError:
        raise ValueError(f"{path.name}: pip install 'robot_dynamics[meshes]'") from None
    if path.suffix.lower() not in ENDINGS:
        what = f"{path.name}: the file's extension"
        raise wrong(DescriptionError, what, path.suffix, choices(ENDINGS))
    if (size := path.stat().st_size) > MOST_BYTES:
        raise wrong(DescriptionError, f"{path.name}: bytes", size, f"at most {MOST_BYTES}")
    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False, skip_materials=True)
    except Exception as error:  # noqa: BLE001  each format's reader raises its own
        raise ValueError(f"{path.name}: {error}") from None
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        raise ValueError(f"{path.name}: no triangles")
    return mesh
