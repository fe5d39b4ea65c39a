# SPDX-License-Identifier: Apache-2.0
"""The robot as one immutable value, and the transformations from one to another."""

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
