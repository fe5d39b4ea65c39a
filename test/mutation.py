# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: one-line mutations of the package, and the tests that run the line.

    python test/mutation.py --sample 40 --seed 1     # that many in each area
    python test/mutation.py --only robot_dynamics/closure --sample 0   # all of a folder
    python test/mutation.py --only robot_dynamics/codegen --pytest test/test_codegen_*.py

Mutations are cosmic-ray's. Which tests run a line, in their own process or in one that they start,
is measured first, by one run of all tests (or of those that --pytest names), and kept in --folder.
A mutation is killed if one of these tests fails or hangs; the fastest run first, and a test that
killed a mutation must pass without it. Survivors are printed as a diff;
`test/mutation_survivors.md` says why each known one is acceptable.
"""

from __future__ import annotations

import argparse
import difflib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parents[1]
AREAS = (
    "mechanism",
    "formulations",
    "chains",
    "closure",
    "codegen",
    "dynamics",
    "motion",
    "ros/feed_forward",
    "ros/feed_forward_node.py",
    "ros/robot_changes.py",
    "ros/torque_topics.py",
)
"""What computes a torque"""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["__main__", "pytest", "hypothesis", "numpy", "scipy.interpolate", "scipy.optimize", "sympy"]
)
"""What the tests import that is not mutated is imported once"""

LEFT_OUT = (
    "BitOr", "BitAnd", "BitXor", "LShift", "RShift",  # `int | None` is an annotation
    "RemoveDecorator",  # caches and dataclasses are the same without, only slower
    "Is_", "IsNot_", "_Is", "_IsNot",  # `is None` and `== None` are one
    "Variable",
    "UAdd", "Invert",
    "_FloorDiv", "_Mod", "_Pow",  # as far from the code as others that are kept
)  # fmt: skip
"""Parts of the names of operators whose mutants say nothing"""

BUDGET = 60.0
"""s of tests that are tried on one mutant, the quickest first"""
KNOWN, FIRST = 4, 16
"""How many tests that killed before are tried first, and how many before all others are imported"""
PATIENCE = 240.0
"""s of wall time after which a mutant hangs, and so is noticed"""


class Mutant(NamedTuple):
    """One mutation of one file."""

    file: str
    line: int
    operator: str
    occurrence: int


def mutants(areas: list[str], rng: random.Random) -> list[Mutant]:
    """One mutant a place: of all that can be done to it, one by chance."""
    found: dict[tuple[str, Any, str], list[Mutant]] = defaultdict(list)
    names = [name for name in plugins.operator_names() if not any(x in name for x in LEFT_OUT)]
    operators = {
        name: plugins.get_operator(name)()
        for name in names
        if not plugins.get_operator(name).arguments()
    }
    files = [ROOT / area for area in areas if area.endswith(".py")]
    files += [file for area in areas for file in (ROOT / area).rglob("*.py")]
    for file in sorted(files):
        path = file.relative_to(ROOT).as_posix()
        nodes = list(ast_nodes(get_ast(file.read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            places = (place for node in nodes for place in operator.mutation_positions(node))
            for occurrence, (start, _) in enumerate(places):
                family = name.split("_")[0]
                found[path, start, family].append(Mutant(path, start[0], name, occurrence))
    return [rng.choice(same) for _, same in sorted(found.items())]


def measured(folder: Path, more: list[str]) -> tuple[Any, dict[str, float]]:
    """(coverage data by test, s that each test takes), from one run of all tests."""
    data, times = folder / "coverage", folder / "times.xml"
    if not times.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more]
        command += ["--cov=robot_dynamics", "--cov-context=test", "--cov-report="]
        command += [f"--junitxml={times}", "-p", "process_contexts"]
        environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(ROOT / "test")}
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
    import coverage

    covered = coverage.CoverageData(str(data))
    covered.read()
    seconds = {}
    for case in ET.parse(times).getroot().iter("testcase"):
        name = case.attrib["classname"].replace(".", "/") + ".py::" + case.attrib["name"]
        seconds[name] = float(case.attrib["time"])
    return covered, seconds


def nearest(
    mutant: Mutant, covered: Any, seconds: dict[str, float], killed: Counter[str]
) -> list[str]:
    """The tests that run the mutant's line: a few that killed most before, then the quickest, up
    to the budget."""
    lines = covered.contexts_by_lineno(str(ROOT / mutant.file))
    found = set(lines.get(mutant.line, [""]))
    if "" in found:  # run once, when the module is imported
        found = set().union(*lines.values())
    named = [each.split("|") for each in found if each]
    tests = {name for name, _ in named}
    # a process also serves the tests that come after the one that started it
    files = {name.partition("::")[0] for name, phase in named if phase == "process"}
    tests |= {name for name in seconds if name.partition("::")[0] in files}
    known = sorted(tests & set(killed), key=lambda test: -killed[test])[:KNOWN]
    quickest = sorted(tests & set(seconds) - set(known), key=lambda test: (seconds[test], test))
    chosen, left = [], BUDGET
    for test in [*known, *quickest]:
        left -= seconds[test]
        if left < 0 and chosen:
            break
        chosen.append(test)
    return chosen


class Names:
    """A plugin of pytest: the tests that there are, and those that fail."""

    def __init__(self) -> None:
        self.collected: list[str] = []
        self.failed: list[str] = []

    def pytest_collection_finish(self, session: Any) -> None:
        self.collected = [item.nodeid for item in session.items]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def run(copy: Path, arguments: list[str], report: Path) -> None:
    """Run tests in this process, which is theirs alone; what they tell goes to `report`."""
    import pytest

    os.setsid()
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    os.environ["TMPDIR"] = tempfile.tempdir = str(report.parent)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    names = Names()
    code = pytest.main(["-q", "-p", "no:cacheprovider", *arguments], [names])
    report.write_text(json.dumps([int(code), names.collected, names.failed]), encoding="utf-8")


class Outcome(NamedTuple):
    """Of a run of pytest."""

    code: int
    """Its exit code; below 0: it hung, or died"""
    collected: list[str]
    failed: list[str]


def outcome(copy: Path, arguments: list[str], patience: float | None = None) -> Outcome:
    """Tests of a copy, run in a process of their own."""
    with tempfile.TemporaryDirectory(dir=copy.parent, ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.json"
        process = FORKS.Process(target=run, args=(copy, arguments, report))
        process.start()
        process.join(patience)
        if process.is_alive():
            os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
        if not report.exists():
            return Outcome(-1, [], [])
        return Outcome(*json.loads(report.read_text(encoding="utf-8")))


def verdict(mutant: Mutant, tests: list[str], copy: Path) -> tuple[str, str, list[str]]:
    """(killed | hung | survived | no mutant, the difference, the tests that failed)"""
    file = copy / mutant.file
    before = file.read_text(encoding="utf-8")
    after = mutate_code(before, plugins.get_operator(mutant.operator)(), mutant.occurrence)
    if after is None or after == before:
        return "no mutant", "", []
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    difference = "\n".join(line for line in list(lines)[3:])
    if not tests:
        return "survived", difference + "\n  (no test runs this line)", []
    file.write_text(after, encoding="utf-8")
    try:
        for some in filter(None, (tests[:FIRST], tests[FIRST:])):
            found = outcome(copy, ["-x", *some], PATIENCE)
            if found.code:
                break
    finally:
        file.write_text(before, encoding="utf-8")
    return {0: "survived", -1: "hung"}.get(found.code, "killed"), difference, found.failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--sample", type=int, default=40, help="how many of each area; 0: all (default: 40)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="PATH", help="areas: folders or files")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then no more of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--pytest", nargs="*", default=[], help="for the run that measures")
    options = parser.parse_args()
    areas = options.only or [f"robot_dynamics/{area}" for area in AREAS]
    chosen: list[tuple[float, str, Mutant]] = []
    for area in areas:
        rng = random.Random(f"{options.seed} {area}")
        found = mutants([area], rng)
        some = rng.sample(found, min(options.sample or len(found), len(found)))
        print(f"{area}: {len(some)} of {len(found)} places", flush=True)
        chosen += [(k / len(some), area, mutant) for k, mutant in enumerate(some)]
    chosen.sort()  # from all areas in turn: what is done when time is up is a sample too
    covered, seconds = measured(options.folder, options.pytest)
    counts: Counter[tuple[str, str]] = Counter()
    survivors: list[dict[str, Any]] = []
    killed: Counter[str] = Counter()
    by_test: dict[str, list[str]] = defaultdict(list)
    copies: Queue[Path] = Queue()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation_", ignore_cleanup_errors=True) as scratch:
        for k in range(options.workers):
            copy = Path(scratch) / str(k) / "copy"
            leave = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, copy, ignore=leave)
            # what calls kernels, as it is installed: it is not mutated
            build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
            subprocess.run(build, cwd=copy, check=True)
            copies.put(copy)
        there = set(outcome(copy, ["--collect-only", "test"]).collected)
        seconds = {name: time for name, time in seconds.items() if name in there}
        print(f"{len(seconds)} tests", flush=True)

        def judge(area: str, mutant: Mutant) -> None:
            if time.monotonic() - start > 60 * options.minutes:
                return
            copy = copies.get()
            try:
                tests = nearest(mutant, covered, seconds, killed)
                word, difference, names = verdict(mutant, tests, copy)
            finally:
                copies.put(copy)
            counts[area, word] += 1
            killed.update(names)
            for name in names:
                by_test[name].append(area)
            if word == "survived":
                survivors.append({**mutant._asdict(), "difference": difference})
                print(f"survived: {mutant.file}:{mutant.line}\n{difference}", flush=True)
            if counts.total() % 20 == 0:
                passed = time.monotonic() - start
                print(f"{counts.total()} of {len(chosen)}, {passed:.0f} s", flush=True)

        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(judge, *list(zip(*chosen, strict=True))[1:]))
        false = outcome(copies.get(), sorted(by_test)).failed if by_test else []
        for name in false:
            print(f"{name} fails without a mutation too: it killed {killed[name]}")
    for area in areas:
        dead, hung, alive = (counts[area, word] for word in ("killed", "hung", "survived"))
        dead -= sum(by_test[name].count(area) for name in false)
        print(f"{area}: {dead} killed, {hung} hung, {alive} survived")
    (options.folder / "survivors.json").write_text(json.dumps(survivors, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
