# SPDX-License-Identifier: Apache-2.0
"""States and torques, computed in Python, for the generated package's own tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.inverse_dynamics import InverseDynamics
from ..formulations.terms import TERMS
from ..mechanism import Inertial
from ..mechanism.bodies import body_from
from .programs import Programs, Request

ROWS = 12
READ_ROWS = 3
STEP = 0.02
"""rad or m: largest distance between successive rows for a robot with loops, whose loops are closed
starting from the previous row"""


@dataclass(frozen=True)
class Row:
    """One state under one choice of terms, gravity and payload."""

    terms: int
    smoothing: float
    gravity: tuple[float, ...]
    link: int
    """-1: no payload"""
    payload: tuple[float, ...]
    """mass (kg); centre of mass (3,) (m); inertia about it, xx yy zz xy xz yz (kg·m²)"""
    q: tuple[float, ...]
    qd: tuple[float, ...]
    qdd: tuple[float, ...]
    tau: tuple[float, ...]


@dataclass(frozen=True)
class ReadRow:
    """One state as read by sensors on passive joints, which does not quite close the loops."""

    terms: int
    q: tuple[float, ...]
    """(k,): the actuated joints, then the sensed ones"""
    qd: tuple[float, ...]
    qdd: tuple[float, ...]
    """(n_a,)"""
    tau: tuple[float, ...]


_NOTHING = (0.0,) * 10
_MISFIT = 1e-3
"""rad, or fractions of the robot's size: well below sensor_tolerance"""


def table(request: Request, found: Programs, links: list[str]) -> list[Row]:
    """Rows with all terms or some, with or without smoothing, another gravity and a payload.

    Args:
        request: the robot and the choices.
        found: the robot's programs.
        links: the names of the links that may carry a payload.
    """
    random = np.random.default_rng(7)
    k = len(found.joints)
    masks = [31, 31, *(2**i for i in range(len(TERMS))), 4 + 8, 31 - 16]
    if found.closure is not None:
        masks = [31, 31, 4, 31 - 2]  # only a few, as each needs a separate model
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
            models[mask, smoothing] = _model(request, mask, friction_smoothing=smoothing)
        dynamics = models[mask, smoothing]
        link, payload = -1, _NOTHING
        if i % 4 == 3 and links:
            link = int(random.integers(len(links)))
            payload = (1.5, 0.1, -0.05, 0.2, 0.02, 0.03, 0.025, 0.001, -0.002, 0.003)
            dynamics.set_payload(links[link], body_from(Inertial, payload))
        described = tuple(float(x) for x in request.mechanism.gravity)
        gravity = (1.0, -2.0, 9.0) if i % 3 == 2 else described
        dynamics.gravity_vector = gravity
        qd, qdd = random.uniform(-1.0, 1.0, (2, k))
        tau = dynamics(q[i], qd, qdd)
        if link >= 0:
            dynamics.set_payload(links[link], None)
        numbers = (tuple(map(float, x)) for x in (q[i], qd, qdd, tau))
        rows.append(Row(mask, smoothing, gravity, link, payload, *numbers))
    return rows


def _model(request: Request, mask: int, **options: Any) -> InverseDynamics:
    """The robot's dynamics with the terms of a mask; compiling would not pay for a few states."""
    terms = [term for j, term in enumerate(TERMS) if mask >> j & 1]
    return InverseDynamics(
        request.mechanism,
        request.formulation,
        rotors=request.rotors,
        terms=terms,
        backend="python",
        **options,
    )


def read_table(request: Request, rows: Sequence[Row]) -> list[ReadRow]:
    """The first rows again, as read by the robot's sensors; empty for a robot without sensors or
    loops.

    Args:
        request: the robot and the choices.
        rows: the rows of `table`.
    """
    mechanism = request.mechanism
    if not (mechanism.loops and mechanism.sensed):
        return []
    random = np.random.default_rng(11)
    plain = InverseDynamics(mechanism, terms=(), backend="python").closed
    assert plain is not None
    found = []
    for row in rows[:READ_ROWS]:
        model = _model(request, row.terms, sensed=True)
        state = plain.forward_kinematics(row.q, row.qd)
        k = len(model.joint_names)
        # rates have another magnitude, and need not be consistent with the loops
        off = _MISFIT * plain.closer.scale[:k] * random.uniform(-1.0, 1.0, k)
        q, qd = state.q_r[:k] + off, state.qd_r[:k] + 10 * off
        assert model.closed is not None
        model.closed.reset(state)
        tau = model.closed.consistent_torques(q, qd, row.qdd)
        numbers = (tuple(map(float, x)) for x in (q, qd, row.qdd, tau))
        found.append(ReadRow(row.terms, *numbers))
    return found
