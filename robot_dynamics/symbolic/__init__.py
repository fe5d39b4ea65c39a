# SPDX-License-Identifier: Apache-2.0
"""Symbolic equations of motion, derived from a mechanism or from energies."""

from .derive import derive
from .energies import derive_energies, from_energies
from .link_kinematics import LinkKinematics, kinematics
from .symbolic_model import SymbolicModel

__all__ = [
    "LinkKinematics",
    "SymbolicModel",
    "derive",
    "derive_energies",
    "from_energies",
    "kinematics",
]
