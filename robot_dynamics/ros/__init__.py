# SPDX-License-Identifier: Apache-2.0
"""Everything that knows ROS: the nodes, their parameters, what launch files share."""
