"""The parameters of `simulated_robot`: one table."""

from __future__ import annotations

from .feed_forward.parameters import Parameter

PARAMETERS = (
    Parameter(
        "description",
        "string",
        "",
        "",
        "path or package:// URL of the robot; empty: taken from `robot_description`",
    ),
    Parameter(
        "joints",
        "string_array",
        (),
        "",
        "order of `~/commands`, gains and efforts; not set: all actuated joints",
    ),
    Parameter(
        "start",
        "double_array",
        (),
        "rad or m",
        "initial position of every joint, also passive ones; not set: `home`, else zero",
    ),
    Parameter(
        "update_rate",
        "double",
        500.0,
        "Hz",
        "of the controller, and of `joint_states`",
        minimum=1.0,
        maximum=10000.0,
    ),
    Parameter(
        "timestep", "double", 2e-4, "s", "of the integrator at most", minimum=1e-6, maximum=0.1
    ),
    Parameter(
        "p_gains",
        "double_array",
        (0.0,),
        "N·m/rad or N/m",
        "of the PD loop, one a joint or one for all",
        minimum=0.0,
    ),
    Parameter(
        "d_gains",
        "double_array",
        (0.0,),
        "N·m·s/rad or N·s/m",
        "of the PD loop, one a joint or one for all",
        minimum=0.0,
    ),
    Parameter(
        "bandwidth",
        "double",
        0.0,
        "rad/s",
        "of the PD loop, with gains that damp each joint critically at the start; "
        "0: p_gains and d_gains",
        minimum=0.0,
        maximum=1e4,
    ),
    Parameter(
        "delay",
        "integer",
        0,
        "periods",
        "from a state to the first use of the torques that answer it",
        minimum=0,
        maximum=1000,
    ),
    Parameter(
        "brakes", "bool", True, "", "hold the robot still until a trajectory leaves its first point"
    ),
    Parameter(
        "command_wait",
        "double",
        0.0,
        "s",
        "lock step: wall time to wait for the torques of a state; 0: real time",
        minimum=0.0,
        maximum=60.0,
    ),
    Parameter(
        "real_time_factor",
        "double",
        1.0,
        "",
        "simulated time / wall time; 0: as fast as possible",
        minimum=0.0,
        maximum=1000.0,
    ),
    Parameter("publish_clock", "bool", False, "", "publish /clock: true for one robot alone"),
    Parameter("record", "string", "", "", "CSV file to write: one line a period"),
)
