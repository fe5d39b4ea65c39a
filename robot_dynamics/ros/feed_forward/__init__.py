# SPDX-License-Identifier: Apache-2.0
"""The function of the node `feed_forward` without ROS: messages are only read by their fields."""
