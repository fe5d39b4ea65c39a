"""A closed mechanism in symbols.

A planar one whose platform hangs on one hinge, as the 3RRR does, is written in the paper's own
coordinates: q_r = [q_a; q_s; …] of the legs and x = (x, y, θ_z) of the platform, all hinges of the
platform being closures Γ(x, q_r) = 0 in vector form (19). Its matrices are whole expressions.
Any other mechanism is written in the q_r of `subsystems`, as a list of intermediates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from ..closure import ClosedChain
from ..closure.dynamics import platform
from ..closure.geometry.kinematics import TreeMotion
from ..codegen.recorder import Recorder
from ..errors import ClosureError
from ..formulations.equations import TERMS, Equations
from ..mechanism import Attachment, Joint, Link, Loop, Mechanism, Pose
from ..mechanism.transform import standard_form
from ..scalar import array, rotation_to
from .closed_model import ListedModel, PaperModel
from .parameters import Parameters, plain_names, symbolic_mechanism
from .simplify import matrix
from .straight_line import written

PLANE = (0, 1, 5)
"""Of [ṗ; ω]: what a planar platform has"""


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
    chain = ClosedChain(mechanism, rotors=rotors, terms=(), backend="python")
    if _is_planar(mechanism):
        known = Parameters(parameters == "symbols")
        return _paper_model(mechanism, chain, formulation, known, rotors, terms, simplify, progress)
    progress(f"{formulation}: {len(chain.coordinate_names)} joints as a list of intermediates")
    return _listed_model(mechanism, formulation, rotors, terms)


def _is_planar(mechanism: Mechanism) -> bool:
    """Do all joints turn about the base's z, and does the platform hang on one of its own?"""
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
    """The platform free in the plane by joints x, y, theta_z; its hinge is one more loop."""
    platform_link = mechanism.link(str(mechanism.platform))
    hinge = platform_link.joint
    upright = Pose(rotation_to(hinge.axis))
    loop = Loop(
        hinge.name,
        "revolute",
        Attachment(platform_link.parent, hinge.origin @ upright),
        Attachment(platform_link.name, hinge.tail.inverse() @ upright),
    )
    X, Y, Z = (array(row) for row in ([1, 0, 0], [0, 1, 0], [0, 0, 1]))
    carriages = (
        Link("free x", mechanism.base, Joint("x", "prismatic", axis=X)),
        Link("free y", "free x", Joint("y", "prismatic", axis=Y)),
    )
    free = replace(platform_link, parent="free y", joint=Joint("theta_z", "revolute", axis=Z))
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
    model = symbolic_mechanism(_with_symbolic_loops(mechanism, known), known)
    hinge = mechanism.link(str(mechanism.platform)).joint.name
    names = tuple(name for name in chain.coordinate_names if name != hinge)
    plain = plain_names(names, "q")
    q = tuple(sympy.Symbol(name, real=True) for name in plain)
    qd = tuple(sympy.Symbol(f"{name}_d", real=True) for name in plain)
    x = tuple(sympy.Symbol(name, real=True) for name in ("x", "y", "theta_z"))
    xd = tuple(sympy.Symbol(f"{name}_d", real=True) for name in ("x", "y", "theta_z"))

    progress("closure")
    tree = standard_form(_floating(model))
    S, s = tree.coordinates()
    order = [tree.joint_names.index(name) for name in (*names, "x", "y", "theta_z")]
    motion = TreeMotion(tree, (S[:, order], s), array([*q, *x]))
    closure, rows = [], []
    for loop in tree.loops:
        before, after = motion.frame(loop.predecessor), motion.frame(loop.successor)
        for axis in (0, 1):
            # Γ_i = OP + P C_i - OA_i - A_i B_i - B_i C_i, in base axes (19)
            closure.append(after.point[axis] - before.point[axis])
            rows.append(after.V[axis] - before.V[axis])
    J = matrix(rows, simplify)
    J_q, J_x = J[:, : len(q)], J[:, len(q) :]

    progress("platform")
    body, legs = platform.platform_body(model)
    R = motion.frame(Attachment(str(model.platform))).rotation
    omega = array([0, 0, xd[2]])
    plane = list(PLANE)
    on_platform = {
        "D_x": platform.inertia_matrix(body, R)[np.ix_(plane, plane)],
        "C_x": platform.coriolis_matrix(body, R, omega)[np.ix_(plane, plane)],
        "G_x": platform.gravity_wrench(body, R, model.gravity)[plane],
    }

    progress(f"legs by {formulation}")
    legs = replace(
        legs,
        links=tuple(x for x in legs.links if x.name not in platform.platform_links(model)),
        platform=None,
        loops=(),
    )
    equations = Equations.of(legs, formulation, rotors, terms)
    back = [names.index(name) for name in legs.joint_names]
    forth = [legs.joint_names.index(name) for name in names]
    q_, qd_ = array(q)[back], array(qd)[back]
    on_legs = {
        "D_q": equations.mass_matrix(q_)[np.ix_(forth, forth)],
        "C_q": equations.coriolis_matrix(q_, qd_)[np.ix_(forth, forth)],
        "G_q": equations.gravity(q_)[forth],
        "friction": equations.friction(qd_)[forth],
    }
    a, k = len(mechanism.actuated_names), len(mechanism.actuated_names) + len(mechanism.sensed)
    parts = {name: matrix(values, simplify) for name, values in (on_platform | on_legs).items()}
    parts |= {
        "closure": matrix(closure, simplify),
        "J_x": J_x,
        "J_q": J_q,
        "K": matrix(_solved(J_q, -J_x), simplify),
    }
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


