# SPDX-License-Identifier: Apache-2.0
"""Benefit of sensors on the passive joints of a 3RRR: errors of torque and of the platform.

    python benchmarks/passive_sensors.py [--robots 200] [--fastest 3] [--json OUT] [--picture OUT]

Different true robots move along smooth paths, away from singularities. A model of each, with
errors, computes torques and the platform's position from the encoder readings. They are compared
with those of the true robot at the true state: root mean squares along the path, for torques
relative to the true torque. The table has the median over the robots, with the quartiles.

    active      the motors' encoders alone; passive joints are solved
    sensed      q = [q_a, q_s] as read, (39) with its errata corrected
    fitted      the closed configuration nearest to all six readings, then as `active`
    printed     (39) as it is printed: closures (22), energies (32) and (33)

The passive accelerations of `sensed` and `printed` are computed as the node does: from the motors'
commanded accelerations at the motors' readings, by the model with errors.

The formulas are written out here for arrays of robots, and compared with the package's own models
before the measurement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from timing import keep, parser

import robot_dynamics as rd
from robot_dynamics.app.command import Progress
from robot_dynamics.closure import ClosedChain, fit

CONFIG = Path(__file__).resolve().parents[1] / "config" / "rrr.yaml"
GRAVITY = 9.81
SIZES = (0.001, 0.01, 0.03)
"""Standard deviations of the models' errors, in shares of a number"""
KINDS: dict[str, tuple[str, ...]] = {
    "lengths": ("L", "l"),
    "base": ("A",),
    "platform": ("d",),
    "masses": ("m_L", "m_l", "m_s", "m_p", "m_c"),
    "centres": ("c_L", "c_l"),
    "inertias": ("I_L", "I_l", "I_s", "I_p", "I_c"),
}
KINDS["all of these"] = tuple(name for names in KINDS.values() for name in names)
NOISE, RATE_NOISE = 1e-3, 1e-2
"""rad and rad/s, standard deviations of every encoder and of the rates made from it"""
OFFSET = 5e-3
"""rad, standard deviation of what is wrong with an encoder's zero"""
DRAWS = 16
"""Robots that are drawn for each that is taken"""
POSES, SPEED = 24, 3.0
"""A path's states, and its frequency, rad/s"""
MODELS = ("active", "sensed", "fitted", "printed")
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


