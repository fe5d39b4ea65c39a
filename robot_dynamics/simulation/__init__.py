# SPDX-License-Identifier: Apache-2.0
"""A robot simulated by MuJoCo, with a PD controller."""
