# SPDX-License-Identifier: Apache-2.0
"""The formulations of the inverse dynamics, by name.

A formulation is two functions: `prepare` converts a mechanism to the form that the formulation
needs, and `torques(mechanism, q, qd, qdd)` returns the torques of all tree coordinates, for any
scalar type, without friction and without loops. A new one is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError, choices, wrong
from ..mechanism import Mechanism
from ..mechanism.transform import standard_form
from ..scalar import Array
from . import gibbs_appell, lagrange_euler, murphy, newton_euler


@dataclass(frozen=True)
class Formulation:
    """A formulation by name: its form of a mechanism, and torques (n,) of q, qd, qdd (n,).

    `torques` takes one more, optional argument: see `scalar.Note`.
    """

    name: str
    prepare: Callable[[Mechanism], Mechanism]
    torques: Callable[..., Array]


FORMULATIONS = {
    each.name: each
    for each in (
        Formulation("lagrange_euler", lagrange_euler.prepare, lagrange_euler.torques),
        Formulation("newton_euler", newton_euler.prepare, newton_euler.torques),
        Formulation("gibbs_appell", standard_form, gibbs_appell.torques),
        Formulation("murphy", standard_form, murphy.torques),
    )
}


def formulation(name: str) -> Formulation:
    """The formulation of this name.

    Args:
        name: lagrange_euler, newton_euler, gibbs_appell or murphy.

    Raises:
        InputError: there is none; the message lists the available ones.
    """
    try:
        return FORMULATIONS[name]
    except (KeyError, TypeError):
        raise wrong(InputError, "formulation", name, choices(FORMULATIONS)) from None
