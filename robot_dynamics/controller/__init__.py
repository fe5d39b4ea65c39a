# SPDX-License-Identifier: Apache-2.0
"""A robot's dynamics as a ros2_control controller or an FMU, which do not need robot_dynamics."""

from .fmu import write_fmu
from .package import write_package, write_source

__all__ = ["write_fmu", "write_package", "write_source"]
