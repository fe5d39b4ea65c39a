"""Models of other libraries, in memory, to a mechanism."""

from __future__ import annotations

from typing import Any

from ..errors import DescriptionError, wrong
from ..mechanism import Mechanism
from . import mujoco_model
from .load import finished


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
