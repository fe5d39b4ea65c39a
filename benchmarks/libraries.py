# SPDX-License-Identifier: Apache-2.0
"""The same inverse dynamics in other libraries: each a function of a URDF that returns a call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]


def pinocchio(urdf: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Call:
    import pinocchio as pin

    # continuous joints would get (cos, sin) as coordinates; revolute ones get the angle
    model = pin.buildModelFromXML(revolute(urdf))
    data = model.createData()
    return lambda: pin.rnea(model, data, q, qd, qdd)


def mujoco(urdf: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Call:
    import mujoco as mj

    # MuJoCo lumps links on fixed joints only if asked, and wants its options inside
    options = '<mujoco><compiler balanceinertia="false" fusestatic="false"/></mujoco>'
    model = mj.MjModel.from_xml_string(urdf.replace("</robot>", options + "</robot>"))
    data = mj.MjData(model)

    def call() -> Any:
        data.qpos, data.qvel, data.qacc = q, qd, qdd
        mj.mj_inverse(model, data)
        return data.qfrc_inverse.copy()

    return call


def drake(urdf: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Call:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(urdf, "urdf")
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    forces = MultibodyForces(plant)

    def call() -> Any:
        plant.SetPositions(context, q)
        plant.SetVelocities(context, qd)
        plant.CalcForceElementsContribution(context, forces)  # gravity
        return plant.CalcInverseDynamics(context, qdd, forces)

    return call


def robotics_toolbox(urdf: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Call:
    from roboticstoolbox import Robot
    from roboticstoolbox.models.URDF.URDFRobot import URDF_file

    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(revolute(urdf))
        file.flush()
        links, name, _ = URDF_file(file.name)
    robot = Robot(links, name=name)
    robot.gravity = [0, 0, -9.81]
    return lambda: robot.rne(q, qd, qdd)


def revolute(urdf: str) -> str:
    """Without continuous joints."""
    return urdf.replace("continuous", "revolute").replace(
        '<axis xyz="0 0 1"/>',
        '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="1" velocity="1"/>',
    )


LIBRARIES: dict[str, Callable[..., Call]] = {
    "pinocchio": pinocchio,
    "mujoco": mujoco,
    "drake": drake,
    "robotics-toolbox-python": robotics_toolbox,
}
