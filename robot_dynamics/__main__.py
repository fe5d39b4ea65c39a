# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dynamics` and the console script: the command line."""

from __future__ import annotations

import signal
import sys

from .errors import interrupt_handled

INTERRUPTED = 128 + signal.SIGINT
"""The exit code of a command that is interrupted"""


def main() -> int:
    """Run one command, which Ctrl-C ends without a traceback even while modules are imported.

    Returns:
        the exit code.
    """
    try:
        from .app.cli import main as run

        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        interrupt_handled()
    return code


if __name__ == "__main__":
    sys.exit(main())
