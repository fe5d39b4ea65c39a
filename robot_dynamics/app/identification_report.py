# SPDX-License-Identifier: Apache-2.0
"""The result of an identification as a self-contained page, and as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..description.files import writable, write_table, write_text
from ..errors import listed
from ..formulations.terms import TERMS
from ..identification import Errors, Identification
from ..identification.replay import Replay, terms_of
from ..identification.result_files import OPEN_CHAIN_SUMMARY, SUMMARY, Result
from ..identification.torque_errors import SplitDynamics
from ..mechanism import Armature, Friction, Mechanism, Rotor
from ..mechanism.dynamic_parameters import rotor_names
from ..mechanism.shown import Html
from ..mechanism.transform import friction_at_joints
from ..outputs import FILES, NUMBER, Kind, record
from .report_page import LINES, Chart, Line, cards, page, page_table, prose, standalone
from .show.playing import recorded
from .tables import percent

Floats = NDArray[np.float64]

WITHIN = "95 % band of unfiltered efforts"
LINK = '<p><a href="robot.html">See the robot move, and its torques</a></p>'

STYLES = dict(zip(TERMS, "bdcae", strict=True))
"""The line of each term, as on the page of `show`"""

_GAIN = record(gain=NUMBER("N·m or N per unit of effort"), standard_deviation=NUMBER)
_OPEN_CHAIN = record(
    **OPEN_CHAIN_SUMMARY.kinds,
    files=FILES,
    drive_gains=_GAIN.by_name("by joint, with --drive-gains").maybe(),
)
_CLOSED_CHAIN = record(**SUMMARY.kinds, files=FILES)("of a robot with loops")
OUTPUT = Kind({"anyOf": [_OPEN_CHAIN.schema, _CLOSED_CHAIN.schema]})


def write(result: Result, folder: Path) -> dict[str, Path]:
    """Write report.html, and a picture of each joint's torques; for an open chain also robot.html,
    which animates the held-out motion.

    Args:
        result: the identification.
        folder: an existing folder.

    Returns:
        the files by their kind.

    Raises:
        InputError: the folder cannot be written to.
    """
    shown = stretches(result)
    joints = [_Joint(result, shown, j) for j in range(len(result.errors.joints))]
    written = {}
    for joint, name in zip(joints, file_names(result.errors.joints), strict=True):
        written[f"picture {joint.name}"] = path = folder / f"{name}.svg"
        write_text(path, standalone(joint.torques.svg))
    written["page"] = folder / "report.html"
    write_text(written["page"], _page(result, shown, joints))
    if isinstance(result, Identification):
        kept = [each for each in result.traces if not each.seen] or list(result.traces)
        seen = [trace.samples for trace in kept]
        name = f"{kept[0].source}, by the identified model"
        path = folder / "robot.html"
        written["robot"] = recorded(result.mechanism, result.joints, seen, name, path)
    return written


def _joined(parts: Iterable[Floats]) -> Floats:
    """The values of successive stretches, which lines do not connect."""
    return np.concatenate([np.r_[part, np.nan] for part in parts])


def write_replay(replay: Replay, folder: Path, robot: Mechanism) -> dict[str, Path]:
    """Write replay.html, replay.csv, a picture of each joint, and, unless the robot has loops,
    robot.html, which animates the recording.

    Args:
        replay: the recording and the models' torques.
        folder: created if it does not exist.
        robot: the last model.

    Returns:
        the files by their kind.

    Raises:
        InputError: the folder cannot be created or written to.
    """
    written = {}
    writable(folder)
    sections = []
    for j, (name, file) in enumerate(zip(replay.joints, file_names(replay.joints), strict=True)):
        torques, terms = _replay_charts(replay, j)
        written[f"picture {name}"] = path = folder / f"replay_{file}.svg"
        write_text(path, standalone(torques.svg))
        sections.append(
            f"<h2>{escape(name)}</h2>{torques.figure()}{terms.figure(replay.labels[-1])}"
        )
    written["page"] = folder / "replay.html"
    link = "" if robot.loops else LINK
    body = [f"<h1>{escape(replay.source)}</h1>", link, _replay_table(replay), *sections]
    if not robot.loops:
        written["robot"] = recorded(
            robot, replay.joints, replay.stretches, replay.source, folder / "robot.html"
        )
    write_text(written["page"], page(replay.source, body))
    written["table"] = folder / "replay.csv"
    _write_rows(replay, written["table"])
    return written


def file_names(joints: Iterable[str]) -> list[str]:
    """A safe and unique file name for each joint; external names are never used in paths as they
    are."""
    found: list[str] = []
    for joint in joints:
        plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in joint)[:80] or "joint"
        name, k = plain, 1
        # file systems may ignore case
        while name.lower() in {each.lower() for each in found}:
            k += 1
            name = f"{plain}_{k}"
        found.append(name)
    return found


GAP = 3.0
"""Ratio of a step in time to the usual one, beyond which samples between were left out"""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Measured and modelled torques of consecutive samples."""

    seen: bool
    """Whether they were used for the fit"""
    time: Floats
    """(k,) s"""
    usable: NDArray[np.bool_]
    """(k, n): whether the measured torques may be used"""
    series: Mapping[str, Floats]
    """(k, n) torques, N·m or N: tau (measured), described, identified, residual, low and high (the
    band); of an open chain also those of each term, and qd, the rates, rad/s or m/s"""

    def of(self, name: str, j: int) -> Floats:
        """The series of one joint, with gaps where its measured torque may not be used, and where
        samples at rest were left out."""
        row = self.series[name][:, j]
        shown = self._before_gaps
        if name in ("tau", "residual"):
            shown = shown & self.usable[:, j]
        return np.where(shown, row, np.nan)

    @cached_property
    def _before_gaps(self) -> NDArray[np.bool_]:
        """(k,): False for the last sample before each gap."""
        steps = np.diff(self.time)
        return np.r_[steps < GAP * np.median(steps), True] if len(steps) else np.ones(1, bool)

    @cached_property
    def densities(self) -> tuple[Floats, Floats, Floats]:
        """Frequencies (f,) in Hz, and the amplitude densities (f, n) of measured torques and of
        residuals, all joints at once."""
        from scipy.signal import welch

        both = np.nan_to_num(np.hstack([self.series["tau"], self.series["residual"]]))
        rate = 1.0 / float(np.median(np.diff(self.time)))
        f, power = welch(both, rate, nperseg=min(len(both), 512), detrend="linear", axis=0)
        measured, left = np.split(np.sqrt(power), 2, axis=1)
        return f, measured, left


