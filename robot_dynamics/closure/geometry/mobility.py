# SPDX-License-Identifier: Apache-2.0
"""Degrees of freedom, redundant rows, and the validity of `home`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ClosureError, DescriptionError, counted, listed
from ...mechanism import Mechanism
from ...scalar import Array, Floats, Mask
from .constraints import LoopSet, Row
from .corrections import Correction, Spin, advice, loose_motions, loose_spins, spins
from .home_search import LEFT_OUT_TOLERANCE, WELDED, HomeSearch, rank
from .independent_rows import IndependentRows, RowSet
from .linear import chosen_rows, pivots, without_row
from .loop_geometry import LoopGeometry
from .near import Near

HOME_TOLERANCE = 0.05
"""rad, or fractions of the mechanism's size: how far `home` may be from closed. Rounding and rough
values from a drawing are corrected silently; beyond this limit a search closes home, with a
warning"""
NEARLY = 1e-2
"""rad, or fractions of the size: loops that come this close to closing are meant to close there"""
NO_LEVER = 1e-3
"""Levers below this fraction of the longest are not counted in the mechanism's size"""
CANT_MOVE = 1e-6
"""A motor whose component in every free motion is below this can't move"""
BARELY = 0.1
"""Constraints that are weaker than the others by this factor, and weak, are independent only
because lengths and angles were rounded"""
WEAK = 1e-2
"""The same as a fraction of the strongest one"""
NEIGHBOURS = 6
STRAY = 0.02
"""rad, or fractions of the size: distance from home of the configurations at which rows must be
independent, too"""
FAR_STRAY = 0.1
"""rad, or fractions of the size: distance from home of other configurations whose ranks are
compared with home's, as singular values grow slowly beside some singularities"""
FAINT = 5 * STRAY
"""Joints that move less than this fraction of the fastest are not named: motions nearby differ by
about STRAY"""


@dataclass(frozen=True, eq=False)
class Mobility:
    """The degrees of freedom of a closed mechanism at home, and the closure's independent rows.

    The functions `residual`, `jacobian` and `jacobian_rate` are those of `closure` over floats, for
    states (…, n_r).
    """

    closure: IndependentRows
    q_home: Floats
    """(n_r,): home, corrected so that the loops are closed"""
    miss: Floats
    """(m,): the residual at home as given, m and cosines"""
    degrees_of_freedom: int
    left_out: tuple[int, ...]
    """Indices of the redundant rows"""
    row_scale: Floats
    """(m,): scales of all rows, see `IndependentRows`"""

    def __post_init__(self) -> None:
        # generate the functions now, to avoid a delay at the first state
        _ = self.residual, self.jacobian, self.jacobian_rate
        if self.geometry.pose_constraints is not None:
            self.geometry.of_platform("J_C")

    def __reduce__(self) -> tuple[Any, ...]:
        # generated code is not pickled but generated again
        return Mobility, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def geometry(self) -> LoopGeometry:
        """The loops' geometry."""
        return self.closure.geometry

    @property
    def size(self) -> float:
        """The mechanism's characteristic length, m."""
        return size_of(self.geometry.rows, self.row_scale)

    @cached_property
    def residual(self) -> Callable[..., Floats]:
        """q_r -> (…, rank)"""
        return self._compiled("residual")

    @cached_property
    def jacobian(self) -> Callable[..., Floats]:
        """q_r -> (…, rank, n_r)"""
        return self._compiled("jacobian", len(self.q_home))

    @cached_property
    def jacobian_rate(self) -> Callable[..., Floats]:
        """q_r, q̇_r -> (…, rank, n_r)"""
        return self._compiled("jacobian_rate", len(self.q_home), rates=True)

    def rows_at(self, q_r: Floats) -> IndependentRows:
        """The independent rows over floats, with pivots that are chosen at q_r (n_r,)."""
        rows, a = self.closure, self.geometry.actuated
        order = pivots([self.jacobian(q_r)[:, a:] * rows.column_scale[a:]])
        scales = rows.row_scale, rows.column_scale
        return _RowsOverFloats(rows.geometry, rows.kept, *scales, order, self)

    def of_part(self, part: RowSet) -> Mobility:
        """The same for one of the closure's parts alone."""
        whole, geometry = self.closure, self.geometry
        mine = replace(geometry, constraints=geometry.constraints.restricted(part.loops))
        kept = tuple(np.searchsorted(part.loops.rows, np.array(whole.kept)[part.rows]).tolist())
        rows = IndependentRows(mine, kept, whole.row_scale[part.rows], whole.column_scale, ())
        left_out = tuple(i for i in range(len(part.loops.rows)) if i not in kept)
        return Mobility(
            rows,
            self.q_home,
            self.miss[part.loops.rows],
            self.degrees_of_freedom,
            left_out,
            self.row_scale[part.loops.rows],
        )

    def _compiled(self, name: str, *width: int, rates: bool = False) -> Callable[..., Floats]:
        rows = self.closure
        shape, content = (len(rows.kept), *width), (rows.kept, rows.row_scale)
        return self.geometry.compiled(name, getattr(rows, name), shape, content, rates)


