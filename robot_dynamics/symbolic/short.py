# SPDX-License-Identifier: Apache-2.0
"""Converts polynomials to SymPy expressions, in the shortest of several textbook forms.

The forms are sums of angles (cos(q2 + q3)), powers of the cosines of joint angles, and powers of
the cosines of absolute angles about parallel axes, each with sin² in terms of cos² or vice versa.
In each form, terms are gathered by body (m1 (…) + m2 (…)) or by trigonometric function, and their
coefficients are factored. The shortest form is the one with the fewest operations (`cost`).
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import sympy
from sympy.polys.orthopolys import chebyshevt_poly, chebyshevu_poly
from sympy.polys.rings import ring as polynomial_ring

from .polynomial import Polynomial, Ring

MOST_FACTORED = 16
"""Largest number of terms of a sum that is factored; a longer one would take SymPy too long"""
DIGITS = 12
"""Largest number of decimals of a constant that is taken as exact; a longer one is rounded"""
MOST_FORMS = 400
"""Largest number of terms of a sum for which more than one form is tried"""

Atom: TypeAlias = sympy.Expr
Monomial = tuple[tuple[Atom, int], ...]
"""(letter, exponent), sorted; the empty one is 1"""
Sum = dict[Monomial, Fraction]
Angle = tuple[tuple[int, int], ...]
"""(slot, multiple) of each letter of an angle"""


class Writer:
    """Converts the polynomials of one ring to SymPy expressions.

    Args:
        ring: the ring.
        basis: for each angle's slot the absolute angle of its link, as {slot: multiple}.
    """

    def __init__(self, ring: Ring, basis: Mapping[int, Mapping[int, int]] | None = None):
        self.ring = ring
        self.basis = dict(basis or {})
        self._parallel = any(len(each) > 1 for each in self.basis.values())
        self._angles: dict[tuple[int, bool], tuple[sympy.Expr, sympy.Expr]] = {}
        self._functions: dict[tuple[str, Angle], sympy.Expr] = {}
        self._brackets: dict[Any, sympy.Expr] = {}
        self._known: dict[Any, sympy.Expr] = {}

    def short(self, polynomial: Any) -> sympy.Expr:
        """The shortest expression found for a polynomial or number."""
        if not isinstance(polynomial, Polynomial):
            return _number(polynomial)
        return self._short(self.real(polynomial))

    def plain(self, polynomial: Any) -> sympy.Expr:
        """A polynomial or number as a plain sum of terms, without any search."""
        if not isinstance(polynomial, Polynomial):
            return _number(polynomial)
        terms = (
            _value(mono, coefficient) * self._trig(*angle)
            for (mono, angle), coefficient in self.real(polynomial).items()
        )
        return sympy.Add(*terms)

    def real(self, polynomial: Polynomial) -> dict[tuple[Monomial, tuple[str, Angle]], Fraction]:
        """The terms with cosines and sines of sums of angles:
        {(monomial, ("cos" | "sin", angle)): coefficient}."""
        found: dict[Any, Fraction] = defaultdict(Fraction)
        for key, coefficient in sorted(polynomial.terms.items()):
            letters: list[tuple[Atom, int]] = []
            angle: list[tuple[int, int]] = []
            fifteens, factor = 0, Fraction(1)
            for slot, exponent in self.ring.exponents(key):
                generator = self.ring.generators[slot]
                if generator.kind == "angle":
                    angle.append((slot, exponent))
                elif generator.kind == "fifteen":
                    fifteens = exponent
                elif generator.expression.is_Rational:
                    number = generator.expression
                    factor *= Fraction(int(number.p), int(number.q)) ** exponent
                else:
                    letters.append((generator.expression, exponent))
            if angle and angle[0][1] < 0:
                continue  # its complex conjugate is also a term, and represents both
            re, im = Fraction(coefficient.real) * factor, Fraction(coefficient.imag) * factor
            twice = 2 if angle else 1
            # c e^{iθ} and its conjugate: 2 Re c cos θ - 2 Im c sin θ
            for root, cos_part, sin_part in _unit(fifteens % 24):
                mono = _sorted([*letters, *root])
                found[mono, ("cos", tuple(angle))] += twice * (re * cos_part - im * sin_part)
                if angle:
                    found[mono, ("sin", tuple(angle))] -= 2 * (re * sin_part + im * cos_part)
        return {key: value for key, value in found.items() if value}

    def _short(self, terms: Mapping[tuple[Monomial, Any], Fraction]) -> sympy.Expr:
        if not terms:
            return sympy.S.Zero
        common = _content(mono for mono, _ in terms)
        rest = {(_divided(mono, common), angle): c for (mono, angle), c in terms.items()}
        key = frozenset(rest.items())
        if key not in self._known:
            self._known[key] = min(self._written(rest), key=cost)
        return polished(_product(_value(common, Fraction(1)), self._known[key]))

    def _written(self, terms: Mapping[Any, Fraction]) -> Iterator[sympy.Expr]:
        """The candidates: the whole sum in each form, and the sum gathered by body or by rate, with
        each bracket in its own shortest form."""
        forms = self._forms(terms) if len(terms) <= MOST_FORMS else [self._of_sums(terms)]
        for form in forms:
            yield self._bracket(form)
        kinds = {each.expression: each.kind for each in self.ring.generators}
        letters = {atom for mono, _ in terms for atom, _ in mono}
        for kind in ("body", "rate"):
            outer = {atom for atom in letters if kinds.get(atom) == kind}
            if outer:
                yield self._by(terms, outer)

    def _forms(self, terms: Mapping[Any, Fraction]) -> list[Sum]:
        """The sum in letters and trigonometric functions, in several forms."""
        forms = [self._of_sums(terms)]
        angles = {angle for _, (_, angle) in terms if angle}
        if all(len(angle) == 1 and abs(angle[0][1]) == 1 for angle in angles):
            return forms
        powers = [
            self._of_powers(terms, each) for each in ((False, True) if self._parallel else (False,))
        ]
        return forms + [each for each in powers if each is not None]

    def _of_sums(self, terms: Mapping[Any, Fraction]) -> Sum:
        found: Sum = defaultdict(Fraction)
        for (mono, angle), coefficient in terms.items():
            function, sign = self._trig(*angle), 1
            if function.could_extract_minus_sign():
                function, sign = -function, -1
            extra = () if function == 1 else ((function, 1),)
            found[_sorted([*mono, *extra])] += sign * coefficient
        return {mono: c for mono, c in found.items() if c}

    def _of_powers(self, terms: Mapping[Any, Fraction], absolute: bool) -> Sum | None:
        scale = math.lcm(*(c.denominator for c in terms.values()))
        found: dict[tuple[Monomial, Any], int] = defaultdict(int)
        for (mono, (kind, angle)), coefficient in terms.items():
            parts = self._absolute(angle) if absolute else angle
            if sum(abs(k) for _, k in parts) > 8:
                return None
            real, imaginary = _expanded(parts)
            whole = int(coefficient * scale)
            for powers, c in (real if kind == "cos" else imaginary).items():
                found[mono, powers] += whole * c
        # most terms cancel: only those that are left are written with their letters
        form: Sum = defaultdict(Fraction)
        for (mono, powers), number in found.items():
            if number:
                trig = ((self._angle(slot, absolute)[which], e) for (slot, which), e in powers)
                form[_sorted([*mono, *trig])] += Fraction(number, scale)
        return {mono: c for mono, c in form.items() if c}

    def _trig(self, kind: str, angle: Angle) -> sympy.Expr:
        if (kind, angle) not in self._functions:
            generators = self.ring.generators
            theta = sympy.Add(*(k * generators[slot].expression for slot, k in angle))
            self._functions[kind, angle] = sympy.cos(theta) if kind == "cos" else sympy.sin(theta)
        return self._functions[kind, angle]

    def _angle(self, slot: int, absolute: bool) -> tuple[sympy.Expr, sympy.Expr]:
        """(cosine, sine)"""
        if (slot, absolute) not in self._angles:
            parts = self.basis.get(slot, {slot: 1}) if absolute else {slot: 1}
            angle = tuple(parts.items())
            self._angles[slot, absolute] = self._trig("cos", angle), self._trig("sin", angle)
        return self._angles[slot, absolute]

    def _absolute(self, angle: Angle) -> Angle:
        """The angle as multiples of the absolute angles φ_i = θ_i + …, determined from the last to
        the first."""
        left, found = dict(angle), {}
        for slot in sorted(left.keys() | self.basis.keys(), reverse=True):
            k = left.pop(slot, 0)
            if not k:
                continue
            own = self.basis.get(slot, {slot: 1})
            found[slot] = k * own[slot]
            for other, multiple in own.items():
                if other != slot:
                    left[other] = left.get(other, 0) - found[slot] * multiple
        return tuple(sorted((s, k) for s, k in found.items() if k))

    def _by(self, terms: Mapping[Any, Fraction], outer: set[Atom]) -> sympy.Expr:
        """Σ outer · (…), with equal brackets combined."""
        groups: dict[Monomial, dict[Any, Fraction]] = defaultdict(dict)
        for (mono, angle), coefficient in terms.items():
            out = tuple((a, e) for a, e in mono if a in outer)
            groups[out][tuple((a, e) for a, e in mono if a not in outer), angle] = coefficient
        merged: dict[sympy.Expr, list[sympy.Expr]] = {}
        for out, group in groups.items():
            bracket, letter = self._short(group), _value(out, Fraction(1))
            if -bracket in merged:
                merged[-bracket].append(-letter)
            else:
                merged.setdefault(bracket, []).append(letter)
        return sympy.Add(*(_product(sympy.Add(*o), b) for b, o in merged.items()))

    def _bracket(self, form: Sum) -> sympy.Expr:
        """The shortest of: factored or gathered by trigonometric function, with cos² or sin²."""
        key = frozenset(form.items())
        if key not in self._brackets:
            self._brackets[key] = min(self._bracketed(form), key=cost)
        return self._brackets[key]

    def _bracketed(self, form: Sum) -> Iterator[sympy.Expr]:
        common = _content(form)
        outer = _value(common, Fraction(1))
        rest = {_divided(mono, common): c for mono, c in form.items()}
        squares = {
            a.args[0] for mono in rest for a, e in mono if e > 1 and isinstance(a, sympy.cos)
        }
        some = sorted(squares, key=str)[:3]
        for choice in itertools.product((False, True), repeat=len(some)):
            written = rest
            for angle, swap in zip(some, choice, strict=True):
                written = _without_cosine_squares(written, angle) if swap else written
            yield _product(outer, _factored(written))
            trig = {atom for mono in written for atom, _ in mono if _is_trig(atom)}
            if trig and len(written) > 1:
                groups: dict[Monomial, Sum] = defaultdict(dict)
                for mono, c in written.items():
                    out = tuple((a, e) for a, e in mono if a in trig)
                    groups[out][tuple((a, e) for a, e in mono if a not in trig)] = c
                parts = (
                    _product(_value(o, Fraction(1)), _factored(group))
                    for o, group in groups.items()
                )
                yield _product(outer, polished(sympy.Add(*parts)))


@cache
def polished(expression: sympy.Expr) -> sympy.Expr:
    """The expression with sin² for 1 - cos², and with signs in front of brackets instead of
    inside."""
    if expression.is_Atom or _is_trig(expression):
        return expression
    args = [polished(each) for each in expression.args]
    if expression.is_Add and len(args) == 2 and sympy.S.One in args:
        other = args[1 - args.index(sympy.S.One)]
        base, exponent = (-other).as_base_exp()
        if exponent == 2 and isinstance(base, (sympy.cos, sympy.sin)):
            opposite = sympy.sin if isinstance(base, sympy.cos) else sympy.cos
            return opposite(base.args[0]) ** 2
    if expression.is_Mul:
        sign = 1
        for place, each in enumerate(args):
            if each.is_Add and all(term.could_extract_minus_sign() for term in each.args):
                args[place], sign = -each, -sign
        number, rest = sympy.S(sign), args
        if args[0].is_Number:
            number, rest = args[0] * sign, args[1:]
        return _product(number, sympy.Mul(*rest))
    return expression.func(*args)


def _is_trig(atom: Atom) -> bool:
    return isinstance(atom, (sympy.cos, sympy.sin))


def _number(value: Any) -> sympy.Expr:
    return sympy.sympify(value) if isinstance(value, sympy.Basic) else sympy.Rational(str(value))


def _sorted(letters: Iterable[tuple[Atom, int]]) -> Monomial:
    counted: dict[Atom, int] = {}
    for atom, exponent in letters:
        counted[atom] = counted.get(atom, 0) + exponent
    return tuple(sorted(((a, e) for a, e in counted.items() if e), key=lambda x: _key(x[0])))


@cache
def _key(atom: Atom) -> str:
    return str(atom)


def _value(mono: Monomial, coefficient: Fraction) -> sympy.Expr:
    number = sympy.Rational(coefficient.numerator, coefficient.denominator)
    return sympy.Mul(number, *(atom**exponent for atom, exponent in mono))


def _content(monomials: Iterable[Monomial]) -> Monomial:
    """The common factor of the monomials."""
    common: dict[Atom, int] | None = None
    for mono in monomials:
        own = dict(mono)
        if common is None:
            common = own
        else:
            common = {a: min(e, own[a]) for a, e in common.items() if a in own}
    return tuple((common or {}).items())


def _divided(mono: Monomial, by: Monomial) -> Monomial:
    known = dict(by)
    return tuple((a, e - known.get(a, 0)) for a, e in mono if e != known.get(a, 0))


def _product(outer: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
    if outer.is_Number and inner.is_Add and outer not in (1, -1):
        return sympy.Mul(outer, inner, evaluate=False)
    return outer * inner


@cache
def _unit(n: int) -> tuple[tuple[tuple[tuple[Atom, int], ...], Fraction, Fraction], ...]:
    """e^{i n π/12} as ((root, its coefficient in the cosine, its coefficient in the sine), …)."""
    parts: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for place, function in enumerate((sympy.cos, sympy.sin)):
        value = sympy.expand(function(n * sympy.pi / 12))
        for root, c in value.as_coefficients_dict().items():
            atoms = () if root == 1 else ((root, 1),)
            parts[atoms][place] += Fraction(int(c.p), int(c.q))
    return tuple((root, cos, sin) for root, (cos, sin) in parts.items())


@cache
def _expanded(angle: Angle) -> tuple[dict[Any, int], dict[Any, int]]:
    """cos and sin of Σ k θ, in powers of each cos θ and at most the first power of each sin θ."""
    real: dict[Any, int] = {(): 1}
    imaginary: dict[Any, int] = {}
    for slot, k in angle:
        cosine, sine = _multiple(abs(k))
        sign = 1 if k > 0 else -1
        c = {_powers(slot, p, 0): x for p, x in cosine.items()}
        s = {_powers(slot, p, 1): sign * x for p, x in sine.items()}
        real, imaginary = (
            _added(_times(real, c), _times(imaginary, s), -1),
            _added(_times(imaginary, c), _times(real, s), 1),
        )
    return real, imaginary


def _powers(slot: int, cosine: int, sine: int) -> tuple[Any, ...]:
    return tuple(((slot, which), e) for which, e in enumerate((cosine, sine)) if e)


def _times(a: Mapping[Any, int], b: Mapping[Any, int]) -> dict[Any, int]:
    return {x + y: p * q for x, p in a.items() for y, q in b.items()}


def _added(a: Mapping[Any, int], b: Mapping[Any, int], sign: int) -> dict[Any, int]:
    found = Counter(a)
    for key, value in b.items():
        found[key] += sign * value
    return {key: value for key, value in found.items() if value}


@cache
def _multiple(k: int) -> tuple[dict[int, int], dict[int, int]]:
    """The coefficients of cos kθ = Σ c_p cos^p θ and sin kθ = sin θ Σ s_p cos^p θ: Chebyshev's
    polynomials T_k and U_{k-1}; k is at least 1."""
    both = chebyshevt_poly(k, polys=True), chebyshevu_poly(k - 1, polys=True)
    cosine, sine = ({p: int(x) for (p,), x in each.terms() if x} for each in both)
    return cosine, sine


def _without_cosine_squares(form: Sum, angle: sympy.Expr) -> Sum:
    """The sum with 1 - sin² for cos² of this angle."""
    cosine, sine = sympy.cos(angle), sympy.sin(angle)
    found: Sum = defaultdict(Fraction)
    for mono, coefficient in form.items():
        exponents = dict(mono)
        halves, odd = divmod(exponents.pop(cosine, 0), 2)
        for j in range(halves + 1):
            c = coefficient * (-1) ** j * sympy.binomial(halves, j).p
            letters = [*exponents.items(), (sine, 2 * j), (cosine, odd)]
            found[_sorted(letters)] += c
    return {mono: c for mono, c in found.items() if c}


def _gathered(form: Sum) -> sympy.Expr:
    """The sum with its most frequent letter factored out, and so on inside and outside the
    bracket."""
    common = _content(form)
    rest = {_divided(mono, common): c for mono, c in form.items()}
    outer = _value(common, Fraction(1))
    if len(rest) == 1:
        ((mono, c),) = rest.items()
        return outer * _value(mono, c)
    frequent = Counter(atom for mono in rest for atom, _ in mono)
    most = min(frequent, key=lambda atom: (-frequent[atom], _is_trig(atom), _key(atom)))
    inside = {mono: c for mono, c in rest.items() if any(atom == most for atom, _ in mono)}
    if len(inside) < 2:
        return _product(outer, sympy.Add(*(_value(mono, c) for mono, c in rest.items())))
    outside = {mono: c for mono, c in rest.items() if mono not in inside}
    total = _gathered(inside) + (_gathered(outside) if outside else 0)
    return _product(outer, total)


def _may_factor(form: Sum) -> bool:
    """Can the sum be a product? Testing this at integer points is much faster than factoring.

    Let x be a letter of the lowest degree. A x + B is a product only if A and B have a common
    factor; A x² + B x + C only if A, B and C have one, or B² - 4 A C is a square.
    """
    degree: Counter[Atom] = Counter()
    for mono in form:
        for atom, e in mono:
            degree[atom] = max(degree[atom], e)
    x = min(degree, key=lambda atom: (degree[atom], _key(atom)))
    if degree[x] > 2:
        return True
    scale = math.lcm(*(c.denominator for c in form.values()))
    for point in range(2):
        draw = random.Random(point)  # noqa: S311  test points, not secrets
        at = {atom: draw.randrange(10**6, 10**7) for atom in sorted(degree, key=_key)}
        parts = [0] * (degree[x] + 1)
        for mono, c in form.items():
            powers = dict(mono)
            power = powers.pop(x, 0)
            parts[power] += int(c * scale) * math.prod(at[a] ** e for a, e in powers.items())
        if math.gcd(*parts) > 10**5:
            continue
        if len(parts) == 2:
            return False
        discriminant = parts[1] ** 2 - 4 * parts[0] * parts[2]
        if discriminant < 0 or math.isqrt(discriminant) ** 2 != discriminant:
            return False
    return True


def _factored(form: Sum) -> sympy.Expr:
    if len(form) == 1:
        ((mono, coefficient),) = form.items()
        return _value(mono, coefficient)
    common = _content(form)
    rest = {_divided(mono, common): c for mono, c in form.items()}
    outer = _value(common, Fraction(1))
    if all(c < 0 for c in rest.values()):
        return _product(sympy.S.NegativeOne, _factored({mono: -c for mono, c in form.items()}))
    plain = sympy.Add(*(_value(mono, c) for mono, c in rest.items()))
    degree = max(sum(e for _, e in mono) for mono in rest)
    if degree == 1 or len(form) > MOST_FACTORED or not _may_factor(rest):
        numbers = {abs(c) for c in rest.values()}
        if len(numbers) == 1 and numbers != {1}:
            (size,) = numbers
            plain = sympy.Add(*(_value(mono, c / size) for mono, c in rest.items()))
            return _product(outer * sympy.Rational(size.numerator, size.denominator), plain)
        return _product(outer, plain)
    atoms = sorted({a for mono in rest for a, _ in mono}, key=_key)
    R, *_ = polynomial_ring([f"x{i}" for i in range(len(atoms))], sympy.QQ)
    place = {atom: i for i, atom in enumerate(atoms)}
    terms = {}
    for mono, c in rest.items():
        exponents = [0] * len(atoms)
        for atom, e in mono:
            exponents[place[atom]] = e
        terms[tuple(exponents)] = sympy.QQ(c.numerator, c.denominator)
    coefficient, factors = R.from_dict(terms).factor_list()

    def written(poly: Any) -> sympy.Expr:
        return sympy.Add(
            *(
                sympy.Mul(
                    sympy.Rational(int(c.numerator), int(c.denominator)),
                    *(a**e for a, e in zip(atoms, mono, strict=True)),
                )
                for mono, c in poly.terms()
            )
        )

    number = sympy.Rational(int(coefficient.numerator), int(coefficient.denominator))
    pieces = [written(poly) ** e for poly, e in factors]
    whole = sympy.Mul(outer, *pieces)
    factored = _product(number, whole) if number != 1 else whole
    return min(factored, _product(outer, plain), key=cost)


@cache
def cost(expression: sympy.Expr) -> float:
    """The weighted number of operations and letters; a cosine of a plain sum of angles counts as a
    letter (c23)."""
    if _is_trig(expression):
        angle = expression.args[0]
        multiples = angle.as_coefficients_dict().values()
        return 1.5 if all(k == 1 for k in multiples) else 3.5
    if expression.is_Atom:
        return 0.5 if expression == -1 else 1.0
    if expression.is_Pow:
        return 0.8 + cost(expression.base)
    parts: Sequence[sympy.Expr] = expression.args
    joined = 0.7 if expression.is_Mul else 1.0
    return joined * (len(parts) - 1) + sum(cost(part) for part in parts)


def rounded(expression: sympy.Expr) -> sympy.Expr:
    """The expression with constants rounded to double precision if they have too many decimals."""
    return expression.xreplace({x: shown(x) for x in expression.atoms(sympy.Rational)})


def shown(number: sympy.Rational) -> sympy.Expr:
    """The number, rounded to double precision if it has too many decimals."""
    return number if number.q < 10**DIGITS else sympy.Float(repr(float(number)), 17)
