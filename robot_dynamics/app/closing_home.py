"""A description with a `home` in which its loops are closed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ..closure import AssemblyMode, assembly_modes
from ..description import load
from ..description.files import find, read_text
from ..description.yaml_home import rounded, with_home
from ..errors import InputError, wrong
from .tables import table

MOST_SHOWN = 6
"""Assembly modes that are printed"""
STILL = 1e-9
"""rad or m: what moved by less did not"""


def close(source: str, *, out: str | None = None, mode: int = 1) -> dict[str, Any]:
    """A closed home of a description with loops, and the others with the motors as they are.

    Joints that `home` leaves out begin at 0.

    Args:
        source: a YAML file.
        out: where to write the description with that home (the file itself, too); None: nowhere.
        mode: which of the assembly modes; 1: the one that is found from the home as it is.

    Raises:
        DescriptionError, ClosureError: it can't be closed, or not by these motors.
        InputError: no loops, no such mode, or a place where the file can't be written.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = load(source)
    if not mechanism.loops:
        raise wrong(InputError, source, "no loops", "a description with `loops`")
    modes = assembly_modes(mechanism)
    if not 1 <= mode <= len(modes):
        raise wrong(InputError, "mode", mode, f"1 to {len(modes)}")
    home = rounded({name: modes[mode - 1].home[name] for name in mechanism.joint_names})
    # the joints that move most come first
    moved = {name: value - mechanism.home.get(name, 0.0) for name, value in home.items()}
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "home": home,
        "moved": moved,
        "assembly_modes": listing(modes),
    }
    lines = [f"{len(modes)} assembly mode{'s' * (len(modes) != 1)} found", *_table(modes)]
    lines += ["home:", *(f"  {name}: {value:.12g}" for name, value in home.items())]
    far = [name for name in moved if abs(moved[name]) > STILL]
    far = sorted(far, key=lambda name: -abs(moved[name]))[:5]
    said = ", ".join(f"{name} by {moved[name]:.4g}" for name in far)
    lines.append(f"moved most: {said}" if far else "nothing moved: it was closed")
    if out is not None:
        _write(source, out, home)
        result["files"] = {"description": out}
        lines.append(f"wrote {out}")
    return {**result, "text": "\n".join(lines)}


def listing(modes: list[AssemblyMode]) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {"home": dict(each.home), "distance": each.distance, "condition": each.condition}
        for each in modes
    ]


def _table(modes: list[AssemblyMode]) -> list[str]:
    rows = [["mode", "from the first", "condition number"]]
    for k, each in enumerate(modes[:MOST_SHOWN], start=1):
        rows.append([str(k), f"{each.distance:.3g}", f"{each.condition:.3g}"])
    return table(rows) + ["…"] * (len(modes) > MOST_SHOWN)


def _write(source: str, out: str, home: dict[str, float]) -> None:
    file, target = find(source), Path(out)
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise wrong(InputError, "FILE", file.name, "a YAML: a URDF has no home")
    if target.parent.resolve() != file.parent.resolve():
        # what it refers to stands beside it
        raise wrong(InputError, "--out", out, f"a file in {file.parent}")
    try:
        target.write_text(with_home(read_text(file), home, file.name), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}", name="--out", value=out) from None
