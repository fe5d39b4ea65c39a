# SPDX-License-Identifier: Apache-2.0
"""What the loops make of a robot's velocities, in symbols: K, J_R, T and their rates.

    Γ(x, q_r) = 0,   J_x v + J_q q̇_r = 0             the closures (19), (25)
    q̇_r = K v,  K = -J_q⁻¹ J_x,  E v = 0             the legs
    [J_R J_E] = [K_a; E]⁻¹,  v = J_R q̇_a             the platform (24)
    T = K J_R,  q̇_r = T q̇_a                          all joints (27)
    H = J̇_x + J̇_q K,  K̇ = -J_q⁻¹ H
    Y = [K̇_a; Ė] J_R,  J̇_R = -[J_R J_E] Y            (28)
    Ṫ = K̇ J_R + K J̇_R                                (31)

J_q⁻¹ is that of as many independent rows as the legs have joints. E, from the other rows, is what
the legs forbid a platform that has fewer degrees of freedom than coordinates. Without a free
platform all joints follow the motors: v = q̇_a, so that K is T.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy

from ..closure import ClosedChain
from ..closure.geometry.constraints import Closure
from ..closure.geometry.linear import chosen_rows, pivots
from ..scalar import Array, Floats, array, is_zero, rotation_x, rotation_y, rotation_z
from .blocks import adjugate, blocks, determinant
from .closures import PLANE, POSE, TWIST, Legs, Platform, closures
from .listing import BRIEF, Factors, Listing, needed
from .names import entry_names
from .polynomial import Polynomial, Ring
from .polynomial_model import absolute
from .short import Writer, rounded
from .simplify import matrix
from .symbolic_parameters import Letters, Parameters, plain_names, polynomial, symbols_of

CRAMER = 3
"""Largest matrix that is inverted by its adjugate and determinant, instead of by elimination"""
STEPS = 6
"""Steps of Newton's method from home to the other configuration (see BESIDE)"""
BESIDE = 0.05
"""rad or m: distance from home of another configuration at which rows must be independent, too"""
LATER = 1e-3
"""Weight of joints that are used only if others do not suffice"""
DETERMINANT = 24
"""Largest number of terms of a leg's determinant that is written out, not in the letters of J_q"""
FRAME, FRAME_OF_MANY = 24, 2
"""Largest number of terms of an entry of a link's frame that has no name; the second one is for
robots without a free platform that have more than `MANY` joints, whose loops may be long"""
MANY = 9


