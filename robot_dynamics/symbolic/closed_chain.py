# SPDX-License-Identifier: Apache-2.0
"""The symbolic equations of a mechanism with loops; (19) is an equation of [ZCPOM].

For a planar mechanism whose platform is attached by one hinge, such as the 3RRR, they are written
in the coordinates of [ZCPOM]: q_r = [q_a; q_s; …] of the legs and x = (x, y, θ_z) of the platform.
All hinges of the platform are then closures Γ(x, q_r) = 0 in vector form (19), and the matrices are
complete expressions. For any other mechanism, and if there are more motors than degrees of freedom,
the equations are written in the q_r of `subsystems`, with a list of intermediates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import sympy

from ..closure import ClosedChain
from ..closure.dynamics import platform
from ..closure.geometry.tree_motion import TreeMotion
from ..errors import ClosureError
from ..formulations.equations import TERMS, Equations
from ..formulations.terms import names_of_terms
from ..mechanism import Attachment, Joint, Link, Loop, Mechanism, Pose
from ..mechanism.base_parameters import Moments
from ..mechanism.transform import standard_form, without_bodies
from ..scalar import Array, array, is_zero, rotation_to
from .blocks import adjugate, blocks, determinant
from .closed_listed import listed_model
from .closed_model import ListedModel, PaperModel
from .polynomial import Ring
from .polynomial_model import layers
from .short import Writer
from .simplify import matrix, rational
from .symbolic_parameters import (
    Letters,
    Parameters,
    plain_names,
    symbolic_loops,
    symbolic_mechanism,
    symbols_of,
)
from .tidy import tidied

PLANE = (0, 1, 5)
"""The components of [ṗ; ω] that a planar platform has: ẋ, ẏ and ω_z"""
POSE = ("x", "y", "theta_z")
"""The symbols of a planar platform's position and angle"""
_FREE = (" ", "  ", "   ")
"""The joints by which it moves freely; no name in a description is blank"""


