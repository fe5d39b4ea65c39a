# SPDX-License-Identifier: Apache-2.0
"""The robot as an immutable value, and transformations between equivalent robots."""

from .mechanism import (
    BASE,
    JOINT_TYPES,
    LOOP_TYPES,
    Armature,
    Attachment,
    Coupling,
    Friction,
    Inertial,
    Joint,
    Limits,
    Link,
    Loop,
    Mechanism,
    Pose,
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
