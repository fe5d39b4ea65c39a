# SPDX-License-Identifier: Apache-2.0
"""A robot is a value: it is immutable, and equal only to itself."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.errors import InputError
from robot_dynamics.mechanism import Armature, Attachment, Coupling, Inertial, Joint, Link, Pose
from robot_dynamics.mechanism.transform import lumped

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


def test_what_was_given_by_position_stays_in_its_place():
    """A new field goes behind the others, or is given by its name alone."""
    gravity = np.array([1.0, 2.0, 3.0])
    given = rd.Mechanism(
        "arm", PARTS["Mechanism"].links, "base", gravity, PARTS["Mechanism"].rotors
    )
    assert (given.gravity == gravity).all()
    assert given.rotors == PARTS["Mechanism"].rotors
    places = [each.name for each in dataclasses.fields(rd.Mechanism) if not each.kw_only]
    assert places == [
        "name", "links", "base", "gravity", "rotors", "armatures", "loops", "actuated", "driving",
        "shares", "sensed", "platform", "home", "near", "spins", "base_motion", "source", "symbols",
        "notation",
    ]  # fmt: skip
    with pytest.raises(TypeError):
        rd.Mechanism(*range(len(places) + 1))


def test_the_parts_are_all_there():
    assert {"Mechanism", "Link", "Joint", "Pose", "Inertial", "Rotor", "Loop", "Attachment"} <= set(
        PARTS
    )


def padded(mechanism: rd.Mechanism, rng: np.random.Generator) -> rd.Mechanism:
    """The same robot: half of each body, and all that is tied to it, on a link fixed to it."""
    links, tip = [], {mechanism.base: (mechanism.base, Pose())}
    for link in mechanism.links:
        pose = Pose.from_xyz_rpy(rng.normal(size=3), rng.normal(size=3))
        fixed = Joint(f"{link.name}_fixed", "fixed", origin=pose)
        body = link.inertial
        half = dataclasses.replace(body, mass=body.mass / 2, inertia=body.inertia / 2)
        parent, back = tip[link.parent]
        joint = dataclasses.replace(link.joint, origin=back @ link.joint.origin)
        links.append(dataclasses.replace(link, parent=parent, joint=joint, inertial=half))
        links.append(Link(f"{link.name}_tip", link.name, fixed, half.seen_from(pose.inverse())))
        tip[link.name] = (f"{link.name}_tip", pose.inverse())

    def moved(attachment: Attachment) -> Attachment:
        name, back = tip[attachment.link]
        return Attachment(name, back @ attachment.pose)

    return dataclasses.replace(
        mechanism,
        links=tuple(links),
        rotors=tuple(
            dataclasses.replace(
                each, mount=tip[each.mount][0], origin=tip[each.mount][1] @ each.origin
            )
            for each in mechanism.rotors
        ),
        loops=tuple(
            dataclasses.replace(
                each, predecessor=moved(each.predecessor), successor=moved(each.successor)
            )
            for each in mechanism.loops
        ),
        platform=tip[mechanism.platform][0] if mechanism.platform else None,
    )


@pytest.mark.parametrize("name", ["three_axis", "five_bar", "rrr"])
def test_what_hangs_on_a_fixed_link_hangs_on_the_one_that_carries_it(name):
    mechanism, rng = rd.load(CONFIG / f"{name}.yaml"), np.random.default_rng(0)
    same = padded(mechanism, rng)
    found, expected = (rd.InverseDynamics(each, backend="python") for each in (same, mechanism))
    n = len(expected.joint_names)
    home = np.array([mechanism.home.get(joint, 0.0) for joint in expected.joint_names])
    for _ in range(3):
        states = home + 0.02 * rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
        np.testing.assert_allclose(found(*states), expected(*states), rtol=1e-9, atol=1e-9)
    whole = lumped(same)
    assert whole.platform == lumped(mechanism).platform
    for link, before in zip(whole.links, lumped(mechanism).links, strict=True):
        assert (link.name, link.parent) == (before.name, before.parent)
        for what in ("mass", "center_of_mass", "inertia"):
            value = getattr(link.inertial, what)
            np.testing.assert_allclose(value, getattr(before.inertial, what), atol=1e-9)


def test_arrays_are_copied_and_stay_their_owners():
    given = np.array([0.1, 0.2, 0.3])
    body, pose = Inertial(1.0, given), Pose(np.eye(3), given)
    given[0] = 7.0
    assert body.center_of_mass[0] == pose.translation[0] == 0.1


def test_a_number_is_no_array():
    with pytest.raises(InputError, match="center_of_mass: found"):
        Inertial(1.0, np.array(3.0))
