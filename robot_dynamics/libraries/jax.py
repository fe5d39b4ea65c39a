# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of JAX's arrays, which support `jit`, `vmap` and `grad`.

They compute in the precision of their arguments: for float64, call
`jax.config.update("jax_enable_x64", True)` before anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ..codegen.recorder import FUNCTIONS
from . import arrays
from .library import Closure, Definition

_FUNCTIONS = {name: getattr(jnp, "arctan" if name == "atan" else name) for name in FUNCTIONS}


def function(definition: Definition) -> Callable[..., Any]:
    """A program as a function of arrays (…, n)."""
    of_jax = arrays.function(
        definition,
        _FUNCTIONS,
        lambda values: jnp.broadcast_arrays(*values),
        partial(jnp.stack, axis=-1),
    )

    def call(*vectors: Any) -> Any:
        return of_jax(*map(jnp.asarray, vectors))

    call.__name__, call.__doc__ = of_jax.__name__, of_jax.__doc__
    return call


def closing(definition: Definition, closure: Closure) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself."""
    of_jax = arrays.closing(
        definition,
        closure,
        function,
        like=lambda numbers, q: jnp.asarray(numbers, dtype=q.dtype),
        still=jax.lax.stop_gradient,
        floor=jnp.floor,
        where=jnp.where,
        joined=_joined,
        repeated=lambda n, f, x: jax.lax.fori_loop(0, n, f, x),
    )

    def call(*vectors: Any) -> Any:
        return of_jax(*map(jnp.asarray, vectors))

    call.__name__, call.__doc__ = of_jax.__name__, of_jax.__doc__
    return call


def _joined(parts: list[Any]) -> Any:
    batch = jnp.broadcast_shapes(*(part.shape[:-1] for part in parts))
    wide = [jnp.broadcast_to(part, (*batch, part.shape[-1])) for part in parts]
    return jnp.concatenate(wide, axis=-1)
