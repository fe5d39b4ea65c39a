# SPDX-License-Identifier: Apache-2.0
"""The robot as an immutable value, and transformations between equivalent robots."""

from .bodies import Inertial, Pose
from .friction import Friction
from .mechanism import (
    BASE,
    JOINT_TYPES,
    LOOP_TYPES,
    Armature,
    Attachment,
    Coupling,
    Joint,
    Limits,
    Link,
    Loop,
    Mechanism,
    Rotor,
)

__all__ = [
    "BASE",
    "JOINT_TYPES",
    "LOOP_TYPES",
    "Armature",
    "Attachment",
    "Coupling",
    "Friction",
    "Inertial",
    "Joint",
    "Limits",
    "Link",
    "Loop",
    "Mechanism",
    "Pose",
    "Rotor",
]
