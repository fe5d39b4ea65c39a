# SPDX-License-Identifier: Apache-2.0
"""A robot's dynamics as a ros2_control controller: a package that needs nothing of this one."""

from .package import write_package, write_source

__all__ = ["write_package", "write_source"]
