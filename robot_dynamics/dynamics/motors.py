# SPDX-License-Identifier: Apache-2.0
"""Torques on the motors' side of the gears.

The drive torque is the motor's electromagnetic torque, including that for its own rotor; the gear
torque is the part that enters the gear:

    drive:  τ = Γᵀ τ_drive          (power: τ·q̇ = τ_drive·Γ q̇)
    gear:   τ_gear = τ_drive - n_r  (n_r: moment on the rotor itself about its spin axis, which
                                     includes its own friction)

For one motor per joint the first is τ_drive = τ_j / Γ_j. If several motors share a joint,
the torques of least norm are returned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..formulations import newton_euler
from ..formulations.form import STANDING, Form
from ..formulations.layout import Recompile
from ..formulations.options import Options
from ..mechanism import Friction, Inertial, Mechanism, Rotor
from ..mechanism.transform import rotors_as_links
from ..scalar import Array, Floats, array


class MotorTorques(NamedTuple):
    """Torques at the motors' shafts, (…, m) each, N·m, in the order of `motor_names`."""

    drive: Floats
    """The motors' electromagnetic torques"""
    gear: Floats
    """The torques that enter the gears"""


class MotorSide:
    """The motors of a mechanism: every rotor that turns, even if only its gear ratio is known.
    It is immutable.

    Args:
        mechanism: with rotors.
        options: those of the joint torques, whose terms determine the torques of the rotors.
        form: `FLOATING` for a mechanism on six joints, whose q is (…, n + 1).
    """

    def __init__(self, mechanism: Mechanism, options: Options, form: Form = STANDING):
        model, terms = options.effective_rotors, options.terms
        self.gears = gear_matrix(mechanism)
        n = len(mechanism.joint_names)
        self._laws = tuple(rotor.friction for rotor in motors(mechanism))
        # the links' bodies and the joints' friction have no effect on the rotors
        geometry = replace(
            mechanism,
            rotors=motors(mechanism),
            links=tuple(
                replace(link, inertial=Inertial(), joint=replace(link.joint, friction=Friction()))
                for link in mechanism.links
            ),
        )

        moves, weighs, still = "rotors" in terms, "gravity" in terms, np.zeros(n)
        smoothing = options.friction_smoothing if "friction" in terms else None

        def moments(q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
            v, a = (qd, qdd) if moves else (still, still)
            g = gravity if weighs else np.zeros(3)
            state = form.on_joints(geometry, q, v, a, g)
            spin = spin_torques(replace(geometry, gravity=state[3]), model, *state[:3])
            return spin if smoothing is None else spin + rotor_friction(geometry, qd, smoothing)

        content = (geometry.links, geometry.rotors, geometry.base, model, moves, weighs, smoothing,
                   form.extra)  # fmt: skip
        function = Function(
            "spin_torques", ("q", "qd", "qdd"), (n + form.extra, n, n), (len(geometry.rotors),), 3,
            moments, content, mechanism.name,
        )  # fmt: skip
        self._kernel = Kernel(function, mechanism.gravity, options.backend, options.threads)

    def over(self, mechanism: Mechanism) -> MotorSide:
        """Itself, for a mechanism with the same rotors.

        Raises:
            Recompile: their friction differs.
        """
        if self._laws != tuple(rotor.friction for rotor in motors(mechanism)):
            raise Recompile
        return self

    def torques(
        self,
        actuated: list[int],
        tau: Floats,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        gravity: Array,
    ) -> MotorTorques:
        """The motors' torques (…, m), N·m.

        Args:
            actuated: the columns of q, qd and qdd that tau belongs to.
            tau: (…, k) joint torques, N·m or N.
            q: (…, n) positions, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            gravity: (3,), m/s², which acts on unbalanced rotors.
        """
        # τ = Γᵀ τ_drive
        drive = tau @ np.linalg.pinv(self.gears[:, actuated], rcond=1e-12)
        return MotorTorques(drive, drive - self._kernel.at(gravity).call(q, qd, qdd))


def motors(mechanism: Mechanism) -> tuple[Rotor, ...]:
    """The rotors that turn, which excludes those of locked joints."""
    return tuple(rotor for rotor in mechanism.rotors if rotor.ratios)


def gear_matrix(mechanism: Mechanism) -> Floats:
    """The gear matrix Γ (m, n): rotor rates = Γ · joint rates."""
    rows = [mechanism.row(rotor.ratios) for rotor in motors(mechanism)]
    return np.array(rows, dtype=float).reshape(len(rows), len(mechanism.joint_names))


def rotor_friction(mechanism: Mechanism, qd: Array, smoothing: float) -> Array:
    """The friction (m,) of each rotor itself, N·m.

    Args:
        mechanism: the robot, whose rotors all turn.
        qd: (n,) rates of the independent joints, rad/s or m/s.
        smoothing: rad/s, as in `InverseDynamics`.
    """
    laws = (rotor.friction or Friction() for rotor in mechanism.rotors)
    rates = gear_matrix(mechanism) @ array(qd)
    return array(
        law.torque(rate, law.heading(rate, 0.0, smoothing))
        for law, rate in zip(laws, rates, strict=True)
    )


def spin_torques(mechanism: Mechanism, model: str, q: Array, qd: Array, qdd: Array) -> Array:
    """The moment n_r (m,) on each rotor about its spin axis, N·m.

    Args:
        mechanism: the robot, whose rotors all turn.
        model: the rotor model: full, reflected or none.
        q: (n,) positions of the independent joints, rad or m.
        qd: (n,) rates, rad/s or m/s.
        qdd: (n,) accelerations, rad/s² or m/s².
    """
    rotors = mechanism.rotors
    if model == "reflected":
        rates = gear_matrix(mechanism) @ array(qdd)
        return array(
            rotor.inertial.inertia[2, 2] * rate for rotor, rate in zip(rotors, rates, strict=True)
        )
    if model == "none":
        return np.zeros(len(rotors))
    # exactly this torque belongs to a rotor's own coordinate in the extended tree
    tree = newton_euler.prepare(rotors_as_links(mechanism))
    S, s = tree.coordinates()
    x, v, a = (array(each) for each in (q, qd, qdd))
    tau = newton_euler.torques(tree, S @ x + s, S @ v, S @ a)
    spins = iter(tau[len(mechanism.moving) :])
    return array(0.0 if rotor.inertial.is_nothing else next(spins) for rotor in rotors)
