# SPDX-License-Identifier: Apache-2.0
"""The identification demo: a robot that differs from its URDF is excited, recorded and identified.

The robot is created, moved and recorded in this process; the identified model is then used for
tracking over DDS, as in every demo.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...description import load
from ...description.files import find
from ...dynamics import InverseDynamics
from ...errors import not_installed
from ...identification import identify
from ...identification.excitation import ExcitingMotion, excite
from ...identification.identified import Identified
from ...identification.result_files import inertial_entry, save
from ...mechanism import Inertial, Mechanism
from ...scalar import Floats
from ...simulation.tracking import TrackedRobot, pd_gains
from .. import excitation_files, identification_report
from .robots import AHEAD, Demo, Run

SEED = 10
WRONG_BY = (0.15, 0.3)
"""The relative error of each of the description's numbers, up or down"""
DURATION = 20.0
"""The duration of the exciting motion, s"""
COULOMB = (6.0, 8.0, 5.0, 1.5, 1.2, 0.6)
"""N·m, as described"""
FADES = 0.06
"""rad/s, for the description and the robot: dry friction is no step at rest, where gear teeth and
bearing balls only deform"""
ROTORS = (1.2e-4, 1.2e-4, 8e-5, 2e-5, 2e-5, 1e-5)
"""kg m², as described"""
GEAR_RATIO = 100.0
ENCODER = 2.0**-19 * 2 * np.pi
"""The resolution of a 19-bit encoder, rad"""
RATE_NOISE = 2e-3
"""Standard deviation, rad/s"""
TORQUE_NOISE = 0.005
"""Standard deviation of torques from motor currents, as a fraction of the joint's effort limit"""

Show = Callable[[str], None]


def identified(demo: Demo, folder: Path, scratch: Path, show: Show) -> Demo:
    """Create the demo's robot and the models that are compared.

    Args:
        demo: its description is the URDF that the robot should match.
        folder: for the motion, the recording and the results of the identification.
        scratch: a temporary folder for the robot and its description.
        show: called with progress messages.

    Returns:
        the demo with this robot and these models.
    """
    nominal, real = descriptions(demo.description, scratch)
    show("looking for an exciting motion")
    motion = excite(nominal, DURATION, seed=SEED)
    show("recording the robot")
    recorded = record(load(str(real)), load(str(nominal)), motion, demo, scratch / "recording")
    show("identifying it")
    found = identify(nominal, recorded)
    folder.mkdir(parents=True, exist_ok=True)
    excitation_files.save(motion, folder / "motion.yaml")
    shutil.copytree(recorded, folder / "recording", dirs_exist_ok=True)
    files = save(found, folder) | identification_report.write(found, folder)
    return replace(
        demo,
        description=str(real),
        runs=(
            Run("the URDF's model", AHEAD, description=str(nominal)),
            Run("PD + the URDF's gravity", {"terms": ["gravity"]}, description=str(nominal)),
            Run("the identified model", AHEAD, description=str(files["identified"])),
        ),
        notes=_notes(motion, found, files),
    )


def descriptions(urdf: str, folder: Path) -> tuple[Path, Path]:
    """Write two descriptions: the URDF with dry friction and rotors, and the real robot's.

    Args:
        urdf: the description.
        folder: where to write them.

    Returns:
        (as described, as the robot really is).
    """
    path = find(urdf)
    robot = load(str(path))
    rng = np.random.default_rng(SEED)

    def wrong(value: Any, shape: tuple[int, ...] | None = None) -> Any:
        shape = np.shape(value) if shape is None else shape
        factor = 1.0 + rng.choice([-1.0, 1.0], shape) * rng.uniform(*WRONG_BY, shape)
        return (np.asarray(value) * factor).tolist()

    files = []
    for name, off in (("described", lambda value, _=None: value), ("real", wrong)):
        bodies, frictions, rotors = {}, {}, {}
        for link in robot.links:
            body = link.inertial
            bodies[link.name] = inertial_entry(
                Inertial(off(body.mass), off(body.center_of_mass), off(body.inertia, ()))
            )
        for joint, coulomb, inertia in zip(robot.joint_names, COULOMB, ROTORS, strict=True):
            viscous = float(robot.joint(joint).friction.viscous)
            frictions[joint] = _friction(off(viscous), off(coulomb))
            rotors[joint] = {"gear_ratio": GEAR_RATIO, "inertia": {"izz": off(inertia)}}
        content = {"inertials": bodies, "friction": frictions, "rotors": rotors}
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump({"urdf": str(path), **content}))
    return files[0], files[1]