@dataclass(frozen=True, eq=False)
class _RowsOverFloats(IndependentRows):
    """Independent rows whose functions have been generated."""

    mobility: Mobility

    def residual(self, q_r: Array) -> Array:
        return self.mobility.residual(q_r)

    def jacobian(self, q_r: Array) -> Array:
        return self.mobility.jacobian(q_r)


def given_home(geometry: LoopGeometry) -> Floats:
    """Home (n_r,) as the description gives it.

    Raises:
        DescriptionError: home does not give all joints.
    """
    home = geometry.mechanism.home
    if missing := [name for name in geometry.names if name not in home]:
        raise DescriptionError(
            f"home: {listed(missing)} missing; give one closed configuration with the position "
            "of every joint, which selects the assembly mode (`robot_dynamics close FILE "
            "--out FILE` finds one and writes it)",
            name="home",
            value=dict(home),
            expected=", ".join(geometry.names),
        )
    return np.array([float(home[name]) for name in geometry.names])


def explore(geometry: LoopGeometry) -> Mobility | Correction:
    """Find the degrees of freedom and the redundant rows, and correct home to close the loops.

    It returns a `Correction` if home is far from closed but a search closes it, if there are loose
    motions that do no work, or if there are redundant motors.

    Raises:
        DescriptionError: home does not give all joints or can't be closed; the actuated joints are
            too few, too many, or don't hold the mechanism.
        ClosureError: home is a singular configuration.
    """
    start = given_home(geometry)
    rows, miss = geometry.rows, geometry.residual(start)

    def searching(where: Floats) -> HomeSearch:
        return HomeSearch(geometry, *_scales(geometry, geometry.jacobian(where)))

    search = searching(start)
    motors, everything = np.arange(len(start)) < geometry.actuated, np.ones(len(start), dtype=bool)
    far = _far(geometry, start, rows, miss, search.whole.error(start))
    if far is not None:
        meant = Near(geometry, search.whole.column_scale, size_of(rows, search.whole.row_scale))
        return _searched(geometry, search, start, motors, far, meant)
    # keep the motors at their home positions; if the loops can't be closed there, move all joints
    home = search.from_near(start, ~motors)
    if home is None:
        home = search.from_near(start, everything)
    if home is None:
        e = search.whole.descend(start, everything, near=True)[1]
        worst = int(np.argmax(abs(e)))
        raise _contradicted(rows[worst], float((e / search.whole.row_scale)[worst]))

    # take the scales at the closed home, so that they do not depend on how home was rounded
    search = searching(home)
    row_scale, column_scale = search.whole.row_scale, search.whole.column_scale
    generator = np.random.default_rng(0)

    def jacobians_within(stray: float) -> list[Floats]:
        strays = [generator.uniform(-stray, stray, len(home)) for _ in range(NEIGHBOURS)]
        beside = [search.from_near(home + column_scale * each, everything) for each in strays]
        return [search.whole.jacobian(q) for q in beside if q is not None]

    # rows that are redundant at all closed configurations around home are left out
    jacobians = [search.whole.jacobian(home), *jacobians_within(STRAY)]
    farther = jacobians_within(FAR_STRAY)
    n, a = len(home), geometry.actuated
    parts = [
        _Ranks.of(geometry, part, [*jacobians, *farther]) for part in geometry.constraints.parts
    ]
    most = sum(part.most for part in parts)
    passive = [J[:, a:] for J in jacobians]
    size = size_of(rows, row_scale)
    _check_movable(geometry, most, jacobians)
    _check_regular(geometry, parts)
    loose: list[Spin] = []
    passive_rank = sum(part.passive[0] for part in parts)
    if passive_rank < n - a:
        alike = [J for J in passive if rank(J) == passive_rank]
        motions = loose_motions(alike, passive_rank)
        harmless, loose = spins(geometry, home, motions, column_scale, size)
        if harmless:
            return loose_spins(geometry, harmless, home)
    if geometry.mechanism.actuated and a > n - most and not loose:
        return _shared(geometry, home, jacobians, column_scale)
    _check_actuation(geometry, n - most, advice(loose, size))
    kept = tuple(sorted(chosen_rows(passive, n - a)))
    left_out = tuple(i for i in range(len(rows)) if i not in kept)
    order = pivots([J[list(kept)] for J in passive])
    closure = IndependentRows(geometry, kept, row_scale[list(kept)], column_scale, order)
    return Mobility(closure, home, miss, n - most, left_out, row_scale)