class Projections:
    """The matrices of one robot, which it names in the order in which they are computed.

    Args:
        chain: the robot.
        symbols, simplify: as `parameters` and `simplify` of `robot_dynamics.derive`.
    """

    def __init__(self, chain: ClosedChain, symbols: bool, simplify: bool):
        self.chain = chain
        self.legs = legs = Legs.of(chain.mechanism)
        self.a, self.n = len(chain.driving_names), len(legs.names)
        planar = bool(legs.free and legs.free.is_planar)
        pose = [POSE[k] for k in legs.coordinates]
        plain = plain_names(legs.names, POSE)
        self.q, self.qd, self.qdd = (symbols_of(plain, dots) for dots in ("", "_d", "_dd"))
        self.x = symbols_of(pose)
        self.v = symbols_of(pose, "_d") if planar else symbols_of(TWIST[: len(pose)])
        taken = map(str, (*self.q, *self.qd, *self.qdd, *self.x, *self.v))
        self.known = Parameters.of(chain.mechanism, symbols, [*taken], ratio="k_r")
        self.list = Listing([*self.known.taken, *self.known.own])
        self.ring = Ring()
        self.letters = Letters(self.ring, self.known)
        q = [self.ring.letter("coordinate", x) for x in self.q]
        by_name = dict(zip(legs.names, q, strict=True))
        tree = [by_name[name] for name in legs.tree.joint_names]
        self.writer = Writer(self.ring, absolute(legs.tree, self.ring, tree))
        self.simplify = simplify
        self.platform = self._platform(planar)
        self._longest = FRAME_OF_MANY if not self.x and self.n > MANY else FRAME
        self._noted: dict[frozenset[tuple[int, complex]], Polynomial] = {}
        self._q, self._qd = array(q), array(self.ring.letter("rate", x) for x in self.qd)
        self._close()
        self._follow(planar)
        self._lead()

    # --- polynomials and letters -------------------------------------------------------------

    def write(self, value: Any) -> sympy.Expr:
        """The expression for a polynomial."""
        return rounded((self.writer.short if self.simplify else self.writer.plain)(value))

    def named(self, name: str, values: Array, brief: float = BRIEF) -> sympy.Matrix:
        """Name the entries of an array of polynomials; their letters."""
        return self.list(name, matrix(values, self.write), brief)

    def entered(self, letters: sympy.Matrix) -> Array:
        """An array of polynomials for a matrix of letters."""
        values = array(polynomial(self.ring, x, "parameter") if x else 0.0 for x in letters)
        return np.asarray(values.reshape(letters.shape))

    def _note(self, quantity: str, body: int, value: Array) -> Array:
        """The value with letters for long entries; see `scalar.Note`."""
        entries = array(value).astype(object)
        names = entry_names(quantity, body, entries.shape)
        for name, (place, x) in zip(names, np.ndenumerate(entries), strict=True):
            if isinstance(x, Polynomial) and len(x.terms) > self._longest:
                key = frozenset(x.terms.items())
                if key not in self._noted:
                    letter = self.list.assign("frames", name, self.write(x))
                    self._noted[key] = self.ring.letter("parameter", letter)
                entries[place] = self._noted[key]
        return entries

    def _closures(self, qd: Array) -> list[Closure]:
        given = self.legs, self.letters, self._q, qd, self.platform, self._note, self._axes
        return list(closures(*given))

    def _numbers(self, values: Array) -> list[Floats]:
        """An array of polynomials at home and at another closed configuration."""
        chain, a = self.chain, self.a
        home = chain.home.q_r
        beside = np.array([*(home[:a] + BESIDE), *home[a:]])
        written = matrix(values, self.writer.plain)
        function = sympy.lambdify(
            (*self.q, *self.x, *self.known.values),
            # rows, as the symbols of a Matrix would hide functions of the same name
            written.tolist(),
            modules="numpy",
            cse=lambda each: (needed(self.list.assignments, [written]), each),
            dummify=True,
        )
        found = []
        for q_r in (home, chain.model.closure.corrected(beside, a, STEPS).q_r):
            joints = dict(zip(chain.coordinate_names, q_r, strict=True))
            x = self.legs.place(chain.model.geometry.platform_pose(q_r)) if self.x else []
            at = (*(joints[name] for name in self.legs.names), *x, *self.known.values.values())
            found.append(np.array(function(*map(float, at)), dtype=float))
        return found

    # --- positions ---------------------------------------------------------------------------

    def _platform(self, planar: bool) -> Platform | None:
        free, letters = self.legs.free, self.letters
        if free is None:
            return None
        x = array(self.ring.letter("coordinate", each) for each in self.x)
        v = array(self.ring.letter("rate", each) for each in self.v)
        if not planar:
            turned = rotation_z(x[5]) @ rotation_y(x[4]) @ rotation_x(x[3])
            return Platform(self.entered(self.named("R", turned, 0)), x[:3], np.eye(6), v)
        height = letters("z0", round(float(free.reference.translation[2]), 12))
        R = rotation_z(x[2]) @ letters.rotation(self.legs.tilt, "p0")
        return Platform(R, array([*x[:2], height]), np.eye(6)[:, list(PLANE)], v)

    def _close(self) -> None:
        """Γ, J_x and J_q of independent rows."""
        if not self._closed(np.eye(3)) and not self.x:
            self._closed(None)
        rows = array(x for each in self.closures for x in each.residual())
        self.named("Gamma", rows[self.kept])
        if self.x:
            self.named("J_x", self.J[:, self.n :])
        self.named("J_q", self.J[:, : self.n])

    def _closed(self, axes: Array | None) -> bool:
        """Find independent rows, with offsets along these axes; are all offsets among them?"""
        self._axes = axes
        self.closures = self._closures(0.0 * self._qd)
        width = self.n + len(self.x)
        J = array(x for each in self.closures for x in each.jacobian()).reshape(-1, width)
        at = self._numbers(J)
        self.kept = sorted(chosen_rows([x[:, self.a :] for x in at], width - self.a))
        offsets = np.concatenate(
            [[True] * len(x.places) + [False] * len(x.normals) for x in self.closures]
        )
        filled = np.max(np.abs(at), axis=(0, 2)) > 1e-9
        self.J, self.at = J[self.kept], [x[self.kept] for x in at]
        return {*np.flatnonzero(filled & offsets)} <= {*self.kept}

    # --- velocities --------------------------------------------------------------------------

    def _legs(self) -> Iterator[tuple[list[int], list[int]]]:
        """(rows, joints) of each leg: independent rows and the joints that follow from them."""
        for group in blocks(self.J[:, : self.n]):
            rows = [i for i, row in enumerate(self.J) if any(not is_zero(row[j]) for j in group)]
            near = [x[np.ix_(rows, group)] for x in self.at]
            rank = min(int(np.linalg.matrix_rank(x)) for x in near)
            weights = np.where(np.array(group) < self.a, LATER, 1.0)
            joints = [group[j] for j in sorted(chosen_rows([x.T for x in near], rank, weights))]
            near = [x[np.ix_(rows, joints)] for x in self.at]
            yield [rows[i] for i in sorted(chosen_rows(near, rank))], joints

    @property
    def _J(self) -> sympy.Matrix:
        """[J_q J_x] in letters."""
        J = self.list.letters["J_q"]
        return J.row_join(self.list.letters["J_x"]) if self.x else J

    def _follow(self, planar: bool) -> None:
        """K: the joints of the legs follow the platform, or the motors."""
        letters, legs = self.list.letters, [*self._legs()]
        self.rows = [i for rows, _ in legs for i in rows]
        self.joints = [j for _, joints in legs for j in joints]
        free = [j for j in range(self.n) if j not in self.joints]
        self.leading = [*range(self.n, self.n + len(self.x)), *free]
        """Columns of [J_q J_x] whose velocities determine all others: v"""
        self.name = "T" if self.leading == [*range(self.a)] else "K"
        self.list.begin(self.name, self.n, len(self.leading))
        for k, j in enumerate(free, len(self.x)):
            self.list.entry(self.name, j, k, sympy.S.One)
        self.list.begin("B", self.n, len(self.J))
        # K = -J_q⁻¹ J_x
        whole = planar or not self.x
        right = self.J[:, self.leading] if whole else self.entered(self._J[:, self.leading])
        for k, (rows, joints) in enumerate(legs, 1):
            if len(joints) <= CRAMER:
                self._by_cramer(f"Delta_{k}", rows, joints, right)
            else:
                order = pivots([x[np.ix_(rows, joints)] for x in self.at])
                factors = Factors(self.list, f"q{k}", self._J[rows, joints], order)
                factors.solve("B", sympy.eye(len(rows)), joints, rows)
                K = -letters["B"][joints, rows] * self._J[rows, self.leading]
                for i, j in np.ndindex(*K.shape):
                    self.list.entry(self.name, joints[i], j, K[i, j])
        self.K = letters[self.name]

    def _by_cramer(self, name: str, rows: list[int], joints: list[int], right: Array) -> None:
        """K, and B = J_q⁻¹, of one leg, each entry with the determinant below it."""
        A, letters = self.J[np.ix_(rows, joints)], self.list.letters
        # the determinant of a leg of two links is short: L l sin q_p
        whole = determinant(A)
        if isinstance(whole, Polynomial) and len(self.ring.normal(whole).terms) > DETERMINANT:
            A, right = self.entered(self._J[rows, joints]), self.entered(self._J[:, self.leading])
        delta, adjoint = self.write(determinant(A)), adjugate(A)
        if delta.is_Add:
            delta = self.list.assign(self.name, name, delta)
        known: dict[frozenset[tuple[int, complex]], sympy.Expr] = {}
        K = -(adjoint @ right[rows])
        for into, values, columns in ((self.name, K, range(K.shape[1])), ("B", adjoint, rows)):
            for (i, j), value in np.ndenumerate(values):
                each = value if isinstance(value, Polynomial) else self.ring.constant(value)
                key, negative = (frozenset(x.terms.items()) for x in (each, -each))
                place = joints[i], columns[j]
                if into == "B" and negative in known:
                    # the platform's position has unit columns in J_x
                    letters["B"][place] = -known[negative]
                elif each.terms:
                    known[key] = self.list.entry(into, *place, self.write(each) / delta)

    def _lead(self) -> None:
        """J_R, T, and the velocities that follow from the motors'."""
        a, letters = self.a, self.list.letters
        if self.name == "K":
            W = self.K[:a, :]
            self.rest = [i for i in range(len(self.J)) if i not in self.rows]
            if self.rest:
                J = self._J[self.rest, :]
                E = J[:, self.leading] + J[:, self.joints] * self.K[self.joints, :]
                W = W.col_join(self.list("E", E))
            self.invert("J_R", "J_E", W, a)
            T = self.K * letters["J_R"]
            T[:a, :] = sympy.eye(a)
            self.list("T", T)
        self.T = letters["T"]
        given = sympy.Matrix(self.qd[:a])
        for k in range(a, self.n):
            self.list.define("rates", self.qd[k], (self.T[k, :] * given)[0])
        for k, speed in enumerate(self.v):
            self.list.define("rates", speed, (letters["J_R"][k, :] * given)[0])

    def invert(self, name: str, other: str, W: sympy.Matrix, first: int) -> None:
        """W⁻¹ as two matrices: its first columns, and the others if there are any."""
        n = W.rows
        parts = [(name, 0, first), *([(other, first, n)] if first < n else [])]
        if n <= CRAMER:
            delta = self.list.assign(name, "Delta", W.det(method="berkowitz"))
            for part, begin, end in parts:
                self.list(part, W.adjugate()[:, begin:end] / delta)
            return
        factors = Factors(self.list, name.removeprefix("J_"), W, self._order(W))
        for part, begin, end in parts:
            self.list.begin(part, n, end - begin)
            factors.solve(part, sympy.eye(n)[:, begin:end], range(n), range(end - begin))

    def _order(self, W: sympy.Matrix) -> Sequence[tuple[int, int]]:
        return pivots(self._numbers(self.entered(W)))

    # --- rates -------------------------------------------------------------------------------

    def rates(self) -> None:
        """The rates of all of these."""
        letters, n, a = self.list.letters, self.n, self.a
        every = array(x for each in self._closures(self._qd) for x in each.jacobian_rate())
        rows = every.reshape(-1, n + len(self.x))[self.kept]
        dJ = self.named("dJ_q", rows[:, :n])
        if self.x:
            dJ = dJ.row_join(self.named("dJ_x", rows[:, n:]))
        # H = J̇_x + J̇_q K
        H = self.list("H", dJ[:, self.leading] + dJ[:, self.joints] * self.K[self.joints, :])
        dK = -letters["B"] * H
        name = f"d{self.name}"
        self.list.begin(name, *dK.shape)
        for i, j in np.ndindex(*dK.shape):
            self.list.entry(name, i, j, dK[i, j])
        if self.list.matrices["B"].is_zero_matrix:
            # its entries are those of K
            del self.list.matrices["B"]
        self.dT = dK = letters[name]
        if self.name == "T":
            return
        W = dK[:a, :]
        if self.rest:
            # Ė = H + J_q K̇
            J = self._J[self.rest, self.joints]
            W = W.col_join(self.list("dE", H[self.rest, :] + J * dK[self.joints, :]))
        J_R = inverse = letters["J_R"]
        Y = self.list("Y", W * J_R)
        if "J_E" in letters:
            inverse = J_R.row_join(letters["J_E"])
        dJ_R = self.list("dJ_R", -inverse * Y)
        dT = dK * J_R + self.K * dJ_R
        dT[:a, :] = sympy.zeros(a)
        self.dT = self.list("dT", dT)
