# SPDX-License-Identifier: Apache-2.0
"""Measures how well the motion excites the parameters, and warns where a result is doubtful."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import listed
from ..mechanism import Mechanism
from .bodies import UNITS, numbers
from .fit import Fit
from .normal_equations import Rows, Sums
from .recording import Floats
from .samples import Samples
from .torque_errors import Errors, over
from .unknowns import Unknowns

STATES = 400
"""Number of random states that represent all motion of which the robot is capable"""
RANK = 1e-9
"""Fraction of the largest eigenvalue; combinations of parameters with smaller ones are not
identifiable by any motion"""
ENOUGH = 0.75
"""Fraction of the identifiable combinations that the motion should determine"""
TURNS = 4 * np.pi
"""rad: positions of a joint without limits that span more are suspect if the torques are not
explained"""
MISSED = 0.1
"""Relative torque error beyond which they are not explained"""
FAR_OFF = 5.0
"""Ratio of the identified bodies' torques to the described ones', or its inverse, beyond which the
efforts' unit is doubted"""
WEIGHTLESS = 1 / 3
"""Ratio of the identified bodies' gravity torques to the described ones', relative to the same
ratio of their Coriolis torques, below which the efforts seem to leave gravity out. Inertia torques
are not compared, as rotors contribute to them, too"""
HARDLY = 0.05
"""rad or m: the range of positions below which a joint hardly moves"""
LITTLE = 0.5
"""Fraction of the torque; a model with a larger error explains little"""
AT_TIMES = 1 / 3
"""Ratio of the usual error, from the median, to the RMS error, below which the latter is that of a
small part of the time. It is 1 for normal errors, and 0.65 for Student's with three degrees of
freedom. Likewise of the error on fitted to that on held-out motion, below which the fit knows too
little motion"""


@dataclass(frozen=True)
class Excitation:
    """How well the motion excites the robot's parameters."""

    identifiable: int
    """Number of identifiable combinations of parameters"""
    determined: float
    """Number of these that the motion determines; the others are given by the description"""
    condition: float
    """Condition number of the regressor, with the parameters in units of their prior standard
    deviations"""


def excitation(fit: Fit) -> Excitation:
    """How well the fit's motion excites the parameters.

    The parameters are in units of the description's own uncertainty, so the result does not depend
    on physical units.
    """
    scale = _units(fit)
    seen = scale.T @ fit.information @ scale
    possible = _possible(fit)
    possible = scale.T @ possible @ scale
    values, vectors = np.linalg.eigh(possible)
    basis = vectors[:, values > RANK * values[-1]]
    information = np.linalg.eigvalsh(basis.T @ seen @ basis)
    information = np.maximum(information, 0.0)
    weakest = information[0] if len(information) else 0.0
    condition = float(np.sqrt(information[-1] / weakest)) if weakest > 0 else float("inf")
    return Excitation(basis.shape[1], float((information / (information + 1.0)).sum()), condition)


def _units(fit: Fit) -> Floats:
    """(p, p): the prior's standard deviations of x. Friction and rotors, which have no informative
    prior, are scaled by their contribution to the torques."""
    p, block = len(fit.x), 10 * len(fit.prior.bodies)
    out = np.zeros((p, p))
    for i, P in enumerate(fit.prior.bodies):
        rows, L = slice(10 * i, 10 * i + 10), np.linalg.cholesky(P)
        # d(L (1 + E) Lᵀ, L Lᵀ) = ½ |E|² + O(E³)
        out[rows, rows] = np.transpose([numbers(L @ E @ L.T) for E in UNITS])
    diagonal = np.diag(fit.information)[block:]
    level = np.diag(out[:block, :block].T @ fit.information[:block, :block] @ out[:block, :block])
    k = np.arange(block, p)
    typical = np.sqrt(max(float(level.max(initial=0.0)), 1e-300))
    out[k, k] = typical / np.sqrt(np.maximum(diagonal, 1e-300))
    out[k, k] = np.where(diagonal > 0, out[k, k], 0.0)
    return out


def _possible(fit: Fit) -> Floats:
    """(p, p): the information that motion through random states would provide."""
    unknowns = fit.unknowns
    q, qd, qdd = _states(fit)
    rows = Rows(unknowns, Samples.without_efforts(q, qd, qdd))
    sums = Sums(unknowns)
    sigma = np.where(np.isfinite(fit.sigma), fit.sigma, np.inf)
    sums.add(rows, np.ones(q.shape) / sigma**2)
    gram, _ = sums.together()
    E = fit.columns
    information: Floats = E.T @ gram @ E
    return information


