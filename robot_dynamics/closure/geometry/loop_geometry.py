# SPDX-License-Identifier: Apache-2.0
"""The geometry of a mechanism with loops: its closures and its platform, without bodies.

All vectors are in the paper's generalised coordinates q_r = [q_a; q_s; q_p]: actuated, passive and
sensed, passive and not sensed. Those of a free platform are the last ones of q_p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codegen import Function, Kernel
from ...codegen.function import digest
from ...errors import ClosureError, DescriptionError, wrong
from ...formulations.kinematics import poses
from ...mechanism import Attachment, Loop, Mechanism, Pose
from ...mechanism.transform import standard_form, without_bodies
from ...scalar import Array, Floats, array
from .constraints import Constraints, Row
from .free_platform import FreePlatform, HingedPlatform, free_platform
from .tree_motion import FrameMotion, TreeMotion

_POSE = "platform pose"


@dataclass(frozen=True, eq=False)
class LoopGeometry:
    """The geometry of a mechanism with loops, over any scalar. It keeps no state.

    Every method takes q, qd (n_r,) in the order of `names`.
    """

    mechanism: Mechanism
    """The mechanism whose joints are q_r: as described, or with a free platform"""
    names: tuple[str, ...]
    """The order of q_r: actuated, sensed, other passive joints"""
    actuated: int
    """n_a"""
    sensed: int
    """n_s"""
    constraints: Constraints
    pose_constraints: Constraints | None
    """A weld of the platform's frame to the base frame; None if there is no platform"""
    order: tuple[int, ...]
    """q_r[i] is the mechanism's q[order[i]]"""
    described: Mechanism
    """The mechanism of the description"""
    free: FreePlatform | None
    """The free platform, if there is one; its coordinates are then the last of q_r"""
    hinged: HingedPlatform | None
    """The platform's pose in closed form, if readings determine it"""

    @classmethod
    def of(cls, mechanism: Mechanism, free: bool = False) -> LoopGeometry:
        """The geometry of a mechanism.

        Args:
            mechanism: with loops.
            free: let the platform be free and joined to all legs alike (19), instead of carried by
                one of them.

        Raises:
            DescriptionError: a platform that can't move.
        """
        described, apart = mechanism, None
        if free:
            apart = free_platform(mechanism)
            mechanism = apart.mechanism if apart else mechanism
        independent = mechanism.joint_names
        driven = (*mechanism.driving_names, *mechanism.sensed)
        last = apart.coordinates if apart else ()
        others = tuple(name for name in independent if name not in (*driven, *last))
        names = driven + others + last
        order = tuple(independent.index(name) for name in names)

        weld: tuple[Loop, ...] = ()
        if mechanism.platform is not None:
            weld = (
                Loop(_POSE, "fixed", Attachment(mechanism.base), Attachment(mechanism.platform)),
            )
        # the closure does not depend on bodies
        shapes = without_bodies(mechanism)
        bare = standard_form(replace(shapes, rotors=(), loops=mechanism.loops + weld))
        if weld and bare.loops[-1].successor.link == bare.base:
            raise wrong(DescriptionError, "platform", mechanism.platform, "a link that moves")
        S, s = bare.coordinates()
        coordinates = (S[:, list(order)], s)
        axes = apart.axes if apart else None
        closures = Constraints(bare, bare.loops[: len(mechanism.loops)], coordinates, axes)
        target = Constraints(bare, bare.loops[-1:], coordinates) if weld else None
        return cls(
            mechanism,
            names,
            len(mechanism.driving_names),
            len(mechanism.sensed),
            closures,
            target,
            order,
            described,
            apart,
            HingedPlatform.of(closures, apart, others) if apart else None,
        )

    def over(self, mechanism: Mechanism) -> LoopGeometry:
        """The same geometry for the mechanism with other bodies, friction or gravity."""
        apart = free_platform(mechanism) if self.free else None
        tree = apart.mechanism if apart else mechanism
        return replace(self, mechanism=tree, described=mechanism)

    def __reduce__(self) -> tuple[Any, ...]:
        # generated code is not pickled but generated again
        return LoopGeometry.of, (self.described, self.free is not None)

    def refusal(self, text: str, value: Any, expected: str, name: str = "") -> ClosureError:
        """The error for a state of this mechanism, which its message names.

        Args:
            text: the message, starting with the name of what is wrong.
            value: what was found.
            expected: what would have been accepted.
            name: the name of what is wrong; empty: the start of the message.
        """
        label, name = self.described.label, name or text.partition(":")[0]
        value = value.tolist() if isinstance(value, np.ndarray) else value
        message = f"{label}: {text}" if label else text
        return ClosureError(message, name=name, value=value, expected=expected)

    @cached_property
    def back(self) -> NDArray[np.intp]:
        """q[i] of the mechanism is q_r[back[i]]."""
        return np.argsort(self.order)

    @cached_property
    def residual(self) -> Callable[..., Floats]:
        """q_r -> φ (…, m) of all rows, over floats: lengths in m, and cosines."""
        return self.compiled("all_residuals", self.constraints.residual, (len(self.rows),))

    @cached_property
    def jacobian(self) -> Callable[..., Floats]:
        """q_r -> ∂φ/∂q_r (…, m, n_r) of all rows, over floats."""
        shape = len(self.rows), len(self.names)
        return self.compiled("whole_jacobian", self.constraints.jacobian, shape)

    @cached_property
    def directions(self) -> Callable[..., Floats]:
        """q_r -> (…, m, 6), see `Constraints.directions`, over floats."""
        return self.compiled("directions", self.constraints.directions, (len(self.rows), 6))

    @property
    def spread(self) -> Floats:
        """S (n_tree, n_r) in q_tree = S q_r + s."""
        return np.asarray(self.constraints.coordinates[0], dtype=float)

    @property
    def known(self) -> int:
        """n_a + n_s"""
        return self.actuated + self.sensed

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Descriptions of the closure's rows."""
        return self.constraints.rows

    @cached_property
    def content(self) -> str:
        """A hash of everything that determines what functions of this geometry compute."""
        closure, target, free = self.constraints, self.pose_constraints, self.free
        tree = closure.tree
        joints = [(link.name, link.parent, link.joint.geometry) for link in tree.links]
        loops = (closure.loops, target.loops if target else (), closure.coordinates)
        coordinates = (self.names, self.actuated, self.sensed, self.order)
        axes = (closure.axes, free and free.reference)
        return digest((coordinates, tree.base, joints, loops, axes))

    def compiled(
        self,
        name: str,
        function: Callable[..., Array],
        shape: tuple[int, ...],
        content: Any = (),
        rates: bool = False,
    ) -> Callable[..., Floats]:
        """A function of q_r, compiled over floats: (…, n_r) in, (…, *shape) out.

        Args:
            name: of the function, by which its code is cached.
            function: of q_r (n_r,) of any scalar, and of q̇_r if `rates`.
            shape: of its result.
            content: everything other than the geometry that the function depends on.
            rates: whether it takes q̇_r as well.
        """
        names = ("q_r", "qd_r")[: 1 + rates]
        sizes = (len(self.names),) * len(names)
        key = (self.content, content)
        equations = lambda *vectors: np.ravel(function(*vectors[:-1]))  # noqa: E731
        whole = Function(name, names, sizes, shape, 0, equations, key, self.mechanism.name)
        return Kernel(whole, backend="python").call

    def poses(self, q_r: Floats) -> dict[str, Pose]:
        """The poses of all links and of the base, in the base frame, by name."""
        return poses(self.mechanism, q_r[self.back])

    def in_tree(self, function: Callable[..., Array], *vectors: Array) -> Array:
        """The values (n_r,) in the order of q_r, for vectors (n_r,) in this order, of a function
        whose vectors and values are in the order of the mechanism's joints."""
        return array(function(*(array(x)[self.back] for x in vectors)))[list(self.order)]

    def of_platform(self, name: str) -> Callable[..., Floats]:
        """The function `platform_pose`, `J_C` or `J_C_rate`, over floats.

        Raises:
            ClosureError: there is no platform.
        """
        if self.pose_constraints is None:
            raise self.refusal(
                "platform: the description names none; add `platform: <link>`",
                None,
                "a link's name",
            )
        return self._of_platform[name]

    @cached_property
    def _of_platform(self) -> dict[str, Callable[..., Floats]]:
        shape = 6, len(self.names)
        rate = self.constraint_jacobian_rate
        return {
            "platform_pose": self.compiled("platform_pose", self.platform_pose, (4, 4)),
            "J_C": self.compiled("J_C", self.constraint_jacobian, shape),
            "J_C_rate": self.compiled("J_C_rate", rate, shape, rates=True),
        }

    def platform_frame(self, q: Array, qd: Array | None = None) -> FrameMotion:
        """The motion of the platform's frame, with [V; W] = J_C and their rates."""
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
