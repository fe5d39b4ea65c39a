# SPDX-License-Identifier: Apache-2.0
"""The standard dynamic parameters, in which a robot's torques are linear, by name.

For each moving link in the order of the joints, together with everything fixed to it (links on
fixed joints and, with reflected rotors, the mass of the motors that it carries):

| name                                                 | unit  |                            |
|------------------------------------------------------|-------|----------------------------|
| `<link>.mass`                                        | kg    |                            |
| `<link>.mx`, `.my`, `.mz`                            | kg m  | about the link's origin    |
| `<link>.Ixx`, `.Ixy`, `.Iyy`, `.Ixz`, `.Iyz`, `.Izz` | kg m² | about the same, link axes  |

Then follow, for each moving joint, including those that follow others, `<joint>.viscous` and
`<joint>.coulomb` and, if its friction law has them, `.coulomb_negative`, `.offset`, `.stribeck`
(the torque) and `.stiffness`; then the same for each rotor that has friction of its own,
`<rotor>.rotor_viscous` and so on, and each such armature, `<joint>.armature_viscous`. Then, for
each rotor, `<rotor>.inertia` about its axis, preceded by its nine other parameters if the full
model needs them. Finally `<joint>.armature` for armatures. A rotor with the same name as a link
gets a prime: `<rotor>'.inertia`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, wrong
from ..scalar import Array, Scalar, array, zeros
from .bodies import Inertial, point_inertia
from .friction import Friction
from .mechanism import Mechanism, Rotor, new_name
from .transform import lumped, with_parts, with_rotor_model

BODY = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""The parameters of a body, in the order of Pinocchio's `toDynamicParameters`"""
ROTOR = (*BODY[:-1], "inertia")
"""The parameters of a rotor; the last is the inertia about its axis"""
ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Positions of a body's last six parameters in the inertia tensor"""
FRICTION = {
    "viscous": "viscous",
    "coulomb": "coulomb",
    "coulomb_negative": "coulomb_negative",
    "offset": "offset",
    "stribeck": "stribeck_torque",
    "stiffness": "stiffness",
}
"""The friction parameters in which the torques are linear, with their fields in `Friction`: all but
those of `SHAPE`"""
SHAPE = ("stribeck_rate", "presliding", "smoothing")
"""The fields of `Friction` in which the torques are not linear"""


def standard_parameters(
    mechanism: Mechanism, rotors: str = "full", friction: bool = True
) -> dict[str, float]:
    """The standard parameters π (p,) of a mechanism by name, in SI units: tau = Y π.

    For each moving link with all that is fixed to it: mass (kg), first moment (kg m) and inertia
    (kg m²) about the origin of the link's frame, on its axes; then friction, rotors and armatures.
    The module's docstring has the names and their order.

    Args:
        mechanism: the robot.
        rotors: full, reflected or none, as in `InverseDynamics`.
        friction: whether to include the friction of joints and rotors.

    Raises:
        InputError: an unknown rotor model.

    Source: [KK87].
    """
    tree = lumped(with_rotor_model(mechanism, rotors))
    found: dict[str, float] = {}
    for link in tree.links:
        found |= _named(link.name, BODY, numbers_of(link.inertial))
    if friction:
        for owner, law in frictions(mechanism).items():
            found |= {
                owner + name: float(getattr(law, FRICTION[name])) for name in friction_terms(law)
            }
    if rotors != "none":
        for name, rotor in rotor_names(mechanism).items():
            if is_whole(rotor, rotors):
                found |= _named(name, ROTOR, numbers_of(rotor.inertial))
            else:
                found[f"{name}.inertia"] = float(rotor.inertial.inertia[2, 2])
    for name, place in armature_names(mechanism).items():
        found[name] = float(mechanism.armatures[place].inertia)
    return found


def with_parameters(
    mechanism: Mechanism, values: Mapping[str, float] | ArrayLike, rotors: str = "full"
) -> Mechanism:
    """The same robot with other parameters: the inverse of `standard_parameters`.

    If a body changes, its moving link gets the whole body, and the links fixed to it become
    massless. A body that does not change remains distributed over its links as it was.

    Args:
        mechanism: the robot.
        values: a vector of all parameters, or those that change, by name.
        rotors: the rotor model that the parameters are meant for.

    Raises:
        InputError: an unknown name, a wrong length, a number that is not finite, or a body without
            mass that has a first moment.
    """
    before = standard_parameters(mechanism, rotors)
    after = before | _by_name(values, tuple(before))
    changed = {name for name in before if after[name] != before[name]}
    # the reflected model adds the motors' masses to their mounts; here they stay with the rotors
    bare = {link.name: link.inertial for link in lumped(mechanism).links}
    bodies: dict[str, Inertial] = {}
    carriers = mechanism.carriers()
    for link in mechanism.links:
        carrier, _ = carriers[link.name]
        names = [f"{carrier}.{each}" for each in BODY]
        if changed.isdisjoint(names):
            continue
        bodies[link.name] = Inertial()
        if link.joint.moves:
            shift = numbers_of(bare[link.name]) - array(before[each] for each in names)
            numbers = array(after[each] for each in names) + shift
            bodies[link.name] = body_of(numbers, link.name)
    laws = {
        owner: replace(law, **{FRICTION[each]: after[owner + each] for each in friction_terms(law)})
        for owner, law in frictions(mechanism).items()
    }

    def moved(name: str, rotor: Rotor) -> Rotor:
        rotor = replace(rotor, friction=laws.get(f"{name}.rotor_"))
        names = [f"{name}.{each}" for each in ROTOR]
        if changed.isdisjoint(names):
            return rotor
        if is_whole(rotor, rotors):
            return replace(rotor, inertial=body_of(array(after[each] for each in names), name))
        tensor = np.array(rotor.inertial.inertia)
        tensor[2, 2] = after[names[-1]]
        return replace(rotor, inertial=replace(rotor.inertial, inertia=tensor))

    armatures = list(mechanism.armatures)
    for name, place in armature_names(mechanism).items():
        law = laws.get(f"{name}_")
        armatures[place] = replace(armatures[place], inertia=after[name], friction=law)
    return replace(
        with_parts(mechanism, bodies, {name: laws[f"{name}."] for name in mechanism.tree_names}),
        rotors=tuple(moved(name, rotor) for name, rotor in rotor_names(mechanism).items()),
        armatures=tuple(armatures),
    )


