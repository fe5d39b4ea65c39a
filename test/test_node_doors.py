# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent to the node is accepted, or refused in one line: payloads, parameters and
diagnostics, without ROS's processes."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from geometry_msgs.msg import InertiaStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from node_bench import Bench

from robot_dynamics.errors import InputError
from robot_dynamics.ros.feed_forward import payload as payloads
from robot_dynamics.ros.feed_forward.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dynamics.ros.feed_forward.outlet import Outlet
from robot_dynamics.ros.feed_forward.parameter_table import Parameter
from robot_dynamics.ros.feed_forward.parameters import AT_ONCE, PARAMETERS, Settings
from robot_dynamics.ros.feed_forward.refusal import RefusedError, Tally

FAST = settings(max_examples=300, derandomize=True, deadline=None)
ANY = st.floats() | st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e154])
KEYS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def message(link: str = "link1", mass: float = 1.0, com=(0.1, 0.2, 0.3), **inertia: float):
    found = InertiaStamped()
    found.header.frame_id = link
    found.inertia.m = mass
    found.inertia.com.x, found.inertia.com.y, found.inertia.com.z = com
    for key, value in inertia.items():
        setattr(found.inertia, key, value)
    return found


@FAST
@given(
    st.text(),
    ANY,
    st.tuples(ANY, ANY, ANY),
    st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, ANY)),
)
def test_a_payload_is_a_body_or_refused_in_one_printable_line(link, mass, com, inertia):
    if any("\ud800" <= c <= "\udfff" for c in link):
        return
    with np.errstate(all="ignore"):
        try:
            name, found = payloads.read(message(link, mass, com, **inertia))
        except RefusedError as error:
            assert str(error).isprintable()  # noqa: PT017  both ways are right
            return
    assert name == link
    assert found.mass == mass >= 0
    assert mass > 0 or not found.inertia.any()
    assert np.isfinite([*found.center_of_mass, *found.inertia.flat]).all()


def test_a_payload_has_its_inertia_where_the_message_has_it():
    entries = dict(zip(KEYS, (0.4, 0.5, 0.6, 0.01, 0.02, 0.03), strict=True))
    _, found = payloads.read(message(com=(1.0, 2.0, 3.0), **entries))
    assert found.center_of_mass.tolist() == [1.0, 2.0, 3.0]
    assert found.inertia.tolist() == [[0.4, 0.01, 0.02], [0.01, 0.5, 0.03], [0.02, 0.03, 0.6]]


@pytest.mark.parametrize("mass", [0.0, -0.0])
def test_a_mass_of_zero_removes_a_payload_whatever_else_the_message_has(mass):
    # a centre of mass that was divided by the mass is no number
    anything = message(mass=mass, com=(math.nan, math.inf, 1e308), ixx=-math.inf)
    assert payloads.read(anything)[1].is_nothing


@pytest.mark.parametrize(
    ("reason", "fields"),
    [
        ("not finite", {"mass": math.nan}),
        ("not finite", {"com": (0.0, math.inf, 0.0)}),
        ("not finite", {"iyz": -math.inf}),
        ("impossible body", {"mass": -1e-9}),
        ("impossible body", {"ixx": 3.0, "iyy": 1.0, "izz": 1.0}),
        ("impossible body", {"ixx": -1.0}),
        ("impossible body", {"ixy": 1.0}),
    ],
)
def test_a_body_that_cannot_be_is_refused_with_the_reason(reason, fields):
    with pytest.raises(RefusedError) as caught:
        payloads.read(message(**fields))
    assert caught.value.reason == reason


SCALARS = (
    st.none() | st.booleans() | st.integers() | ANY | st.text() | st.binary()
    | st.sampled_from(["inertia", "joint", "newton_euler", "a:1", "gravity"])
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=5) | st.dictionaries(st.text(), SCALARS, max_size=2)


@FAST
@given(st.dictionaries(st.sampled_from([row.name for row in PARAMETERS]), VALUES, max_size=4))
def test_settings_are_values_of_the_table_or_refused_in_one_printable_line(values):
    try:
        found = Settings.of(values)
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017  both ways are right
        assert any(str(error).startswith(row.name) for row in PARAMETERS)  # noqa: PT017
        return
    for row in PARAMETERS:
        value = getattr(found, row.name)
        for each in value if row.type.endswith("array") else (value,):
            kind = row.type.removesuffix("_array")
            assert isinstance(each, {"string": str, "bool": bool, "double": float}[kind])
            assert not row.choices or each in row.choices
            assert kind != "double" or row.minimum <= each <= row.maximum
    assert found.terms
    assert Settings.of({}).changed(values) == found


