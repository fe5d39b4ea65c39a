# SPDX-License-Identifier: Apache-2.0
"""The parameters of kernels as a function of gravity and payloads.

A kernel's parameters p are numbers of the robot's bodies. They depend linearly on gravity and on a
payload's ten moments

    π = [m; m c (3,); I about the link's origin: xx, yy, zz, xy, xz, yz]

For a formulation that uses centres of mass, p has a block [m; c (3,); I about c] for a body; then
the moments of this body depend linearly on π. The coefficients are found by evaluating the
layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..errors import InputError
from ..mechanism import Inertial, Mechanism
from ..mechanism.bodies import body_from, body_numbers, inertia_matrix, point_inertia
from ..mechanism.transform import with_payload
from ..scalar import Array, Floats, Scalar

MOMENTS = 10
ONE = np.eye(MOMENTS)[0]
"""π of a payload of 1 kg at the link's origin"""
TRIAL = np.array([2.137, 0.317, -0.223, 0.109, 0.531, 0.617, 0.719, 0.0137, 0.0211, -0.0307])
"""π, up to a factor, of a payload that changes every parameter that any payload changes: such odd
numbers are no robot's own"""
_ROUNDING = 1e-9
_WHOLE = 2e-15
"""Tolerance for recognising a finite difference as an integer, relative to the parameter"""


@dataclass(frozen=True)
class Load:
    """How the parameters depend on a payload on one link."""

    rows: tuple[tuple[int, tuple[float, ...]], ...]
    """(index in p or in the block's moments, ten coefficients of π)"""
    block: int | None
    """The index of the block whose moments depend linearly on π; None: p itself does"""


@dataclass(frozen=True)
class KernelParameters:
    """One vector of parameters."""

    described: tuple[float, ...]
    """Its values for the described gravity, without payloads"""
    gravity: tuple[tuple[int, tuple[float, ...]], ...]
    """(index, coefficients of gravity's x, y and z) for each entry that depends on gravity"""
    loads: tuple[Load, ...]
    """One for each link that may carry a payload"""

    @classmethod
    def of(
        cls, mechanism: Mechanism, values: Callable[[Mechanism], Floats], links: Iterable[str]
    ) -> KernelParameters:
        """The parameters of a mechanism.

        Args:
            mechanism: the robot.
            values: returns the vector of parameters of any mechanism of the same geometry.
            links: the names of the links that may carry a payload.

        Raises:
            InputError: the parameters do not depend on a payload in one of the two ways above.
        """
        described = values(mechanism)
        weightless = values(replace(mechanism, gravity=np.zeros(3)))
        pulled = [values(replace(mechanism, gravity=axis)) - weightless for axis in np.eye(3)]
        return cls(
            tuple(described.tolist()),
            _rows(np.array(pulled).T, described),
            _loads(mechanism, values, tuple(links), described),
        )

    @property
    def size(self) -> int:
        """The length of the vector."""
        return len(self.described)

    def at(self, gravity: Array, masses: Iterable[Scalar]) -> Array:
        """The vector (size,), of any scalar type.

        Args:
            gravity: (3,), m/s², in the base frame.
            masses: kg, of a body at the origin of each link that may carry a payload; without
                effect where only the moments of a body in p depend linearly on it.
        """
        p = np.array(self.described, dtype=object)
        for i, row in self.gravity:
            p[i] = sum(slope * x for slope, x in zip(row, gravity, strict=True) if slope)
        for load, mass in zip(self.loads, masses, strict=True):
            for i, row in load.rows if load.block is None else ():
                p[i] = p[i] + row[0] * mass if row[0] else p[i]
        return p


def moments(body: Inertial) -> Floats:
    """The moments π (10,) of a body, about the origin of the frame in which its centre of mass is
    given."""
    found = body_numbers(body.mass, body.first_moment, body.inertia_about_origin)
    return np.array(found, dtype=float)


def _body(pi: Floats) -> Inertial:
    """The inverse of `moments`, for a mass other than zero."""
    m, c = float(pi[0]), pi[1:4] / pi[0]
    return Inertial(m, c, inertia_matrix(*pi[4:]) - point_inertia(m, c))


def _loads(
    mechanism: Mechanism,
    values: Callable[[Mechanism], Floats],
    links: Sequence[str],
    described: Floats,
) -> tuple[Load, ...]:
    """How the parameters depend on a payload on each of the links; see `KernelParameters.of`.

    Links whose payloads change different parameters carry theirs at the same time: most of the time
    is that of `values`.

    Args:
        mechanism, values: as there.
        links: the links' names.
        described: the parameters without a payload.
    """

    def loaded(pi: Floats, *links: str) -> Floats:
        return values(
            reduce(lambda robot, link: with_payload(robot, link, _body(pi)), links, mechanism)
        )

    # heavy enough to show whether the parameters are linear in it, however heavy the robot is
    trial = TRIAL * np.sqrt(1 + abs(described).max())
    tried = {link: loaded(trial, link) for link in links}
    changed = {link: p != described for link, p in tried.items()}
    found: dict[str, Load] = {}
    while left := [link for link in links if link not in found]:
        together, taken = [], np.zeros(len(described), dtype=bool)
        for link in left:
            if not (taken & changed[link]).any():
                together.append(link)
                taken |= changed[link]
        many = np.array([loaded(pi, *together) for pi in (ONE, *(ONE + np.eye(MOMENTS)))])
        for link in together:
            own = np.where(changed[link], many, described)
            found[link] = _load(link, described, own[0], own[1:], trial, tried[link])
    return tuple(found[link] for link in links)


def _load(
    link: str, described: Floats, before: Floats, with_one: Floats, trial: Floats, tried: Floats
) -> Load:
    """How the parameters depend on a payload on a link.

    Args:
        link: its name.
        described: (p,) the parameters without a payload.
        before: (p,) with the payload `ONE`.
        with_one: (10, p) with a payload that has 1 more of one of the moments.
        trial: (10,), π of another payload.
        tried: (p,) with this payload.
    """
    columns = (with_one - before).T
    touched = np.flatnonzero(tried != described)
    if _close((described + columns @ trial)[touched], tried[touched]):
        return Load(_rows(columns, before), None)
    block = int(touched[0])
    if touched[-1] >= block + MOMENTS:
        raise InputError(f"{link}: a payload changes more than one body", name="link", value=link)

    def as_moments(p: Floats) -> Floats:
        return moments(body_from(Inertial, p[block : block + MOMENTS]))

    start = as_moments(before)
    columns = np.array([as_moments(each) - start for each in with_one]).T
    if not _close(as_moments(described) + columns @ trial, as_moments(tried)):
        raise InputError(
            f"{link}: the parameters are not linear in a payload's moments", name="link", value=link
        )
    return Load(_rows(columns, start), block)


def _close(found: Floats, expected: Floats) -> bool:
    return bool(
        abs(found - expected).max(initial=0.0) <= _ROUNDING * (1 + abs(expected).max(initial=0.0))
    )


def _rows(columns: Floats, parameters: Floats) -> tuple[tuple[int, tuple[float, ...]], ...]:
    """The rows that are not zero; coefficients that are rounded whole numbers are made exact.

    Args:
        columns: differences of parameters.
        parameters: some of these, one for each row.
    """
    whole = np.round(columns)
    rounding = _WHOLE * (1 + abs(parameters[:, None]))
    neat = np.where(abs(columns - whole) < rounding, whole, columns)
    return tuple((i, tuple(row.tolist())) for i, row in enumerate(neat) if row.any())
