# SPDX-License-Identifier: Apache-2.0
"""Legged robots, and arms on mobile bases: the whole robot, its base moved by the torques.

    tau (6 + n) = D(q) a + C(q, v) v + g(q) + friction(v) - Σ Jᵀ w

The first six are the wrench that the base would need from outside: nothing, where contact wrenches
are told. `formulations.floating` has the equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..closure import CONDITION_LIMIT
from ..codegen.kernel import as_floats
from ..errors import InputError, choices, wrong
from ..formulations.equations import TERMS
from ..formulations.floating import BASE, TURNED, FloatingRegressor
from ..mechanism import Inertial, Mechanism, Pose
from ..scalar import Floats, is_zero
from . import inputs
from .base_motion import SLIDES, TURNS, BaseMotion, on_six_joints
from .chain import Chain
from .inverse_dynamics import InverseDynamics
from .linearization import Linearization
from .motors import MotorTorques
from .open_chain import FloatingChain, OpenChain
from .open_robot import OpenRobot
from .tree import FloatingTree

SMALL_ANGLE = 1e-4
"""rad: below it the integral's coefficients are their series, right to rounding"""


class FloatingRobot(OpenRobot):
    """A tree on six joints, whose state is q (…, n + 1), v and a (…, n)."""

    chains = FloatingChain
    trees = FloatingTree
    regressors = FloatingRegressor

    def _adopt(self, chain: OpenChain) -> None:
        super()._adopt(chain)
        names = chain.joint_names
        self.joint_names = (*(names[k] for k in TURNED), *names[BASE:])
        self.actuated_names = self.joint_names

    def on_moving_base(
        self,
        q: ArrayLike,  # noqa: ARG002
        qd: ArrayLike,  # noqa: ARG002
        qdd: ArrayLike,  # noqa: ARG002
        motion: BaseMotion,  # noqa: ARG002
    ) -> Floats:
        """There is none: the base's motion is in q, v and a."""
        raise wrong(InputError, "base_motion", "a floating base", "none: it is in q, v and a")

    def motor_torques(
        self,
        q: ArrayLike,  # noqa: ARG002
        qd: ArrayLike,  # noqa: ARG002
        qdd: ArrayLike,  # noqa: ARG002
        motion: BaseMotion | None,  # noqa: ARG002
    ) -> MotorTorques:
        """Not of a floating base."""
        expected = "InverseDynamics with base_motion, which has the motors' side"
        raise wrong(InputError, "motor_torques", "a floating base", expected)


