"""From recordings of a moving robot to its model."""
