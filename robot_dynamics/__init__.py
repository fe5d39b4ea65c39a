# SPDX-License-Identifier: Apache-2.0
"""Feed-forward joint torques from a robot's description, in every classical formulation.

import robot_dynamics as rd
dynamics = rd.InverseDynamics(rd.load("config/polar.yaml"))
tau = dynamics(q, qd, qdd)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    BackendError,
    ClosureError,
    DescriptionError,
    InputError,
    RecordingError,
    RobotDynamicsError,
    TrajectoryError,
)

if TYPE_CHECKING:
    from .description import from_dh, from_mujoco, from_pinocchio, load
    from .dynamics import BaseMotion, FloatingBase, InverseDynamics, base_parameters
    from .identification import identify
    from .libraries import functions
    from .mechanism import Inertial, Mechanism
    from .symbolic import derive, from_energies

_LAZY = {
    "load": "description",
    "BaseMotion": "dynamics",
    "FloatingBase": "dynamics",
    "InverseDynamics": "dynamics",
    "Inertial": "mechanism",
    "identify": "identification",
    "Mechanism": "mechanism",
    "base_parameters": "dynamics",
    "derive": "symbolic",
    "from_energies": "symbolic",
    "from_dh": "description",
    "from_mujoco": "description",
    "from_pinocchio": "description",
    "functions": "libraries",
}
"""Name → module, imported on first use, so that a program pays only for what it needs"""

__all__ = [
    "BackendError",
    "BaseMotion",
    "ClosureError",
    "DescriptionError",
    "FloatingBase",
    "Inertial",
    "InputError",
    "InverseDynamics",
    "Mechanism",
    "RecordingError",
    "RobotDynamicsError",
    "TrajectoryError",
    "base_parameters",
    "derive",
    "from_dh",
    "from_energies",
    "from_mujoco",
    "from_pinocchio",
    "functions",
    "identify",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module("." + _LAZY[name], __name__), name)
    if name == "__version__":
        from .version import version

        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