class FloatingBase(InverseDynamics):
    """tau = D(q) a + C(q, v) v + g(q) + friction(v) of a robot whose base nothing holds.

    q is (…, 7 + n): position (m) and quaternion x, y, z, w of the base in the world, then the
    joints. v and a are (…, 6 + n): the base's linear (m/s) and angular velocity (rad/s) on its own
    axes, then the joints' rates, and what these change by in a second; tau is (…, 6 + n): force (N)
    and moment (N·m) on the base's axes, about its origin, then the joints' torques. This is
    Pinocchio's free flyer; no position is singular. A quaternion counts by its direction alone, and
    gives nan where it is zero. World: where the base stands at q = [0, 0, 0, 0, 0, 0, 1, …].

    Everything else is as in `InverseDynamics`: batches, payloads, wrenches (on the world's axes
    here, as are poses and Jacobians), and each function's meaning. `derivatives` change a position
    as a twist does, on the base's axes: ∂tau/∂q is (…, 6 + n, 6 + n). D and C go with v.

    Args:
        mechanism: what `rd.load` gives. Where a floating joint carries the robot, that is the base;
            else the base link is, with its own inertia where the description has one.
        joints: the joints in the order that q, v and tau are wanted in, parents first (Pinocchio's
            is `model.names[2:]`); None: that of the description.
        formulation, rotors, terms, friction_smoothing, backend, threads: as in `InverseDynamics`.

    Attributes:
        joint_names: the order of v, a and tau: x, y, z, rx, ry, rz of the base, then the joints.

    Raises:
        InputError: as `InverseDynamics`; loops; joints of other names, or in an order that puts one
            before its parent; friction of the base; something beside the base that moves.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        *,
        joints: Sequence[str] | None = None,
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: float = 0.0,
        sensed: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        backend: str = "auto",
        threads: int | None = None,
    ):
        if not isinstance(mechanism, Mechanism):
            mechanism = inputs.robot(mechanism)
        super().__init__(
            floating(mechanism, joints),
            formulation,
            rotors=rotors,
            terms=terms,
            friction_smoothing=friction_smoothing,
            sensed=sensed,
            condition_limit=condition_limit,
            backend=backend,
            threads=threads,
        )

    def _chain_of(self, mechanism: Mechanism) -> Chain:
        return FloatingRobot(mechanism, self._options)

    @property
    def neutral(self) -> Floats:
        """q (7 + n,) of a base that stands at the world's origin, joints at zero."""
        q = np.zeros(len(self.joint_names) + 1)
        q[BASE] = 1.0
        return q

    def integrate(self, q: ArrayLike, step: ArrayLike) -> Floats:
        """q (…, 7 + n) after a step v·dt (…, 6 + n) at a twist that stays as it is on the base's
        axes: exp on SE(3). The quaternion that comes is of length 1.

        Raises:
            InputError: a wrong shape.
        """
        n = len(self.joint_names)
        q, step = as_floats("q", q), as_floats("step", step)
        for name, value, size in (("q", q, n + 1), ("step", step, n)):
            if value.ndim == 0 or value.shape[-1] != size:
                raise wrong(InputError, name, value.shape, f"shape (…, {size})")
        batch = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
        q, step = np.broadcast_to(q, (*batch, n + 1)), np.broadcast_to(step, (*batch, n))
        out = np.empty((*batch, n + 1))
        out[..., 7:] = q[..., 7:] + step[..., BASE:]
        u, w = step[..., :3], step[..., 3:BASE]
        angle = np.linalg.norm(w, axis=-1, keepdims=True)
        small, safe = angle < SMALL_ANGLE, np.where(angle < SMALL_ANGLE, 1.0, angle)
        square = angle * angle
        # p += R V u,  V = 1 + (1 - cos θ)/θ² [w]× + (θ - sin θ)/θ³ [w]×²
        b = np.where(small, 0.5 - square / 24, 2 * (np.sin(safe / 2) / safe) ** 2)
        c = np.where(small, 1 / 6 - square / 120, (safe - np.sin(safe)) / safe**3)
        wu = np.cross(w, u)
        moved = u + b * wu + c * np.cross(w, wu)
        quaternion = q[..., 3:7] / np.linalg.norm(q[..., 3:7], axis=-1, keepdims=True)
        v, s = quaternion[..., :3], quaternion[..., 3:]
        # R u = u + 2 v × (v × u + s u)
        turned = moved + 2 * np.cross(v, np.cross(v, moved) + s * moved)
        out[..., :3] = q[..., :3] + turned
        # the quaternion of the turn: [sin(θ/2)/θ w, cos(θ/2)]
        half = np.where(small, 0.5 - square / 48, np.sin(safe / 2) / safe)
        turn = np.concatenate([half * w, np.cos(angle / 2)], axis=-1)
        x, t = turn[..., :3], turn[..., 3:]
        out[..., 3:6] = s * x + t * v + np.cross(v, x)
        out[..., 6:7] = s * t - np.sum(v * x, axis=-1, keepdims=True)
        out[..., 3:7] /= np.linalg.norm(out[..., 3:7], axis=-1, keepdims=True)
        return out

    def linearize(
        self,
        q: ArrayLike,  # noqa: ARG002
        qd: ArrayLike | None = None,  # noqa: ARG002
        tau: ArrayLike | None = None,  # noqa: ARG002
    ) -> Linearization:
        """Not of a floating base: q is no vector there.

        Raises:
            InputError: always.
        """
        raise wrong(InputError, "linearize", "a floating base", "derivatives, and D solved")

    def set_friction(self, joint: str, *args: Any, **more: Any) -> None:
        """As `InverseDynamics.set_friction`; nothing rubs on the base.

        Raises:
            InputError: as there, and a joint of the base.
        """
        if joint in self.joint_names[:BASE]:
            raise wrong(InputError, "friction: joint", joint, choices(self.joint_names[BASE:]))
        super().set_friction(joint, *args, **more)


