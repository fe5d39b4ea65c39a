"""Everything that knows ROS: the nodes, their parameters, what launch files share."""