class _Joint:
    """The charts of one joint."""

    def __init__(self, result: Result, shown: Sequence[Stretch], j: int):
        self.shown, self.j, self.name = shown, j, result.errors.joints[j]
        self.mechanism, self.shafts = result.mechanism, _shafts(result.mechanism)
        kind = result.mechanism.joint(self.name)
        self.unit, self.rate = kind.effort_unit, f"{kind.unit}/s"
        self.has_spring = bool(kind.friction.stiffness)
        self.unseen: list[tuple[float, float]] = []
        if any(each.seen for each in shown):
            ends = ((each.seen, each.time[[0, -1]].tolist()) for each in shown)
            self.unseen = [(a, b) for seen, (a, b) in ends if not seen]

    @cached_property
    def measured(self) -> bool:
        """Whether there is an effort to compare with."""
        return any(each.usable[:, self.j].any() for each in self.shown)

    @cached_property
    def torques(self) -> Chart:
        measured = [self._over_time("tau", "ink", "measured")] if self.measured else []
        return Chart(
            f"{self.name}: {'measured and ' * self.measured}modelled torque over time",
            [
                *measured,
                self._over_time("described", "faint", "as described"),
                self._over_time("identified", "a", "identified"),
            ],
            "time (s)" + "; shaded: not seen by the fit" * bool(self.unseen),
            self.unit,
            self.unseen,
            band=(self._over_time("low", "a", WITHIN), self._over_time("high", "a", "")),
        )

    def terms(self) -> Chart:
        lines = [self._over_time(term, style, term) for term, style in STYLES.items()]
        lines = [line for line in lines if np.nanmax(np.abs(line.y), initial=0.0) > 0]
        return Chart(
            f"{self.name}: torque by term", lines or [self._over_time("tau", "ink", "")],
            "time (s)", self.unit, self.unseen,
        )  # fmt: skip

    def residual(self) -> Chart:
        line = self._over_time("residual", "b", "")
        title = f"{self.name}: measured minus identified"
        return Chart(title, [line], "time (s)", self.unit, self.unseen)

    def spectrum(self) -> Chart:
        """The amplitude density of measured torque and residual."""
        f, measured, left = max(self.shown, key=lambda each: len(each.time)).densities
        lines = [
            Line(f[1:], measured[1:, self.j], "ink", "measured"),
            Line(f[1:], left[1:, self.j], "b", "residual"),
        ]
        return Chart(
            f"{self.name}: spectrum", lines, "frequency (Hz)", f"{self.unit}/√Hz", logarithmic=True
        )

    def friction(self) -> Chart:
        """The torque that neither rigid bodies, a spring nor motors that turn with several joints
        explain, plotted over the rate."""
        j, rates, left = self.j, [], []
        # what is kept as described may have friction at motors
        own = friction_at_joints(self.mechanism).joint(self.name).friction
        for each in self.shown:
            usable, series = each.usable[:, j], each.series
            qd, rubs = series["qd"][usable], (series["residual"] + series["friction"])[usable, j]
            rubs = rubs - float(own.stiffness) * series["q"][usable, j]
            for row, law in self.shafts.values():
                rubs = rubs - row[j] * _torques(law, qd @ row)
            rates.append(qd[:, j])
            left.append(rubs)
        x, y = np.concatenate(rates), np.concatenate(left)
        return _friction_chart(self.name, x, y, own, self.rate, self.unit)

    def _over_time(self, name: str, style: str, label: str) -> Line:
        time = _joined(each.time for each in self.shown)
        return Line(time, _joined(each.of(name, self.j) for each in self.shown), style, label)


