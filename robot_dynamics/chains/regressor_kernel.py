# SPDX-License-Identifier: Apache-2.0
"""The compiled regressor Y: tau = Y(q, qd, qdd) π with the standard parameters π."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..formulations.form import STANDING, Form
from ..formulations.layout import Recompile
from ..formulations.options import Options
from ..formulations.regressor import check_linear
from ..formulations.terms import MOTION, OF_LINKS, motion_of
from ..mechanism import Mechanism
from ..mechanism.dynamic_parameters import (
    friction_shape,
    friction_shapes,
    friction_terms,
    standard_parameters,
)
from ..scalar import Array, Floats
from .chain import Configuration


class RegressorKernel:
    """Y (…, n, p) over floats. Gravity is a parameter; geometry and gears are compiled in. It never
    changes.

    Args:
        mechanism: a tree; loops are left open.
        described: the mechanism whose parameters are used, as the tree may have more (see
            `ClosedChain.tree`).
        options: those of `InverseDynamics`.
        form: `FLOATING` for a tree on six joints, whose q is (…, n + 1).

    Raises:
        InputError: reflected rotors with masses, but terms that treat links and rotors differently.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        described: Mechanism,
        options: Options,
        form: Form = STANDING,
    ):
        rotors, terms = options.effective_rotors, frozenset(options.terms)
        check_linear(mechanism, rotors, terms)
        self._terms = terms
        if mechanism.loops and terms & set(OF_LINKS) & set(MOTION):
            # a closed chain's q̈_r has parts due to q̈ and to q̇; `projected` passes only those
            # that the terms include
            terms = terms | {"inertia"}
        model = form.regressor.of(mechanism, rotors, terms, options.friction_smoothing)
        self.laws, self._whole_columns = (model.laws, model.shapes), model.whole_columns
        self._names = mechanism.joint_names
        n = len(self._names)
        names = tuple(standard_parameters(mechanism, rotors, "friction" in terms))
        wanted = standard_parameters(described, rotors, "friction" in terms)
        self.names = [*names]
        """Names of all columns of `matrix`"""
        self._wanted = [names.index(name) for name in wanted]
        p = len(names)

        def equations(q: Array, qd: Array, qdd: Array, p: Array) -> Iterable[Any]:
            return np.ravel(model.matrix(q, qd, qdd, p[:3], p[3:]))

        content = (model.content, terms, options.friction_smoothing, form.regressor)
        function = Function(
            "regressor", ("q", "qd", "qdd"), (n + form.extra, n, n), (n, p), 3 + model.shaping,
            equations, content, mechanism.name,
        )  # fmt: skip
        self._numbers = _numbers(mechanism)
        self._kernel: Kernel | None = None
        self._make = partial(Kernel, function, backend=options.backend, threads=options.threads)

    def over(self, mechanism: Mechanism) -> RegressorKernel:
        """The same regressor with the gravity and friction of another mechanism.

        Args:
            mechanism: of the same geometry.

        Raises:
            Recompile: it has a kind of friction that is not compiled in.
        """
        laws = [law for *_, law in mechanism.friction_rows()]
        if self.laws != (tuple(map(friction_terms, laws)), tuple(map(friction_shape, laws))):
            raise Recompile
        other = copy(self)
        other._numbers = _numbers(mechanism)
        if self._kernel is not None:
            other._kernel = self._kernel.at(other._numbers)
        return other

    def _own(self, batches: bool) -> Kernel:
        """The kernel, built; if two threads both build it, they build the same."""
        kernel = self._kernel = self._make(self._numbers, batches=batches)
        return kernel

    def matrix(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """Y (…, n, p) of the tree at q, qd, qdd (…, n).

        Args:
            q: (…, n) positions of the tree's joints, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            out: an array of the result's shape to write to; None: a new one.
        """
        # if the first call is a batch, as in a fit, only the batch function is compiled
        call = (self._kernel or self._own(np.ndim(q) > 1)).call
        return call(q, qd, qdd) if out is None else call(q, qd, qdd, out=out)

    def projected(self, at: Configuration, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """Y (…, n_m, p) of the chain whose tree this regressor is for.

        Args:
            at: the chain's configuration.
            qd: (…, k) rates of its control coordinates, rad/s or m/s.
            qdd: (…, k) accelerations, rad/s² or m/s².
        """
        qd, qdd, names = np.asarray(qd, dtype=float), np.asarray(qdd, dtype=float), self._names
        # q̈_r = T q̈ + Ṫ q̇, whose second part belongs to the Coriolis terms
        rates, driven = motion_of("links", self._terms, qd, qdd)
        q_tree, qd_tree, qdd_tree = at.state(qd, driven, names)
        if rates is not qd:
            qdd_tree = at.state(rates, driven, names)[2]
        Y = self.matrix(q_tree, qd_tree, qdd_tree)
        if rates is not qd or driven is not qdd:
            # friction and the rotors' term include both parts
            columns = self._whole_columns
            Y[..., columns] = self.matrix(*at.state(qd, qdd, names))[..., columns]
        # τ = Tᵀ τ_tree
        return at.on_motors(Y[..., self._wanted], names)


def _numbers(mechanism: Mechanism) -> Floats:
    """What Y depends on apart from the state: gravity, and the shape of friction."""
    return np.array([*mechanism.gravity, *friction_shapes(mechanism)], dtype=float)