def _scales(geometry: LoopGeometry, J: Floats) -> tuple[Floats, Floats]:
    """Scales of rows and columns that make lengths relative to the size of the loops in which they
    are, the typical lever arm of the joints in them. Loops that share no joint, such as those of an
    arm and of its gripper, have sizes of their own."""
    closure = geometry.constraints
    turns = np.array([closure.tree.joint(name).turns for name in geometry.names], dtype=bool)
    lengths = np.array([row.is_length for row in closure.rows], dtype=bool)
    size = _lever(J[np.ix_(lengths, turns)], 1.0)
    row_scale, column_scale = np.where(lengths, 1 / size, 1.0), np.where(turns, 1.0, size)
    for part in closure.parts:
        mine, columns = np.zeros_like(lengths), part.columns
        mine[part.rows] = lengths[part.rows]
        size_of_part = _lever(J[np.ix_(mine, columns[turns[columns]])], size)
        row_scale[mine], column_scale[columns[~turns[columns]]] = 1 / size_of_part, size_of_part
    return row_scale, column_scale


def _lever(levers: Floats, otherwise: float) -> float:
    """The typical lever arm, m; `otherwise` if there is none."""
    levers = abs(levers).ravel()
    # without levers that are only rounding errors
    levers = levers[levers > NO_LEVER * max(levers, default=0.0)]
    return float(np.sqrt(np.mean(levers**2))) if len(levers) else otherwise


def size_of(rows: tuple[Row, ...], row_scale: Floats) -> float:
    """The mechanism's size, m: that of its largest loops."""
    lengths = (scale for scale, row in zip(row_scale, rows, strict=True) if row.is_length)
    return max((float(1 / scale) for scale in lengths), default=1.0)


def _far(
    geometry: LoopGeometry, start: Floats, rows: tuple[Row, ...], miss: Floats, error: Floats
) -> DescriptionError | None:
    """The error if home is far from closed; None if it is nearly closed."""
    motion = geometry.constraints.frames(start)
    for loop, (p, s) in zip(geometry.constraints.loops, motion, strict=True):
        relative = p.rotation.T @ s.rotation
        # the cosines of the rows also vanish if the frames are turned by half a turn
        if loop.type in WELDED and np.trace(relative) < 2.0:
            return DescriptionError(
                f"home: loop {loop.name!r}: its two frames are rotated relative to each other by "
                f"{np.degrees(np.arccos(np.clip((np.trace(relative) - 1) / 2, -1, 1))):.3g}°, "
                f"but its joint is {loop.type}",
                name=loop.name,
                value=relative.tolist(),
                expected="equal orientations",
            )
    worst = int(np.argmax(abs(error))) if len(error) else 0
    if not len(error) or abs(error[worst]) <= HOME_TOLERANCE:
        return None
    return DescriptionError(
        f"home: loop {rows[worst].loop!r} does not close: {rows[worst].what} is off by "
        f"{_amount(rows[worst], miss[worst])}",
        name=rows[worst].loop,
        value=float(miss[worst]),
        expected="a configuration in which all loops are closed",
    )


