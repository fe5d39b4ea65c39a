# SPDX-License-Identifier: Apache-2.0
"""The output of each command with `--json`, as JSON Schema (draft 2020-12).

`joints` are always the names in the order of q, qd and qdd, and `actuated` those in the order of
the torques. A number that is not finite is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
MAYBE: Schema = {"type": ["number", "null"]}
SWITCH: Schema = {"type": "boolean"}


def told(schema: Schema, words: str) -> Schema:
    """The schema with a description."""
    return schema | {"description": words}


def several(item: Schema, words: str = "") -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": item} | ({"description": words} if words else {})


def by_name(value: Schema, words: str = "") -> Schema:
    """The schema of an object whose keys are names."""
    found: Schema = {"type": "object", "additionalProperties": value}
    return found | ({"description": words} if words else {})


def thing(needed: Mapping[str, Schema], **optional: Schema) -> Schema:
    """The schema of an object with these properties and no others.

    Args:
        needed: the required properties.
        optional: the optional ones.
    """
    return {
        "type": "object",
        "properties": {**needed, **optional},
        "required": list(needed),
        "additionalProperties": False,
    }


ROBOT = {"robot": told(TEXT, "its name")}
JOINTS = {"joints": several(TEXT, "names, in the order of q, qd and qdd")}
ACTUATED = {"actuated": several(TEXT, "names, in the order of the torques")}
NOTES = {"notes": several(TEXT, "what a person would want to know")}
SIZE = thing({"compiler": TEXT, "code": told(COUNT, "bytes"), "stack": told(COUNT, "bytes")})
FILES = by_name(TEXT, "what was written, by what it is")
STATE = several(NUMBER, "one for each joint, SI units")
RATIOS = by_name(NUMBER, "rotor rate / joint rate, by joint")
TENSOR = thing({f"i{ab}": NUMBER for ab in ("xx", "yy", "zz", "xy", "xz", "yz")})
VECTOR = several(NUMBER) | {"minItems": 3, "maxItems": 3}
SHARES = by_name(several(MAYBE), "largest difference / largest torque, one per torque")

_BODY = thing(
    {
        "parent": TEXT,
        "joint": TEXT,
        "mass": told(NUMBER, "kg"),
        "center_of_mass": told(VECTOR, "m, in the link's frame"),
        "inertia": told(TENSOR, "kg m², about the centre of mass, link axes"),
        "principal_moments": told(VECTOR, "kg m²"),
        "broken": several(TEXT, "conditions that no body breaks"),
    },
    nearest_inertia=told(TENSOR, "of the nearest possible body"),
)

_MOTION = thing(
    {
        "type": TEXT,
        "link": told(TEXT, "what it moves"),
        "follows": by_name(NUMBER, "master: ratio; none: it moves by itself"),
        "lower": told(MAYBE, "rad or m"),
        "upper": told(MAYBE, "rad or m"),
        "velocity": told(MAYBE, "rad/s or m/s"),
        "effort": told(MAYBE, "N·m or N"),
        "gear_ratio": told(MAYBE, "rotor rate / joint rate"),
    }
)

_MODES = several(
    thing(
        {
            "home": by_name(NUMBER, "rad or m"),
            "distance": told(NUMBER, "from home, rad or shares of the robot's size"),
            "condition": MAYBE,
            "poses": by_name(
                several(several(NUMBER)),
                "4 × 4 in the base frame: the platform, and tip links",
            ),
        }
    ),
    "the assembly modes with the motors at home",
)

_CHECK = thing(
    {
        **ROBOT,
        "sound": told(SWITCH, "nothing to warn of"),
        "warnings": several(TEXT),
        **NOTES,
        **JOINTS,
        **ACTUATED,
        "passive": several(TEXT, "joints that the loops move"),
        "sensed": several(TEXT, "passive joints with a sensor"),
        "degrees_of_freedom": COUNT,
        "base": TEXT,
        "tips": several(TEXT, "tip links"),
        "mass": told(NUMBER, "kg, of what can move"),
        "motion": by_name(_MOTION, "every moving joint"),
        "links": by_name(_BODY),
        "rotors": by_name(
            thing(
                {
                    "mount": TEXT,
                    "gear_ratios": RATIOS,
                    "mass": told(NUMBER, "kg"),
                    "axial_inertia": told(NUMBER, "kg m²"),
                    "friction": by_name(NUMBER, "on the motor's side"),
                }
            )
        ),
        "gears": by_name(RATIOS, "transmissions of which no rotor is known"),
        "loops": several(TEXT),
        "disagreement": by_name(NUMBER, "formulation: of the worst joint, relative to its scale"),
        "disagreement_by_joint": by_name(by_name(NUMBER)),
        "backends": by_name(TEXT, "formulation: what ran"),
        "left_out": by_name(TEXT, "formulation: why"),
    },
    closure=by_name({}, "degrees of freedom, redundant rows, residual and condition at home"),
    assembly_modes=_MODES,
)

_SIDES = thing(
    {
        "names": several(TEXT),
        "drive": several(NUMBER, "N·m, what the motor's field gives"),
        "gear": several(NUMBER, "N·m, what enters the gear"),
    }
)

_TORQUE = thing(
    {
        **ROBOT,
        **JOINTS,
        "q": told(STATE, "rad or m"),
        "qd": told(STATE, "rad/s or m/s"),
        "qdd": told(STATE, "rad/s² or m/s²"),
        **ACTUATED,
        "torques": several(MAYBE, "N·m or N"),
        "units": thing({"q": several(TEXT), "torques": several(TEXT)}),
        "formulation": TEXT,
        "rotors": TEXT,
        "terms": several(TEXT),
        **NOTES,
    },
    motors=_SIDES,
)

_ERRORS = thing(
    {"duration": told(MAYBE, "s")}
    | {
        name: several(MAYBE, "one for each joint")
        for name in (
            "torque_rms",
            "identified_rms",
            "described_rms",
            "identified",
            "described",
            "identified_unfiltered_rms",
        )
    }
)

_FOUND = {
    **ROBOT,
    **JOINTS,
    "errors": thing({"unseen": _ERRORS, "fitted": _ERRORS}),
    "parameters": by_name(
        thing({"identified": MAYBE, "described": MAYBE, "standard_deviation": MAYBE})
    ),
    "kept": told(TEXT, "of the description, where it is better: nothing, bodies, everything"),
    **NOTES,
    "warnings": several(TEXT),
    "files": FILES,
}

_IDENTIFY = thing(
    {
        **_FOUND,
        "unexplained": several(
            MAYBE, "N·m or N, by joint: deviation of measured efforts beside that of parameters"
        ),
        "friction": by_name(by_name({})),
        "excitation": by_name(MAYBE),
        "doubts": several(
            thing(
                {
                    "joint": TEXT,
                    "factor": told(NUMBER, "by which its efforts become torques"),
                    "why": TEXT,
                    "error": told(NUMBER, "of the best possible robot, over the efforts"),
                    "error_with_factor": NUMBER,
                    "sure": told(SWITCH, "nothing was fitted to its efforts"),
                }
            )
        ),
        "contacts": several(
            thing(
                {
                    "recording": TEXT,
                    "joint": TEXT,
                    "begin": told(NUMBER, "s since the recording's first stamp"),
                    "end": NUMBER,
                    "most": told(NUMBER, "N·m or N that are missed"),
                    "times": told(NUMBER, "of what is missed as a rule"),
                }
            )
        ),
        "weight_of_the_description": MAYBE,
        "cutoff": by_name(MAYBE, "Hz, by recording"),
        "duration": told(NUMBER, "s"),
        "locked": by_name(NUMBER, "rad or m"),
    },
    drive_gains=by_name(
        thing({"gain": told(NUMBER, "N·m or N a unit of effort"), "standard_deviation": NUMBER}),
        "by joint, with --drive-gains",
    ),
)

_SCORE = thing({"log_det": MAYBE, "condition": MAYBE, "excited": COUNT})

_EXCITE = thing(
    {
        **ROBOT,
        **JOINTS,
        "duration": told(NUMBER, "s"),
        "harmonics": COUNT,
        "start": by_name(NUMBER, "rad or m"),
        "parameters": COUNT,
        "before": told(_SCORE, "each joint merely swinging"),
        "after": _SCORE,
        "shares_of_limits": thing(
            {
                name: by_name(MAYBE, "by joint")
                for name in ("position", "rate", "acceleration", "effort")
            }
        ),
        "rooms": by_name(NUMBER, "m, to what is to be kept away from"),
        **NOTES,
        "files": FILES,
    }
)

_GEARS = thing(
    {
        "ratios": several(NUMBER, "|Γ| of every rotor"),
        "rates": several(NUMBER, "rad/s, the largest of a joint, by speed of the motion"),
        "errors": by_name(
            several(several(NUMBER)), "rotors: by rate and ratio, the error over the largest torque"
        ),
        "worth_from": by_name(
            several(MAYBE), "rotors: by rate, the ratio from which the full model is worth having"
        ),
    }
)

_RUN = thing(
    {
        "label": TEXT,
        **{
            name: several(MAYBE, "one for each joint")
            for name in ("rms", "peak", "rms_ratio", "peak_ratio")
        },
        "platform": {"anyOf": [{"type": "null"}, by_name(MAYBE)]},
    }
)

_DEMO = thing(
    {
        **ROBOT,
        **JOINTS,
        "units": several(TEXT, "of q"),
        "update_rate": told(NUMBER, "Hz"),
        "delay": told(COUNT, "periods"),
        "bandwidth": told(NUMBER, "rad/s"),
        **NOTES,
        "p_gains": several(NUMBER),
        "d_gains": several(NUMBER),
        "runs": several(_RUN),
        "bounds": several(thing({"case": TEXT, "age": told(NUMBER, "s"), "ratio": MAYBE})),
        "picture": TEXT,
        "page": told(TEXT, "on which the robot plays the last run"),
    },
    gears=_GEARS,
)

_MATRIX: Schema = {"anyOf": [{"type": "null"}, several(several(TEXT), "row by row")]}

_DRIVE = thing(
    {
        "peak_torque": told(MAYBE, "N·m or N"),
        "rms_torque": told(MAYBE, "N·m or N"),
        "peak_rate": told(MAYBE, "rad/s or m/s"),
        "peak_power": told(MAYBE, "W"),
        "driven": told(MAYBE, "J that it gives"),
        "braked": told(MAYBE, "J that it takes back"),
        "torque_share": told(MAYBE, "of the limit"),
        "rate_share": told(MAYBE, "of the limit"),
    }
)
_RANGE = thing(
    {
        "lower": told(NUMBER, "rad or m"),
        "upper": told(NUMBER, "rad or m"),
        "home": told(NUMBER, "rad or m"),
        "ends": several(TEXT, "what bounds it at either end"),
        "conditions": several(MAYBE, "of the passive Jacobian there"),
        "without_torque": several(several(NUMBER), "stretches too near a singularity"),
        "share": told(MAYBE, "of the motor's travel, in which there are torques"),
        "places": several(NUMBER, "rad or m, from lower to upper"),
        "passive_conditions": several(MAYBE, "condition numbers at those places"),
    }
)

SCHEMAS: Mapping[str, Schema] = {
    "torque": _TORQUE,
    "derive": thing(
        {
            **JOINTS,
            **ACTUATED,
            "torques": several(TEXT, "expressions in SymPy's syntax, as those that follow"),
            "intermediates": by_name(TEXT, "symbol: expression, in an order to compute them in"),
            "latex": TEXT,
            "parameters": by_name(MAYBE, "symbol: the description's value"),
        },
        D=_MATRIX,
        C=_MATRIX,
        g={"anyOf": [{"type": "null"}, several(TEXT)]},
        **NOTES,
    ),
    "check": _CHECK,
    "compare": thing(
        {
            **ROBOT,
            **JOINTS,
            **ACTUATED,
            "share_of_motion": told(NUMBER, "of the default motion, so that loops close"),
            "disagreement": told(SHARES, "formulations beside Newton–Euler, one per torque"),
            "model_error": told(SHARES, "rotor models beside the full one, one per torque"),
            "gears": {"anyOf": [{"type": "null"}, _GEARS]},
            "files": FILES,
        }
    ),
    "demo": _DEMO,
    "identify": {"anyOf": [_IDENTIFY, thing(_FOUND) | {"description": "of a robot with loops"}]},
    "replay": thing(
        {
            **JOINTS,
            "descriptions": several(TEXT),
            "errors": several(
                several(MAYBE), "by description, one for each joint: share of the torque"
            ),
            "duration": told(NUMBER, "s"),
            **NOTES,
            "files": FILES,
        }
    ),
    "excite": _EXCITE,
    "bench": thing(
        {
            **ROBOT,
            **JOINTS,
            "backend": TEXT,
            "ready_s": told(NUMBER, "s"),
            "call_us": by_name(NUMBER, "µs a call"),
        },
        rows=COUNT,
        batch_us_a_state=told(NUMBER, "µs"),
    ),
    "cache": thing(
        {"directory": TEXT},
        entries=several(
            {"type": "object", "properties": {"file": TEXT, "bytes": COUNT}, "required": ["file"]}
        ),
        removed=COUNT,
    ),
    "export": thing(
        {
            **ROBOT,
            "prefix": TEXT,
            **JOINTS,
            "files": several(TEXT),
            "operations": by_name(COUNT, "by function"),
            "size": {"anyOf": [SIZE, {"type": "null"}]},
        },
        package=told(TEXT, "of a controller"),
    ),
    "urdf": thing({**ROBOT, "urdf": told(TEXT, "the file's text")}, files=FILES),
    "close": thing(
        {
            **ROBOT,
            "home": by_name(NUMBER, "rad or m, of the mode that was asked for"),
            "moved": by_name(NUMBER, "how far from the home as given"),
            "assembly_modes": _MODES,
            "mode": told(COUNT, "which of them home is, from 1 on"),
            "warnings": several(TEXT),
        },
        files=FILES,
    ),
    "show": thing(
        {**ROBOT, "files": FILES, "opened": told(SWITCH, "whether a browser took it"), **NOTES},
    ),
    "motion": thing(
        {
            **ROBOT,
            **JOINTS,
            **ACTUATED,
            "duration": told(NUMBER, "s"),
            "states": COUNT,
            "lost": told(COUNT, "states that the robot cannot reach"),
            "energy": told(MAYBE, "J, given less taken back"),
            "drives": thing({"joints": by_name(_DRIVE), "motors": by_name(_DRIVE)}),
            "beyond": several(TEXT, "what is beyond its limits"),
            "ranges": by_name(_RANGE, "range of each motor, the others at home"),
            **NOTES,
            "files": FILES,
        }
    ),
    "linearize": thing(
        {
            **ROBOT,
            **JOINTS,
            **ACTUATED,
            "states": several(TEXT, "x: the joints, then the rate of each"),
            "state_units": several(TEXT),
            "inputs": several(TEXT, "u: the motors' joints"),
            "input_units": several(TEXT),
            "files": FILES,
        },
        A=several(several(NUMBER), "of one state; those of a motion are in the file"),
        B=several(several(NUMBER)),
        poles=several(several(NUMBER), "real and imaginary parts, 1/s"),
        q=STATE,
        qd=STATE,
        qdd=STATE,
        tau=several(NUMBER, "one per motor, N·m or N"),
    ),
    "completion": thing({"shell": TEXT, "script": TEXT}),
    "schema": {"type": "object"},
}
"""The schema of each command's result"""

ERROR = thing({"error": told(TEXT, "one line")})
"""The output of any command with exit code 1 or 130"""


def output(command: str) -> Schema:
    """The schema of the output of `robot_dynamics COMMAND --json`: a result or an error."""
    return {
        "$schema": DIALECT,
        "title": f"robot_dynamics {command} --json",
        "anyOf": [SCHEMAS[command], ERROR],
    }
