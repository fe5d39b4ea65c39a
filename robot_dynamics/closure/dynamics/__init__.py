# SPDX-License-Identifier: Apache-2.0
"""The dynamics of a closed mechanism.

| file               | contents                                                                 |
|--------------------|--------------------------------------------------------------------------|
| platform.py        | the platform's own Newton–Euler equations                                |
| subsystems.py      | legs and platform joined by internal forces, in q_r                      |
| control_model.py   | τ, D, C, G in control coordinates, straight-line                         |
| parameter_vector.py| parameters of the kernels: gravity, friction, bodies                     |
| kernels.py         | the compiled model                                                       |
| continuation.py    | closing one state from the one before                                    |
| sharing.py         | more motors than degrees of freedom                                      |
| constraint_forces.py | the multipliers (36), (38) and the forces in the closures              |
| chain.py           | `ClosedChain`: the complete model over floats                            |
"""