def frictions(mechanism: Mechanism) -> dict[str, Friction]:
    """The friction laws in the order of `Mechanism.friction_rows`, by the prefix of their
    parameters' names: `<joint>.`, `<rotor>.rotor_` or `<joint>.armature_`."""
    found = {f"{link.joint.name}.": link.joint.friction for link in mechanism.moving}
    shafts: dict[str, Friction | None] = {
        f"{name}.rotor_": rotor.friction for name, rotor in rotor_names(mechanism).items()
    }
    for name, place in armature_names(mechanism).items():
        shafts[f"{name}_"] = mechanism.armatures[place].friction
    return found | {owner: law for owner, law in shafts.items() if law is not None}


def rotor_names(mechanism: Mechanism) -> dict[str, Rotor]:
    """The rotors by name, with primes added to a name that a link or another rotor has."""
    taken = set(mechanism.index())
    return {new_name(rotor.name, taken): rotor for rotor in mechanism.rotors}


def armature_names(mechanism: Mechanism) -> dict[str, int]:
    """The indices of the armatures by the name of the first joint that turns them."""
    taken: set[str] = set()
    armatures = enumerate(mechanism.armatures)
    return {new_name(f"{each.ratios[0][0]}.armature", taken): k for k, each in armatures}


def is_whole(rotor: Rotor, model: str) -> bool:
    """Whether the rotor has all ten parameters in a rotor model, or just the inertia about its
    axis.

    Args:
        rotor: one of the mechanism's.
        model: full, reflected or none.
    """
    body = rotor.inertial
    rest = np.array(body.inertia)
    rest[2, 2] = 0.0
    return model == "full" and bool(body.mass or body.center_of_mass.any() or rest.any())


def friction_terms(law: Friction) -> tuple[str, ...]:
    """The names in FRICTION of the parameters that this law has."""
    own = law.numbers
    return tuple(name for name, field in FRICTION.items() if field in own)


def friction_shape(law: Friction) -> tuple[str, ...]:
    """The names in SHAPE of the numbers that this law has."""
    own = law.numbers
    return tuple(name for name in SHAPE if name in own)


def friction_shapes(mechanism: Mechanism) -> list[Scalar]:
    """The numbers `friction_shape` of all laws, rad/s or m/s, rad or m, in the order of
    `frictions`."""
    laws = frictions(mechanism).values()
    return [getattr(law, name) for law in laws for name in friction_shape(law)]


def _named(owner: str, names: tuple[str, ...], numbers: Array) -> dict[str, float]:
    return {f"{owner}.{name}": float(number) for name, number in zip(names, numbers, strict=True)}


def numbers_of(body: Inertial) -> Array:
    """The parameters `BODY` (10,) of a body, about the origin of its link's frame."""
    I = body.inertia_about_origin
    return array([body.mass, *body.first_moment, *(I[i, j] for i, j in ENTRIES)])


def body_of(numbers: Array, name: str = "the body") -> Inertial:
    """The body with the parameters `BODY` (10,).

    Raises:
        InputError: a first moment without mass.
    """
    mass, moment = float(numbers[0]), numbers[1:4]
    inertia = zeros(3, 3)
    for (i, j), number in zip(ENTRIES, numbers[4:], strict=True):
        inertia[i, j] = inertia[j, i] = number
    if mass == 0:
        if moment.any():
            raise wrong(InputError, f"first moment of {name}", moment.tolist(), "0 without mass")
        return Inertial(0.0, zeros(3), inertia)
    center = moment / mass
    # I_C = I_O - m (c·c 1 - c cᵀ)
    return Inertial(mass, center, inertia - point_inertia(mass, center))


def _by_name(values: Mapping[str, float] | ArrayLike, names: tuple[str, ...]) -> dict[str, float]:
    if isinstance(values, Mapping):
        for name in values:
            if name not in names:
                raise wrong(InputError, "parameters", name, "a name of standard_parameters")
        found = {name: float(value) for name, value in values.items()}
    else:
        vector = np.asarray(values, dtype=float)
        if vector.shape != (len(names),):
            raise wrong(InputError, "parameters", vector.shape, f"shape ({len(names)},)")
        found = dict(zip(names, vector.tolist(), strict=True))
    for name, value in found.items():
        if not np.isfinite(value):
            raise wrong(InputError, name, value, "a finite number")
    return found
