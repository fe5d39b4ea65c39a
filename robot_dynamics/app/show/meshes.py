# SPDX-License-Identifier: Apache-2.0
"""The visuals of the links in a URDF: meshes that are found, boxes, cylinders and spheres.

They are only read for a page of a file, and never for dynamics.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from ...description.files import find, read_text
from ...description.xml_text import parsed
from ...description.yaml_text import plain
from ...errors import DescriptionError, RobotDynamicsError
from ...mechanism import Pose
from ...scalar import Floats

MOST_BYTES = 30_000_000
"""The largest size of a mesh's file; larger ones are left out"""
MOST_TRIANGLES = 1800
"""The most triangles of a mesh on the page"""
ENDINGS = (".stl", ".obj", ".dae", ".ply", ".glb")

Drawn = dict[str, list[dict[str, Any]]]


def found(source: str) -> tuple[Drawn, list[str]]:
    """Read the visuals of a description.

    Args:
        source: the description's file.

    Returns:
        (meshes by link, remarks on what was left out); both are empty if it is not a URDF.
    """
    file = _urdf_of(source)
    if file is None:
        return {}, []
    try:
        import trimesh
    except ImportError:
        return {}, ["meshes are left out: pip install 'robot_dynamics[meshes]'"]
    drawn: Drawn = {}
    missing: list[str] = []
    cache: dict[tuple[str, str], Any] = {}
    for name, element in _visuals(file):
        try:
            shape = _loaded(element, file, trimesh, cache)
        except (DescriptionError, ValueError) as error:
            missing.append(str(error))
            continue
        if shape is not None:
            points, triangles = shape
            pose = _origin(element)
            moved = points @ np.asarray(pose.rotation, dtype=float).T + pose.translation
            drawn.setdefault(name, []).append(_packed(moved, triangles))
    if missing:
        missing = [f"{len(missing)} meshes are left out, as {missing[0]}"]
    return drawn, missing


def _urdf_of(source: str) -> Path | None:
    try:
        if source.lstrip().startswith("<"):
            return None
        file = find(source)
        if file.suffix.lower() in (".yaml", ".yml"):
            content = plain(read_text(file), file.name)
            inner = content.get("urdf") if isinstance(content, dict) else None
            if not isinstance(inner, str):
                return None
            file = find(inner, beside=file.parent)
        return file if file.suffix.lower() == ".urdf" else None
    except RobotDynamicsError:
        return None


def _visuals(file: Path) -> Iterator[tuple[str, etree._Element]]:
    root = parsed(read_text(file), file.name)
    for link in root.iterfind("link"):
        for visual in link.iterfind("visual"):
            yield str(link.get("name")), visual


def _numbers(text: str | None, count: int, default: float) -> Floats:
    words = (text or "").split()
    values = np.array([float(x) for x in words]) if len(words) == count else np.full(count, default)
    if not np.isfinite(values).all():
        raise ValueError("a value is not a number")
    return values


def _origin(visual: etree._Element) -> Pose:
    origin = visual.find("origin")
    if origin is None:
        return Pose()
    xyz, rpy = (_numbers(origin.get(key), 3, 0.0) for key in ("xyz", "rpy"))
    return Pose.from_xyz_rpy(xyz, rpy)


def _loaded(
    visual: etree._Element, beside: Path, trimesh: Any, cache: dict[tuple[str, str], Any]
) -> tuple[Floats, Any] | None:
    """(points (m, 3), triangles (k, 3)) in the visual's frame."""
    for shape in visual.iterfind("geometry/*"):
        match shape.tag:
            case "mesh":
                name, scale = str(shape.get("filename")), str(shape.get("scale") or "1 1 1")
                if (name, scale) not in cache:
                    mesh = _read(_place(name, beside), trimesh)
                    points = np.asarray(mesh.vertices, dtype=float) * _numbers(scale, 3, 1.0)
                    cache[name, scale] = _coarse(points, np.asarray(mesh.faces))
                result: tuple[Floats, Any] = cache[name, scale]
                return result
            case "box":
                made = trimesh.creation.box(_numbers(shape.get("size"), 3, 0.0))
            case "cylinder":
                size = [_numbers(shape.get(key), 1, 0.0)[0] for key in ("radius", "length")]
                made = trimesh.creation.cylinder(*size, sections=24)
            case "sphere":
                radius = _numbers(shape.get("radius"), 1, 0.0)[0]
                made = trimesh.creation.icosphere(subdivisions=2, radius=radius)
            case _:
                continue
        return np.asarray(made.vertices, dtype=float), np.asarray(made.faces)
    return None


def _place(name: str, beside: Path) -> Path:
    """The mesh's file; `package://NAME/…` is also found in a folder NAME above the description, or
    next to a folder above it."""
    if name.startswith("package://"):
        package, _, inner = name.removeprefix("package://").partition("/")
        for folder in beside.resolve().parents:
            if folder.name == package and (folder / inner).is_file():
                return folder / inner
            if (folder / package / inner).is_file():
                return folder / package / inner
    return find(name, beside=beside.parent)


def _read(path: Path, trimesh: Any) -> Any:
    if path.suffix.lower() not in ENDINGS or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path.name}: no mesh of at most {MOST_BYTES} bytes")
    try:
        mesh = trimesh.load(path, force="mesh", process=False, skip_materials=True)
    except Exception as error:  # noqa: BLE001  each format's reader raises its own
        raise ValueError(f"{path.name}: {error}") from None
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        raise ValueError(f"{path.name}: no triangles")
    return mesh


def _coarse(points: Floats, triangles: Any) -> tuple[Floats, Any]:
    """Reduce the number of triangles: all points in a cell of a grid become one, their mean."""
    low = points.min(axis=0)
    span = float(np.ptp(points, axis=0).max()) or 1.0
    cells = 256.0
    while True:
        keys = np.floor((points - low) / span * cells).astype(np.int64)
        _, which = np.unique(keys, axis=0, return_inverse=True)
        which = which.ravel()
        corners = which[triangles]
        a, b, c = corners.T
        whole = corners[(a != b) & (b != c) & (a != c)]
        _, first = np.unique(np.sort(whole, axis=1), axis=0, return_index=True)
        whole = whole[np.sort(first)]
        if len(whole) <= MOST_TRIANGLES or cells < 4:
            break
        cells *= max(0.5, math.sqrt(MOST_TRIANGLES / len(whole))) * 0.97
    count = np.bincount(which).astype(float)
    means = np.stack([np.bincount(which, points[:, k]) / count for k in range(3)], axis=1)
    used, places = np.unique(whole, return_inverse=True)
    return means[used], places.reshape(-1, 3)


def _packed(points: Floats, triangles: Any) -> dict[str, Any]:
    """A mesh for the page, with 16 bits per coordinate within its bounding box."""
    low, high = points.min(axis=0), points.max(axis=0)
    wide = np.where(high > low, high - low, 1.0)
    grid = np.round((points - low) / wide * 65535).astype("<u2")
    return {
        "box": [low.tolist(), high.tolist()],
        "points": base64.b64encode(grid.tobytes()).decode(),
        "triangles": base64.b64encode(np.asarray(triangles).astype("<u2").tobytes()).decode(),
    }
