# SPDX-License-Identifier: Apache-2.0
"""What is public has a docstring, and the pages refer to things that exist."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from robot_dynamics.app.cli import cli

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "robot_dynamics").rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public(node: ast.Module | Defined, name: str) -> Iterator[tuple[str, Defined | ast.Module]]:
    """The public names in a module or class, and itself; not those inside functions."""
    yield name, node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for inner in node.body:
        if isinstance(inner, Defined) and not inner.name.startswith("_"):
            decorators = [ast.unparse(each) for each in inner.decorator_list]
            if not any(each.endswith((".setter", "overload")) for each in decorators):
                yield from public(inner, f"{name}.{inner.name}")


@dataclass(frozen=True)
class Described:
    """What the tests ask of a definition: syntax trees of everything would fill the memory."""

    docstring: str | None
    bases: frozenset[str] | None
    """The names of a class's; None: it is no class"""

    @classmethod
    def of(cls, node: ast.Module | Defined) -> Described:
        bases = None
        if isinstance(node, ast.ClassDef):
            found = (ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases)
            bases = frozenset(found)
        return cls(ast.get_docstring(node), bases)


@pytest.fixture(scope="module")
def names() -> dict[str, Described]:
    return {
        name: Described.of(node)
        for path in SOURCES
        for name, node in public(ast.parse(path.read_text()), str(path.relative_to(ROOT)))
    }


def test_every_public_name_has_a_docstring(names):
    """Its own, or that of the method which it overrides."""
    classes = {name.split(".")[-1]: name for name, each in names.items() if each.bases is not None}

    def documented(name: str) -> bool:
        if name in names and names[name].docstring:
            return True
        owner, _, method = name.rpartition(".")
        parent = names.get(owner)
        return parent is not None and any(
            documented(f"{classes[base]}.{method}")
            for base in (parent.bases or frozenset()) & set(classes)
        )

    assert len(names) > 500
    assert [name for name in names if not documented(name)] == []


def test_docstrings_are_sentences_that_end(names):
    """The first line is whole: it does not run on into an empty one."""
    for name, each in names.items():
        text = each.docstring or ""
        assert text == text.strip(), name
        assert "  " not in text.split("\n")[0], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, section = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if section:
            titles = re.findall(r"^#+ (.+)$", found.read_text(), re.MULTILINE)
            assert section in {anchor(title) for title in titles}, target


def anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_every_page_is_in_the_index():
    index = (ROOT / "README.md").read_text()
    for page in PAGES[2:]:
        assert f"](docs/{page.name})" in index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names_exist(page):
    for name in set(re.findall(r"\b(?:robot_dynamics|rd)(?:\.[A-Za-z_]\w*)+", page.read_text())):
        parts = name.split(".")
        if parts[-1] in {"h", "c", "launch"}:  # a file
            continue
        found = importlib.import_module("robot_dynamics")
        for place, part in enumerate(parts[1:], start=1):
            if not hasattr(found, part):
                module = ".".join(["robot_dynamics", *parts[1 : place + 1]])
                found = importlib.import_module(module)
            else:
                found = getattr(found, part)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository_exist(page):
    """`config/polar.yaml`, `benchmarks/speed.py`, `mechanism/base_parameters.py`, …"""
    folders = "benchmarks|config|docs|launch|robot_dynamics|test|urdf|mechanism|dynamics|codegen"
    for name in re.findall(rf"(?<![\w/])((?:{folders})/[\w/.\-]+\.\w+)", page.read_text()):
        places = (ROOT / name, ROOT / "robot_dynamics" / name, page.parent / name)
        assert any(path.exists() for path in places), name


PYTHON = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for folder in ("robot_dynamics", "benchmarks", "docs", "examples", "launch", "test")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "QUALITY_DECLARATION.md", ROOT / "benchmarks/README.md"],
    ids=lambda page: f"{page.parent.name}/{page.name}",
)
def test_python_files_in_code_exist(page):
    """`load.py`, `geometry/free_platform.py`, `robot.launch.py`: the end of a path, at least."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    for name in re.findall(r"[\w./-]*\w\.py\b", "\n".join(spans)):
        assert any(path.endswith(f"/{name}") for path in PYTHON), name


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@pytest.mark.parametrize("name", commands())
def test_examples_of_commands_can_be_run(name):
    """Every `--help` has some, and they parse."""
    command = commands()[name]
    assert command.examples
    for example in command.examples:
        first, *words = shlex.split(example)
        assert first == name
        command.make_context(first, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_commands(page):
    """`robot_dynamics COMMAND --option` knows both."""
    known = commands()
    pattern = r"(?<!import )(?<!ros2 run )(?<!ros2 launch )\brobot_dynamics ([a-z]+\b[^\n`|#;&]*)"
    for line in re.findall(pattern, code(page.read_text())):
        command, *words = shlex.split(line.replace("'", ""))
        assert command in known, line
        options = [word.strip("[]").split("=")[0] for word in words if re.match(r"\[?--\w", word)]
        assert set(options) <= {name for each in known[command].params for name in each.opts}, line


def test_every_command_is_in_the_readme():
    """With one line, as in `robot_dynamics --help`."""
    text = (ROOT / "README.md").read_text()
    assert [name for name in commands() if f"| `robot_dynamics {name}" not in text] == []


def code(text: str) -> str:
    """What stands in code: fenced, indented or quoted, line by line; continued lines are one."""
    text = text.replace("\\\n", " ")
    fenced = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    indented = re.findall(r"^ {4}(.+)$", text, re.MULTILINE)
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return "\n".join([*fenced, *indented, *quoted])
