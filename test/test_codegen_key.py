# SPDX-License-Identifier: Apache-2.0
"""Laws of a kernel's key: whatever a robot's torques depend on is part of its key or its
parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from robots import CONFIG, inertia

import robot_dynamics as rd
from robot_dynamics import scalar
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.closure import Subsystems
from robot_dynamics.closure.dynamics.kernels import ParameterVector
from robot_dynamics.codegen import Function, function
from robot_dynamics.formulations.options import Options
from robot_dynamics.formulations.regressor import Regressor
from robot_dynamics.formulations.terms import TERMS
from robot_dynamics.mechanism import (
    Armature,
    Coupling,
    Friction,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Pose,
    Rotor,
)  # fmt: skip
from robot_dynamics.scalar import rotation_rpy

NO_MATTER = {
    "name",
    "intermediate",
    "source",
    "symbols",
    "notation",
    "limits",
    "base_inertial",
    "home",
    "actuated",
    "sensed",
    "platform",
}
"""Fields that no torque of an open chain depends on: joints are in the order of the links"""
OTHERS = {"parent": "b", "mount": "b", "type": "prismatic", "base": "floor"}
"""What stands in for a text: something else that is sound"""


def some_pose(rng) -> Pose:
    return Pose(rotation_rpy(*rng.uniform(-1, 1, 3)), rng.uniform(-1, 1, 3))


def some_body(rng) -> Inertial:
    return Inertial(1.5, rng.uniform(-0.2, 0.2, 3), inertia(rng, 1.5))


def robot() -> Mechanism:
    """Everything that a mechanism may have, nowhere zero."""
    rng = np.random.default_rng(0)
    law = Friction(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    joints = [("a", "base", "revolute"), ("b", "a", "revolute"), ("c", "b", "prismatic")]
    joints += [("d", "c", "revolute"), ("e", "d", "fixed")]
    links = []
    for name, parent, kind in joints:
        joint = Joint(
            f"q{name}", kind, some_pose(rng), np.array([0.6, 0.0, 0.8]), some_pose(rng), law
        )
        if name == "d":
            joint = replace(joint, coupling=Coupling((("qa", 0.5), ("qb", -2.0)), 0.1))
        links.append(Link(name, parent, joint, some_body(rng)))
    rotors = [
        Rotor("m1", "a", some_pose(rng), (("qb", 30.0), ("qc", 2.0)), some_body(rng)),
        Rotor("m2", "c", some_pose(rng), (("qc", -7.0),), some_body(rng)),
    ]
    armatures = (Armature((("qa", 20.0), ("qb", 3.0)), 1e-3),)
    gravity = rng.uniform(-9, 9, 3)
    return Mechanism(
        "all", tuple(links), gravity=gravity, rotors=tuple(rotors), armatures=armatures
    )


def changed(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """(where, the value with one leaf changed), leaf by leaf."""
    last = at.rsplit(".", 1)[-1]
    if isinstance(value, Pose):
        turn, shift = rotation_rpy(0.1, 0.0, 0.0), np.array([0.0, 0.01, 0.0])
        yield f"{at}.rotation", Pose(value.rotation @ turn, value.translation)
        yield f"{at}.translation", Pose(value.rotation, value.translation + shift)
    elif is_dataclass(value):
        for each in fields(value):
            if each.name not in NO_MATTER:
                inner = getattr(value, each.name)
                for where, new in changed(inner, f"{at}.{each.name}"):
                    yield where, replace(value, **{each.name: new})
    elif isinstance(value, np.ndarray):
        for place in np.ndindex(value.shape):
            new = value.copy()
            new[place] += 0.01
            if last == "axis":
                new /= np.linalg.norm(new)
            if last == "inertia":
                new = (new + new.T) / 2
            yield f"{at}{list(place)}", new
    elif isinstance(value, tuple):
        for k, entry in enumerate(value):
            for where, new in changed(entry, f"{at}.{k}"):
                yield where, (*value[:k], new, *value[k + 1 :])
        if at.rsplit(".", 1)[-1] in ("ratios", "rotors", "armatures"):
            yield f"{at} less one", value[:-1]
    elif isinstance(value, bool):
        yield at, not value
    elif isinstance(value, (int, float)):
        yield at, value + 0.01
    elif isinstance(value, str):
        other = OTHERS.get(last, "qa" if value == "qc" else "qc")
        if other != value:
            yield at, other


def open_signature(mechanism: Mechanism, rotors: str, formulation: str = "gibbs_appell") -> Any:
    chain = OpenChain(mechanism, Options(formulation, rotors))
    keys = [chain.function(name).key() for name in ("torques", "mass_matrix")]
    return keys, chain.parameters.tolist()


def is_possible(where: str, new: Mechanism) -> bool:
    """A link is no ancestor of itself, and links hang on a base that is there."""
    return not (
        (".parent" in where and any(link.parent == link.name for link in new.links))
        or where.endswith((".0.parent", ".base"))
        or (where.endswith(".1.parent"))
    )


CHANGES = [(where, new) for where, new in changed(robot(), "robot") if is_possible(where, new)]


def test_the_walk_reaches_everything():
    seen = " ".join(where for where, _ in CHANGES)
    for name in (
        "gravity",
        "rotors.1.ratios.0.1",
        "armatures.0.inertia",
        "coupling.offset",
        "mount",
    ):
        assert name in seen
    assert len(CHANGES) > 150


@pytest.mark.parametrize("rotors", ["full", "reflected"])
def test_no_field_of_an_open_chain_is_forgotten(rotors):
    before = open_signature(robot(), rotors)
    forgotten = [where for where, new in CHANGES if open_signature(new, rotors) == before]
    if rotors == "reflected":
        # Γ² I_zz and a point mass: what else there is of the rotor's inertia and pose is nothing
        forgotten = [x for x in forgotten if ".rotors." not in x]
    # a fixed joint has no axis, no friction; a follower's friction is its master's by ratio
    assert [x for x in forgotten if ".links.4.joint." not in x] == []


@pytest.mark.parametrize("name", ["ratios.0.1", "inertial.mass", "inertial.inertia[2, 2]", "mount"])
def test_reflected_rotors_are_in_it(name):
    before = open_signature(robot(), "reflected")
    some = [new for where, new in CHANGES if where.endswith(name) and ".rotors." in where]
    assert some
    assert all(open_signature(new, "reflected") != before for new in some)


def closed_signature(mechanism: Mechanism) -> Any:
    vector = ParameterVector(parts := Subsystems.of(mechanism))
    made = Function("x", (), (), (), vector.size, tuple, vector.content)
    return made.key(), vector.values(parts).tolist()


def test_no_loop_and_no_role_of_a_joint_is_forgotten():
    mechanism = rd.load(CONFIG / "rrr.yaml")
    before = closed_signature(mechanism)
    loops = [
        (where, replace(mechanism, loops=new))
        for where, new in changed(mechanism.loops, "loops")
        if not where.endswith((".link", ".type"))
    ]
    assert len(loops) > 2 * len(mechanism.loops)
    others = [("less one", replace(mechanism, loops=mechanism.loops[:-1]))]
    others += [("sensed", replace(mechanism, sensed=mechanism.sensed[:-1]))]
    others += [("actuated", replace(mechanism, actuated=mechanism.actuated[::-1]))]
    kind = replace(mechanism.loops[0], type="spherical")
    others += [("type", replace(mechanism, loops=(kind, *mechanism.loops[1:])))]
    forgotten = [where for where, new in loops + others if closed_signature(new) == before]
    assert forgotten == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("formulation", "murphy"), ("terms", ("inertia", "rotors")), ("friction_smoothing", 0.1)],
)
def test_no_choice_is_forgotten(option, value):
    given = Options("gibbs_appell")
    keys = [
        OpenChain(robot(), options).function("torques").key()
        for options in (given, replace(given, **{option: value}))
    ]
    assert keys[0] != keys[1]


def test_a_regressor_knows_a_rotor_from_a_link_that_follows():
    body = Inertial(0.3, np.array([0.01, 0.02, 0.03]), np.diag([0.01, 0.02, 0.03]))
    arm, place = Link("a", "base", Joint("qa", "revolute"), body), Pose(translation=[0.1, 0.2, 0.3])
    ratios = (("qa", 50.0),)
    follower = Joint("r", "continuous", place, coupling=Coupling(ratios))
    as_link = Mechanism("link", (arm, Link("r", "a", follower, body)))
    as_rotor = Mechanism(
        "rotor", (arm,), rotors=(Rotor("r", "a", place, ratios, body, Friction()),)
    )
    contents = [
        Regressor.of(each, "full", frozenset(TERMS)).content for each in (as_link, as_rotor)
    ]
    assert made(contents[0]).key() != made(contents[1]).key()


def made(content: Any, name: str = "f", **others: Any) -> Function:
    return Function(
        name, ("x",), others.get("sizes", (1,)), others.get("shape", (1,)),
        others.get("parameters", 0), tuple, content,
    )  # fmt: skip


def test_different_contents_have_different_keys():
    contents = [
        1, 1.0, "1", True, None, (1,), ((1,),), (1, 1), ("1", "1"), ("11",), (), ((),), 0.0, -0.0,
        np.array([1.0]), np.array([[1.0]]), np.array([1.0, 2.0]), np.array([2.0, 1.0]),
        {"a": 1}, {"a": 2}, {"b": 1}, {1, 2}, {1, 3}, Friction(), Friction(1.0), Friction(0.0, 1.0),
        Coupling((("a", 1.0),)), Armature((("a", 1.0),), 0.0), scalar.sin, scalar.cos,
        1e-300, float("inf"),
    ]  # fmt: skip
    keys = [made(each).key() for each in contents]
    keys += [made(1).key("more"), made(1).key("mo", "re"), made(1, "g").key()]
    keys += [made(1, sizes=(2,)).key(), made(1, shape=(2,)).key(), made(1, parameters=1).key()]
    assert len(set(keys)) == len(keys)
    assert made({"a": 1, "b": 2}).key() == made({"b": 2, "a": 1}).key()
    assert made(np.float64(2.0)).key() == made(2.0).key()
    with pytest.raises(TypeError, match="cannot be part of a kernel's content"):
        made(object()).key()


def test_a_key_knows_every_file_of_the_package(monkeypatch, tmp_path):
    root = tmp_path / "package"
    for name in ("codegen/function.py", "dynamics/motors.py", "app/cli.py", "codegen/c/caller.c",
                 "codegen/c/lanes.h", "ros/executables.py"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    monkeypatch.setattr(function, "__file__", str(root / "codegen" / "function.py"))

    def key():
        function._package.cache_clear()
        return made(1).key()

    try:
        keys = [key()]
        for file in sorted(path for path in root.rglob("*.*") if path.is_file()):
            file.write_text("another text")
            keys.append(key())
        (root / "codegen" / "c" / "lanes.h").rename(root / "lanes.h")
        keys.append(key())
        assert len(set(keys)) == len(keys) == 8
        assert key() == keys[-1]
    finally:
        function._package.cache_clear()
