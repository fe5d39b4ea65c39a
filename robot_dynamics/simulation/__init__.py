"""A simulated robot, closed by a PD loop: MuJoCo as the physics."""