def _states(fit: Fit) -> Floats:
    """(3, STATES, n): random q, qd and qdd."""
    n = len(fit.unknowns.joints)
    states: Floats = np.random.default_rng(0).uniform(-3, 3, (3, STATES, n))
    return states


def driving(fit: Fit) -> Iterator[str]:
    """One warning for each joint whose identified friction drives it."""
    for joint in fit.unknowns.joints:
        law, values = fit.drives[joint].law, fit.drive(joint)
        if law.fault(values[: len(law.names)]) is not None:
            numbers = ", ".join(
                f"{name} {value:.3g}" for name, value in zip(law.names, values, strict=False)
            )
            why, check = (
                "its efforts have the wrong sign relative to its motion",
                "the signs of its efforts (--effort-scale) and positions",
            )
            if joint in falling(fit):
                why, check = (
                    "its efforts contain a component that decreases with velocity, so they are "
                    "not its torque, but perhaps a controller's output",
                    "what the efforts are",
                )
            yield (
                f"{joint}: the fitted friction accelerates the joint ({numbers}): {why}, and any "
                f"dissipative friction at least doubles the error. Check {check}; a file with such "
                "friction reproduces the recording, but is refused when loaded"
            )


def falling(fit: Fit) -> set[str]:
    """The joints whose fitted Coulomb friction brakes them while viscous friction drives them: with
    the opposite sign, Coulomb friction would drive them instead."""
    laws = {
        joint: dict(zip(fit.drives[joint].law.names, fit.drive(joint), strict=False))
        for joint in fit.unknowns.joints
    }
    return {
        joint
        for joint, law in laws.items()
        if law.get("viscous", 0.0) < 0 < law.get("coulomb", 0.0)
    }


def far_off(mechanism: Mechanism, lowest: Floats, highest: Floats) -> Iterator[str]:
    """A line for each joint whose positions exceed its limits by more than its whole range.

    Args:
        mechanism: the robot as described.
        lowest: (n,) the smallest positions, rad or m.
        highest: (n,) the largest positions.
    """
    for name, low, high in zip(mechanism.joint_names, lowest, highest, strict=True):
        joint = mechanism.joint(name)
        lower, upper = joint.ends.lower, joint.ends.upper
        if lower is None or upper is None or not upper > lower:
            continue
        way = upper - lower
        if low < lower - way or high > upper + way:
            unit = "rad" if joint.turns else "m"
            yield (
                f"{name}: its positions go from {low:.3g} to {high:.3g}, but its limits are "
                f"{lower:.3g} and {upper:.3g} {unit}: are the positions in {unit}, and do they "
                "belong to this joint?"
            )


def many_turns(
    mechanism: Mechanism, lowest: Floats, highest: Floats, missed: Floats
) -> Iterator[str]:
    """A line for each joint without limits whose positions span more than `TURNS`, if the torques
    are not explained; a wheel's positions may span that much.

    Args:
        mechanism: the robot as described.
        lowest: (n,) the smallest positions, rad or m.
        highest: (n,) the largest positions.
        missed: (n,) the relative torque errors of the model.
    """
    for name, low, high, error in zip(mechanism.joint_names, lowest, highest, missed, strict=True):
        joint = mechanism.joint(name)
        if (
            error > MISSED
            and joint.turns
            and None in (joint.ends.lower, joint.ends.upper)
            and high - low > TURNS
        ):
            yield (
                f"{name}: torques are not explained, and its positions go from {low:.3g} to "
                f"{high:.3g}, over {(high - low) / (2 * np.pi):.2g} turns: are they in degrees? "
                "(expected: rad)"
            )


