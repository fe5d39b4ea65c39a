# SPDX-License-Identifier: Apache-2.0
"""The dynamics as an FMU (Functional Mock-up Unit, FMI 3.0): tau from q, qd and qdd, in compiled C.

The C headers of the standard come with FMPy, which is needed to write an FMU but not to run it.
"""

from __future__ import annotations

import io
import platform
import sys
import tempfile
import zipfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..codegen import compiler
from ..dynamics.export import write_files
from ..errors import not_installed
from ..mechanism import Mechanism
from .package import SOURCES, checked_request, rendered, result

HEADERS = ("fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h")
TEMPLATES = ("modelDescription.xml", "buildDescription.xml", "fmu.c")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed time stamp for all files in the archive: the same description gives the same sources"""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
SYSTEMS = {"win32": ("windows", "dll"), "darwin": ("darwin", "dylib")}

UNITS = {
    "rad": {"rad": 1},
    "rad/s": {"rad": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m": {"m": 1},
    "m/s": {"m": 1, "s": -1},
    "m/s2": {"m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "kg": {"kg": 1},
    "kg.m2": {"kg": 1, "m": 2},
}
PAYLOAD = {
    "mass": "kg",
    **{f"center_of_mass.{axis}": "m" for axis in "xyz"},
    **{f"inertia.{axes}": "kg.m2" for axes in ("xx", "yy", "zz", "xy", "xz", "yz")},
}

_REFERENCE = "fmi3ValueReference"
_OF = f"const {_REFERENCE} of[], size_t count"
_DERIVATIVES = (
    f"const {_REFERENCE} unknowns[], size_t rows, const {_REFERENCE} knowns[], size_t columns, "
    "const fmi3Float64 seed[], size_t seeds, fmi3Float64 found[], size_t size"
)
ABSENT = {
    "GetNumberOfVariableDependencies": f"{_REFERENCE} of, size_t *count",
    "GetVariableDependencies": f"{_REFERENCE} of, size_t rows[], {_REFERENCE} independents[], "
    "size_t columns[], fmi3DependencyKind kinds[], size_t count",
    "SerializedFMUStateSize": "fmi3FMUState kept, size_t *size",
    "SerializeFMUState": "fmi3FMUState kept, fmi3Byte bytes[], size_t size",
    "DeserializeFMUState": "const fmi3Byte bytes[], size_t size, fmi3FMUState *kept",
    "GetDirectionalDerivative": _DERIVATIVES,
    "GetAdjointDerivative": _DERIVATIVES,
    "GetOutputDerivatives": f"{_OF}, const fmi3Int32 orders[], fmi3Float64 values[], size_t size",
    "GetIntervalDecimal": f"{_OF}, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[]",
    "GetIntervalFraction": f"{_OF}, fmi3UInt64 counters[], fmi3UInt64 resolutions[], "
    "fmi3IntervalQualifier qualifiers[]",
    "GetShiftDecimal": f"{_OF}, fmi3Float64 shifts[]",
    "GetShiftFraction": f"{_OF}, fmi3UInt64 counters[], fmi3UInt64 resolutions[]",
    "SetIntervalDecimal": f"{_OF}, const fmi3Float64 intervals[]",
    "SetIntervalFraction": f"{_OF}, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]",
    "SetShiftDecimal": f"{_OF}, const fmi3Float64 shifts[]",
    "SetShiftFraction": f"{_OF}, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]",
    "ActivateModelPartition": f"{_REFERENCE} clock, fmi3Float64 time",
}
"""The functions of the standard that this model does not support, with their arguments after the
instance"""


def write_fmu(
    file: str,
    out: str | Path,
    *,
    formulation: str = "newton_euler",
    rotors: str = "full",
    prefix: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write `<prefix>.fmu` for FMI 3.0, with model exchange and co-simulation.

    The inputs are q, qd and qdd (rad or m and their derivatives), the outputs tau (N·m or N), named
    after the joints. Gravity, payload, friction_smoothing and terms are tunable parameters. The FMU
    contains a library for this machine, and its sources.

    Args:
        file: the description, as for `rd.load`.
        out: the directory to write to.
        formulation, rotors: as in `InverseDynamics`.
        prefix: as in `write_package`.
        force: overwrite an existing file.

    Returns:
        A dict as from `write_package`, without package.

    Raises:
        RobotDynamicsError: as in `write_package`; or FMPy or a C compiler is missing.
    """
    headers = _headers()
    request = checked_request(file, formulation, rotors, prefix)
    mechanism, robot = request.mechanism, request.prefix
    token = sha256("\n".join(request.about).encode()).hexdigest()
    texts, operations = rendered(
        request,
        [*SOURCES, *(f"fmu/{name}" for name in TEMPLATES)],
        lambda context: {"token": token, **_variables(mechanism, context)},
    )
    place, ending = _platform()
    library = _compiled(robot, texts, headers)
    files: dict[str, str | bytes] = {
        "modelDescription.xml": texts.pop("modelDescription.xml"),
        f"binaries/{place}/{robot}.{ending}": library,
        **{f"sources/{name}": text for name, text in sorted(texts.items())},
        **{f"sources/{name}": (headers / name).read_bytes() for name in HEADERS},
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    (path,) = write_files(Path(out), {f"{robot}.fmu": whole.getvalue()}, force=force)
    done = f"wrote {path}: FMI 3.0, model exchange and co-simulation, for {place}"
    return result(request, operations, [path], [done])


def _headers() -> Path:
    """The folder with the headers of the standard."""
    found = find_spec("fmpy")
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "c-code"
        if all((folder / name).is_file() for name in HEADERS):
            return folder
    raise not_installed("FMPy", "provides the FMI 3.0 headers", "'robot_dynamics[fmu]'")


def _platform() -> tuple[str, str]:
    """(the standard's name of this platform, the extension of libraries)."""
    machine = platform.machine().lower()
    system, ending = SYSTEMS.get(sys.platform, ("linux", "so"))
    return f"{MACHINES.get(machine, machine)}-{system}", ending


def _compiled(robot: str, texts: dict[str, str], headers: Path) -> bytes:
    name = f"{robot}_dynamics"
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, f"{name}.h").write_text(texts[f"{name}.h"], "utf-8")
        return compiler.find().shared_library(
            [texts["fmu.c"], texts[f"{name}.c"]],
            ["-O2", f"-I{headers}", f"-I{scratch}"],
            native=False,
        )


