# SPDX-License-Identifier: Apache-2.0
"""From a function over any scalar to a kernel: it is recorded, printed, compiled and cached."""

from .function import Function
from .kernel import Kernel
from .native import BackendWarning

__all__ = ["BackendWarning", "Function", "Kernel"]
