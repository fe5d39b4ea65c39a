# SPDX-License-Identifier: Apache-2.0
"""Coverage of the standard deviations, and invariance of the result to order and units.

    python benchmarks/identification_honesty.py [--runs 100] [--json OUT]

Coverage: a three-joint arm, whose bodies and friction differ from the description, is recorded many
times with different noise and motion. The table has the share of parameters within 2 and 3 standard
deviations of the truth (95.4 and 99.7 % of a normal distribution). "determined" are independent
combinations of parameters to which the description contributes less than a tenth, so that its prior
does not improve their coverage.

Bands: the share of efforts within two predicted deviations (95.4 %), on motion that was not fitted:
similar to the recorded motion, slower, faster, and of a robot with torque ripple that no model has.

Invariance: links, samples and recordings in another order, grams instead of kilograms, millimetres
instead of metres; the largest relative difference of the identified robot's torques.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from robots import sines
from scipy.linalg import eigh
from timing import parser

import robot_dynamics as rd
from robot_dynamics.identification import Identification, Recording, Stream, identify
from robot_dynamics.mechanism import Mechanism
from robot_dynamics.mechanism.dynamic_parameters import with_parameters

JOINTS = 3
RIPPLE = 0.1
NORMAL = {2: 95.45, 3: 99.73}
"""% within; two standard deviations of that share less still hold"""
NOISE = 0.02
"""Of each joint's RMS torque"""
GROUPS = {"bodies": ("mass", "mx", "my", "mz", "I"), "friction": ("viscous", "coulomb", "offset")}
DETERMINED = 0.9
"""Of a sum's information, by the data"""


@dataclass(frozen=True)
class Units:
    """How many of the unit are a kilogram, and a metre."""

    mass: float = 1.0
    length: float = 1.0

    @property
    def torque(self) -> float:
        """How many of the unit are a newton metre; s stay s."""
        return self.mass * self.length**2


def urdf(units: Units = Units(), backwards: bool = False) -> str:
    """The arm as it is described; backwards: its elements in the other order."""
    m, l, t = units.mass, units.length, units.torque
    parts = ['<link name="base"/>']
    for k in range(JOINTS):
        mass, along = 4.0 - k, (0.0, 0.35, 0.3)[k]
        parts.append(
            f'<link name="link{k}"><inertial>'
            f'<origin xyz="{0.02 * l!r} {0.01 * l!r} {(0.1 + along / 3) * l!r}"/>'
            f'<mass value="{mass * m!r}"/><inertia ixx="{0.05 * t!r}" ixy="{0.001 * t!r}" ixz="0" '
            f'iyy="{0.06 * t!r}" iyz="0" izz="{0.03 * t!r}"/></inertial></link>'
        )
        parts.append(
            f'<joint name="joint{k}" type="revolute"><origin xyz="0 0 {0.3 * l!r}"/>'
            f'<axis xyz="{"0 0 1" if k == 0 else "0 1 0"}"/>'
            f'<parent link="{f"link{k - 1}" if k else "base"}"/><child link="link{k}"/>'
            f'<limit lower="-3" upper="3" effort="{100 * t!r}" velocity="3"/>'
            f'<dynamics damping="{1.0 * t!r}" friction="{2.0 * t!r}"/></joint>'
        )
    return f'<robot name="arm">{"".join(parts[::-1] if backwards else parts)}</robot>'


def robot_file(folder: Path, units: Units, backwards: bool = False) -> str:
    """A description with its gravity in these units."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arm.urdf").write_text(urdf(units, backwards))
    path = folder / "arm.yaml"
    path.write_text(f"urdf: arm.urdf\ngravity: [0, 0, {-9.81 * units.length!r}]\n")
    return str(path)


def truth() -> Mechanism:
    """Bodies heavier or lighter as a whole, other friction."""
    mechanism = rd.load(urdf())
    values = dict(
        zip(*(getattr(rd.InverseDynamics(mechanism), k) for k in ("parameter_names", "parameters")),
            strict=True)
    )  # fmt: skip
    rng = np.random.default_rng(7)
    factors = {name.split(".")[0]: rng.uniform(0.8, 1.25) for name in values}
    return with_parameters(mechanism, {k: v * factors[k.split(".")[0]] for k, v in values.items()})


def motion(seed: int, duration: float = 12.0, speed: float = 1.0) -> tuple[np.ndarray, ...]:
    """(t, q, qd, qdd): five harmonics at 100 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(100 * duration)) / 100
    w = 2 * np.pi * 0.12 * speed * np.arange(1, 6)
    a, b = rng.normal(0, 0.35, (2, 5, JOINTS))
    return t, *sines(t, w, a, b)


