# SPDX-License-Identifier: Apache-2.0
"""Performance regressions between two JSON files of a benchmark.

    python benchmarks/compare.py OLD.json NEW.json [--tolerance 0.1]

Prints the numbers that increased or decreased by more than the tolerance. The exit code is 1 if any
increased, since times, operations and bytes should be small. Numbers from different machines are
hardly comparable; if the machines differ, this is printed first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.1, help="relative, default 0.1")
    options = parser.parse_args()
    try:
        old, new = (json.loads(path.read_text()) for path in (options.old, options.new))
    except (OSError, ValueError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    before, now = (each.pop("machine", {}) if isinstance(each, dict) else {} for each in (old, new))
    for key, value in before.items():
        if now.get(key) != value and key != "load":
            print(f"another {key}: {value} before, {now.get(key)} now")
    worse, better = compared(dict(numbers(old)), dict(numbers(new)), options.tolerance)
    for title, lines in (("slower or more", worse), ("faster or less", better)):
        if lines:
            print(f"{title}:")
            print("\n".join(lines))
    if not worse and not better:
        print(f"nothing changed by more than {options.tolerance:.0%}")
    return 1 if worse else 0


def compared(
    old: dict[str, float], new: dict[str, float], tolerance: float
) -> tuple[list[str], list[str]]:
    """Lines for what grew, and for what shrank; what stands in one file alone counts as neither."""
    worse, better = [], []
    for name in sorted(old.keys() & new.keys()):
        if old[name] <= 0:
            continue
        ratio = new[name] / old[name]
        line = f"  {name}: {old[name]:.4g} -> {new[name]:.4g} ({ratio - 1:+.0%})"
        if ratio > 1 + tolerance:
            worse.append(line)
        elif ratio < 1 - tolerance:
            better.append(line)
    for name in sorted(old.keys() ^ new.keys()):
        print(f"only {'before' if name in old else 'now'}: {name}")
    return worse, better


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """(path, number) of every number in nested dictionaries and lists, whose entries are counted
    from 1."""
    if isinstance(value, list):
        value = dict(enumerate(value, start=1))
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f"{name} / {key}" if name else str(key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value)


if __name__ == "__main__":
    sys.exit(main())
