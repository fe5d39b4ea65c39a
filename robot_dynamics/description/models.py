# SPDX-License-Identifier: Apache-2.0
"""Models of other libraries, in memory, to a mechanism."""

from __future__ import annotations

from typing import Any

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import mujoco_model, pinocchio_model, toolbox_model
from .load import finished


def from_dh(robot: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of robotics-toolbox's `DHRobot`, standard or modified, motors and friction too.

    Args:
        robot: the `roboticstoolbox.DHRobot`; its q is ours.
        strict: refuse what is otherwise a warning.

    Raises:
        DescriptionError: no such robot, or one that cannot be computed with.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not all(hasattr(robot, name) for name in ("links", "gravity", "base", "mdh")):
        raise wrong(DescriptionError, "robot", type(robot).__name__, "a roboticstoolbox.DHRobot")
    where = robot.name or "the DHRobot"
    return finished(toolbox_model.made(robot, where), where, strict)


def from_pinocchio(model: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a `pinocchio.Model`, its joints in Pinocchio's order.

    Args:
        model: the model; see `description.pinocchio_model` for what becomes what.
        strict: refuse what is otherwise a warning.

    Raises:
        DescriptionError: no model, or one with a joint of a kind that is not known here.

    Warns:
        DescriptionWarning: as `load`.
    """
    if not all(hasattr(model, name) for name in ("joints", "inertias", "jointPlacements")):
        raise wrong(DescriptionError, "model", type(model).__name__, "a pinocchio.Model")
    where = model.name or "the Pinocchio model"
    return finished(pinocchio_model.made(model, where), where, strict)


def from_mujoco(model: Any, *, strict: bool = False) -> Mechanism:
    """The mechanism of a `mujoco.MjModel`; see `description.mujoco_model` for what becomes what.

    Args:
        model: the compiled model.
        strict: refuse what is otherwise a warning.

    Raises:
        BackendError: MuJoCo is not installed.
        DescriptionError: no model, or one that cannot be computed with.

    Warns:
        DescriptionWarning: something of it is left out, by name; or as `load`.
    """
    if not isinstance(model, mujoco_model.library().MjModel):
        raise wrong(DescriptionError, "model", type(model).__name__, "a mujoco.MjModel")
    where = mujoco_model.model_name(model.names) or "the MuJoCo model"
    return finished(mujoco_model.made(model, where, strict), where, strict)
