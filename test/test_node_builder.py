# SPDX-License-Identifier: Apache-2.0
"""Whatever was answered with success is what computes: descriptions, parameters and payloads in any
order, and builds that fail, hang or die. In process, on the node's own classes."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from geometry_msgs.msg import InertiaStamped
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text
from robot_dynamics.errors import DescriptionError, InputError, RobotDynamicsError
from robot_dynamics.mechanism import Inertial, Pose, Rotor
from robot_dynamics.mechanism.dynamic_parameters import numbers_of
from robot_dynamics.ros.feed_forward import builder as builders
from robot_dynamics.ros.feed_forward import payload as payloads
from robot_dynamics.ros.feed_forward import process
from robot_dynamics.ros.feed_forward.background import SWITCH_INTERVAL
from robot_dynamics.ros.feed_forward.builder import MOST_WAITING, Builder, Outcome
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.process import BuildError, BuildProcess, Draft
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

ROOT = Path(__file__).resolve().parents[1]
SIX_AXIS = (ROOT / "urdf" / "six_axis.urdf").read_text()
PATIENCE = 60.0
"""s until a test gives up"""
ROUNDING = 1e-12
"""Relative: a torque is a few sums and products"""


def arm(mass: float = 2.0, joints=("shoulder", "elbow"), effort: float | None = None) -> str:
    """An arm with its links one behind the other, of this mass each."""
    limit = "" if effort is None else f'<limit effort="{effort}" velocity="9"/>'
    parts = ['<robot name="arm"><link name="world"/>']
    parent = "world"
    for k, name in enumerate(joints):
        parts.append(
            f'<link name="link{k}"><inertial><origin xyz="0.3 0 0.1"/><mass value="{mass}"/>'
            '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{name}" type="{"continuous" if effort is None else "revolute"}">'
            f'<parent link="{parent}"/><child link="link{k}"/><origin xyz="0.5 0 0"/>'
            f'<axis xyz="0 1 0"/><dynamics damping="0.7"/>{limit}</joint>'
        )
        parent = f"link{k}"
    return "".join([*parts, "</robot>"])


TEXTS = {
    "two": arm(),
    "heavy": arm(5.0),
    "three": arm(joints=("shoulder", "elbow", "wrist")),
    "limited": arm(effort=3.0, joints=("hip", "knee")),
}
BROKEN = {"half": "<robot", "path": str(ROOT / "urdf" / "six_axis.urdf"), "empty": ""}


class InProcess:
    """Where a build's process would be: the same work, here."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def kill(self):
        pass

    def mechanism(self, draft: Draft, tell):
        return Model(draft.spec()).spec.mechanism


class Failing(InProcess):
    """A process that does not come to its end."""

    error: BaseException = OSError(28, "No space left on device")

    def mechanism(self, draft, tell):
        raise self.error


class Host:
    """What the node does with a builder."""

    def __init__(self, process=InProcess, **values):
        self.model: Model | None = None
        self.said: list[str] = []
        self.outcomes: list[Outcome] = []
        self.builder = Builder(Settings.of(values), self.said.append, process)

    def poll(self) -> Outcome | None:
        """Begin what waits, or take what was begun before."""
        self.builder.wait(PATIENCE)
        outcome = self.builder.poll(self.model)
        if outcome is None:
            return None
        self.outcomes.append(outcome)
        if outcome.error is not None:
            self.builder.reject(outcome)
            return outcome
        self.builder.accept(outcome, self.model)
        self.model = outcome.model or self.model
        return outcome

    def settle(self) -> list[Outcome]:
        """Poll until nothing is left to do; what came of it."""
        before = len(self.outcomes)
        while self.builder.busy:
            self.poll()
        return self.outcomes[before:]

    def carry(self, link: str, mass: float) -> None:
        self.builder.carry(*payloads.read(body(link, mass)), self.model)


def body(link: str, mass: float) -> InertiaStamped:
    message = InertiaStamped()
    message.header.frame_id = link
    message.inertia.m, message.inertia.com.x = mass, 0.2
    return message


