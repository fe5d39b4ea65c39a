# SPDX-License-Identifier: Apache-2.0
"""The interface that `InverseDynamics` uses for open and closed chains alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ClosedChain, ConstraintForces
from ..codegen.kernel import batch_shape
from ..errors import InputError, wrong
from ..formulations.form import STANDING, Form
from ..formulations.options import Options
from ..inputs import as_floats
from ..mechanism import Mechanism
from ..scalar import Floats
from .base_motion import BaseMotion, MovingBase, Placed
from .companion import Companion
from .motors import MotorSide, MotorTorques
from .regressor import RegressorKernel


class Chain(ABC):
    """A robot with its present gravity, friction and payloads.

    States are (…, k), torques (…, n_m). The functions are those of `InverseDynamics`, which
    documents their arguments and errors.

    Everything but the torques is built on first use and reused after a change of the robot,
    without compiling if possible.
    """

    form: ClassVar[Form] = STANDING
    closed: ClosedChain | None
    """Positions, Jacobians and state of a robot with loops; None without loops"""
    mechanism: Mechanism
    joint_names: tuple[str, ...]
    """(k,)"""
    actuated_names: tuple[str, ...]
    """(n_m,)"""
    torques: Callable[..., Floats]
    """(q, qd, qdd) -> tau, with the least possible overhead"""
    lock: AbstractContextManager[object]
    """To be held during successive calls to a chain that is changed in place"""

    def __init__(self, mechanism: Mechanism, options: Options):
        self.mechanism, self.options = mechanism, options
        self._regressor: Companion[Chain, RegressorKernel] = Companion(
            lambda robot: RegressorKernel(robot.tree, robot.mechanism, options, self.form),
            lambda kernel, robot: kernel.over(robot.tree),
        )
        self._moving: Companion[Chain, MovingBase] = Companion(
            lambda robot: MovingBase(robot.tree, robot.mechanism, options),
            lambda moving, robot: moving.over(robot.tree, robot.mechanism),
        )
        self._motors: Companion[Chain, MotorSide] = Companion(
            lambda robot: MotorSide(robot.mechanism, options, self.form),
            lambda side, robot: side.over(robot.mechanism),
        )

    @property
    def _moved(self) -> MovingBase:
        """The torques with a prescribed motion of the base."""
        return self._moving.of(self)

    def _bind(self, before: Chain, mechanism: Mechanism) -> None:
        """Take over what `before` has built, with the gravity, friction and bodies of another
        mechanism."""
        self.mechanism = mechanism
        self._regressor, self._moving = before._regressor.after(), before._moving.after()
        self._motors = before._motors.after()

    # --- functions that open and closed chains implement differently --------------------------

    @property
    @abstractmethod
    def tree(self) -> Mechanism:
        """The tree whose joints determine the complete state of the robot."""

    @property
    @abstractmethod
    def home(self) -> Floats:
        """q (k,) at home, rad or m."""

    @property
    @abstractmethod
    def backend(self) -> str:
        """The backend of the torques, and the reason if it is not the first choice."""

    @abstractmethod
    def over(self, mechanism: Mechanism) -> Chain:
        """The same robot with other gravity, friction and bodies; a chain that is changed in place
        returns itself."""

    @abstractmethod
    def copy(self) -> Chain:
        """A copy without shared mutable state."""

    @abstractmethod
    def at(self, q: ArrayLike, regular: bool = False) -> Placed:
        """The robot at q (…, k).

        Args:
            q: (…, k) positions, rad or m.
            regular: whether to refuse a state too near a singularity, as for forces.
        """

    @abstractmethod
    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Placed]:
        """(the torques, the robot at this position)"""

    @abstractmethod
    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n_m, k)"""

    @abstractmethod
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n_m, k)"""

    @abstractmethod
    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n_m)"""

    @abstractmethod
    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """q̈ (…, k)"""

    @abstractmethod
    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n_m, k)"""

    @abstractmethod
    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """Y (…, n_m, p)"""

    @abstractmethod
    def constraint_forces(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, Floats]
    ) -> ConstraintForces:
        """The constraint forces of the loops."""

    @abstractmethod
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """½ q̇ᵀ D q̇ (…,), J"""

    @abstractmethod
    def potential_energy(self, q: ArrayLike) -> Floats:
        """-Σ m g·p (…,), J"""

    @abstractmethod
    def pose(self, q: ArrayLike, link: str) -> Floats:
        """(…, 4, 4)"""

    @abstractmethod
    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        """(…, 6, k)"""

    # --- functions that follow from these ------------------------------------------------------

    def tree_state(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """(q, q̇, q̈) (…, n) of the mechanism's joints."""
        names, k = ("q", "qd", "qdd"), len(self.joint_names)
        given = [as_floats(name, x) for name, x in zip(names, (q, qd, qdd), strict=True)]
        batch = batch_shape(names, (k, k, k), given)
        # copies, which share no memory with the arguments
        q, qd, qdd = (np.broadcast_to(x, (*batch, k)).copy() for x in given)
        with self.lock:
            return self.at(q, regular=True).state(qd, qdd, self.mechanism.joint_names)

    def under_wrenches(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, Floats]
    ) -> Floats:
        """The torques with external wrenches, tau = … - Σ Jᵀ w."""
        with self.lock:
            tau, at = self.solved(q, qd, qdd)
            for link, wrench in wrenches.items():
                tau = tau - at.wrench_torques(link, wrench)
            return tau

    def wrench_torques(self, q: ArrayLike, wrenches: Mapping[str, Floats], axes: str) -> Floats:
        """Σ Jᵀ w (…, n_m); the axes are `base`, or `link` for those of each wrench's own link."""
        with self.lock:
            at = self.at(q, regular=True)
            tau = np.zeros((*at.q.shape[:-1], len(self.actuated_names)))
            for link, wrench in wrenches.items():
                if axes == "link":
                    R = at.pose(link)[..., :3, :3]
                    both = np.stack([wrench[..., :3], wrench[..., 3:]], axis=-1)
                    wrench = np.concatenate(np.moveaxis(R @ both, -1, 0), axis=-1)
                tau = tau + at.wrench_torques(link, wrench)
            return tau

    def on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """The torques on a moving base."""
        with self.lock:
            moving = self._moved
            tau = moving.torques(self.at(q, regular=True), qd, qdd, motion)
            return tau + self.torques(q, qd, qdd) if moving.adds else tau

    def gravity_on_moving_base(self, q: ArrayLike, motion: BaseMotion) -> Floats:
        """g (…, n_m) on a tilted base"""
        with self.lock:
            return self._moved.gravity(self.at(q, regular=True), motion)

    def derivatives_on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion
    ) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n, n) on a moving base."""
        self._refuse_loops("derivatives")
        moving = self._moved
        found = moving.derivatives(q, qd, qdd, motion)
        return found + self.derivatives(q, qd, qdd) if moving.adds else found

    def regressor_on_moving_base(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion, names: Sequence[str]
    ) -> Floats:
        """Y (…, n, p) on a moving base; names (p,)."""
        self._refuse_loops("regressor")
        moving = self._moved
        known, Y = moving.regressor(q, qd, qdd, motion)
        if not moving.adds:
            return np.ascontiguousarray(Y[..., [known.index(name) for name in names]])
        standing = self.regressor(q, qd, qdd)
        batch = np.broadcast_shapes(Y.shape[:-1], standing.shape[:-1])
        total: Floats = np.broadcast_to(standing, (*batch, len(names))).copy()
        shared = [k for k, name in enumerate(names) if name in known]
        total[..., shared] += Y[..., [known.index(names[k]) for k in shared]]
        return total

    def _refuse_loops(self, what: str) -> None:
        if self.closed is not None:
            raise wrong(InputError, f"{what}: base_motion", "loops", "a robot without loops")

    def motor_torques(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion | None
    ) -> MotorTorques:
        """(drive, gear) (…, m) on a fixed or a moving base."""
        with self.lock:
            if motion is not None:
                moving = self._moved
                at = self.at(q, regular=True)
                found = moving.motor_torques(at, qd, qdd, motion, self.actuated_names)
                if not moving.adds:
                    return found
                standing = self.motor_torques(q, qd, qdd, None)
                return MotorTorques(standing.drive + found.drive, standing.gear + found.gear)
            tau, at = self.solved(q, qd, qdd)
            names, side = self.mechanism.joint_names, self._motors.of(self)
            actuated = [names.index(name) for name in self.actuated_names]
            state = at.state(qd, qdd, names)
            return side.torques(actuated, tau, *state, self.mechanism.gravity)
