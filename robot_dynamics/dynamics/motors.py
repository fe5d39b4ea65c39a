# SPDX-License-Identifier: Apache-2.0
"""Torques on the motors' side of the gears.

The drive torque is what the motor's field must give, the rotor's own motion included; the gear
torque is what then enters the gear:

    drive:  τ = Γᵀ τ_drive          (power: τ·q̇ = τ_drive·Γ q̇)
    gear:   τ_gear = τ_drive - n_r  (n_r: what the rotor itself takes about its spin axis)

For one motor a joint the first reads τ_drive = τ_j / Γ_j. Where several motors share a joint,
the torques of least norm are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ClosedChain
from ..codegen import Function, Kernel
from ..formulations import newton_euler
from ..formulations.form import STANDING, Form
from ..mechanism import Friction, Inertial, Mechanism, Rotor
from ..mechanism.transform import rotors_as_links
from ..scalar import Array, Floats, array
from .inputs import Options


class MotorTorques(NamedTuple):
    """(…, m) each, N·m, in the order of `motor_names`."""

    drive: Floats
    gear: Floats


class MotorSide:
    """The motors of a mechanism: every rotor that turns, also one that is known by its gear ratio
    alone. It never changes.

    Args:
        mechanism: with rotors.
        options: the joint torques': a rotor takes what their terms have of its motion and its
            weight.
        form: `FLOATING` of a mechanism on six joints, whose q is (…, n + 1).
    """

    def __init__(self, mechanism: Mechanism, options: Options, form: Form = STANDING):
        model, terms = options.rotors_felt, options.terms
        self.gears = gear_matrix(mechanism)
        n = len(mechanism.joint_names)
        # what the links weigh and how joints rub is nothing to a rotor
        geometry = replace(
            mechanism,
            rotors=motors(mechanism),
            links=tuple(
                replace(link, inertial=Inertial(), joint=replace(link.joint, friction=Friction()))
                for link in mechanism.links
            ),
        )

        moves, weighs, still = "rotors" in terms, "gravity" in terms, np.zeros(n)

        def taken(q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
            v, a = (qd, qdd) if moves else (still, still)
            pulled = gravity if weighs else np.zeros(3)
            state = form.on_joints(geometry, q, v, a, pulled)
            return spin_torques(replace(geometry, gravity=state[3]), model, *state[:3])

        content = (geometry.links, geometry.rotors, geometry.base, model, moves, weighs, form.extra)
        function = Function(
            "spin_torques", ("q", "qd", "qdd"), (n + form.extra, n, n), (len(geometry.rotors),), 3,
            taken, content, mechanism.name,
        )  # fmt: skip
        self._taken = Kernel(function, mechanism.gravity, options.backend, options.threads)

    def torques(
        self,
        actuated: list[int],
        tau: Floats,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        gravity: Array,
    ) -> MotorTorques:
        """From the torques tau (…, k) of the joints in the columns `actuated` of q, qd, qdd.

        gravity (3,), m/s²: an unbalanced rotor feels it.
        """
        # τ = Γᵀ τ_drive
        drive = tau @ np.linalg.pinv(self.gears[:, actuated], rcond=1e-12)
        return MotorTorques(drive, drive - self._taken.at(gravity).call(q, qd, qdd))


def tree_state(
    closed: ClosedChain, q_r: Floats, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
) -> tuple[Floats, Floats, Floats]:
    """(q, qd, qdd) (…, n) of the tree's joints of these names, from a closed configuration
    (…, n_r) and the control coordinates' rates and accelerations."""
    order = [closed.coordinate_names.index(name) for name in names]
    q, rates, accelerations = np.broadcast_arrays(q_r, *closed.motion(q_r, qd, qdd))
    return q[..., order], rates[..., order], accelerations[..., order]


def motors(mechanism: Mechanism) -> tuple[Rotor, ...]:
    """The rotors that turn: what holds a locked joint is not its motor."""
    return tuple(rotor for rotor in mechanism.rotors if rotor.ratios)


def gear_matrix(mechanism: Mechanism) -> Floats:
    """Γ (m, n): rotor rates of joint rates."""
    names, turning = mechanism.joint_names, motors(mechanism)
    gears = np.zeros((len(turning), len(names)))
    for row, rotor in zip(gears, turning, strict=True):
        for name, ratio in rotor.ratios:
            row[names.index(name)] += ratio
    return gears


def spin_torques(mechanism: Mechanism, model: str, q: Array, qd: Array, qdd: Array) -> Array:
    """n_r (m,), N·m: what each rotor takes about its spin axis, at q, qd, qdd (n,)."""
    rotors = mechanism.rotors
    if model == "reflected":
        rates = gear_matrix(mechanism) @ array(qdd)
        return array(
            rotor.inertial.inertia[2, 2] * rate for rotor, rate in zip(rotors, rates, strict=True)
        )
    if model == "none":
        return np.zeros(len(rotors))
    # a rotor's own coordinate in the extended tree has exactly this torque
    tree = newton_euler.prepare(rotors_as_links(mechanism))
    S, s = tree.coordinates()
    x, v, a = (array(each) for each in (q, qd, qdd))
    tau = newton_euler.torques(tree, S @ x + s, S @ v, S @ a)
    spins = iter(tau[len(mechanism.moving) :])
    return array(0.0 if rotor.inertial.is_nothing else next(spins) for rotor in rotors)
