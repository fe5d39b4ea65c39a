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

from ...closure import ClosedChain
from ...closure.dynamics.control_model import ClosedModel
from ...codegen import Function
from ...codegen.guard import guarded
from ...codegen.js_code import source
from ...codegen.recorder import record
from ...dynamics import InverseDynamics
from ...dynamics.loadable import Loadable, loadable, loadable_model
from ...formulations import FORMULATIONS, kinematics
from ...formulations.equations import TERMS
from ...formulations.options import Options
from ...mechanism import Mechanism
from ...mechanism.transform import ROTOR_MODELS, rotors_as_links, with_rotor_model
from ...scalar import Array

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
    def carriers(self) -> tuple[str, ...]:
        """The link that carries the payload, unless the parameters are not linear in its mass."""
        return (self.load,) if self.formulation == FORMULATION else ()


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
    model = None if dynamics.closed is None else dynamics.closed.model
    return _Weighed(dynamics.mechanism, choices, terms, model).program("torques")


# --- programs with gravity and payload as arguments ---------------------------------------------


class _Weighed:
    """The functions of a robot, with gravity and payload as arguments.

    Args:
        mechanism: the robot.
        choices: of the programs.
        terms: the terms of the torques.
        model: of the robot, if it has loops.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        choices: Choices,
        terms: Iterable[str],
        model: ClosedModel | None = None,
    ):
        options = Options(choices.formulation, choices.rotors, tuple(terms))
        robot: Loadable[Any] = (
            loadable(mechanism, options)
            if model is None
            else loadable_model(mechanism, options, model)
        )
        self._functions = robot.functions
        self._p = robot.parameters(choices.carriers)

    def program(self, name: str) -> str:
        """The program of a function of `OpenChain` or `ClosedModel`."""
        function: Function = self._functions.function(name)

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, world = vectors
            return function.equations(
                *states, self._p.at(world[:3], world[3 : 3 + len(self._p.loads)])
            )

        return _printed(equations, function.sizes)


def _of_closed_chain(closed: ClosedChain, mechanism: Mechanism, choices: Choices) -> dict[str, str]:
    weighed = _Weighed(mechanism, choices, TERMS, closed.model)
    names = ["closing", "torques", "gravity", "mass_matrix", "coriolis_column", "motion"]
    if closed.sensed:
        # readings may be inconsistent: first follow the motors
        names += ["motors_closing", "sensed_accelerations"]
    found = {name: weighed.program(name) for name in names}
    closure, n = closed.model.closure, len(closed.coordinate_names)
    found["jacobian"] = _printed(lambda q_r, _: np.ravel(closure.scaled_jacobian(q_r)), (n,))
    return found


# --- the tree -----------------------------------------------------------------------------------


def _poses(mechanism: Mechanism) -> str:
    """The poses of all links except the base at the tree's q, 12 numbers each: the rows of R, then
    p."""

    def equations(q: Array) -> Iterable[Any]:
        poses = kinematics.poses(mechanism, q)
        for link in mechanism.links:
            yield from (*poses[link.name].rotation.ravel(), *poses[link.name].translation)

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
