# SPDX-License-Identifier: Apache-2.0
"""Identification of a robot's dynamic model from recordings of its motion."""

from .identify import Identification, identify
from .read import read
from .recording import Recording, Stream
from .torque_errors import Errors

__all__ = ["Errors", "Identification", "Recording", "Stream", "identify", "read"]
