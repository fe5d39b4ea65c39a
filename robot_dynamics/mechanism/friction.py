# SPDX-License-Identifier: Apache-2.0
"""The law of friction of a joint or a rotor, as an immutable value in SI units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..scalar import Scalar, direction, exp, is_number, is_zero, sign

TINY = 1e-18
"""m or rad, added to a distance that is divided by: nothing at rest, and its square is a number in
single precision, too"""
LEAST_SMOOTHING = 1e-9
"""rad/s or m/s: the slope of dry friction at rest, coulomb / smoothing, must be a finite number"""
LONGEST_PRESLIDING = 0.1
"""rad or m, far above that of any gear (some mrad). While a motion speeds up from a reversal, dry
friction drives its joint over 0.7 times this distance"""


@dataclass(frozen=True)
class Friction:
    """viscous·qd + (coulomb + stribeck_torque·exp(-(qd/stribeck_rate)²))·z + offset + stiffness·q.

    z, the direction of dry friction, is sign(qd), or tanh(qd/smoothing), or with presliding only
    tends to it after a reversal; see `heading`.

    It acts at a joint or, without stiffness and with the rotor's rate in place of qd, on a motor's
    rotor, in N·m·s/rad, N·m and rad/s (N·s/m, N and m/s). The offset is a constant bias; the
    stiffness is that of a spring whose torque at q = 0 is the offset. Both also act at rest. All
    other parts are zero at rest.
    """

    viscous: Scalar = 0.0
    """N·m·s/rad or N·s/m"""
    coulomb: Scalar = 0.0
    """N·m or N"""
    offset: Scalar = 0.0
    """N·m or N"""
    coulomb_negative: Scalar | None = None
    """Replaces `coulomb` at negative rates; None: `coulomb`"""
    stribeck_torque: Scalar = 0.0
    """N·m or N, added near rest; it vanishes within a few times `stribeck_rate`"""
    stribeck_rate: Scalar = 1.0
    """rad/s or m/s, above 0"""
    stiffness: Scalar = 0.0
    """N·m/rad or N/m; negative if the spring pushes the joint away"""
    presliding: Scalar = 0.0
    """rad or m: the distance over which dry friction turns round after a reversal; 0: at once"""
    smoothing: Scalar = 0.0
    """rad/s or m/s: the rate below which dry friction fades to zero; 0: it is a step at rest"""

    @property
    def coulomb_backwards(self) -> Scalar:
        """The Coulomb torque at negative rates."""
        return self.coulomb if self.coulomb_negative is None else self.coulomb_negative

    @property
    def numbers(self) -> dict[str, Scalar]:
        """The law's numbers by field: viscous and coulomb, and others only if they are set."""
        found = {"viscous": self.viscous, "coulomb": self.coulomb}
        if not is_zero(self.offset):
            found["offset"] = self.offset
        if self.coulomb_negative is not None:
            found["coulomb_negative"] = self.coulomb_negative
        if not is_zero(self.stribeck_torque):
            found["stribeck_torque"] = self.stribeck_torque
            found["stribeck_rate"] = self.stribeck_rate
        if not is_zero(self.stiffness):
            found["stiffness"] = self.stiffness
        if not is_zero(self.presliding):
            found["presliding"] = self.presliding
        if not is_zero(self.smoothing):
            found["smoothing"] = self.smoothing
        return found

    def faults(self, of_rotor: bool = False) -> Iterator[tuple[str, str, Any, str]]:
        """(field, its name in messages, value, what was expected) of each invalid coefficient.

        Args:
            of_rotor: is it the law of a rotor?
        """
        for key, value in self.numbers.items():
            says_so = "stribeck" in key or key in ("stiffness", "presliding", "smoothing")
            name = key.replace("_", " ") + ("" if says_so else " friction")
            if not is_number(value):
                yield key, name, value, "a finite number"
                return
            if key == "stribeck_rate" and not value > 0:
                yield key, name, value, "above 0"
            elif key == "stiffness" and of_rotor:
                yield key, name, value, "0: springs are at joints"
            elif key == "presliding" and of_rotor:
                yield key, name, value, "0: only the friction of joints has it"
            elif key == "presliding" and value > LONGEST_PRESLIDING:
                expected = f"at most {LONGEST_PRESLIDING:g} rad or m (some mrad are usual)"
                yield key, name, value, expected
            elif key == "smoothing" and 0 < value < LEAST_SMOOTHING:
                yield key, name, value, f"0, or at least {LEAST_SMOOTHING:g} rad/s or m/s"
            elif value < 0 and key not in ("offset", "stribeck_torque", "stiffness"):
                yield key, name, value, "at least 0"
        least = max(0.0, min(self.coulomb, self.coulomb_backwards))
        if self.stribeck_torque < -least:
            yield (
                "stribeck_torque",
                "stribeck torque",
                self.stribeck_torque,
                f"at least {0.0 - least:g}, so that no friction drives the joint",
            )

    def __add__(self, other: Friction) -> Friction:
        """The sum of two laws at the same rate; the Stribeck rate is that of the larger Stribeck
        torque, presliding and smoothing are those of the larger Coulomb torque."""
        negative = self.coulomb_negative, other.coulomb_negative
        both = self.coulomb_backwards + other.coulomb_backwards
        steeper = max(self, other, key=lambda law: abs(float(law.stribeck_torque)))
        turning = [law for law in (self, other) if not is_zero(law.presliding)]
        fading = [law for law in (self, other) if not is_zero(law.smoothing)]
        return Friction(
            self.viscous + other.viscous,
            self.coulomb + other.coulomb,
            self.offset + other.offset,
            None if negative == (None, None) else both,
            self.stribeck_torque + other.stribeck_torque,
            steeper.stribeck_rate,
            self.stiffness + other.stiffness,
            max(turning, key=lambda law: float(law.coulomb)).presliding if turning else 0.0,
            max(fading, key=lambda law: float(law.coulomb)).smoothing if fading else 0.0,
        )

    def at_joint(self, ratio: float) -> Friction:
        """A rotor's friction as friction at the joint: ratio·law(ratio·qd).

        Args:
            ratio: the gear ratio, rotor rate / joint rate; not 0.
        """
        size, other = abs(ratio), self.coulomb_negative
        ahead, back = self.coulomb, None if other is None else size * other
        if other is not None and ratio < 0:
            ahead, back = other, size * self.coulomb
        return Friction(
            size * size * self.viscous,
            size * ahead,
            ratio * self.offset,
            back,
            size * self.stribeck_torque,
            self.stribeck_rate / size,
            smoothing=self.smoothing / size,
        )

    def heading(self, rate: Scalar, acceleration: Scalar, smoothing: Scalar = 0.0) -> Scalar:
        """The direction z of dry friction, from -1 to 1: sign(rate), or with smoothing
        tanh(rate / smoothing), where the motion slows down.

        While it speeds up, z follows Dahl's law dz/dx = (sign(rate) - z) / presliding from the last
        reversal, which was rate² / 2|acceleration| ago if the acceleration is constant. So dry
        friction has no jump at a reversal.

        Args:
            rate: rad/s or m/s.
            acceleration: rad/s² or m/s²; 0: dry friction is fully developed.
            smoothing: rad/s or m/s, added to that of this law.

        Source: [Dahl76].
        """
        ahead = direction(rate, self.smoothing + smoothing)
        if is_zero(self.presliding) or is_zero(acceleration):
            return ahead
        # z = sign(q̇) (1 - 2 e^(-d/σ)),   d = q̇²/2|q̈|,   where q̇ q̈ > 0: s² + s is 2 there, else 0
        s = sign(rate * acceleration)
        distance = rate * rate / (2.0 * acceleration * sign(acceleration) * self.presliding + TINY)
        return ahead * (1.0 - (s * s + s) * exp(-distance))

    def torque(self, rate: Scalar, direction: Scalar, position: Scalar = 0.0) -> Scalar:
        """The friction torque or force at a joint's or rotor's rate, N·m or N.

        Args:
            rate: rad/s or m/s.
            direction: that of dry friction: `heading`, or sign(rate) where it is developed; 0 at
                rest.
            position: rad or m, for the spring.
        """
        if self.coulomb_negative is None:
            # coulomb·sign(qd)
            dry = self.coulomb * direction
        else:
            # sign² + sign is 2 forwards, sign² - sign is 2 backwards, both are 0 at rest
            forwards = (direction * direction + direction) / 2
            backwards = (direction * direction - direction) / 2
            dry = self.coulomb * forwards - self.coulomb_negative * backwards
        if not is_zero(self.stribeck_torque):
            # stribeck_torque·exp(-(qd/stribeck_rate)²)·sign(qd)
            slow = rate / self.stribeck_rate
            dry = dry + self.stribeck_torque * exp(-(slow * slow)) * direction
        torque = self.viscous * rate + dry
        if not is_zero(self.stiffness):
            torque = torque + self.stiffness * position
        return torque if is_zero(self.offset) else torque + self.offset
