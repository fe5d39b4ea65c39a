# SPDX-License-Identifier: Apache-2.0
"""What the pages show runs as it stands, and the site builds without a warning."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from robot_dynamics.app.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {"tutorial_parallel.md"}
"""Its files are on the page; `test_tutorial_parallel.py` runs it"""


def blocks(page: Path, *languages: str) -> list[str]:
    pattern = rf"^```(?:{'|'.join(languages)})\n(.*?)^```"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.name not in ELSEWHERE],
    ids=lambda page: page.name,
)
def test_python_blocks_run_one_after_the_other(page, monkeypatch):
    if page.name == "coming_from.md":
        pytest.importorskip("pinocchio", reason="Pinocchio is not installed: extra `dev`")
    monkeypatch.chdir(ROOT)
    names = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def commands(page: Path) -> list[str]:
    """`$ robot_dynamics …` in consoles; with an output folder that need not exist."""
    lines = "\n".join(blocks(page, "console")).replace("\\\n", " ")
    return re.findall(r"^\$ robot_dynamics (.*)$", lines, re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page) and page.name not in ELSEWHERE],
    ids=lambda page: page.name,
)
def test_console_blocks_run(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for command in commands(page):
        assert main(shlex.split(command)) == 0, capsys.readouterr().err


@pytest.mark.timeout(1200)
def test_the_site_builds_without_a_warning(tmp_path):
    """The notebooks run on the way."""
    for name in ("sphinx", "myst_nb", "furo", "sphinx_click"):
        pytest.importorskip(name, reason=f"{name} is not installed: extra `docs`")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    result = subprocess.run(
        [*build, "-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for page in (ROOT / "docs").glob("*.md"):
        assert (tmp_path / "site" / f"{page.stem}.html").is_file(), page
    # the pages that are embedded are there
    text = (tmp_path / "site" / "gallery.html").read_text(encoding="utf-8")
    embedded = re.findall(r'<iframe src="([^"]+)"', text)
    assert len(embedded) == 2
    for page in (*embedded, "gallery/six_axis.html", "gallery/gough_stewart.html"):
        assert "Painter" in (tmp_path / "site" / page).read_text(encoding="utf-8"), page