def test_a_mass_of_zero_takes_the_payload_away_whatever_else_the_message_has():
    message = body("link0", 0.0)
    message.inertia.ixx = 3.0
    link, found = payloads.read(message)
    assert link == "link0"
    assert found.is_nothing
    message.inertia.iyy = float("nan")
    link, found = payloads.read(message)
    assert link == "link0"
    assert found.is_nothing


def test_payloads_are_read_as_they_were_written():
    bodies = {link: payloads.read(body(link, 2.0 + k))[1] for k, link in enumerate(["ü", 'a"b'])}
    found = payloads.parsed(payloads.written(bodies))
    assert list(found) == list(bodies)
    for link, each in bodies.items():
        np.testing.assert_allclose(numbers_of(found[link]), numbers_of(each), ROUNDING)
    assert payloads.parsed("{}") == {}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "2", '{"a": 2}', '{"a": {}}', '{"a": []}', "[" * 10**5,
     payloads.written({"a": Inertial(1.0)}).replace("1.0", "NaN"),
     payloads.written({"a": Inertial(1.0)}).replace("1.0", '"x"')],
)  # fmt: skip
def test_a_text_that_is_no_payloads_is_refused_in_one_line(text):
    with pytest.raises(RefusedError, match="no payloads") as caught:
        payloads.parsed(text)
    assert "\n" not in str(caught.value)


def torques_of(model: Model) -> np.ndarray:
    n, k = len(model.joints), len(model.read)
    return model(np.linspace(0.3, 0.7, k), np.linspace(-0.2, 0.4, k), np.linspace(1.0, 2.0, n))