@dataclass(frozen=True)
class Robots:
    """3RRRs in the symbols of the paper's table 2; leading axes are robots."""

    A: np.ndarray
    """(…, 3, 2), m"""
    L: np.ndarray
    l: np.ndarray
    """(…, 3), m"""
    d: np.ndarray
    """(…, 3, 2), m: PC_i in the platform's frame"""
    m_L: np.ndarray
    c_L: np.ndarray
    I_L: np.ndarray
    m_l: np.ndarray
    c_l: np.ndarray
    I_l: np.ndarray
    m_s: np.ndarray
    I_s: np.ndarray
    """(…, 3)"""
    m_p: np.ndarray
    I_p: np.ndarray
    m_c: np.ndarray
    I_c: np.ndarray
    """(…, 1): the platform's and the load's, in P"""

    @classmethod
    def nominal(cls) -> Robots:
        """Those of config/rrr.yaml."""
        m = rd.load(CONFIG)
        links = {kind: [m.link(f"{kind}{i}") for i in (1, 2, 3)] for kind in
                 ("proximal", "distal", "sensor")}  # fmt: skip
        bodies = {kind: [link.inertial for link in each] for kind, each in links.items()}
        load, platform = m.link("load").inertial, m.link("platform").inertial
        angles = np.array([np.pi, -np.pi / 3, np.pi / 3])

        def of(kind: str, number: Callable[[Any], float]) -> np.ndarray:
            return np.array([float(number(body)) for body in bodies[kind]])

        L, l = (np.array([float(x.joint.tail.translation[0]) for x in links[kind]])
                for kind in ("proximal", "distal"))  # fmt: skip
        return cls(
            np.array([x.joint.origin.translation[:2] for x in links["proximal"]], dtype=float),
            L,
            l,
            0.1 * np.column_stack([np.cos(angles), np.sin(angles)]),
            of("proximal", lambda b: b.mass),
            L + of("proximal", lambda b: b.center_of_mass[0]),
            of("proximal", lambda b: b.inertia[2, 2]),
            of("distal", lambda b: b.mass),
            l + of("distal", lambda b: b.center_of_mass[0]),
            of("distal", lambda b: b.inertia[2, 2]),
            of("sensor", lambda b: b.mass),
            of("sensor", lambda b: b.inertia[2, 2]),
            np.array([platform.mass]),
            np.array([platform.inertia[2, 2]]),
            np.array([load.mass]),
            np.array([load.inertia[2, 2]]),
        )

    def changed(self, names: tuple[str, ...], share: float, rng: np.random.Generator) -> Robots:
        """These numbers wrong by a share of themselves; of places by that of their distance."""
        new = {}
        for name in names:
            value = getattr(self, name)
            by = rng.normal(0, share, value.shape)
            size = np.linalg.norm(value, axis=-1, keepdims=True) if name in "Ad" else value
            new[name] = value + by * size
        return replace(self, **new)

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> Robots:
        """With all numbers changed in the same way."""
        return Robots(**{x.name: change(getattr(self, x.name)) for x in fields(self)})

    def over(self, *shape: int) -> Robots:
        """As many of them."""
        return self.each(lambda value: np.broadcast_to(value, (*shape, *value.shape)))

    def along(self) -> Robots:
        """An axis for the states of each robot, behind that of the robots."""
        return self.each(lambda value: value[:, None])

    # --- where it is ---------------------------------------------------------------------

    def hinges(self, X: np.ndarray) -> np.ndarray:
        """PC_i (…, 3, 2) on the base's axes at X = (x, y, θ_z)."""
        c, s = np.cos(X[..., 2, None]), np.sin(X[..., 2, None])
        d = self.d
        return np.stack([c * d[..., 0] - s * d[..., 1], s * d[..., 0] + c * d[..., 1]], axis=-1)

    def inverse(self, X: np.ndarray) -> np.ndarray:
        """q (…, 6) at X, all elbows to the same side."""
        way = X[..., None, :2] + self.hinges(X) - self.A
        reach = np.linalg.norm(way, axis=-1)
        cosine = (self.L**2 + reach**2 - self.l**2) / (2 * self.L * reach)
        q_a = np.arctan2(way[..., 1], way[..., 0]) + np.arccos(cosine)
        rest = way - self.L[..., None] * direction(q_a)
        absolute = np.arctan2(rest[..., 1], rest[..., 0])
        q_p = (absolute - q_a + np.pi) % (2 * np.pi) - np.pi
        return np.concatenate([q_a, q_p], axis=-1)

    def closed(self, q_a: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(X, q) closed at the motors' angles, from an X near by: Newton's method on (21)."""
        B = self.A + self.L[..., None] * direction(q_a)
        for _ in range(8):
            to = self.hinges(X)
            rod = X[..., None, :2] + to - B
            miss = np.sum(rod**2, axis=-1) - self.l**2
            rows = 2 * np.concatenate([rod, np.sum(rod * (to @ TURN.T), -1)[..., None]], axis=-1)
            X = X - solve(rows, miss)
        # where it doesn't close nothing is computed, as the package refuses it
        lost = ~(np.abs(miss).max(axis=-1, keepdims=True) < 1e-9)
        X = np.where(lost, np.nan, X)
        rod = X[..., None, :2] + self.hinges(X) - B
        q_p = np.arctan2(rod[..., 1], rod[..., 0]) - q_a
        q_p = (q_p + np.pi) % (2 * np.pi) - np.pi
        return X, np.concatenate([q_a, q_p], axis=-1)

    def platform(self, q: np.ndarray) -> np.ndarray:
        """X (…, 3) nearest to where the legs at q end: least squares of (19)."""
        q_a, q_p = q[..., :3], q[..., 3:]
        ends = (
            self.A + self.L[..., None] * direction(q_a) + self.l[..., None] * direction(q_a + q_p)
        )
        middle, d_middle = ends.mean(-2, keepdims=True), self.d.mean(-2, keepdims=True)
        e, d = ends - middle, self.d - d_middle
        cross = np.sum(d[..., 0] * e[..., 1] - d[..., 1] * e[..., 0], axis=-1)
        theta = np.arctan2(cross, np.sum(d * e, axis=(-1, -2)))
        c, s = np.cos(theta), np.sin(theta)
        m = d_middle[..., 0, :]
        turned = np.stack([c * m[..., 0] - s * m[..., 1], s * m[..., 0] + c * m[..., 1]], axis=-1)
        return np.concatenate([middle[..., 0, :] - turned, theta[..., None]], axis=-1)

    # --- how it moves --------------------------------------------------------------------

    def closure(self, q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(J_x (…, 6, 3), J_q (…, 6, 6)) of (19), two rows a leg."""
        to, proximal, distal = self._vectors(q, X)
        shape = np.broadcast_shapes(to.shape, proximal.shape)[:-2]
        J_x, J_q = np.zeros((*shape, 3, 2, 3)), np.zeros((*shape, 3, 2, 6))
        J_x[..., 0, 0] = J_x[..., 1, 1] = 1.0
        J_x[..., 2] = to @ TURN.T
        for i in range(3):
            J_q[..., i, :, i] = -((proximal + distal) @ TURN.T)[..., i, :]
            J_q[..., i, :, 3 + i] = -(distal @ TURN.T)[..., i, :]
        return J_x.reshape(*shape, 6, 3), J_q.reshape(*shape, 6, 6)

    def closure_rates(
        self, q: np.ndarray, X: np.ndarray, qd: np.ndarray, Xd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rates of both."""
        to, proximal, distal = self._vectors(q, X)
        turning = (qd[..., :3] + qd[..., 3:])[..., None]
        J_x = np.zeros((*np.broadcast_shapes(to.shape, proximal.shape)[:-2], 3, 2, 3))
        J_q = np.zeros((*J_x.shape[:-1], 6))
        J_x[..., 2] = -to * Xd[..., 2, None, None]
        for i in range(3):
            J_q[..., i, :, i] = (proximal * qd[..., :3, None] + distal * turning)[..., i, :]
            J_q[..., i, :, 3 + i] = (distal * turning)[..., i, :]
        shape = J_x.shape[:-3]
        return J_x.reshape(*shape, 6, 3), J_q.reshape(*shape, 6, 6)

    def _vectors(self, q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q_a, q_p = q[..., :3], q[..., 3:]
        proximal = self.L[..., None] * direction(q_a)
        return self.hinges(X), proximal, self.l[..., None] * direction(q_a + q_p)

    def K(self, q: np.ndarray, X: np.ndarray) -> np.ndarray:
        """(…, 6, 3): q̇ = K ẋ."""
        J_x, J_q = self.closure(q, X)
        return -solved(J_q, J_x)

    def T(self, q: np.ndarray, X: np.ndarray) -> np.ndarray:
        """(…, 6, 3): q̇ = T q̇_a (27)."""
        K = self.K(q, X)
        return K @ solved(K[..., :3, :], np.broadcast_to(np.eye(3), (*K.shape[:-2], 3, 3)))

    def of_platform(
        self, q: np.ndarray, X: np.ndarray, Xd: np.ndarray, Xdd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(q̇, q̈) of a closed state, from ẋ and ẍ."""
        J_x, J_q = self.closure(q, X)
        qd = -solve(J_q, apply(J_x, Xd))
        J_x_rate, J_q_rate = self.closure_rates(q, X, qd, Xd)
        bias = apply(J_x, Xdd) + apply(J_x_rate, Xd) + apply(J_q_rate, qd)
        return qd, -solve(J_q, bias)

    def of_motors(
        self, q: np.ndarray, X: np.ndarray, qd_a: np.ndarray, qdd_a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(q̇, q̈) of a closed state, from q̇_a and q̈_a (31)."""
        K_a = self.K(q, X)[..., :3, :]
        Xd = solve(K_a, qd_a)
        _, bias = self.of_platform(q, X, Xd, np.zeros_like(Xd))
        return self.of_platform(q, X, Xd, solve(K_a, qdd_a - bias[..., :3]))

    # --- what moves it -------------------------------------------------------------------

    def legs(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, printed: bool) -> np.ndarray:
        """D_q q̈ + C_q q̇ + G_q (…, 6) of the energy (33), mended or as printed."""
        q_a, q_p, v_a, v_p = q[..., :3], q[..., 3:], qd[..., :3], qd[..., 3:]
        w_a, w_p, g = qdd[..., :3], qdd[..., 3:], GRAVITY
        cross = self.m_l * self.L * self.c_l
        # printed: l_L for l_cL, L_i² alone, and the load's mass for the sensor's
        first = self.m_L * self.L**2 + self.L**2 + self.m_c * self.L**2 if printed else (
            self.m_L * self.c_L**2 + self.m_s * self.L**2)  # fmt: skip
        own = self.m_l * self.c_l**2 + self.I_l
        D_aa = first + self.m_l * self.L**2 + 2 * cross * np.cos(q_p) + own + self.I_L + self.I_s
        D_ap, h = own + cross * np.cos(q_p), cross * np.sin(q_p)
        weight = (self.m_L * self.c_L + self.m_s * self.L + self.m_l * self.L) * g * np.cos(q_a)
        # printed: of the other sign
        last = (-1 if printed else 1) * self.m_l * self.c_l * g * np.cos(q_a + q_p)
        tau_a = D_aa * w_a + D_ap * w_p - h * (2 * v_a * v_p + v_p**2) + weight + last
        tau_p = D_ap * w_a + own * w_p + h * v_a**2 + last
        return np.concatenate([tau_a, tau_p], axis=-1)

    def platform_force(self, a: np.ndarray, printed: bool) -> np.ndarray:
        """D_x a + G_x (…, 3) of (32); printed: the load has no weight."""
        m, g = self.m_p + self.m_c, GRAVITY
        weight = (self.m_p if printed else m) * g
        force = m * a[..., :2] + np.concatenate([0 * weight, weight], axis=-1)
        return np.concatenate([force, (self.I_p + self.I_c) * a[..., 2:]], axis=-1)

    def torques(
        self, q: np.ndarray, X: np.ndarray, qd: np.ndarray, qdd: np.ndarray, printed: bool = False
    ) -> np.ndarray:
        """τ (…, 3) by (39): Tᵀ (D_q q̈ + C_q q̇ + G_q + J_Cᵀ (D_x a + G_x)), a = J_C q̈ + J̇_C q̇."""
        T = self.T(q, X)
        J_x, J_q = self.closure(q, X)
        if printed:
            J_x, J_q, J_x_rate, J_q_rate, J_C, Xd = self._distances(q, X, qd)
        else:
            J_C = -solved(turned(J_x) @ J_x, turned(J_x) @ J_q)
            Xd = apply(J_C, qd)
            J_x_rate, J_q_rate = self.closure_rates(q, X, qd, Xd)
        # the rate of J_xᵀ (J_x v + J_q q̇) = 0
        miss = apply(J_x, Xd) + apply(J_q, qd)
        bias = apply(J_x_rate, Xd) + apply(J_q_rate, qd) + apply(J_q, qdd)
        right = apply(turned(J_x), bias) + apply(turned(J_x_rate), miss)
        a = -solve(turned(J_x) @ J_x, right)
        force = self.platform_force(a, printed)
        return apply(turned(T), self.legs(q, qd, qdd, printed) + apply(turned(J_C), force))

    def _distances(self, q: np.ndarray, X: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, ...]:
        """Jacobians of (22), their rates, J_C and ẋ: |OP - A_iB_i - B_iC_i - C_iP|² a leg."""
        to, proximal, distal = self._vectors(q, X)
        bracket = X[..., None, :2] + to - proximal - distal
        J_x, J_q = (m.reshape(*m.shape[:-2], 3, 2, m.shape[-1]) for m in self.closure(q, X))

        def rows(v: np.ndarray, M: np.ndarray) -> np.ndarray:
            return 2 * (v[..., None, :] @ M)[..., 0, :]

        D_x, D_q = rows(bracket, J_x), rows(bracket, J_q)
        J_C = -solved(D_x, D_q)
        Xd = apply(J_C, qd)
        moving = apply(J_x, Xd[..., None, :]) + apply(J_q, qd[..., None, :])
        R_x, R_q = (m.reshape(*m.shape[:-2], 3, 2, m.shape[-1])
                    for m in self.closure_rates(q, X, qd, Xd))  # fmt: skip
        return (D_x, D_q, rows(moving, J_x) + rows(bracket, R_x),
                rows(moving, J_q) + rows(bracket, R_q), J_C, Xd)  # fmt: skip

    def fitted(self, q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(X, q), closed, of which q is the nearest to the readings."""
        q_a = q[..., :3]
        for _ in range(6):
            X, closed = self.closed(q_a, X)
            T = self.T(closed, X)
            off = (q - closed + np.pi) % (2 * np.pi) - np.pi
            q_a = q_a + np.clip(solve(turned(T) @ T, apply(turned(T), off)), -0.1, 0.1)
        return self.closed(q_a, X)


def direction(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def turned(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def solve(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return solved(matrix, vector[..., None])[..., 0]


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """NaN where it is singular."""
    sound = np.linalg.det(matrix) != 0  # NaN is sound, and stays
    return np.linalg.solve(np.where(sound[..., None, None], matrix, np.nan), right)


# --- the comparison ------------------------------------------------------------------------


def main() -> None:
    options = parser(__doc__, draws=True)
    options.add_argument("--robots", type=int, default=200, help="how many, at least 4")
    options.add_argument(
        "--fastest",
        type=float,
        default=3.0,
        help="rad a rad of a motor's, by which legs may turn: beyond, a singularity is near",
    )
    given = options.parse_args()
    check()
    results = measured(given.robots, given.fastest)
    show(results, given.robots)
    keep(given.json, {"passive sensors": results, "robots": given.robots})
    if given.picture:
        draw(results, given.picture)


def check() -> None:
    """Refuse to measure with formulas that are not the package's models."""
    chains = [ClosedChain(rd.load(CONFIG), sensed=sensed, backend="python")
              for sensed in (False, True)]  # fmt: skip
    active, sensed = chains
    robot, rng = Robots.nominal(), np.random.default_rng(0)
    home = active.home.q_r[:6]
    for _ in range(5):
        q = home + rng.uniform(-0.05, 0.05, 6)
        qd, qdd = rng.uniform(-1, 1, (2, 6))
        X, closed = robot.closed(q[:3], np.array([0.0, 0.0, 0.0]) + pose(active.home))
        rates = robot.of_motors(closed, X, qd[:3], qdd[:3])
        pairs = [
            (robot.torques(closed, X, *rates), active(q[:3], qd[:3], qdd[:3])),
            (robot.torques(q, robot.platform(q), qd, qdd), sensed(q, qd, qdd)),
            (robot.fitted(q, X)[1], fit(active.solver, q, active.home.q_r).state.q_r[:6]),
        ]
        for found, expected in pairs:
            if not np.allclose(found, expected, rtol=1e-9, atol=1e-9):
                sys.exit(f"not the package's model: {found}, expected {expected}")


def pose(state: Any) -> np.ndarray:
    matrix = state.platform_pose
    return np.array([*matrix[:2, 3], np.arctan2(matrix[1, 0], matrix[0, 0])])


def conditions() -> Iterator[tuple[str, tuple[str, ...], float, float, float]]:
    """(name, what is wrong, by which share, encoder noise, encoder offset)."""
    for kind, names in KINDS.items():
        for share in SIZES:
            yield f"{kind} {100 * share:g} %", names, share, 0.0, 0.0
    yield "encoder noise", (), 0.0, 1.0, 0.0
    yield "encoder offsets", (), 0.0, 0.0, 1.0
    for share in SIZES:
        name = f"all, noise, offsets, {100 * share:g} %"
        yield name, KINDS["all of these"], share, 1.0, 1.0


def measured(count: int, fastest: float) -> dict[str, Any]:
    """{condition: {model: {torque, platform: [quartile, median, quartile]}}}."""
    rng = np.random.default_rng(0)
    true, X, Xd, Xdd = drawn(count, fastest, rng)
    robots = true.along()
    q = robots.inverse(X)
    qd, qdd = robots.of_platform(q, X, Xd, Xdd)
    tau = robots.torques(q, X, qd, qdd)
    results: dict[str, Any] = {}
    todo = list(conditions())
    progress = Progress()
    for k, (name, names, share, noise, offset) in enumerate(todo):
        progress(f"{k} of {len(todo)} conditions; {name}")
        model = true.changed(names, share, rng).along()
        read = q + noise * rng.normal(0, NOISE, q.shape)
        read = read + offset * rng.normal(0, OFFSET, (count, 1, 6))
        rates = qd + noise * rng.normal(0, RATE_NOISE, qd.shape)
        found = computed(model, read, rates, qdd[..., :3], X)
        size = np.sqrt(np.mean(tau**2, axis=(1, 2)))
        results[name] = {}
        for which, (torques, place) in found.items():
            torque = np.sqrt(np.mean((torques - tau) ** 2, axis=(1, 2))) / size
            off = np.sqrt(np.mean(np.sum((place - X)[..., :2] ** 2, axis=-1), axis=1))
            results[name][which] = {
                "torque": quartiles(torque),
                "platform": quartiles(off),
            }
    return results


def quartiles(errors: np.ndarray) -> list[float]:
    """Of robots whose model can't be closed everywhere on the path the error is infinite."""
    errors = np.where(np.isfinite(errors), errors, np.inf)
    return np.percentile(errors, (25, 50, 75), method="nearest").tolist()


def drawn(count: int, fastest: float, rng: np.random.Generator) -> tuple[Robots, np.ndarray, ...]:
    """(true robots, X, Ẋ, Ẍ (count, POSES, 3)) whose passive joints turn with their motors, by no
    more than `fastest`."""
    # the shipped robot with every number changed by some per cent
    true = Robots.nominal().over(DRAWS * count).changed(KINDS["all of these"], 0.05, rng)
    t = np.linspace(0, 2 * np.pi, POSES, endpoint=False)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (DRAWS * count, 1, 3))
    reach = np.array([0.02, 0.02, 0.15]) * rng.uniform(0.5, 1, (DRAWS * count, 1, 3))
    middle = np.array([0.01, 0.01, 0.05]) * rng.uniform(-1, 1, (DRAWS * count, 1, 3))
    X = middle + reach * np.sin(t + phase)
    Xd, Xdd = SPEED * reach * np.cos(t + phase), -(SPEED**2) * reach * np.sin(t + phase)
    robots = true.along()
    q = robots.inverse(X)
    reached = np.isfinite(q).all(axis=(1, 2))
    T = robots.T(np.where(reached[:, None, None], q, 1.0), X)
    sound = np.flatnonzero(reached & (np.abs(T).max(axis=(1, 2, 3)) <= fastest))[:count]
    if len(sound) < count:
        sys.exit(f"{len(sound)} of {count} robots stay away from singularities")
    return true.each(lambda value: value[sound]), X[sound], Xd[sound], Xdd[sound]


def computed(
    model: Robots, q: np.ndarray, qd: np.ndarray, qdd_a: np.ndarray, near: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{model: (torques (…, 3), X (…, 3))} from readings."""
    X, closed = model.closed(q[..., :3], near)
    rates, accelerations = model.of_motors(closed, X, qd[..., :3], qdd_a)
    X_read = model.platform(q)
    X_fit, q_fit = model.fitted(q, X)
    T = model.T(q_fit, X_fit)
    # the motors' rates that fit all six best
    qd_a = solve(turned(T) @ T, apply(turned(T), qd))
    of_fit = model.of_motors(q_fit, X_fit, qd_a, qdd_a)
    return {
        "active": (model.torques(closed, X, rates, accelerations), X),
        "sensed": (model.torques(q, X_read, qd, accelerations), X_read),
        "fitted": (model.torques(q_fit, X_fit, *of_fit), X_fit),
        "printed": (model.torques(q, X_read, qd, accelerations, printed=True), X_read),
    }


def show(results: dict[str, Any], count: int) -> None:
    print(
        f"{count} 3RRRs, {POSES} poses each; noise {NOISE:g} rad and {RATE_NOISE:g} rad/s, offsets "
        f"{OFFSET:g} rad\nlower quartile … median … upper quartile of the robots; inf: "
        "can't be closed somewhere on the path"
    )
    for what, unit, scale in (("torque", "%", 100.0), ("platform", "mm", 1e3)):
        print(f"\n{what + ' error, ' + unit:26}" + "".join(f"{model:>29}" for model in MODELS))
        for condition, models in results.items():
            cells = []
            for model in MODELS:
                low, middle, high = (scale * x for x in models[model][what])
                cells.append(" … ".join(map(number, (low, middle, high))))
            print(f"{condition:26}" + "".join(f"{cell:>29}" for cell in cells))


def number(value: float) -> str:
    return "0" if value < 1e-9 else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def draw(results: dict[str, Any], path: Path) -> None:
    from robot_dynamics.app.plots import COLOURS, figure, save, style

    shown = [name for name in results if " 1 %" in name or name.startswith("encoder")]
    with style():
        drawing, axes = figure(1, 2, width=9.0, height=3.6)
        for axis, what, unit, scale, limits in (
            (axes[0, 0], "torque", "% of the torque", 100.0, (5e-4, 60.0)),
            (axes[0, 1], "platform", "mm", 1e3, (0.05, 30.0)),
        ):
            for k, model in enumerate(MODELS[:3]):
                low, middle, high = (
                    scale * np.array([results[name][model][what][i] for name in shown])
                    for i in range(3)
                )
                # what is infinite ends in an arrow, and what is nothing is not in the picture
                endless = ~(high < limits[1])
                high = np.where(endless, 0.8 * limits[1], high)
                middle = np.where(middle < limits[0] / 10, np.nan, middle)
                places = np.arange(len(shown)) + 0.22 * (k - 1)
                axis.errorbar(
                    middle, places, xerr=[middle - low, high - middle], fmt="o", markersize=4,
                    color=COLOURS[k], label=model,
                )  # fmt: skip
                ends = np.full(int(endless.sum()), 0.85 * limits[1])
                axis.plot(ends, places[endless], ">", color=COLOURS[k], markersize=5)
            axis.set_yticks(range(len(shown)), shown if what == "torque" else [""] * len(shown))
            axis.invert_yaxis()
            axis.set_xscale("log")
            axis.set_xlim(*limits)
            axis.set_xlabel(f"{what} error ({unit}), median and quartiles")
        axes[0, 1].legend(loc="center")
        title = "3RRR: the benefit of sensors on the passive joints (▸: unbounded upper quartile)"
        drawing.suptitle(title, x=0.01, ha="left")
        save(drawing, path)


if __name__ == "__main__":
    main()
