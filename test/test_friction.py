# SPDX-License-Identifier: Apache-2.0
"""The law of friction: viscous, Coulomb by direction, Stribeck's hump, an offset, a spring."""

from __future__ import annotations

from dataclasses import replace

import closed_robots
import numpy as np
import pytest
import scipy.integrate
import sympy
import yaml
from robots import CONFIG, RELATIVE_TO_SISTERS, relative

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain
from robot_dynamics.mechanism import (
    Coupling,
    Friction,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Pose,
    Rotor,
)
from robot_dynamics.mechanism.transform import with_joints
from robot_dynamics.simulation.physics import Simulation
from robot_dynamics.symbolic.straight_line import inlined, straight_line
from robot_dynamics.symbolic.symbolic_parameters import Parameters, Task

LAWS = {
    "plain": Friction(0.3, 1.5),
    "offset": Friction(0.3, 1.5, offset=-0.4),
    "by direction": Friction(0.3, 1.5, coulomb_negative=0.6),
    "one way": Friction(0.0, 0.0, coulomb_negative=2.0),
    "Stribeck": Friction(0.3, 1.5, stribeck_torque=0.8, stribeck_rate=0.7),
    "Stribeck dips": Friction(0.3, 1.5, stribeck_torque=-1.0, stribeck_rate=0.7),
    "spring": Friction(0.3, 1.5, offset=-0.4, stiffness=2.5),
    "all but a spring": Friction(0.3, 1.5, 0.25, 0.6, 0.8, 0.7),
    "presliding": Friction(0.3, 1.5, presliding=2e-2),
    "presliding by direction": Friction(0.3, 1.5, coulomb_negative=0.6, presliding=2e-2),
    "smoothing": Friction(0.3, 1.5, smoothing=0.05),
    "smoothing by direction": Friction(0.3, 1.5, 0.25, 0.6, 0.8, 0.7, smoothing=0.2),
    "all but smoothing": Friction(0.3, 1.5, 0.25, 0.6, 0.8, 0.7, -1.2, 3e-2),
    "all": Friction(0.3, 1.5, 0.25, 0.6, 0.8, 0.7, -1.2, 3e-2, 0.3),
}
RATES = np.array([-40.0, -3.0, -0.7, -0.1, -1e-9, 0.0, 1e-9, 0.1, 0.7, 3.0, 40.0])


def by_hand(law, rate, place=0.0, acceleration=0.0):
    """The law as it is printed, with branches for the directions."""
    rate, acceleration = (1.0 * x for x in np.broadcast_arrays(rate, acceleration))
    backwards = law.coulomb if law.coulomb_negative is None else law.coulomb_negative
    with np.errstate(divide="ignore", invalid="ignore"):
        since = rate**2 / (2 * np.abs(acceleration) * law.presliding)
    speeding = (rate * acceleration > 0) & (law.presliding > 0)
    ahead = np.tanh(rate / law.smoothing) if law.smoothing else np.sign(rate)
    z = ahead * np.where(speeding, 1 - 2 * np.exp(-since), 1)
    dry = law.coulomb * (z * z + z) / 2 - backwards * (z * z - z) / 2
    dry = dry + law.stribeck_torque * np.exp(-((rate / law.stribeck_rate) ** 2)) * z
    return law.viscous * rate + dry + law.offset + law.stiffness * place


def robot(*laws, couplings=()):
    """A chain of revolute joints a, b, … with these laws."""
    links, parent = [], "base"
    for name, law in zip("abcdef", laws, strict=False):
        joint = Joint(name, "revolute", friction=law, coupling=dict(couplings).get(name))
        body = Inertial(1.0, np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.2, 0.25]))
        links.append(Link(f"link {name}", parent, joint, body))
        parent = f"link {name}"
    return Mechanism("chain", tuple(links))


def rubbing(mechanism, rates, **options):
    zero = np.zeros_like(rates)
    return rd.InverseDynamics(mechanism, terms=["friction"], **options)(zero, rates, zero)


