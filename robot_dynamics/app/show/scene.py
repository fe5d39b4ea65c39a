# SPDX-License-Identifier: Apache-2.0
"""The drawing of a robot: its links, joints, centres of mass and motors, link by link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ...description.shapes import Shapes
from ...mechanism import Mechanism, Pose
from ...scalar import is_zero, rotation_to


def scene(mechanism: Mechanism, meshes: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The data of the drawing for view.js; poses are 12 numbers, the rows of R, then p in m.

    Args:
        mechanism: the robot.
        meshes: by link, for links with visuals in a URDF; see `meshes.py`.
    """
    shapes = Shapes(mechanism)
    names = [mechanism.base, *(link.name for link in mechanism.links)]
    index = mechanism.index()
    bodies = [
        {
            "link": index[link.name],
            "at": _list(link.inertial.center_of_mass),
            "mass": float(link.inertial.mass),
        }
        for link in mechanism.links
        if not is_zero(link.inertial.mass)
    ]
    motors = [
        {
            "link": index[rotor.mount],
            "pose": pose(rotor.origin),
            "name": rotor.name,
            "joints": [name for name, _ in rotor.ratios],
        }
        for rotor in mechanism.rotors
        if not rotor.inertial.is_nothing and rotor.mount in index
    ]
    ends = [
        {
            "loop": loop.name,
            "type": loop.type,
            "sides": [
                {"link": index[side.link], "pose": pose(side.pose)}
                for side in (loop.predecessor, loop.successor)
            ],
        }
        for loop in mechanism.loops
    ]
    return {
        "links": [
            {
                "name": name,
                "index": index[name],
                "shapes": [vars(each) | {"pose": pose(each.pose)} for each in shapes.of(name)],
                "meshes": meshes.get(name, []),
            }
            for name in names
        ],
        "width": shapes.width,
        "joints": [_joint(mechanism, name, index) for name in mechanism.tree_names],
        "bodies": bodies,
        "motors": motors,
        "loops": ends,
        "platform": None if mechanism.platform is None else index[mechanism.platform],
    }


def pose(where: Pose) -> list[float]:
    """A pose as 12 numbers: the rows of R, then p in m."""
    return [*_list(np.asarray(where.rotation, dtype=float).ravel()), *_list(where.translation)]


def _list(values: Any) -> list[float]:
    return [float(x) + 0.0 for x in values]


def _joint(mechanism: Mechanism, name: str, index: Mapping[str, int]) -> dict[str, Any]:
    link = next(link for link in mechanism.links if link.joint.name == name)
    joint = link.joint
    motors = {x for rotor in mechanism.rotors for x, _ in rotor.ratios}
    # the axis passes through the joint's frame, which is fixed to the parent
    turned = joint.origin @ Pose(rotation_to(joint.axis))
    role = (
        "follows"
        if joint.coupling
        else "motor"
        if name in mechanism.actuated_names
        else "sensed"
        if name in mechanism.sensed
        else "passive"
    )
    return {
        "name": name,
        "link": index[link.name],
        "parent": index[link.parent],
        "axis": pose(turned),
        "type": joint.type,
        "turns": joint.turns,
        "role": role,
        "has_rotor": name in motors,
        "unit": joint.unit,
        "effort_unit": joint.effort_unit,
        **asdict(joint.ends),
    }
