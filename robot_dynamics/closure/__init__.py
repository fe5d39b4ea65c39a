# SPDX-License-Identifier: Apache-2.0
"""Closed kinematic chains: position, velocity, acceleration and dynamics, with passive sensors.

Source: Zubizarreta, Cabanes, Portillo, Orive, Marcos, "Modelado dinámico de robots paralelos
considerando sensórica redundante". The signs are derived in docs/closed_chains.md.

    geometry/    where it can be and how it moves, over any scalar and over floats
    dynamics/    what moves it; `ClosedChain`
    sensing.py   sensor fusion and fault detection

Scalar-generic (floats, SymPy, the recorder): kinematics, constraints, loop_geometry, linear,
platform, subsystems and control_model. They run in q_r = [q_a; q_s; q_p], of which
`LoopGeometry.names` is the order. The same in symbols is in `robot_dynamics.symbolic`.
"""

from .dynamics.chain import CONDITION_LIMIT, ClosedChain
from .dynamics.constraint_forces import ConstraintForces
from .dynamics.subsystems import Subsystems
from .geometry.assembly import AssemblyMode, assembly_modes, undecided
from .geometry.closer import Closer, prepared
from .geometry.kinematic_state import KinematicState
from .geometry.loop_geometry import LoopGeometry
from .geometry.mobility import Mobility
from .sensing import Fit, SensorMonitor, Verdict, fit

__all__ = [
    "CONDITION_LIMIT",
    "AssemblyMode",
    "ClosedChain",
    "Closer",
    "ConstraintForces",
    "Fit",
    "KinematicState",
    "LoopGeometry",
    "Mobility",
    "SensorMonitor",
    "Subsystems",
    "Verdict",
    "assembly_modes",
    "fit",
    "prepared",
    "undecided",
]
