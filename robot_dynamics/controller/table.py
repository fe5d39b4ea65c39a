# SPDX-License-Identifier: Apache-2.0
"""States and torques that the generated package's own tests compare with, made by Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dynamics.inverse_dynamics import InverseDynamics
from ..formulations.equations import TERMS
from ..mechanism import Inertial, Mechanism
from .programs import Programs

ROWS = 12
READ_ROWS = 3
STEP = 0.02
"""rad or m between two rows of a robot with loops, which is closed from the last one"""


@dataclass(frozen=True)
class Row:
    """One state under one choice of terms, gravity and payload."""

    terms: int
    smoothing: float
    gravity: tuple[float, ...]
    link: int
    """-1: no payload"""
    payload: tuple[float, ...]
    """mass; centre of mass (3,); inertia xx yy zz xy xz yz about it"""
    q: tuple[float, ...]
    qd: tuple[float, ...]
    qdd: tuple[float, ...]
    tau: tuple[float, ...]


@dataclass(frozen=True)
class ReadRow:
    """One state by the sensors on passive joints, which miss the loops a little."""

    terms: int
    q: tuple[float, ...]
    """(k,), joints and then sensed ones"""
    qd: tuple[float, ...]
    qdd: tuple[float, ...]
    """(n_a,)"""
    tau: tuple[float, ...]


_NOTHING = (0.0,) * 10
_MISFIT = 1e-3
"""rad, or fractions of the robot's size: well within sensor_tolerance"""


def table(
    mechanism: Mechanism, formulation: str, rotors: str, found: Programs, links: list[str]
) -> list[Row]:
    """Rows over all terms, with and without smoothing, another gravity and a payload."""
    random = np.random.default_rng(7)
    k = len(found.joints)
    masks = [31, 31, *(2**i for i in range(len(TERMS))), 4 + 8, 31 - 16]
    if found.closure is not None:
        masks = [31, 31, 4, 31 - 2]  # each is a model of its own to derive
    models: dict[tuple[int, float], InverseDynamics] = {}
    rows = []
    if found.closure is None:
        q = random.uniform(-1.0, 1.0, (ROWS, k))
    else:
        at = len(found.motors) + 1
        home = np.array(found.closure.memory[at : at + k])
        scale = np.array(found.closure.scale)
        q = home + STEP * scale * np.cumsum(random.uniform(-1.0, 1.0, (ROWS, k)), axis=0)
    for i in range(ROWS):
        mask = masks[i % len(masks)]
        smoothing = 0.3 if i % 2 else 0.0
        if (mask, smoothing) not in models:
            models[mask, smoothing] = InverseDynamics(
                mechanism,
                formulation,
                rotors=rotors,
                terms=[term for j, term in enumerate(TERMS) if mask >> j & 1],
                friction_smoothing=smoothing,
            )
        dynamics = models[mask, smoothing]
        link, payload = -1, _NOTHING
        if i % 4 == 3 and links:
            link = int(random.integers(len(links)))
            payload = (1.5, 0.1, -0.05, 0.2, 0.02, 0.03, 0.025, 0.001, -0.002, 0.003)
            dynamics.set_payload(links[link], _body(payload))
        described = tuple(float(x) for x in mechanism.gravity)
        gravity = (1.0, -2.0, 9.0) if i % 3 == 2 else described
        dynamics.gravity_vector = gravity
        qd, qdd = random.uniform(-1.0, 1.0, (2, k))
        tau = dynamics(q[i], qd, qdd)
        if link >= 0:
            dynamics.set_payload(links[link], None)
        numbers = (tuple(map(float, x)) for x in (q[i], qd, qdd, tau))
        rows.append(Row(mask, smoothing, gravity, link, payload, *numbers))
    return rows


def read_table(
    mechanism: Mechanism, formulation: str, rotors: str, rows: Sequence[Row]
) -> list[ReadRow]:
    """The first of a robot's rows again, by its sensors; none where it has no sensors."""
    if not (mechanism.loops and mechanism.sensed):
        return []
    random = np.random.default_rng(11)
    plain = InverseDynamics(mechanism, terms=()).closed
    assert plain is not None
    found = []
    for row in rows[:READ_ROWS]:
        terms = [term for j, term in enumerate(TERMS) if row.terms >> j & 1]
        model = InverseDynamics(mechanism, formulation, rotors=rotors, terms=terms, sensed=True)
        state = plain.forward_kinematics(row.q, row.qd)
        k = len(model.joint_names)
        # rates are of another size, and no loop says that they belong together
        off = _MISFIT * plain.solver.scale[:k] * random.uniform(-1.0, 1.0, k)
        q, qd = state.q_r[:k] + off, state.qd_r[:k] + 10 * off
        assert model.closed is not None
        model.closed.reset(state)
        model.closed.disagreement(q, math.inf)
        tau = model.closed.consistent_torques(q, qd, row.qdd)
        numbers = (tuple(map(float, x)) for x in (q, qd, row.qdd, tau))
        found.append(ReadRow(row.terms, *numbers))
    return found


def _body(numbers: tuple[float, ...]) -> Inertial:
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers
    return Inertial(m, np.array([x, y, z]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
