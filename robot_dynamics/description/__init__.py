"""From a file or a text to a `Mechanism`."""

from .load import load

__all__ = ["load"]
