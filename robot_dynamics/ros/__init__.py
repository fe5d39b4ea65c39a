# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on ROS: the nodes, their parameters, and shared parts of launch files."""
