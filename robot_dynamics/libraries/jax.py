# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of JAX's arrays, which support `jit`, `vmap` and `grad`.

They compute in the precision of their arguments: for float64, call
`jax.config.update("jax_enable_x64", True)` before anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..codegen.recorder import FUNCTIONS
from . import arrays
from .library import Definition, PassiveJoints

_FUNCTIONS = {name: getattr(jnp, "arctan" if name == "atan" else name) for name in FUNCTIONS}


def function(definition: Definition) -> Callable[..., Any]:
    """A program as a function of arrays (…, n)."""
    return arrays.function(
        definition, jnp, _FUNCTIONS, lambda values: jnp.broadcast_arrays(*values), jnp.asarray
    )


def closing(definition: Definition, closure: PassiveJoints) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself."""
    return arrays.closing(
        definition,
        closure,
        function,
        jnp,
        like=lambda numbers, q: jnp.asarray(numbers, dtype=q.dtype),
        taken=jnp.asarray,
        still=jax.lax.stop_gradient,
        repeated=lambda n, f, x: jax.lax.fori_loop(0, n, f, x),
    )