def derive(
    mechanism: Mechanism,
    formulation: str = "lagrange_euler",
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    simplify: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> PaperModel | ListedModel:
    """The equations of motion of a mechanism with loops; arguments as in `robot_dynamics.derive`.

    Raises:
        DescriptionError, ClosureError, InputError: see `ClosedChain`.
    """
    mechanism, notes = tidied(mechanism)
    chain = ClosedChain(mechanism, rotors=rotors, terms=(), backend="python")
    # with its home closed, and joints that do no work held fixed
    mechanism = chain.mechanism
    turning = any(law.presliding for *_, law in mechanism.friction_rows())
    # the paper's friction does not depend on accelerations
    of_paper = is_planar(mechanism) and not mechanism.driving and not turning
    taken = plain_names(chain.coordinate_names, POSE if of_paper else ())
    taken += [f"{name}{dots}" for name in taken for dots in ("_d", "_dd")]
    known = Parameters.of(mechanism, parameters == "symbols", [*taken, *POSE])
    if of_paper:
        model = _paper_model(
            mechanism, chain, formulation, known, rotors, terms, simplify, progress
        )
        return replace(model, notes=notes)
    progress(f"{formulation}: {len(chain.coordinate_names)} joints as a list of intermediates")
    return listed_model(mechanism, formulation, known, rotors, terms, notes)


def is_planar(mechanism: Mechanism) -> bool:
    """Do all joints turn about the base's z axis, with the platform attached by a passive hinge?"""
    if mechanism.platform is None:
        return False
    hinge = mechanism.link(mechanism.platform).joint
    special = {*mechanism.actuated_names, *mechanism.sensed}
    free = hinge.turns and hinge.coupling is None and hinge.name not in special
    carries = any(
        mechanism.platform in mechanism.path(link.parent) and link.joint.moves
        for link in mechanism.links
    )
    geared = any(
        rotor.mount == mechanism.platform or hinge.name in dict(rotor.ratios)
        for rotor in mechanism.rotors
    )
    tree = standard_form(mechanism)
    motion = TreeMotion(tree, tree.coordinates(), np.zeros(len(tree.joint_names)))
    axes = [*motion.z, *(motion.frame(loop.predecessor).rotation[:, 2] for loop in tree.loops)]
    upright = all(abs(abs(axis[2]) - 1) < 1e-9 for axis in axes)
    hinges = all(loop.type == "revolute" for loop in mechanism.loops)
    turning = all(link.joint.turns for link in mechanism.moving)
    return free and not carries and not geared and upright and hinges and turning


def _floating(mechanism: Mechanism) -> Mechanism:
    """The mechanism with a platform that moves freely in the plane by the joints `_FREE`; the hinge
    that attached it becomes another loop."""
    platform_link = mechanism.link(str(mechanism.platform))
    hinge = platform_link.joint
    upright = Pose(rotation_to(hinge.axis))
    loop = Loop(
        hinge.name,
        "revolute",
        Attachment(platform_link.parent, hinge.origin @ upright),
        Attachment(platform_link.name, hinge.tail.inverse() @ upright),
    )
    x, y, theta_z = _FREE
    X, Y, Z = (array(row) for row in ([1, 0, 0], [0, 1, 0], [0, 0, 1]))
    carriages = (
        Link(x, mechanism.base, Joint(x, "prismatic", axis=X)),
        Link(y, x, Joint(y, "prismatic", axis=Y)),
    )
    free = replace(platform_link, parent=y, joint=Joint(theta_z, "revolute", axis=Z))
    links = tuple(free if link.name == free.name else link for link in mechanism.links)
    return replace(mechanism, links=carriages + links, loops=(loop, *mechanism.loops))


def _paper_model(
    mechanism: Mechanism,
    chain: ClosedChain,
    formulation: str,
    known: Parameters,
    rotors: str,
    terms: Iterable[str],
    simplify: bool,
    progress: Callable[[str], None],
) -> PaperModel:
    ring = Ring()
    letters = Letters(ring, known)
    model = symbolic_mechanism(symbolic_loops(mechanism, letters), letters, letters.rotation)
    hinge = mechanism.link(str(mechanism.platform)).joint.name
    names = tuple(name for name in chain.coordinate_names if name != hinge)
    plain = plain_names(names, POSE)
    (q, qd), (x, xd) = ((symbols_of(s), symbols_of(s, "_d")) for s in (plain, POSE))
    q_r, x_p = (array(ring.letter("coordinate", s) for s in each) for each in (q, x))
    qd_r, xd_p = (array(ring.letter("rate", s) for s in each) for each in (qd, xd))
    writer = Writer(ring)
    write = writer.short if simplify else writer.plain

    progress("closure")
    tree = standard_form(_floating(without_bodies(model)))
    S, s = tree.coordinates()
    order = [tree.joint_names.index(name) for name in (*names, *_FREE)]
    motion = TreeMotion(tree, (S[:, order], s), array([*q_r, *x_p]))
    closure, rows = [], []
    for loop in tree.loops:
        before, after = motion.frame(loop.predecessor), motion.frame(loop.successor)
        for axis in (0, 1):
            # Γ_i = OP + P C_i - OA_i - A_i B_i - B_i C_i, in base axes (19)
            closure.append(after.point[axis] - before.point[axis])
            rows.append(after.V[axis] - before.V[axis])
    J = np.asarray(rows, dtype=object)
    J_q, J_x = J[:, : len(q)], J[:, len(q) :]

    progress("platform")
    body, legs = _platform(model)
    R = motion.frame(Attachment(str(model.platform))).rotation
    omega = array([0, 0, xd_p[2]])
    plane = list(PLANE)
    on_platform = {
        "D_x": platform.inertia_matrix(body, R)[np.ix_(plane, plane)],
        "C_x": platform.coriolis_matrix(body, R, omega)[np.ix_(plane, plane)],
        "G_x": platform.gravity_wrench(body, R, model.gravity)[plane],
    }

    progress(f"legs by {formulation}")
    terms = frozenset(names_of_terms(terms))
    equations = [
        Equations.of(layer, formulation, rotors, terms - {"friction"})
        for layer in layers(legs, rotors)
    ]
    back = [names.index(name) for name in legs.joint_names]
    forth = [legs.joint_names.index(name) for name in names]
    q_, qd_ = q_r[back], qd_r[back]
    on_legs = {
        "D_q": reduce(add, (x.mass_matrix(q_) for x in equations))[np.ix_(forth, forth)],
        "C_q": reduce(add, (x.coriolis_matrix(q_, qd_) for x in equations))[np.ix_(forth, forth)],
        "G_q": reduce(add, (x.gravity(q_) for x in equations))[forth],
    }
    progress("writing")
    parts = {name: matrix(values, write) for name, values in (on_platform | on_legs).items()}
    progress("Jacobians")
    of_loops = {"closure": closure, "J_x": J_x, "J_q": J_q}
    parts |= {name: matrix(values, write) for name, values in of_loops.items()}
    parts["K"] = _solved(J_q, -J_x, write)
    with_friction = Equations.of(_tree(symbolic_mechanism(mechanism, known)))
    friction = with_friction.friction(array(q)[back], array(qd)[back])
    parts["friction"] = matrix(friction[forth], rational)
    a, k = len(mechanism.actuated_names), len(mechanism.actuated_names) + len(mechanism.sensed)
    used = set().union(*(values.free_symbols for values in parts.values()))
    return PaperModel(
        mechanism.name,
        q[:a],
        q[a:k],
        q[k:],
        x,
        qd,
        xd,
        **parts,
        parameters={symbol: value for symbol, value in known.values.items() if symbol in used},
    )


def _tree(mechanism: Mechanism) -> Mechanism:
    """The legs alone, without loops."""
    on_platform = platform.platform_links(mechanism)
    links = tuple(link for link in mechanism.links if link.name not in on_platform)
    return replace(mechanism, links=links, platform=None, loops=())


def _platform(model: Mechanism) -> tuple[Moments, Mechanism]:
    """(the platform's moments in its own frame, the legs)."""
    return platform.platform_body(model)[0], _tree(model)


def _solved(A: Array, B: Array, write: Callable[[Any], sympy.Expr]) -> sympy.Matrix:
    """A⁻¹ B for a matrix A of polynomials that consists of blocks, one for each leg."""
    solution = sympy.zeros(A.shape[1], B.shape[1])
    for columns in blocks(A):
        rows = [i for i in range(A.shape[0]) if any(not is_zero(A[i, j]) for j in columns)]
        if len(rows) != len(columns):
            raise ClosureError(
                f"derive: K has no closed form for a leg with {len(columns)} joints and "
                f"{len(rows)} closure equations",
                name="derive",
            )
        block = A[np.ix_(rows, columns)]
        # the determinant alone is short: L l sin q_p for a leg of two links
        Delta = write(determinant(block))
        part = adjugate(block) @ B[rows]
        for i, j in enumerate(columns):
            for k in range(B.shape[1]):
                solution[j, k] = write(part[i, k]) / Delta
    return solution