def _variables(mechanism: Mechanism, context: dict[str, Any]) -> dict[str, Any]:
    """The model's variables, in the order of their value references, which start at 1."""
    joints, motors = context["joints"], context["motors"]
    reals: list[dict[str, Any]] = []

    def add(
        name: str, unit: str, start: float | None, description: str, causality: str = "parameter"
    ) -> None:
        kind = "tunable" if causality == "parameter" else "continuous"
        reals.append(
            {
                "name": name,
                "unit": unit,
                "start": start,
                "description": description,
                "causality": causality,
                "variability": kind,
                "reference": len(reals) + 1,
            }
        )

    for letters, per, meaning in (
        ("q", "", "position"),
        ("qd", "/s", "rate"),
        ("qdd", "/s2", "acceleration"),
    ):
        for name in joints:
            unit = mechanism.joint(name).unit + per
            start = mechanism.home_of(name) if letters == "q" else 0.0
            add(f"{letters}.{name}", unit, start, meaning, "input")
    for axis, value in zip("xyz", context["gravity"], strict=True):
        add(f"gravity.{axis}", "m/s2", value, "in the base frame")
    add(
        "friction_smoothing",
        "",
        0.0,
        "velocity below which Coulomb friction fades to zero, rad/s or m/s",
    )
    for name, unit in PAYLOAD.items():
        add(f"payload.{name}", unit, 0.0, "in the frame of the link; inertia: about its centre")
    starts = [0.0, *(each["start"] for each in reals)]
    for name in motors:
        unit = "N" if mechanism.joint(name).slides else "N.m"
        add(f"tau.{name}", unit, None, "torque or force of the motor", "output")
    return {"reals": reals, "fmu_start": starts, "units": UNITS, "absent": list(ABSENT.items())}
