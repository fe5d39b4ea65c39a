"""From a file, a text or another library's model to a `Mechanism`."""

from .load import load, load_urdf_text
from .models import from_mujoco

__all__ = ["from_mujoco", "load", "load_urdf_text"]
