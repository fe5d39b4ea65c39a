# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dynamics` and the console script: the command line."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run one command, which Ctrl-C ends without a traceback even while modules are imported.

    Returns:
        the exit code.
    """
    try:
        from .app.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        from .errors import interrupt_handled

        interrupt_handled()


if __name__ == "__main__":
    sys.exit(main())
