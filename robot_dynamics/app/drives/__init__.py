# SPDX-License-Identifier: Apache-2.0
"""From a motion to the motors.

| file       | what                                                                    |
|------------|-------------------------------------------------------------------------|
| states.py  | a motion from a file: a JointTrajectory, a table, a bag                 |
| drives.py  | torque, rate, power and energy of joints and motors, against limits     |
| ranges.py  | how far each motor of a robot with loops goes, and where it ends        |
| reach.py   | the same drawn                                                          |
| report.py  | tables, pictures, a page                                                |
"""
