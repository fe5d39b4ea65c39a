# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dynamics`: the command line."""

from __future__ import annotations

import sys

from .app.cli import main

sys.exit(main())
