# SPDX-License-Identifier: Apache-2.0
"""A base with a prescribed motion: mobile or tilted arms, arms on ships, legs on a body.

The torques are those of the same robot on a floating base (see `formulations.floating`) that moves
as prescribed, and gravity is an acceleration of the base:

    q = [0; 1; joints],   v = [0; ω; q̇],   v̇ = [a - g; α; q̈]

The position and the linear velocity of the base have no effect. For a robot with loops the torques
of its tree are projected: τ = Tᵀ τ_r at q̇_r = T_q q̇, q̈_r = T_q q̈ + Ṫ_q q̇.

If the terms include gravity but not motion, only the change of gravity is added: the torques of
the same robot at rest, on a base whose acceleration is the difference between its gravity and the
description's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..chains.chain import Configuration
from ..chains.companion import Companion
from ..chains.open_chain import OpenChain
from ..chains.regressor_kernel import RegressorKernel
from ..errors import InputError, wrong
from ..formulations.form import FLOATING
from ..formulations.options import Options
from ..formulations.terms import MOTION, OF_LINKS
from ..inputs import as_floats, vectors
from ..mechanism import Mechanism
from ..mechanism.bodies import frozen
from ..mechanism.six_joints import on_six_joints
from ..scalar import Floats
from .motors import MotorSide, MotorTorques

ZERO = (0.0, 0.0, 0.0)
NONE, HERE = np.zeros(3), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
NONE.flags.writeable = HERE.flags.writeable = False


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """The motion of the base frame relative to the world, on the base's own axes.

    Leading axes are a batch. Fields that are left out are zero; see their descriptions for the
    other two.

    Raises:
        InputError: a wrong shape, a number that is not finite, a matrix that is not a rotation, or
            `specific_force` together with `rotation` or `linear_acceleration`.
    """

    angular_velocity: ArrayLike = ZERO
    """ω (…, 3), rad/s, of the base frame"""
    angular_acceleration: ArrayLike = ZERO
    """α (…, 3), rad/s², of the base frame: dω/dt"""
    linear_acceleration: ArrayLike = ZERO
    """a (…, 3), m/s², of the base frame's origin, without gravity"""
    rotation: ArrayLike | None = None
    """(…, 3, 3), det = 1: the base frame's axes as columns in the frame of `gravity_vector`; None:
    the identity, as described"""
    specific_force: ArrayLike | None = None
    """a - g (…, 3), m/s², as an IMU at the base frame's origin measures it; replaces
    `linear_acceleration`, `rotation` and the description's gravity; None: it follows from them"""

    def __post_init__(self) -> None:
        for name in ("angular_velocity", "angular_acceleration", "linear_acceleration"):
            object.__setattr__(self, name, _vector(name, getattr(self, name)))
        if self.rotation is not None:
            object.__setattr__(self, "rotation", _rotation(self.rotation))
        if self.specific_force is not None:
            accelerated = self.linear_acceleration is not NONE and np.any(self.linear_acceleration)
            if self.rotation is not None or accelerated:
                raise wrong(
                    InputError, "specific_force", "rotation or linear_acceleration as well",
                    "neither: an accelerometer measures both",
                )  # fmt: skip
            vector = _vector("specific_force", self.specific_force)
            object.__setattr__(self, "specific_force", vector)

    def specific_force_in(self, gravity: Floats) -> Floats:
        """The specific force a - g (…, 3), m/s², of the base frame's origin, on the base's axes.

        Args:
            gravity: (3,), m/s², the description's gravity vector, in the frame that `rotation`
                refers to; ignored if `specific_force` is given.

        Returns:
            The specific force (…, 3): what an ideal accelerometer at the origin measures.
        """
        if self.specific_force is not None:
            return np.asarray(self.specific_force)
        g = np.asarray(gravity, dtype=float)
        if self.rotation is not None:
            # g_base = Rᵀ g
            g = np.einsum("...ji,j->...i", np.asarray(self.rotation), g)
        specific_force: Floats = np.asarray(self.linear_acceleration) - g
        return specific_force

    felt = specific_force_in
    """The former name of `specific_force_in`"""


