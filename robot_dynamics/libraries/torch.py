# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of PyTorch's tensors on any device, with autograd and `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..codegen.recorder import FUNCTIONS
from . import arrays
from .library import Closure, Definition

_FUNCTIONS = {name: getattr(torch, name) for name in FUNCTIONS}


def _broadcast(values: list[Any]) -> list[Any]:
    like = next(x for x in values if isinstance(x, torch.Tensor))
    tensors = [x if isinstance(x, torch.Tensor) else like.new_tensor(x) for x in values]
    return list(torch.broadcast_tensors(*tensors))


def function(definition: Definition) -> Callable[..., Any]:
    """A program as a function of tensors (…, n)."""
    return arrays.function(definition, _FUNCTIONS, _broadcast, partial(torch.stack, dim=-1))


def closing(definition: Definition, closure: Closure) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of tensors q (…, k) that closes the
    loops itself."""
    return arrays.closing(
        definition,
        closure,
        function,
        like=lambda numbers, q: q.new_tensor(numbers),
        still=lambda x: x.detach(),
        floor=torch.floor,
        where=torch.where,
        joined=_joined,
        repeated=arrays.repeated,
    )


def _joined(parts: list[Any]) -> Any:
    batch = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*batch, part.shape[-1]) for part in parts], dim=-1)