def level(mechanism: Mechanism, seed: int) -> np.ndarray:
    """(n,): RMS torque of that motion."""
    _, q, qd, qdd = motion(seed)
    return np.asarray(np.sqrt((rd.InverseDynamics(mechanism)(q, qd, qdd) ** 2).mean(axis=0)))


def efforts(
    mechanism: Mechanism, states: tuple[np.ndarray, ...], rms: np.ndarray, seed: int, ripple: float
) -> np.ndarray:
    """What a drive reports: with noise and, 60 times a turn, ripple, both relative to `rms`."""
    rng = np.random.default_rng(10_000 + seed)
    noise = NOISE * rng.normal(size=states[0].shape) + ripple * np.sin(60 * states[0])
    return np.asarray(rd.InverseDynamics(mechanism)(*states) + rms * noise)


def record(mechanism: Mechanism, seed: int, ripple: float = 0.0) -> Recording:
    """A motion, with noise on all that is measured."""
    t, q, qd, qdd = motion(seed)
    tau = efforts(mechanism, (q, qd, qdd), level(mechanism, seed), seed, ripple)
    rng = np.random.default_rng(20_000 + seed)
    q, qd = q + 1e-5 * rng.normal(size=q.shape), qd + 1e-3 * rng.normal(size=q.shape)
    return Recording(f"run {seed}", (Stream(mechanism.joint_names, t, q, qd, tau),))


def coverage(runs: int) -> dict[str, Any]:
    """Shares (%) within 2 and 3 deviations, of all parameters and by group."""
    true = truth()
    dynamics = rd.InverseDynamics(true)
    values = dict(zip(dynamics.parameter_names, dynamics.parameters, strict=True))
    misses: dict[str, list[float]] = {name: [] for name in (*GROUPS, "determined", "all")}
    for seed in range(runs):
        found = quietly(lambda seed=seed: identify(urdf(), record(true, seed)))  # type: ignore[misc]
        deviations = np.sqrt(np.diag(found.covariance))
        off = np.array([value - values.get(key, 0.0) for key, value in found.parameters.items()])
        misses["determined"] += np.abs(independent(found, off)).tolist()
        for name, miss in zip(found.parameters, np.abs(off) / deviations, strict=True):
            misses["all"].append(miss)
            for group, kinds in GROUPS.items():
                if name.split(".")[1].startswith(kinds):
                    misses[group].append(miss)
    told = {}
    for group, each in misses.items():
        m = np.array(each)
        told[group] = {
            "2 sigma": 100 * float((m < 2).mean()), "3 sigma": 100 * float((m < 3).mean()),
            "rms": float(np.sqrt((m**2).mean())), "count": len(m),
        }  # fmt: skip
    return told


def bands(runs: int) -> dict[str, dict[str, float]]:
    """Of efforts, % within two deviations: over all runs, and in the worst tenth of the runs."""
    true = truth()
    inside: dict[str, list[float]] = {}
    for seed in range(runs):
        for ripple in (0.0, RIPPLE):
            log = record(true, seed, ripple)
            found = quietly(lambda log=log: identify(urdf(), log))  # type: ignore[misc]
            for speed, words in ((1.0, "like it"), (0.5, "slower"), (1.5, "faster")):
                _, *states = motion(1000 + seed, speed=speed)
                measured = efforts(true, tuple(states), level(true, seed), 1000 + seed, ripple)
                torque, deviation = found.predict(*states)
                share = np.abs(measured - torque) < 2 * deviation
                what = f"{words}, rippling" if ripple else words
                inside.setdefault(what, []).append(100 * float(share.mean()))
    return {
        what: {"mean": float(np.mean(each)), "worst tenth": float(np.quantile(each, 0.1))}
        for what, each in inside.items()
    }


