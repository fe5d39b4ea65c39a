# SPDX-License-Identifier: Apache-2.0
"""From a function over any scalar to a kernel: record it once, print it, compile it, keep it."""

from .function import Function
from .kernel import Kernel
from .native import BackendWarning

__all__ = ["BackendWarning", "Function", "Kernel"]
