# SPDX-License-Identifier: Apache-2.0
"""How symbols are written as text, LaTeX and MathML; each has one name.

Text has SymPy's names (theta1, theta1_d, I_xx1), which are also those in Python. cos(q2 + q3) is
abbreviated to c23, after the positions of the joints, unless the description has a symbol like c23
or there are ten joints or more, whose numbers could not be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from types import MappingProxyType
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.str import StrPrinter

_LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
GREEK = tuple(_LETTERS.split(" "))
# the Greek letters come first: beta is no b with the index eta
_PARTS = re.compile(
    r"(?P<base>"
    + "|".join(GREEK)
    + r"|[A-Za-z])(?P<below>_[A-Za-z0-9]+|\d*|[a-z]{1,2}\d*)(?P<zero>_0)?"
)
_ENTRY = re.compile(
    r"(?:b(?P<layer>\d+)_)?(?:D(?P<column>\d+)_|(?P<weight>g)_)?"
    r"(?P<base>[A-Za-z]|"
    + "|".join(GREEK)
    + r")(?:_(?P<of>[efr]))?_(?P<below>[xyz]{1,2}\d+)(?P<more>_*)"
)
"""A name from `entry_names`, with the prefix and suffix that `listed` may add"""
_MATRIX = re.compile(r"(?P<rate>d?)(?P<base>Gamma|[A-Za-z])(?:_(?P<below>\w+))?")
"""A matrix: T, its rate dT, D_q of the legs"""
_ENTRY_TEXT = re.compile(r"(?P<matrix>[A-Za-z]\w*)(?P<places>(?:\[\d+\])+)")
"""The name of an entry as text; see `entry`"""
_RATE = re.compile(r"(?P<name>.+?)_(?P<dots>d{1,2})")
_SPECIAL = {"_": r"\_", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
_WORDS = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "°": r"\ensuremath{^\circ}", "π": r"\ensuremath{\pi}", "–": "--", "…": r"\ldots{}",
    "²": r"\ensuremath{^2}", "·": r"\ensuremath{\cdot}",
    "º": r"\textsuperscript{o}", "ª": r"\textsuperscript{a}",
}  # fmt: skip
_ACCENTED = "".join(map(chr, range(0xC0, 0x100))).translate(dict.fromkeys(map(ord, "×÷ÐðÞþ")))
"""The letters of Latin-1 that LaTeX's fonts have"""

AXES = "xyz"


def entry_names(quantity: str, body: int, shape: tuple[int, ...]) -> list[str]:
    """The names of the entries of a vector or matrix, such as omega_x2.

    Args:
        quantity: the name of the vector or matrix.
        body: the index of its body, from 0; the names count from 1.
        shape: (3,) or (3, 3).
    """
    if len(shape) == 1:
        return [f"{quantity}_{axis}{body + 1}" for axis in AXES]
    return [f"{quantity}_{row}{column}{body + 1}" for row in AXES for column in AXES]


def entry(matrix: str, places: tuple[int, ...]) -> tuple[str, str]:
    """The name of a matrix's entry, as text and in LaTeX.

    Args:
        matrix: its name, such as T, or dT for its rate.
        places: the entry's row and column, or its row in a vector, from 1.
    """
    text = matrix + "".join(f"[{place}]" for place in places)
    tex = matrix_in_tex(matrix)
    tex = f"({tex})" if "_" in tex else tex
    return text, f"{tex}_{{{','.join(map(str, places))}}}"


def matrix_in_tex(matrix: str) -> str:
    """The name of a matrix in LaTeX: D_{q}, \\dot{T}."""
    found = _MATRIX.fullmatch(matrix)
    if found is None:
        return words(matrix)
    base = f"\\{found['base']}" if len(found["base"]) > 1 else found["base"]
    letter = rf"\dot{{{base}}}" if found["rate"] else base
    return letter + (f"_{{{words(found['below'])}}}" if found["below"] else "")


