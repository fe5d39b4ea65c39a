# SPDX-License-Identifier: Apache-2.0
"""Robots for the benchmarks: random chains by seed, as a `Mechanism` and as the same URDF; how they
move."""

from __future__ import annotations

import numpy as np

import robot_dynamics as rd


def chain_urdf(joints: int, seed: int = 0) -> str:
    """A chain of revolute joints about arbitrary axes; every link has a full inertia tensor."""
    rng = np.random.default_rng(seed)
    parts = [f'<robot name="chain{joints}">', '<link name="base"/>']
    for i in range(joints):
        mass = rng.uniform(0.5, 5.0)
        points = rng.uniform(-0.2, 0.2, (4, 3))
        points -= points.mean(axis=0)
        I = mass / 4 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        parent = f"link{i - 1}" if i else "base"
        parts.append(
            f'<link name="link{i}"><inertial><origin xyz="{_text(rng.uniform(-0.2, 0.2, 3))}" '
            f'rpy="0 0 0"/><mass value="{mass!r}"/><inertia ixx="{_text(I[0, 0])}" '
            f'ixy="{_text(I[0, 1])}" ixz="{_text(I[0, 2])}" iyy="{_text(I[1, 1])}" '
            f'iyz="{_text(I[1, 2])}" izz="{_text(I[2, 2])}"/></inertial></link>'
            f'<joint name="joint{i}" type="continuous"><parent link="{parent}"/>'
            f'<child link="link{i}"/><origin xyz="{_text(rng.uniform(-0.4, 0.4, 3))}" '
            f'rpy="{_text(rng.uniform(-3, 3, 3))}"/><axis xyz="0 0 1"/></joint>'
        )
    return "".join([*parts, "</robot>"])


def chain(joints: int, seed: int = 0) -> rd.Mechanism:
    """The same, loaded."""
    return rd.load(chain_urdf(joints, seed))


def states(joints: int, count: int | None = None, seed: int = 1) -> list[np.ndarray]:
    """q, qd, qdd: (joints,), or (count, joints)."""
    rng = np.random.default_rng(seed)
    shape = (joints,) if count is None else (count, joints)
    return [rng.uniform(-1, 1, shape) for _ in range(3)]


def sines(
    t: np.ndarray, w: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, qd, qdd (k, n) at times (k,), s: Σ a sin wt + b cos wt; w (l,), rad/s, a and b (l, n)."""
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    return s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


def measured(
    mechanism: rd.Mechanism, duration: float, rate: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """t, q, qd, tau of a robot that moves by five harmonics; 2 % of the torques are noise."""
    t = np.arange(round(duration * rate)) / rate
    w = 2 * np.pi * np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    a, b = rng.normal(0, 0.4, (2, len(w), len(mechanism.joint_names)))
    q, qd, qdd = sines(t, w, a, b)
    tau = rd.InverseDynamics(mechanism)(q, qd, qdd)
    tau += 0.02 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return t, q, qd, tau


def _text(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))
