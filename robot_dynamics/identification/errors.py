"""How far a model's torques are from measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..dynamics import InverseDynamics
from ..mechanism import Mechanism
from .preparation import Prepared
from .recording import Floats


@dataclass(frozen=True, eq=False)
class Errors:
    """Torque errors by joint: root mean squares, in N·m or N, over `duration` s of motion."""

    joints: tuple[str, ...]
    duration: float
    torque: Floats
    """(n,): of the measured torque itself"""
    described: Floats
    """(n,): of what the description misses it by"""
    identified: Floats
    """(n,): of what the identified model misses it by"""
    unfiltered: Floats
    """(n,): the same against the torque as measured, unfiltered"""

    @property
    def relative(self) -> Floats:
        """(n,): the identified model's error over the torque; NaN where none was measured"""
        return _over(self.identified, self.torque)

    @property
    def relative_described(self) -> Floats:
        """(n,): the description's error over the torque"""
        return _over(self.described, self.torque)


def _over(error: Floats, torque: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(torque > 0, error / torque, np.nan)


def compare(parts: Iterable[Prepared], described: Mechanism, identified: Mechanism) -> Errors:
    """Both models' errors, part after part."""
    models = [InverseDynamics(each) for each in (described, identified)]
    joints = models[0].joint_names
    squares, count = np.zeros((4, len(joints))), np.zeros(len(joints))
    duration = 0.0
    for part in parts:
        duration += part.duration
        for each in part.stretches:
            before, after = (model(each.q, each.qd, each.qdd) for model in models)
            misses = (each.tau, each.tau - before, each.tau - after, each.unfiltered - after)
            for k, miss in enumerate(misses):
                squares[k] += (np.where(each.usable, miss, 0.0) ** 2).sum(axis=0)
            count += each.usable.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Errors(joints, duration, *np.sqrt(squares / count))
