# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of JAX's arrays, for `jit`, `vmap` and `grad`.

They compute in their arguments' precision: call `jax.config.update("jax_enable_x64", True)` before
anything else to have float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp

from . import arrays
from .library import Definition

_UNARY = {
    "neg": jnp.negative,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tanh": jnp.tanh,
    "exp": jnp.exp,
    "sqrt": jnp.sqrt,
    "atan": jnp.arctan,
    "sign": jnp.sign,
}


def function(definition: Definition) -> Callable[..., Any]:
    """A function of arrays (…, n)."""
    of_jax = arrays.function(
        definition,
        _UNARY,
        lambda values: jnp.broadcast_arrays(*values),
        partial(jnp.stack, axis=-1),
    )

    def call(*vectors: Any) -> Any:
        return of_jax(*map(jnp.asarray, vectors))

    call.__name__, call.__doc__ = of_jax.__name__, of_jax.__doc__
    return call
