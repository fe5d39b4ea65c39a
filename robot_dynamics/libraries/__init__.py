# SPDX-License-Identifier: Apache-2.0
"""The dynamics over other libraries' arrays: CasADi, JAX, PyTorch."""

from .of_mechanism import LIBRARIES, Functions, functions

__all__ = ["LIBRARIES", "Functions", "functions"]
