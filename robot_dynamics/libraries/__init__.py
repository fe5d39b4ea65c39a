# SPDX-License-Identifier: Apache-2.0
"""The dynamics as functions of other libraries' arrays: CasADi, JAX, PyTorch, CuPy."""

from .of_mechanism import LIBRARIES, Functions, functions

__all__ = ["LIBRARIES", "Functions", "functions"]
