"""The equations of motion in symbols: from a mechanism, or from energies."""

from .derive import derive
from .energies import from_energies
from .model import SymbolicModel

__all__ = ["SymbolicModel", "derive", "from_energies"]