def _searched(
    geometry: LoopGeometry,
    search: HomeSearch,
    start: Floats,
    motors: Mask,
    far: DescriptionError,
    meant: Near,
) -> Correction:
    """The correction that replaces a rough home by the closed one that a search finds from it.

    Raises:
        DescriptionError: the search finds none.
    """
    whom, everything = "", np.ones(len(start), dtype=bool)
    for free in (~motors, everything):
        near = search.from_pose(start, free)
        if near is None and not meant:
            _, row, miss, share = search.stuck(start, everything)
            if LEFT_OUT_TOLERANCE <= share < NEARLY:
                # a closure elsewhere would be another assembly mode
                raise _contradicted(row, miss)
        found = [search.whole.unwound(near, start)] if near is not None else []
        if meant or not found:
            found += search.from_anywhere(start, free)
        if found:
            # sorting is stable: of equally near ones the first is taken
            found.sort(key=lambda q: round(meant.miss(q), 6))
            break
        whom = " (motors too)"
    else:
        raise _open(far, search, start)
    way = abs(found[0] - start) / search.whole.column_scale
    moved = [i for i in np.argsort(-way, kind="stable")[:3] if way[i] > HOME_TOLERANCE]
    moves = ", ".join(
        f"{geometry.names[i]} from {start[i]:.4g} to {found[0][i]:.4g}" for i in moved
    )
    return Correction(
        f"{far}; a search closed it by moving {moves or 'little'}{whom}; write the closed "
        "configuration into the description (`robot_dynamics close` does)",
        home=dict(zip(geometry.names, map(float, found[0]), strict=True)),
    )


def _contradicted(row: Row, miss: float) -> DescriptionError:
    """The error if a row stays open by a little where all others are closed."""
    return DescriptionError(
        f"home: the loops can't be closed near it: {row} is still off by {_amount(row, miss)}: do "
        "redundant constraints contradict each other, as lengths or angles were rounded? Write "
        "them with more digits",
        name="home",
        value=miss,
        expected="a configuration in which all loops are closed",
    )


def _open(far: DescriptionError, search: HomeSearch, start: Floats) -> DescriptionError:
    """The error for loops that can't be closed: which ones, how close they come to closing, and
    whether they have too many conditions."""
    part, row, miss, _ = search.stuck(start, np.ones(len(start), dtype=bool))
    loops = listed(dict.fromkeys(each.loop for each in part.rows), 5)
    joints, m = len(part.columns), len(part.rows)
    by = f"{abs(miss):.3g} m" if row.is_length else f"{abs(miss):.3g} rad"
    remedy = (
        f"they impose {m} constraints on {joints} joints, so the mechanism is probably "
        "over-constrained: is a ball joint written as `revolute` (`joints: {NAME: spherical}`), is "
        "a loop's type too strict, or is a joint missing?"
        if m >= joints
        else "correct home or the frames of these loops"
    )
    return DescriptionError(
        f"{far}; no configuration was found that closes {loops} (smallest error from home: {row} "
        f"off by {by}): {remedy}",
        name=far.name,
        value=far.value,
        expected=far.expected,
    )


def _amount(row: Row, value: float) -> str:
    return f"{value:.4g} m" if row.is_length else f"{value:.4g} (the cosine of a right angle)"


