# SPDX-License-Identifier: Apache-2.0
"""The symbolic pose and Jacobian of a link of an open chain."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..errors import InputError, choices, wrong
from ..formulations import kinematics as equations
from ..mechanism import Mechanism
from ..mechanism.transform import without_bodies
from .derive import PARAMETERS
from .document import Document, Equation, Formula, Section
from .names import Names
from .polynomial_model import PolynomialModel
from .simplify import matrix
from .symbolic_parameters import Parameters, Symbols, Task, plain_names, symbols_of
from .tidy import tidied

PLACE = sympy.symbols("x y z", real=True)
"""The position of the link's origin in the base frame, m, used by `LinkKinematics.inverse`"""


@dataclass(frozen=True, eq=False)
class LinkKinematics:
    """The pose and the Jacobian of a link's frame in the base frame."""

    title: str
    q: Symbols
    pose: sympy.Matrix
    """(4, 4): [n s a d; 0 0 0 1]"""
    jacobian: sympy.Matrix
    """(6, n): [ṗ; ω] = J q̇, for the origin of the link's frame, on base axes"""
    parameters: dict[sympy.Symbol, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> sympy.Matrix:
        """(3, 1): the link's x axis, on base axes."""
        return self.pose[:3, 0]

    @property
    def s(self) -> sympy.Matrix:
        """(3, 1): the link's y axis, on base axes."""
        return self.pose[:3, 1]

    @property
    def a(self) -> sympy.Matrix:
        """(3, 1): the link's z axis, on base axes."""
        return self.pose[:3, 2]

    @property
    def d(self) -> sympy.Matrix:
        """(3, 1): the link's origin in the base frame, m."""
        return self.pose[:3, 3]

    def inverse(self) -> dict[sympy.Symbol, sympy.Expr]:
        """The joint positions that put the link's origin at (x, y, z), m in the base frame, for a
        robot of three prismatic joints.

        Raises:
            InputError: the origin's position is not linear in the joints, or does not determine
                them.
        """
        slope = self.d.jacobian(list(self.q))
        if slope.has(*self.q) or slope.shape != (3, 3) or slope.det() == 0:
            raise InputError(
                f"inverse: the position of {self.title} is not an invertible linear function of "
                f"{', '.join(map(str, self.q))}; expected three prismatic joints",
                name="inverse",
            )
        start = self.d.subs(dict.fromkeys(self.q, 0))
        solution = slope.inv() * (sympy.Matrix(PLACE) - start)
        return dict(zip(self.q, map(sympy.simplify, solution), strict=True))

    def document(self) -> Document:
        """The pose, its columns n, s, a and d, and the Jacobian, as a document."""
        names = Names(self.q, (), self.parameters)
        vectors = [Equation(Formula(x, x), getattr(self, x)) for x in "nsad"]
        sections = [
            Section(
                "Pose",
                Formula("T = [n s a d; 0 0 0 1]", r"T = [n\ s\ a\ d;\ 0\ 0\ 0\ 1]"),
                [Equation(Formula("T", "T"), self.pose), *vectors],
            ),
            Section(
                "Jacobian",
                Formula("[pd; omega] = J qd", r"[\dot{p};\ \omega] = J \dot{q}"),
                [Equation(Formula("J", "J"), self.jacobian)],
            ),
        ]
        return Document(self.title, sections, names, self.parameters, self.notes)

    def _repr_latex_(self) -> str:
        """For Jupyter."""
        names = Names(self.q, (), self.parameters)
        names.short = False
        return f"$$T = {names.latex(self.pose)}$$"


def kinematics(mechanism: Mechanism, link: str, *, parameters: str = "symbols") -> LinkKinematics:
    """The symbolic pose and Jacobian of a link; `InverseDynamics.pose` and `.jacobian` compute them
    numerically.

    Loops are left open: q consists of all joints of the tree.

    Args:
        mechanism: the robot, as from `rd.load`.
        link: the name of the link.
        parameters: "symbols" or "numbers", as in `derive`.

    Raises:
        InputError: an unknown link or kind of parameters.
    """
    if parameters not in PARAMETERS:
        raise wrong(InputError, "parameters", parameters, choices(PARAMETERS))
    mechanism.link(link)
    tidy, notes = tidied(mechanism)
    plain = plain_names(tidy.joint_names)
    q = symbols_of(plain)
    known = Parameters.of(tidy, parameters == "symbols", plain)
    bare = without_bodies(tidy)
    model = PolynomialModel(Task(bare, q, (), (), known, "newton_euler", "none", frozenset()))
    pose = matrix(equations.pose(model.mechanism, link, model.q), model.writer.short)
    jacobian = matrix(equations.jacobian(model.mechanism, link, model.q), model.writer.short)
    used = pose.free_symbols | jacobian.free_symbols
    values = {symbol: value for symbol, value in known.values.items() if symbol in used}
    return LinkKinematics(f"{mechanism.name}: {link}", q, pose, jacobian, values, notes)
