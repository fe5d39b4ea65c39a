# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots whose parameters are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from uncompiled import InverseDynamics

from robot_dynamics.identification import Recording, Stream
from robot_dynamics.identification.bodies import BASIS, pseudo_inertia
from robot_dynamics.identification.solve import Prior, solved
from robot_dynamics.mechanism import Friction, Inertial, Mechanism, Pose, Rotor
from robot_dynamics.mechanism.transform import rotation_to

SIX_AXIS = "package://robot_dynamics/urdf/six_axis.urdf"


def motion(n: int, duration: float, rate: float, seed: int = 0, reach: float = 1.0):
    """(time, q, qd, qdd): a Fourier series, smooth and rich, (k, n) each."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(duration * rate)) / rate
    harmonics = 2 * np.pi * np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    a, b = (
        rng.normal(0, reach / 2.5, (2, len(harmonics), n)) / np.arange(1, 6)[None, :, None] ** 0.5
    )
    phase = time[:, None] * harmonics
    s, c = np.sin(phase), np.cos(phase)
    w = harmonics
    q = s @ a + c @ b
    qd = (c * w) @ a - (s * w) @ b
    qdd = -(s * w**2) @ a - (c * w**2) @ b
    return time, q, qd, qdd


def recording(
    mechanism: Mechanism,
    duration: float = 20.0,
    rate: float = 200.0,
    *,
    seed: int = 0,
    noise: float = 0.0,
    reach: float = 1.0,
    start: float = 0.0,
) -> Recording:
    """What the robot's drives would report; noise is relative to each joint's RMS torque."""
    names = mechanism.joint_names
    time, q, qd, qdd = motion(len(names), duration, rate, seed, reach)
    tau = InverseDynamics(mechanism)(q, qd, qdd)
    rng = np.random.default_rng(seed + 1)
    tau = tau + noise * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Recording(f"simulated {seed}", (Stream(names, time + start, q, qd, tau),))


def changed(mechanism: Mechanism, seed: int = 0, by: float = 0.3, smooth: bool = True) -> Mechanism:
    """A robot that differs from its description: every body scaled and shifted, with friction and
    rotors where none are described. All of it is physically possible."""
    rng = np.random.default_rng(seed)
    links = []
    for link in mechanism.links:
        body = link.inertial
        if not body.is_nothing:
            size = np.sqrt(np.trace(body.inertia) / body.mass) if body.mass else 0.0
            body = Inertial(
                body.mass * (1 + by * rng.uniform(-1, 1)),
                body.center_of_mass + by * size * rng.uniform(-1, 1, 3),
                body.inertia * (1 + by * rng.uniform(-1, 1)),
            )
        joint = link.joint
        if joint.moves and joint.coupling is None:
            law = Friction(rng.uniform(1, 3), rng.uniform(2, 4))
            if smooth:
                law = replace(law, stribeck_torque=-law.coulomb, stribeck_rate=0.1)
            joint = replace(joint, friction=law)
        links.append(replace(link, inertial=body, joint=joint))
    rotors = []
    for link in mechanism.moving:
        origin = link.joint.origin @ Pose(rotation_to(link.joint.axis))
        inertia = np.diag([0.0, 0.0, rng.uniform(0.5, 1.5) * 1e-4])
        rotors.append(
            Rotor(link.joint.name, link.parent, origin, ((link.joint.name, 100.0),),
                  Inertial(0.0, np.zeros(3), inertia))
        )  # fmt: skip
    return replace(mechanism, links=tuple(links), rotors=tuple(rotors))


def miss(truth: Mechanism, found: Mechanism, seed: int = 100) -> float:
    """Largest torque error on another motion, over the largest torque."""
    n = len(truth.joint_names)
    _, q, qd, qdd = motion(n, 10.0, 50.0, seed)
    right = InverseDynamics(truth)(q, qd, qdd)
    return float(np.abs(InverseDynamics(found)(q, qd, qdd) - right).max() / np.abs(right).max())


def left_to_gain(G, g, prior: Prior, gamma: float, x, H) -> float:
    """The squared Newton decrement at x in units of γ: twice by how much the cost of a fit could
    still fall."""
    slope, block = G @ x - g, 10 * len(prior.bodies)
    for k, P in enumerate(prior.bodies):
        own = slice(10 * k, 10 * k + 10)
        pull = np.linalg.inv(P) - np.linalg.inv(pseudo_inertia(x[own]))
        slope[own] += gamma * np.array([np.trace(pull @ B) for B in BASIS])
    # -log(1 + s / r) of each rotor, and ½ λ s² of each scalar
    scalars, per = x[block:], prior.per_rotor
    slope[block:] += prior.tightness * scalars + gamma * (per - per / (1 + per * scalars))
    return float(abs(slope @ solved(H, slope)) / gamma)