def test_after_a_reversal_friction_turns_round_as_dahl_says():
    law, acceleration, times = Friction(0.0, 1.0, presliding=1e-2), 2.0, np.linspace(-3, 3, 301)
    # dF/dt = q̇ (1 - F sgn q̇) / σ along q = ½ a t², integrated from far before the reversal
    follow = scipy.integrate.solve_ivp(
        lambda t, F: acceleration * t / law.presliding * (1 - F * np.sign(t)),
        (-3, 3), [-1.0], "LSODA", times, rtol=1e-9, atol=1e-11, max_step=0.01,
    )  # fmt: skip
    for way in (-1, 1):
        found = [law.heading(way * acceleration * t, way * acceleration) for t in times]
        expected = way * follow.y[0]
        moves = np.abs(times) > 1e-9
        assert np.array(found)[moves] == pytest.approx(expected[moves], abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.05])
def test_friction_turns_round_without_a_jump_and_is_never_more_than_developed(smoothing):
    law = Friction(0.0, 1.0, presliding=1e-2)
    rates = np.linspace(-0.5, 0.5, 20000)
    for acceleration in (-7.0, -1e-3, 1e-3, 7.0):
        z = np.array([law.heading(v, acceleration, smoothing) for v in rates])
        assert np.abs(z).max() <= 1
        if not smoothing and abs(acceleration) > 1:
            assert np.abs(np.diff(z)).max() < 2e-3
    assert law.heading(0.0, 5.0) == law.heading(0.0, 0.0) == 0.0
    assert np.isnan(law.heading(np.nan, 1.0))
    assert np.isnan(law.heading(1.0, np.nan))
    for huge in (1e-300, 1e-160, 1e160, 1e300):
        for other in (0.0, 1e-300, 1.0, 1e300):
            assert abs(law.heading(huge, other)) <= 1


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_the_law_is_what_it_says_state_by_state_and_in_a_batch(law, backend):
    mechanism = robot(law)
    dynamics = rd.InverseDynamics(mechanism, terms=["friction"], backend=backend)
    for acceleration in (0.0, 9.0, -0.4):
        expected = by_hand(law, RATES, 0.0, acceleration)
        faster = np.full((len(RATES), 1), acceleration)
        batch = dynamics(0 * faster, RATES[:, None], faster)[:, 0]
        single = [dynamics([0.0], [rate], [acceleration])[0] for rate in RATES]
        assert batch == pytest.approx(expected, rel=1e-13, abs=1e-14)
        assert single == pytest.approx(expected, rel=1e-13, abs=1e-14)
        assert single[5] == law.offset  # at rest: exactly


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_at_rest_there_is_the_offset_alone_smoothed_or_not_and_nan_stays_nan(backend):
    mechanism = robot(LAWS["all"], LAWS["by direction"])
    for smoothing in (0.0, 0.05):
        found = rubbing(mechanism, np.zeros(2), backend=backend, friction_smoothing=smoothing)
        assert found.tolist() == [0.25, 0.0]
        rates = np.array([np.nan, 1.0])
        tau = rubbing(mechanism, rates, backend=backend, friction_smoothing=smoothing)
        assert np.isnan(tau[0])


