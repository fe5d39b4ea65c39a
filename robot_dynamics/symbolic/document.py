# SPDX-License-Identifier: Apache-2.0
"""A derivation as a document of definitions, formulas and values, printed in four formats."""

from __future__ import annotations

import html as escaping
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from ..mechanism.shown import html_table, markdown_table, text_table
from .names import GREEK, Names, divided, words

WIDEST = 100
"""Largest number of characters in a line of text; a wider matrix is written entry by entry"""
WIDEST_TEX = 90
"""Width of one line of a LaTeX equation, in characters"""
LINES = 30
"""Largest number of lines in one align*, which TeX typesets as a whole"""


@dataclass(frozen=True)
class Formula:
    """The same formula as text and as LaTeX."""

    text: str
    tex: str


@dataclass(frozen=True)
class Equation:
    """An equation name = value."""

    name: Formula
    value: Any
    """An expression or a matrix"""


@dataclass(frozen=True)
class Section:
    """One step: a title, the formula that defines a quantity, and its values."""

    title: str
    formula: Formula | None = None
    equations: Sequence[Equation] = ()
    table: Sequence[Sequence[str]] = ()
    """Rows of text; the first one is the header"""
    zeros: bool = False
    """True: list the values that are zero, in one line; False: leave them out"""
    words: str = ""


def step(title: str, text: str, tex: str, equations: Iterable[Equation]) -> Section:
    """A section with a formula, as text and in LaTeX, and its values, zeros included."""
    return Section(title, Formula(text, tex), list(equations), zeros=True)


@dataclass(frozen=True)
class Document:
    """What is printed: a title, sections, the parameters' values and notes."""

    title: str
    sections: Sequence[Section]
    names: Names
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def text(self) -> str:
        """The document as plain text."""
        lines = [self.title, ""]
        for section in self.sections:
            lines += [*_text_section(section, self.names), ""]
        lines += self._legend()
        if self.parameters:
            lines += ["with"]
            lines += [f"  {symbol} = {value:.12g}" for symbol, value in self.parameters.items()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines).rstrip("\n")

    def _legend(self) -> list[str]:
        used = [f"{name} = {function}" for name, function in sorted(self.names.used.items())]
        return [f"where {', '.join(used)}", ""] if used else []

    def latex(self, *, whole: bool = False) -> str:
        """The document in LaTeX, in align* environments of a page or less.

        Args:
            whole: a complete file that can be compiled, instead of a part of one.
        """
        lines: list[str] = []
        several = len(self.sections) > 1
        for section in self.sections:
            if several or whole:
                lines.append(rf"\paragraph{{{_tex_words(section.title, self.names)}}}")
            lines += _tex_section(section, self.names)
        used = sorted(self.names.used)
        if used:
            shown = ", ".join(
                f"${x[0]}_{{{x[1:]}}} = \\{'cos' if x[0] == 'c' else 'sin'}"
                f"({self.names.latex(self.names.used[x].args[0])})$"
                for x in used
            )
            lines.append(f"\\noindent where {shown}.")
        lines += [rf"\noindent {words(note)}." for note in self.notes]
        if not whole:
            return "\n".join(lines)
        return "\n".join(
            [
                r"\documentclass[a4paper]{article}",
                r"\usepackage{amsmath}",
                r"\usepackage[margin=2cm]{geometry}",
                r"\allowdisplaybreaks",
                r"\setcounter{MaxMatrixCols}{40}",
                rf"\title{{{words(self.title)}}}",
                r"\date{}",
                r"\begin{document}",
                r"\maketitle",
                r"\raggedright",
                *lines,
                *self._tex_parameters(),
                r"\end{document}",
                "",
            ]
        )

    def _tex_parameters(self) -> Iterator[str]:
        rows = [
            f"${self.names.latex(symbol)} = {_tex_number(value)}$"
            for symbol, value in self.parameters.items()
        ]
        if rows:
            yield r"\paragraph{Parameters (SI units)}"
            yield ", ".join(rows) + "."

    def _table(self) -> list[list[str]]:
        rows = ([str(symbol), f"{value:.12g}"] for symbol, value in self.parameters.items())
        return [["symbol", "value"], *rows]

    def markdown(self) -> str:
        """The document in Markdown, with formulas between $$ as GitHub and Jupyter render them."""
        lines = [f"# {self.title}", ""]
        for section in self.sections:
            lines += [f"## {section.title}", ""]
            lines += [section.words, ""] if section.words else []
            if section.formula:
                lines += ["$$", section.formula.tex, "$$", ""]
            lines += markdown_table(section.table)
            for block in _tex_blocks(section, self.names):
                lines += ["$$", r"\begin{aligned}", *block, r"\end{aligned}", "$$", ""]
            lines += [f"{line}\n" for line in _zeros(section)]
        lines += self._legend()
        if self.parameters:
            lines += ["## Parameters", "", *markdown_table(self._table())]
        lines += [f"*{note}*\n" for note in self.notes]
        return "\n".join(lines).rstrip("\n") + "\n"

    def html(self, *, whole: bool = True) -> str:
        """The document in HTML with MathML, which browsers render without a script.

        Args:
            whole: a complete page, instead of only the content of its body.
        """
        said = escaping.escape
        body = [f"<h1>{said(self.title)}</h1>"]
        for section in self.sections:
            body.append(f"<h2>{said(section.title)}</h2>")
            if section.words:
                body.append(f"<p>{said(section.words)}</p>")
            if section.formula:
                body.append(f"<p><i>{said(section.formula.text)}</i></p>")
            if section.table:
                body.append(html_table(section.table))
            for equation in _shown(section):
                name = self.names.equation_name(equation.name.text)
                value = self.names.mathml(equation.value)
                body.append(f"<p>{name} <math><mo>=</mo>{value}</math></p>")
            body += [f"<p>{said(line)}</p>" for line in _zeros(section)]
        body += [f"<p>{said(line)}</p>" for line in self._legend() if line]
        if self.parameters:
            body.append("<h2>Parameters</h2>" + html_table(self._table()))
        body += [f"<p>{said(note)}</p>" for note in self.notes]
        joined = "\n".join(body)
        if not whole:
            return joined
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            f"<title>{said(self.title)}</title></head>\n<body>\n{joined}\n</body></html>\n"
        )


