"""The façade: torques, matrices and motor torques of a mechanism, from numbers, compiled."""

from .identifiable import BaseParameters, base_parameters
from .inverse_dynamics import InverseDynamics

__all__ = ["BaseParameters", "InverseDynamics", "base_parameters"]
