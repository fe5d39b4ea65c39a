# SPDX-License-Identifier: Apache-2.0
"""What moves a closed mechanism.

| file               | what                                                                     |
|--------------------|--------------------------------------------------------------------------|
| platform.py        | the platform's own Newton–Euler equations                                |
| subsystems.py      | legs and platform joined by internal forces, in q_r                      |
| control_model.py   | τ, D, C, G in control coordinates, straight-line                         |
| parameter_vector.py| parameters of the kernels: gravity, friction, bodies                     |
| kernels.py         | the model compiled                                                       |
| continuation.py    | one state after another: what a call leaves for the next                 |
| sharing.py         | more motors than degrees of freedom                                      |
| constraint_forces.py | the multipliers (36), (38), and what the closures hold                 |
| chain.py           | `ClosedChain`: all of it over floats                                     |
"""
