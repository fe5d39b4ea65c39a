# SPDX-License-Identifier: Apache-2.0
"""Programs as `casadi.Function`s over SX, which can be differentiated, mapped and exported as C."""

from __future__ import annotations

import math
from typing import Any

import casadi

from ..codegen.recorder import FUNCTIONS
from .library import Definition, PassiveJoints

_FUNCTIONS = {name: getattr(casadi, name) for name in FUNCTIONS}


def function(definition: Definition) -> Any:
    """A program as a `casadi.Function` of column vectors; results are matrices or columns."""
    sizes = definition.program.sizes
    vectors = [
        casadi.SX.sym(name, size) for name, size in zip(definition.arguments, sizes, strict=True)
    ]
    entries = [x for vector in vectors for x in casadi.vertsplit(vector)]
    found = definition.parts(definition.evaluated(entries, _FUNCTIONS))
    names, results = [], []
    for (name, shape), part in zip(definition.results, found, strict=True):
        result = casadi.vertcat(*part)
        if len(shape) == 2:
            # CasADi stores matrices by columns
            result = casadi.reshape(result, *reversed(shape)).T
        names.append(name)
        results.append(casadi.SX(result))
    return casadi.Function(definition.name, vectors, results, list(definition.arguments), names)


def closing(definition: Definition, closure: PassiveJoints) -> Any:
    """A program whose first vector is all joints, as a `casadi.Function` of q (k,) that closes the
    loops itself."""
    k, doubt, size = closure.known, closure.doubt, len(closure.start)
    followed, improved = function(closure.followed), function(closure.improved)
    # [memory; number of doubtful strides]
    before, target = casadi.SX.sym("memory", size + 1), casadi.SX.sym("q", k)
    memory = followed(target, before[:size])
    lost = before[size] + casadi.if_else(memory[doubt] <= 1, 0, 1)
    stride = casadi.Function("stride", [before, target], [casadi.vertcat(memory, lost)])
    q = casadi.MX.sym("q", k)
    way = q - casadi.DM(closure.q_home)
    turns = casadi.floor(way / (2 * math.pi) + 0.5) * casadi.DM([float(x) for x in closure.wraps])
    way = way - 2 * math.pi * turns
    shares = casadi.DM([closure.share(i + 1) for i in range(closure.strides)]).T
    targets = casadi.repmat(casadi.DM(closure.q_home), 1, closure.strides) + way @ shares
    last = stride.fold(closure.strides)(casadi.DM([*closure.start, 0.0]), targets)
    u = casadi.if_else(last[size] > 0, math.nan, last[closure.others])
    # the other joints are not differentiated along the path. A new symbol q is needed below: called
    # with its own symbol, `start` would be replaced by its expression, which has derivatives
    start = casadi.Function("start", [q], [u], {"is_diff_in": [False]})
    q = casadi.MX.sym("q", k)
    state = [q, *(
        casadi.MX.sym(name, n)
        for name, n in zip(definition.arguments[1:], definition.program.sizes[1:], strict=True)
    )]  # fmt: skip
    u = improved(q, improved(q, start(q)))
    names = [name for name, _ in definition.results]
    results = function(definition)(casadi.vertcat(q, u), *state[1:])
    results = results if isinstance(results, tuple) else (results,)
    return casadi.Function(definition.name, state, list(results), list(definition.arguments), names)
