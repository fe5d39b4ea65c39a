"""Closed kinematic chains: position, velocity, acceleration and dynamics, with passive sensors.

Source: Zubizarreta, Cabanes, Portillo, Orive, Marcos, "Modelado dinámico de robots paralelos
considerando sensórica redundante". The signs are derived in docs/closed_chains.md.

| file               | what                                                                     |
|--------------------|--------------------------------------------------------------------------|
| kinematics.py      | frames of the cut-open tree, Jacobians and their rates                   |
| constraints.py     | what each loop demands: residual, Jacobian, its rate                     |
| platform.py        | the platform's own Newton–Euler equations                                |
| subsystems.py      | legs and platform joined by internal forces, in q_r                      |
| mobility.py        | degrees of freedom, redundant rows, home                                 |
| position.py        | Newton's method along a path                                             |
| solver.py          | forward and inverse position                                             |
| kinematic_state.py | J_R, J_C, T, T_q and their rates by name                                 |
| model.py, linear.py| τ, D, C, G in control coordinates, straight-line                          |
| kernels.py         | the model compiled; parameters.py: what may change while it runs         |
| track.py           | one state after another: what a call leaves for the next                 |
| chain.py           | `ClosedChain`: all of it over floats                                     |
| sensing.py         | sensors that are fused, and one that lies                                |
| symbolic.py        | the same in symbols; symbolic_model.py: what that gives                  |

Scalar-generic (floats, SymPy, the recorder): kinematics.py, constraints.py, platform.py,
subsystems.py, linear.py and model.py. They run in q_r = [q_a; q_s; q_p], of which
`Subsystems.names` is the order.
"""

from .chain import CONDITION_LIMIT, ClosedChain
from .kinematic_state import KinematicState
from .mobility import Mobility
from .sensing import Fit, SensorMonitor, Verdict, fit
from .solver import ClosureSolver
from .subsystems import Subsystems

__all__ = [
    "CONDITION_LIMIT",
    "ClosedChain",
    "ClosureSolver",
    "Fit",
    "KinematicState",
    "Mobility",
    "SensorMonitor",
    "Subsystems",
    "Verdict",
    "fit",
]
