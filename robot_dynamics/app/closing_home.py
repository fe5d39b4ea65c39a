# SPDX-License-Identifier: Apache-2.0
"""A description with a `home` in which its loops are closed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..closure import AssemblyMode, assembly_modes, undecided
from ..closure.geometry.near import ends
from ..description import load
from ..description.files import find, read_text, write_text
from ..description.yaml_home import rounded, with_home
from ..errors import InputError, listed, wrong
from ..mechanism import Mechanism
from ..scalar import Floats
from .tables import table

MOST_TIPS = 4
"""Links whose places are printed; all of them are in the JSON"""
STILL = 1e-9
"""rad or m: what moved by less did not"""


def close(
    source: str, *, out: str | None = None, mode: int | None = None, picture: str | None = None
) -> dict[str, Any]:
    """A closed home of a description with loops, and the others with the motors as they are.

    Joints that `home` leaves out begin at 0.

    Args:
        source: a YAML file.
        out: where to write the description with that home (the file itself, too); None: nowhere.
        mode: which of the assembly modes, from 1 on; None: the first, which is the one nearest to
            what `near` says or else the one that is found from the home as it is.
        picture: where to draw all modes side by side (PNG, SVG, PDF); None: nowhere.

    Raises:
        DescriptionError, ClosureError: it can't be closed, or not by these motors.
        InputError: no loops, no such mode, or a place where a file can't be written.
        BackendError: a picture without matplotlib.
    """
    if picture is not None:
        from . import plots

        plots.check(Path(picture))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = load(source)
    if not mechanism.loops:
        raise InputError(f"{source}: nothing to close: it has no `loops`", name=source)
    modes = assembly_modes(mechanism)
    chosen = 1 if mode is None else mode
    if not 1 <= chosen <= len(modes):
        raise wrong(InputError, "mode", mode, f"1 to {len(modes)}")
    home = rounded({name: modes[chosen - 1].home[name] for name in mechanism.joint_names})
    # the joints that move most come first
    moved = {name: value - mechanism.home.get(name, 0.0) for name, value in home.items()}
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "home": home,
        "moved": moved,
        "assembly_modes": listing(mechanism, modes),
        "mode": chosen,
        "warnings": [],
    }
    lines = [f"{len(modes)} assembly mode{'s' * (len(modes) != 1)} found"]
    lines += modes_table(result["assembly_modes"], "mode")
    if mode is None and (alike := undecided(mechanism, modes)):
        result["warnings"] = [undecided_note(mechanism, alike)]
        lines += [f"warning: {words}" for words in result["warnings"]]
    lines += [
        f"home (mode {chosen}):",
        *(f"  {name}: {value:.12g}" for name, value in home.items()),
    ]
    far = [name for name in moved if abs(moved[name]) > STILL]
    far = sorted(far, key=lambda name: -abs(moved[name]))[:5]
    said = ", ".join(f"{name} by {moved[name]:.4g}" for name in far)
    lines.append(f"moved most: {said}" if far else "nothing moved: the loops were already closed")
    files = {}
    if picture is not None:
        from .modes_picture import draw

        files["picture"] = str(draw(Path(picture), mechanism, modes))
    if out is not None:
        _write(source, out, home)
        files["description"] = out
    if files:
        result["files"] = files
        lines += [f"wrote {place}" for place in files.values()]
    return {**result, "text": "\n".join(lines)}


def listing(mechanism: Mechanism, modes: Sequence[AssemblyMode]) -> list[dict[str, Any]]:
    """For JSON, with the poses of the platform and of the links that carry nothing."""
    return [
        {
            "home": dict(each.home),
            "distance": each.distance,
            "condition": each.condition,
            "poses": {name: each.poses[name].homogeneous().tolist() for name in ends(mechanism)},
        }
        for each in modes
    ]


def modes_table(modes: Sequence[dict[str, Any]], counted: str) -> list[str]:
    """All of them, with where the platform and the tips are, for people to read."""
    names = list(modes[0]["poses"])[:MOST_TIPS]
    # of the first, which is the platform where there is one, the orientation as well
    columns = [f"{name} at, m" for name in names]
    columns[0] += " | roll, pitch, yaw, °"
    rows = [[counted, "from home", "condition number", *columns]]
    for k, each in enumerate(modes, start=1):
        found = [_place(np.array(each["poses"][name])) for name in names]
        places = [" | ".join(found[0]), *(place for place, _ in found[1:])]
        number = f"{k}. home" if each["distance"] == 0 else f"{k}."
        rows.append([number, f"{each['distance']:.3g}", f"{each['condition']:.3g}", *places])
    return table(rows)


def _place(pose: Floats) -> tuple[str, str]:
    """(xyz in m, rpy in degrees) of a pose (4, 4)."""
    R, point = pose[:3, :3], pose[:3, 3]
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    turns = np.degrees([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])

    def said(values: Floats, digits: int) -> str:
        return ", ".join(f"{round(float(x), digits) + 0.0:g}" for x in values)

    return said(point, 3), said(turns, 1)


def undecided_note(mechanism: Mechanism, alike: Sequence[int]) -> str:
    """That the description may mean any of these modes, and what to do."""
    which = f"modes {listed(map(str, alike), 8)}"
    doubt = (
        f"near: {which} fit it about as well"
        if mechanism.near
        else f"home: {which} are as near to it"
    )
    return (
        f"{doubt}; draw them with --picture FILE and choose one with --mode N, or say with `near` "
        "roughly where a passive joint or a link is on the machine as it was built"
    )


def _write(source: str, out: str, home: dict[str, float]) -> None:
    file, target = find(source), Path(out)
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise wrong(InputError, "FILE", file.name, "a YAML: a URDF has no home")
    if target.parent.resolve() != file.parent.resolve():
        # what it refers to stands beside it
        raise wrong(InputError, "--out", out, f"a file in {file.parent}")
    write_text(target, with_home(read_text(file), home, file.name))