@pytest.mark.parametrize("other", LAWS.values(), ids=LAWS)
def test_two_laws_of_one_rate_add_up(other):
    shape = {"presliding": other.presliding, "smoothing": other.smoothing}
    law = Friction(0.7, 2.5, 0.4, 3.0, stiffness=0.9, **shape)
    for one, two in ((law, other), (other, law)):
        expected = by_hand(one, RATES, 0.8, 3.0) + by_hand(two, RATES, 0.8, 3.0)
        assert by_hand(one + two, RATES, 0.8, 3.0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("field", ["presliding", "smoothing"])
def test_of_two_laws_the_stronger_one_says_where_friction_turns_round(field):
    weak, strong, plain = Friction(0, 1, **{field: 2}), Friction(0, 3, **{field: 5}), Friction(0, 9)
    for sums in (weak + strong, strong + weak, plain + strong, strong + plain):
        assert getattr(sums, field) == 5


def test_smoothed_friction_takes_power_at_every_rate_and_is_the_law_itself_beyond():
    law = Friction(0.3, 9.0, coulomb_negative=0.6, stribeck_torque=0.8, stribeck_rate=0.7)
    rates = np.linspace(-2, 2, 4001)[:, None]
    found = rubbing(robot(law), rates, friction_smoothing=0.05)
    assert (found[:, 0] * rates[:, 0] >= 0).all()
    assert np.abs(np.diff(found[:, 0])).max() < 0.3  # no jump
    far = np.abs(rates[:, 0]) > 1
    assert found[far, 0] == pytest.approx(by_hand(law, rates[far, 0]), rel=1e-12)


def test_the_smoothing_of_a_law_and_that_of_the_call_add_up():
    whole, rates = Friction(0.3, 9.0, coulomb_negative=0.6, smoothing=0.05), RATES[:, None]
    for own in (0.0, 0.02, 0.05):
        law = replace(whole, smoothing=own)
        found = rubbing(robot(law), rates, friction_smoothing=0.05 - own)[:, 0]
        assert found == pytest.approx(by_hand(whole, RATES), rel=1e-12)


def test_derivatives_have_the_slope_of_smoothed_friction():
    law, rates = LAWS["smoothing by direction"], np.linspace(-1.0, 1.0, 41)[:, None]
    zero, h = np.zeros_like(rates), 1e-6
    dynamics = rd.InverseDynamics(robot(law), terms=["friction"])
    ahead, behind = (by_hand(law, rates[:, 0] + step) for step in (h, -h))
    found = dynamics.derivatives(zero, rates, zero)[1][:, 0, 0]
    assert found == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("ratio", [-50.0, 50.0])
def test_a_motors_law_at_the_joint_is_the_same_law(ratio):
    law = replace(LAWS["smoothing by direction"], smoothing=2.0)
    expected = ratio * by_hand(law, ratio * RATES)
    assert by_hand(law.at_joint(ratio), RATES) == pytest.approx(expected, rel=1e-12)


def test_rates_beyond_all_floats_are_no_errors_of_the_exponential():
    law = Friction(0.0, 1.0, stribeck_torque=1.0, stribeck_rate=1e-3)
    for backend in ("auto", "python"):
        assert rubbing(robot(law), np.array([1e200]), backend=backend).tolist() == [1.0]


def test_a_follower_hands_its_friction_to_its_master():
    ratio = -2.5
    laws = LAWS["all"], LAWS["presliding by direction"]
    mechanism = robot(*laws, couplings={"b": Coupling((("a", ratio),), 0.1)})
    dynamics = rd.InverseDynamics(mechanism, terms=["friction"])
    for rate in RATES:
        for faster in (-2.0, 0.0, 2.0):
            # power: tau_a qd_a = f_a qd_a + f_b (ratio qd_a)
            expected = by_hand(laws[0], rate, 0.0, faster)
            expected += ratio * by_hand(laws[1], ratio * rate, 0.0, ratio * faster)
            assert dynamics([0.0], [rate], [faster])[0] == pytest.approx(expected, rel=1e-12)


FORMULATIONS = ["newton_euler", "gibbs_appell", "lagrange_euler", "murphy"]


@pytest.mark.parametrize("backend", ["auto", "python"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_spring_pulls_by_the_position_also_at_rest_and_a_followers_by_its_own(
    formulation, backend
):
    ratio, shift = -2.5, 0.1
    laws = LAWS["all"], LAWS["spring"], LAWS["plain"]
    mechanism = robot(*laws, couplings={"b": Coupling((("a", ratio),), shift)})
    dynamics = rd.InverseDynamics(mechanism, formulation, terms=["friction"], backend=backend)
    for place in (-2.0, 0.0, 0.7):
        for rate in (-0.4, 0.0, 3.0):
            expected = by_hand(laws[0], rate, place)
            expected += ratio * by_hand(laws[1], ratio * rate, ratio * place + shift)
            found = dynamics([place, 1.0], [rate, 0.0], [0.0, 0.0])
            assert found[0] == pytest.approx(expected, rel=1e-13)
            assert found[1] == 0.0


@pytest.mark.parametrize("field", ["presliding", "smoothing"])
def test_the_regressor_knows_of_what_is_not_linear_and_of_a_new_number(field):
    couplings = {"b": Coupling((("a", -1.5),), 0.1)}
    laws = LAWS["all"], LAWS["presliding by direction"], LAWS["plain"]
    dynamics = rd.InverseDynamics(robot(*laws, couplings=couplings))
    rng = np.random.default_rng(0)
    for number in (0.0, 3e-2, 1e-3, 0.0):
        dynamics.set_friction("c", 0.3, 1.5, **{field: number})
        q, qd, qdd = rng.uniform(-1, 1, (3, 50, 2)) * [[[1.0]], [[0.3]], [[3.0]]]
        shown = dynamics.regressor(q, qd, qdd) @ dynamics.parameters
        assert shown == pytest.approx(dynamics(q, qd, qdd), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("closed", [False, True])
def test_accelerations_and_derivatives_take_dry_friction_as_developed(closed):
    """Also where loops alone accelerate joints, over distances that are never loaded."""
    mechanism = rd.load(CONFIG / ("five_bar.yaml" if closed else "polar.yaml"))

    def with_friction(presliding):
        law = Friction(0.4, 3.0, presliding=presliding)
        links = [replace(x, joint=replace(x.joint, friction=law)) for x in mechanism.links]
        return rd.InverseDynamics(replace(mechanism, links=tuple(links)))

    turning, developed = with_friction(2.0), with_friction(0.0)
    n = len(turning.joint_names)
    q = np.array([mechanism.home.get(name, 0.3) for name in turning.joint_names])
    qd, qdd = np.linspace(0.05, -0.1, n), np.linspace(0.5, -0.7, n)
    tau = developed(q, qd, qdd)
    assert relative(turning(q, qd, qdd), tau) > 0.01
    assert relative(turning.forward(q, qd, tau), developed.forward(q, qd, tau)) < 1e-11
    for found, expected in zip(
        turning.derivatives(q, qd, qdd), developed.derivatives(q, qd, qdd), strict=True
    ):
        assert relative(found, expected) < 1e-11
    for found, expected in ((turning.linearize(q, qd, tau), developed.linearize(q, qd, tau)),):
        assert relative(found.A, expected.A) < 1e-10


def test_derivatives_regressor_and_accelerations_know_of_springs():
    couplings = {"b": Coupling((("a", -1.5),), 0.1)}
    laws = replace(LAWS["all"], presliding=0.0), LAWS["spring"], LAWS["spring"]
    mechanism = robot(*laws, couplings=couplings)
    dynamics = rd.InverseDynamics(mechanism)
    q, qd, qdd = np.array([0.3, -0.8]), np.array([0.5, 0.4]), np.array([1.0, -2.0])
    tau, step = dynamics(q, qd, qdd), 1e-6
    by_q = dynamics.derivatives(q, qd, qdd)[0]
    for k, unit in enumerate(step * np.eye(2)):
        slope = (dynamics(q + unit, qd, qdd) - dynamics(q - unit, qd, qdd)) / (2 * step)
        assert by_q[:, k] == pytest.approx(slope, rel=1e-7, abs=1e-7)
    assert {"a.stiffness", "b.stiffness", "c.stiffness"} < {*dynamics.parameter_names}
    assert dynamics.regressor(q, qd, qdd) @ dynamics.parameters == pytest.approx(tau, rel=1e-12)
    assert dynamics.forward(q, qd, tau) == pytest.approx(qdd, rel=1e-10)
    heavy = robot(*[LAWS["spring"]] * 6)  # so many that the articulated-body algorithm is used
    six = rd.InverseDynamics(heavy)
    states = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    assert six.forward(states[0], states[1], six(*states)) == pytest.approx(states[2], rel=1e-9)


def test_a_motor_has_no_spring(tmp_path):
    said = "stiffness.*: found 3.*, expected 0: springs are at joints"
    motor = Rotor("motor", "base", Pose(), (("a", 50.0),), Inertial())
    mechanism = replace(robot(LAWS["plain"]), rotors=(motor,))
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    with pytest.raises(rd.InputError, match=said):
        dynamics.set_friction("motor", 0.1, 0.1, stiffness=3)
    said_too = "presliding of motor: found 0.1, expected 0: only the friction of joints has it"
    with pytest.raises(rd.InputError, match=said_too):
        dynamics.set_friction("motor", 0.1, 0.1, presliding=0.1)
    geared = {"mount": "base", "friction": {"stiffness": 3}}
    content = yaml.safe_load((CONFIG / "polar.yaml").read_text())
    first = content["links"][0]["joint"]["name"]
    geared["gear_ratio"] = {first: 50.0}
    with pytest.raises(rd.DescriptionError, match=said):
        closed_robots.load(content | {"rotors": {"spare": geared}}, tmp_path)


@pytest.mark.parametrize("formulation", ["newton_euler", "gibbs_appell", "lagrange_euler"])
@pytest.mark.parametrize("before", ["plain", "all"])
def test_a_law_that_is_set_is_as_if_it_had_been_so(formulation, before, nothing_is_built):
    q, qd, qdd = np.array([0.3, -0.2]), np.array([-0.5, 0.4]), np.array([1.0, 2.0])
    rest = np.zeros(2)
    dynamics = rd.InverseDynamics(robot(LAWS[before], LAWS["plain"]), formulation)
    dynamics(q, qd, qdd), dynamics.gravity(q)
    for i, law in enumerate(LAWS.values()):
        dynamics.set_friction(
            "a",
            law.viscous,
            law.coulomb,
            offset=law.offset,
            coulomb_negative=law.coulomb_negative,
            stribeck_torque=law.stribeck_torque,
            stribeck_rate=law.stribeck_rate,
            stiffness=law.stiffness,
            presliding=law.presliding,
            smoothing=law.smoothing,
        )
        assert dynamics.mechanism.joint("a").friction == law
        fresh = rd.InverseDynamics(robot(law, LAWS["plain"]), formulation, backend="python")
        assert relative(dynamics(q, qd, qdd), fresh(q, qd, qdd)) < RELATIVE_TO_SISTERS
        assert relative(dynamics(q, rest, qdd), fresh(q, rest, qdd)) < RELATIVE_TO_SISTERS
        assert relative(dynamics.gravity(q), fresh.gravity(q)) < RELATIVE_TO_SISTERS
        if before == "all" and i == len(LAWS) - 1:
            # every number of the law is a parameter of the kernel already
            nothing_is_built()
            for other in LAWS.values():
                numbers = {"offset": other.offset, "stiffness": other.stiffness}
                dynamics.set_friction("a", other.viscous, other.coulomb, **numbers)
                dynamics(q, qd, qdd)


def test_friction_in_loops_is_what_all_joints_feel_by_virtual_work(tmp_path):
    description = closed_robots.random_rrr(3)
    laws = {}
    for i, link in enumerate(description["links"]):
        law = replace(list(LAWS.values())[i % len(LAWS)], presliding=0.1)
        laws[link["joint"].get("name")] = law
        link["friction"] = {
            "viscous": law.viscous,
            "coulomb": law.coulomb,
            "offset": law.offset,
            "coulomb_negative": law.coulomb_backwards,
            "stribeck": {"torque": law.stribeck_torque, "rate": law.stribeck_rate},
            "stiffness": law.stiffness,
            "presliding": law.presliding,
            "smoothing": law.smoothing,
        }
    mechanism = closed_robots.load(description, tmp_path)
    chain = ClosedChain(mechanism, terms=["friction"])
    rng = np.random.default_rng(0)
    k = len(chain.joint_names)
    q = chain.home.q_r[:k] + rng.uniform(-0.02, 0.02, k)
    qd = rng.uniform(-1, 1, k)
    T = np.column_stack([chain.forward_kinematics(q, unit).qd_r for unit in np.eye(k)])
    places = chain.forward_kinematics(q).q_r
    qdd = rng.uniform(-9, 9, k)
    # q̈_r = T q̈ + Ṫ q̇, the latter by differences
    before, after = (
        np.column_stack([chain.forward_kinematics(q + h * qd, u).qd_r for u in np.eye(k)])
        for h in (-1e-5, 1e-5)
    )
    accelerations = T @ qdd + (after - before) @ qd / 2e-5
    states = zip(chain.coordinate_names, T @ qd, places, accelerations, strict=True)
    felt = [by_hand(laws[name], *state) for name, *state in states]
    # δW = τᵀ δq_a = fᵀ T δq_a
    expected = T.T @ np.array(felt)
    assert relative(chain(q, qd, qdd), expected) < 1e-8


def test_a_closed_robot_goes_on_where_it_was_with_a_new_kind_of_friction():
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    q = np.array([mechanism.home[name] for name in dynamics.joint_names])
    for step in np.linspace(0, 0.3, 10):
        dynamics(q + step, [0.1, 0.2], [0.0, 0.0])
    last = dynamics.closed.last.q_r
    dynamics.set_friction(mechanism.tree_names[-1], 0.1, 0.2, offset=0.3)
    assert np.array_equal(dynamics.closed.last.q_r, last)
    fresh = rd.InverseDynamics(dynamics.mechanism, backend="python")
    states = q + 0.3, [0.1, 0.2], [0.0, 0.0]
    assert relative(dynamics(*states), fresh(*states)) < 1e-9


@pytest.mark.parametrize("intermediates", [False, True])
def test_symbols_say_the_same(intermediates):
    laws = LAWS["all"], LAWS["by direction"]
    mechanism = robot(*laws)
    model = rd.derive(mechanism, terms=["friction"], simplify=False, intermediates=intermediates)
    names = {str(symbol) for symbol in model.parameters}
    assert names >= {"bv1", "bc1", "bn1", "bo1", "bs1", "ws1", "bk1", "bd1", "wd1", "bv2", "bc2"}
    compute, zero = model.function(), [0.0, 0.0]
    for rates in ([0.4, -0.3], [-0.4, 0.3], zero):
        for faster in (zero, [3.0, 2.0]):
            expected = [
                by_hand(laws[0], rates[0], 0.7, faster[0]), by_hand(laws[1], rates[1]),
            ]  # fmt: skip
            found = compute([0.7, 0.2], rates, faster)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_symbols_by_the_recorder_say_the_same():
    mechanism = robot(LAWS["all"], LAWS["spring"])
    q, qd, qdd = (sympy.symbols(f"{name}1:3") for name in ("q", "w", "a"))
    known = Parameters.of(mechanism, False, "")
    task = Task(mechanism, q, qd, qdd, known, "newton_euler", "full", frozenset(["friction"]))
    parts = inlined(*straight_line(task))
    values = dict(zip((*q, *qd, *qdd), (0.7, 0.2, -0.4, 0.3, -3.0, 0.0), strict=True))
    expected = [by_hand(LAWS["all"], -0.4, 0.7, -3.0), by_hand(LAWS["spring"], 0.3, 0.2)]
    for name in ("friction", "torques"):
        found = np.array(parts[name].subs(values), dtype=float).ravel()
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_mujoco_rubs_as_the_law_says(law):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: extra `sim`")
    laws, couplings = (law, LAWS["plain"]), {"b": Coupling((("a", -1.5),), 0.1)}
    for mechanism in (robot(*laws), robot(LAWS["plain"], law, couplings=couplings)):
        n = len(mechanism.joint_names)
        for sign in (-1.0, 1.0):
            q, qd, qdd = np.full(n, 0.3), sign * np.linspace(0.5, 0.8, n), np.linspace(2, 3, n)
            moving = Simulation(mechanism)
            # in the simulation dry friction is always developed, and a step at rest
            step = with_joints(
                mechanism,
                lambda joint: replace(
                    joint, friction=replace(joint.friction, presliding=0, smoothing=0)
                ),
            )
            dynamics = rd.InverseDynamics(step, backend="python")
            moving.reset(q, qd)
            for _ in range(2):  # nothing is left behind by a call
                found = moving.accelerations(dynamics(q, qd, qdd))
            assert relative(found, qdd) < 1e-6


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"viscous": -1}, "viscous friction of a: found -1, expected at least 0"),
        ({"coulomb": np.nan}, "coulomb friction of a: found nan, expected a finite number"),
        ({"coulomb": "much"}, "coulomb friction of a: found 'much', expected a finite number"),
        ({"offset": np.inf}, "offset friction of a: found inf, expected a finite number"),
        ({"coulomb_negative": -0.5}, "coulomb negative friction of a: found -0.5, expected at"),
        ({"stribeck_torque": 1, "stribeck_rate": 0}, "stribeck rate of a: found 0, expected above"),
        ({"stribeck_torque": -1.5}, "stribeck torque of a: found -1.5, expected at least -1, so"),
        ({"stiffness": np.nan}, "stiffness of a: found nan, expected a finite number"),
        ({"presliding": -1e-3}, "presliding of a: found -0.001, expected at least 0"),
        ({"presliding": 0.3}, "presliding of a: found 0.3, expected at most 0.1 rad or m"),
        ({"presliding": np.inf}, "presliding of a: found inf, expected a finite number"),
        ({"smoothing": -1e-3}, "smoothing of a: found -0.001, expected at least 0"),
        ({"smoothing": 1e-310}, "smoothing of a: found 1e-310, expected 0, or at least 1e-09"),
    ],
)
def test_a_law_that_drives_is_refused_and_leaves_the_old_one(numbers, words):
    mechanism = robot(Friction(0.1, 1.0))
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    with pytest.raises(rd.RobotDynamicsError, match=words):
        dynamics.set_friction("a", **{"viscous": 0.1, "coulomb": 1.0, **numbers})
    assert dynamics.mechanism.joint("a").friction == Friction(0.1, 1.0)