def _shared(
    geometry: LoopGeometry, home: Floats, jacobians: list[Floats], column_scale: Floats
) -> Correction:
    """The correction by which redundant motors share the load.

    Raises:
        DescriptionError: one of the motors can't move.
    """
    most = max(map(rank, jacobians))
    motors, freedom = geometry.names[: geometry.actuated], len(home) - most
    if rounded := _barely_independent(jacobians, len(home) - len(motors)):
        raise DescriptionError(
            f"actuated: {len(motors)} motors for {_degrees(freedom)}, but {rounded}",
            name="actuated",
            value=list(motors),
            expected=f"{len(motors)} degrees of freedom",
        )
    # components of each motor in the mechanism's free motions
    parts = [np.linalg.svd(J)[2][most:].T[: len(motors)] for J in jacobians if rank(J) == most]
    still = np.max([np.max(abs(part), axis=1) for part in parts], axis=0) < CANT_MOVE
    if still.any():
        held = [name for name, no in zip(motors, still, strict=True) if no]
        raise DescriptionError(
            f"home: {listed(held)} cannot move at or near home; choose another position of "
            f"{held[0]} in `home` (three revolute joints that form a ball joint lock it where two "
            "of their axes align), or leave it out of `actuated`",
            name="home",
            value=held,
            expected="a configuration in which every motor can move",
        )
    driving = tuple(motors[i] for i in sorted(chosen_rows(parts, freedom)))
    shares, weights = _counting_alike(geometry.mechanism, motors, column_scale)
    return Correction(
        f"actuated: {len(motors)} motors for {_degrees(freedom)}: {', '.join(driving)} "
        f"{'is' if len(driving) == 1 else 'are'} the independent "
        f"coordinate{'s' * (len(driving) != 1)}; the torques of {', '.join(motors)} are the "
        f"weighted least-norm distribution (weights: {weights})",
        home=dict(zip(geometry.names, map(float, home), strict=True)),
        driving=driving,
        shares=shares,
    )


def _counting_alike(
    mechanism: Mechanism, motors: tuple[str, ...], column_scale: Floats
) -> tuple[dict[str, float], str]:
    """(the motors' efforts of equal weight, a description of the weights)."""
    found = [mechanism.joint(name).limits for name in motors]
    efforts = [0.0 if each is None or each.effort is None else each.effort for each in found]
    if all(0 < effort < np.inf for effort in efforts):
        return dict(zip(motors, efforts, strict=True)), "the motors' effort limits"
    # a force is weighted by its moment about a lever of the mechanism's size
    levers = {name: float(scale) for name, scale in zip(motors, column_scale, strict=False)}
    shares = {name: 1 / lever for name, lever in levers.items()}
    sliding = [f"{levers[name]:.3g}" for name in motors if not mechanism.joint(name).turns]
    mixed = 0 < len(sliding) < len(motors)
    units = f"; 1 N counts as {' or '.join(dict.fromkeys(sliding))} N·m" if mixed else ""
    return shares, f"equal, as not every motor has an effort limit{units}"


def _check_actuation(geometry: LoopGeometry, freedom: int, loose: str) -> None:
    """Check that there are as many motors as degrees of freedom, and that they hold the
    mechanism."""
    motors = geometry.names[: geometry.actuated]
    # the message about a rod already names the joint to lock
    locks = "`locked: {" in loose
    if loose and len(motors) >= freedom:
        # `freedom` counts the loose motions; without them, motors in excess share the torque
        raise DescriptionError(
            f"actuated: with {', '.join(motors)} held, {loose}"
            + ("" if locks else "; choose other joints"),
            name="actuated",
            value=list(motors),
            expected="motors that hold the mechanism",
        )
    if len(motors) == freedom:
        return
    hold = "" if locks else ", or hold joints with `locked: {NAME: position}`"
    state, remedy = (
        (
            "under-actuated",
            f"{freedom - len(motors)} more" + hold,
        )
        if len(motors) < freedom
        else ("over-actuated", f"{len(motors) - freedom} fewer")
    )
    all_count = " (no `actuated` is given: every joint that is not `sensed` counts)"
    said = "" if geometry.mechanism.actuated else all_count
    raise DescriptionError(
        f"actuated: {state}: {counted(len(motors), 'motor')}{said} for "
        f"{_degrees(freedom)}: {', '.join(motors)}; name {remedy}"
        + (f": with these held, {loose}" if loose else ""),
        name="actuated",
        value=list(motors),
        expected=counted(freedom, "joint"),
    )


def _check_movable(geometry: LoopGeometry, constraints: int, jacobians: list[Floats]) -> None:
    """Check that the loops leave some motion, given the number of independent constraints."""
    n = len(geometry.names)
    if constraints < n:
        return
    remedy = (
        _barely_independent(jacobians, n - max(geometry.actuated, 1))
        or "lock fewer joints, or leave out a loop"
    )
    raise DescriptionError(
        f"loops: nothing can move: they impose "
        f"{counted(constraints, 'independent constraint')} on {listed(geometry.names)}; {remedy}",
        name="loops",
        value=list(geometry.names),
        expected="at least one degree of freedom",
    )


