# SPDX-License-Identifier: Apache-2.0
"""Twenty realistic logs of simulated robots, with MuJoCo as the ground truth.

In the description that the methods get, every mass is wrong by up to 20 %, and friction and
reflected inertia are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from identification_methods import Case, Truth
from robots import sines

DURATION = 24.0
"""s of each log"""
JOINTS = 6
CURRENT_ERROR = 0.05
"""By which a data sheet's torque constant is off, at most"""

Motion = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Times (k,) to (q, qd, qdd), each (k, n)"""


@dataclass(frozen=True)
class Log:
    """What a log is like."""

    name: str
    rate: float
    """Hz"""
    rates: bool = True
    """Are velocities in it?"""
    position_noise: float = 2e-5
    """rad"""
    rate_noise: float = 5e-3
    """rad/s"""
    torque_noise: float = 0.02
    """Of each joint's RMS torque"""
    quantum: float = 0.0
    """rad, of the positions"""
    torque_quantum: float = 0.0
    """Of each joint's RMS torque"""
    jitter: float = 0.0
    """Of a period, of the stamps"""
    lost: float = 0.0
    """Of the messages"""
    republished: int = 1
    """Times that each message comes"""
    currents: bool = False
    friction: bool = True
    armature: bool = True
    points: bool = False
    """From point to point with rests, or a sum of sines?"""


LOGS = (
    Log("25 Hz", 25),
    Log("25 Hz, no rates", 25, rates=False),
    Log("50 Hz, no rates", 50, rates=False),
    Log("100 Hz", 100),
    Log("100 Hz, no rates", 100, rates=False),
    Log("500 Hz", 500),
    Log("500 Hz, no rates", 500, rates=False),
    Log("1 kHz, noisy torques", 1000, torque_noise=0.1),
    Log("1 kHz, no rates", 1000, rates=False),
    Log("5 kHz, no rates", 5000, rates=False, torque_noise=0.1),
    Log("200 Hz, positions of 1e-3 rad", 200, rates=False, position_noise=0, quantum=1e-3),
    Log("250 Hz, torques of 5 %", 250, torque_noise=0.005, torque_quantum=0.05),
    Log("125 Hz, jittered stamps", 125, jitter=0.3),
    Log("200 Hz, 20 % lost", 200, lost=0.2),
    Log("100 Hz, republished at 500 Hz", 100, republished=5),
    Log("250 Hz, currents", 250, currents=True, torque_noise=0.03),
    Log("500 Hz, noise-free", 500, position_noise=0, rate_noise=0, torque_noise=0),
    Log(
        "1 kHz, noise-free, no friction", 1000, position_noise=0, rate_noise=0, torque_noise=0,
        friction=False,
    ),
    Log("250 Hz, point to point", 250, points=True),
    Log("500 Hz, noisy rates", 500, rate_noise=0.1, torque_noise=0.05),
)  # fmt: skip


def urdf(masses: np.ndarray) -> str:
    """A six-axis arm as URDF, its links' masses (kg) and, with them, their inertias given."""
    lengths = (0.15, 0.4, 0.35, 0.12, 0.1, 0.08)
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
    parts = ['<robot name="arm"><link name="base"/>']
    for k, (length, axis, mass) in enumerate(zip(lengths, axes, masses.tolist(), strict=True)):
        along, i = mass * (length**2 + 0.1**2) / 12, mass * 0.1**2 / 8
        before = 0.1 if k == 0 else lengths[k - 1]
        parts.append(
            f'<link name="link{k + 1}"><inertial><origin xyz="0.01 0.015 {length / 2}"/>'
            f'<mass value="{mass!r}"/><inertia ixx="{along!r}" iyy="{along!r}" izz="{i!r}" '
            f'ixy="{0.05 * i!r}" ixz="0" iyz="{-0.05 * i!r}"/></inertial></link>'
            f'<joint name="joint{k + 1}" type="revolute"><origin xyz="0 0 {before}"/>'
            f'<axis xyz="{axis}"/><parent link="{f"link{k}" if k else "base"}"/>'
            f'<child link="link{k + 1}"/>'
            '<limit lower="-3" upper="3" effort="500" velocity="4"/></joint>'
        )
    return "".join([*parts, "</robot>"])


def harmonics(rng: np.random.Generator) -> Motion:
    """Five harmonics of 0.1 Hz."""
    w = 2 * np.pi * np.arange(1, 6) * 0.1
    a, b = rng.normal(0, 0.25, (2, len(w), JOINTS))
    return lambda t: sines(t, w, a, b)


def points(rng: np.random.Generator) -> Motion:
    """To a random place within 1.2 s, then 0.4 s of rest (quintic)."""
    targets = rng.uniform(-1.2, 1.2, (round(DURATION / 1.6) + 3, JOINTS))
    move, each = 1.2, 1.6

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k = np.clip((t / each).astype(int), 0, len(targets) - 2)
        s = np.clip((t - k * each) / move, 0, 1)[:, None]
        way = targets[k + 1] - targets[k]
        return (
            targets[k] + way * (10 * s**3 - 15 * s**4 + 6 * s**5),
            way * (30 * s**2 - 60 * s**3 + 30 * s**4) / move,
            way * (60 * s - 180 * s**2 + 120 * s**3) / move**2,
        )

    return motion


