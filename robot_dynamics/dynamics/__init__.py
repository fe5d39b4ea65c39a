# SPDX-License-Identifier: Apache-2.0
"""The public interface for compiled numerical dynamics: torques, matrices and motor torques."""

from .base_motion import BaseMotion
from .floating_base import FloatingBase
from .identifiable import BaseParameters, base_parameters
from .inverse_dynamics import InverseDynamics

__all__ = ["BaseMotion", "BaseParameters", "FloatingBase", "InverseDynamics", "base_parameters"]
