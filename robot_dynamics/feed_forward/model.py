"""A robot, a formulation and a list of joints: what turns states into torques."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, choices, wrong
from ..inverse_dynamics import InverseDynamics
from ..mechanism import Inertial, Mechanism
from .parameters import Settings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wish:
    """All that a model is built from."""

    mechanism: Mechanism
    settings: Settings
    payloads: Mapping[str, Inertial] = field(default_factory=dict)
    """By link"""

    @property
    def dynamics_key(self) -> tuple[object, ...]:
        """What the dynamics are built for; payloads change while they run, the rest is wiring."""
        s = self.settings
        mechanism, terms = id(self.mechanism), frozenset(s.terms)
        return mechanism, s.formulation, s.rotors, terms, s.friction_smoothing


class Model:
    """Torques of the joints that are driven, from the joints that are read.

    Attributes:
        joints: (n) names in the order of qdd and of the torques.
        read: (k) names in the order of q and qd: `joints` first, then those that move besides.
        periodic: (n,) which of the joints may turn forever.
        limits: (n,) largest magnitudes of the torques, or None.

    Raises:
        InputError: the settings name joints that the robot does not have, or not in this way.
    """

    def __init__(self, wish: Wish, previous: Model | None = None):
        self.wish = wish
        mechanism, settings = wish.mechanism, wish.settings
        if previous is not None and previous.wish.dynamics_key == wish.dynamics_key:
            self.dynamics: InverseDynamics = previous.dynamics
            carried = previous.wish.payloads
        else:
            carried = {}
            self.dynamics = InverseDynamics(
                mechanism,
                settings.formulation,
                rotors=settings.rotors,
                terms=settings.terms,
                friction_smoothing=settings.friction_smoothing,
            )
        for link in {**carried, **wish.payloads}:
            if carried.get(link) is not wish.payloads.get(link):
                self.dynamics.set_payload(link, wish.payloads.get(link))
        names, locked = self.dynamics.joint_names, settings.locked
        self.joints, self.limits = self.fitted(settings)
        besides = (name for name in names if name not in self.joints and name not in locked)
        self.read = (*self.joints, *besides)
        self.periodic = np.array(
            [mechanism.joint(name).type == "continuous" for name in self.joints], dtype=bool
        )

        column = {name: k for k, name in enumerate(names)}
        self._read = np.array([column[name] for name in self.read], dtype=np.intp)
        self._driven = np.array([column[name] for name in self.joints], dtype=np.intp)
        actuated = self.dynamics.actuated_names
        self._out = np.array([actuated.index(name) for name in self.joints], dtype=np.intp)
        self._q, self._qd, self._qdd = np.zeros((3, len(names)))
        for name, position in locked.items():
            self._q[column[name]] = position

    def fitted(self, settings: Settings) -> tuple[tuple[str, ...], Floats | None]:
        """The joints to drive and the limits of their torques, by these settings.

        Raises:
            InputError: the settings do not fit this robot.
        """
        names, actuated = self.dynamics.joint_names, self.dynamics.actuated_names
        locked = settings.locked
        for name in locked:
            if name not in names:
                raise wrong(InputError, "locked_joints", name, choices(names))
        joints = settings.joints or tuple(name for name in actuated if name not in locked)
        if not joints:
            raise wrong(InputError, "joints", joints, "at least one joint that is not locked")
        for k, name in enumerate(joints):
            if name not in actuated:
                raise wrong(InputError, "joints", name, choices(actuated))
            if name in joints[:k]:
                raise wrong(InputError, "joints", name, "every joint once")
            if name in locked:
                raise wrong(InputError, "joints", name, "a joint that is not in locked_joints")
        limits = settings.effort_limits
        if limits and len(limits) != len(joints):
            raise wrong(
                InputError, "effort_limits", list(limits), f"{len(joints)} numbers, one a joint"
            )
        return joints, np.array(limits) if limits else None

    @property
    def name(self) -> str:
        return self.wish.mechanism.name

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Torques (n,) of `joints` at q, qd (k,) of `read` and qdd (n,) of `joints`.

        Joints that are read but not driven are taken with zero acceleration.

        Raises:
            RobotDynamicsError: the state is none that the mechanism can have.
        """
        self._q[self._read] = q
        self._qd[self._read] = qd
        self._qdd[self._driven] = qdd
        torques: Floats = self.dynamics(self._q, self._qd, self._qdd)[self._out]
        return torques

    def at_rest(self, q: Floats) -> Floats:
        """Torques (n,) that carry the robot where it is: of the chosen terms, gravity alone."""
        return self(q, np.zeros_like(q), np.zeros(len(self.joints)))
