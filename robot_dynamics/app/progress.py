# SPDX-License-Identifier: Apache-2.0
"""Progress messages of long commands."""

from __future__ import annotations

import sys
import time

QUIET = 1.0
"""s before progress is reported"""


class Progress:
    """Prints a line on stderr for each step after `QUIET`."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def __call__(self, words: str) -> None:
        passed = time.monotonic() - self._begin
        if passed > QUIET:
            print(f"{passed:4.0f} s: {words}", file=sys.stderr, flush=True)
