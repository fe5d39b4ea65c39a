# SPDX-License-Identifier: Apache-2.0
"""The position problem of a closed mechanism over floats: forward and inverse kinematics, and
least squares."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ClosureError, ClosureWarning, InputError, callers_level, said_of, wrong
from ...inputs import as_floats
from ...mechanism import Mechanism, Pose
from ...scalar import Floats, shortest_turn
from .corrections import Correction
from .curvature import Curvature
from .home_search import LEFT_OUT_TOLERANCE
from .kinematic_state import KinematicState
from .loop_geometry import LoopGeometry
from .mobility import Mobility, explore
from .near import Near
from .path_following import MAX_STEPS, Indices, MotorPath, PosePath, ReadingsPath, follow

POSE_TOLERANCE = 1e-9
"""Accuracy of the platform's pose in inverse kinematics, rad or fractions of the size"""
ELSEWHERE = 0.5
"""rad, or fractions of the size: home may be this far from `near` without a warning"""


class Closer:
    """Forward and inverse kinematics of a closed mechanism, without state: start is an argument.

    Args:
        geometry: of the mechanism.
        mobility: of this geometry; None: it is determined here.

    Raises:
        DescriptionError, ClosureError: see `mobility.explore`; a description that needs a
            correction is refused.
    """

    def __init__(self, geometry: LoopGeometry, mobility: Mobility | None = None):
        found = mobility or explore(geometry)
        if isinstance(found, Correction):
            raise found.refusal()
        self.geometry, self.mobility = geometry, found
        self.scale, self.size = found.closure.column_scale, found.size
        """(n_r,): 1 for revolute joints, the size for prismatic ones; the size (a typical length),
        m"""
        joints = [geometry.mechanism.joint(name) for name in geometry.names]
        masters = {
            master
            for link in geometry.mechanism.links
            if link.joint.coupling
            for master, _ in link.joint.coupling.ratios
        }
        # a joint geared to others does not wrap: the others would not turn by whole turns
        self.wraps = np.array(
            [j.type == "continuous" and j.name not in masters for j in joints], dtype=bool
        )
        """(n_r,): the joints for which an additional whole turn makes no difference"""
        self.home = self.state(self.mobility.q_home)
        for array in (self.home.q_r, self.home.qd_r):
            array.flags.writeable = False  # home is shared by all callers
        parts = self.mobility.closure.parts
        each = [self.mobility if len(parts) == 1 else self.mobility.of_part(x) for x in parts]
        self._parts = [
            (x, its, Curvature(its.geometry)) for x, its in zip(parts, each, strict=True)
        ]
        """The sets of loops that share no joints, the paths of which are followed separately"""

    def __reduce__(self) -> tuple[Any, ...]:
        # generated code is not pickled but generated again
        return Closer, (self.geometry, self.mobility)

    def state(self, q_r: Floats, qd_r: Floats | None = None) -> KinematicState:
        """A state at q_r (…, n_r), closed or not (see its `residual`).

        Args:
            q_r: (…, n_r) positions of all joints in the order of the geometry's `names`, rad or m.
            qd_r: (…, n_r) their rates, rad/s or m/s; None: at rest.
        """
        return KinematicState(self.mobility, q_r, np.zeros_like(q_r) if qd_r is None else qd_r)

    def forward_kinematics(
        self,
        known: Floats,
        start: Floats,
        most: int = MAX_STEPS,
        unfinished: Callable[[Floats], object] = lambda _: None,
        behind: float = 0.0,
    ) -> Floats:
        """The closed configuration q_r (n_r,) whose first joints are at given positions.

        If more than the actuated joints are known, the others are fitted by least squares. At most
        `most` steps are tried, so the time is bounded. The result is in rad or m, in the order of
        the geometry's `names`.

        Args:
            known: (k,) positions of the first joints of q_r, rad or m.
            start: (n_r,) a configuration nearby, from which the path is followed.
            most: number of steps to try.
            unfinished: called with the q_r that was reached, on the assembly mode of start, if
                there were too few steps for the path of the motors.
            behind: fraction of the whole path that ends at start, for the message.

        Raises:
            ClosureError: the loops can't be closed there on the assembly mode of start, or not
                within that many steps.
        """
        k, a = len(known), self.geometry.actuated
        if k == len(start):
            return np.array(known)
        if k == a:
            return self._followed(known, start, most, unfinished, behind)
        # the motors give the configuration, and the sensors correct it only slightly
        start = self.forward_kinematics(known[:a], start, most, unfinished, behind)
        way, unknown = self.way(start[:k], known), np.arange(k, len(start))
        path = ReadingsPath(self.mobility, start, way, unknown)
        u, reached, _ = follow(path, start[unknown], most)
        if reached < 1.0:
            raise self.geometry.refusal(
                f"closure: the readings are inconsistent at {self.named(known)}: the loops "
                f"remain open by {float(self.state(path.whole(u, reached)).residual):.3g} m at "
                f"{_percent(behind, reached)} of the path from the last state; a sensor may be "
                "wrong",
                known,
                "sensors that agree with the loops",
            )
        return np.concatenate([known, u])

    def _followed(
        self,
        known: Floats,
        start: Floats,
        most: int,
        unfinished: Callable[[Floats], object],
        behind: float,
    ) -> Floats:
        """`forward_kinematics` from the motors alone, one set of loops after the other."""
        way, q_r = self.way(start[: len(known)], known), np.array(start)
        q_r[: len(known)] = known
        failure: ClosureError | None = None
        for part, mobility, curvature in self._parts:
            path = MotorPath(mobility, curvature, start, way, part.passive)
            u, reached, steps_left = follow(path, start[part.passive], most)
            q_r[part.passive] = u
            if reached == 1.0:
                continue
            q_r[part.motors] = path.whole(u, reached)[part.motors]
            why = "the target is out of reach or beyond a singularity"
            if not steps_left:
                why = (
                    "the rest of it needs more steps than one call takes; another call for this "
                    "state continues from there, unless the state is beyond a singularity"
                )
            failure = failure or self.geometry.refusal(
                f"closure: the loops don't close at {self.named(known, part.motors)}: the path "
                f"from the last state ends after {_percent(behind, reached)} of it, at a condition "
                f"number of {np.linalg.cond(path.jacobian(u, reached)):.3g}: {why}",
                known,
                "a configuration in the assembly mode of home",
            )
            if steps_left:
                raise failure
        if failure:
            unfinished(q_r)
            raise failure
        self._check_left_out(q_r)
        return q_r

    def inverse_kinematics(
        self, pose: Pose | ArrayLike, start: KinematicState | None = None
    ) -> KinematicState:
        """All joints from the platform's pose, on the working mode of `start`.

        The path of the pose from `start` is followed in bounded steps.

        Args:
            pose: of the platform link's frame in the base frame, a `Pose` or (4, 4); lengths in m.
            start: a closed state; None: home.

        Raises:
            ClosureError: the platform can't get there from start, or there is no platform.
            InputError: not a pose.
        """
        target = _pose(pose)
        before = self.home if start is None else start
        path = PosePath(self.mobility, before.q_r, target, self.size)
        q_r, reached, _ = follow(path, before.q_r)
        left = path.miss(q_r, 1.0)
        if reached < 1.0 or max(abs(left)) > POSE_TOLERANCE:
            place = ", ".join(f"{value:.6g}" for value in target.translation)
            raise self.geometry.refusal(
                f"platform: pose ({place}) with this orientation is not reachable: the closest "
                f"pose found is {self.size * np.linalg.norm(left[:3]):.3g} m and "
                f"{np.linalg.norm(left[3:]):.3g} rad away",
                target.homogeneous(),
                "a pose that the mechanism reaches in its working mode",
            )
        return self.state(q_r)

    def way(self, start: Floats, known: Floats) -> Floats:
        """The displacement from one position to another, the shorter way for continuous joints.

        Args:
            start: (k,) or (…, k) positions of the first joints of q_r, rad or m.
            known: (…, k) the target.
        """
        way = np.asarray(known - start)
        turns = self.wraps[: known.shape[-1]]
        way[..., turns] = shortest_turn(way[..., turns])
        return way

    def _check_left_out(self, q_r: Floats) -> None:
        """Check that the rows that are redundant at home also hold here."""
        rows = abs(self.mobility.row_scale * self.geometry.residual(q_r))
        if max(rows, default=0.0) > LEFT_OUT_TOLERANCE:
            worst = int(np.argmax(rows))
            raise self.geometry.refusal(
                f"closure: {self.geometry.rows[worst]} is redundant at home, but "
                f"violated by {rows[worst]:.3g} at {self.named(q_r[: self.geometry.actuated])}",
                float(rows[worst]),
                f"at most {LEFT_OUT_TOLERANCE:g}",
                str(self.geometry.rows[worst]),
            )

    def too_far(self, known: Floats) -> ClosureError:
        """The error, to be raised by the caller, for a state that is too far away for one call.

        Args:
            known: (k,) positions of the first joints of q_r, rad or m.
        """
        return self.geometry.refusal(
            f"closure: {self.named(known)} is too far from the last state for one call; pass "
            "intermediate states",
            known,
            "a state nearer to the last",
        )

    def named(self, values: Floats, which: Sequence[int] | Indices | None = None) -> str:
        """`name=value, …` of the first coordinates, for messages.

        Args:
            values: (k,) positions of the first joints of q_r, rad or m.
            which: indices of some of them; None: all.
        """
        indices = range(len(values)) if which is None else which
        return ", ".join(f"{self.geometry.names[i]}={values[i]:.6g}" for i in indices)