def independent(found: Identification, off: np.ndarray) -> np.ndarray:
    """Of errors (p,), in standard deviations, the sums that the data determine."""
    # I v = share H v, vᵀ H v = 1: the sums vᵀ H x have the covariance 1
    share, V = eigh(found.fit.information, found.fit.curvature)
    sums: np.ndarray = (V.T @ (found.fit.curvature @ off))[share > DETERMINED]
    return sums


def invariance() -> dict[str, float]:
    """The largest relative difference of torques from those of the plain way to say it."""
    true = truth()
    logs = [record(true, seed) for seed in (1, 2)]
    rng = np.random.default_rng(0)
    states = [rng.uniform(-1, 1, (200, JOINTS)) for _ in range(3)]

    def torques(found: Identification, units: Units = Units()) -> np.ndarray:
        names = found.mechanism.joint_names
        dynamics = rd.InverseDynamics(found.mechanism)
        order = [int(name[-1]) for name in names]
        tau = dynamics(*(each[:, order] for each in states)) / units.torque
        return np.asarray(tau[:, np.argsort(order)])

    def scaled(units: Units) -> list[Recording]:
        return [log.scaled(dict.fromkeys(log.names, units.torque)) for log in logs]

    def shuffled(log: Recording) -> Recording:
        rows = np.arange(len(log.streams[0].time))
        for k in range(0, len(rows) - 4, 4):
            rows[k : k + 4] = rng.permutation(rows[k : k + 4])
        return Recording(log.source, (log.streams[0].rows(rows),))

    grams, millimetres = Units(mass=1000.0), Units(length=1000.0)
    with tempfile.TemporaryDirectory() as folder:
        plain = robot_file(Path(folder) / "a", Units())
        ways: dict[str, tuple[Callable[[], Identification], Units]] = {
            "links": (
                lambda: identify(robot_file(Path(folder) / "b", Units(), True), logs), Units()
            ),
            "recordings": (lambda: identify(plain, logs[::-1]), Units()),
            "samples": (lambda: identify(plain, [shuffled(log) for log in logs]), Units()),
            "grams": (
                lambda: identify(robot_file(Path(folder) / "c", grams), scaled(grams)), grams
            ),
            "millimetres": (
                lambda: identify(robot_file(Path(folder) / "d", millimetres), scaled(millimetres)),
                millimetres,
            ),
        }  # fmt: skip
        right = torques(quietly(lambda: identify(plain, logs)))
        return {
            name: float(np.abs(torques(quietly(way), units) - right).max() / np.abs(right).max())
            for name, (way, units) in ways.items()
        }


def quietly(function: Callable[[], Identification]) -> Identification:
    """Without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function()


def main() -> None:
    """See the module."""
    reader = parser(__doc__)
    reader.add_argument("--runs", type=int, default=100)
    options = reader.parse_args()
    results: dict[str, Any] = {"invariance": invariance()}
    for name, difference in results["invariance"].items():
        print(f"{name:12} {difference:.1e} {'holds' if difference <= 1e-9 else 'FAILS'}")
    results["coverage"] = coverage(options.runs)
    for name, each in results["coverage"].items():
        holds = all(
            each[f"{k} sigma"] >= share - 2 * np.sqrt(share * (100 - share) / each["count"])
            for k, share in NORMAL.items()
        )
        print(
            f"{name:12} {each['2 sigma']:5.1f} % within 2, {each['3 sigma']:5.1f} % within 3 "
            f"deviations, RMS {each['rms']:.2f} ({each['count']}): {'holds' if holds else 'FAILS'}"
        )
    results["bands"] = bands(options.runs // 4)
    for name, each in results["bands"].items():
        print(f"{name:18} {each['mean']:5.1f} % within, {each['worst tenth']:5.1f} in bad runs")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
