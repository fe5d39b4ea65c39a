# SPDX-License-Identifier: Apache-2.0
"""Compilation of MJCF by MuJoCo, with bounded time and memory.

A few words can describe a model of any size (`replicate`, `flexcomp`, `hfield`, `size`), and name
any file. MuJoCo therefore compiles in a separate process, except for short texts whose elements
compile to models of about their own size.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DescriptionError, not_installed, one_line, wrong
from .child_process import output
from .files import read_text
from .xml_text import MOST_TAGS

LONGEST = 30.0
"""s: time limit for a model"""
MOST_MEMORY = 4_000_000_000
"""bytes: memory of the process that compiles, address space included"""
MOST_MODEL = 1_000_000_000
"""bytes: of the compiled model"""
SHORT = 50_000
"""Characters of a text that may be compiled in this process"""

_PLAIN = frozenset(
    """mujoco compiler option flag statistic visual global quality headlight map scale rgba default
    asset material worldbody body frame inertial joint freejoint geom site camera light contact pair
    exclude tendon fixed spatial pulley equality connect weld actuator general motor position
    velocity keyframe key""".split()  # noqa: SIM905
)
"""Elements whose compiled size is about that of their text"""
_TAG = re.compile(r"<\s*([A-Za-z_][\w:.-]*)")
_COSTLY = re.compile(r"\b(actdim|nsample|user|file)\b|\bnan\b|&", re.IGNORECASE)
"""Attributes whose model may be larger, a number that MuJoCo takes for a missing one, and what may
stand for either"""

_INCLUDED = re.compile(r"""<\s*include\s[^>]*?\bfile\s*=\s*(["'])(.*?)\1""", re.DOTALL)
_FILE = re.compile(r"""\bfile[a-z]*\s*=\s*(["'])(.*?)\1""", re.DOTALL)
_FOLDER = re.compile(r"""\b(?:mesh|texture|asset)dir\s*=\s*(["'])(.*?)\1""", re.DOTALL)

_CHILD = """
import os, sys
source, kind, most_memory, most_model, result = sys.argv[1:]
os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(most_memory),) * 2)
except (ImportError, ValueError, OSError):
    pass
import mujoco

said = []
mujoco.set_mju_user_warning(said.append)  # its own handler writes a file
try:
    if kind == "text":
        model = mujoco.MjModel.from_xml_string(open(source, encoding="utf-8").read())
    else:
        model = mujoco.MjModel.from_xml_path(source)
except ValueError as error:
    sys.exit(" ".join(str(error).split()))
except BaseException as error:
    sys.exit(f"it does not fit into {int(most_memory) / 1e9:g} GB of memory ({error})")
if nan := [each for each in said if "NaN" in each]:
    sys.exit(" ".join(nan[0].split()))
if (size := mujoco.mj_sizeModel(model)) > int(most_model):
    sys.exit(f"its model has {size} bytes, expected at most {most_model}")
mujoco.mj_saveModel(model, result)
"""


def library() -> Any:
    """MuJoCo, imported on first use.

    Raises:
        BackendError: it is not installed.
    """
    try:
        import mujoco
    except ImportError:
        role = "reads MJCF and simulates robots"
        raise not_installed("MuJoCo", role, "'robot_dynamics[sim]'") from None
    return mujoco


def compiled(source: Path | str, where: str) -> Any:
    """The `mujoco.MjModel` of an MJCF file or text.

    Args:
        source: the path, or the text.
        where: how messages refer to it.

    Raises:
        BackendError: MuJoCo is not installed.
        DescriptionError: MuJoCo's compiler refuses it (the message includes the compiler's own),
            takes longer than LONGEST or needs more than MOST_MEMORY; the model has more than
            MOST_TAGS bodies, joints, actuators, tendons or equalities; a file that it names is not
            a regular file.
    """
    mujoco = library()
    text = read_text(source) if isinstance(source, Path) else source
    if _is_plain(text):
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda _: None)  # its own handler writes a file
        try:
            model = mujoco.MjModel.from_xml_string(text)
        except (ValueError, RuntimeError, MemoryError) as error:
            raise _refused(where, str(error)) from None
        finally:
            mujoco.set_mju_user_warning(before)
    else:
        _check_files(text, source.parent if isinstance(source, Path) else Path(), where)
        model = _compiled_apart(source, where)
    for field, what in _COUNTED.items():
        if (count := getattr(model, field)) > MOST_TAGS:
            raise wrong(DescriptionError, f"{where}: {what}", count, f"at most {MOST_TAGS}")
    return model


_COUNTED = {"nbody": "bodies", "njnt": "joints", "nu": "actuators", "ntendon": "tendons",
            "neq": "equalities"}  # fmt: skip


def _is_plain(text: str) -> bool:
    if len(text) > SHORT or _COSTLY.search(text):
        return False
    return all(tag[1] in _PLAIN for tag in _TAG.finditer(text))


def _compiled_apart(source: Path | str, where: str) -> Any:
    """The model, which another process compiles and saves to a file."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "model.mjb")
        given, kind = source, "file"
        if isinstance(source, str):
            given, kind = Path(folder, "model.xml"), "text"
            given.write_text(source, encoding="utf-8")
        arguments = [str(given), kind, str(MOST_MEMORY), str(MOST_MODEL)]
        _, message = output(_CHILD, [*arguments, str(result)], f"{where}: MuJoCo", LONGEST)
        if message:
            raise _refused(where, message)
        return library().MjModel.from_binary_path(str(result))


def _refused(where: str, message: str) -> DescriptionError:
    return DescriptionError(f"{where}: not a valid MJCF: {one_line(message, 300)}", name=where)


def _check_files(text: str, folder: Path, where: str) -> None:
    """Refuse a pipe or a device, which might never end, as a file that the model names."""
    todo, seen = [(text, folder)], set[Path]()
    while todo:
        text, here = todo.pop()
        inner = ["", *(found[2] for found in _FOLDER.finditer(text))]
        included = {found[2] for found in _INCLUDED.finditer(text)}
        for name in dict.fromkeys(found[2] for found in _FILE.finditer(text)):
            for path in _existing(
                [each / part / name for each in (folder, here) for part in inner]
            ):
                if not path.is_file():
                    raise wrong(DescriptionError, f"{where}: file", name, "a regular file")
                if name in included and path not in seen:
                    seen.add(path)
                    todo.append((read_text(path), path.parent))


def _existing(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            if path.exists():
                yield path.resolve()
        except (OSError, ValueError):  # too long, or a character that no name may contain
            continue
