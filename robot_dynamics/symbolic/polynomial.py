# SPDX-License-Identifier: Apache-2.0
"""A scalar for equations: polynomials in parameters, rates and cosines, in one normal form.

With z = e^{iθ}, cos θ = ½ (z + z⁻¹) and sin θ = ½ i (z⁻¹ - z). An expression is then a polynomial
in the parameters and in z and z⁻¹ of all angles. Equal expressions have equal terms: no search is
needed for cos² + sin² = 1 or sums of angles, and multiplying terms adds their exponents. The
formulations run over these scalars; `short` converts the results to SymPy expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ..errors import InputError

BITS = 12
_BASE = 1 << BITS
_HALF = _BASE >> 1
_DYADIC = float(1 << 20)
"""Coefficients are multiples of 1/this, so that their sums and products are exact"""
_TIDY = math.pi / 12
"""15°: the cosines of its multiples have a closed form"""


MOST_PRODUCTS = 3_000_000
"""Largest number of products of terms in one derivation, which take some seconds"""
MOST_TURNS = 8
"""Largest k for which e^{ikq} is the k-th power of one letter. For larger ratios a rotor's angle
has its own letter: exponents stay small, and its cosine is not expanded"""


class TooManyTerms(Exception):  # noqa: N818  not an error: a fallback is used
    """The expanded equations would fill pages, or have powers that a term cannot represent."""


@dataclass(frozen=True, eq=False)
class Generator:
    """One of the letters (indeterminates) of the polynomials."""

    kind: str
    """parameter | coordinate | rate | body | number | angle | fifteen (e^{iπ/12})"""
    expression: sympy.Expr
    """What it stands for; for an angle, θ itself, not e^{iθ}"""
    argument: tuple[int, complex] | None = None
    """For an angle: (key, factor) of the monomial θ"""


class Ring:
    """The letters of polynomials, each in a slot.

    A term's key is Σ exponent·2^(12 slot), with signed exponents. The magnitude of an exponent must
    be below 2^11, or it would overflow into the next slot. Every product checks this
    (`Polynomial.degree`).
    """

    def __init__(self) -> None:
        self.generators: list[Generator] = []
        self.products = 0
        self._known: dict[Any, int] = {}
        self._exponents: dict[int, tuple[tuple[int, int], ...]] = {}

    def letter(self, kind: str, expression: sympy.Expr) -> Polynomial:
        """The polynomial that consists of this letter alone.

        Args:
            kind: see `Generator.kind`.
            expression: what the letter stands for.
        """
        return Polynomial(self, {1 << (BITS * self._slot(kind, expression)): 1 + 0j})

    def constant(self, value: float) -> Polynomial:
        """An exact number: a coefficient if products of it stay exact, otherwise a letter."""
        value = float(value)
        if value == 0:
            return Polynomial(self, {})
        scaled = value * _DYADIC
        if scaled == int(scaled) and abs(value) < _DYADIC:
            return Polynomial(self, {0: complex(value)})
        return self.letter("number", sympy.Rational(repr(value)))

    def unit(self, key: int, factor: complex) -> tuple[int, int]:
        """(key, power) with e^{iθ} = letter^power, θ = factor · monomial."""
        whole = round(factor.real)
        if key == 0:
            turns = factor.real / _TIDY
            if abs(turns - round(turns)) < 1e-9:
                return 1 << (BITS * self._slot("fifteen", sympy.pi / 12)), (
                    round(turns) + 12
                ) % 24 - 12
        elif whole == factor.real and abs(whole) <= MOST_TURNS:
            return 1 << (BITS * self._slot("angle", self.expression(key), (key, 1 + 0j))), whole
        size = abs(factor.real)
        angle = self.expression(key) * sympy.Rational(repr(size))
        step = 1 << (BITS * self._slot("angle", angle, (key, complex(size))))
        return step, 1 if factor.real > 0 else -1

    def _slot(
        self, kind: str, expression: sympy.Expr, argument: tuple[int, complex] | None = None
    ) -> int:
        name = (kind == "angle", kind == "fifteen", expression)
        if name not in self._known:
            self._known[name] = len(self.generators)
            self.generators.append(Generator(kind, expression, argument))
        return self._known[name]

    def normal(self, polynomial: Polynomial) -> Polynomial:
        """The polynomial with e^{iπ/12} = x in powers below the fourth: x⁶ = i, x⁴ = i x² + 1."""
        slot = self._known.get((False, True, sympy.pi / 12))
        if slot is None:
            return polynomial
        step = 1 << (BITS * slot)
        terms: dict[int, complex] = {}
        for key, value in polynomial.terms.items():
            power = self.exponent(key, slot)
            turns, rest = divmod(power, 6)
            low = key - power * step
            value *= (1, 1j, -1, -1j)[turns % 4]
            parts = [(rest, value)] if rest < 4 else [(rest - 2, value * 1j), (rest - 4, value)]
            for exponent, part in parts:
                new = low + exponent * step
                terms[new] = terms.get(new, 0) + part
        return Polynomial(self, {key: value for key, value in terms.items() if value})

    def exponents(self, key: int) -> tuple[tuple[int, int], ...]:
        """The (slot, exponent) pairs of a term."""
        if key not in self._exponents:
            self._exponents[key] = tuple(_exponents(key))
        return self._exponents[key]

    def exponent(self, key: int, slot: int) -> int:
        """The exponent of one letter in a term."""
        place = BITS * slot
        # with the exponents of the letters before it rounded off
        return (((key + (1 << place >> 1)) >> place) + _HALF) % _BASE - _HALF

    def expression(self, key: int) -> sympy.Expr:
        """The monomial of a term without angles, as a SymPy expression."""
        return sympy.Mul(*(self.generators[s].expression ** e for s, e in self.exponents(key)))

    def slot(self, letter: Polynomial) -> int:
        """The slot of a letter."""
        ((key, _),) = letter.terms.items()
        ((slot, _),) = self.exponents(key)
        return slot


class Polynomial:
    """A sum of terms in the letters of a ring.

    Args:
        ring: the ring.
        terms: key to coefficient; coefficients are complex with dyadic parts, whose sums are exact.
        degree: a bound on the magnitude of all exponents, if known.
    """

    __slots__ = ("_degree", "ring", "terms")

    def __init__(self, ring: Ring, terms: dict[int, complex], degree: int | None = None):
        self.ring = ring
        self.terms = terms
        self._degree = degree

    @property
    def degree(self) -> int:
        """A bound on the magnitude of all exponents."""
        if self._degree is None:
            self._degree = self._largest()
        return self._degree

    def _largest(self) -> int:
        exponents = self.ring.exponents
        return max((abs(e) for key in self.terms for _, e in exponents(key)), default=0)

    @property
    def is_zero(self) -> bool:
        """Is the polynomial exactly the constant 0?"""
        return not self.terms

    def _other(self, other: Any) -> Polynomial | None:
        if isinstance(other, Polynomial):
            return other
        if isinstance(other, (int, float, np.integer, np.floating)):
            return self.ring.constant(float(other))
        return None

    def __add__(self, other: Any) -> Any:
        right = self._other(other)
        if right is None:
            return NotImplemented
        if not right.terms:
            return self
        terms = dict(self.terms)
        for key, value in right.terms.items():
            total = terms.get(key, 0) + value
            if total:
                terms[key] = total
            else:
                del terms[key]
        return Polynomial(self.ring, terms, max(self.degree, right.degree))

    def __neg__(self) -> Polynomial:
        terms = {key: -value for key, value in self.terms.items()}
        return Polynomial(self.ring, terms, self._degree)

    def __sub__(self, other: Any) -> Any:
        right = self._other(other)
        return NotImplemented if right is None else self + (-right)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        right = self._other(other)
        if right is None:
            return NotImplemented
        self.ring.products += len(self.terms) * len(right.terms)
        if self.ring.products > MOST_PRODUCTS:
            raise TooManyTerms
        degree = self.degree + right.degree
        if degree >= _HALF:
            self._degree, right._degree = self._largest(), right._largest()
            degree = _checked(self._degree + right._degree)
        terms: dict[int, complex] = {}
        get, others = terms.get, list(right.terms.items())
        for key, value in self.terms.items():
            for other_key, factor in others:
                total = key + other_key
                terms[total] = get(total, 0) + value * factor
        kept = {key: value for key, value in terms.items() if value}
        return Polynomial(self.ring, kept, degree)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Polynomial):
            raise InputError("a polynomial cannot be divided by another one")
        return self * (1.0 / float(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def _turned(self) -> Polynomial:
        """e^{i·self}."""
        result = self.ring.constant(1.0)
        for key, factor in self.terms.items():
            step, power = self.ring.unit(key, factor)
            degree = _checked(result.degree + abs(power))
            terms = {k + power * step: v for k, v in result.terms.items()}
            result = Polynomial(self.ring, terms, degree)
        return result

    def cos(self) -> Polynomial:
        """½ (e^{iθ} + e^{-iθ})."""
        half_sum: Polynomial = (self._turned() + (-self)._turned()) * 0.5
        return half_sum

    def sin(self) -> Polynomial:
        """½ i (e^{-iθ} - e^{iθ})."""
        difference = (-self)._turned() - self._turned()
        return Polynomial(self.ring, {k: 0.5j * v for k, v in difference.terms.items()})

    def diff(self, coordinate: int) -> Polynomial:
        """The derivative with respect to the coordinate in this slot."""
        one = 1 << (BITS * coordinate)
        inner: dict[int, Polynomial] = {}
        result = Polynomial(self.ring, {})
        for key, value in self.terms.items():
            for slot, exponent in self.ring.exponents(key):
                argument = self.ring.generators[slot].argument
                if slot == coordinate:
                    result = result + Polynomial(self.ring, {key - one: exponent * value})
                elif argument is not None:
                    if slot not in inner:
                        theta = Polynomial(self.ring, {argument[0]: argument[1]})
                        inner[slot] = theta.diff(coordinate)
                    # d z^k = i k z^k dθ
                    outer = Polynomial(self.ring, {key: 1j * exponent * value})
                    result = result + outer * inner[slot]
        return result


def _exponents(key: int) -> Iterator[tuple[int, int]]:
    slot = 0
    while key:
        # skip to the lowest letter
        skipped = ((key & -key).bit_length() - 1) // BITS
        key, slot = key >> (BITS * skipped), slot + skipped
        low = key & (_BASE - 1)
        if low >= _HALF:
            low -= _BASE
        yield slot, low
        key = (key - low) >> BITS
        slot += 1


def _checked(degree: int) -> int:
    """The degree.

    Raises:
        TooManyTerms: an exponent of this magnitude would overflow into the next slot.
    """
    if degree >= _HALF:
        raise TooManyTerms
    return degree
