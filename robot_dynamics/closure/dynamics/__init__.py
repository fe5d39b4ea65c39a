# SPDX-License-Identifier: Apache-2.0
"""The dynamics of a closed mechanism.

| file               | contents                                                                 |
|--------------------|--------------------------------------------------------------------------|
| platform.py        | the platform's own Newton–Euler equations                                |
| subsystems.py      | legs and platform joined by internal forces, in q_r                      |
| control_model.py   | τ, D, C, G in control coordinates; load sharing among redundant motors   |
| kernels.py         | the compiled model; gravity, friction and bodies as its parameters       |
| continuation.py    | closing the loops of one state from those of the previous one            |
| constraint_forces.py | the multipliers (36), (38) and the forces in the loops' joints         |
| closed_chain.py    | `ClosedChain`: the complete model over floats                            |
"""
