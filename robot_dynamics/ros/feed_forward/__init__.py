# SPDX-License-Identifier: Apache-2.0
"""What the node `feed_forward` does, without ROS: messages are read by their fields alone."""
