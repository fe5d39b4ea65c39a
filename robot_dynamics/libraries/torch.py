# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of PyTorch's tensors on any device, with autograd and `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..codegen.recorder import FUNCTIONS
from . import arrays
from .library import Definition, PassiveJoints

_FUNCTIONS = {name: getattr(torch, name) for name in FUNCTIONS}


def _broadcast(values: list[Any]) -> list[Any]:
    like = next(x for x in values if isinstance(x, torch.Tensor))
    tensors = [x if isinstance(x, torch.Tensor) else like.new_tensor(x) for x in values]
    return list(torch.broadcast_tensors(*tensors))


def _tensor(x: Any) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        raise TypeError
    return x


def function(definition: Definition) -> Callable[..., Any]:
    """A program as a function of tensors (…, n)."""
    return arrays.function(definition, torch, _FUNCTIONS, _broadcast, _tensor)


def closing(definition: Definition, closure: PassiveJoints) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of tensors q (…, k) that closes the
    loops itself."""
    return arrays.closing(
        definition,
        closure,
        function,
        torch,
        like=lambda numbers, q: q.new_tensor(numbers),
        taken=_tensor,
        still=lambda x: x.detach(),
    )
