# SPDX-License-Identifier: Apache-2.0
"""The paper's two subsystems, legs and platform, joined by internal forces, over any scalar.

All vectors are in the paper's generalised coordinates q_r = [q_a; q_s; q_p]: actuated, passive
and sensed, passive and not sensed. The legs are the cut-open tree without the platform's body.

    D_r q̈_r + C_r q̇_r + G_r = τ_r + J_Cᵀ f_c        legs
    D_x a + C_x v + G_x      = -f_c + Q_x             platform (f_c acts on the legs)
    v = J_C q̇_r,  a = J_C q̈_r + J̇_C q̇_r

Eliminating f_c adds the platform's terms to those of the legs:

    τ_r = D' q̈_r + C' q̇_r + G' - J_Cᵀ Q_x
    D' = D_r + J_Cᵀ D_x J_C,  C' = C_r + J_Cᵀ (D_x J̇_C + C_x J_C),  G' = G_r + J_Cᵀ G_x
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...formulations.equations import TERMS, Equations
from ...formulations.layout import shaped
from ...formulations.terms import motion_of, move
from ...mechanism import Inertial, Mechanism
from ...mechanism.base_parameters import Moments
from ...scalar import Array, Scalar, array, zeros
from ..geometry.loop_geometry import LoopGeometry
from ..geometry.tree_motion import FrameMotion
from . import platform


@dataclass(frozen=True, eq=False)
class Subsystems:
    """A mechanism with loops, split into legs and platform, without state or caches.

    Every method takes q, qd, qdd (n_r,) of any scalar, in the order of `geometry.names`. The
    equations are in the module's docstring.
    """

    geometry: LoopGeometry
    gravity_vector: Array
    """(3,), m/s², in the base frame"""
    legs: Equations
    body: Inertial | Moments
    """The platform's body, in its own link's frame; empty if there is no platform"""

    @classmethod
    def of(
        cls,
        geometry: LoopGeometry | Mechanism,
        formulation: str = "newton_euler",
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: Scalar = 0.0,
        regroup: bool = True,
    ) -> Subsystems:
        """Check the options, and separate the platform from the tree.

        Args:
            geometry: of a mechanism with loops; for a mechanism, its geometry as described.
            formulation, rotors, terms, friction_smoothing: as in `InverseDynamics`; the
                formulation is applied to the legs.
            regroup: convert bodies and frames to the form that is fastest to compute with.

        Raises:
            InputError: an unknown formulation, rotor model or term.
            DescriptionError: a platform that can't move.
        """
        if isinstance(geometry, Mechanism):
            geometry = LoopGeometry.of(geometry)
        body, tree = platform.platform_body(geometry.mechanism)
        legs = Equations.of(tree, formulation, rotors, terms, friction_smoothing)
        return cls(geometry, geometry.described.gravity, shaped(legs) if regroup else legs, body)

    # --- forces on q_r ---------------------------------------------------------------------

    def rigid(self, q: Array, qd: Array, qdd: Array) -> Array:
        """D' q̈_r + C' q̇_r (n_r,), without gravity and friction; with rotors if they are a
        term."""
        return self._of_links(q, qd, qdd) + self.geometry.in_tree(self.legs.of_rotors, q, qd, qdd)

    def _of_links(self, q: Array, qd: Array, qdd: Array) -> Array:
        """`rigid` without the rotors that are modelled separately (see `Equations`)."""
        tau = self.geometry.in_tree(self.legs.of_links, q, qd, qdd)
        if self.geometry.pose_constraints is None:
            return tau
        frame = self.geometry.platform_frame(q, qd)
        wrench = self._platform_motion(frame, qd, qdd)
        # J_Cᵀ (D_x a + C_x v)
        total: Array = tau + frame.V.T @ wrench[:3] + frame.W.T @ wrench[3:]
        return total

    def gravity(self, q: Array) -> Array:
        """G' (n_r,)."""
        tau = self.geometry.in_tree(self.legs.gravity, q)
        if self.geometry.pose_constraints is None:
            return tau
        frame = self.geometry.platform_frame(q)
        wrench = platform.gravity_wrench(self.body, frame.rotation, self.gravity_vector)
        total: Array = tau + frame.V.T @ wrench[:3] + frame.W.T @ wrench[3:]
        return total

    def friction(self, q: Array, qd: Array, qdd: Array | None = None) -> Array:
        """The friction (n_r,) of all joints, passive ones included; as `Equations.friction`."""
        return self.geometry.in_tree(self.legs.friction, q, qd, *(() if qdd is None else (qdd,)))

    def smoothed(self, rate: Scalar) -> Subsystems:
        """As `Equations.smoothed`."""
        return replace(self, legs=self.legs.smoothed(rate))

    @property
    def developed(self) -> Subsystems:
        """As `Equations.developed`."""
        return replace(self, legs=self.legs.developed)

    def torques(self, q: Array, qd: Array, qdd: Array, qdd_free: Array) -> Array:
        """τ_r (n_r,) of the chosen terms, for q̈_r = qdd + qdd_free.

        qdd_free = Ṫ q̇_a is the joints' acceleration at q̈_a = 0. Like q̇_r, it belongs to the
        Coriolis terms.
        """
        terms = self.legs.terms
        # the rotors' motion is a single term
        total = array(qdd) + array(qdd_free)
        tau = self.geometry.in_tree(self.legs.of_rotors, q, qd, total)
        if move("links", terms):
            tau = tau + self._of_links(q, *self._moving(qd, qdd, qdd_free))
        if "gravity" in terms:
            tau = tau + self.gravity(q)
        if "friction" in terms:
            tau = tau + self.friction(q, qd, total)
        return tau

    def platform_wrench(self, q: Array, qd: Array, qdd: Array, qdd_free: Array) -> Array:
        """D_x a + C_x v + G_x (6,) of the chosen terms; arguments as in `torques`.

        It is the wrench that the legs and the surroundings exert on the platform: -f_c + Q_x. The
        mechanism must have a platform.
        """
        terms, wrench = self.legs.terms, zeros(6)
        qd, qdd = self._moving(qd, qdd, qdd_free)
        frame = self.geometry.platform_frame(q, qd)
        if move("links", terms):
            wrench = self._platform_motion(frame, qd, qdd)
        if "gravity" in terms:
            wrench = wrench + platform.gravity_wrench(
                self.body, frame.rotation, self.gravity_vector
            )
        return wrench

    def _moving(self, qd: Array, qdd: Array, qdd_free: Array) -> tuple[Array, Array]:
        """(q̇_r, q̈_r) as the chosen terms of the links use them."""
        qd, driven = motion_of("links", self.legs.terms, qd, qdd)
        free, _ = motion_of("links", self.legs.terms, qdd_free, qdd)
        return qd, array(driven) + array(free)

    def _platform_motion(self, frame: FrameMotion, qd: Array, qdd: Array) -> Array:
        """D_x a + C_x v (6,)"""
        # a = J_C q̈_r + J̇_C q̇_r
        linear = frame.V @ array(qdd) + frame.V_rate @ array(qd)
        angular = frame.W @ array(qdd) + frame.W_rate @ array(qd)
        return platform.motion_wrench(
            self.body, frame.rotation, frame.omega, array([*linear, *angular])
        )
