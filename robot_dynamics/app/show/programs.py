# SPDX-License-Identifier: Apache-2.0
"""A robot's equations as JavaScript, with all its numbers compiled in except gravity and a payload.

Every program takes vectors of plain numbers and returns one array. The last vector of programs that
depend on gravity is `world`: gravity (3,), m/s², in the base frame, and the mass (kg) of a body at
the origin of one link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...chains.open_chain import OpenChain
from ...closure import ClosedChain
from ...closure.dynamics.control_model import ClosedModel
from ...closure.dynamics.kernels import ParameterVector
from ...closure.dynamics.subsystems import Subsystems
from ...codegen.guard import guarded
from ...codegen.js_code import source
from ...codegen.recorder import record
from ...dynamics import InverseDynamics
from ...formulations import FORMULATIONS, kinematics
from ...formulations.equations import TERMS
from ...formulations.options import Options
from ...mechanism import Inertial, Mechanism, Pose
from ...mechanism.transform import ROTOR_MODELS, rotors_as_links, with_payload, with_rotor_model
from ...scalar import Array, Floats

WORLD = 4
"""The size of `world`: gravity and payload"""
FORMULATION = "newton_euler"
"""A formulation that uses only the moments of bodies, which are additive"""
MOST_BODIES = 16
"""Largest number of bodies for Lagrange–Euler, whose operations grow with its fourth power"""
LARGEST = 150_000
"""Largest number of characters of a program that is only for comparison; a longer one is left
out"""


@dataclass(frozen=True)
class Choices:
    """How the programs are made."""

    rotors: str
    load: str
    """The link that carries the payload"""
    formulation: str = FORMULATION

    @property
    def carrier(self) -> str | None:
        """The link on whose payload the parameters depend; None: they are not linear in its
        mass."""
        return self.load if self.formulation == FORMULATION else None


def programs(dynamics: InverseDynamics, choices: Choices) -> dict[str, str]:
    """The programs of a robot by name."""
    mechanism = dynamics.mechanism
    closed = dynamics.closed
    found = {"poses": _poses(mechanism)}
    tree = mechanism
    if closed is not None:
        found |= _of_closed_chain(closed, mechanism, choices)
        tree = replace(mechanism, loops=(), actuated=(), driving=(), sensed=(), platform=None)
    weighed = _Weighed(tree, choices, TERMS)
    if closed is None:
        names = ("torques", "mass_matrix", "gravity", "bias")
        found |= {name: weighed.program(name) for name in names}
    found |= {f"of_{term}": _torques(dynamics, choices, [term]) for term in TERMS}
    found |= _others(dynamics, choices)
    found["potential"] = _potential(tree, choices.rotors)
    found["kinetic"] = weighed.program("kinetic_energy")
    return found


def _others(dynamics: InverseDynamics, choices: Choices) -> dict[str, str]:
    """`torques` for each other formulation, without a payload, and each other rotor model."""
    mechanism = dynamics.mechanism
    bodies = len(mechanism.links) + len(mechanism.rotors)
    ways = {
        f"formulation_{name}": replace(choices, formulation=name)
        for name in FORMULATIONS
        if name != choices.formulation and (name != "lagrange_euler" or bodies <= MOST_BODIES)
    }
    if any(not rotor.inertial.is_nothing for rotor in mechanism.rotors):
        ways |= {
            f"rotors_{name}": replace(choices, rotors=name)
            for name in ROTOR_MODELS
            if name != choices.rotors
        }
    found = {}
    for name, way in ways.items():
        if len(text := _torques(dynamics, way, TERMS)) <= LARGEST:
            found[name] = text
    return found


def _torques(dynamics: InverseDynamics, choices: Choices, terms: Iterable[str]) -> str:
    """The motors' torques as a function of the configuration, q̇ and q̈."""
    closed = dynamics.closed
    if closed is None:
        return _Weighed(dynamics.mechanism, choices, terms).program("torques")
    model = _LoadedModel(closed.model, dynamics.mechanism, choices, terms)
    n, k = len(closed.coordinate_names), len(closed.joint_names)
    return model.program("torques", (n, k, k))


# --- open chains --------------------------------------------------------------------------------


class _Weighed:
    """The functions of an open chain, with gravity and payload as arguments."""

    def __init__(self, mechanism: Mechanism, choices: Choices, terms: Iterable[str]):
        options = Options(choices.formulation, choices.rotors, tuple(terms))
        self._chain = OpenChain(mechanism, options)
        self._p = _Affine.of(
            lambda robot: self._chain.over(robot).parameters, mechanism, choices.carrier
        )

    def program(self, name: str) -> str:
        """The program of a function of `OpenChain.function`."""
        function = self._chain.function(name)

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, world = vectors
            return function.equations(*states, self._p.at(world))

        return _printed(equations, function.sizes)