class Names:
    """The names of one model's symbols.

    Args:
        coordinates: the symbols of the joints, in order.
        derived: the symbols of their rates and accelerations.
        parameters: the symbols of the parameters.
        entries: (matrix, indices from 1) of each symbol that is an entry of a matrix, by its name.
    """

    def __init__(
        self,
        coordinates: Iterable[sympy.Symbol] = (),
        derived: Iterable[sympy.Symbol] = (),
        parameters: Iterable[sympy.Symbol] = (),
        entries: Mapping[str, tuple[str, tuple[int, ...]]] = MappingProxyType({}),
    ):
        self.coordinates = tuple(coordinates)
        self.derived = {str(symbol) for symbol in derived}
        self.entries = entries
        taken = {str(x) for x in (*self.coordinates, *parameters)}
        clear = len(self.coordinates) < 10
        self.short = clear and not any(re.fullmatch(r"[cs]\d+", name) for name in taken)
        self.used: dict[str, sympy.Expr] = {}
        """The abbreviations used so far"""
        self._text, self._latex, self._mathml = _Text(self), _Latex(self), _MathML(self)

    def abbreviation(self, function: sympy.Expr) -> str | None:
        """The short name of a sine or cosine, c23 for cos(q2 + q3); None: it has none."""
        angle = function.args[0]
        multiples = angle.as_coefficients_dict()
        places = [self.coordinates.index(x) + 1 for x in multiples if x in self.coordinates]
        plain = len(places) == len(multiples) and all(k == 1 for k in multiples.values())
        if not (self.short and plain):
            return None
        letter = "c" if isinstance(function, sympy.cos) else "s"
        name = letter + "".join(map(str, sorted(places)))
        self.used[name] = function
        return name

    def text(self, expression: Any) -> str:
        """The expression as text, which is valid Python except for the abbreviations."""
        return str(self._text.doprint(sympy.sympify(expression)))

    def latex(self, expression: Any) -> str:
        """The expression in LaTeX, with brackets that may contain line breaks."""
        written = str(self._latex.doprint(sympy.sympify(expression)))
        return written.replace(r"\left(", r"\bigl(").replace(r"\right)", r"\bigr)")

    def mathml(self, expression: Any) -> str:
        """The expression in presentation MathML, without the outer element."""
        return str(self._mathml.doprint(sympy.sympify(expression)))

    def equation_name(self, text: str) -> str:
        """The name of an equation in HTML: that of a matrix's entry, such as D[1][2], as MathML."""
        found = _ENTRY_TEXT.fullmatch(text)
        if found is None:
            return f"<i>{escape(text)}</i>"
        places = re.findall(r"\d+", found["places"])
        return f"<math>{self._mathml.entry(found['matrix'], places).toxml()}</math>"

    def symbol(self, name: str) -> str:
        """A symbol's name in LaTeX: I_{xx1}, \\dot{\\theta}_{1}."""
        if name in self.entries:
            return entry(*self.entries[name])[1]
        name, dots = self.undotted(name)
        return symbol(name, ("", r"\dot", r"\ddot")[dots])

    def undotted(self, name: str) -> tuple[str, int]:
        """(the name of what this is the rate or the acceleration of, the number of dots): q1_d has
        one, any name that is not a rate has none."""
        rate = _RATE.fullmatch(name) if name in self.derived else None
        return (rate["name"], len(rate["dots"])) if rate else (name, 0)


def symbol(name: str, dots: str = "") -> str:
    """A name in LaTeX; `dots` is a command such as \\dot for its letter. A name that is a word is
    kept whole."""
    found = divided(name)
    base, below, above = found or (rf"\mathit{{{words(name)}}}", "", "")
    if found and len(base) > 1:
        base = rf"\{base}"
    letter = f"{dots}{{{base}}}" if dots else base
    return letter + "".join(f"{mark}{{{x}}}" for mark, x in (("^", above), ("_", below)) if x)


def divided(name: str) -> tuple[str, str, str] | None:
    """(letter, index, superscript) of a name; None for a name that is a word.

    The superscript of an intermediate value is r for rotors, e and f for the two frames of a loop,
    (2) for the second column of D, g for gravity alone, and [2] for the second bodies on the links.
    """
    if found := _PARTS.fullmatch(name):
        return found["base"], found["below"].lstrip("_") + (",0" if found["zero"] else ""), ""
    if found := _ENTRY.fullmatch(name):
        above = found["of"] or ""
        above += f"({found['column']})" if found["column"] else found["weight"] or ""
        above += f"[{found['layer']}]" if found["layer"] else ""
        return found["base"], found["below"], above + "'" * len(found["more"])
    return None


def words(text: str) -> str:
    """Text for LaTeX, with special characters escaped and those that its fonts lack removed."""
    escaped = "".join({**_SPECIAL, **_WORDS}.get(x, x) for x in text)
    return "".join(x for x in escaped if x.isascii() or x in _ACCENTED)


def _decimal(number: sympy.Rational) -> str | None:
    """1.25 for 5/4, if the decimal fraction is finite."""
    q = int(number.q)
    for factor in (2, 5):
        while q % factor == 0:
            q //= factor
    if q != 1 or abs(int(number.q)) < 10:
        return None
    return repr(float(number)) if sympy.Rational(repr(float(number))) == number else None


class _Abbreviating:
    names: Names

    def _print_cos(self, function: sympy.Expr, exp: Any = None) -> Any:
        return self._trigonometric(function, exp)

    _print_sin = _print_cos

    def _trigonometric(self, function: sympy.Expr, exp: Any) -> str:
        raise NotImplementedError