def prepared(mechanism: Mechanism) -> tuple[Mechanism, Closer]:
    """The same mechanism with home closed and loose spins locked, and its position closer.

    Raises:
        DescriptionError, ClosureError: see `mobility.explore`.

    Warns:
        ClosureWarning: a rough home was closed by a search, a joint that spins freely was locked,
            more motors than degrees of freedom share the work, or home is far from `near`.
    """
    label = mechanism.label
    mechanism, closer, corrections = corrected(mechanism)
    said = [f"{label}: {correction.message}" for correction in corrections]
    off = Near(closer.geometry, closer.scale, closer.size).miss(closer.mobility.q_home)
    if off > ELSEWHERE:
        said.append(
            f"{mechanism.label}: home is {off:.3g} (rad, or fractions of the robot's size) "
            "away from `near`: is another assembly mode intended? "
            "`robot_dynamics close FILE` lists them"
        )
    for words in said:
        warnings.warn(words, ClosureWarning, stacklevel=callers_level())
    return mechanism, closer


def corrected(mechanism: Mechanism) -> tuple[Mechanism, Closer, list[Correction]]:
    """`prepared` without warnings; the corrections that were made are returned as well.

    Raises:
        DescriptionError: the loops cannot be closed, or cannot move.
    """
    corrections: list[Correction] = []
    while True:
        with said_of(mechanism.label):
            geometry = LoopGeometry.of(mechanism)
            found = explore(geometry)
            if isinstance(found, Mobility):
                return mechanism, Closer(geometry, found), corrections
            if len(corrections) > len(mechanism.joint_names) + 2:
                raise found.refusal()  # it would go on forever
        corrections.append(found)
        # other errors may remain, which the next pass reports
        mechanism = found.applied_to(mechanism)


def _percent(behind: float, reached: float) -> str:
    return f"{min(100 * (behind + (1 - behind) * reached), 99.9):.3g} %"


def _pose(pose: Pose | ArrayLike) -> Pose:
    if isinstance(pose, Pose):
        return pose
    matrix = as_floats("pose", pose)
    if matrix.shape != (4, 4) or not np.all(np.isfinite(matrix)):
        raise wrong(InputError, "pose", matrix.shape, "a finite homogeneous matrix (4, 4)")
    R = matrix[:3, :3]
    if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
        raise wrong(InputError, "pose: rotation", R.tolist(), "a rotation matrix (det = 1)")
    return Pose(R, matrix[:3, 3])
