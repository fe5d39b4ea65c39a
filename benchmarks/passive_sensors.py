"""What sensors on the passive joints of the 3RRR buy: errors of torque and of the platform.

    python benchmarks/passive_sensors.py [--json OUT] [--picture OUT]

A true 3RRR moves along a smooth path; a model computes from what the encoders say. Its torques
are compared with those of the true robot at the true state, its platform with the true one.

    active      the motors' encoders alone; passive joints are solved
    sensed      q = [q_a, q_s] as read: the model with redundant sensors
    fitted      the closed configuration nearest to all six readings, then as `active`

under encoder noise, under link lengths that are wrong by 1 %, and both.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from timing import arguments, keep

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain, KinematicState, fit
from robot_dynamics.mechanism import Mechanism, Pose

CONFIG = Path(__file__).resolve().parents[1] / "config" / "rrr.yaml"
LEGS = ("proximal1", "distal1", "proximal2", "distal2", "proximal3", "distal3")
NOISE = 1e-3
"""rad, standard deviation of every encoder"""
RATE_NOISE = 1e-2
"""rad/s, of the rates made from it"""
WRONG = 0.01
"""Share by which each of the six links is wrong, longer or shorter at random"""
DRAWS = 40
"""Of noise and of wrong robots"""
POSES = 25
CONDITIONS = ("encoder noise", "lengths 1 % wrong", "both")
MODELS = ("active", "sensed", "fitted")


def main() -> None:
    options = arguments(__doc__, "passive sensors")
    rng = np.random.default_rng(0)
    truth = ClosedChain(rd.load(CONFIG), backend="python")
    path = [(*moving(truth, t), t) for t in np.linspace(0, 2 * np.pi, POSES, endpoint=False)]
    results: dict[str, Any] = {}
    for condition in CONDITIONS:
        squares: dict[str, list[Any]] = {model: [] for model in MODELS}
        for _ in range(DRAWS):
            wrong = WRONG if condition != CONDITIONS[0] else 0.0
            noise = condition != CONDITIONS[1]
            one_draw(truth, path, wrong, noise, rng, squares)
        results[condition] = {model: summary(values) for model, values in squares.items()}
    show(results)
    keep(options.json, {"passive sensors": results})
    if options.picture:
        draw(results, options.picture)


def moving(chain: ClosedChain, t: float) -> tuple[KinematicState, np.ndarray]:
    """(state, q̈_r) of the true robot on its path."""
    phase = np.array([0.0, 2.0, 4.0])
    q = chain.home.q_a + 0.25 * np.sin(t + phase)
    qd, qdd = 1.5 * 0.25 * np.cos(t + phase), -(1.5**2) * 0.25 * np.sin(t + phase)
    state = chain.forward(q, qd)
    return state, state.T @ qdd + state.T_rate @ qd


def one_draw(
    truth: ClosedChain,
    path: list[Any],
    wrong: float,
    noise: bool,
    rng: np.random.Generator,
    squares: dict[str, list[Any]],
) -> None:
    """Add (torque error², platform error²) along the path, of each model."""
    mechanism = mistaken(truth.mechanism, wrong, rng)
    active = ClosedChain(mechanism, backend="python")
    sensed = ClosedChain(mechanism, sensed=True, backend="python")
    for state, qdd, _ in path:
        q = state.q_r[:6] + rng.normal(0, NOISE, 6) * noise
        qd = state.qd_r[:6] + rng.normal(0, RATE_NOISE, 6) * noise
        tau = truth(state.q_a, state.qd_r[:3], qdd[:3])
        place = state.platform_pose[:3, 3]

        near = active.forward(q[:3])
        best = fit(active.solver, q, near.q_r).state
        # the rates that fit all six best
        qd_a = np.linalg.lstsq(best.T[:6], qd, rcond=None)[0]
        found = {
            "active": (active(q[:3], qd[:3], qdd[:3]), near),
            "sensed": (sensed(q, qd, qdd[:6]), sensed.forward(q)),
            "fitted": (active(best.q_a, qd_a, qdd[:3]), best),
        }
        for model, (torques, where) in found.items():
            off = where.platform_pose[:3, 3] - place
            squares[model].append((np.mean((torques - tau) ** 2), off @ off, np.mean(tau**2)))


def mistaken(mechanism: Mechanism, share: float, rng: np.random.Generator) -> Mechanism:
    """The same robot with each leg's links longer or shorter by this share."""

    def stretched(link: Any) -> Any:
        if link.name not in LEGS or not share:
            return link
        tail = link.joint.tail
        length = tail.translation * (1 + share * rng.choice([-1, 1]))
        return replace(link, joint=replace(link.joint, tail=Pose(tail.rotation, length)))

    return replace(mechanism, links=tuple(map(stretched, mechanism.links)))


def summary(values: list[Any]) -> dict[str, float]:
    """Root mean squares: torque in share of the true torque, platform in m."""
    torque, platform, size = np.mean(values, axis=0)
    return {"torque": float(np.sqrt(torque / size)), "platform": float(np.sqrt(platform))}


def show(results: dict[str, Any]) -> None:
    print(
        f"3RRR, {DRAWS} draws of {POSES} poses; encoders {NOISE:g} rad, rates {RATE_NOISE:g} rad/s"
    )
    print(f"{'':20}" + "".join(f"{model:>22}" for model in MODELS))
    print(f"{'':20}" + "     torque   platform" * len(MODELS))
    for condition, models in results.items():
        cells = [
            f"{100 * models[model]['torque']:9.3f} % {1e3 * models[model]['platform']:7.3f} mm"
            for model in MODELS
        ]
        print(f"{condition:20}" + " ".join(cells))


def draw(results: dict[str, Any], path: Path) -> None:
    from robot_dynamics.app.plots import COLOURS, figure, save, style

    with style():
        drawing, axes = figure(1, 2, width=9.0, height=3.2)
        for axis, what, unit, scale in (
            (axes[0, 0], "torque", "% of the torque", 100.0),
            (axes[0, 1], "platform", "mm", 1e3),
        ):
            for k, model in enumerate(MODELS):
                heights = [scale * results[condition][model][what] for condition in CONDITIONS]
                places = np.arange(len(CONDITIONS)) + 0.27 * (k - 1)
                bars = axis.bar(places, heights, width=0.25, color=COLOURS[k], label=model)
                axis.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
            axis.set_xticks(range(len(CONDITIONS)), CONDITIONS)
            axis.grid(axis="x", visible=False)
            axis.set_ylabel(f"{what} error, rms ({unit})")
        axes[0, 0].legend()
        drawing.suptitle("3RRR: what sensors on the passive joints buy", x=0.01, ha="left")
        save(drawing, path)


if __name__ == "__main__":
    main()
