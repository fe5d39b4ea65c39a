"""Checks a description, and that every formulation's kernels agree on it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..closure import ClosedChain, ClosureSolver, LoopGeometry
from ..description import load
from ..dynamics import InverseDynamics
from ..dynamics.motors import tree_state
from ..formulations import FORMULATIONS
from ..formulations.equations import TERMS, Equations
from ..mechanism import Mechanism
from ..scalar import Floats
from .compare import LARGEST_LAGRANGE_EULER

STATES = 5
"""Random states (by seed) at which torques are compared"""
NEAR_HOME = 0.01
"""rad or m: how far from home those of a closed chain are"""
LEAST_SCALE = 1e-6
"""Of the largest joint's scale: a joint below has rounding for a torque, and this for a scale"""
LARGEST_COMPILED = 12
"""Bodies above which only newton_euler, the default, is compiled for this: of open chains the
others run as generated Python, of closed ones they are left out"""


def report(source: str, *, strict: bool = False) -> dict[str, Any]:
    """What `robot_dynamics check` prints: the robot, its warnings, and how far the kernels agree.

    Raises:
        DescriptionError: the description cannot be computed with (or, strict, is odd).
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = load(source, strict=strict)
    oddities = [str(each.message) for each in caught]
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "joints": list(mechanism.joint_names),
        "actuated": list(mechanism.actuated_names),
        "links": len(mechanism.links),
        "mass": float(sum(link.inertial.mass for link in mechanism.links)),
        "rotors": [rotor.name for rotor in mechanism.rotors],
        "loops": [loop.name for loop in mechanism.loops],
        "warnings": oddities,
        **agreement(mechanism),
    }
    if mechanism.loops:
        result["closure"] = closure(mechanism)
    result["text"] = _text(result, mechanism)
    return result


def closure(mechanism: Mechanism) -> dict[str, Any]:
    """A closed mechanism at home: degrees of freedom, closure residual, condition number.

    Raises:
        DescriptionError, ClosureError: it can't be closed or held; see `closure.geometry.mobility`.
    """
    solver = ClosureSolver(LoopGeometry.of(mechanism))
    found, rows = solver.mobility, solver.geometry.constraints.rows
    return {
        "degrees_of_freedom": found.degrees_of_freedom,
        "redundant_rows": [str(rows[i]) for i in found.left_out],
        "miss_at_home": float(np.abs(found.miss).max(initial=0.0)),
        "condition_at_home": float(solver.home.condition),
    }


def agreement(mechanism: Mechanism) -> dict[str, Any]:
    """What `InverseDynamics` gives by each formulation, beside Newton–Euler as it is written.

    The reference is neither compiled, recorded nor regrouped; of a closed chain it is the cut-open
    tree's, projected with Tᵀ. A joint's difference is relative to that joint's own scale:
    the magnitudes of its torque's terms, summed over the states.

    Returns:
        disagreement: the worst joint of each formulation; disagreement_by_joint: all of them;
        backends: what ran; left_out: formulations that would take long, and why.
    """
    bodies = len(mechanism.links) + len(mechanism.rotors)
    disagreement, by_joint, backends, left_out = {}, {}, {}, {}
    states, expected, scale = _reference(mechanism)
    for name in FORMULATIONS:
        if name == "lagrange_euler" and bodies > LARGEST_LAGRANGE_EULER:
            left_out[name] = f"O(n⁴) above {LARGEST_LAGRANGE_EULER} bodies takes long"
            continue
        small = bodies <= LARGEST_COMPILED
        if mechanism.loops and not small and name != "newton_euler":
            left_out[name] = f"a closed chain of more than {LARGEST_COMPILED} bodies takes long"
            continue
        backend = "auto" if small or name == "newton_euler" else "python"
        dynamics = InverseDynamics(mechanism, name, backend=backend)
        single = [dynamics(*state) for state in zip(*states, strict=True)]
        difference = np.abs([dynamics(*states) - expected, single - expected]).max(axis=(0, 1))
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
    """(q, qd, qdd) (k, n) of the joints that are given, tau (k, m) and each joint's scale (m,)."""
    tree = replace(mechanism, loops=(), actuated=(), platform=None)
    rng = np.random.default_rng(0)
    n = len(mechanism.actuated_names if mechanism.loops else mechanism.joint_names)
    q, qd, qdd = rng.uniform(-1, 1, (3, STATES, n))
    over_tree, T = (q, qd, qdd), np.broadcast_to(np.eye(n), (STATES, n, n))
    if mechanism.loops:
        closed = ClosedChain(mechanism, terms=(), backend="python")
        q = closed.home.q_r[:n] + NEAR_HOME * q
        names = tree.joint_names
        over_tree = tree_state(closed, q, qd, qdd, names)
        # τ = Tᵀ τ_tree
        order = [closed.coordinate_names.index(name) for name in names]
        T = closed.forward(q, qd).T[:, order]
    else:
        names = tree.joint_names
        T = T[..., [names.index(name) for name in mechanism.actuated_names]]

    def torques(*terms: str) -> Floats:
        equations = Equations.of(tree, terms=terms)
        rows = [equations.torques(*state) for state in zip(*over_tree, strict=True)]
        tau: Floats = np.einsum("kij,ki->kj", T, np.reshape(rows, (STATES, len(names))))
        return tau

    scale = np.sum([np.abs(torques(term)).sum(axis=0) for term in TERMS], axis=0)
    least = LEAST_SCALE * scale.max(initial=0.0) or 1.0  # a robot without any torque
    return (q, qd, qdd), torques(*TERMS), np.maximum(scale, least)


def _text(result: dict[str, Any], mechanism: Mechanism) -> str:
    lines = [
        f"{result['robot']}: {len(result['joints'])} joints, {result['links']} links, "
        f"{result['mass']:.6g} kg"
    ]
    kinds = {link.joint.name: link.joint.type for link in mechanism.links}
    lines += [
        f"  {i}. {name} ({kinds[name]})"
        + ("" if name in result["actuated"] else ", passive")
        + (", sensed" if name in mechanism.sensed else "")
        for i, name in enumerate(result["joints"], start=1)
    ]
    if result["rotors"]:
        lines.append(f"rotors: {', '.join(result['rotors'])}")
    if result["loops"]:
        closed = result["closure"]
        lines += [
            f"loops: {', '.join(result['loops'])}",
            f"degrees of freedom: {closed['degrees_of_freedom']}",
            f"redundant rows left out: {', '.join(closed['redundant_rows']) or 'none'}",
            f"home misses closing by {closed['miss_at_home']:.2g}, condition number "
            f"{closed['condition_at_home']:.3g}",
        ]
    for name, difference in result["disagreement"].items():
        by_joint = result["disagreement_by_joint"][name]
        worst = f" at {max(by_joint, key=by_joint.__getitem__)}" if difference else ""
        ran = result["backends"][name].removeprefix("torques: ")
        lines.append(f"{name} ({ran}) agrees to {difference:.1e} of each joint's own scale{worst}")
    lines += [f"{name} left out: {reason}" for name, reason in result["left_out"].items()]
    lines += [f"warning: {oddity}" for oddity in result["warnings"]]
    lines.append("sound" if not result["warnings"] else "computable, with warnings")
    return "\n".join(lines)
