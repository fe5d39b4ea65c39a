# SPDX-License-Identifier: Apache-2.0
"""The forces that keep the loops closed: the multipliers of (36) and (38), and their wrenches.

    τ_r = [τ; 0] + J_φᵀ λ,   J_φ = ∂φ/∂q_r

The passive joints have no motors: λ = J_passive⁻ᵀ τ_passive. The multiplier of a position row
along a is a force λ a on the successor; that of a direction row a · b = 0 is a moment λ b × a. The
opposite wrench acts on the predecessor. No rigid-body model determines how redundant rows share
the load: the rows that are left out carry none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...scalar import Floats
from ..geometry.kinematic_state import KinematicState


@dataclass(frozen=True, eq=False)
class ConstraintForces:
    """The constraint forces of one state, or of a batch (…)."""

    platform: Floats | None
    """f_c (…, 6): [force, N; moment about P, N·m] that the platform exerts on its legs, on base
    axes; None: there is no platform that joins legs"""
    loops: Mapping[str, Floats]
    """(…, 6) by the loop's name: [force, N; moment about its point, N·m] that its predecessor
    exerts on its successor, on base axes. The joint that carries the platform in the description
    is included as a loop under the joint's name; its successor is the platform"""
    multipliers: Floats
    """λ (…, m), one for each of `rows`: N for a length, N·m for the cosine of a right angle"""
    rows: tuple[str, ...]
    """The loop and the row that each multiplier belongs to"""


def loop_forces(state: KinematicState, tau_r: Floats, f_c: Floats | None) -> ConstraintForces:
    """The constraint forces at a state.

    Args:
        state: with the loops closed.
        tau_r: (…, n_r) the joint forces that the motion requires, N·m or N.
        f_c: (…, 6), see `ConstraintForces.platform`.
    """
    geometry, closure = state.mobility.geometry, state.mobility.closure
    J = state.J[..., geometry.actuated :]
    # J_passiveᵀ λ = τ_passive, with scaled rows
    right = tau_r[..., geometry.actuated :, None]
    scaled = np.linalg.solve(np.swapaxes(J, -1, -2), right)[..., 0]
    multipliers = scaled * closure.row_scale
    directions = geometry.directions(state.q_r)[..., list(closure.kept), :]
    wrenches = multipliers[..., None] * directions
    kept = [geometry.rows[i] for i in closure.kept]
    found = {
        loop.name: np.sum(
            wrenches[..., [k for k, row in enumerate(kept) if row.loop == loop.name], :],
            axis=-2,
        )
        for loop in geometry.constraints.loops
    }
    if geometry.free is not None:
        # the loop for the platform's orientation belongs to the same joint
        own, along = geometry.constraints.loops[0].name, geometry.constraints.loops[-1].name
        found[own] = found[own] + found.pop(along)
    described = {loop.name: loop for loop in geometry.described.loops}
    for loop in geometry.mechanism.loops:
        if loop.name in described and loop.successor.link != described[loop.name].successor.link:
            found[loop.name] = -found[loop.name]
    return ConstraintForces(f_c, found, multipliers, tuple(map(str, kept)))
