"""Torques on the motors' side of the gears, over any scalar.

The drive torque is what the motor's field must give, the rotor's own motion included; the gear
torque is what then enters the gear:

    drive:  τ = Γᵀ τ_drive          (power: τ·q̇ = τ_drive·Γ q̇)
    gear:   τ_gear = τ_drive - n_r  (n_r: what the rotor itself takes about its spin axis)

For one motor a joint the first reads τ_drive = τ_j / Γ_j. Where several motors share a joint,
the torques of least norm are given.
"""

from __future__ import annotations

import numpy as np

from .formulations import newton_euler
from .mechanism import Mechanism, Rotor
from .mechanism.transform import rotors_as_links, standard_form
from .scalar import Array, Scalar, array


def motors(mechanism: Mechanism) -> tuple[Rotor, ...]:
    """Those with a gear ratio: every rotor, also one known by its transmission alone."""
    return tuple(rotor for rotor in mechanism.rotors if rotor.ratios)


def gear_matrix(mechanism: Mechanism) -> Array:
    """Γ (m, n): motor rates of joint rates."""
    names = mechanism.joint_names
    gears = np.zeros((len(motors(mechanism)), len(names)))
    for row, rotor in zip(gears, motors(mechanism), strict=True):
        for name, ratio in rotor.ratios:
            row[names.index(name)] += ratio
    return gears


def motor_torques(
    mechanism: Mechanism, model: str, tau: Array, q: Array, qd: Array, qdd: Array
) -> tuple[Array, Array]:
    """(drive, gear) torques (m,) each, N·m, from the joint torques tau (n,) at q, qd, qdd (n,).

    model: the rotor model that tau was computed with; its rotors take what it says they do.
    """
    drive = np.linalg.pinv(gear_matrix(mechanism).T, rcond=1e-12) @ array(tau)
    return drive, drive - _spin_torques(mechanism, model, q, qd, qdd)


def _spin_torques(mechanism: Mechanism, model: str, q: Array, qd: Array, qdd: Array) -> Array:
    """n_r (m,): what each rotor takes about its spin axis."""
    taken: list[Scalar] = []
    if model == "full":
        # a rotor's joint torque in the extended tree is exactly this
        tree = standard_form(rotors_as_links(mechanism))
        S, s = tree.coordinates()
        x, v, a = (array(each) for each in (q, qd, qdd))
        spin = newton_euler.torques(tree, S @ x + s, S @ v, S @ a)[len(mechanism.moving) :]
        bodies = iter(spin)
        for rotor in motors(mechanism):
            taken.append(0.0 if rotor.inertial.is_nothing else next(bodies))
    elif model == "reflected":
        rates = gear_matrix(mechanism) @ array(qdd)
        for rotor, rate in zip(motors(mechanism), rates, strict=True):
            taken.append(rotor.inertial.inertia[2, 2] * rate)
    else:
        taken = [0.0] * len(motors(mechanism))
    return array(taken)