class Documented(ABC):
    """Base of models that can be printed as a document."""

    @abstractmethod
    def document(self, *, steps: bool = False) -> Document:
        """The equations as a document.

        Args:
            steps: also show how they are derived.
        """

    def text(self) -> str:
        """The equations as plain text: one line for each torque and for each entry of a matrix."""
        return self.document().text()

    def latex(self) -> str:
        """The equations in LaTeX, in align* environments."""
        return self.document().latex()

    def _repr_html_(self) -> str:
        """For Jupyter, and for pages that do not render LaTeX."""
        return self.document().html(whole=False)


def is_nothing(value: Any) -> bool:
    """Is an expression, or every entry of a matrix, zero?"""
    if isinstance(value, sympy.MatrixBase):
        return all(entry == 0 for entry in value)
    return bool(value == 0)


def _shown(section: Section) -> list[Equation]:
    return [each for each in section.equations if not is_nothing(each.value)]


def _zeros(section: Section) -> list[str]:
    """One line that lists everything that is zero."""
    if not section.zeros:
        return []
    names = [each.name.text for each in section.equations if is_nothing(each.value)]
    return [f"{' = '.join(names)} = 0"] if names else []


def _text_section(section: Section, names: Names) -> Iterator[str]:
    if section.title:
        yield section.title
    if section.words:
        yield f"  {section.words}"
    if section.formula:
        yield f"  {section.formula.text}"
    if section.table:
        yield from text_table(section.table)
    for equation in _shown(section):
        yield from _text_equation(equation, names)
    yield from (f"  {line}" for line in _zeros(section))


def _text_equation(equation: Equation, names: Names) -> Iterator[str]:
    name, value = equation.name.text, equation.value
    if not isinstance(value, sympy.MatrixBase):
        yield f"  {name} = {names.text(value)}"
        return
    cells = [[names.text(value[i, j]) for j in range(value.cols)] for i in range(value.rows)]
    if value.cols == 1:  # a vector, on one line
        line = f"  {name} = ({', '.join(row[0] for row in cells)})"
        if len(line) <= WIDEST:
            yield line
            return
    widths = [max(len(row[j]) for row in cells) for j in range(value.cols)]
    if value.cols > 1 and len(name) + sum(widths) + 2 * len(widths) + 9 <= WIDEST:
        middle = (value.rows - 1) // 2
        for i, row in enumerate(cells):
            head = f"  {name} = " if i == middle else " " * (len(name) + 5)
            yield (
                head + "[ " + "  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) + " ]"
            )
        return
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if cell != "0":
                place = f"[{i + 1}]" + (f"[{j + 1}]" if value.cols > 1 else "")
                yield f"  {name}{place} = {cell}"


def _tex_section(section: Section, names: Names) -> Iterator[str]:
    if section.words:
        yield _tex_words(section.words, names)
    if section.formula:
        # one formula on each line: together they would be wider than the page
        each = re.split(r",\s*\\quad\s+", section.formula.tex)
        yield r"\begin{gather*} " + r", \\ ".join(each) + r" \end{gather*}"
    if section.table:
        yield r"\begin{center}\begin{tabular}{" + "l" * len(section.table[0]) + "}"
        yield from (" & ".join(map(_tex_cell, row)) + r" \\" for row in section.table)
        yield r"\end{tabular}\end{center}"
    for block in _tex_blocks(section, names):
        yield r"\begin{align*}"
        yield from (f"  {line}" for line in block)
        yield r"\end{align*}"
    nothing = [each.name.tex for each in section.equations if is_nothing(each.value)]
    if section.zeros and nothing:
        yield "\\noindent " + ", ".join(f"${name} = 0$" for name in nothing) + "."


def _tex_words(text: str, names: Names) -> str:
    """The text with indexed letters, their rates, and a single letter at its end, set as
    mathematics."""
    found = ""
    for piece in re.split(r"(\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|(?<= )[A-Za-z]$)", text):
        is_letter = len(piece) == 1 or "_" in piece
        is_symbol = is_letter and divided(names.undotted(piece)[0])
        found += f"${names.symbol(piece)}$" if is_symbol else words(piece)
    return found


