# SPDX-License-Identifier: Apache-2.0
"""The visuals of the links in a URDF: meshes that are found, boxes, cylinders and spheres.

They are only read for a page of a file, and never for dynamics.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from ...description.link_shapes import LinkShape, link_shapes
from ...scalar import Floats

MOST_TRIANGLES = 1800
"""Largest number of triangles of a mesh on the page"""

Drawn = dict[str, list[dict[str, Any]]]


def found(source: str) -> tuple[Drawn, list[str]]:
    """Read the visuals of a description.

    Args:
        source: the description's file.

    Returns:
        (meshes by link, remarks on what was left out); both are empty if it is not a URDF.
    """
    try:
        import trimesh
    except ImportError:
        return {}, ["meshes are left out: pip install 'robot_dynamics[meshes]'"]
    drawn: Drawn = {}
    cache: dict[int, Any] = {}
    shapes, missing = link_shapes(source, "visual")
    for shape in shapes:
        points, triangles = _triangles(shape, trimesh, cache)
        moved = points @ np.asarray(shape.pose.rotation, dtype=float).T + shape.pose.translation
        drawn.setdefault(shape.link, []).append(_packed(moved, triangles))
    if missing:
        missing = [f"{len(missing)} meshes are left out, such as {missing[0]}"]
    return drawn, missing


def _triangles(shape: LinkShape, trimesh: Any, cache: dict[int, Any]) -> tuple[Floats, Any]:
    """(points (m, 3), triangles (k, 3)) in the shape's frame."""
    match shape.kind:
        case "mesh":
            if id(shape.points) not in cache:
                cache[id(shape.points)] = _coarse(shape.points, shape.triangles)
            result: tuple[Floats, Any] = cache[id(shape.points)]
            return result
        case "box":
            made = trimesh.creation.box(shape.size)
        case "cylinder":
            made = trimesh.creation.cylinder(*shape.size, sections=24)
        case _:
            made = trimesh.creation.icosphere(subdivisions=2, radius=shape.size[0])
    return np.asarray(made.vertices, dtype=float), np.asarray(made.faces)


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