def _with_symbolic_loops(mechanism: Mechanism, known: Parameters) -> Mechanism:
    """Where the hinges are on their links: e_x1, e_y1 … on the successor, f_x1 … before."""

    def placed(end: Attachment, kind: str, i: int) -> Attachment:
        p = [known(f"{kind}_{c}{i}", v) for c, v in zip("xyz", end.pose.translation, strict=True)]
        return Attachment(end.link, Pose(end.pose.rotation, array(p)))

    loops = tuple(
        replace(
            loop,
            predecessor=placed(loop.predecessor, "f", i),
            successor=placed(loop.successor, "e", i),
        )
        for i, loop in enumerate(mechanism.loops, 2)
    )
    return replace(mechanism, loops=loops)


def _solved(A: sympy.Matrix, B: sympy.Matrix) -> sympy.Matrix:
    """A⁻¹ B of a matrix that falls into blocks, one a leg."""
    solution = sympy.zeros(A.shape[1], B.shape[1])
    for columns in _blocks(A):
        rows = [i for i in range(A.shape[0]) if any(A[i, j] != 0 for j in columns)]
        if len(rows) != len(columns):
            raise ClosureError(
                f"derive: a leg with {len(columns)} joints against {len(rows)} closure rows has "
                "no K in closed form",
                name="derive",
            )
        block = A.extract(rows, columns)
        # the determinant by itself is short: L l sin q_p of two links
        inverse = block.adjugate() / matrix([[block.det(method="berkowitz")]], True)[0]
        part = inverse * B.extract(rows, list(range(B.shape[1])))
        for i, j in enumerate(columns):
            solution[j, :] = part[i, :]
    return solution


def _blocks(A: sympy.Matrix) -> list[list[int]]:
    """Columns that share a row belong together."""
    groups: list[set[int]] = []
    for i in range(A.shape[0]):
        joined = {j for j in range(A.shape[1]) if A[i, j] != 0}
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return [sorted(group) for group in groups if group]


def _listed_model(
    mechanism: Mechanism, formulation: str, rotors: str, terms: Iterable[str]
) -> ListedModel:
    chain = ClosedChain(mechanism, formulation, rotors=rotors, terms=terms, backend="python")
    names, a = chain.coordinate_names, len(chain.actuated_names)
    plain = plain_names(names, "q")
    symbols = [
        *(sympy.Symbol(name, real=True) for name in plain),
        *(sympy.Symbol(f"{name}_d", real=True) for name in plain[:a]),
        *(sympy.Symbol(f"{name}_dd", real=True) for name in plain[:a]),
    ]
    recorder, model = Recorder(), chain.model
    q, qd, qdd = (recorder.inputs(size) for size in (len(names), a, a))
    parts: dict[str, Any] = {
        "closure": model.residual(q),
        "T": model.T(q),
        "D": model.mass_matrix(q),
        "C": model.coriolis_matrix(q, qd),
        "g": model.gravity(q),
        "torques": model.torques(q, qd, qdd),
    }
    flat = [entry for part in parts.values() for entry in np.ravel(part)]
    assignments, outputs = written(recorder.program(flat), symbols)
    matrices = {}
    for name, part in parts.items():
        shape = part.shape if part.ndim == 2 else (len(part), 1)
        matrices[name] = sympy.Matrix(*shape, [outputs.pop(0) for _ in range(part.size)])
    n = len(names)
    q_s, qd_s, qdd_s = symbols[:n], symbols[n : n + a], symbols[n + a :]
    return ListedModel(
        mechanism.name,
        chain.joint_names,
        names,
        tuple(q_s),
        tuple(qd_s),
        tuple(qdd_s),
        assignments,
        **matrices,
    )
