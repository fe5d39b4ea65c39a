"""The façade: torques, matrices and motor torques of a mechanism, from numbers, compiled."""

from .inverse_dynamics import InverseDynamics

__all__ = ["InverseDynamics"]