def _shafts(mechanism: Mechanism) -> dict[str, tuple[Floats, Friction]]:
    """By name, the motors and other shafts with friction that turn with several joints: (n (n,),
    law), with the rate n·qd."""
    shafts: dict[str, Rotor | Armature] = dict(rotor_names(mechanism))
    for k, armature in enumerate(mechanism.armatures, 1):
        shafts[f"shaft {k} on {listed(name for name, _ in armature.ratios)}"] = armature
    return {
        name: (np.asarray(mechanism.row(shaft.ratios), dtype=float), shaft.friction)
        for name, shaft in shafts.items()
        if len(shaft.ratios) > 1 and shaft.friction is not None
    }


def _shaft_chart(mechanism: Mechanism, shown: Sequence[Stretch], name: str) -> Chart:
    """The torque that rigid bodies and joints do not explain, on the motor's side.

    With residuals r of the joints that a motor with the row n turns, its residual is that of least
    squares, n·r / n·n.
    """
    row, law = _shafts(mechanism)[name]
    turned = row != 0
    rates, left = [], []
    for each in shown:
        usable = each.usable[:, turned].all(axis=1)
        rate = each.series["qd"][usable] @ row
        rates.append(rate)
        residual = each.series["residual"][usable]
        left.append(residual @ row / (row @ row) + _torques(law, rate))
    x, y = np.concatenate(rates), np.concatenate(left)
    return _friction_chart(name, x, y, law, "rad/s, of the motor", "N·m")


def _friction_chart(
    name: str, rates: Floats, left: Floats, law: Friction, rate: str, unit: str
) -> Chart:
    """Torques `left` that only friction explains, and a friction law, over rates."""
    lines = [Line(rates, left, "faint", "measured minus rigid bodies", dots=True)]
    if len(rates):
        grid = np.linspace(rates.min(), rates.max(), 400)
        lines.append(Line(grid, _torques(law, grid), "a", "friction identified"))
    return Chart(f"{name}: friction over velocity", lines, rate, unit)


def _torques(law: Friction, rates: Floats) -> Floats:
    return np.array([float(law.torque(v, float(np.sign(v)))) for v in rates.tolist()])


