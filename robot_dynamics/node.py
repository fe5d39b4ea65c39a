# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dynamics.node`: the feed-forward node under its customary name."""

from __future__ import annotations

import sys

from .ros.executables import feed_forward as main

if __name__ == "__main__":
    sys.exit(main())