def missing_between(
    mechanism: Mechanism, recorded: Collection[str], locked: Mapping[str, float]
) -> Iterator[str]:
    """A line if joints that were not recorded carry recorded ones: if they moved, the efforts of
    other joints look wrong.

    Args:
        mechanism: the robot as described.
        recorded: the joints' names.
        locked: by joint, rad or m, where those that were not recorded are assumed to be.
    """
    paths = [mechanism.path(each.name) for each in mechanism.links if each.joint.name in recorded]
    carrying = {mechanism.link(name).joint.name for path in paths for name in path[:-1]}
    held = [f"{name} at {value:g}" for name, value in locked.items() if name in carrying]
    if held:
        one = len(held) == 1
        yield (
            f"{listed(held)}: not recorded, but {'it carries' if one else 'they carry'} recorded "
            f"joints: if {'it' if one else 'one of them'} moved, or was somewhere else, efforts of "
            "other joints look wrong. Record its position"
        )


def other_unit(fit: Fit) -> Iterator[str]:
    """A line if the identified bodies' torques, or only their gravity torques, are far larger or
    smaller than the described bodies'.

    Args:
        fit: the fit; for a payload, whose body is not described, there is no line.
    """
    if fit.unknowns.payload is not None:
        return
    described = fit.unknowns.prior.mean
    gravity, coriolis = _ratios(fit, described)
    alone = np.isnan(coriolis)
    if abs(gravity) < WEIGHTLESS * (1.0 if alone else coriolis):
        beside = "" if alone else f", their Coriolis torques {round(100 * coriolis)} %"
        masses = ", or are the described masses placeholders" if alone else ""
        yield (
            f"the gravity torques of the identified bodies are {round(100 * gravity)} % of the "
            f"described ones{beside}: do the efforts leave gravity out, as those of a controller "
            f"that compensates it, or do springs or counterweights balance the robot{masses}? If "
            "gravity is left out, set `gravity: [0, 0, 0]` (for a URDF, in a YAML file next to "
            "it), or the bodies are distorted to cancel it"
        )
        return
    scale = bodies_scale(fit)
    if scale < -1 / FAR_OFF:
        yield (
            f"the bodies' torques are {scale:.2g} times those of the described bodies: do "
            "all efforts have the opposite sign (--effort-scale JOINT:-1 for every joint), or is "
            "the base mounted differently from the description?"
        )
    # if gravity agrees, the rest is noise in the accelerations
    elif not any(1 / FAR_OFF <= each <= FAR_OFF for each in (scale, gravity)):
        yield (
            f"the bodies' torques are {scale:.2g} times those of the described bodies: are "
            f"the efforts in N·m (forces in N)? --effort-scale converts them"
            f"{_at_motors(fit.unknowns, 1 / scale if scale else 0.0)}; or are the described "
            "masses placeholders?"
        )


def bodies_scale(fit: Fit) -> float:
    """The factor by which the described bodies' torques come closest to the identified bodies' in
    the recorded motion; 1 if there is no such motion."""
    described = fit.unknowns.prior.mean
    block = len(described)
    seen = fit.information[:block, :block] @ described
    own, other = float(described @ seen), float(fit.x[:block] @ seen)
    return other / own if own > 0 else 1.0


def _ratios(fit: Fit, described: Floats) -> tuple[float, float]:
    """The factors by which the described bodies' gravity and Coriolis torques come closest to the
    identified bodies'; NaN if the described ones are 0, as Coriolis torques are of one joint."""
    q, qd, _ = _states(fit)
    zero = np.zeros(q.shape)
    bodies = np.zeros((fit.unknowns.size, 2))
    bodies[: len(described)] = np.column_stack([described, fit.x[: len(described)]])

    def torques(qd: Floats) -> Floats:
        rows = Rows(fit.unknowns, Samples.without_efforts(q, qd, zero))
        return np.concatenate([rows.model(j, bodies) for j in range(q.shape[1])])

    def ratio(both: Floats, least: float) -> float:
        own, found = both.T
        return float(own @ found / (own @ own)) if np.linalg.norm(own) > least else np.nan

    gravity = torques(zero)
    # without Coriolis torques, the difference is a rounding error
    least = 1e-9 * float(np.linalg.norm(gravity[:, 0]))
    return ratio(gravity, 0.0), ratio(torques(qd) - gravity, least)


def _at_motors(unknowns: Unknowns, factor: float) -> str:
    """A hint that the efforts may be motor torques, if the described gear ratios are about as large
    as this factor; empty if not."""
    ratios = unknowns.gear_ratios
    if len(ratios) < len(unknowns.joints):
        return ""
    size = float(np.exp(np.log(np.abs([*ratios.values()])).mean()))
    if size < FAR_OFF or not 1 / FAR_OFF < factor / size < FAR_OFF:
        return ""
    scales = shlex.join(f"{joint}:{ratio:.6g}" for joint, ratio in ratios.items())
    return f" (if they are the motors' torques: --effort-scale {scales})"


