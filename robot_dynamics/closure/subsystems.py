"""Legs and platform as the paper's two subsystems, joined by internal forces, over any scalar.

Everything is in the paper's generalised coordinates q_r = [q_a; q_s; q_p]: actuated, passive
and sensed, passive and not sensed. The legs are the cut-open tree without the platform's body.

    D_r q̈_r + C_r q̇_r + G_r = τ_r + J_Cᵀ f_c        legs
    D_x a + C_x v + G_x      = -f_c + Q_x             platform (f_c acts on the legs)
    v = J_C q̇_r,  a = J_C q̈_r + J̇_C q̇_r

Eliminating f_c, the platform's terms add:

    τ_r = D' q̈_r + C' q̇_r + G' - J_Cᵀ Q_x
    D' = D_r + J_Cᵀ D_x J_C,  C' = C_r + J_Cᵀ (D_x J̇_C + C_x J_C),  G' = G_r + J_Cᵀ G_x
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..errors import DescriptionError, wrong
from ..formulations.equations import TERMS, Equations
from ..formulations.layout import LINEAR
from ..mechanism import Attachment, Inertial, Loop, Mechanism, Pose
from ..mechanism.base_parameters import Moments, compact
from ..mechanism.transform import standard_form
from ..scalar import Array, Scalar, array, zeros
from . import platform
from .constraints import Constraints
from .kinematics import FrameMotion, TreeMotion

_POSE = "platform pose"


@dataclass(frozen=True, eq=False)
class Subsystems:
    """A mechanism with loops, taken apart. No state, no caches; see the module for the equations.

    Every method takes q, qd, qdd (n_r,) in the order of `names`, of any scalar.
    """

    mechanism: Mechanism
    names: tuple[str, ...]
    """The order of q_r: actuated, sensed, other passive joints"""
    actuated: int
    sensed: int
    legs: Equations
    body: Inertial | Moments
    """The platform's, in its own link's frame; nothing where there is no platform"""
    constraints: Constraints
    pose_constraints: Constraints | None
    """The platform's frame welded to a target in the base frame; None without platform"""
    order: tuple[int, ...]
    """q_r[i] is the mechanism's q[order[i]]"""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: Scalar = 0.0,
    ) -> Subsystems:
        """Check the choices, cut the platform off the tree.

        Raises:
            InputError: an unknown formulation, rotor model or term.
            DescriptionError: a platform that can't move.
        """
        body, tree = platform.platform_body(mechanism)
        legs = Equations.of(tree, formulation, rotors, terms, friction_smoothing)
        if legs.method.name in LINEAR:
            legs = replace(legs, mechanism=compact(legs.mechanism))
        independent = mechanism.joint_names
        driven = (*mechanism.actuated_names, *mechanism.sensed)
        names = driven + tuple(name for name in independent if name not in driven)
        order = tuple(independent.index(name) for name in names)

        weld: tuple[Loop, ...] = ()
        if mechanism.platform is not None:
            weld = (
                Loop(_POSE, "fixed", Attachment(mechanism.base), Attachment(mechanism.platform)),
            )
        # bodies play no part in the closure
        shapes = tuple(replace(link, inertial=Inertial()) for link in mechanism.links)
        bare = standard_form(
            replace(mechanism, links=shapes, rotors=(), armatures=(), loops=mechanism.loops + weld)
        )
        if weld and bare.loops[-1].successor.link == bare.base:
            raise wrong(DescriptionError, "platform", mechanism.platform, "a link that moves")
        S, s = bare.coordinates()
        coordinates = (S[:, list(order)], s)
        closures = Constraints(bare, bare.loops[: len(mechanism.loops)], coordinates)
        target = Constraints(bare, bare.loops[-1:], coordinates) if weld else None
        return cls(
            mechanism,
            names,
            len(mechanism.actuated_names),
            len(mechanism.sensed),
            legs,
            body,
            closures,
            target,
            order,
        )

    # --- the platform's motion -------------------------------------------------------------

    def platform_frame(self, q: Array, qd: Array | None = None) -> FrameMotion:
        """Where the platform is, with [V; W] = J_C and the rates of both."""
        assert self.pose_constraints is not None
        target = self.pose_constraints
        motion = TreeMotion(target.tree, target.coordinates, q, qd)
        return motion.frame(target.loops[0].successor)

    def platform_pose(self, q: Array) -> Array:
        """(4, 4): the platform link's frame in the base frame."""
        frame = self.platform_frame(q)
        return Pose(frame.rotation, frame.point).homogeneous()

    def constraint_jacobian(self, q: Array) -> Array:
        """J_C (6, n_r): v = [ṗ; ω] = J_C q̇_r (equation 7)."""
        frame = self.platform_frame(q)
        return np.vstack([frame.V, frame.W])

    def constraint_jacobian_rate(self, q: Array, qd: Array) -> Array:
        """J̇_C (6, n_r)."""
        frame = self.platform_frame(q, qd)
        return np.vstack([frame.V_rate, frame.W_rate])

    # --- forces on q_r ---------------------------------------------------------------------

    def rigid(self, q: Array, qd: Array, qdd: Array) -> Array:
        """D' q̈_r + C' q̇_r (n_r,): no gravity, no friction."""
        legs = replace(self.legs, terms=frozenset({"inertia", "coriolis"}))
        tau = self._legs(legs.torques, q, qd, qdd)
        if self.pose_constraints is None:
            return tau
        frame = self.platform_frame(q, qd)
        # a = J_C q̈_r + J̇_C q̇_r
        linear = frame.V @ array(qdd) + frame.V_rate @ array(qd)
        angular = frame.W @ array(qdd) + frame.W_rate @ array(qd)
        wrench = platform.motion_wrench(
            self.body, frame.rotation, frame.omega, array([*linear, *angular])
        )
        # J_Cᵀ (D_x a + C_x v)
        return tau + frame.V.T @ wrench[:3] + frame.W.T @ wrench[3:]

    def gravity(self, q: Array) -> Array:
        """G' (n_r,)."""
        tau = self._legs(self.legs.gravity, q)
        if self.pose_constraints is None:
            return tau
        frame = self.platform_frame(q)
        wrench = platform.gravity_wrench(self.body, frame.rotation, self.mechanism.gravity)
        return tau + frame.V.T @ wrench[:3] + frame.W.T @ wrench[3:]

    def friction(self, qd: Array) -> Array:
        """Friction of all joints, the passive ones too (n_r,)."""
        return self._legs(self.legs.friction, qd)

    def torques(self, q: Array, qd: Array, qdd: Array, qdd_free: Array) -> Array:
        """τ_r (n_r,) of the chosen terms, for q̈_r = qdd + qdd_free.

        qdd_free is what the joints accelerate by at q̈_a = 0, Ṫ q̇_a: it belongs to the Coriolis
        terms, as q̇_r does.
        """
        terms = self.legs.terms
        tau = zeros(len(self.names))
        moving = "coriolis" in terms
        acceleration = array(qdd) if "inertia" in terms else zeros(len(qdd))
        if moving:
            acceleration = acceleration + array(qdd_free)
        if moving or "inertia" in terms:
            tau = tau + self.rigid(q, qd if moving else zeros(len(qd)), acceleration)
        if "gravity" in terms:
            tau = tau + self.gravity(q)
        if "friction" in terms:
            tau = tau + self.friction(qd)
        return tau

    def _legs(self, function, *vectors: Array) -> Array:  # type: ignore[no-untyped-def]
        """A function of the tree in the mechanism's order, in the order of q_r."""
        n = len(self.order)
        back = [self.order.index(j) for j in range(n)]
        return array(function(*(array(x)[back] for x in vectors)))[list(self.order)]
