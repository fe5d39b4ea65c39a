# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files, which must be trusted like scripts, as they can run any code.

xacro runs in a separate process, which is killed if it takes too long.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import DescriptionError, one_line, wrong
from .child_process import output
from .files import MOST_BYTES, arguments_of, read_text

LONGEST = 20.0
"""s: time limit for a file"""

_CHILD = """
import sys, xacro
from xacro import substitution_args
from pathlib import Path

root, file, *given = sys.argv[1:]
sources = {}

def share(package):
    sys.path.append(root)
    from robot_dynamics.description.packages import share
    try:
        found = share(package, f"$(find {package})", Path(file).parent)
    except Exception as error:
        sys.exit(str(error))
    if found.parent.name != "share":
        sources[package] = found
    return str(found)

def told(error):
    cause = getattr(error, "exc", None) or error
    if not isinstance(cause, FileNotFoundError):
        return " ".join((str(error) or type(error).__name__).split())
    missing = cause.filename
    for package, folder in sources.items():
        if folder in Path(missing).parents:
            missing += f" (package {package!r} was found as sources; build and source it)"
    return f"no file {missing}"

def place():
    if macros := getattr(xacro, "macrostack", None):
        name, made = macros[-1].body.getAttribute("name"), macros[-1].history[-1][-1]
        return f" in macro {name!r} of {Path(made or file).name}"
    files = [each for each in getattr(xacro, "filestack", None) or () if each]
    return f" in {Path(files[-1]).name}" if files[1:] else ""

class Arguments(dict):
    unused = set()

    def __contains__(self, name):
        self.unused.discard(name)
        return super().__contains__(name)

    def __getitem__(self, name):
        self.unused.discard(name)
        return super().__getitem__(name)

substitution_args._eval_find = share
arguments = Arguments(each.split(":=", 1) for each in given)
Arguments.unused = set(arguments)
try:
    text = xacro.process_file(file, mappings=arguments).toxml()
except Exception as error:
    sys.exit(told(error) + place())
if Arguments.unused:
    known = ", ".join(sorted(set(arguments) - Arguments.unused)) or "none"
    sys.exit(f"no argument is called {min(Arguments.unused)!r} (known: {known})")
sys.stdout.buffer.write(text.encode())
"""


def read_urdf(path: Path) -> str:
    """The URDF text of a file; a .xacro file is expanded first.

    Raises:
        DescriptionError: see `read_text` and `expanded`.
    """
    return expanded(path) if path.suffix.lower() == ".xacro" else read_text(path)


def expanded(path: Path) -> str:
    """The URDF text to which ROS's xacro expands a file, with the arguments of a `XacroFile`.

    Raises:
        DescriptionError: xacro refuses the file (the message includes xacro's own), takes longer
            than `LONGEST`, or produces too large a text; a required argument is missing, or the
            file has no argument of a given name.
    """
    where = path.name
    root = Path(__file__).resolve().parents[2]
    arguments = [str(root), str(path.absolute()), *arguments_of(path)]
    text, told = output(_CHILD, arguments, f"{where}: xacro", LONGEST)
    if told:
        last = one_line(told, 300)
        if "Undefined substitution argument" in last:
            last += f"; arguments follow the path: '{where} NAME:=VALUE …'"
        raise DescriptionError(f"{where}: xacro: {last}", name=where)
    if len(text) > MOST_BYTES:
        raise wrong(DescriptionError, f"{where}: bytes", len(text), f"at most {MOST_BYTES}")
    return text.decode()
