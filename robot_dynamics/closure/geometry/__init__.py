# SPDX-License-Identifier: Apache-2.0
"""The kinematics of a closed mechanism: no bodies, no forces.

| file               | what                                                                     |
|--------------------|--------------------------------------------------------------------------|
| loop_geometry.py   | the shape of a mechanism with loops, in q_r                              |
| tree_motion.py     | frames of the cut-open tree, Jacobians and their rates                   |
| constraints.py     | each loop's constraints: residual, Jacobian, its rate                    |
| mobility.py        | degrees of freedom, redundant rows, home                                 |
| home_search.py     | loops closed from a rough pose                                           |
| loose.py           | motions that the motors neither hold nor feel                            |
| mend.py            | what is wrong with a description and can only mean one thing             |
| path_following.py  | predictor and corrector along a path, each step certified or checked     |
| closer.py          | `Closer`: forward and inverse position; a mechanism made ready for it    |
| tangent.py         | T, T_q and their rates, over any scalar                                  |
| rotation.py        | rotation vectors                                                         |
| kinematic_state.py | J_R, J_C, T, T_q and their rates by name                                 |
| linear.py          | linear equations, straight-line                                          |
"""
