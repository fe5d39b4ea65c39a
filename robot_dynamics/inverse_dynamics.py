"""The façade: joint torques of a mechanism, fast, from numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .codegen import python_code
from .codegen.recorder import record
from .equations import TERMS, Equations
from .errors import InputError
from .mechanism import Mechanism
from .scalar import Array

Floats = NDArray[np.float64]


class InverseDynamics:
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd), by the formulation of your choice.

    The formulation is recorded once, when an instance is made, and the straight-line program
    that it leaves is what runs. Arrays are float64 in SI units: q in rad or m, tau in N·m or N,
    in the order of `joint_names`. All states may be batched: (…, n) in, (…, n) out.

    Args:
        mechanism: what `rd.load` gives.
        formulation: lagrange_euler, newton_euler, gibbs_appell or murphy.
        rotors: full, reflected (Γ²·I_zz at the joint, the mass on the mount) or none.
        terms: any of inertia, coriolis, gravity, friction, rotors (all by default).
        friction_smoothing: rate (rad/s or m/s) within which Coulomb friction fades to zero as
            tanh(qd / rate); 0: the sign itself. At rest it is zero either way.

    Raises:
        InputError: an unknown formulation, rotor model or term.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        *,
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: float = 0.0,
    ):
        self.mechanism = mechanism
        self.equations = Equations.of(mechanism, formulation, rotors, terms, friction_smoothing)
        self.joint_names: tuple[str, ...] = mechanism.joint_names
        self.actuated_names: tuple[str, ...] = mechanism.actuated_names
        self._functions: dict[str, Callable[..., Floats]] = {}
        self._torques = self._function("torques", self.equations.torques, 3)

    def __call__(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """Torques (…, n) at q, qd, qdd (…, n).

        Raises:
            InputError: a wrong shape; the message says which and what was expected.
        """
        return self._torques(q, qd, qdd)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n, n), kg·m² (kg·m, kg), at q (…, n)."""
        return self._matrix("mass_matrix", self.equations.mass_matrix, q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n, n) of Christoffel symbols at q, qd (…, n): dD/dt - 2C is skew."""
        return self._matrix("coriolis_matrix", self.equations.coriolis_matrix, q, qd)

    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n), N·m or N, at q (…, n)."""
        return self._function("gravity", self.equations.gravity, 1)(q)

    def _matrix(self, name: str, equations: Callable[..., Array], *states: ArrayLike) -> Floats:
        n = len(self.joint_names)
        flat = self._function(name, lambda *x: equations(*x).ravel(), len(states))(*states)
        return flat.reshape(*flat.shape[:-1], n, n)

    def _function(
        self, name: str, equations: Callable[..., Iterable[Any]], arguments: int
    ) -> Callable[..., Floats]:
        if name not in self._functions:
            n = len(self.joint_names)
            program = record(equations, [n] * arguments)
            over_floats, over_arrays = python_code.compile_program(program)
            names = ("q", "qd", "qdd")[:arguments]

            def function(*states: ArrayLike) -> Floats:
                arrays = [np.asarray(state, dtype=float) for state in states]
                if all(array.shape == (n,) for array in arrays):
                    return np.array(over_floats(*(x for a in arrays for x in a.tolist())))
                shape = _batch_shape(names, arrays, n)
                columns = (a[..., j] for a in arrays for j in range(n))
                out = over_arrays(*columns)
                return np.stack([np.broadcast_to(x, shape) for x in out], axis=-1) if out else (
                    np.zeros((*shape, 0))
                )

            self._functions[name] = function
        return self._functions[name]


def _batch_shape(names: tuple[str, ...], arrays: list[Floats], n: int) -> tuple[int, ...]:
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 0 or array.shape[-1] != n:
            raise InputError(
                f"{name}: found shape {array.shape}, expected (…, {n}): one entry a joint",
                name=name,
                value=array.shape,
                expected=f"(…, {n})",
            )
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    except ValueError:
        shapes = ", ".join(f"{k} {a.shape}" for k, a in zip(names, arrays, strict=True))
        raise InputError(
            f"{shapes}: the batches do not fit together", name=names[0], value=shapes
        ) from None