def undetermined(excited: Excitation, joints: Sequence[str], moved: Floats) -> Iterator[str]:
    """Warnings of what the motion does not determine, one line each.

    Args:
        excited: how well the motion excites the parameters.
        joints: (n,) names.
        moved: (n,), the range of each joint's motion, rad or m.
    """
    for joint, way in zip(joints, moved, strict=True):
        if way < HARDLY:
            yield (
                f"{joint} moved by only {way:.2g}: its friction and inertia are "
                "hardly identifiable; record it moving through more of its range"
            )
    if excited.identifiable and excited.determined < ENOUGH * excited.identifiable:
        yield (
            f"The motion determines {excited.determined:.0f} of {excited.identifiable} "
            "identifiable parameters; the rest stay near the description: record longer, with all "
            "joints moving at once, faster, and in more varied poses"
        )


def large(
    unseen: Errors,
    explained: Sequence[str] = (),
    usual: Floats | None = None,
    fitted: Floats | None = None,
) -> Iterator[str]:
    """A line for each joint with a large error on held-out motion, and one for those that stood
    still in it.

    Args:
        unseen: the errors.
        explained: joints whose large errors are already explained by another warning.
        usual: (n,), N·m or N, the usual errors on held-out motion; None: unknown.
        fitted: (n,), the relative errors on the motion used for the fit; None: unknown.
    """
    joints = unseen.joints
    still = [joint for joint, stood in zip(joints, unseen.still, strict=True) if stood]
    most = None if usual is None else over(usual, unseen.torque)
    yield from unexplained(joints, unseen.relative, [*explained, *still], most, fitted)
    if still:
        one = len(still) == 1
        yield (
            f"{', '.join(still)} {'is' if one else 'are'} at rest in the held-out motion: "
            f"static friction may carry any share of {'its' if one else 'their'} torque, so "
            f"{'its error is' if one else 'their errors are'} not meaningful"
        )


def unexplained(
    joints: Sequence[str],
    errors: Floats,
    explained: Sequence[str] = (),
    usual: Floats | None = None,
    fitted: Floats | None = None,
) -> Iterator[str]:
    """A line for each joint whose torque the model hardly explains.

    Args:
        joints: the joints' names.
        errors: (n,) the relative torque errors.
        explained: joints whose large errors are already explained by another warning.
        usual: (n,) the usual relative errors; None: unknown.
        fitted: (n,) the relative errors on the motion used for the fit; None: unknown.
    """
    usual = errors if usual is None else usual
    fitted = errors if fitted is None else fitted
    for joint, error, most, known in zip(joints, errors, usual, fitted, strict=True):
        if not error > LITTLE or joint in explained:
            continue
        if most < AT_TIMES * error:  # a wrong unit or description would show all the time
            yield (
                f"{joint}: the model leaves {100 * error:.0f} % of the torque unexplained, but "
                f"usually only {100 * most:.2g} %: was the robot touched or loaded at times? If "
                "not, check its efforts (--effort-scale) and the description"
            )
        elif known < min(LITTLE, AT_TIMES * error):  # and so would these
            yield (
                f"{joint}: the model leaves {100 * error:.0f} % of the torque unexplained, but "
                f"only {100 * known:.2g} % in the motion that was fitted: record longer and more "
                "varied motion. If that does not help, check its efforts (--effort-scale) and the "
                "description"
            )
        else:
            yield (
                f"{joint}: the model leaves {100 * error:.0f} % of the torque unexplained: are its "
                "efforts joint torques in N·m (or forces in N) with the right sign "
                "(--effort-scale), and is this the robot of the description?"
            )


def lost(unseen: Errors, explained: Sequence[str] = ()) -> Iterator[str]:
    """A line for each moving joint whose torque the description predicts better; `explained` as for
    `large`."""
    for joint, error, before, still in zip(
        unseen.joints, unseen.relative, unseen.relative_described, unseen.still, strict=True
    ):
        if error > 1.05 * before and not still and joint not in explained:
            yield (
                f"{joint}: on held-out motion the original description predicts better (error "
                f"{100 * before:.1f} % against {100 * error:.1f} %); record longer"
            )
