# SPDX-License-Identifier: Apache-2.0
"""Closed kinematic chains: position, velocity, acceleration and dynamics, with passive sensors.

Source: Zubizarreta, Cabanes, Portillo, Orive, Marcos, "Modelado dinámico de robots paralelos
considerando sensórica redundante". The signs are derived in docs/closed_chains.md.

    geometry/    which configurations close the loops, and how they move
    dynamics/    forces and torques; `ClosedChain`
    sensing.py   sensor fusion and fault detection

Scalar-generic (floats, SymPy, the recorder): tree_motion, constraints, loop_geometry,
independent_rows, linear, platform, subsystems and control_model. Their coordinates are
q_r = [q_a; q_s; q_p], in the order of `LoopGeometry.names`. `robot_dynamics.symbolic` gives the
same equations in symbols.
"""

from .dynamics.closed_chain import CONDITION_LIMIT, ClosedChain
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