def _tex_cell(cell: str) -> str:
    """A table's cell; letters, numbered letters, multiples of pi and sums of these and of numbers
    are set as mathematics."""
    terms = re.split(r" ([+-]) ", cell)
    found = [_tex_term(each, len(terms) > 1) for each in terms[::2]]
    if not all(found):
        return words(cell)
    terms[::2] = found
    return "$" + " ".join(terms) + "$"


def _tex_term(term: str, is_in_a_sum: bool) -> str:
    """The term as mathematics; empty: it is none."""
    if re.fullmatch(r"-?(\d+\*)?pi(/\d+)?", term):
        return term.replace("*", "").replace("pi", r"\pi ").replace(" /", "/").strip()
    if is_in_a_sum and re.fullmatch(r"-?\d+(\.\d+)?", term):
        return term
    found = re.fullmatch(rf"({'|'.join(GREEK)}|[A-Za-z])(\d*)", term)
    if found is None:
        return ""
    letter, number = found.groups()
    letter = f"\\{letter}" if len(letter) > 1 else letter
    return f"{letter}_{{{number}}}" if number else letter


def _tex_blocks(section: Section, names: Names) -> Iterator[list[str]]:
    """The lines of each align*; the last line of each has no line end."""
    block: list[str] = []
    for equation in _shown(section):
        for line in _tex_equation(equation, names):
            block.append(line + r" \\")
            if len(block) >= LINES:
                yield _ended(block)
                block = []
    if block:
        yield _ended(block)


def _ended(block: list[str]) -> list[str]:
    return [*block[:-1], block[-1].removesuffix(r" \\")]


def _tex_equation(equation: Equation, names: Names) -> list[str]:
    name, value = equation.name.tex, equation.value
    if not isinstance(value, sympy.MatrixBase):
        return broken(f"{name} &= ", names.latex(value))
    rows = [[names.latex(value[i, j]) for j in range(value.cols)] for i in range(value.rows)]
    if max(_width(" ".join(row)) for row in rows) <= 3 * WIDEST_TEX // 4:
        inner = r" \\ ".join(" & ".join(row) for row in rows)
        return [rf"{name} &= \begin{{bmatrix}} {inner} \end{{bmatrix}}"]
    lines = []
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if cell != "0":
                place = f"{i + 1}" + (f",{j + 1}" if value.cols > 1 else "")
                lines += broken(rf"\left[{name}\right]_{{{place}}} &= ", cell)
    return lines


def _width(tex: str) -> int:
    """The approximate printed width in characters, with space around + and -."""
    signs = 2 * len(re.findall(" [+-] ", tex))
    printed = re.sub(r"\\_", "-", tex)
    printed = re.sub(r"\\(sin|cos)", r"\1", printed)
    return len(re.sub(r"\\[a-zA-Z]+|[{}\\ _^]", "", printed)) + signs


def _terms(tex: str, *, within: bool = True) -> list[str]:
    """The pieces of a sum, each with its sign, cut before + and - outside braces, the parentheses
    of functions and, unless `within`, those of sums."""
    terms, depth = [""], 0
    for piece in re.split(r"( [+-] |\\bigl\(|\\bigr\)|[{}()])", tex):
        if not (within and piece.startswith(r"\big")):
            depth += (piece[-1:] in ("{", "(")) - (piece[-1:] in ("}", ")"))
        if piece in (" + ", " - ") and depth == 0:
            terms.append("")
        terms[-1] += piece
    return terms


def _unfolded(term: str) -> str:
    """The term, with a fraction too wide for one line as 1/denominator · (numerator), which can be
    broken into lines."""
    at = term.find(r"\frac{")
    if at < 0 or _width(term) <= WIDEST_TEX:
        return term
    groups: list[str] = []
    depth, begin = 0, at + len(r"\frac")
    for k in range(begin, len(term)):
        depth += (term[k] == "{") - (term[k] == "}")
        if depth == 0 and len(groups) < 2:
            groups.append(term[begin : k + 1])
            begin = k + 1
    numerator, denominator = groups
    return rf"{term[:at]}\frac{{1}}{denominator} \bigl({numerator[1:-1]}\bigr){term[begin:]}"


def broken(head: str, tex: str) -> list[str]:
    """The equation as lines that fit the page, broken before + and -: within parentheses only if
    these are too wide for one line."""
    terms = []
    for term in _terms(tex, within=False):
        wide = _width(term) > WIDEST_TEX
        terms += [x for each in _terms(term) for x in _terms(_unfolded(each))] if wide else [term]
    lines, width = [head + terms[0]], _width(head + terms[0])
    for term in terms[1:]:
        width += _width(term)
        if width > WIDEST_TEX:
            lines.append(r"&\quad {}")
            width = _width(head) + _width(term)
        lines[-1] += term
    return [line.rstrip() for line in lines]


def _tex_number(value: float) -> str:
    text = f"{value:.12g}"
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
