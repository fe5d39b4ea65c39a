# SPDX-License-Identifier: Apache-2.0
"""Programs as `casadi.Function`s over SX, which differentiate, map and print themselves as C."""

from __future__ import annotations

from typing import Any

import casadi

from .library import Definition, run

_UNARY = {
    "neg": lambda x: -x,
    "sin": casadi.sin,
    "cos": casadi.cos,
    "tanh": casadi.tanh,
    "exp": casadi.exp,
    "sqrt": casadi.sqrt,
    "atan": casadi.atan,
    "sign": casadi.sign,
}


def function(definition: Definition) -> Any:
    """A `casadi.Function` of column vectors; matrices are matrices, vectors are columns."""
    sizes = definition.program.sizes
    vectors = [
        casadi.SX.sym(name, size) for name, size in zip(definition.arguments, sizes, strict=True)
    ]
    entries = [x for vector in vectors for x in casadi.vertsplit(vector)]
    found = definition.parts(run(definition.program, entries, _UNARY))
    names, results = [], []
    for (name, shape), part in zip(definition.results, found, strict=True):
        result = casadi.vertcat(*part)
        if len(shape) == 2:
            # CasADi stores matrices by columns
            result = casadi.reshape(result, *reversed(shape)).T
        names.append(name)
        results.append(casadi.SX(result))
    return casadi.Function(definition.name, vectors, results, list(definition.arguments), names)
