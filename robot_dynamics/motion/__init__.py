"""Motions in time: trajectories through waypoints, and smooth ones in closed form."""