def stretches(result: Result) -> list[Stretch]:
    """The stretches that are drawn, one recording after the other; of a robot with loops the
    states in which they can be closed."""
    found: list[Stretch] = []
    later = 0.0
    described, identified = SplitDynamics(result.described), SplitDynamics(result.mechanism)
    for trace in result.traces:
        samples = trace.samples
        series = {}
        if result.mechanism.loops:
            model = identified(samples.q, samples.qd, samples.qdd)
            closes = np.asarray(np.isfinite(model).all(axis=1))
            samples, model = samples.rows(closes), model[closes]
        else:
            series = terms_of(result.mechanism, samples)
            model = np.sum([series[term] for term in TERMS], axis=0)
        if len(samples) < 2:
            continue
        state = samples.q, samples.qd, samples.qdd
        # the steps of friction are drawn as the filter leaves them in the measured torque
        change = samples.blurred(identified.friction)
        if "friction" in series:
            series["friction"] = series["friction"] + change
        series |= {"tau": samples.tau, "q": samples.q, "qd": samples.qd}
        series |= {"identified": model + change, "residual": samples.tau - model - change}
        series |= {"described": described(*state) + samples.blurred(described.friction)}
        deviation = result.band.deviation(*state)
        series |= {"low": model - 2 * deviation, "high": model + 2 * deviation}
        if found and samples.time[0] + later < found[-1].time[-1]:  # another recording begins
            later = found[-1].time[-1] + samples.period - samples.time[0]
        found.append(Stretch(trace.seen, samples.time + later, samples.usable, series))
    return found


def _page(result: Result, shown: list[Stretch], joints: Sequence[_Joint]) -> str:
    opened = result if isinstance(result, Identification) else None
    half = [(each.series["high"] - each.series["low"]) / 2 for each in shown]
    body = [
        *_head(result),
        LINK if opened else "",
        _words(result),
        "<h2>Torque errors</h2>",
        "<p>Root mean square of the measured minus the modelled torque, relative to that of the "
        f"measured torque, on motion held out of the fit; both {filtered(result.cutoffs.values())}."
        "</p>",
        _error_table(result.errors, np.median(np.concatenate(half), axis=0)),
    ]
    shafts = _shafts(result.mechanism) if opened else {}
    for joint in joints:
        body += [f"<h2>{escape(joint.name)}</h2>", joint.torques.figure()]
        body += _more_charts(joint, bool(shafts)) if opened else []
    for name in shafts:
        body += [
            f"<h2>{escape(name)}</h2>",
            _shaft_chart(result.mechanism, shown, name).figure(
                "Measured minus rigid-body torque, and minus the joints' own friction, on the "
                "motor side; this motor is coupled to several joints."
            ),
        ]
    cutoffs = [f"{source}: {filtered([cutoff])}" for source, cutoff in result.cutoffs.items()]
    body += [
        "<h2>Parameters</h2>",
        "<p>Bodies are given about their link's frame and include everything fixed to them. A "
        "standard deviation close to that of the description means that the motion does not "
        "determine this parameter by itself, although it may determine a combination of it with "
        "others.</p>",
        f"<details open><summary>{len(result.parameters)} numbers</summary>"
        f"{_parameter_table(result)}</details>",
        "<h2>The recordings</h2>",
        "<ul>",
        *(f"<li>{prose(note)}</li>" for note in (*cutoffs, *result.notes)),
        "</ul>",
        *(_zeros(opened) if opened else ()),
        *_filters(result),
    ]
    return page(f"{result.mechanism.name}, identified", body)


def _head(result: Result) -> list[str]:
    """The title, what was fitted and validated, and cards with the errors and the excitation."""
    errors = result.errors
    after, before = errors.means
    facts = [
        (percent(after), f"torque error, mean over {errors.of_which}"),
        (percent(before), "torque error of the description"),
    ]
    if isinstance(result, Identification):
        excitation = result.excitation
        facts += [
            (
                f"{excitation.determined:.0f} of {excitation.identifiable}",
                "parameters determined by the motion",
            ),
            (f"{excitation.condition:.3g}", "condition number of the regressor"),
        ]
    return [
        f"<h1>{escape(result.mechanism.name)}</h1>",
        f'<p class="faint">Identified from {result.fitted.duration:.3g} s of motion; validated '
        f"on {errors.duration:.3g} s held out of the fit.</p>",
        cards(facts),
    ]


