# SPDX-License-Identifier: Apache-2.0
"""A robot on an interactive page.

| file          | contents                                                                |
|---------------|-------------------------------------------------------------------------|
| page.py       | one HTML file from all of the following                                 |
| javascript.py | the robot's equations as JavaScript                                     |
| scene.py      | the drawing: links, joints, centres of mass, meshes                     |
| facts.py      | the information: tables, checks, derivation, assembly modes             |
| page.css      | the style                                                               |
| robot.js      | `window.robot`: the programs, and the closing of loops                  |
| view.js       | the robot in 3-D, by WebGL or on a plain canvas                         |
| page.js       | sliders, bars, tables and charts                                        |
"""
