# SPDX-License-Identifier: Apache-2.0
"""Derives a mechanism's symbolic equations of motion by any formulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from ..dynamics import checked
from ..errors import InputError, choices, counted, wrong
from ..formulations import lagrange_euler
from ..formulations.equations import TERMS
from ..formulations.terms import MOTION, names_of_terms
from ..mechanism import Mechanism
from ..scalar import Array
from .document import Section
from .listing import Assignments
from .matrices import as_list, friction_of, whole
from .polynomial import BITS, Polynomial, TooManyTerms
from .polynomial_model import PolynomialModel
from .short import cost
from .simplify import matrix
from .steps import dh_table
from .steps import lagrange_euler as lagrange_euler_steps
from .straight_line import inlined, straight_line
from .sweeps import sweeps
from .symbolic_model import SymbolicModel
from .symbolic_parameters import Parameters, Task, plain_names, symbols_of
from .tidy import tidied

if TYPE_CHECKING:
    from .closed_model import ClosedSymbolicModel

PARAMETERS = ("symbols", "numbers")

MOST_AS_A_WHOLE = 16
"""Up to this number of terms, a single expression for a whole torque is tried too"""
MOST_TERMS = 2000
"""Largest number of terms of all expanded torques together; beyond it, intermediates are listed"""
LARGEST_STEPS = 6
"""Largest number of bodies for which the model includes the steps of Lagrange–Euler"""


def derive(
    mechanism: Mechanism,
    formulation: str = "lagrange_euler",
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    simplify: bool = True,
    intermediates: bool | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> SymbolicModel | ClosedSymbolicModel:
    """The equations of motion tau = D qdd + C qd + g + friction as SymPy expressions.

    Args:
        mechanism: the robot, as from `rd.load`.
        formulation: lagrange_euler (whose steps are kept), newton_euler, gibbs_appell or murphy.
        parameters: "symbols" for symbolic masses, lengths and inertias (m1, a1, I_xx1, …; zeros
            stay zeros), "numbers" for the exact values of the description.
        rotors, terms: as in `InverseDynamics`.
        simplify: search for short expressions; False: a faster derivation.
        intermediates: True: write the torques in terms of a list of intermediate values
            (`model.intermediates`); False: one expression for each torque; None: the list only if
            whole expressions would be too long. There are `steps` only without the list.
        progress: called with a short text at each stage of the derivation.

    Returns:
        A `SymbolicModel`; for a mechanism with loops a `ClosedSymbolicModel`.

    Raises:
        InputError: no mechanism that can move; an unknown formulation, rotor model, term or kind of
            parameters.
        DescriptionError, ClosureError: with loops, see `ClosedChain`.
    """
    if parameters not in PARAMETERS:
        raise wrong(InputError, "parameters", parameters, choices(PARAMETERS))
    mechanism = checked.robot(mechanism)
    if mechanism.loops:
        from .closed_equations import derive as derive_closed

        return derive_closed(
            mechanism,
            formulation,
            parameters=parameters,
            rotors=rotors,
            terms=terms,
            simplify=simplify,
            progress=progress,
        )
    mechanism, notes = tidied(mechanism)
    names = mechanism.joint_names
    plain = plain_names(names)
    q, qd, qdd = (symbols_of(plain, ending) for ending in ("", "_d", "_dd"))
    taken = [str(symbol) for symbol in (*q, *qd, *qdd)]
    known = Parameters.of(mechanism, parameters == "symbols", taken)
    progress(f"{formulation}: deriving {counted(len(names), 'joint')}")
    chosen = frozenset(names_of_terms(terms))
    motion = [name for name in MOTION if name in chosen]
    if "rotors" in motion and len(motion) < len(MOTION):
        notes += (
            "D and C are those of links and rotors; of their motion, the torques contain only "
            + " and ".join(motion),
        )
    task = Task(mechanism, q, qd, qdd, known, formulation, rotors, chosen)
    if not intermediates:
        try:
            return _whole(task, simplify, notes, progress)
        except TooManyTerms:
            progress("expressions are too long; introducing named intermediates")

    def derivation() -> list[Section]:
        frames = dh_table(mechanism, q, known)
        if formulation == "lagrange_euler":
            return [frames, _too_many(len(mechanism.moving))]
        model = PolynomialModel(task)
        return [frames, *sweeps(model, formulation, names, model.writer.short)]

    assignments: Assignments = ()
    if intermediates is False:
        parts = inlined(*straight_line(task))
    else:
        if formulation == "lagrange_euler":
            notes += (
                "too long for Lagrange–Euler; derived with the Newton–Euler recursion instead",
            )
        assignments, parts = as_list(task, progress)
    return SymbolicModel(
        mechanism.name,
        names,
        q,
        qd,
        qdd,
        parameters=known.values,
        intermediates=assignments,
        notes=notes,
        terms=chosen,
        described=known.values,
        derivation=derivation,
        **parts,
    )


def _whole(
    task: Task, simplify: bool, notes: tuple[str, ...], progress: Callable[[str], None]
) -> SymbolicModel:
    """The model in whole expressions.

    Raises:
        TooManyTerms: the expressions would fill pages.
    """
    mechanism, rotors, chosen = task.mechanism, task.rotors, task.terms
    names, n = mechanism.joint_names, len(task.q)
    model = PolynomialModel(task)
    writer = model.writer
    write = writer.short if simplify else writer.plain
    friction = friction_of(task)
    progress("torques")
    motion = model.torques()
    if sum(len(x.terms) for x in motion if isinstance(x, Polynomial)) > MOST_TERMS:
        raise TooManyTerms
    progress("matrices")
    D, C, g = (matrix(each, write) for each in whole(model).values())
    g = g if "gravity" in chosen else sympy.zeros(n, 1)
    torques = []
    for name, torque, friction_torque in zip(names, motion, friction, strict=True):
        progress(f"torque at {name}")
        torques.append(_torque(model, torque, write, simplify) + friction_torque)
    steps = None
    book = rotors if "rotors" in chosen else "none"  # the steps have no choice of terms
    bodies = len(mechanism.moving) + (len(mechanism.rotors) if book == "full" else 0)
    if task.formulation == "lagrange_euler" and bodies <= LARGEST_STEPS:
        progress("steps")
        steps = _written(model.steps(book), write)
    torque_matrix = sympy.Matrix(n, 1, torques)
    used = set().union(*(each.free_symbols for each in (torque_matrix, D, C, g)))
    described = task.known.values
    values = {symbol: value for symbol, value in described.items() if symbol in used}

    def derivation() -> list[Section]:
        frames = dh_table(mechanism, task.q, task.known)
        if task.formulation != "lagrange_euler":
            return [frames, *sweeps(model, task.formulation, names, write)]
        if steps is None:
            return [frames, _too_many(bodies)]
        local = [(parent, _entries(pose, write)) for parent, pose in model.local(book)]
        rigid = torque_matrix - friction
        return list(lagrange_euler_steps(steps, local, task.qd, rigid, frames))

    return SymbolicModel(
        mechanism.name,
        names,
        task.q,
        task.qd,
        task.qdd,
        D,
        C,
        g,
        friction,
        torque_matrix,
        values,
        steps=steps,
        notes=notes,
        terms=chosen,
        described=described,
        derivation=derivation,
    )


def _too_many(bodies: int) -> Section:
    words = (
        f"U_ij and U_ijk of {bodies} bodies are too long to show (limit: {LARGEST_STEPS} bodies); "
        "the recursions (newton_euler, gibbs_appell, murphy) are shown for any number"
    )
    return Section("L-E 2 to L-E 10", words=words)


def _entries(values: Array, write: Any) -> Array:
    result = np.empty(values.shape, dtype=object)
    for place, value in np.ndenumerate(values):
        result[place] = write(value)
    return result


def _torque(model: PolynomialModel, torque: Any, write: Any, simplify: bool) -> sympy.Expr:
    """D q̈ + C q̇ + g of one joint, as a sum of these parts, or as one expression if shorter."""
    if not isinstance(torque, Polynomial):
        return write(torque)
    ring = model.ring
    rates, accelerations = ({ring.slot(x) for x in each} for each in (model.qd, model.qdd))
    parts: dict[Any, dict[int, complex]] = {}
    for key, value in torque.terms.items():
        slots = {slot for slot, _ in ring.exponents(key)}
        part = next(iter(slots & accelerations), "C" if slots & rates else "g")
        parts.setdefault(part, {})[key] = value
    brackets: dict[sympy.Expr, list[sympy.Expr]] = {}
    rest = []
    for part, terms in sorted(parts.items(), key=lambda each: str(each[0])):
        if isinstance(part, int):
            acceleration = ring.generators[part].expression
            # D_ij, the factor of q̈_j
            alone = Polynomial(ring, {key - (1 << (BITS * part)): v for key, v in terms.items()})
            brackets.setdefault(write(alone), []).append(acceleration)
        else:
            rest.append(write(Polynomial(ring, terms)))
    moved = [sympy.Add(*each) * bracket for bracket, each in brackets.items()]
    joined = sympy.Add(*moved, *rest)
    if not simplify or len(torque.terms) > MOST_AS_A_WHOLE:
        return joined
    return min(joined, write(torque), key=cost)


def _written(steps: lagrange_euler.Steps, write: Any) -> lagrange_euler.Steps:
    """The steps as SymPy expressions."""
    names = ("A", "Q", "U", "dU", "J", "D", "h", "C")
    written: dict[str, Any] = {name: _entries(getattr(steps, name), write) for name in names}
    return replace(steps, **written)