def _more_charts(joint: _Joint, shafts: bool) -> list[str]:
    """The terms, friction, residual and spectrum of one joint; of one without efforts the terms.

    Args:
        joint: the joint.
        shafts: whether motors are coupled to several joints.
    """
    spring = ", and minus its spring" * joint.has_spring
    beside = ", and minus friction of motors coupled to several joints" * shafts
    terms = joint.terms().figure("The terms of the identified model.")
    if not joint.measured:
        return [terms]
    return [
        '<div class="pair">',
        terms,
        joint.friction().figure(
            f"Measured minus rigid-body torque{spring}{beside}, over the velocity."
        ),
        joint.residual().figure("Measured minus identified."),
        joint.spectrum().figure("Residual by frequency."),
        "</div>",
    ]


def _words(result: Result) -> str:
    if not result.warnings:
        enough = (
            "<p>The motion was exciting enough: the identified model can be used for similar "
            "motions.</p>"
        )
        return enough if isinstance(result, Identification) else ""
    items = "".join(f'<div class="warning">{prose(words)}</div>' for words in result.warnings)
    return (
        f"<h2>What to do</h2>{items}<p>Parameters that the motion does not determine stay "
        "near the description's; only their combinations with others are identified. A more "
        "exciting motion determines them individually.</p>"
    )


def _zeros(result: Identification) -> list[str]:
    """The section on the joints' encoders."""
    if not result.zeros:
        return []
    rows = [["joint", "added to its positions", "standard deviation", ""]]
    for each in result.zeros:
        if not each.determined:
            rows.append([each.joint, "not determined", "", ""])
            continue
        offset, deviation, unit = each.shown
        doubt = "in doubt" if each.doubtful else ""
        rows.append([each.joint, f"{offset:.2f}{unit}", f"{deviation:.2f}{unit}", doubt])
    return [
        "<h2>Encoder zeros</h2>",
        "<p>The offsets that explain the recordings best, fitted together with the "
        "bodies, friction and drive gains. They were not applied.</p>",
        page_table(rows),
    ]


def _filters(result: Result) -> list[str]:
    """The section that explains how the filter of each recording was chosen."""
    together: dict[bytes, list[str]] = {}
    for source, choice in result.choices.items():
        together.setdefault(choice.errors.tobytes(), []).append(source)
    shown = [_filter_chart(result, sources) for sources in together.values()]
    charts = [chart.figure(caption) for chart, caption in shown if chart.lines]
    if not charts:
        return []
    return [
        "<h2>The filter</h2>",
        "<p>Each candidate is fitted to parts of the recordings and predicts the measured torque "
        "of the part that was left out. A cut-off that is too high leaves noise in the "
        "accelerations, which makes inertias too small; one that is too low removes motion.</p>",
        *charts,
    ]


def _filter_chart(result: Result, sources: Sequence[str]) -> tuple[Chart, str]:
    """The chart of a choice that these recordings made together."""
    choice, cutoff = result.choices[sources[0]], result.cutoffs[sources[0]]
    source = listed(sources, 2)
    finite = np.isfinite(choice.candidates)
    lines = []
    styles = ("ink", *LINES)
    for j, joint in enumerate(result.joints):
        y = choice.errors[finite, j]
        y = np.where(np.isfinite(y), y, np.nan)
        if np.isfinite(y).any():
            x = np.log2(choice.candidates[finite])
            lines.append(Line(x, np.minimum(y, 3.0), styles[j % len(styles)], joint))
    chart = Chart(
        f"{source}: prediction error by cut-off frequency", lines,
        "cut-off frequency (log2 of Hz)", "error / smallest error",
        [] if cutoff is None else [(np.log2(cutoff) - 0.05, np.log2(cutoff) + 0.05)],
    )  # fmt: skip
    shaded = "" if cutoff is None else " (shaded)"
    return chart, f"{source}: {filtered([cutoff])}{shaded}; errors above 3 are drawn at 3."


def filtered(cutoffs: Iterable[float | None]) -> str:
    """How recordings were filtered, in words.

    Args:
        cutoffs: Hz, by recording; None: not filtered.
    """
    each = [*cutoffs]
    used = sorted({f"{cutoff:.3g}" for cutoff in each if cutoff is not None}, key=float)
    if not used:
        return "not filtered"
    return f"filtered at {' to '.join(dict.fromkeys([used[0], used[-1]]))} Hz" + (
        " or not at all" if None in each else ""
    )


