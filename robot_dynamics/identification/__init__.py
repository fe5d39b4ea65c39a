# SPDX-License-Identifier: Apache-2.0
"""From recordings of a moving robot to its model."""

from .errors import Errors
from .identify import Identification, identify
from .read import read
from .recording import Recording, Stream

__all__ = ["Errors", "Identification", "Recording", "Stream", "identify", "read"]
