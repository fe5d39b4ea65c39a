# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics for tests of the torques themselves, not of what computes them: nothing is
compiled, which would take longer than such a test."""

from __future__ import annotations

from functools import partial

import robot_dynamics as rd

InverseDynamics = partial(rd.InverseDynamics, backend="python")
