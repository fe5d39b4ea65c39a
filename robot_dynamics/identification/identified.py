# SPDX-License-Identifier: Apache-2.0
"""The common part of all identification results, and when the description is kept instead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import InverseDynamics
from ..errors import RecordingError
from ..mechanism import Mechanism
from .band import Band
from .contacts import Contact
from .doubts import Doubt
from .fit import Fitted
from .quality import AT_TIMES, LITTLE
from .recording import Floats
from .samples import Choice, Samples
from .torque_errors import Errors

NONSENSE = 0.99
"""Fraction of the torque; a model with larger relative errors at every joint is useless"""
WORSE = 1.02
"""Ratio of the fit's error to the description's, as means over the joints, beyond which the fit is
not used"""

Kept = Literal["nothing", "bodies", "everything"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Samples for plots."""

    source: str
    seen: bool
    """Whether they were used for the fit"""
    samples: Samples


@dataclass(frozen=True, eq=False, kw_only=True)
class Identified(ABC):
    """The result of an identification."""

    fit: Fitted
    """The solution of the least-squares problem, with its covariance"""
    mechanism: Mechanism
    """The identified robot; joints that were not recorded are locked"""
    described: Mechanism
    """The described robot, with the same joints locked"""
    errors: Errors
    """Errors on held-out motion, by joint; for a robot with loops by motor"""
    fitted: Errors
    """Errors on the motion used for the fit"""
    cutoffs: dict[str, float | None]
    """By recording, the low-pass filter's cut-off in Hz; None: not filtered"""
    choices: dict[str, Choice]
    """By recording, how the cut-off was chosen, unless it was given; its errors are in the order of
    the result's `joints`"""
    locked: dict[str, float]
    """Joints that were not recorded, and the positions at which they are locked (rad or m)"""
    notes: tuple[str, ...]
    """Problems found in the recordings, and how they were handled"""
    warnings: tuple[str, ...]
    """What the data do not determine or what looks wrong, and what to do about it"""
    source: str | None
    """The description's file or text; None if a mechanism was given"""
    band: Band
    """The prediction band of measured torques about the model's"""
    traces: tuple[Trace, ...]
    """Parts of the recordings, for the report"""
    contacts: tuple[Contact, ...] = ()
    """Stretches in which external forces acted on the robot"""
    kept: Kept = "nothing"
    """What is kept as described because the description predicts held-out motion better"""
    doubts: tuple[Doubt, ...] = ()
    """Joints whose efforts look like torques times a factor. Efforts that are certainly wrong are
    not fitted, and all errors of such a joint are computed with the factor applied"""

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints' names, in the order of states and of all results by joint; of a robot with
        loops the motors."""
        return self.fit.unknowns.joints

    @property
    @abstractmethod
    def described_parameters(self) -> dict[str, float]:
        """The described values of the parameters by name; 0 for friction, and for rotors of robots
        with loops, that are not described."""

    def _by_name(self, x: Floats) -> dict[str, float]:
        """Parameters x (p,) of the fit by name, with the described values from which some of them
        are deviations added."""
        values = x + self.fit.columns.T @ self.fit.unknowns.offsets
        return dict(zip(self.fit.names, values.tolist(), strict=True))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of `parameters`, which are also the order of `covariance`."""
        return self.fit.names

    @property
    def parameters(self) -> dict[str, float]:
        """The identified parameters by name, SI units; the described ones if everything is kept."""
        return self.described_parameters if self.kept == "everything" else self._by_name(self.fit.x)

    @property
    def covariance(self) -> Floats:
        """(p, p), in the order of `parameters`: from the data and the description together."""
        return self.fit.covariance

    @property
    def duration(self) -> float:
        """s of motion used for the fit"""
        return self.fitted.duration

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """Predict the torques that would be measured, unfiltered: (torque, deviation), N·m or N.

        In motion like the recorded one, 95 % of the measured torques lie within two deviations. The
        deviation combines the parameters' uncertainty in these states with the residuals on
        held-out motion. It is NaN for a joint whose efforts were not fitted, and both are NaN in
        states in which loops cannot be closed.

        Args:
            q: (n,) or (k, n) positions, rad or m, in the order of the result's `joints`.
            qd: rates, rad/s or m/s, likewise.
            qdd: accelerations, rad/s² or m/s², likewise.

        Raises:
            InputError: another shape, or a number that is not finite.
            ClosureError: loops cannot be closed in a single state (n,).
        """
        torque = np.asarray(self._model(q, qd, qdd))
        states = (np.broadcast_to(np.asarray(x, dtype=float), torque.shape) for x in (q, qd, qdd))
        deviation = self.band.deviation(*map(np.atleast_2d, states)).reshape(torque.shape)
        return torque, np.where(np.isnan(torque), np.nan, deviation)

    @cached_property
    def _model(self) -> InverseDynamics:
        return InverseDynamics(self.mechanism, batches=True)


def loses(errors: Errors) -> bool:
    """Whether the fit predicts held-out motion worse than the description does, by more than
    `WORSE`."""
    if not errors.telling.any():
        return False
    after, before = errors.means
    return after > WORSE * before


def stays(kept: Kept, errors: Errors, left_out: Sequence[Doubt] = ()) -> Iterator[str]:
    """The warning that something is kept as described, if it is.

    Args:
        kept: what is kept.
        errors: of the fit, on held-out motion.
        left_out: the efforts that were left out of the fit.
    """
    if kept == "nothing":
        return
    after, before = errors.means
    what = "its bodies are kept" if kept == "bodies" else "it is kept unchanged"
    then = (
        "scale the excluded efforts and identify again"
        if any(each.factor != 1 for each in left_out)
        else "record longer and more varied motion"
    )
    yield (
        f"on held-out motion the original description predicts better (error {100 * before:.1f} % "
        f"against {100 * after:.1f} %, mean over {errors.of_which}): {what}; {then}"
    )


def refuse_nonsense(
    errors: Errors, causes: Sequence[str] = (), fitted: Errors | None = None
) -> None:
    """Check that the model explains at least one joint's torque.

    Args:
        errors: the errors on held-out motion.
        causes: possible reasons (positions, filters), the likeliest first, which is reported.
        fitted: the errors on the motion used for the fit; None: unknown.

    Raises:
        RecordingError: the model explains no joint's torque.
    """
    known = errors.relative[np.isfinite(errors.relative)]
    if len(known) and known.min() > NONSENSE:
        if causes:
            raise RecordingError(causes[0], name="recording")
        seen = errors.relative if fitted is None else fitted.relative
        least = seen[np.isfinite(seen)].min(initial=np.inf)
        if least < min(LITTLE, AT_TIMES * known.min()):
            raise RecordingError(
                "the efforts of the held-out motion do not match the model that was fitted to the "
                f"rest: it leaves {100 * known.min():.0f} % of them unexplained, but only "
                f"{100 * least:.2g} % in the motion that was fitted: was the robot touched or "
                "loaded in the held-out motion, or are its efforts of another sign or unit there? "
                "Otherwise, record longer and more varied motion, or give other recordings for "
                "validation (--validate)",
                name="recording",
            )
        raise RecordingError(
            "the efforts do not match this robot's torques at any joint (the best model leaves "
            f"{100 * known.min():.0f} % of them unexplained): check that the recording belongs to "
            "this description, that the joint names match (--rename), the efforts' unit and sign "
            "(--effort-scale), and that nothing touched the robot",
            name="recording",
        )
