"""Is a description sound, and do the formulations agree on it?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..closure import ClosureSolver, LoopGeometry
from ..description import load
from ..formulations import FORMULATIONS
from ..formulations.equations import Equations
from ..mechanism import Mechanism
from .compare import LARGEST_LAGRANGE_EULER

STATES = 5
"""Random states (by seed) at which the formulations are compared"""


def report(source: str, *, strict: bool = False) -> dict[str, Any]:
    """What `robot_dynamics check` prints: the robot, its oddities, the formulations' agreement.

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
        "disagreement": disagreement(mechanism),
    }
    if mechanism.loops:
        result["closure"] = closure(mechanism)
    result["text"] = _text(result, mechanism)
    return result


def closure(mechanism: Mechanism) -> dict[str, Any]:
    """What holds a mechanism with loops together, at home.

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


def disagreement(mechanism: Mechanism) -> dict[str, float]:
    """Largest relative difference of each formulation's tree torques from Newton–Euler's."""
    n = len(mechanism.joint_names)
    states = np.random.default_rng(0).uniform(-1, 1, (STATES, 3, n))
    reference = [Equations.of(mechanism).torques(*state) for state in states]
    scale = max((float(np.abs(tau).max()) for tau in reference if len(tau)), default=0.0) or 1.0
    found = {}
    bodies = len(mechanism.links) + len(mechanism.rotors)
    for name in FORMULATIONS:
        if name == "newton_euler" or (name == "lagrange_euler" and bodies > LARGEST_LAGRANGE_EULER):
            continue
        equations = Equations.of(mechanism, name)
        differences = [
            np.abs(equations.torques(*state) - tau).max(initial=0.0)
            for state, tau in zip(states, reference, strict=True)
        ]
        found[name] = float(max(differences)) / scale
    return found


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
        lines.append(f"{name} agrees with newton_euler to {difference:.1e}")
    if "lagrange_euler" not in result["disagreement"]:
        lines.append(
            f"lagrange_euler left out: O(n⁴) above {LARGEST_LAGRANGE_EULER} bodies takes long"
        )
    lines += [f"warning: {oddity}" for oddity in result["warnings"]]
    lines.append("sound" if not result["warnings"] else "computable, with warnings")
    return "\n".join(lines)
