# SPDX-License-Identifier: Apache-2.0
"""A simulated robot, closed by a PD loop: MuJoCo as the physics."""
