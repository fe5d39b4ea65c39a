# SPDX-License-Identifier: Apache-2.0
"""The functions of a chain: what each takes and returns, for kernels, C and other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Signature(NamedTuple):
    """The vectors that a function takes, and the shape of its result."""

    arguments: tuple[str, ...]
    result: tuple[str | int, ...]
    """Each entry is a length, or the name of a vector that has this length"""

    def sizes(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The lengths of the arguments, given the length of each vector by name."""
        return tuple(lengths[name] for name in self.arguments)

    def shape(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of the result, given the length of each vector by name."""
        return tuple(x if isinstance(x, int) else lengths[x] for x in self.result)


STATE = ("q", "qd", "qdd")
FUNCTIONS = {
    "torques": Signature(STATE, ("tau",)),
    "inertia": Signature(("q", "qdd"), ("tau",)),
    "bias": Signature(("q", "qd"), ("tau",)),
    "coriolis_matrix": Signature(("q", "qd"), ("tau", "qd")),
    "mass_matrix": Signature(("q",), ("tau", "qd")),
    "gravity": Signature(("q",), ("tau",)),
    "kinetic_energy": Signature(("q", "qd"), ()),
    "potential_energy": Signature(("q",), ()),
    "energies": Signature(("q", "qd"), (2,)),
    "derivatives": Signature(STATE, (3, "tau", "qd")),
    "forward": Signature(("q", "qd", "tau"), ("qdd",)),
    "regressor": Signature(STATE, ("tau", "parameters")),
    "pose": Signature(("q",), (4, 4)),
    "jacobian": Signature(("q",), (6, "qd")),
    "wrench_torques": Signature(("q", "wrench"), ("tau",)),
}
"""By name. q are the control coordinates (with loops all joints, where the loops are closed), qd
and qdd their rates and accelerations, tau the torques. inertia is D qdd, bias is C qd, and energies
are the kinetic and the potential one; pose is a link's frame in the base frame, jacobian its J with
[ṗ; ω] = J qd, and wrench_torques is Jᵀ w of a wrench w on it."""
OF_A_LINK = ("pose", "jacobian", "wrench_torques")
"""The functions that take the name of a link"""
