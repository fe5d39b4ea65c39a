"""A robot is a value: nothing of it can be changed, and it is the same as itself alone."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.mechanism import Armature, Coupling

PARTS = {
    type(part).__name__: part
    for robot in (rd.load(CONFIG / f"{name}.yaml") for name in ("three_axis", "rrr"))
    for part in (
        robot,
        robot.links[0],
        robot.links[0].joint,
        robot.links[0].joint.origin,
        robot.links[0].joint.friction,
        robot.links[0].inertial,
        *robot.rotors,
        *robot.loops,
        *(loop.predecessor for loop in robot.loops),
    )
} | {"Armature": Armature((("q", 1.0),), 1.0), "Coupling": Coupling((("q", 2.0),))}


@pytest.mark.parametrize(
    "way", [lambda x: x, copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("name", PARTS)
def test_what_a_robot_is_made_of_never_changes(name, way):
    part = way(PARTS[name])
    assert type(part) is type(PARTS[name])
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(PARTS[name], field.name))
            assert not value.flags.writeable, field.name
    if name not in ("Friction", "Coupling", "Armature"):  # these are numbers and nothing else
        assert part != dataclasses.replace(part)
        assert hash(part) == hash(part)
    assert part == part


def test_the_parts_are_all_there():
    assert {"Mechanism", "Link", "Joint", "Pose", "Inertial", "Rotor", "Loop", "Attachment"} <= set(
        PARTS
    )
