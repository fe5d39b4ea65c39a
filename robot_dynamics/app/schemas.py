# SPDX-License-Identifier: Apache-2.0
"""The output of each command with `--json`, as JSON Schema (draft 2020-12).

`joints` are always the names in the order of q, qd and qdd, and `actuated` those in the order of
the torques. A number that is not finite is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
NULLABLE: Schema = {"type": ["number", "null"]}
BOOLEAN: Schema = {"type": "boolean"}


def described(schema: Schema, words: str) -> Schema:
    """The schema with a description."""
    return schema | {"description": words}


number, nullable, count, text, flag = (
    partial(described, each) for each in (NUMBER, NULLABLE, COUNT, TEXT, BOOLEAN)
)
"""The schemas of single values with a description"""


def array_of(item: Schema, words: str = "") -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": item} | ({"description": words} if words else {})


def object_of(value: Schema, words: str = "") -> Schema:
    """The schema of an object whose keys are names."""
    found: Schema = {"type": "object", "additionalProperties": value}
    return found | ({"description": words} if words else {})


def or_null(schema: Schema) -> Schema:
    """The schema of a value that may be null."""
    return {"anyOf": [{"type": "null"}, schema]}


def maybe(schema: Schema) -> Schema:
    """The schema of a property that may be missing."""
    return _Optional(schema)


class _Optional(Schema):
    pass


def record(**properties: Schema) -> Schema:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, each in properties.items() if not isinstance(each, _Optional)],
        "additionalProperties": False,
    }


ROBOT = {"robot": text("its name")}
JOINTS = {"joints": array_of(TEXT, "names, in the order of q, qd and qdd")}
ACTUATED = {"actuated": array_of(TEXT, "names, in the order of the torques")}
NOTES = {"notes": array_of(TEXT, "remarks for the user")}
SIZE = record(compiler=TEXT, code=count("bytes"), stack=count("bytes"))
FILES = object_of(TEXT, "files written, by kind")
STATE = array_of(NUMBER, "one for each joint, SI units")
RATIOS = object_of(NUMBER, "rotor rate / joint rate, by joint")
TENSOR = record(**{f"i{ab}": NUMBER for ab in ("xx", "yy", "zz", "xy", "xz", "yz")})
VECTOR = array_of(NUMBER) | {"minItems": 3, "maxItems": 3}
EACH = array_of(NULLABLE, "one for each joint")
SHARES = object_of(array_of(NULLABLE), "largest difference / largest torque, one per torque")

_BODY = record(
    parent=TEXT,
    joint=TEXT,
    mass=number("kg"),
    center_of_mass=described(VECTOR, "m, in the link's frame"),
    inertia=described(TENSOR, "kg m², about the centre of mass, link axes"),
    principal_moments=described(VECTOR, "kg m²"),
    broken=array_of(TEXT, "physical conditions that it violates"),
    nearest_inertia=maybe(described(TENSOR, "of the nearest physically consistent body")),
)

_MOTION = record(
    type=TEXT,
    link=text("its child link"),
    follows=object_of(NUMBER, "ratio by master joint; empty: it is independent"),
    lower=nullable("rad or m"),
    upper=nullable("rad or m"),
    velocity=nullable("rad/s or m/s"),
    effort=nullable("N·m or N"),
    gear_ratio=nullable("rotor rate / joint rate"),
)

_MODES = array_of(
    record(
        home=object_of(NUMBER, "rad or m"),
        distance=number("from home, rad or fractions of the robot's size"),
        condition=NULLABLE,
        poses=object_of(
            array_of(array_of(NUMBER)), "4 × 4 in the base frame: the platform, and tip links"
        ),
    ),
    "the assembly modes with the motors at home",
)

_CHECK = record(
    **ROBOT,
    sound=flag("no warnings"),
    warnings=array_of(TEXT),
    **NOTES,
    **JOINTS,
    **ACTUATED,
    passive=array_of(TEXT, "joints without a motor, moved by the loops"),
    sensed=array_of(TEXT, "passive joints with a sensor"),
    degrees_of_freedom=COUNT,
    base=TEXT,
    tips=array_of(TEXT, "tip links"),
    mass=number("kg, of everything that can move"),
    motion=object_of(_MOTION, "every moving joint"),
    links=object_of(_BODY),
    rotors=object_of(
        record(
            mount=TEXT,
            gear_ratios=RATIOS,
            mass=number("kg"),
            axial_inertia=number("kg m²"),
            friction=object_of(NUMBER, "on the motor's side"),
        )
    ),
    gears=object_of(RATIOS, "transmissions without a known rotor"),
    loops=array_of(TEXT),
    disagreement=object_of(NUMBER, "by formulation: the worst joint, relative to its scale"),
    disagreement_by_joint=object_of(object_of(NUMBER)),
    backends=object_of(TEXT, "what ran, by formulation"),
    left_out=object_of(TEXT, "reason, by formulation"),
    closure=maybe(
        object_of({}, "degrees of freedom, redundant rows, residual and condition at home")
    ),
    assembly_modes=maybe(_MODES),
)

_SIDES = record(
    names=array_of(TEXT),
    drive=array_of(NUMBER, "N·m, electromagnetic torque of the motor"),
    gear=array_of(NUMBER, "N·m, at the input of the gear"),
)

_TORQUE = record(
    **ROBOT,
    **JOINTS,
    q=described(STATE, "rad or m"),
    qd=described(STATE, "rad/s or m/s"),
    qdd=described(STATE, "rad/s² or m/s²"),
    **ACTUATED,
    torques=array_of(NULLABLE, "N·m or N"),
    units=record(q=array_of(TEXT), torques=array_of(TEXT)),
    formulation=TEXT,
    rotors=TEXT,
    terms=array_of(TEXT),
    **NOTES,
    motors=maybe(_SIDES),
)

_ERRORS = record(
    duration=nullable("s"),
    torque_rms=EACH,
    identified_rms=EACH,
    described_rms=EACH,
    identified=EACH,
    described=EACH,
    identified_unfiltered_rms=EACH,
)

_FOUND = {
    **ROBOT,
    **JOINTS,
    "errors": record(unseen=_ERRORS, fitted=_ERRORS),
    "parameters": object_of(
        record(identified=NULLABLE, described=NULLABLE, standard_deviation=NULLABLE)
    ),
    "kept": text("from the description, as it predicts better: nothing, bodies, everything"),
    "unexplained": array_of(
        NULLABLE, "N·m or N, by joint: deviation of the efforts that the parameters do not explain"
    ),
    **NOTES,
    "warnings": array_of(TEXT),
    "files": FILES,
}

_IDENTIFY = record(
    **_FOUND,
    friction=object_of(object_of({})),
    excitation=object_of(NULLABLE),
    doubts=array_of(
        record(
            joint=TEXT,
            factor=number("from its efforts to torques"),
            why=TEXT,
            error=number("of the best possible robot, relative to the efforts"),
            error_with_factor=NUMBER,
            sure=flag("nothing was fitted to its efforts"),
        )
    ),
    zeros=array_of(
        record(
            joint=TEXT,
            offset=nullable("rad or m, to be added to its positions; null: cannot be told"),
            deviation=NULLABLE,
            misses_less=number("share by which it makes held-out errors smaller"),
            doubtful=flag("its encoder's zero may be off"),
        )
    ),
    contacts=array_of(
        record(
            recording=TEXT,
            joint=TEXT,
            begin=number("s since the recording's first stamp"),
            end=NUMBER,
            most=number("N·m or N, largest unexplained torque"),
            times=number("ratio of that to the usual residual"),
        )
    ),
    weight_of_the_description=NULLABLE,
    cutoff=object_of(NULLABLE, "Hz, by recording"),
    duration=number("s"),
    locked=object_of(NUMBER, "rad or m"),
    drive_gains=maybe(
        object_of(
            record(gain=number("N·m or N per unit of effort"), standard_deviation=NUMBER),
            "by joint, with --drive-gains",
        )
    ),
)

BY_JOINT = object_of(NULLABLE, "by joint")
_SCORE = record(log_det=NULLABLE, condition=NULLABLE, excited=COUNT)

_EXCITE = record(
    **ROBOT,
    **JOINTS,
    duration=number("s"),
    harmonics=COUNT,
    start=object_of(NUMBER, "rad or m"),
    parameters=COUNT,
    before=described(_SCORE, "of a simple swing of each joint"),
    after=_SCORE,
    shares_of_limits=record(
        position=BY_JOINT, rate=BY_JOINT, acceleration=BY_JOINT, effort=BY_JOINT
    ),
    rooms=object_of(NUMBER, "m, clearance to obstacles"),
    **NOTES,
    files=FILES,
)

_GEARS = record(
    ratios=array_of(NUMBER, "|Γ| of every rotor"),
    rates=array_of(NUMBER, "rad/s, the largest joint rate, for each speed of the motion"),
    errors=object_of(
        array_of(array_of(NUMBER)), "by rotor model: error / largest torque, by rate and ratio"
    ),
    worth_from=object_of(
        array_of(NULLABLE),
        "by rotor model: ratio above which the full model is worthwhile, by rate",
    ),
)

_RUN = record(
    label=TEXT,
    rms=EACH,
    peak=EACH,
    rms_ratio=EACH,
    peak_ratio=EACH,
    platform=or_null(object_of(NULLABLE)),
)

_DEMO = record(
    **ROBOT,
    **JOINTS,
    units=array_of(TEXT, "of q"),
    update_rate=number("Hz"),
    delay=count("periods"),
    bandwidth=number("rad/s"),
    **NOTES,
    p_gains=array_of(NUMBER),
    d_gains=array_of(NUMBER),
    runs=array_of(_RUN),
    against=or_null(
        described(
            record(first=TEXT, second=TEXT, joints=array_of(NULLABLE), platform=array_of(NULLABLE)),
            "RMS errors of the second kind of run divided by those of the first, by draw",
        )
    ),
    bounds=array_of(record(case=TEXT, age=number("s"), ratio=NULLABLE)),
    picture=TEXT,
    page=text("that animates the last run"),
    gears=maybe(_GEARS),
)

_CONTROLLED = record(
    **ROBOT,
    update_rate=number("Hz"),
    bandwidth=number("rad/s"),
    runs=array_of(
        record(
            way=TEXT,
            rms=nullable("rad or m"),
            largest=nullable("rad or m"),
            late=nullable("s, delay of the motion"),
            age=array_of(NULLABLE, "s, of the torques: median, 99 % quantile, maximum"),
        )
    ),
    picture=TEXT,
)

_MATRIX = or_null(array_of(array_of(TEXT), "row by row"))

_DRIVE = record(
    peak_torque=nullable("N·m or N"),
    rms_torque=nullable("N·m or N"),
    peak_rate=nullable("rad/s or m/s"),
    peak_power=nullable("W"),
    driven=nullable("J delivered"),
    braked=nullable("J absorbed"),
    torque_share=nullable("fraction of the limit"),
    rate_share=nullable("fraction of the limit"),
)
_RANGE = record(
    lower=number("rad or m"),
    upper=number("rad or m"),
    home=number("rad or m"),
    ends=array_of(TEXT, "what limits it at each end"),
    conditions=array_of(NULLABLE, "of the passive Jacobian at each end"),
    without_torque=array_of(array_of(NUMBER), "intervals too near a singularity"),
    share=nullable("fraction of the motor's travel with torques"),
    places=array_of(NUMBER, "rad or m, from lower to upper"),
    passive_conditions=array_of(NULLABLE, "condition numbers at those places"),
)

SCHEMAS: Mapping[str, Schema] = {
    "torque": _TORQUE,
    "derive": record(
        **JOINTS,
        **ACTUATED,
        torques=array_of(TEXT, "expressions in SymPy's syntax, as those that follow"),
        intermediates=object_of(TEXT, "symbol: expression, in an order to compute them in"),
        latex=TEXT,
        parameters=object_of(NULLABLE, "symbol: the description's value"),
        D=_MATRIX,
        C=_MATRIX,
        g=or_null(array_of(TEXT)),
        **NOTES,
    ),
    "check": _CHECK,
    "compare": record(
        **ROBOT,
        **JOINTS,
        **ACTUATED,
        share_of_motion=number("fraction of the default motion that keeps the loops closed"),
        disagreement=described(SHARES, "of each formulation from Newton–Euler, one per torque"),
        model_error=described(SHARES, "of each rotor model from the full one, one per torque"),
        gears=or_null(_GEARS),
        files=FILES,
    ),
    "demo": {"anyOf": [_DEMO, described(_CONTROLLED, "of `demo controller`")]},
    "identify": {"anyOf": [_IDENTIFY, record(**_FOUND) | {"description": "of a robot with loops"}]},
    "replay": record(
        **JOINTS,
        descriptions=array_of(TEXT),
        errors=array_of(
            array_of(NULLABLE), "by description, one for each joint: fraction of the torque"
        ),
        duration=number("s"),
        **NOTES,
        files=FILES,
    ),
    "excite": _EXCITE,
    "bench": record(
        **ROBOT,
        **JOINTS,
        backend=TEXT,
        ready_s=number("s"),
        call_us=object_of(NUMBER, "µs per call"),
        rows=maybe(COUNT),
        batch_us_a_state=maybe(number("µs")),
    ),
    "cache": record(
        directory=TEXT,
        entries=maybe(
            array_of(
                {
                    "type": "object",
                    "properties": {"file": TEXT, "bytes": COUNT},
                    "required": ["file"],
                }
            )
        ),
        removed=maybe(COUNT),
    ),
    "export": record(
        **ROBOT,
        prefix=TEXT,
        **JOINTS,
        files=array_of(TEXT),
        operations=object_of(COUNT, "by function"),
        size=or_null(SIZE),
        package=maybe(text("name of the ROS package of a controller")),
    ),
    "urdf": record(**ROBOT, urdf=text("the file's text"), files=maybe(FILES)),
    "close": record(
        **ROBOT,
        home=object_of(NUMBER, "rad or m, of the requested mode"),
        moved=object_of(NUMBER, "rad or m, from the given home"),
        assembly_modes=_MODES,
        mode=count("number of the one that is home, from 1"),
        warnings=array_of(TEXT),
        files=maybe(FILES),
    ),
    "show": record(**ROBOT, files=FILES, opened=flag("whether a browser opened it"), **NOTES),
    "motion": record(
        **ROBOT,
        **JOINTS,
        **ACTUATED,
        duration=number("s"),
        states=COUNT,
        lost=count("states that the robot cannot reach"),
        energy=nullable("J, delivered minus absorbed"),
        drives=record(joints=object_of(_DRIVE), motors=object_of(_DRIVE)),
        beyond=array_of(TEXT, "limits that are exceeded"),
        ranges=object_of(_RANGE, "range of each motor, the others at home"),
        **NOTES,
        files=FILES,
    ),
    "linearize": record(
        **ROBOT,
        **JOINTS,
        **ACTUATED,
        states=array_of(TEXT, "x: the joints, then the rate of each"),
        state_units=array_of(TEXT),
        inputs=array_of(TEXT, "u: the motors' joints"),
        input_units=array_of(TEXT),
        files=FILES,
        A=maybe(array_of(array_of(NUMBER), "of one state; those of a motion are in the file")),
        B=maybe(array_of(array_of(NUMBER))),
        poles=maybe(array_of(array_of(NUMBER), "real and imaginary parts, 1/s")),
        q=maybe(STATE),
        qd=maybe(STATE),
        qdd=maybe(STATE),
        tau=maybe(array_of(NUMBER, "one per motor, N·m or N")),
    ),
    "completion": record(shell=TEXT, script=TEXT),
    "schema": {"type": "object"},
}
"""The schema of each command's result"""

ERROR = record(error=text("one line"))
"""The output of any command with exit code 1 or 130"""


def output(command: str) -> Schema:
    """The schema of the output of `robot_dynamics COMMAND --json`: a result or an error."""
    return {
        "$schema": DIALECT,
        "title": f"robot_dynamics {command} --json",
        "anyOf": [SCHEMAS[command], ERROR],
    }