@dataclass(frozen=True, eq=False)
class _Affine:
    """A kernel's parameters as affine functions of `world`.

    They are linear in gravity, and in the mass of a body, as moments of bodies are additive.
    """

    still: Floats
    """(p,) the parameters without gravity and payload"""
    slopes: Floats
    """(p, 4) their derivatives with respect to gravity and the payload's mass"""

    @classmethod
    def of(
        cls, values: Callable[[Mechanism], Floats], mechanism: Mechanism, load: str | None
    ) -> _Affine:
        """The affine functions for a robot.

        Args:
            values: returns the parameters of a mechanism of the same geometry.
            mechanism: the robot.
            load: the link that carries the payload; None: the parameters do not depend on it.
        """
        weightless = replace(mechanism, gravity=np.zeros(3))
        still = values(weightless)
        changed = [replace(mechanism, gravity=g) for g in np.eye(3)]
        payload = weightless if load is None else with_payload(weightless, load, Inertial(1.0))
        changed.append(payload)
        slopes = np.stack([values(each) - still for each in changed], axis=1)
        # rounding errors of differences of large numbers
        slopes[abs(slopes) <= 1e-13 * np.maximum(1.0, abs(still))[:, None]] = 0.0
        return cls(still, slopes)

    def at(self, world: Array) -> Array:
        """The parameters for `world`, of any scalar type."""
        return np.array(
            [
                value + sum(slope * x for slope, x in zip(row, world, strict=True) if slope)
                for value, row in zip(self.still.tolist(), self.slopes.tolist(), strict=True)
            ],
            dtype=object,
        )


# --- closed chains ------------------------------------------------------------------------------


def _of_closed_chain(closed: ClosedChain, mechanism: Mechanism, choices: Choices) -> dict[str, str]:
    model = _LoadedModel(closed.model, mechanism, choices, TERMS)
    n, k = len(closed.coordinate_names), len(closed.joint_names)
    found = {
        "closing": model.program("closing", (k, n - k)),
        "torques": model.program("torques", (n, k, k)),
        "gravity": model.program("gravity", (n,)),
        "mass_matrix": model.program("mass_matrix", (n,)),
        "coriolis_column": model.program("coriolis_column", (n, k, k)),
        "motion": model.program("motion", (n, k, k)),
        "jacobian": _printed(
            lambda q_r, _: np.ravel(closed.model.closure.scaled_jacobian(q_r)), (n,)
        ),
    }
    if closed.sensed:
        # readings may be inconsistent: first follow the motors
        a = closed.model.geometry.actuated
        found["motors_closing"] = model.program("motors_closing", (a, n - a))
        found["sensed_accelerations"] = model.program("sensed_accelerations", (n, k, a))
    return found


class _LoadedModel:
    """The functions of a closed chain, with gravity and payload as arguments."""

    def __init__(
        self,
        model: ClosedModel,
        mechanism: Mechanism,
        choices: Choices,
        terms: Iterable[str],
    ):
        def parts(robot: Mechanism) -> Subsystems:
            geometry = model.geometry.over(robot)
            return Subsystems.of(geometry, choices.formulation, choices.rotors, terms)

        bare = parts(mechanism)
        layout = self._layout = ParameterVector(bare)
        self._model = model.over(bare)
        self._p = _Affine.of(lambda robot: layout.values(parts(robot)), mechanism, choices.carrier)

    def program(self, name: str, sizes: tuple[int, ...]) -> str:
        """The program of a function of `ClosedModel`.

        Args:
            name: the function.
            sizes: the sizes of its arguments before `world`.
        """

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, world = vectors
            filled = self._model.over(self._layout.filled(self._p.at(world)))
            return np.ravel(getattr(filled, name)(*states))

        return _printed(equations, sizes)


# --- the tree -----------------------------------------------------------------------------------


def _poses(mechanism: Mechanism) -> str:
    """The poses of all links except the base at the tree's q, 12 numbers each: the rows of R, then
    p."""
    S, s = mechanism.coordinates()

    def equations(q: Array) -> Iterable[Any]:
        position = dict(zip(mechanism.tree_names, S @ q + s, strict=True))
        poses = {mechanism.base: Pose()}
        for link in mechanism.links:
            here = poses[link.parent] @ link.joint.pose(position.get(link.joint.name, 0.0))
            poses[link.name] = here
            yield from (*here.rotation.ravel(), *here.translation)

    return source(record(equations, (len(mechanism.joint_names),)))


def _potential(tree: Mechanism, rotors: str) -> str:
    """The potential energy at q and gravity, J, without the payload."""
    whole = rotors_as_links(with_rotor_model(tree, rotors))

    def equations(q: Array, world: Array) -> Iterable[Any]:
        return [kinematics.potential_energy(replace(whole, gravity=world[:3]), q)]

    return source(record(equations, (len(tree.joint_names), WORLD)))


def _printed(equations: Callable[..., Iterable[Any]], sizes: tuple[int, ...]) -> str:
    program = record(equations, (*sizes, WORLD))
    return source(guarded(program, len(sizes)))
