# SPDX-License-Identifier: Apache-2.0
"""Identification methods, and an independent evaluation, which shares no code with any of them.

The evaluation resamples a recording evenly, filters it forwards and backwards with one cut-off for
all methods, and compares each model's torque with the measured one, both filtered in the same way.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml

import robot_dynamics as rd
from robot_dynamics.description import urdf_writer
from robot_dynamics.identification import Identification
from robot_dynamics.identification.read import read
from robot_dynamics.identification.recording import Recording
from robot_dynamics.identification.unknowns import match

ORDER = 4
"""Of the Butterworth filters"""
JUDGE = 10.0
"""Hz: cut-off of the evaluation's filter, if the sampling rate allows it"""
CUTOFFS = (5.0, 7.0, 10.0, 14.0, 20.0, 30.0, 50.0)
"""Hz: plain least squares takes the one with the smallest held-out error, unknown in practice"""
RCOND = 1e-4
"""Of the largest singular value: directions below it are left at zero"""
END = 0.5
"""s at both ends of a stretch that are not evaluated"""
GAP = 8
"""Periods without a sample, beyond which a stretch ends"""

Model = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(q, qd, qdd), each (k, n), to the torques (k, n)"""


@dataclass(frozen=True)
class Stretch:
    """Even samples; rows are samples, columns joints."""

    period: float
    q: np.ndarray
    qd: np.ndarray | None
    """None: no rates were recorded"""
    tau: np.ndarray
    """A column of NaN: that joint's was not measured"""

    def filtered(self, cutoff: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(q, qd, qdd, tau), the ends left out."""
        h, cut = self.period, round(END / self.period)
        q = smooth(self.q, cutoff, h)
        qd = np.gradient(q, h, axis=0) if self.qd is None else smooth(self.qd, cutoff, h)
        qdd = np.gradient(qd, h, axis=0)
        inner = slice(cut, len(q) - cut)
        return q[inner], qd[inner], qdd[inner], smooth(self.tau, cutoff, h)[inner]


def smooth(values: np.ndarray, cutoff: float, period: float) -> np.ndarray:
    """Filtered forwards and backwards; as it is where the cut-off is beyond what was sampled."""
    from scipy.signal import butter, sosfiltfilt

    if cutoff >= 0.45 / period:
        return values
    return np.asarray(sosfiltfilt(butter(ORDER, 2 * cutoff * period, output="sos"), values, axis=0))


def stretches(recording: Recording, joints: Sequence[str]) -> list[Stretch]:
    """A recording at even stamps: sorted, repeated stamps left out, linear between messages."""
    stream = max(recording.streams, key=lambda each: len(set(each.names) & set(joints)))
    stream = stream.of(joints)
    order = np.argsort(stream.time, kind="stable")
    time = stream.time[order]
    fresh = np.concatenate([[True], np.diff(time) > 0])
    fresh &= np.isfinite(stream.position[order]).all(axis=1)
    measured = np.isfinite(stream.effort).any(axis=0)
    fresh &= np.isfinite(stream.effort[order][:, measured]).all(axis=1)
    rows = order[fresh]
    time = stream.time[rows]
    # republished messages say the same again; the robot says something new
    said = np.column_stack([stream.position, stream.effort[:, measured]])[rows]
    new = np.concatenate([[True], (np.diff(said, axis=0) != 0).any(axis=1)])
    rows, time = rows[new], time[new]
    period = float(np.median(np.diff(time)))
    found = []
    for part in np.split(np.arange(len(time)), np.flatnonzero(np.diff(time) > GAP * period) + 1):
        if time[part[-1]] - time[part[0]] < 4 * END:
            continue
        even = np.arange(time[part[0]], time[part[-1]], period)

        def at(values: np.ndarray, part: np.ndarray = part, even: np.ndarray = even) -> np.ndarray:
            chosen = values[rows[part]]
            return np.column_stack([np.interp(even, time[part], column) for column in chosen.T])

        has_rates = np.isfinite(stream.velocity[rows[part]]).all()
        rates = at(stream.velocity) if has_rates else None
        found.append(Stretch(period, at(stream.position), rates, at(stream.effort)))
    return found


@dataclass(frozen=True)
class Truth:
    """Noise-free states and torques of a motion that was not fitted."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray


@dataclass(frozen=True)
class Case:
    """One robot, its recordings, and those for validation."""

    name: str
    robot: str
    """Path or text of the description"""
    fit: tuple[str, ...]
    validate: tuple[str, ...]
    truth: Truth | None = None
    rename: dict[str, str] = field(default_factory=dict)
    effort_scale: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Case:
        """What `case.yaml` in this folder says: robot, fit, validate, rename, effort_scale."""
        content = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
        return cls(
            content.get("name", folder.name),
            str(folder / content["robot"]),
            tuple(str(folder / each) for each in content["fit"]),
            tuple(str(folder / each) for each in content["validate"]),
            rename=content.get("rename", {}),
            effort_scale=content.get("effort_scale", {}),
        )

    def turned(self) -> list[Case]:
        """One case per recording, which validates the fit to the others; this case first."""
        cases = [self]
        for path in self.fit:
            left = tuple(each for each in (*self.fit, *self.validate) if each != path)
            name = f"{self.name}, judged by {Path(path).name}"
            cases.append(replace(self, name=name, fit=left, validate=(path,)))
        return cases

    def heavier(self, factor: float) -> Case:
        """The same case, described with bodies that are this many times as heavy."""
        root = ElementTree.fromstring(bounded(self.mechanism))
        for inertial in root.iter("inertial"):
            for each in inertial.iter():
                if each.tag in ("mass", "inertia"):
                    for name, value in each.attrib.items():
                        each.set(name, repr(factor * float(value)))
        robot = ElementTree.tostring(root, encoding="unicode")
        return replace(self, name=f"{self.name}, masses × {factor:g}", robot=robot)

    def recording(self, path: str) -> Recording:
        """One of them, its joints called as in the description."""
        return read(path).renamed(self.rename).scaled(self.effort_scale)

    @cached_property
    def mechanism(self) -> rd.Mechanism:
        """As described; joints that were not recorded are locked."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return match(rd.load(self.robot), self.recording(self.fit[0]).names)[0]

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Of what is fitted to."""
        joints = self.mechanism.joint_names
        return [each for path in self.fit for each in stretches(self.recording(path), joints)]

    @cached_property
    def judging(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]]:
        """(q, qd, qdd, tau, period) for validation; a period of 0: unfiltered."""
        if self.truth is not None:
            t = self.truth
            return [(t.q, t.qd, t.qdd, t.tau, 0.0)]
        joints = self.mechanism.joint_names
        found = []
        for path in self.validate:
            for each in stretches(self.recording(path), joints):
                found.append((*each.filtered(judge_of(each.period)), each.period))
        return found

    def errors(self, model: Model) -> np.ndarray:
        """(n,), RMS of the model's torque error over that of the torque, per joint; NaN where no
        torque was measured."""
        misses, torques = [], []
        for q, qd, qdd, tau, period in self.judging:
            shown = model(q, qd, qdd)
            if period:
                cutoff = judge_of(period)
                shown, tau = (smooth(each, cutoff, period) for each in (shown, tau))
            misses.append(shown - tau)
            torques.append(tau)
        miss, torque = (np.concatenate(each) for each in (misses, torques))
        return np.asarray(np.sqrt((miss**2).mean(axis=0) / (torque**2).mean(axis=0)))


