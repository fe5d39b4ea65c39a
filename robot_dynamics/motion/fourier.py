# SPDX-License-Identifier: Apache-2.0
"""Exciting motions as Fourier series that begin and end at rest.

Source: Swevers, Ganseman, Tükel, de Schutter and van Brussel, "Optimal robot excitation and
identification", IEEE Transactions on Robotics and Automation 13(5), 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, wrong
from ..scalar import Floats


@dataclass(frozen=True)
class RestingSeries:
    """Fourier series over one period whose rate and acceleration are zero at its ends.

    q(t) = offset + Σ_l (a_l sin lωt + b_l cos lωt) / l  with ω = 2π / duration. Rate and
    acceleration vanish at t = 0, and hence at the period's end, if  Σ a_l = 0,  Σ l b_l = 0.

    The coefficients (2 (harmonics - 1),) of a joint refer to an orthonormal basis of the a and b
    that satisfy these conditions.

    Raises:
        InputError: fewer than two harmonics, or a duration that is not positive.

    Source: Swevers et al. (1997).
    """

    harmonics: int
    """Number of harmonics, at least 2"""
    duration: float
    """The period, s"""

    def __post_init__(self) -> None:
        if self.harmonics < 2:
            raise wrong(InputError, "harmonics", self.harmonics, "2 or more")
        if not (np.isfinite(self.duration) and self.duration > 0):
            raise wrong(InputError, "duration", self.duration, "a positive number of seconds")

    @property
    def size(self) -> int:
        """The number of coefficients per joint, without the offset."""
        return 2 * (self.harmonics - 1)

    def basis(self, time: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """The basis functions of q, qd and qdd, (…, size) each, at times (…), s; clipped to the
        period."""
        t = np.clip(np.asarray(time, dtype=float), 0.0, self.duration)[..., None]
        order = np.arange(1, self.harmonics + 1)
        rate = 2 * np.pi * order / self.duration
        sine, cosine = np.sin(rate * t) / order, np.cos(rate * t) / order
        A, B = _normal_to(np.ones(len(order))), _normal_to(order.astype(float))
        return (
            np.concatenate([sine @ A, cosine @ B], axis=-1),
            np.concatenate([rate * cosine @ A, -rate * sine @ B], axis=-1),
            np.concatenate([-(rate**2) * sine @ A, -(rate**2) * cosine @ B], axis=-1),
        )

    def overshoot(self, samples: int) -> float:
        """A bound on the ratio of a series' maximum, without offset, to the maximum of its samples.

        max |f| ≤ max_k |f(t_k)| / cos(π H / N)  for a trigonometric polynomial of degree H at
        N > 2 H equidistant points of its period (Ehlich and Zeller, 1964).

        Args:
            samples: N, the number of equidistant samples per period.

        Raises:
            InputError: not more than 2 H samples.
        """
        if samples <= 2 * self.harmonics:
            raise wrong(InputError, "samples", samples, f"above {2 * self.harmonics}")
        return float(1.0 / np.cos(np.pi * self.harmonics / samples))


def _normal_to(vector: Floats) -> Floats:
    """(n, n - 1): orthonormal columns that are orthogonal to the vector (n,)."""
    return np.asarray(np.linalg.svd(vector[None, :])[2][1:].T)


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A motion with one resting series per joint: periodic, from rest to rest.

    Raises:
        InputError: counts that differ, or numbers that are not finite.
    """

    series: RestingSeries
    offsets: Floats
    """(n,), rad or m"""
    coefficients: Floats
    """(n, series.size), rad or m"""

    def __post_init__(self) -> None:
        shape = (len(self.offsets), self.series.size)
        if self.coefficients.shape != shape:
            raise wrong(InputError, "coefficients", self.coefficients.shape, f"shape {shape}")
        if not (np.isfinite(self.offsets).all() and np.isfinite(self.coefficients).all()):
            raise wrong(InputError, "coefficients", self.coefficients, "finite numbers")

    @property
    def duration(self) -> float:
        """The period, s."""
        return self.series.duration

    @property
    def start(self) -> list[float]:
        """The position (n,) at both ends, rad or m."""
        return [float(x) for x in self(0.0)[0]]

    def __call__(self, time: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """q, qd, qdd (…, n) at times (…), s; at rest before the start and after the end."""
        q, qd, qdd = (each @ self.coefficients.T for each in self.series.basis(time))
        return self.offsets + q, qd, qdd

    def shrunk(self, share: float) -> FourierMotion:
        """The same motion about the same offsets, with all amplitudes multiplied by `share`."""
        return FourierMotion(self.series, self.offsets, share * self.coefficients)
