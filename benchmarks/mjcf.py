# SPDX-License-Identifier: Apache-2.0
"""Agreement with `mj_inverse` on every MJCF in some folders, as a share of the largest torque.

    python benchmarks/mjcf.py FOLDER_OR_FILE... [--json OUT]

Trees are compared joint by joint, without equalities: constraints, springs of ball joints, tendons,
fluids and gravity compensation are turned off in MuJoCo, and dry friction on both sides. Files that
cannot be loaded are listed with the reason. Our kernels are generated Python here, to avoid minutes
of compilation.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from timing import keep, parser

import robot_dynamics as rd
from robot_dynamics.scalar import rotation_rpy

BOUND = 1e-9
OFF = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
LEFT_OUT = ("body_gravcomp", "dof_frictionloss", "tendon_stiffness", "tendon_frictionloss")
POLYNOMIALS = ("jnt_stiffnesspoly", "dof_dampingpoly", "tendon_stiffnesspoly", "tendon_dampingpoly")
LEFT_OUT_OF_SPATIAL_TENDONS = ("tendon_damping", "tendon_armature")


def main() -> None:
    reader = parser(__doc__)
    reader.add_argument("places", nargs="+", type=Path)
    options = reader.parse_args()
    results: dict[str, Any] = {}
    for place in options.places:
        for path in [place] if place.is_file() else sorted(place.rglob("*.xml")):
            if b"<mujoco" not in path.read_bytes()[:10_000]:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    n, found = compared(path)
            except (ValueError, rd.RobotDynamicsError) as error:
                results[str(path)] = words = " ".join(str(error).split())[:100]
                print(f"{'':8s} {path.parent.name}/{path.name}: {words}")
                continue
            results[str(path)] = found
            print(f"{found:8.1e} {n:3d} joints  {path.parent.name}/{path.name}")
    numbers = [x for x in results.values() if isinstance(x, float)]
    print(f"{sum(x <= BOUND for x in numbers)} of {len(numbers)} within {BOUND:g}, "
          f"{len(results) - len(numbers)} not loaded")  # fmt: skip
    keep(options.json, results)
    sys.exit(any(x > BOUND for x in numbers))


def compared(path: Path) -> tuple[int, float]:
    """(joints, the largest difference as a share of the largest torque)"""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.eq_active0[:] = 0
    mechanism = rd.from_mujoco(model)
    links = []
    for link in mechanism.links:
        friction = replace(link.joint.friction, coulomb=0.0)
        links.append(replace(link, joint=replace(link.joint, friction=friction)))
    shafts = (
        replace(shaft, friction=shaft.friction and replace(shaft.friction, coulomb=0.0))
        for shaft in mechanism.armatures
    )
    tree = replace(mechanism, links=tuple(links), armatures=tuple(shafts))
    for name in LEFT_OUT:
        getattr(model, name)[:] = 0
    for name in POLYNOMIALS:  # of newer versions of MuJoCo
        getattr(model, name, np.zeros(1))[:] = 0
    spatial = model.wrap_type[model.tendon_adr] != int(mujoco.mjtWrap.mjWRAP_JOINT)
    for name in LEFT_OUT_OF_SPATIAL_TENDONS:
        getattr(model, name)[spatial] = 0
    model.opt.disableflags |= int(OFF)
    model.opt.density = model.opt.viscosity = 0
    for k in range(model.njnt):  # what free and ball joints have of these is left out
        if model.jnt_type[k] < 2:
            dofs = slice(model.jnt_dofadr[k], model.jnt_dofadr[k] + (6, 3)[model.jnt_type[k]])
            model.dof_damping[dofs] = model.dof_armature[dofs] = model.jnt_stiffness[k] = 0
    names = tree.joint_names
    q, qd, qdd = np.random.default_rng(0).uniform(-0.6, 0.6, (3, len(names)))
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)  # what follows from the armatures
    J, drift = mapping(model, data, dict(zip(names, q, strict=True)), qd, names)
    data.qvel[:], data.qacc[:] = J @ qd, J @ qdd + drift
    mujoco.mj_inverse(model, data)
    theirs = J.T @ data.qfrc_inverse
    ours = rd.InverseDynamics(tree, backend="python")(q, qd, qdd)
    return len(names), float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9))


def mapping(
    model: Any, data: Any, q: dict[str, float], qd: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """(J, J̇ q̇) with MuJoCo's rates J q̇; data.qpos is set."""
    place = {name: k for k, name in enumerate(names)}
    J, drift = np.zeros((model.nv, len(names))), np.zeros(model.nv)
    moving = {}
    for k in range(model.njnt):
        body = model.jnt_bodyid[k]
        owner = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body) or f"body{body}"
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k)
        moving[k] = name or f"{owner}_joint{k - model.body_jntadr[body] + 1}"
    for k, name in moving.items():
        kind, a, d = model.jnt_type[k], model.jnt_qposadr[k], model.jnt_dofadr[k]
        if kind >= 2:
            data.qpos[a], J[d, place[name]] = q[name], 1.0
            continue
        if kind == 0:
            for i, axis in enumerate("xyz"):
                data.qpos[a + i], J[d + i, place[f"{name}_{axis}"]] = q[f"{name}_{axis}"], 1.0
            a, d = a + 3, d + 3
        columns = [place[f"{name}_r{axis}"] for axis in "zyx"]
        angles = np.array([q[f"{name}_r{axis}"] for axis in "zyx"])
        mujoco.mju_mat2Quat(data.qpos[a : a + 4], rotation_rpy(*angles[::-1]).ravel())
        J[d : d + 3, columns] = turning(angles)
        h, rate = 1e-6, qd[columns]
        slope = (turning(angles + h * rate) - turning(angles - h * rate)) / (2 * h)
        drift[d : d + 3] = slope @ rate
    return J, drift


def turning(angles: np.ndarray) -> np.ndarray:
    """(3, 3): the body's rates on its own axes by those of yaw, pitch and roll."""
    cp, sp = np.cos(angles[1]), np.sin(angles[1])
    cr, sr = np.cos(angles[2]), np.sin(angles[2])
    return np.array([[-sp, 0.0, 1.0], [sr * cp, cr, 0.0], [cr * cp, -sr, 0.0]])


if __name__ == "__main__":
    main()