class MovingBase:
    """The torques of a robot whose base has a prescribed motion. Immutable.

    Args:
        tree: the robot, or its tree if it has loops.
        robot: the robot with its motors and the same gravity.
        options: those of `InverseDynamics`.

    Raises:
        InputError: `terms` includes some but not all of the terms of motion, through which both
            gravity and the base's motion act.
    """

    def __init__(self, tree: Mechanism, robot: Mechanism, options: Options):
        terms = options.terms
        needed = [name for name in MOTION if tree.rotors or name in OF_LINKS]
        self._has_gravity, used = "gravity" in terms, terms
        self.adds = not set(MOTION) & set(terms)
        """Whether the results are added to those on a fixed base, because no term depends on the
        motion"""
        if self.adds:
            used = MOTION
        elif missing := [name for name in needed if name not in terms]:
            raise wrong(
                InputError, "terms", sorted(terms), f"{', '.join(missing)} too, for base_motion"
            )
        self._used = replace(options, terms=tuple(used))
        self._six = on_six_joints(tree)
        self._chain = OpenChain(self._six, self._used, FLOATING)
        self._regressor: Companion[MovingBase, RegressorKernel] = Companion(
            lambda moving: RegressorKernel(moving._six, moving._robot, moving._used, FLOATING),
            lambda made, moving: made.over(moving._six),
        )
        self._names = tree.joint_names
        # friction is already part of the torques on a fixed base
        kept = tuple(name for name in terms if name != "friction") if self.adds else terms
        on_shafts = replace(options, terms=kept)
        self._motors: Companion[MovingBase, MotorSide] = Companion(
            lambda moving: MotorSide(on_six_joints(moving._robot), on_shafts, FLOATING),
            lambda made, moving: made.over(moving._robot),
        )
        self._bind(robot)

    def _bind(self, robot: Mechanism) -> None:
        self._robot = robot
        self._gravity = np.asarray(robot.gravity, dtype=float) * self._has_gravity

    def over(self, tree: Mechanism, robot: Mechanism) -> MovingBase:
        """The same robot with the gravity, friction and inertias of another of the same geometry.

        Args:
            tree: the other robot, or its tree if it has loops.
            robot: the other robot with its motors.
        """
        other = copy(self)
        other._six = on_six_joints(tree)
        other._chain = self._chain.over(other._six)
        other._regressor, other._motors = self._regressor.after(), self._motors.after()
        other._bind(robot)
        return other

    def torques(
        self, at: Configuration, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """The torques (…, n_m) at a position, for qd and qdd (…, k)."""
        state = self._moved(*at.state(qd, qdd, self._names), motion)
        tau = self._chain.torques(*state)[..., 6:]
        return np.ascontiguousarray(at.on_motors(tau[..., None], self._names)[..., 0])

    def motor_torques(
        self,
        at: Configuration,
        qd: ArrayLike,
        qdd: ArrayLike,
        motion: BaseMotion,
        actuated: Sequence[str],
    ) -> MotorTorques:
        """(drive, gear) (…, m) as in `InverseDynamics.motor_torques`.

        Raises:
            InputError: a batch of base motions, if the terms of motion are chosen only in part.
        """
        tau = self.torques(at, qd, qdd, motion)
        robot, gravity = on_six_joints(self._robot), NONE
        if self.adds:
            motion = self._with_gravity_change(motion)
            gravity = -np.asarray(motion.specific_force)
            if gravity.ndim > 1:
                raise wrong(
                    InputError, "base_motion", gravity.shape, "one, without inertia and coriolis"
                )
        columns = [robot.joint_names.index(name) for name in actuated]
        moving = at.state(qd, qdd, self._robot.joint_names)
        state = self._carried(*moving, motion, len(robot.joint_names) - 6)
        return self._motors.of(self).torques(columns, tau, *state, gravity)

    def gravity(self, at: Configuration, motion: BaseMotion) -> Floats:
        """The torques (…, n_m) that hold the robot at rest, with gravity as the base sees it."""
        standing = BaseMotion(rotation=motion.rotation, specific_force=motion.specific_force)
        n = len(self._names)
        # holding the robot against gravity is equivalent to accelerating it upwards
        specific_force = standing.specific_force_in(np.asarray(self._robot.gravity, dtype=float))
        lifted = _joined(specific_force, np.zeros(3 + n))
        tau = self._chain.kernel("inertia").call(_joined(HERE, at.q), lifted)[..., 6:]
        return np.ascontiguousarray(at.on_motors(tau[..., None], self._names)[..., 0])

    def derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """(…, 3, n, n) of a robot without loops; if `adds`, only the part to be added."""
        state = self._moved(q, qd, qdd, motion)
        found: Floats = self._chain.kernel("derivatives").call(*state)[..., 6:, 6:].copy()
        if self.adds:
            found[..., 1:, :, :] = 0.0
        return found

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> tuple[list[str], Floats]:
        """(names (p,), Y (…, n, p)) of a robot without loops; if `adds`, only the part to be
        added."""
        kernel = self._regressor.of(self)
        return kernel.names, kernel.matrix(*self._moved(q, qd, qdd, motion))[..., 6:, :]

    def _moved(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> tuple[Floats, Floats, Floats]:
        if self.adds:
            qd = qdd = np.zeros_like(as_floats("qd", qd))
            motion = self._with_gravity_change(motion)
        return self._carried(q, qd, qdd, motion, len(self._names))

    def _with_gravity_change(self, motion: BaseMotion) -> BaseMotion:
        """The base at rest, with g - g_described as gravity."""
        if not self._has_gravity:
            return BaseMotion(specific_force=ZERO)
        if motion.specific_force is None:
            motion = BaseMotion(rotation=motion.rotation)
        return BaseMotion(specific_force=motion.specific_force_in(self._gravity) + self._gravity)

    def _carried(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion, n: int
    ) -> tuple[Floats, Floats, Floats]:
        """q (…, 7 + n), v and v̇ (…, 6 + n) of the base followed by the tree's joints."""
        if motion.specific_force is not None and not (self._has_gravity or self.adds):
            raise wrong(
                InputError, "base_motion", "specific_force, which includes gravity, without the "
                "term gravity", "linear_acceleration",
            )  # fmt: skip
        q, qd, qdd = vectors("q", q, n), vectors("qd", qd, n), vectors("qdd", qdd, n)
        omega, alpha = motion.angular_velocity, motion.angular_acceleration
        return (
            _joined(HERE, q),
            _joined(NONE, omega, qd),
            _joined(motion.specific_force_in(self._gravity), alpha, qdd),
        )


def _joined(*parts: Any) -> Floats:
    """[parts] along the last axis; the others broadcast."""
    if all(part.ndim == 1 for part in parts):
        return np.concatenate(parts)
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate(
        [np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts], axis=-1
    )


def _vector(name: str, value: Any) -> Floats:
    if value is ZERO:
        return NONE
    found = vectors(f"base_motion: {name}", value, 3)
    if not np.isfinite(found).all():
        raise wrong(InputError, f"base_motion: {name}", found.tolist(), "finite numbers")
    return frozen(name, found)


def _rotation(value: Any) -> Floats:
    R = as_floats("base_motion: rotation", value)
    if R.shape[-2:] != (3, 3):
        raise wrong(InputError, "base_motion: rotation", R.shape, "shape (…, 3, 3)")
    off = abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    if not off <= 1e-6 or not (np.linalg.det(R) > 0).all():
        raise wrong(InputError, "base_motion: rotation", R.tolist(), "a rotation matrix (det = 1)")
    return frozen("rotation", R)
