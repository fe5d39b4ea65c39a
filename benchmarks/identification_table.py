# SPDX-License-Identifier: Apache-2.0
"""Held-out torque errors of all methods, on real and simulated logs.

    python benchmarks/identification_table.py [FOLDER ...] [--simulated [N ...]] [--json OUT]

Each FOLDER has a recorded robot and a `case.yaml` that names its files:

    robot: robot.urdf
    fit: [excitation.csv]
    validate: [other.csv]
    rename: {OLD: NEW}            # may be left out, as may effort_scale: {JOINT: FACTOR}

Numbers are RMS torque errors divided by the RMS torque, in %, per joint. Recorded motion is
evaluated after a 10 Hz filter, the same for all methods; simulated motion with noise-free states
and torques. "least squares" and "FIGAROH" use the filter of 5 to 50 Hz with the smallest error on
the held-out motion, which is not known in practice; "ours" chooses its own. The last columns are
the criteria: no joint worse than 1.1 times least squares, a mean of at most 0.95 times its mean,
and no joint worse than the description. `--turned` uses each recording for validation once, and
prints each robot's mean over these splits, since a single split may favour a method by chance.
`--masses 0.001` multiplies the mass of every described body by this factor, as if it were a
placeholder; least squares does not use described masses.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from identification_methods import Case, best_least_squares, described, figaroh, ours
from simulated_logs import LOGS, make
from timing import parser

METHODS = ("described", "least squares", "FIGAROH", "ours")
WORST = 1.1
MEAN = 0.95
EXACT = 0.002
"""Relative error below which a joint's torque counts as exact, even if another method is better"""


def run(case: Case, with_figaroh: bool = True) -> dict[str, Any]:
    """The errors (%) of every method on one case, and what ours said."""
    found: dict[str, Any] = {"name": case.name, "joints": list(case.mechanism.joint_names)}
    found["described"] = _percent(case, described(case))
    plain, cutoff = best_least_squares(case)
    found["least squares"], found["cutoff"] = _percent(case, plain), cutoff
    if with_figaroh:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found["FIGAROH"] = _percent(case, figaroh(case, cutoff))
        except Exception as error:  # noqa: BLE001  its failures are a result
            found["FIGAROH"] = f"{type(error).__name__}: {str(error)[:80]}"
    begin = time.process_time()
    try:
        model, result = ours(case)
        found["ours"] = _percent(case, model)
        found["ours' cutoffs"] = dict(result.cutoffs)
        found["warnings"] = list(result.warnings)
    except Exception as error:  # noqa: BLE001  so are ours
        found["ours"] = f"{type(error).__name__}: {str(error)[:120]}"
    found["seconds"] = time.process_time() - begin
    return found


def verdict(found: dict[str, Any]) -> dict[str, Any]:
    """worst: of the joints' ratios to least squares; mean: ratio of the means; harm: does some
    joint lose to the description?"""
    if not isinstance(found["ours"], list):
        return {"worst": np.inf, "mean": np.inf, "harm": True, "passes": False}
    measured = np.isfinite(found["least squares"])
    own, plain, before = (
        np.maximum(np.array(found[key])[measured] / 100, EXACT)
        for key in ("ours", "least squares", "described")
    )
    worst, mean = float((own / plain).max()), float(own.mean() / plain.mean())
    harm = bool((own > 1.02 * before).any())
    told = bool((own <= EXACT).all())
    passes = not harm and worst <= WORST and (mean <= MEAN or told)
    return {"worst": worst, "mean": mean, "harm": harm, "passes": passes}


def over_splits(name: str, splits: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean errors of one robot over splits of its recordings, each method's own."""
    found: dict[str, Any] = {"name": f"{name}, mean over {len(splits)} splits"}
    for label in METHODS:
        of = [each[label] for each in splits if label in each]
        whole = all(isinstance(each, list) for each in of)
        if of:
            found[label] = np.mean(of, axis=0).tolist() if whole else "failed on a split"
    return found


def _percent(case: Case, model: Any) -> list[float]:
    return [100 * float(x) for x in case.errors(model)]


def _row(label: str, values: Any) -> str:
    if isinstance(values, str):
        return f"  {label:14} {values}"
    return (
        f"  {label:14} " + " ".join(f"{x:6.3g}" for x in values) + f" | {np.nanmean(values):6.3g}"
    )


def show(found: dict[str, Any]) -> None:
    """One case, a line for each method."""
    held = verdict(found)
    at = f"  (least squares at {found['cutoff']:g} Hz)" if "cutoff" in found else ""
    print(found["name"] + at)
    for label in METHODS:
        if label in found:
            print(_row(label, found[label]))
    cutoffs = ", ".join(
        "none" if x is None else f"{x:.3g}" for x in found.get("ours' cutoffs", {}).values()
    )
    print(
        f"  {'':14} worst {held['worst']:.2f}, mean {held['mean']:.2f} of least squares"
        f"{', WORSE THAN DESCRIBED' if held['harm'] else ''}: "
        f"{'holds' if held['passes'] else 'FAILS'}"
        + (f"; {found['seconds']:.1f} s; cut-offs {cutoffs or '-'}" if "seconds" in found else ""),
        flush=True,
    )


def main() -> None:
    """See the module."""
    reader = parser(__doc__)
    reader.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    reader.add_argument(
        "--simulated", nargs="*", type=int, metavar="N",
        help=f"make logs of simulated robots: these of 1 to {len(LOGS)}, or all",
    )  # fmt: skip
    reader.add_argument(
        "--turned", action="store_true",
        help="let each recording of a folder judge once, fitting to the others",
    )  # fmt: skip
    reader.add_argument(
        "--masses",
        type=float,
        metavar="FACTOR",
        help="multiply the described bodies of each FOLDER",
    )
    reader.add_argument("--without-figaroh", action="store_true")
    options = reader.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        cases = [Case.of(each) for each in options.folders]
        if options.turned:
            cases = [turned for each in cases for turned in each.turned()]
        if options.masses is not None:
            cases = [each.heavier(options.masses) for each in cases]
        if options.simulated is not None:
            for number in options.simulated or range(1, len(LOGS) + 1):
                cases += make(Path(folder) / str(number), number, (LOGS[number - 1],))
        splits: dict[str, list[dict[str, Any]]] = {}
        for k, case in enumerate(cases):
            robot = case.name.split(", judged by")[0]
            if case.judging:
                results.append(run(case, not options.without_figaroh))
                show(results[-1])
                splits.setdefault(robot, []).append(results[-1])
            else:
                print(f"{case.name}: the validation recording is too short and was left out")
            following = cases[k + 1].name if k + 1 < len(cases) else ""
            if len(splits.get(robot, ())) > 1 and not following.startswith(robot):
                show(over_splits(robot, splits[robot]))
    verdicts = [verdict(each) for each in results]
    held = sum(each["passes"] for each in verdicts)
    print(f"{held} of {len(results)} cases meet the criteria")
    if results:
        # one split says little: of all, the geometric means
        for key in ("worst", "mean"):
            ratios = np.array([each[key] for each in verdicts])
            print(f"geometric mean of all, {key}: {np.exp(np.log(ratios).mean()):.3f}")
    if options.json:
        pairs = zip(results, verdicts, strict=True)
        options.json.write_text(json.dumps([a | b for a, b in pairs], indent=1) + "\n")


if __name__ == "__main__":
    main()
