# SPDX-License-Identifier: Apache-2.0
"""The façade: torques, matrices and motor torques of a mechanism, from numbers, compiled."""

from .base_motion import BaseMotion
from .floating_base import FloatingBase
from .identifiable import BaseParameters, base_parameters
from .inverse_dynamics import InverseDynamics

__all__ = ["BaseMotion", "BaseParameters", "FloatingBase", "InverseDynamics", "base_parameters"]