def judge_of(period: float) -> float:
    """Hz"""
    return min(JUDGE, 0.2 / period)


def described(case: Case) -> Model:
    """The description as it is."""
    return rd.InverseDynamics(case.mechanism)


def bounded(mechanism: rd.Mechanism) -> str:
    """URDF in which every angle is one number, as it is recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = urdf_writer.urdf(mechanism)
    root = ElementTree.fromstring(text)
    for joint in root.iter("joint"):
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            if joint.find("limit") is None:
                ElementTree.SubElement(
                    joint, "limit", lower="-99", upper="99", effort="1e6", velocity="1e6"
                )
    return ElementTree.tostring(root, encoding="unicode")


class LeastSquares:
    """Pinocchio's regressor; viscous, Coulomb and constant friction and reflected inertia."""

    def __init__(self, case: Case, cutoff: float) -> None:
        import pinocchio

        self.model = pinocchio.buildModelFromXML(bounded(case.mechanism))
        self.model.gravity.linear = np.asarray(case.mechanism.gravity)
        self.data = self.model.createData()
        self.order = [
            self.model.joints[self.model.getJointId(name)].idx_v
            for name in case.mechanism.joint_names
        ]
        n = len(self.order)
        blocks = []
        for each in case.stretches:
            q, qd, qdd, tau = each.filtered(cutoff)
            thin = max(1, round(1 / (10 * cutoff * each.period)))
            blocks.append([values[::thin] for values in (q, qd, qdd, tau)])
        q, qd, qdd, tau = (np.concatenate(each) for each in zip(*blocks, strict=True))
        weights = np.nan_to_num(1 / np.sqrt((tau**2).mean(axis=0)))
        tau = np.nan_to_num(tau)
        A = self.columns(q, qd, qdd) * weights[:, None]
        self.x = np.linalg.lstsq(A.reshape(-1, A.shape[-1]), (tau * weights).ravel(), RCOND)[0]
        assert self.x.shape == (10 * n + 4 * n,)

    def columns(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """(k, n, p)"""
        import pinocchio

        n = len(self.order)
        Y = np.zeros((len(q), n, 14 * n))
        places = np.argsort(self.order)
        for k in range(len(q)):
            full = pinocchio.computeJointTorqueRegressor(
                self.model, self.data, q[k, places], qd[k, places], qdd[k, places]
            )
            Y[k, :, : 10 * n] = full[self.order]
        for j in range(n):
            own = (qd[:, j], np.sign(qd[:, j]), np.ones(len(q)), qdd[:, j])
            Y[:, j, 10 * n + 4 * j : 10 * n + 4 * j + 4] = np.column_stack(own)
        return Y

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns(q, qd, qdd) @ self.x)


