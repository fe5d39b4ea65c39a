"""From a file or a text to a `Mechanism`."""

from .load import load, load_urdf_text

__all__ = ["load", "load_urdf_text"]
