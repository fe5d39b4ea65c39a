"""The position problem of a closed mechanism over floats: forward, inverse, least squares."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ClosureError, InputError, wrong
from ...mechanism import Pose
from ...scalar import Floats
from .functions import fast
from .kinematic_state import ClosureFunctions, KinematicState
from .loop_geometry import LoopGeometry
from .mobility import LEFT_OUT_TOLERANCE, explore
from .position import follow, rotation_vector, turned

POSE_TOLERANCE = 1e-9
"""How exactly the inverse problem puts the platform, in shares of the mechanism's size or rad"""


class ClosureSolver:
    """Positions of a closed mechanism. It keeps no state: where to start is an argument.

    Raises:
        DescriptionError, ClosureError: see `mobility.explore`.
    """

    def __init__(self, geometry: LoopGeometry):
        self.geometry = geometry
        closure, n = geometry.constraints, len(geometry.names)
        m = len(closure.rows)
        self._residual = fast(closure.residual, [n], (m,))
        self.mobility = explore(geometry, self._residual, fast(closure.jacobian, [n], (m, n)))
        kept = list(self.mobility.kept)
        self._row_scale = self.mobility.row_scale
        weights = self._row_scale[kept, None]
        self._kept = kept
        self.scale = self.mobility.column_scale
        r = len(kept)
        platform = geometry.pose_constraints is not None
        self.functions = ClosureFunctions(
            actuated=geometry.actuated,
            known=geometry.actuated + geometry.sensed,
            jacobian=fast(lambda q: weights * closure.jacobian(q)[kept], [n], (r, n)),
            jacobian_rate=fast(
                lambda q, qd: weights * closure.jacobian_rate(q, qd)[kept], [n, n], (r, n)
            ),
            J_C=fast(geometry.constraint_jacobian, [n], (6, n)) if platform else None,
            J_C_rate=fast(geometry.constraint_jacobian_rate, [n, n], (6, n)) if platform else None,
            platform_pose=fast(geometry.platform_pose, [n], (4, 4)) if platform else None,
            column_scale=self.scale,
        )
        joints = [geometry.mechanism.joint(name) for name in geometry.names]
        followed = {
            master
            for link in geometry.mechanism.links
            if link.joint.coupling
            for master, _ in link.joint.coupling.ratios
        }
        # a whole turn more is the same place, unless something is geared to the joint
        self._wraps = np.array(
            [j.type == "continuous" and j.name not in followed for j in joints], dtype=bool
        )
        self.home = self.state(self.mobility.home)

    def state(self, q_r: Floats, qd_r: Floats | None = None) -> KinematicState:
        """A state at q_r (…, n_r), whether closed or not: its residual says."""
        rows = abs(self._residual(q_r))
        residual = np.max(rows, axis=-1, initial=0.0)
        qd_r = np.zeros_like(q_r) if qd_r is None else qd_r
        return KinematicState(self.functions, q_r, qd_r, residual)

    def forward(self, known: Floats, start: Floats) -> Floats:
        """q_r (n_r,) whose first joints are `known` (k,), from a configuration near by on.

        With more than the actuated joints known the others are fitted by least squares.

        Raises:
            ClosureError: the loops can't be closed there on the assembly mode of start.
        """
        k = len(known)
        origin, scale = start[:k], self.scale[k:]
        way = known - origin
        turns = self._wraps[:k]
        way[turns] = (way[turns] + np.pi) % (2 * np.pi) - np.pi
        if k == len(start):
            return known.copy()
        square = k == self.functions.actuated

        def increment(u: Floats, share: float) -> Floats | None:
            q_r = np.concatenate([origin + share * way, u])
            A = self.functions.jacobian(q_r)[:, k:] * scale
            error = (self._row_scale * self._residual(q_r))[self._kept]
            try:
                return -(_solution(A, error) if square else _least(A, error))
            except np.linalg.LinAlgError:
                return None

        u, reached = follow(increment, start[k:], scale)
        if reached < 1.0:
            stuck = self.state(np.concatenate([origin + reached * way, u]))
            if not square:
                raise ClosureError(
                    f"closure: the joints don't fit together at {self._named(known)}: the loops "
                    f"miss by {float(stuck.residual):.3g} m at {100 * reached:.3g} % of the way "
                    "from the last configuration; a sensor may be wrong",
                    name="closure",
                    value=known.tolist(),
                    expected="sensors that agree with the loops",
                )
            raise ClosureError(
                f"closure: the loops don't close at {self._named(known)}: "
                f"{100 * reached:.3g} % of the way from the last closed configuration can be "
                f"gone, to a condition number of {float(stuck.condition):.3g}; it is out of reach "
                "or beyond a singularity",
                name="closure",
                value=known.tolist(),
                expected="a configuration on the assembly mode of home",
            )
        q_r = np.concatenate([known, u])
        if square:
            self._check_left_out(q_r)
        return q_r

    def inverse(
        self, pose: Pose | ArrayLike, start: KinematicState | None = None
    ) -> KinematicState:
        """All joints from the platform's pose, on the working mode of start (home if None).

        Args:
            pose: of the platform link's frame in the base frame, a `Pose` or (4, 4).

        Raises:
            ClosureError: the platform can't get there from start, or there is no platform.
            InputError: not a pose.
        """
        target = _pose(pose)
        before = self.home if start is None else start
        from_pose = before.platform_pose
        R_0, p_0 = from_pose[:3, :3], from_pose[:3, 3]
        turn, way = rotation_vector(target.rotation @ R_0.T), target.translation - p_0
        functions = self.functions
        assert functions.platform_pose is not None
        assert functions.J_C is not None
        pose_of, jacobian_of = functions.platform_pose, functions.J_C
        size = self._size
        weights = np.array([1 / size] * 3 + [1.0] * 3)

        def miss(q_r: Floats, share: float) -> Floats:
            now = pose_of(q_r)
            turned_off = rotation_vector(now[:3, :3] @ (turned(share * turn) @ R_0).T)
            return weights * np.array([*(now[:3, 3] - p_0 - share * way), *turned_off])

        def increment(q_r: Floats, share: float) -> Floats | None:
            closure = (self._row_scale * self._residual(q_r))[self._kept]
            error = np.concatenate([closure, miss(q_r, share)])
            J = np.vstack([functions.jacobian(q_r), weights[:, None] * jacobian_of(q_r)])
            try:
                return -_least(J * self.scale, error)
            except np.linalg.LinAlgError:
                return None

        q_r, reached = follow(increment, before.q_r, self.scale)
        left = miss(q_r, 1.0)
        if reached < 1.0 or max(abs(left)) > POSE_TOLERANCE:
            raise ClosureError(
                f"platform: it can't be put at ({_numbers(target.translation)}) with that "
                f"orientation: it stays {size * np.linalg.norm(left[:3]):.3g} m and "
                f"{np.linalg.norm(left[3:]):.3g} rad away",
                name="platform",
                value=target.homogeneous().tolist(),
                expected="a pose that the mechanism reaches on its working mode",
            )
        return self.state(q_r)

    @property
    def _size(self) -> float:
        """The mechanism's, m: what lengths are measured by."""
        rows = zip(self._row_scale, self.geometry.constraints.rows, strict=True)
        return next((float(1 / scale) for scale, row in rows if row.is_length), 1.0)

    def _check_left_out(self, q_r: Floats) -> None:
        """The rows that were redundant at home have to be so here."""
        rows = abs(self._row_scale * self._residual(q_r))
        if max(rows, default=0.0) > LEFT_OUT_TOLERANCE:
            worst = int(np.argmax(rows))
            raise ClosureError(
                f"closure: {self.geometry.constraints.rows[worst]} is redundant at home, but "
                f"violated by {rows[worst]:.3g} at {self._named(q_r[: self.functions.actuated])}",
                name=str(self.geometry.constraints.rows[worst]),
                value=float(rows[worst]),
                expected=f"at most {LEFT_OUT_TOLERANCE:g}",
            )

    def _named(self, values: Floats) -> str:
        return ", ".join(
            f"{name}={value:.6g}" for name, value in zip(self.geometry.names, values, strict=False)
        )


def _solution(A: Floats, b: Floats) -> Floats:
    return np.asarray(np.linalg.solve(A, b), dtype=float)


def _least(A: Floats, b: Floats) -> Floats:
    """x with the least |A x - b|."""
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=float)


def _pose(pose: Pose | ArrayLike) -> Pose:
    if isinstance(pose, Pose):
        return pose
    matrix = np.asarray(pose, dtype=float)
    if matrix.shape != (4, 4) or not np.all(np.isfinite(matrix)):
        raise wrong(InputError, "pose", matrix.shape, "a finite homogeneous matrix (4, 4)")
    R = matrix[:3, :3]
    if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
        raise wrong(InputError, "pose: rotation", R.tolist(), "a rotation matrix (det = 1)")
    return Pose(R, matrix[:3, 3])


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
