# SPDX-License-Identifier: Apache-2.0
"""Legged robots, and arms on mobile bases: the whole robot, with a base that moves freely.

    tau (6 + n) = D(q) a + C(q, v) v + g(q) + friction(q, v) - Σ Jᵀ w

The first six are the external wrench that the base needs; it is zero if all contact wrenches are
given. `formulations.floating` has the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..chains.chain import Chain
from ..chains.open_chain import OpenChain
from ..errors import InputError, choices, wrong
from ..formulations.floating import adjoint
from ..formulations.form import FLOATING
from ..inputs import vectors
from ..mechanism import Mechanism
from ..mechanism.six_joints import BASE, TURNED, floating
from ..scalar import Floats
from . import checked
from .inverse_dynamics import InverseDynamics
from .linearization import Linearization

SMALL_ANGLE = 1e-4
"""rad; for smaller angles the coefficients of `integrate` come from series, exact to rounding"""


class FloatingBase(InverseDynamics):
    """tau = D(q) a + C(q, v) v + g(q) + friction(v) of a robot with a floating base.

    q is (…, 7 + n): position (m) and quaternion x, y, z, w of the base in the world, then the
    joints. v is (…, 6 + n): the base's linear (m/s) and angular velocity (rad/s) on its own axes,
    then the joints' rates; a (…, 6 + n) is its component-wise derivative. tau is (…, 6 + n): force
    (N) and moment (N·m) on the base's axes, about its origin, then the joints' torques. This is
    Pinocchio's free flyer; no orientation is singular. Quaternions are normalised; a zero one
    gives nan. The world frame is that of the base at q = [0, 0, 0, 0, 0, 0, 1, …].

    A call `dynamics(q, v, a, wrenches=…, out=…)` returns tau, as `InverseDynamics.__call__` does,
    and refuses `base_motion`, as q, v and a include it. Everything else is as in `InverseDynamics`:
    batches, payloads, wrenches (on the world's axes here, as are poses and Jacobians), and the
    meaning of each function. `derivatives` express a change of position as a twist on the base's
    axes: ∂tau/∂q is (…, 6 + n, 6 + n). D and C multiply a and v.

    Args:
        mechanism: the robot, as from `rd.load`. If a floating joint carries the robot, its link is
            the base; otherwise the base link is, with its inertia if the description has one.
        joints: the order of the joints in q, v and tau, parents first (Pinocchio's
            is `model.names[2:]`); None: that of the description.
        formulation, options: as in `InverseDynamics`: rotors, terms, friction_smoothing, backend,
            threads.

    Attributes:
        joint_names: the order of v, a and tau: x, y, z, rx, ry, rz of the base, then the joints.

    Raises:
        InputError: as `InverseDynamics`; loops; other joint names, or an order with a joint
            before its parent; friction of the base; moving links that the base does not carry.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        *,
        joints: Sequence[str] | None = None,
        **options: Any,
    ):
        super().__init__(floating(checked.robot(mechanism), joints), formulation, **options)

    def _chain_of(self, mechanism: Mechanism) -> Chain:
        return OpenChain(mechanism, self._options, FLOATING)

    @property
    def neutral(self) -> Floats:
        """q (7 + n,) with the base at the world's origin and all joints at zero."""
        q = np.zeros(len(self.joint_names) + 1)
        q[BASE] = 1.0
        return q

    @property
    def home(self) -> Floats:
        """q (7 + n,) at the description's home; 0 where it gives none."""
        q, places = self.neutral, super().home
        # the floating joint moves along x, y, z, then turns about z, y, x
        for k in TURNED:
            q = self.integrate(q, places[k] * np.eye(len(places))[k])
        q[BASE + 1 :] = places[BASE:]
        return q

    def integrate(self, q: ArrayLike, step: ArrayLike) -> Floats:
        """The position after a step at a constant twist on the base's axes: exp on SE(3).

        Args:
            q: (…, 7 + n) position.
            step: (…, 6 + n), v·dt: m and rad on the base's axes, then the joints' steps.

        Returns:
            (…, 7 + n), with a quaternion of length 1.

        Raises:
            InputError: a wrong shape.
        """
        n = len(self.joint_names)
        q, step = vectors("q", q, n + 1), vectors("step", step, n)
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
        # the quaternion of the rotation: [sin(θ/2)/θ w, cos(θ/2)]
        half = np.where(small, 0.5 - square / 48, np.sin(safe / 2) / safe)
        turn = np.concatenate([half * w, np.cos(angle / 2)], axis=-1)
        x, t = turn[..., :3], turn[..., 3:]
        out[..., 3:6] = s * x + t * v + np.cross(v, x)
        out[..., 6:7] = s * t - np.sum(v * x, axis=-1, keepdims=True)
        out[..., 3:7] /= np.linalg.norm(out[..., 3:7], axis=-1, keepdims=True)
        return out

    def linearize(
        self, q: ArrayLike, qd: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> Linearization:
        """The linearised dynamics δẋ = A δx + B δu with x = [δq; v], u = tau; δq is a twist on the
        base's axes and the joints' change.

        As `InverseDynamics.linearize`, except that the rotation of the base's axes also rotates δq:
        with ad_v of the base's twist the first rows are δq̇ = δv - ad_v δq.

        Args:
            q: (…, 7 + n) position.
            qd: v (…, 6 + n); None: at rest.
            tau: (…, 6 + n); None: the base's wrench and the torques at which a = 0.

        Raises:
            InputError: a wrong shape.
        """
        found = super().linearize(q, qd, tau)
        for state in np.ndindex(found.qd.shape[:-1]):
            found.A[state][:BASE, :BASE] = -adjoint(found.qd[state])
        return found

    def set_friction(self, joint: str, *args: Any, **more: Any) -> None:
        """Replace the friction law of a joint or rotor; the base has no friction.

        Args:
            joint: name of any joint that is not one of the base's, or of a rotor.
            args, more: viscous, coulomb and so on, as in `InverseDynamics.set_friction`.

        Raises:
            InputError: as there, or a joint of the base.
        """
        if joint in self.joint_names[:BASE]:
            raise wrong(InputError, "friction: joint", joint, choices(self.joint_names[BASE:]))
        super().set_friction(joint, *args, **more)
