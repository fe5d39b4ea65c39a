# SPDX-License-Identifier: Apache-2.0
"""The kinematics of a closed mechanism: no bodies, no forces.

| file               | contents                                                                 |
|--------------------|--------------------------------------------------------------------------|
| loop_geometry.py   | the shape of a mechanism with loops, in q_r                              |
| tree_motion.py     | frames of the cut-open tree, Jacobians and their rates                   |
| constraints.py     | each loop's constraints: residual, Jacobian, its rate                    |
| mobility.py        | degrees of freedom, redundant rows, home                                 |
| home_search.py     | closing the loops from a rough pose                                      |
| corrections.py     | corrections of small errors in a description whose intent is clear       |
| free_platform.py   | a platform that no leg carries, and its pose from readings               |
| independent_rows.py | the independent rows, Newton's method on them, T and T_q                |
| near.py            | the assembly mode that a description means by `near`                     |
| assembly.py        | all assembly modes                                                       |
| curvature.py       | bounds that certify a step                                               |
| path_following.py  | predictor–corrector steps along a path, each certified or checked        |
| closer.py          | `Closer`: forward and inverse position; preparing a mechanism for it     |
| kinematic_state.py | J_R, J_C, T, T_q and their rates, under these names                      |
| linear.py          | straight-line solvers for linear equations                               |
"""