@dataclass(frozen=True)
class Robot:
    """What is true."""

    urdf: str
    armature: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray

    def moved(self, motion: Motion, step: float) -> tuple[np.ndarray, Truth]:
        """(times, states and motor torques) of MuJoCo's robot, which a controller makes follow."""
        import mujoco

        text = self.urdf.replace(
            '<robot name="arm">',
            '<robot name="arm"><mujoco><compiler fusestatic="false"/></mujoco>',
        )
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = step
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        model.jnt_limited[:] = 0
        model.dof_armature[:] = self.armature
        data, reference = mujoco.MjData(model), mujoco.MjData(model)
        times = np.arange(round(DURATION / step)) * step
        q, qd, qdd = motion(times)
        data.qpos[:], data.qvel[:] = q[0], qd[0]
        rows = [np.empty_like(q) for _ in range(4)]
        for k in range(len(times)):
            # the robot's own friction is a torque that it applies, smooth within 1e-3 rad/s
            rubs = self.viscous * data.qvel + self.coulomb * np.tanh(data.qvel / 1e-3)
            reference.qpos[:], reference.qvel[:] = data.qpos, data.qvel
            reference.qacc[:] = qdd[k] + 40.0 * (qd[k] - data.qvel) + 400.0 * (q[k] - data.qpos)
            mujoco.mj_inverse(model, reference)
            motor = reference.qfrc_inverse + rubs
            data.qfrc_applied[:] = motor - rubs
            mujoco.mj_forward(model, data)
            for row, value in zip(rows, (data.qpos, data.qvel, data.qacc, motor), strict=True):
                row[k] = value
            mujoco.mj_step(model, data)
        return times, Truth(*rows)


def make(folder: Path, seed: int = 0, logs: tuple[Log, ...] = LOGS) -> list[Case]:
    """The cases, their logs written to this folder as CSV."""
    cases = []
    for number, log in enumerate(logs):
        rng = np.random.default_rng([seed, number])
        masses = np.array([6.0, 5.0, 3.5, 1.5, 1.0, 0.4])
        size = np.array([30.0, 60.0, 30.0, 8.0, 4.0, 1.0])
        robot = Robot(
            urdf(masses),
            log.armature * 0.015 * size,
            log.friction * 0.05 * size,
            log.friction * 0.08 * size,
        )
        place = folder / f"log{number + 1:02d}"
        place.mkdir(parents=True, exist_ok=True)
        wrong = urdf(masses * rng.uniform(0.8, 1.2, JOINTS))
        constants = 1 + CURRENT_ERROR * rng.uniform(-1, 1, JOINTS)
        paths, truth = [], None
        for name in ("fit", "validate"):
            motion = points(rng) if log.points else harmonics(rng)
            step = 1e-3 if log.rate <= 1000 else 1 / log.rate
            times, truth = robot.moved(motion, step)
            paths.append(str(place / f"{name}.csv"))
            _write(Path(paths[-1]), log, times, truth, constants, rng)
        assert truth is not None
        thin = max(1, round(0.01 / step))
        kept = Truth(*(getattr(truth, each)[::thin] for each in ("q", "qd", "qdd", "tau")))
        cases.append(Case(log.name, wrong, (paths[0],), (paths[1],), truth=kept))
    return cases


def _write(
    path: Path, log: Log, times: np.ndarray, truth: Truth, constants: np.ndarray,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    step = max(1, round((times[1] - times[0]) ** -1 / log.rate))
    t, q, qd, tau = times[::step].copy(), truth.q[::step], truth.qd[::step], truth.tau[::step]
    size = np.sqrt((tau**2).mean(axis=0))
    q = q + log.position_noise * rng.normal(size=q.shape)
    qd = qd + log.rate_noise * rng.normal(size=q.shape)
    tau = tau + log.torque_noise * size * rng.normal(size=q.shape)
    if log.currents:
        tau = tau * constants
    if log.quantum:
        q = np.round(q / log.quantum) * log.quantum
    if log.torque_quantum:
        tau = np.round(tau / (log.torque_quantum * size)) * log.torque_quantum * size
    t += log.jitter / log.rate * rng.uniform(-0.5, 0.5, len(t))
    if log.republished > 1:
        again = np.repeat(np.arange(len(t)), log.republished)
        t = np.arange(len(again)) / (log.rate * log.republished)
        q, qd, tau = q[again], qd[again], tau[again]
    kept = rng.uniform(size=len(t)) >= log.lost
    names = [f"joint{k + 1}" for k in range(JOINTS)]
    header = ["time", *(f"{name}/position" for name in names)]
    columns = [t[:, None], q]
    if log.rates:
        header += [f"{name}/velocity" for name in names]
        columns.append(qd)
    header += [f"{name}/effort" for name in names]
    table = np.hstack([*columns, tau])[kept]
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.12g")