def best_least_squares(case: Case) -> tuple[Model, float]:
    """The fit with the smallest held-out error over `CUTOFFS` (or those of a slow recording), and
    its cut-off."""
    slowest = max(each.period for each in case.stretches)
    usable = [cutoff for cutoff in CUTOFFS if cutoff < 0.45 / slowest]
    # a slow recording has octaves below its rate, and no filter at all
    usable = usable or [*(0.4 / slowest / 2**k for k in range(3)), np.inf]
    models = [(LeastSquares(case, cutoff), cutoff) for cutoff in usable]
    return min(models, key=lambda each: float(np.nanmean(case.errors(each[0]))))


def figaroh(case: Case, cutoff: float) -> Model:
    """FIGAROH's own pipeline (decimation, base parameters by QR, weighted least squares) behind
    the filter that serves plain least squares best.
    """
    from figaroh.identification.base_identification import BaseIdentification
    from figaroh.tools.load_robot import load_robot
    from figaroh.tools.regressor import build_regressor_basic

    logging.getLogger("figaroh").setLevel(logging.CRITICAL)
    names = case.mechanism.joint_names
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "robot.urdf"
        urdf.write_text(bounded(case.mechanism))
        robot = load_robot(str(urdf), loader="figaroh", load_by_urdf=True)
        robot.model.gravity.linear = np.asarray(case.mechanism.gravity)
        order = [robot.model.joints[robot.model.getJointId(name)].idx_v for name in names]
        assert order == sorted(order), "joints in the description's order"
        joined = [
            np.concatenate([each[k] for each in (s.filtered(cutoff) for s in case.stretches)])
            for k in range(4)
        ]
        period = case.stretches[0].period
        content = {
            "robot": {"name": "robot", "properties": {"joints": {"active_joints": list(names)}}},
            "tasks": {
                "identification": {
                    "enabled": True,
                    "signal_processing": {
                        "sampling_frequency": 1 / period,
                        "cutoff_frequency": min(cutoff, 0.4 / period),
                    },
                    "problem": {
                        "model_components": {
                            "friction": True, "actuator_inertia": True, "joint_offset": True,
                        },
                        "torque_fit_joints": [
                            name
                            for name, each in zip(names, joined[3].T, strict=True)
                            if np.isfinite(each).all()
                        ],
                    },
                }
            },
        }  # fmt: skip
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(content))

        class Identification(BaseIdentification):
            def load_trajectory_data(self, *_: object, **__: object) -> dict[str, object]:
                q, qd, qdd, tau = joined
                return {
                    "timestamps": np.arange(len(q)) * period, "positions": q, "velocities": qd,
                    "accelerations": qdd, "torques": np.nan_to_num(tau),
                }  # fmt: skip

            def filter_kinematics_data(self, *_: object) -> None:
                self.processed_data = dict(self.raw_data)

            def process_torque_data(self, **_: object) -> np.ndarray:
                return np.asarray(self.raw_data["torques"])

        found = Identification(robot, str(config))
        found.identif_config |= {"act_idxq": order, "act_idxv": order}
        found.initialize()
        thin = max(1, round(1 / (10 * cutoff * period)))
        found.solve(decimate=thin > 1, decimation_factor=thin, plotting=False, wls=True)

    def model(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        W = build_regressor_basic(robot, q, qd, qdd, found.identif_config)
        W = np.delete(W, found._idx_eliminated, 1)[:, found._base_indices]
        return np.asarray((W @ found.phi_base).reshape(len(names), len(q)).T)

    return model


def ours(case: Case) -> tuple[Model, Identification]:
    """This package, with its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rd.identify(
            case.robot,
            list(case.fit),
            validate=list(case.validate),
            rename=case.rename,
            effort_scale=case.effort_scale,
        )
    return rd.InverseDynamics(result.mechanism), result