def _error_table(errors: Errors, wide: Floats) -> str:
    """The errors, and half the width of the band (n,), N·m or N."""
    largest = float(np.nanmax(errors.relative_described, initial=1e-9))
    largest = max(largest, float(np.nanmax(errors.relative, initial=1e-9)))
    rows = [
        [
            "joint",
            "identified",
            "described",
            "",
            "torque RMS",
            "residual RMS",
            "residual RMS, unfiltered",
            "95 % band",
        ]
    ]
    for j, joint in enumerate(errors.joints):
        before, after = errors.relative_described[j], errors.relative[j]
        bars = Html(_bar(after / largest, "after") + _bar(before / largest, "before"))
        sizes = (_told(each[j]) for each in (errors.torque, errors.identified, errors.unfiltered))
        rows.append([joint, percent(after), percent(before), bars, *sizes, _told(wide[j], "± ")])
    words = (
        "Torques in N·m, forces in N. 95 % of the unfiltered efforts lie within the band, for "
        "motion like this."
    )
    return f"{page_table(rows)}<p class='faint'>{words}</p>"


def _told(value: float, sign: str = "", digits: int = 3) -> str:
    return f"{sign}{value:.{digits}g}" if np.isfinite(value) else "unknown"


def _bar(share: float, style: str) -> str:
    width = 0.0 if not np.isfinite(share) else 120 * min(share, 1.0)
    return f'<div class="bar {style}" style="width:{width:.0f}px"></div>'


def _parameter_table(result: Result) -> str:
    deviations = np.sqrt(np.maximum(np.diag(result.covariance), 0.0))
    before = result.described_parameters
    head = ["parameter (SI)", "as described", "identified", "standard deviation"]
    numbers = zip(result.parameters.items(), deviations, strict=True)
    return page_table(
        [head]
        + [
            [name, f"{before[name]:.4g}", f"{value:.4g}", _told(deviation, "± ", 2)]
            for (name, value), deviation in numbers
        ]
    )


def _replay_charts(replay: Replay, j: int) -> tuple[Chart, Chart]:
    time = _joined(each.time for each in replay.stretches)
    tau = _joined(np.where(e.usable[:, j], e.tau[:, j], np.nan) for e in replay.stretches)
    lines = [Line(time, tau, "ink", "measured")]
    for k, (label, parts) in enumerate(zip(replay.labels, replay.torques, strict=True)):
        lines.append(Line(time, _joined(p[:, j] for p in parts), LINES[k % len(LINES)], label))
    name = replay.joints[j]
    torques = Chart(f"{name}: torques over time", lines, "time (s)", "N·m or N")
    by_term = [
        Line(time, _joined(found[term][:, j] for found in replay.terms), style, term)
        for term, style in STYLES.items()
    ]
    return torques, Chart(f"{name}: terms over time", by_term, "time (s)", "N·m or N")


def replay_rows(replay: Replay, head: str = "") -> list[list[str]]:
    """A table of each model's errors, with one row per joint under this heading."""
    errors = np.transpose(replay.relative)
    rows = [[joint, *map(percent, row)] for joint, row in zip(replay.joints, errors, strict=True)]
    return [[head, *replay.labels], *rows]


def _replay_table(replay: Replay) -> str:
    notes = "".join(f"<li>{prose(note)}</li>" for note in replay.notes)
    return (
        "<p>Root mean square of the measured minus the modelled torque, relative to that of the "
        f"measured torque, on {replay.duration:.3g} s; motion and measured torque "
        f"{filtered([replay.cutoff])}.</p>"
        f"{page_table(replay_rows(replay, 'joint'))}<ul>{notes}</ul>"
    )


def _write_rows(replay: Replay, path: Path) -> None:
    blocks = [
        ("measured", [each.tau for each in replay.stretches]),
        *zip(replay.labels, replay.torques, strict=True),
        *((f"{replay.labels[-1]}/{term}", [x[term] for x in replay.terms]) for term in TERMS),
    ]
    columns = [
        (f"{joint}/{name}", np.concatenate([part[:, j] for part in parts]))
        for name, parts in blocks
        for j, joint in enumerate(replay.joints)
    ]
    time = np.concatenate([each.time for each in replay.stretches])
    write_table(path, [("time", time), *columns])