class _Text(_Abbreviating, StrPrinter):  # type: ignore[misc]
    def __init__(self, names: Names):
        super().__init__()
        self.names = names

    def _print_Symbol(self, symbol: sympy.Symbol) -> str:
        name = str(symbol.name)
        return entry(*self.names.entries[name])[0] if name in self.names.entries else name

    def _trigonometric(self, function: sympy.Expr, exp: Any) -> str:  # noqa: ARG002
        return self.names.abbreviation(function) or str(super()._print_Function(function))

    def _print_Rational(self, number: sympy.Rational) -> str:
        return _decimal(number) or str(super()._print_Rational(number))


class _Latex(_Abbreviating, LatexPrinter):  # type: ignore[misc]
    def __init__(self, names: Names):
        super().__init__({"fold_short_frac": False})
        self.names = names

    def _trigonometric(self, function: sympy.Expr, exp: Any) -> str:
        short = self.names.abbreviation(function)
        power = "" if exp is None else f"^{{{exp}}}"
        if short is None:
            name = "cos" if isinstance(function, sympy.cos) else "sin"
            return rf"\{name}{power}({self._print(function.args[0])})"
        return f"{short[0]}_{{{short[1:]}}}{power}"

    def _print_Mul(self, product: sympy.Mul) -> str:
        # SymPy's parentheses around a negative sum are not those that may contain line breaks
        if product.could_extract_minus_sign() and (-product).is_Add:
            return rf"- \left({self._print(-product)}\right)"
        return str(super()._print_Mul(product))

    def _print_Symbol(self, symbol: sympy.Symbol, style: str = "plain") -> str:  # noqa: ARG002
        return self.names.symbol(symbol.name)

    def _print_Rational(self, number: sympy.Rational) -> str:
        return _decimal(number) or str(super()._print_Rational(number))


class _MathML(_Abbreviating, MathMLPresentationPrinter):  # type: ignore[misc]
    def __init__(self, names: Names):
        super().__init__()
        self.names = names

    def doprint(self, expression: Any) -> str:
        return str(self._print(expression).toxml())

    def _trigonometric(self, function: sympy.Expr, exp: Any) -> Any:  # noqa: ARG002
        short = self.names.abbreviation(function)
        if short is None:
            return super()._print_Function(function)
        return self._indexed(short[0], short[1:])

    def _indexed(self, base: str, below: str, dots: str = "", above: str = "") -> Any:
        letter = self._element("mi", base)
        if dots:
            letter = self._element("mover", letter, self._element("mo", dots))
        kind = ("msub" if below else "") + ("sup" if above and below else "msup" if above else "")
        if not kind:
            return letter
        indices = [self._element("mi", text) for text in (below, above) if text]
        return self._element(kind, letter, *indices)

    def _element(self, kind: str, *inner: Any) -> Any:
        element = self.dom.createElement(kind)
        for each in inner:
            element.appendChild(self.dom.createTextNode(each) if isinstance(each, str) else each)
        return element

    def _print_Symbol(self, symbol: sympy.Symbol, style: str = "plain") -> Any:  # noqa: ARG002
        if symbol.name in self.names.entries:
            return self.entry(*self.names.entries[symbol.name])
        name, count = self.names.undotted(symbol.name)
        found, dots = divided(name), ("", "˙", "¨")[count]
        if found is None:
            return self._apart(self._indexed(name, "", dots))
        base, below, above = found
        if len(base) > 1:
            base = self._greek(base)
        return self._indexed(base, below, dots, above)

    def entry(self, matrix: str, places: Iterable[Any]) -> Any:
        """An entry of a matrix."""
        index = self._element("mi", ",".join(map(str, places)))
        return self._element("msub", self._matrix(matrix), index)

    def _matrix(self, name: str) -> Any:
        """A matrix's name, in parentheses if it has an index."""
        found = _MATRIX.fullmatch(name)
        base, below = (found["base"], found["below"] or "") if found else (name, "")
        base = self._greek(base) if base in GREEK else base
        named = self._indexed(base, below, "˙" if found and found["rate"] else "")
        marks = (self._element("mo", mark) for mark in "()")
        return self._element("mrow", next(marks), named, next(marks)) if below else named

    def _apart(self, word: Any) -> Any:
        """The word with a little space on both sides, as adjacent words would run together."""
        spaces = [self._element("mspace"), self._element("mspace")]
        for space in spaces:
            space.setAttribute("width", "0.2em")
        return self._element("mrow", spaces[0], word, spaces[1])

    @staticmethod
    def _greek(name: str) -> str:
        import unicodedata

        kind = "CAPITAL" if name[0].isupper() else "SMALL"
        spelled = {"LAMBDA": "LAMDA"}.get(name.upper(), name.upper())
        return unicodedata.lookup(f"GREEK {kind} LETTER {spelled}")

    def _print_Rational(self, number: sympy.Rational) -> Any:
        decimal = _decimal(number)
        if decimal is None:
            return super()._print_Rational(number)
        return self._element("mn", decimal)