def _barely_independent(jacobians: list[Floats], needed: int) -> str:
    """What to do if only rounding makes more than `needed` constraints independent, as the others
    are much weaker; empty: they are not."""
    if not needed:
        return ""
    values = np.max([np.linalg.svd(J, compute_uv=False) for J in jacobians], axis=0)
    strongest, weakest, other = values[[0, needed - 1, needed]]
    if not other < min(BARELY * weakest, WEAK * strongest):
        return ""
    return (
        f"only {needed} constraints are clearly independent, the others by "
        f"{100 * other / strongest:.2g} %: were lengths or angles rounded? Write them with more "
        "digits"
    )


def _degrees(freedom: int) -> str:
    return f"{counted(freedom, 'degree')} of freedom"


@dataclass(frozen=True, eq=False)
class _Ranks:
    """The ranks of one set of loops at home, the first configuration, and at others around it."""

    part: LoopSet
    names: list[str]
    """Of its passive joints"""
    jacobians: list[Floats]
    """(m, n) of its rows and joints, scaled, at each configuration"""
    known: int
    """The number of its actuated joints, the first columns"""
    whole: list[int]
    """The ranks of these"""
    passive: list[int]
    """The ranks of the columns of its passive joints"""

    @classmethod
    def of(cls, geometry: LoopGeometry, part: LoopSet, jacobians: list[Floats]) -> _Ranks:
        a, columns = geometry.actuated, part.columns
        names = [geometry.names[j] for j in columns if j >= a]
        mine = [J[np.ix_(part.rows, columns)] for J in jacobians]
        known = len(columns) - len(names)
        passive = [rank(J[:, known:]) for J in mine]
        return cls(part, names, mine, known, [rank(J) for J in mine], passive)

    @property
    def most(self) -> int:
        """The number of independent constraints."""
        return max(self.whole)

    @property
    def lacking(self) -> int:
        """The number of passive motions that are undetermined at home, but determined nearby."""
        return max(self.passive) - self.passive[0]

    def undetermined(self) -> list[str]:
        """The passive joints that move in these motions."""
        if not self.lacking:
            return []
        here, beside = (
            loose_motions([self.jacobians[k][:, self.known :]], self.passive[k])[0]
            for k in (0, self.passive.index(max(self.passive)))
        )
        most = np.abs(here - beside @ (beside.T @ here)).max(axis=1)
        return [name for name, x in zip(self.names, most, strict=True) if x > FAINT * most.max()]

    def redundant_at_home(self) -> list[int]:
        """The rows that are redundant at home, but not nearby."""
        if self.whole[0] == self.most:
            return []
        beside = self.jacobians[self.whole.index(self.most)].copy()
        # rows that are independent at home are also independent nearby
        for i in sorted(chosen_rows(self.jacobians[:1], self.whole[0])):
            without_row(beside, i)
        chosen = sorted(chosen_rows([beside], self.most - self.whole[0]))
        return [int(self.part.rows[i]) for i in chosen]


def _check_regular(geometry: LoopGeometry, parts: list[_Ranks]) -> None:
    """Raise a ClosureError if home is singular, that is, if a motion is free there but not
    nearby."""
    if all(not part.lacking and part.whole[0] == part.most for part in parts):
        return
    here = [i for part in parts for i in part.redundant_at_home()]
    said = f"; {listed(geometry.rows[i] for i in here)} redundant there, but not nearby"
    free = max(sum(part.lacking for part in parts), 1)
    moving = [name for part in parts for name in part.undetermined()]
    of = f" of {listed(moving)}" if moving else ""
    raise ClosureError(
        f"home is singular: {counted(free, 'passive motion')}{of} "
        f"{'are' if free != 1 else 'is'} undetermined there but determined "
        f"nearby{said if here else ''}; choose another home",
        name="home",
        value=sum(part.passive[0] for part in parts),
        expected=f"a passive Jacobian of rank {len(geometry.names) - geometry.actuated}",
    )
