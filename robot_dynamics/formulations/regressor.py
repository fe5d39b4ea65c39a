# SPDX-License-Identifier: Apache-2.0
"""The regressor: tau = Y(q, qd, qdd) π with the standard parameters π, for any scalar type.

A body's wrench is linear in its ten parameters (Atkeson, An, Hollerbach 1986; Khalil, Kleinfinger
1987), and its contribution to a joint's torque is the virtual power along the joint's column of the
body's Jacobian. All vectors are in the body's own frame, in which π is given:

    τ_j = V_jᵀ f + W_jᵀ n,   f = m a + U h,   n = I ω̇ + ω × I ω + h × a

with the velocity V_j of the frame's origin and the rate W_j at q̇_j = 1. Rotors are bodies on
joints that follow the joints they drive. The order of the columns is that of
`mechanism.parameters`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError, wrong
from ..mechanism import Armature, Friction, Inertial, Mechanism, Pose
from ..mechanism.dynamic_parameters import (
    FRICTION,
    armature_names,
    friction_shape,
    friction_terms,
    is_whole,
)
from ..mechanism.transform import lumped, rotors_as_links, standard_form
from ..scalar import Array, Scalar, array, cross, rotation_to, zeros
from .newton_euler import acceleration_matrix, moved, placed
from .terms import MOTION, gravity_of, motion_of, moves_as_one

_WHOLE = Inertial(1.0, array([1.0, 2.0, 3.0]), np.eye(3))
_AXIAL = Inertial(0.0, zeros(3), np.diag([0.0, 0.0, 1.0]))
"""Stand-ins for a rotor with ten parameters, which must be one that turns, and for one with only
its axial inertia"""


def check_linear(mechanism: Mechanism, rotors: str, terms: Collection[str]) -> None:
    """Check that the torques of these terms are linear in the standard parameters.

    Raises:
        InputError: reflected rotors with masses, but terms that treat links and rotors differently.
    """
    heavy = any(rotor.inertial.mass for rotor in mechanism.rotors)
    if rotors == "reflected" and heavy and not moves_as_one(terms):
        raise wrong(
            InputError, "regressor: terms", ", ".join(sorted(terms)),
            f"{', '.join(MOTION)}, or none of them: with reflected rotors a link's mass includes "
            "its rotors' mass",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Regressor:
    """The regressor of one mechanism; it contains none of the standard parameters' values."""

    tree: Mechanism
    """In standard form, with the rotors as links after the others"""
    frames: tuple[Pose, ...]
    """The links' own frames, in which π is given, in the frames of the standard form"""
    columns: tuple[tuple[int, ...], ...]
    """Which of each link's ten numbers are parameters"""
    shafts: tuple[Armature, ...]
    """Rotors of the reflected model, then armatures"""
    armatures: int
    """The number of armatures"""
    moving: int
    """The number of moving links, without the rotors"""
    rows: Array
    """(m, n): the row n of each friction law; see `Mechanism.friction_rows`"""
    shifts: tuple[Scalar, ...]
    """(m,): the offset s of each"""
    laws: tuple[tuple[str, ...], ...]
    """(m,): the terms of each"""
    shapes: tuple[tuple[str, ...], ...]
    """(m,): the numbers of each in which the torques are not linear"""
    terms: frozenset[str]
    friction_smoothing: Scalar

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        rotors: str,
        terms: frozenset[str],
        friction_smoothing: Scalar = 0.0,
    ) -> Regressor:
        """`rotors` as in `standard_parameters`; `terms` as in `Equations`."""
        bare = replace(mechanism, rotors=(), armatures=())
        shafts: list[Armature] = []
        whole: list[bool] = []
        if rotors == "full":
            whole = [is_whole(rotor, rotors) for rotor in mechanism.rotors]
            stand_ins = tuple(
                replace(rotor, inertial=_WHOLE if every else _AXIAL)
                for rotor, every in zip(mechanism.rotors, whole, strict=True)
            )
            bare = rotors_as_links(replace(bare, rotors=stand_ins))
        elif rotors == "reflected":
            shafts = [Armature(rotor.ratios, 1.0) for rotor in mechanism.rotors]
        # a link's frame is motion · tail, standard_form's is motion · axis
        frames = tuple(
            Pose(rotation_to(link.joint.axis)).inverse() @ link.joint.tail
            for link in lumped(bare).links
        )
        moving, elements = len(mechanism.moving), mechanism.friction_rows()
        columns = [tuple(range(10))] * moving
        columns += [tuple(range(10)) if every else (9,) for every in whole]
        shafts += [
            replace(mechanism.armatures[k], inertia=1.0) for k in armature_names(mechanism).values()
        ]
        return cls(
            standard_form(bare),
            frames,
            tuple(columns),
            tuple(shafts),
            len(mechanism.armatures),
            moving,
            array([row for row, *_ in elements]).reshape(len(elements), len(mechanism.joint_names)),
            tuple(shift for _, shift, _ in elements),
            tuple(friction_terms(law) for _, _, law in elements),
            tuple(friction_shape(law) for _, _, law in elements),
            terms,
            friction_smoothing,
        )

    @property
    def content(self) -> Any:
        """What is compiled in."""
        joints = [(link.parent, link.joint.geometry) for link in self.tree.links]
        return (self.tree.base, [link.name for link in self.tree.links], joints, self.frames,
                self.columns, self.shafts, self.armatures, self.moving, self.rows, self.shifts,
                self.laws, self.shapes)  # fmt: skip

    @property
    def whole_columns(self) -> slice:
        """The columns of Y that belong to friction and to the rotors, which depend on the whole
        motion whatever the terms of the links."""
        count = sum(map(len, self.columns[self.moving :])) + len(self.shafts) - self.armatures
        if "friction" in self.terms:
            count += sum(map(len, self.laws))
        return slice(10 * self.moving, 10 * self.moving + count)

    @property
    def shaping(self) -> int:
        """The number of friction's numbers that are not among the parameters."""
        return sum(map(len, self.shapes))

    def matrix(self, q: Array, qd: Array, qdd: Array, gravity: Array, shapes: Array) -> Array:
        """The regressor Y (n, p).

        Args:
            q: (n,) positions, rad or m.
            qd: (n,) rates, rad/s or m/s.
            qdd: (n,) accelerations, rad/s² or m/s².
            gravity: (3,), m/s², in the base frame.
            shapes: the numbers `shapes` of all joints and shafts, rad/s or m/s, rad or m.
        """
        terms = self.terms
        weight = gravity_of(terms, gravity)
        slow, driven = motion_of("links", terms, qd, qdd)
        spin, spin_rate = motion_of("rotors", terms, qd, qdd)
        links = self._bodies(q, slow, driven, weight)[: self.moving]
        rotors = self._bodies(q, spin, spin_rate, weight)[self.moving :]
        friction = self._friction(q, qd, qdd, shapes) if "friction" in terms else []
        reflected = len(self.shafts) - self.armatures
        shafts = self._shafts(spin_rate)[:reflected] + self._shafts(driven)[reflected:]
        n = len(qd)
        Y: Array = np.concatenate([zeros(0, n), *links, *friction, *rotors, *shafts]).T
        return Y

    def _bodies(self, q: Array, qd: Array, qdd: Array, gravity: Array) -> list[Array]:
        """The columns of Y of each body, as rows (…, n)."""
        tree, index = self.tree, self.tree.index()
        S, s = tree.coordinates()
        q, qd, qdd = S @ array(q) + s, S @ array(qd), S @ array(qdd)
        # the base accelerates upwards in place of gravity
        motion = {-1: (zeros(3), zeros(3), zeros(3, 3), -gravity)}
        # for each joint between the base and a body its column [W; V] of the body's Jacobian
        jacobians: dict[int, dict[int, tuple[Array, Array]]] = {-1: {}}
        blocks = []
        for i, link in enumerate(tree.links):
            joint, parent = link.joint, index[link.parent]
            turn, p = placed(joint, q[i])
            w, alpha, a = moved(joint, turn, p, motion[parent], qd[i], qdd[i])
            motion[i] = (w, alpha, acceleration_matrix(w, alpha), a)
            # W_i = Rᵀ W_p,   V_i = Rᵀ (V_p + W_p × p)
            jacobian = {
                j: (turn.inward(W), turn.inward(V + cross(W, p)))
                for j, (W, V) in jacobians[parent].items()
            }
            own = (_Z, zeros(3)) if joint.turns else (zeros(3), _Z)
            jacobians[i] = jacobian | {i: own}
            blocks.append(self._columns(i, motion[i], jacobians[i], S))
        return blocks

    def _columns(
        self, i: int, motion: Any, jacobian: dict[int, tuple[Array, Array]], S: Array
    ) -> Array:
        """The columns of body i, in its own link's frame, as rows (…, n)."""
        R, p = self.frames[i].rotation.T, self.frames[i].translation
        w, alpha, U, a = motion
        a = a + U @ p
        if (np.eye(3) != R).any():
            w, alpha, a = R @ w, R @ alpha, R @ a
            U = acceleration_matrix(w, alpha)
        table = _gyration_table(w, alpha, U)
        rows = np.zeros((10, S.shape[1]), dtype=object)
        for j, (W, V) in jacobian.items():
            W, V = R @ W, R @ (V + cross(W, p))
            # V·(m a + U h) + W·(h × a + gyration), as coefficients of m, h and I
            powers = [V @ a, *(V @ U + cross(a, W)), *(W @ table)]
            for master in np.flatnonzero(S[j]):
                rows[:, master] += S[j, master] * np.array(powers, dtype=object)
        return rows[list(self.columns[i])]

    def _friction(self, q: Array, qd: Array, qdd: Array, shapes: Array) -> list[Array]:
        """The columns of the friction law of each joint and shaft, as rows (…, n)."""
        N, numbers, blocks = self.rows, iter(shapes), []
        states = zip(N @ array(q) + array(self.shifts), N @ array(qd), N @ array(qdd), strict=True)
        for terms, shape, row, state in zip(self.laws, self.shapes, N, states, strict=True):
            place, rate, faster = state
            nothing = {FRICTION[term]: 0.0 for term in terms}
            nothing |= {name: next(numbers) for name in shape}
            heading = Friction(**nothing).heading(rate, faster, self.friction_smoothing)
            # the column of a term is the torque of a law with only this coefficient, at one
            laws = [Friction(**(nothing | {FRICTION[term]: 1.0})) for term in terms]
            blocks.append(np.outer(array(law.torque(rate, heading, place) for law in laws), row))
        return blocks

    def _shafts(self, qdd: Array) -> list[Array]:
        """The column ratio_j Σ ratio·q̈ of each inertia about a shaft, as a row (1, n)."""
        rows = (self.tree.row(shaft.ratios) for shaft in self.shafts)
        return [(row * (row @ array(qdd)))[None] for row in rows]


_Z = array([0.0, 0.0, 1.0])


def _gyration_table(w: Array, alpha: Array, U: Array) -> Array:
    """(3, 6): I ω̇ + ω × I ω as coefficients of Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    x, y, z = w
    return array(
        [
            [alpha[0], -U[2, 0], -y * z, U[1, 0], U[1, 1] - U[2, 2], y * z],
            [x * z, U[2, 1], alpha[1], U[2, 2] - U[0, 0], -U[0, 1], -x * z],
            [-x * y, U[0, 0] - U[1, 1], x * y, -U[1, 2], U[0, 2], alpha[2]],
        ]
    )