def expected(text: str, values: dict, carried: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """(torques, limits) by the façade alone, from what was accepted."""
    mechanism = load_urdf_text(text)
    dynamics = rd.InverseDynamics(
        mechanism,
        values.get("formulation", "newton_euler"),
        terms=values.get("terms", ("inertia", "coriolis", "gravity", "friction", "rotors")),
        backend="python",
    )
    for link, mass in carried.items():
        dynamics.set_payload(link, payloads.read(body(link, mass))[1])
    names = dynamics.joint_names
    locked = {
        name: float(value)
        for name, value in (each.split(":") for each in values.get("locked_joints", ()))
    }
    free = [name for name in names if name not in locked]
    at = dict(zip(free, np.linspace(0.3, 0.7, len(free)), strict=True)) | locked
    rate = dict.fromkeys(locked, 0.0) | dict(
        zip(free, np.linspace(-0.2, 0.4, len(free)), strict=True)
    )
    want = dict.fromkeys(locked, 0.0) | dict(
        zip(free, np.linspace(1.0, 2.0, len(free)), strict=True)
    )
    q, qd, qdd = ([each[name] for name in names] for each in (at, rate, want))
    out = [names.index(name) for name in free]
    limits = values.get("effort_limits") or [3.0 if "hip" in names else np.inf] * len(free)
    return dynamics(q, qd, qdd)[out], np.array(limits)


TERMS = ("inertia", "coriolis", "gravity", "friction", "rotors")
VALUES = st.one_of(
    st.fixed_dictionaries({"terms": st.lists(st.sampled_from(TERMS), min_size=1, unique=True)}),
    st.fixed_dictionaries({"terms": st.just([])}),
    st.fixed_dictionaries({"formulation": st.sampled_from(["gibbs_appell", "newton_euler", "x"])}),
    st.fixed_dictionaries(
        {"effort_limits": st.lists(st.sampled_from([1.0, 5.0]), max_size=3)},
        optional={"formulation": st.sampled_from(["murphy", "newton_euler"])},
    ),
    st.fixed_dictionaries(
        {"locked_joints": st.sampled_from([[], ["elbow:0.5"], ["knee:0.1"], ["a:b"], ["elbow:0"]])}
    ),
)


class Orders(RuleBasedStateMachine):
    """Descriptions, parameters, payloads and time, in any order."""

    def __init__(self):
        super().__init__()
        self.host = Host()
        self.values: dict = {}
        self.text: str | None = None
        self.carried: dict[str, float] = {}
        self.checked: Model | None = None

    @rule(name=st.sampled_from(sorted(TEXTS)), polls=st.integers(0, 2))
    def describe(self, name, polls):
        self.host.builder.describe(TEXTS[name])
        for _ in range(polls):
            self.took(self.host.poll())

    @rule(name=st.sampled_from(sorted(BROKEN)))
    def describe_no_robot(self, name):
        self.host.builder.describe(BROKEN[name])

    @rule(values=VALUES)
    def set(self, values):
        try:
            self.host.builder.set(values)
        except InputError:
            assert values in ({"terms": []}, {"formulation": "x"}, {"locked_joints": ["a:b"]})

    @rule(link=st.sampled_from(["link0", "link2", "x"]), mass=st.sampled_from([0.0, 1.0, 3.0]))
    def carry(self, link, mass):
        try:
            self.host.carry(link, mass)
        except RefusedError:
            assert self.host.model is None or link != "link0"

    @rule()
    def poll(self):
        self.took(self.host.poll())

    @rule()
    def settle(self):
        while self.host.builder.busy:
            self.took(self.host.poll())

    def took(self, outcome):
        """Keep account of what was accepted, by the outcomes alone."""
        if outcome is None or outcome.error is not None:
            return
        change = outcome.change
        if change.kind == "parameters":
            self.values |= change.value
        if change.kind == "payload":
            link, payload = change.value
            self.carried[link] = float(payload.mass)
            if not payload.mass:
                del self.carried[link]
        if outcome.model is not None and change.kind != "payload":
            # the parameters may have helped the newest description, that was refused
            names = set(load_names(outcome.model))
            candidates = [text for text in TEXTS.values() if text_matches(text, outcome.model)]
            assert len(candidates) == 1
            if change.kind == "description":
                assert candidates[0] == change.value
            self.text = candidates[0]
            self.carried = {link: m for link, m in self.carried.items() if link in names}

    @invariant()
    def what_was_accepted_is_what_computes(self):
        model = self.host.model
        assert (model is None) == (self.text is None)
        if model is None or model is self.checked:
            return
        tau, limits = expected(self.text, self.values, self.carried)
        np.testing.assert_allclose(torques_of(model), tau, ROUNDING, ROUNDING)
        np.testing.assert_array_equal(model.limits, limits)
        self.checked = model

    def teardown(self):
        self.settle()
        self.what_was_accepted_is_what_computes()
        self.host.builder.close()


def load_names(model: Model) -> list[str]:
    return [link.name for link in model.spec.mechanism.links]


def text_matches(text: str, model: Model) -> bool:
    there, here = load_urdf_text(text), model.spec.mechanism
    return there.joint_names == here.joint_names and (
        there.links[0].inertial.mass == here.links[0].inertial.mass
    )


Orders.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOrders = Orders.TestCase


# By name


def adopted(**values) -> Host:
    host = Host(**values)
    host.builder.describe(TEXTS["two"])
    assert [each.error for each in host.settle()] == [None]
    return host


def test_parameters_that_were_accepted_before_the_first_robot_are_its():
    host = Host()
    values = {"terms": ["inertia"], "effort_limits": [1.0, 1.0]}
    for name, value in values.items():
        host.builder.set({name: value})
    assert not host.builder.refused_description
    assert [(each.error, each.still_refused) for each in host.settle()] == [(None, None)] * 2
    host.builder.describe(TEXTS["two"])
    # and one that comes while the first one is built
    host.poll()
    host.builder.set({"formulation": "gibbs_appell"})
    host.settle()
    tau, limits = expected(TEXTS["two"], values, {})
    np.testing.assert_allclose(torques_of(host.model), tau, ROUNDING)
    np.testing.assert_array_equal(host.model.limits, limits)
    assert host.model.spec.settings.formulation == "gibbs_appell"


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        MemoryError(),
        RecursionError("too deep\nmuch"),
        AssertionError(),
        KeyError("link"),
        BuildError("BuildError: killed"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("change", ["parameters", "description"])
def test_a_build_that_fails_in_whatever_way_changes_nothing_and_is_one_line(error, change):
    host = adopted()
    before, tau = host.model, torques_of(host.model)
    good, host.builder._process = host.builder._process, type("P", (Failing,), {"error": error})
    if change == "parameters":
        host.builder.set({"formulation": "gibbs_appell"})
    else:
        host.builder.describe(TEXTS["three"])
    (outcome,) = host.settle()
    assert type(error).__name__ in str(outcome.error)
    assert str(outcome.error).isprintable()
    assert host.model is before
    assert host.builder.settings.formulation == "newton_euler"
    assert host.builder.refused_description == (change == "description")
    np.testing.assert_array_equal(torques_of(host.model), tau)
    # the next good change is as good as ever
    host.builder._process = good
    host.builder.set({"terms": ["gravity"]})
    host.settle()
    assert host.model.spec.settings.terms == ("gravity",)
    assert not host.builder.refused_description
    assert len(host.model.joints) == (2 if change == "parameters" else 3)


def test_a_change_that_fails_takes_no_later_one_back_with_it():
    mechanism = rd.load(ROOT / "config" / "five_bar.yaml")
    host = Host()
    host.model = Model(ModelSpec(mechanism, host.builder.settings))
    host.builder.set({"condition_limit": 1.0})
    host.poll()
    host.builder.set({"effort_limits": [7.0, 8.0]})
    host.builder.take({"command_timeout": 3.0})
    outcomes = host.settle()
    assert [each.error is None for each in outcomes] == [False, True]
    assert host.model.limits.tolist() == [7.0, 8.0]
    assert host.builder.settings == host.model.spec.settings
    assert host.builder.settings == Settings.of(
        {"effort_limits": [7.0, 8.0], "command_timeout": 3.0}
    )


def test_what_is_said_again_builds_nothing():
    host = adopted(effort_limits=[4.0, 5.0])
    changes = (
        lambda: host.builder.set({"effort_limits": [4.0, 6.0], "rotors": "none"}),
        lambda: host.carry("link1", 2.0),
        lambda: host.carry("link1", 0.0),
    )
    for change in changes:
        models = []
        for _ in range(2):
            change()
            (outcome,) = host.settle()
            assert outcome.error is None
            models.append(outcome.model)
        assert [model is None for model in models] == [False, True]


def test_a_refused_description_is_tried_again_with_other_parameters_or_when_it_comes_again():
    host = Host(locked_joints=["thumb:0.1"])
    for _ in range(2):
        host.builder.describe(TEXTS["two"])
        (outcome,) = host.settle()
        assert "thumb" in str(outcome.error)
        assert host.builder.refused_description
    # still not right: it is accepted, for nothing computes yet, and the reason is told
    host.builder.set({"effort_limits": [1.0] * 3})
    (outcome,) = host.settle()
    assert "thumb" in str(outcome.still_refused)
    host.builder.set({"locked_joints": ["elbow:0.5"], "effort_limits": [4.0]})
    (outcome,) = host.settle()
    assert host.model.joints == ("shoulder",)
    assert host.model.limits.tolist() == [4.0]
    assert not host.builder.refused_description
    assert outcome.still_refused is None


def test_parameters_that_do_not_fit_a_refused_description_are_those_of_the_robot_that_computes():
    host = adopted(effort_limits=[4.0, 5.0])
    host.builder.describe(TEXTS["three"])
    (outcome,) = host.settle()
    assert "2 numbers" not in str(outcome.error)
    assert "3 numbers" in str(outcome.error)
    host.builder.set({"effort_limits": [6.0, 7.0]})
    (outcome,) = host.settle()
    assert "3 numbers" in str(outcome.still_refused)
    assert host.model.limits.tolist() == [6.0, 7.0]
    assert host.builder.refused_description
    host.builder.set({"effort_limits": []})
    host.settle()
    assert len(host.model.joints) == 3
    assert not host.builder.refused_description


def test_parameters_no_robot_can_have_are_refused_with_the_reason():
    host = adopted()
    before = host.model
    for values, word in (
        ({"effort_limits": [1.0]}, "2 numbers"),
        ({"locked_joints": ["thumb:1"]}, "thumb"),
        ({"locked_joints": ["elbow:1", "shoulder:1"]}, "at least one joint"),
    ):
        host.builder.set(values)
        (outcome,) = host.settle()
        assert word in str(outcome.error)
    with pytest.raises(InputError, match="at least one"):
        host.builder.set({"terms": []})
    assert host.model is before
    assert host.builder.settings == Settings.of({})


def test_the_newest_description_is_the_one_however_many_came_and_the_same_again_is_nothing():
    host = adopted()
    first = host.model
    for name in ("three", "heavy", "two", "heavy"):
        host.builder.describe(TEXTS[name])
        host.builder.poll(host.model)
    outcomes = host.settle()
    assert [each.change.value for each in outcomes] == [TEXTS["heavy"]]
    assert host.model is not first
    second = host.model
    host.builder.describe(TEXTS["heavy"])
    assert not host.builder.busy
    host.builder.describe(TEXTS["two"])
    host.builder.describe(TEXTS["heavy"])
    host.settle()
    tau, _ = expected(TEXTS["heavy"], {}, {})
    np.testing.assert_allclose(torques_of(host.model), tau, ROUNDING)
    np.testing.assert_allclose(torques_of(second), tau, ROUNDING)


def test_payloads_on_unknown_links_crowd_nothing_out():
    host = adopted()
    for number in range(2 * MOST_WAITING):
        with pytest.raises(RefusedError, match="stranger"):
            host.carry(f"stranger{number}", 1.0)
    host.carry("link0", 2.0)
    (outcome,) = host.settle()
    assert outcome.error is None


def test_a_payload_is_of_the_robot_that_is_there_when_its_turn_comes():
    with pytest.raises(RefusedError, match="there is no robot yet"):
        Host().carry("link0", 1.0)
    host = adopted()
    with pytest.raises(RefusedError, match="link2"):
        host.carry("link2", 1.0)
    host.builder.describe(TEXTS["three"])
    host.carry("link0", 2.0)
    host.carry("link2", 9.0)
    host.carry("link2", 1.0)
    host.carry("tool", 1.0)
    outcomes = host.settle()
    assert [each.error is None for each in outcomes] == [True, True, True, False]
    tau, _ = expected(TEXTS["three"], {}, {"link0": 2.0, "link2": 1.0})
    np.testing.assert_allclose(torques_of(host.model), tau, ROUNDING)
    # a robot without the link has nothing of it; with it, it is carried on
    host.builder.describe(TEXTS["heavy"])
    host.settle()
    tau, _ = expected(TEXTS["heavy"], {}, {"link0": 2.0})
    np.testing.assert_allclose(torques_of(host.model), tau, ROUNDING)
    host.carry("link0", 0.0)
    host.settle()
    assert not host.model.spec.payloads


def test_a_model_is_built_once_for_wrenches_on_a_link_and_other_changes_keep_that():
    host = adopted()
    host.builder.describe(TEXTS["three"])
    assert host.builder.push("link2")
    assert not host.builder.push("link2"), "it waits"
    host.poll()
    host.poll()
    assert not host.builder.push("link2"), "it is being built"
    assert host.builder.push("tool")
    assert [each.error is None for each in host.settle()][-2:] == [True, False]
    assert host.model.spec.wrench_links == {"link2"}
    host.builder.set({"formulation": "lagrange_euler"})
    host.carry("link0", 2.0)
    host.settle()
    assert host.model.spec.wrench_links == {"link2"}
    w = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    q = np.linspace(0.3, 0.7, len(host.model.read))
    assert host.model.wrench_torques({"link2": w}, q).any()
    assert not host.model.wrench_torques({"link1": w}, q).any(), "it has to wait"
    host.builder.describe(TEXTS["heavy"])
    host.settle()
    assert not host.model.spec.wrench_links


def test_until_it_is_accepted_nothing_of_a_payload_is_in_the_model_that_computes():
    host = adopted()
    before, tau = host.model, torques_of(host.model)
    host.carry("link1", 3.0)
    host.poll()
    host.builder.wait(PATIENCE)
    np.testing.assert_array_equal(torques_of(before), tau)
    host.settle()
    np.testing.assert_array_equal(torques_of(before), tau)
    assert not np.allclose(torques_of(host.model), tau)


def test_too_many_changes_are_refused_and_too_large_a_text_before_it_waits():
    host = adopted()
    for k in range(MOST_WAITING):
        host.builder.set({"effort_limits": [1.0 + k, 1.0]})
    with pytest.raises(RefusedError, match="are already waiting"):
        host.builder.set({"effort_limits": [1.0, 1.0]})
    with pytest.raises(RefusedError, match="are already waiting"):
        host.carry("link0", 1.0)
    with pytest.raises(DescriptionError, match="at most"):
        host.builder.describe("<robot>" + " " * 10_000_001)
    host.builder.close()
    assert not host.builder.busy


def test_models_that_were_replaced_are_gone():
    import weakref

    host = adopted()
    watched = []
    for k in range(3):
        watched.append(weakref.ref(host.model.dynamics))
        host.builder.set({"friction_smoothing": 0.1 + k})
        host.settle()
        host.outcomes.clear()
    gc.collect()
    assert [each() for each in watched] == [None] * 3


def test_many_descriptions_leave_nothing_behind():
    host, counts = adopted(), []
    for k in range(12):
        host.builder.describe(arm(3.0 + k))
        host.settle()
        host.outcomes.clear()
        gc.collect()
        counts.append(len(gc.get_objects()))
    # the first ones may be the first to need something that is kept; a model would be eighty
    # objects each time, and a thread leaves four where coverage is measured
    assert max(counts[4:]) - min(counts[4:]) < 10 * len(counts[4:]), counts


@pytest.mark.parametrize(("side", "limits"), [("joint", [3.0, 3.0]), ("drive", [0.03, 0.06])])
def test_limits_are_the_descriptions_and_on_the_motors_side_those_over_the_gear_ratio(side, limits):
    text = TEXTS["limited"].replace(
        "</robot>",
        "".join(
            f'<transmission name="t{k}"><type>SimpleTransmission</type><joint name="{joint}"/>'
            f'<actuator name="m{k}"><mechanicalReduction>{ratio}</mechanicalReduction></actuator>'
            "</transmission>"
            for k, (joint, ratio) in enumerate([("hip", 100), ("knee", -50)])
        )
        + "</robot>",
    )
    model = Model(ModelSpec(load_urdf_text(text), Settings.of({"side": side})))
    np.testing.assert_allclose(model.limits, limits)
    chosen = Settings.of({"side": side, "effort_limits": [9.0, np.inf]})
    assert Model(ModelSpec(load_urdf_text(text), chosen)).limits.tolist() == [9.0, np.inf]


@pytest.mark.parametrize(
    ("shafts", "limits"),
    [
        ([[("hip", 100.0)], [("knee", -50.0)]], [0.03, 0.06]),
        ([[("knee", 50.0)], [("hip", 100.0)]], [0.06, 0.03]),
        ([[("hip", 100.0)], [("knee", 50.0)], [("knee", 20.0)]], [0.03, np.inf, np.inf]),
        ([[("hip", 10.0), ("knee", 10.0)], [("hip", 10.0), ("knee", -10.0)]], [np.inf, np.inf]),
        ([[("hip", 10.0), ("knee", 5.0)], [("knee", 10.0)]], [np.inf, np.inf]),
    ],
)
def test_a_descriptions_limits_are_a_motors_where_it_drives_one_joint_alone(shafts, limits):
    bare = load_urdf_text(TEXTS["limited"])
    rotors = tuple(
        Rotor(f"m{k}", "world", Pose(), tuple(shaft), Inertial()) for k, shaft in enumerate(shafts)
    )
    model = Model(ModelSpec(replace(bare, rotors=rotors), Settings.of({"side": "drive"})))
    np.testing.assert_allclose(model.limits, limits)


def test_limits_of_a_joint_follow_it_in_whatever_order_and_are_infinite_where_none_is_known():
    text = TEXTS["limited"].replace('effort="3.0"', 'effort="4.0"', 1)
    mechanism = load_urdf_text(text)
    for joints in (["knee", "hip"], ["hip", "knee"], ["knee"]):
        model = Model(ModelSpec(mechanism, Settings.of({"joints": joints})))
        assert model.limits.tolist() == [{"hip": 4.0, "knee": 3.0}[name] for name in joints]
    assert (
        Model(ModelSpec(load_urdf_text(TEXTS["two"]), Settings.of({}))).limits.tolist()
        == [np.inf] * 2
    )


def test_models_fit_each_other_where_they_have_the_same_joints_in_the_same_order():
    def model(text: str, **values) -> Model:
        return Model(ModelSpec(load_urdf_text(TEXTS[text]), Settings.of(values)))

    two = model("two")
    for other, fits in (
        (model("heavy"), True),
        (model("three"), False),
        (model("two", joints=["elbow", "shoulder"]), False),
        (model("two", joints=["elbow"]), False),
        (model("two", joints=["shoulder"], locked_joints=["elbow:0.1"]), False),
    ):
        assert two.is_the_robot_of(other) == other.is_the_robot_of(two) == fits
    # the same joints are moved, but one of them is not read
    locked = model("two", joints=["shoulder"], locked_joints=["elbow:0.1"])
    assert not locked.is_the_robot_of(model("two", joints=["shoulder"]))


# The process of a build


def draft(text: str, **values) -> Draft:
    return Draft(text, Settings.of(values))


def ended(pid: int) -> bool:
    """Is there nothing left of the process's group, nor a dead child of ours?"""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_build_in_its_process_gives_the_same_torques_and_leaves_kernels_and_nothing_else(
    monkeypatch, tmp_path
):
    from robot_dynamics.codegen import cache

    # where nobody else puts kernels meanwhile: what tests before this one began is over by now
    for thread in threading.enumerate():
        if thread.name == "build":
            thread.join(120)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    said: list[str] = []
    with BuildProcess() as process:
        mechanism = process.mechanism(draft(SIX_AXIS), said.append)
        pid = process.pid
    assert ended(pid)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    assert not said
    compiled = len(cache.entries())
    assert compiled
    model = Model(ModelSpec(mechanism, Settings.of({})))
    assert len(cache.entries()) == compiled
    tau, _ = expected(SIX_AXIS, {}, {})
    np.testing.assert_allclose(torques_of(model), tau, ROUNDING, ROUNDING)


def test_what_makes_no_robot_is_told_by_the_process_as_it_would_be_here():
    said: list[str] = []
    odd = SIX_AXIS.replace('ixx="', 'ixx="9')
    for text, values, kind, words in (
        ("<robot", {}, DescriptionError, "not readable as XML"),
        (TEXTS["two"], {"locked_joints": ["thumb:1"]}, InputError, "thumb"),
        (odd, {"joints": ["x"]}, InputError, "expected one of"),
    ):
        with BuildProcess() as process, pytest.raises(kind, match=words):
            process.mechanism(draft(text, **values), said.append)
    assert said
    assert all("inertia" in each for each in said)


@pytest.mark.parametrize("more", [0, 2])
def test_so_many_words_of_a_build_are_passed_on_and_that_there_are_more_once(more):
    count = process.MOST_WORDS + more
    odd = arm(joints=[f"j{k}" for k in range(count)]).replace('ixx="0.1"', 'ixx="9"')
    said, priorities = [], set()

    def tell(text: str) -> None:
        said.append(text)
        priorities.add(os.getpriority(os.PRIO_PROCESS, build.pid))

    with BuildProcess() as build, pytest.raises(InputError, match="expected one of"):
        build.mechanism(draft(odd, joints=["x"]), tell)
    assert len({word for word in said if "inertia" in word}) == process.MOST_WORDS
    assert said[process.MOST_WORDS :] == ["further warnings are not shown"] * bool(more)
    assert not any("\n" in word for word in said)
    # behind whoever asked for it
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert priorities == {min(own + process.NICENESS, 19)}


def test_an_interpreter_that_does_not_start_is_told_by_its_exit_code(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with BuildProcess() as build, pytest.raises(BuildError, match=r"\(exit code 1\)"):
        build.mechanism(draft(SIX_AXIS), print)


def test_every_error_of_ours_reaches_the_other_side_with_its_words_and_its_name():
    class OddError(RobotDynamicsError):
        def __init__(self, one: int, two: int):
            super().__init__(f"{one} and {two}", name="odd", value=two)

    plain = InputError("three", name="x", value=lambda: 3, expected="four")
    for error, kind in ((plain, InputError), (OddError(1, 2), RobotDynamicsError)):
        words = str(error)
        found = pickle.loads(pickle.dumps(process._portable(error)))
        assert type(found) is kind
        assert (str(found), found.name, found.value) == (words, error.name, None)


def test_a_process_is_started_for_what_has_to_be_compiled_and_for_nothing_else():
    started = []

    class Counted(InProcess):
        def __init__(self):
            started.append(self)

    host = Host(Counted)
    for change, more in (
        (lambda: host.builder.describe(TEXTS["two"]), 1),
        (lambda: host.builder.set({"max_age": 0.5}), 0),
        (lambda: host.builder.set({"locked_joints": ["elbow:0.5"]}), 0),
        (lambda: host.carry("link1", 1.0), 0),
        (lambda: host.builder.set({"formulation": "lagrange_euler"}), 1),
        (lambda: host.builder.set({"terms": ["gravity", "inertia"]}), 1),
        (lambda: host.builder.set({"terms": ["inertia", "gravity"]}), 0),
        (lambda: host.builder.set({"friction_smoothing": 0.1}), 1),
    ):
        before = len(started)
        change()
        assert all(each.error is None for each in host.settle())
        assert len(started) - before == more


@pytest.mark.parametrize("fails", [False, True])
def test_the_interpreter_switches_often_while_a_model_is_made_and_as_before_afterwards(
    fails, monkeypatch
):
    before, seen = sys.getswitchinterval(), []

    def made(spec: ModelSpec) -> Model:
        seen.append(sys.getswitchinterval())
        if fails:
            raise InputError("not this one", name="x")
        return Model(spec)

    monkeypatch.setattr(builders, "Model", made)
    host = Host()
    host.builder.describe(TEXTS["two"])
    host.settle()
    assert seen == pytest.approx([SWITCH_INTERVAL])
    assert sys.getswitchinterval() == before
    assert (host.model is None) == fails


def test_a_build_that_dies_hangs_or_is_not_wanted_is_told_and_nothing_is_left():
    for number, patience, words in (
        (signal.SIGKILL, 60.0, "signal 9"),
        (signal.SIGSTOP, 1.0, "longer than 1 s"),
    ):
        with BuildProcess() as process:
            os.kill(process.pid, number)
            with pytest.raises(BuildError, match=words):
                process.mechanism(draft(SIX_AXIS), print, patience)
            pid = process.pid
        assert ended(pid)
    with BuildProcess() as process:
        pid = process.pid
    assert ended(pid)


def test_a_build_stops_when_it_is_not_wanted_any_more():
    host = Host(BuildProcess)
    host.builder.describe(SIX_AXIS)
    host.builder.poll(None)
    host.builder.describe(TEXTS["two"])
    assert [each.change.value for each in host.settle()] == [TEXTS["two"]]
    host.builder.describe(SIX_AXIS.replace("six_axis", "other"))
    host.builder.poll(host.model)
    host.builder.close()
    assert not host.builder.busy
    assert not any(thread.name == "build" for thread in threading.enumerate())


def test_a_build_ends_with_the_process_that_wanted_it():
    import subprocess

    script = (
        "import os, signal, sys, threading\n"
        "from robot_dynamics.ros.feed_forward.process import BuildProcess, Draft\n"
        "from robot_dynamics.ros.feed_forward.parameters import Settings\n"
        "process = BuildProcess()\n"
        "print(process.pid, flush=True)\n"
        "text = sys.stdin.read()\n"
        "draft = Draft(text, Settings.of({'formulation': 'lagrange_euler'}))\n"
        "threading.Thread(target=process.mechanism, args=(draft, print), daemon=True).start()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=arm(joints=[f"j{k}" for k in range(12)]),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + PATIENCE
    while not ended(int(done.stdout)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