def floating(mechanism: Mechanism, order: Sequence[str] | None = None) -> Mechanism:
    """The same robot on six joints that carry its base, the first six of the tree.

    Args:
        order: of the other joints; None: as they are.

    Raises:
        InputError: see `FloatingBase`.
    """
    if mechanism.loops:
        expected = "a mechanism without loops"
        raise wrong(InputError, "floating base", f"loops ({mechanism.name})", expected)
    if not is_floating(mechanism):
        gravity, body = mechanism.gravity, mechanism.base_inertial
        base = mechanism.base
        mechanism = replace(on_six_joints(mechanism), gravity=gravity, base_inertial=Inertial())
        links = tuple(
            replace(link, inertial=body) if link.name == base else link for link in mechanism.links
        )
        mechanism = replace(mechanism, links=links)
    carrier = mechanism.moving[BASE - 1].name
    for link in mechanism.moving[:BASE]:
        rubbing = [name for name, x in link.joint.friction.numbers.items() if not is_zero(x)]
        if rubbing:
            at = f"floating base: friction of {link.joint.name}"
            raise wrong(InputError, at, rubbing[0], "none: a floating base has no friction")
    for link in mechanism.moving[BASE:]:
        if carrier not in mechanism.path(link.name):
            expected = f"every joint that moves on {carrier!r}"
            raise wrong(InputError, "floating base: joint beside it", link.joint.name, expected)
    return mechanism if order is None else _ordered(mechanism, order)


def is_floating(mechanism: Mechanism) -> bool:
    """Are the first joints those of one floating joint?"""
    first = mechanism.moving[:BASE]
    kinds = [("prismatic", axis) for axis in SLIDES] + [("revolute", axis) for axis in TURNS]
    return len(first) == BASE and all(
        link.joint.type == kind
        and link.joint.coupling is None
        and np.array_equal(link.joint.axis, np.eye(3)["xyz".index(axis)])
        and (k == 0 or (link.parent == first[k - 1].name and _is_identity(link.joint.origin)))
        and (k == BASE - 1 or (link.inertial.is_nothing and _is_identity(link.joint.tail)))
        for k, (link, (kind, axis)) in enumerate(zip(first, kinds, strict=True))
    )


def _is_identity(pose: Pose) -> bool:
    return np.array_equal(pose.rotation, np.eye(3)) and not np.any(pose.translation)


def _ordered(mechanism: Mechanism, order: Sequence[str]) -> Mechanism:
    """The same tree, its joints in this order behind the base's."""
    names, wanted = mechanism.joint_names, [*order]
    if sorted(wanted) != sorted(names[BASE:]):
        off = set(map(str, wanted)) ^ set(names[BASE:])
        found = sorted(off)[0] if off else "one twice"
        raise wrong(InputError, "joints", found, f"each of {', '.join(names[BASE:])} once")
    by_joint: Mapping[str, Any] = {link.joint.name: link for link in mechanism.links}
    links: dict[str, Any] = {}
    for name in [*names[:BASE], *wanted, *by_joint]:
        for each in reversed(mechanism.path(by_joint[name].name)[:-1]):
            links.setdefault(each, mechanism.link(each))
    made = replace(mechanism, links=tuple(links.values()))
    for found, expected in zip(made.joint_names[BASE:], wanted, strict=True):
        if found != expected:
            raise wrong(InputError, "joints", expected, f"behind {found!r}, which carries it")
    return made
