# SPDX-License-Identifier: Apache-2.0
"""Equations that are too long for one expression, as a list of intermediates without repetition.

The formulation runs over the recorder's scalars, and the recorded program is written by a `Sheet`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy

from ..codegen.recorder import Recorded, Recorder
from ..formulations.equations import Equations
from ..scalar import Array, array
from .polynomial import Polynomial, Ring
from .sheet import Assignments, Sheet
from .short import Writer
from .simplify import matrix
from .symbolic_parameters import Letters, Parameters, Task, symbolic_mechanism


class Recording:
    """A recorder whose inputs are coordinates and parameters, as polynomials of one ring."""

    def __init__(self, known: Parameters):
        self.ring = Ring()
        self._known = known
        self._letters = Letters(self.ring, known)
        self._recorder = Recorder()
        self._inputs: list[Polynomial] = []
        self._entered: dict[frozenset[tuple[int, complex]], Any] = {}

    def coordinates(self, symbols: Sequence[sympy.Symbol], kind: str = "coordinate") -> Array:
        """The recorder's scalars for these symbols; for `kind` see `Generator.kind`."""
        return array([self._recorded(self.ring.letter(kind, symbol)) for symbol in symbols])

    def __call__(self, name: str, value: Any, place: str = "") -> Any:
        """The recorder's scalar for a parameter, or its exact number; see `Naming`."""
        if not self._known.symbols or isinstance(value, Recorded):
            return value
        return self._recorded(self._letters(name, value, place))

    def rotation(self, matrix: Array, i: str, place: str = "") -> Array:
        """The recorder's scalars for a rotation matrix; see `Letters.rotation`."""
        exact = self._letters.rotation(matrix, i, place)
        return array(self._recorded(x) for x in exact.flat).reshape(3, 3)

    def written(
        self,
        wanted: Mapping[str, Array],
        names: Sequence[str] = (),
        met: Mapping[str, Any] = MappingProxyType({}),
        kept: Mapping[str, Any] = MappingProxyType({}),
        basis: Mapping[int, Mapping[int, int]] = MappingProxyType({}),
    ) -> tuple[Assignments, dict[str, sympy.Matrix]]:
        """The recorded arrays as (assignments, matrices); see `Sheet.written`.

        Args:
            wanted: arrays of recorded values, (m, n) or (m,).
            names: the names of all their entries, one array after the other; empty: a rough list.
            kept: intermediates by name; those that occur in the values are assigned to these names.
            met: the same, but they are substituted where this does not lengthen the list.
            basis: see `Writer`.
        """
        values = [entry for part in wanted.values() for entry in np.ravel(part)]
        program = self._recorder.program([*values, *kept.values(), *met.values()])
        taken = {str(x.expression) for x in self.ring.generators}
        sheet = Sheet(Writer(self.ring, basis), taken, rough=not names)
        count = len(values)
        assignments, outputs = sheet.written(
            program, self._inputs, [*names, *kept, *met], count, count + len(kept)
        )
        rest = iter(outputs)  # the entries of one array after the other
        return assignments, {
            name: matrix(part, lambda _: next(rest)) for name, part in wanted.items()
        }

    def _recorded(self, value: Any) -> Any:
        if not isinstance(value, Polynomial):
            return value
        value = self.ring.normal(value)
        if set(value.terms) <= {0}:
            return value.terms.get(0, 0j).real
        key = frozenset(value.terms.items())
        if key not in self._entered:
            self._inputs.append(value)
            self._entered[key] = self._recorder.inputs(1)[0]
        return self._entered[key]


def straight_line(task: Task) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g, friction}) by the recorder, in the symbols of the task."""
    recording = Recording(task.known)
    q, qd, qdd = (recording.coordinates(state) for state in (task.q, task.qd, task.qdd))
    model = symbolic_mechanism(task.mechanism, recording)
    equations = Equations.of(model, task.formulation, task.rotors, task.terms)
    n = len(q)
    nothing = np.zeros(n)
    parts = {
        "torques": equations.torques(q, qd, qdd),
        "D": equations.mass_matrix(q),
        "C": equations.coriolis_matrix(q, qd),
        "g": equations.gravity(q) if "gravity" in equations.terms else nothing,
        "friction": equations.friction(q, qd, qdd) if "friction" in equations.terms else nothing,
    }
    return recording.written(parts)


def inlined(assignments: Assignments, parts: dict[str, sympy.Matrix]) -> dict[str, sympy.Matrix]:
    """The matrices with every intermediate replaced by its expression.

    Args:
        assignments: the intermediates.
        parts: the matrices by name.
    """
    known: dict[sympy.Basic, sympy.Expr] = {}
    for symbol, expression in assignments:
        known[symbol] = expression.xreplace(known)
    return {name: values.xreplace(known) for name, values in parts.items()}