def test_other_values_leave_the_rest_as_it_was():
    base = Settings.of({"formulation": "murphy", "effort_limits": [1.0]})
    changed = base.changed({"effort_limits": [], "rate": 5.0})
    assert changed == Settings.of({"formulation": "murphy", "rate": 5.0})
    assert base.effort_limits == (1.0,)


@pytest.mark.parametrize("entries", [["a"], ["a:b"], [":1"], ["a:inf"], ["a:1", "a:2"]])
def test_locked_joints_that_are_none_are_refused_before_there_is_a_robot(entries):
    with pytest.raises(InputError, match=r"^locked_joints: found"):
        Settings.of({"locked_joints": entries})


def test_what_no_model_is_built_from_is_what_no_model_reads():
    assert {
        "command_timeout",
        "on_timeout",
        "ramp_time",
        "farewell_time",
        "missing_velocities",
        "derivative_filter",
        "merge_states",
        "residual_filter",
        "residual_threshold",
        "max_age",
        "lookahead",
        "missing_accelerations",
        "max_acceleration",
        "lead_in_acceleration",
        "base_gravity",
        "base_angular_acceleration",
        "base_imu_pose",
        "base_timeout",
    } == AT_ONCE


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Parameter("a", "double", 0.0, "", ""), ""),
        (Parameter("a", "double", 0.0, "", "", minimum=1.0), "1 or more"),
        (Parameter("a", "double", 0.0, "", "", minimum=1.0, maximum=2.5), "1 to 2.5"),
        (Parameter("a", "string", "b", "", "", choices=("b", "c")), "one of b, c"),
        (Parameter("a", "string_array", (), "", "", choices=("b", "c")), "any of b, c"),
    ],
)
def test_the_range_of_a_parameter_is_told_in_words(row, words):
    assert row.range == words


ARM = (
    '<robot name="arm"><link name="world"/><link name="link1"><inertial><mass value="2"/>'
    '<origin xyz="0.5 0 0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    '</link><joint name="swing" type="continuous"><parent link="world"/><child link="link1"/>'
    '<axis xyz="0 1 0"/></joint></robot>'
)


def report(bench: Bench, diagnosis: Diagnosis, now: float, steady: float, **more):
    return diagnosis.report(
        bench.controller, more.pop("busy", False), 10**12 + int(now * 1e9), steady, **more
    )


def test_diagnostics_tell_what_computes_and_how_often():
    bench, diagnosis = Bench(ARM, command_timeout=0.0), Diagnosis(0.0)
    found = report(bench, diagnosis, 0.0, 1.0)
    assert (found.level, found.message) == (OK, "waiting for a command")
    assert found.values["state age (s)"] == found.values["command age (s)"] == "never"
    rates = ("state rate (Hz)", "command rate (Hz)", "torque rate (Hz)")
    assert [found.values[key] for key in rates] == ["0.0"] * 3
    bench.accelerate(1.0, 2.0)
    for k in range(4):
        bench.state(1.0 + 0.1 * k)
    found = report(bench, diagnosis, 1.5, 3.0)
    assert (found.level, found.message) == (
        OK,
        "publishing torques; subscribers of ~/commands: 1",
    )
    assert found.values["state rate (Hz)"] == found.values["torque rate (Hz)"] == "2.0"
    assert found.values["command rate (Hz)"] == "0.5"
    assert found.values["state age (s)"] == "0.200"
    assert found.values["command age (s)"] == "0.500"
    assert [found.values[key] for key in ("states", "commands", "torques")] == ["4", "1", "4"]
    assert found.values["rejected"] == "0"
    expected = {
        "robot": "arm", "joints": "swing", "side": "joint", "formulation": "newton_euler",
        "rotors": "full", "terms": "inertia, coriolis, gravity, friction, rotors",
        "payload (kg)": "0", "building a new model": "no", "phase": "following",
    }  # fmt: skip
    assert found.values.items() >= expected.items()
    assert report(bench, diagnosis, 2.0, 4.0, busy=True).values["building a new model"] == "yes"


