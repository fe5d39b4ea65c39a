# SPDX-License-Identifier: Apache-2.0
"""A robot on an interactive page.

| file          | what                                                                    |
|---------------|-------------------------------------------------------------------------|
| page.py       | one HTML file from all of the below                                     |
| programs.py   | the robot's equations as JavaScript                                     |
| scene.py      | what is drawn: links, joints, centres of mass, meshes                   |
| facts.py      | what is said beside it: tables, checks, derivation, assembly modes      |
| page.css      | how it looks                                                            |
| robot.js      | `window.robot`: the programs, and the loops closed                      |
| view.js       | the robot in 3-D, by WebGL or on a plain canvas                         |
| page.js       | sliders, bars, tables and charts                                        |
"""
