# SPDX-License-Identifier: Apache-2.0
"""Motions in time: trajectories through waypoints, and smooth motions in closed form."""
