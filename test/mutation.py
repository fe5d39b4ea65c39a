"""Would the tests notice? One-line mutations of the package, and the tests that run the line.

    python test/mutation.py --sample 300       # by seed
    python test/mutation.py --only robot_dynamics/closure --sample 0   # all of a folder

Mutations are cosmic-ray's. Which tests run a line is measured first, by one run of all of them. A
mutation is killed if one of the tests that run its line fails, the quickest first. What survives is
printed as a difference; `test/mutation_survivors.md` says of each known one why it may.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import shutil
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
    "closure",
    "codegen",
    "dynamics",
    "motion",
    "ros/feed_forward",
)
"""What a torque goes through"""

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
    for file in sorted(file for area in areas for file in (ROOT / area).rglob("*.py")):
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
        command += [f"--junitxml={times}"]
        environment = {**os.environ, "COVERAGE_FILE": str(data)}
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
    import coverage

    covered = coverage.CoverageData(str(data))
    covered.read()
    seconds = {}
    for case in ET.parse(times).getroot().iter("testcase"):
        name = case.attrib["classname"].replace(".", "/") + ".py::" + case.attrib["name"]
        seconds[name] = float(case.attrib["time"])
    return covered, seconds


def nearest(mutant: Mutant, covered: Any, seconds: dict[str, float]) -> list[str]:
    """The tests that run the mutant's line, the quickest first, up to the budget."""
    lines = covered.contexts_by_lineno(str(ROOT / mutant.file))
    tests = {each.split("|")[0] for each in lines.get(mutant.line, ()) if each}
    if not tests:  # run once, when the module is imported
        tests = {each.split("|")[0] for found in lines.values() for each in found if each}
    chosen, left = [], BUDGET
    for test in sorted(tests & set(seconds), key=lambda test: (seconds[test], test)):
        left -= seconds[test]
        if left < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def verdict(mutant: Mutant, tests: list[str], copy: Path) -> tuple[str, str]:
    """(killed | survived | no mutant, the difference)"""
    file = copy / mutant.file
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    after = mutate_code(before, plugins.get_operator(mutant.operator)(), mutant.occurrence)
    if after is None or after == before:
        return "no mutant", ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    difference = "\n".join(line for line in list(lines)[3:])
    if not tests:
        return "survived", difference + "\n  (no test runs this line)"
    file.write_text(after, encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        ended = subprocess.run(
            command, cwd=copy, capture_output=True, timeout=PATIENCE, check=False
        )
        return ("survived" if ended.returncode == 0 else "killed"), difference
    except subprocess.TimeoutExpired:
        return "killed", difference
    finally:
        file.write_text(before, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=300, help="how many; 0: all (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="FOLDER", help="in place of the usual folders")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--pytest", nargs="*", default=[], help="for the run that measures")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    areas = options.only or [f"robot_dynamics/{area}" for area in AREAS]
    chosen = mutants(areas, rng)
    print(f"{len(chosen)} places in {', '.join(areas)}")
    if options.sample:
        chosen = sorted(rng.sample(chosen, min(options.sample, len(chosen))))
    covered, seconds = measured(options.folder, options.pytest)
    copies: Queue[Path] = Queue()
    counts: Counter[tuple[str, str]] = Counter()
    survivors = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation_") as scratch:
        for k in range(options.workers):
            copy = Path(scratch) / str(k)
            leave = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, copy, ignore=leave)
            copies.put(copy)

        def judged(mutant: Mutant) -> tuple[Mutant, str, str]:
            copy = copies.get()
            try:
                return (mutant, *verdict(mutant, nearest(mutant, covered, seconds), copy))
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.workers) as pool:
            for k, (mutant, word, difference) in enumerate(pool.map(judged, chosen), 1):
                area = mutant.file.split("/")[1]
                counts[area, word] += 1
                if word == "survived":
                    survivors.append({**mutant._asdict(), "difference": difference})
                    print(f"survived: {mutant.file}:{mutant.line}\n{difference}", flush=True)
                if k % 20 == 0:
                    print(f"{k}/{len(chosen)}, {time.monotonic() - start:.0f} s", flush=True)
    for area in sorted({area for area, _ in counts}):
        killed, survived = counts[area, "killed"], counts[area, "survived"]
        print(f"{area}: {killed} of {killed + survived} killed")
    killed = sum(count for (_, word), count in counts.items() if word == "killed")
    total = killed + len(survivors)
    print(f"all: {killed} of {total} killed, {100 * killed / max(total, 1):.1f} %")
    (options.folder / "survivors.json").write_text(json.dumps(survivors, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
