# SPDX-License-Identifier: Apache-2.0
"""Conversion of a file, a text or another library's model to a `Mechanism`."""

from .load import from_dh, from_mujoco, from_pinocchio, load, load_urdf_text

__all__ = ["from_dh", "from_mujoco", "from_pinocchio", "load", "load_urdf_text"]