def test_silence_before_the_first_torques_counts_from_the_start():
    """Not from that of the clock that never jumps, which may be the machine's."""
    times = iter([1e6, 1e6 + 2.0])
    assert Outlet(Tally(print), lambda: next(times)).silence(0) == 2.0


def test_diagnostics_grow_worse_with_what_happens_and_better_again():
    bench, diagnosis = Bench(ARM, command_timeout=0.5), Diagnosis(0.0)
    bench.accelerate(0.0, 2.0)
    bench.state(0.1)
    assert report(bench, diagnosis, 0.1, 1.0).level == OK
    found = report(bench, diagnosis, 0.2, 2.0)
    assert (found.level, found.message) == (
        ERROR,
        "no torques for 0.100 s: no joint_states are received",
    )
    bench.wall = 7.0  # simulated time stands still
    found = report(bench, diagnosis, 0.2, 2.5)
    assert found.message == "no torques for 7.000 s: no joint_states are received"
    bench.state(0.3, names=("swing", "swing"), q=[0, 0], qd=[0, 0])
    bench.state(0.4)
    found = report(bench, diagnosis, 0.4, 3.0)
    assert found.message == "in the last second: joint_states: duplicate names (1)"
    assert found.values["rejected"] == "1"
    assert found.values["rejected: joint_states: duplicate names"] == "1"
    bench.state(0.9)
    found = report(bench, diagnosis, 0.9, 4.0)
    assert found.message == "in the last second: command: timeout (1)"
    assert found.values["event: command: timeout"] == "1"
    bench.state(1.0)
    found = report(bench, diagnosis, 1.0, 5.0)
    assert (found.level, found.message) == (
        WARN,
        "commands have stopped: torques at rest for 1.000 s (on_timeout is gravity)",
    )
    bench.controller.model = None
    found = report(bench, diagnosis, 1.0, 6.0)
    assert (found.level, found.message) == (ERROR, "no robot: waiting for robot_description")


def test_diagnostics_tell_how_many_receive_the_torques_and_warn_where_nobody_does():
    bench, diagnosis, topic = Bench(ARM, command_timeout=0.0), Diagnosis(0.0), "/x/commands"
    assert report(bench, diagnosis, 0.0, 0.5, topic=topic, subscribers=0).level == OK, "none"
    bench.accelerate(0.0, 1.0)
    nobody = (WARN, "nobody receives the torques: /x/commands has no subscriber")
    for now, count in ((0.1, 0), (0.2, 2)):
        bench.state(now)
        found = report(bench, diagnosis, now, 1.0 + now, topic=topic, subscribers=count)
        expected = (OK, "publishing torques; subscribers of /x/commands: 2")
        assert (found.level, found.message) == (expected if count else nobody)


def test_diagnostics_warn_after_shutdown():
    found = report(Bench(ARM), Diagnosis(0.0), 9.0, 9.0, state="finalized")
    assert (found.level, found.values["state"]) == (WARN, "finalized")


@pytest.mark.parametrize("state", ["unconfigured", "inactive"])
def test_a_node_that_is_not_active_is_not_reproached_for_its_silence(state):
    bench, diagnosis = Bench(ARM, command_timeout=0.0), Diagnosis(0.0)
    bench.accelerate(0.0, 1.0)
    for _ in range(2):
        bench.state(0.0)
        found = report(bench, diagnosis, 9.0, 9.0, state=state, blocked="nobody is there")
        assert (found.level, found.values["state"]) == (OK, state)
        assert found.message == f"{state}: no torques until it is activated"


def test_diagnostics_tell_of_a_description_that_was_refused_beside_what_else_there_is():
    bench, diagnosis = Bench(ARM, command_timeout=0.0), Diagnosis(0.0)
    told = "the newest robot description was refused"
    found = report(bench, diagnosis, 0.0, 1.0, description_refused=True)
    assert (found.level, found.message) == (WARN, told)
    assert found.values["newest description"] == "refused"
    assert "newest description" not in report(bench, diagnosis, 0.0, 1.5).values
    bench.controller.model = None
    found = report(bench, diagnosis, 0.0, 2.0, description_refused=True)
    assert (found.level, found.message) == (
        ERROR,
        f"{told}; no robot: waiting for robot_description",
    )
    assert all(set(key) <= set(string.printable) for key in found.values)
