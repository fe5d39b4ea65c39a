"""What the node `feed_forward` does, without ROS: messages are read by their fields alone."""