def _friction(viscous: float, coulomb: float) -> dict[str, Any]:
    stribeck = {"torque": -coulomb, "rate": FADES}
    return {"viscous": viscous, "coulomb": coulomb, "stribeck": stribeck}


def record(
    robot: Mechanism, model: Mechanism, motion: ExcitingMotion, demo: Demo, folder: Path
) -> Path:
    """Record the robot's encoders and currents while it follows a motion.

    It is controlled by a PD loop and the torques of the model as described.

    Args:
        robot: the real robot.
        model: the robot as described.
        motion: the motion.
        demo: has the rates and the bandwidth.
        folder: the rosbag2 folder (MCAP) to write.

    Returns:
        the folder.

    Raises:
        BackendError: `rosbags` is not installed.
    """
    dynamics = InverseDynamics(model)
    p, d = pd_gains(dynamics, motion.motion.start, demo.bandwidth)
    tracked = TrackedRobot(
        robot,
        period=1 / demo.update_rate,
        timestep=demo.timestep,
        p_gains=p.tolist(),
        d_gains=d.tolist(),
        start=motion.motion.start,
    )
    count = round(motion.motion.duration / tracked.period) + 1
    time = np.array([k * tracked.period for k in range(count)])
    states = motion.motion(time)
    feed_forward = dynamics(*states)
    rows = []
    for k in range(len(time)):
        sample = tracked.advance((states[0][k], states[1][k]), feed_forward[k])
        rows.append((sample.q, sample.qd, sample.feedback + sample.efforts))
    q, qd, tau = (np.stack(each) for each in zip(*rows, strict=True))
    # currents are averaged over one period, half before and half after the state
    tau[1:] = (tau[1:] + tau[:-1]) / 2
    rng = np.random.default_rng(SEED)
    scale = np.array([robot.joint(name).ends.effort or 0.0 for name in robot.joint_names])
    q = ENCODER * np.round(q / ENCODER)
    qd += RATE_NOISE * rng.normal(size=qd.shape)
    tau += TORQUE_NOISE * scale * rng.normal(size=tau.shape)
    write_bag(folder, robot.joint_names, time, q, qd, tau)
    return folder


def write_bag(
    folder: Path, joints: tuple[str, ...], time: Floats, q: Floats, qd: Floats, tau: Floats
) -> None:
    """Write a rosbag2 folder (MCAP) of /joint_states.

    Args:
        folder: the folder to write.
        joints: (n) names.
        time: (k,) s.
        q: (k, n) positions, rad or m.
        qd: (k, n) rates, rad/s or m/s.
        tau: (k, n) torques, N·m or N.

    Raises:
        BackendError: `rosbags` is not installed.
    """
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise not_installed("rosbags", "writes bags", "'robot_dynamics[identify]'") from None
    store = get_typestore(Stores.LATEST)
    kind = store.types["sensor_msgs/msg/JointState"]
    header, stamp = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    begin = 1_700_000_000
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/joint_states", kind.__msgtype__, typestore=store)
        for t, *state in zip(time, q, qd, tau, strict=True):
            sec, nanosec = divmod(round(float(t) * 1e9), 1_000_000_000)
            message = kind(
                header(stamp(begin + sec, nanosec), ""), list(joints), *map(np.asarray, state)
            )
            raw = store.serialize_cdr(message, kind.__msgtype__)
            writer.write(topic, (begin + sec) * 1_000_000_000 + nanosec, raw)


def _notes(motion: ExcitingMotion, found: Identified, files: dict[str, Path]) -> tuple[str, ...]:
    def lines() -> Iterator[str]:
        yield (
            f"exciting motion of {motion.motion.duration:g} s: condition number "
            f"{motion.after.condition:.3g} (joints merely swinging: {motion.before.condition:.3g})"
        )
        before, after = found.errors.relative_described, found.errors.relative
        yield (
            "RMS torque errors on the last third of the recording, held out of the fit: "
            f"{100 * np.nanmean(before):.1f} % as described, {100 * np.nanmean(after):.1f} % as "
            "identified"
        )
        yield f"identified: {files['identified']}, report: {files['page']}"

    return tuple(lines())
