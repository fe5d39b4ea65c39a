# SPDX-License-Identifier: Apache-2.0
"""The agreement of the kernels of all formulations on a robot, joint by joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..closure import prepared
from ..closure.dynamics.control_model import Sharing
from ..dynamics import InverseDynamics
from ..formulations import FORMULATIONS
from ..formulations.equations import TERMS, Equations
from ..mechanism import Mechanism
from ..outputs import NUMBER, TEXT
from ..scalar import Floats
from .compare import LAGRANGE_EULER_IS_SLOW, LARGEST_LAGRANGE_EULER, coordinates

STATES = 5
"""Number of random states (with a fixed seed) at which torques are compared"""
NEAR_HOME = 0.01
"""rad or m: how far the states of a closed chain may be from home"""
LEAST_SCALE = 1e-6
"""Smallest scale of a joint relative to the largest scale: smaller torques are rounding errors"""
LARGEST_COMPILED = 12
"""Number of bodies above which only newton_euler, the default, is compiled for the comparison: the
other formulations run as generated Python for open chains, and are left out for closed ones"""


KINDS = {
    "disagreement": NUMBER.by_name("by formulation: the worst joint, relative to its scale"),
    "disagreement_by_joint": NUMBER.by_name().by_name(),
    "backends": TEXT.by_name("what ran, by formulation"),
    "left_out": TEXT.by_name("reason, by formulation"),
}


def agreement(mechanism: Mechanism, progress: Callable[[str], None]) -> dict[str, Any]:
    """Compare `InverseDynamics` in each formulation with Newton–Euler evaluated as it is written.

    The reference is neither compiled, recorded nor regrouped; for a closed chain it is that of the
    cut-open tree, projected with Tᵀ. A joint's difference is relative to that joint's own scale:
    the magnitudes of the terms of its torque, summed over the states.

    Args:
        mechanism: the robot.
        progress: called with a short message at each step.

    Returns:
        the values of `KINDS`.
    """
    bodies = len(mechanism.links) + len(mechanism.rotors)
    disagreement, by_joint, backends, left_out = {}, {}, {}, {}
    progress("computing the torques to compare with")
    states, expected, scale = _reference(mechanism)
    for name in FORMULATIONS:
        if name == "lagrange_euler" and bodies > LARGEST_LAGRANGE_EULER:
            left_out[name] = LAGRANGE_EULER_IS_SLOW
            continue
        small = bodies <= LARGEST_COMPILED
        if mechanism.loops and not small and name != "newton_euler":
            left_out[name] = f"too slow for a closed chain of more than {LARGEST_COMPILED} bodies"
            continue
        progress(f"comparing {name}")
        backend = "auto" if small or name == "newton_euler" else "python"
        dynamics = InverseDynamics(mechanism, name, backend=backend)
        found = [np.array([dynamics(*state) for state in zip(*states, strict=True)])]
        if small or not mechanism.loops:
            # kernels for batches of large closed chains take long to compile
            found.append(dynamics(*states))
        difference = np.abs(np.array(found) - expected).max(axis=(0, 1))
        off = difference / scale
        by_joint[name] = dict(zip(dynamics.actuated_names, off.tolist(), strict=True))
        disagreement[name] = float(off.max(initial=0.0))
        backends[name] = dynamics.backend
    return {
        "disagreement": disagreement,
        "disagreement_by_joint": by_joint,
        "backends": backends,
        "left_out": left_out,
    }


def _reference(mechanism: Mechanism) -> tuple[tuple[Floats, Floats, Floats], Floats, Floats]:
    """(q, qd, qdd) (k, n) of the given joints, tau (k, m), and each joint's scale (m,)."""
    tree = replace(mechanism, loops=(), actuated=(), platform=None)
    rng = np.random.default_rng(0)
    n = len(coordinates(mechanism))
    q, qd, qdd = rng.uniform(-1, 1, (3, STATES, n))
    over_tree, T = (q, qd, qdd), np.broadcast_to(np.eye(n), (STATES, n, n))
    if mechanism.loops:
        _, closer = prepared(mechanism)
        home, names = closer.home.q_r, tree.joint_names
        q = home[:n] + NEAR_HOME * q
        q_r = np.array([closer.forward_kinematics(each, home) for each in q])
        state = closer.state(q_r)
        state = state.moving((state.T @ qd[..., None])[..., 0])
        order = [closer.geometry.names.index(name) for name in names]
        moved = state.accelerations(qdd)
        over_tree = (q_r[:, order], state.qd_r[:, order], moved[:, order])
        # τ = S Tᵀ τ_tree
        sharing = Sharing.of(mechanism, closer.geometry)
        T = state.T
        if sharing is not None:
            T = np.array([t @ sharing.of_state(t).matrix.T for t in T])
        T = T[:, order]
    else:
        names = tree.joint_names
        T = T[..., [names.index(name) for name in mechanism.actuated_names]]

    def torques(*terms: str) -> Floats:
        equations = Equations.of(tree, terms=terms)
        rows = [equations.torques(*state) for state in zip(*over_tree, strict=True)]
        tau: Floats = np.einsum("kij,ki->kj", T, np.reshape(rows, (STATES, len(names))))
        return tau

    scale = np.sum([np.abs(torques(term)).sum(axis=0) for term in TERMS], axis=0)
    least = LEAST_SCALE * scale.max(initial=0.0) or 1.0  # a robot without torques
    return (q, qd, qdd), torques(*TERMS), np.maximum(scale, least)
