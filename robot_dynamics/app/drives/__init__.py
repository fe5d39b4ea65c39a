# SPDX-License-Identifier: Apache-2.0
"""The requirements of a motion on joints and motors.

| file              | contents                                                                |
|-------------------|-------------------------------------------------------------------------|
| sampled_motion.py | a motion from a file: a JointTrajectory, a table, a bag                 |
| drives.py         | torque, rate, power and energy of joints and motors, and their limits   |
| ranges.py         | the range of each motor of a robot with loops, and what ends it         |
| reach.py          | drawings of these ranges                                                |
| motion_report.py  | tables, pictures, a page                                                |
"""
