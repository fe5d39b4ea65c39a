# SPDX-License-Identifier: Apache-2.0
"""A robot's equations as JavaScript, with all its numbers compiled in except gravity and a payload.

Every program takes vectors of plain numbers and returns one array. The last vector of programs that
depend on gravity is `world`: gravity (3,), m/s², in the base frame, and the mass (kg) of a body at
the origin of one link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
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


def programs(dynamics: InverseDynamics, rotors: str, load: str) -> dict[str, str]:
    """The programs of a robot by name.

    Args:
        dynamics: the robot.
        rotors: the rotor model.
        load: the link that carries the payload.
    """
    mechanism, closed = dynamics.mechanism, dynamics.closed
    options, model = Options(FORMULATION, rotors), None if closed is None else closed.model
    found = {"poses": _poses(mechanism)}
    tree, whole = mechanism, _Weighed(mechanism, options, load, model)
    if closed is None:
        names = ("torques", "mass_matrix", "gravity", "bias")
        found |= {name: whole.program(name) for name in names}
    else:
        found |= _of_closed_chain(closed, whole)
        tree = replace(mechanism, loops=(), actuated=(), driving=(), sensed=(), platform=None)
    for name, way in _ways(mechanism, options).items():
        text = _Weighed(mechanism, way, load, model).program("torques")
        if way.terms != TERMS or len(text) <= LARGEST:
            found[name] = text
    found["potential"] = _potential(tree, rotors)
    found["kinetic"] = _Weighed(tree, options, load).program("kinetic_energy")
    return found


def _ways(mechanism: Mechanism, options: Options) -> dict[str, Options]:
    """The options of further programs for the torques: of each term, by each other formulation
    (without a payload), and with each other rotor model."""
    bodies = len(mechanism.links) + len(mechanism.rotors)
    ways = {f"of_{term}": replace(options, terms=(term,)) for term in TERMS}
    ways |= {
        f"formulation_{name}": replace(options, formulation=name)
        for name in FORMULATIONS
        if name != options.formulation and (name != "lagrange_euler" or bodies <= MOST_BODIES)
    }
    if any(not rotor.inertial.is_nothing for rotor in mechanism.rotors):
        others = (name for name in ROTOR_MODELS if name != options.rotors)
        ways |= {f"rotors_{name}": replace(options, rotors=name) for name in others}
    return ways


# --- programs with gravity and payload as arguments ---------------------------------------------


class _Weighed:
    """The functions of a robot, with gravity and payload as arguments.

    Args:
        mechanism: the robot.
        options: the formulation, the rotor model and the terms of the torques.
        load: the link that carries the payload, if the parameters are linear in its mass.
        model: of the robot, if it has loops.
    """

    def __init__(
        self, mechanism: Mechanism, options: Options, load: str, model: ClosedModel | None = None
    ):
        robot: Loadable[Any] = (
            loadable(mechanism, options)
            if model is None
            else loadable_model(mechanism, options, model)
        )
        self._functions = robot.functions
        self._p = robot.parameters([load] if options.formulation == FORMULATION else [])

    def program(self, name: str) -> str:
        """The program of a function of `OpenChain` or `ClosedModel`."""
        function: Function = self._functions.function(name)

        def equations(*vectors: Array) -> Iterable[Any]:
            *states, world = vectors
            return function.equations(
                *states, self._p.at(world[:3], world[3 : 3 + len(self._p.loads)])
            )

        return _printed(equations, function.sizes)


def _of_closed_chain(closed: ClosedChain, weighed: _Weighed) -> dict[str, str]:
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
