# SPDX-License-Identifier: Apache-2.0
"""Equations in symbols: the textbook's results, letter by letter, and with numbers substituted."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    dh_to_pinocchio,
    pin,
    pinocchio_torques,
    random_dh,
    relative,
    state,
)
from sympy.physics.mechanics import dynamicsymbols

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.mechanism import Inertial, Joint, Link, Mechanism, Pose
from robot_dynamics.symbolic.polynomial import Ring, TooManyTerms

NUMBERS_PUT_IN = 1e-10
"""Expanded expressions sum many large terms that cancel"""

m1, m2, m3, L1, g = sympy.symbols("m1 m2 m3 L1 g", real=True)


def same(found, expected) -> bool:
    return sympy.simplify(sympy.Matrix(found) - sympy.Matrix(expected)).is_zero_matrix


@pytest.fixture(scope="module", params=FORMULATIONS)
def polar(request):
    return rd.derive(rd.load(CONFIG / "polar.yaml"), request.param)


def test_the_polar_robot_gives_equation_5_17_term_by_term(polar):
    theta, d = polar.q
    thetad, dd = polar.qd
    thetadd, ddd = polar.qdd
    book = polar.torques.subs(sympy.Symbol("c_z1", real=True), L1)
    T1, F2 = (sympy.expand(torque) for torque in book)
    assert set(T1.as_ordered_terms()) == {
        m1 * L1**2 * thetadd,
        m2 * d**2 * thetadd,
        2 * d * m2 * thetad * dd,
    }
    assert set(F2.as_ordered_terms()) == {m2 * ddd, -d * m2 * thetad**2}
    assert theta.name == "theta1"


def test_the_polar_robots_matrices_are_the_books(polar):
    L = sympy.Symbol("c_z1", real=True)
    _, d = polar.q
    thetad, dd = polar.qd
    assert same(polar.D, [[m1 * L**2 + m2 * d**2, 0], [0, m2]])
    assert same(
        polar.C * sympy.Matrix(polar.qd), [[2 * d * m2 * thetad * dd], [-d * m2 * thetad**2]]
    )
    assert same(polar.g, [[0], [0]])


def test_every_step_of_the_polar_example_is_the_books():
    model = rd.derive(rd.load(CONFIG / "polar.yaml"))
    steps = model.steps
    theta, d = model.q
    thetad, dd = model.qd
    L = sympy.Symbol("c_z1", real=True)
    S, C = sympy.sin(theta), sympy.cos(theta)
    none = sympy.zeros(4, 4)
    assert same(steps.A[0], [[C, 0, -S, 0], [S, 0, C, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    assert same(steps.A[1], [[C, 0, -S, -d * S], [S, 0, C, d * C], [0, -1, 0, 0], [0, 0, 0, 1]])
    assert same(steps.Q[0], [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    assert same(steps.Q[1], [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    U11 = [[-S, 0, -C, 0], [C, 0, -S, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    U21 = [[-S, 0, -C, -d * C], [C, 0, -S, -d * S], [0, 0, 0, 0], [0, 0, 0, 0]]
    U22 = [[0, 0, 0, -S], [0, 0, 0, C], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert same(steps.U[0, 0], U11)
    assert same(steps.U[0, 1], none)
    assert same(steps.U[1, 0], U21)
    assert same(steps.U[1, 1], U22)
    U111 = [[-C, 0, S, 0], [-S, 0, -C, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    U211 = [[-C, 0, S, d * S], [-S, 0, -C, -d * C], [0, 0, 0, 0], [0, 0, 0, 0]]
    U212 = [[0, 0, 0, -C], [0, 0, 0, -S], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert same(steps.dU[0, 0, 0], U111)
    assert same(steps.dU[0, 0, 1], none)
    assert same(steps.dU[1, 0, 0], U211)
    assert same(steps.dU[1, 0, 1], U212)
    assert same(steps.dU[1, 1, 0], U212)
    assert same(steps.dU[1, 1, 1], none)
    J1 = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, m1 * L**2, m1 * L], [0, 0, m1 * L, m1]]
    assert same(steps.J[0], J1)
    assert same(steps.J[1], sympy.diag(0, 0, 0, m2))
    assert same(steps.D, [[m1 * L**2 + m2 * d**2, 0], [0, m2]])
    h = {(0, 0, 1): d * m2, (0, 1, 0): d * m2, (1, 0, 0): -d * m2}
    for place in np.ndindex(2, 2, 2):
        assert sympy.simplify(steps.h[place] - h.get(place, 0)) == 0, place
    assert same(steps.H(list(model.qd)), [2 * d * m2 * thetad * dd, -d * m2 * thetad**2])
    assert same(steps.C, [0, 0])


def test_the_cartesian_robots_printed_energies_give_its_printed_result():
    q, qd = sympy.symbols("q1:4"), sympy.symbols("qd1:4")
    beta2, beta3 = sympy.symbols("beta2 beta3")
    K = (m1 * qd[0] ** 2 + m2 * qd[1] ** 2 + m3 * qd[2] ** 2) / 2
    P = m2 * g * (beta2 + q[1]) + m3 * g * (beta3 + q[1])
    model = rd.from_energies(K, P, q, qd)
    a1, a2, a3 = model.qdd
    assert same(model.torques, [m1 * a1, m2 * a2 + (m2 + m3) * g, m3 * a3])


@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_cartesian_chain_carries_all_that_hangs_on_it(name):
    model = rd.derive(rd.load(CONFIG / "cartesian.yaml"), name)
    a1, a2, a3 = model.qdd
    assert same(model.torques, [(m1 + m2 + m3) * a1, (m2 + m3) * (a2 + g), m3 * a3])
    assert (model.steps is not None) == (name == "lagrange_euler")


def test_the_cartesian_chain_reaches_d3_d2_d1():
    steps = rd.derive(rd.load(CONFIG / "cartesian.yaml")).steps
    d1, d2, d3 = rd.derive(rd.load(CONFIG / "cartesian.yaml")).q
    expected = [[0, 0, 1, d3], [0, 1, 0, d2], [-1, 0, 0, d1], [0, 0, 0, 1]]
    assert same(steps.A[2], expected)


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("joints", [3, 2], ids=["bare", "rotors"])
def test_symbols_with_numbers_put_in_are_the_numbers(tmp_path, name, joints):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(random_dh(1, joints, rotors=joints == 2)))
    mechanism = rd.load(path)
    q, qd, qdd = state(1, len(mechanism.joint_names))
    model = rd.derive(mechanism, name, simplify=False, intermediates=False)
    expected = rd.InverseDynamics(mechanism, name)(q, qd, qdd)
    assert relative(model.function()(q, qd, qdd), expected) < NUMBERS_PUT_IN


@pytest.mark.parametrize("intermediates", [False, None, True], ids=["whole", "free", "listed"])
@pytest.mark.parametrize("ratio", [-7.0, -1024.0, 2048.0, 12345.5, 1e6])
def test_gear_ratios_of_any_size_give_pinocchios_torques(tmp_path, ratio, intermediates):
    robot = random_dh(2, 2, rotors=True)
    for link in robot["links"]:
        link |= {"theta": 0.0, "alpha": 0.0}  # few terms, so that they stay whole
        link["joint"]["type"] = "revolute"
    robot["links"][1].pop("rotor")
    robot["links"][0]["rotor"] |= {"gear_ratio": ratio, "origin": {}}
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    q, qd, qdd = state(1, 2)
    model = rd.derive(mechanism, "gibbs_appell", parameters="numbers", intermediates=intermediates)
    pinned, geared = dh_to_pinocchio(robot)
    expected = pinocchio_torques(pinned, mechanism.joint_names, q, qd, qdd, geared)
    assert relative(model.function()(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("parameters", ["symbols", "numbers"])
def test_an_oblique_axis_with_a_tail_is_the_same_robot(parameters):
    axis = np.array([0.6, 0.0, 0.8])
    tail = Pose(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), [0.3, -0.1, 0.2])
    body = Inertial(1.5, np.array([0.1, 0.2, -0.05]), np.diag([0.02, 0.03, 0.04]))
    joint = Joint("q1", "revolute", axis=axis, tail=tail)
    last = Joint("q2", "revolute", origin=Pose(translation=[0.2, 0.0, 0.1]), axis=axis[[2, 1, 0]])
    links = Link("a", "base", joint, body), Link("b", "a", last, body)
    mechanism = Mechanism("oblique", links)
    at = state(4, 2)
    model = rd.derive(mechanism, "newton_euler", parameters=parameters)
    # Pinocchio on the same frames: a body behind the tail is one behind the joint
    pinned = pin.Model()
    pinned.gravity.linear = mechanism.gravity
    behind = pin.SE3(tail.rotation, np.array(tail.translation, dtype=float))
    first = pinned.addJoint(0, pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity(), "q1")
    inertia = pin.Inertia(body.mass, np.array(body.center_of_mass), np.array(body.inertia))
    pinned.appendBodyToJoint(first, inertia, behind)
    place = behind * pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.1]))
    unaligned = pin.JointModelRevoluteUnaligned(axis[[2, 1, 0]])
    pinned.appendBodyToJoint(
        pinned.addJoint(first, unaligned, place, "q2"), inertia, pin.SE3.Identity()
    )
    expected = pin.rnea(pinned, pinned.createData(), *at)
    assert relative(model.function()(*at), expected) < RELATIVE_TO_PINOCCHIO


def test_a_term_whose_exponent_would_not_fit_is_never_made():
    ring = Ring()
    x, y = (ring.letter("parameter", sympy.Symbol(name)) for name in "xy")
    power, largest = x, 1
    while largest < 1024:
        power, largest = power * power, 2 * largest
    assert list(ring.exponents(*power.terms)) == [(0, 1024)]
    with pytest.raises(TooManyTerms):
        power * power
    assert list(ring.exponents(*(power * y).terms)) == [(0, 1024), (1, 1)]
    # a bound that was too wide is looked at again
    narrow = power + x - power
    assert list(ring.exponents(*(narrow * power).terms)) == [(0, 1025)]


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("parameters", ["symbols", "numbers"])
def test_intermediates_lead_to_the_same_torques(name, parameters):
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    q, qd, qdd = state(1, 3)
    model = rd.derive(mechanism, name, parameters=parameters, intermediates=True)
    assert model.intermediates
    known = {*model.q, *model.qd, *model.qdd, *model.parameters}
    for symbol, value in model.intermediates:
        assert value.free_symbols <= known, symbol
        known.add(symbol)
    expected = rd.InverseDynamics(mechanism, name)(q, qd, qdd)
    assert relative(model.function()(q, qd, qdd), expected) < NUMBERS_PUT_IN


def test_parts_in_symbols_are_the_facades():
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    model = rd.derive(
        mechanism, "newton_euler", parameters="numbers", simplify=False, intermediates=False
    )
    dynamics = rd.InverseDynamics(mechanism)
    q, qd, _ = state(2, 3)
    at = dict(zip([*model.q, *model.qd], [*q, *qd], strict=True))
    for symbols, numbers in (
        (model.D, dynamics.mass_matrix(q)),
        (model.C, dynamics.coriolis_matrix(q, qd)),
        (model.g, dynamics.gravity(q)[:, None]),
    ):
        assert relative(np.array(symbols.subs(at), dtype=float), numbers) < NUMBERS_PUT_IN


def test_functions_of_time_serve_as_coordinates():
    t = dynamicsymbols._t
    q = dynamicsymbols("q1 q2")
    l1, l2 = sympy.symbols("l1 l2")
    x1, y1 = l1 * sympy.sin(q[0]), -l1 * sympy.cos(q[0])
    x2, y2 = x1 + l2 * sympy.sin(q[0] + q[1]), y1 - l2 * sympy.cos(q[0] + q[1])
    K = m1 * (x1.diff(t) ** 2 + y1.diff(t) ** 2) / 2 + m2 * (x2.diff(t) ** 2 + y2.diff(t) ** 2) / 2
    model = rd.from_energies(K, m1 * g * y1 + m2 * g * y2, q)
    a = model.q[1]
    d22 = m2 * l2**2
    d12 = d22 + m2 * l1 * l2 * sympy.cos(a)
    d11 = m1 * l1**2 + m2 * l1**2 + 2 * m2 * l1 * l2 * sympy.cos(a) + d22
    assert same(model.D, [[d11, d12], [d12, d22]])
    # the general operator and the matrices are the same equations
    law = model.D * sympy.Matrix(model.qdd) + model.C * sympy.Matrix(model.qd) + model.g
    assert same(law, model.torques)
    skew = (
        sum(
            (model.D.diff(x) * v for x, v in zip(model.q, model.qd, strict=True)), sympy.zeros(2, 2)
        )
        - 2 * model.C
    )
    assert same(skew, -skew.T)


@pytest.mark.parametrize(
    ("K", "P", "words"),
    [
        ("qd1**3", "0", "kinetic"),
        ("qd1**2 + qd1", "0", "kinetic"),
        ("qd1**2", "qd1", "potential"),
    ],
)
def test_energies_that_are_none_are_refused(K, P, words):
    q, qd = sympy.symbols("q1"), sympy.symbols("qd1")
    with pytest.raises(rd.RobotDynamicsError, match=words):
        rd.from_energies(sympy.sympify(K), sympy.sympify(P), [q], [qd])


def test_a_kinetic_energy_that_depends_on_time_is_refused():
    t = sympy.Symbol("t")
    q, turning = sympy.Function("q1")(t), sympy.Function("f")(t)
    for K in (t * q.diff(t) ** 2, turning * q.diff(t) ** 2):
        with pytest.raises(rd.RobotDynamicsError, match=r"kinetic: .*not of time"):
            rd.from_energies(K, 0, [q], [q.diff(t)])
        with pytest.raises(rd.RobotDynamicsError, match=r"kinetic: .*not of time"):
            rd.from_energies(K, 0, [q])
    # a force that changes with time is a slope of P like any other
    assert rd.from_energies(q.diff(t) ** 2 / 2, t * q, [q]).g[0] == t


def test_names_that_are_no_identifiers_do_not_reach_the_symbols(tmp_path):
    path = tmp_path / "robot.yaml"
    robot = {
        "links": [
            {"name": "a", "mass": 1.0, "joint": {"name": "__import__('os')", "type": "prismatic"}}
        ]
    }
    path.write_text(yaml.safe_dump(robot))
    model = rd.derive(rd.load(path))
    assert [str(q) for q in model.q] == ["q1"]
    assert model.function()([0.0], [0.0], [2.0]) == pytest.approx([2.0 + 9.81])


@pytest.mark.parametrize("names", [("q1", "q1_d"), ("2nd", "q1"), ("q2", "2nd"), ("a_dd", "a")])
def test_every_joint_and_rate_has_a_symbol_of_its_own(tmp_path, names):
    text = (CONFIG / "polar.yaml").read_text()
    for old, new in zip(("theta1", "d2"), names, strict=True):
        text = text.replace(f"name: {old},", f"name: '{new}',")
    (tmp_path / "robot.yaml").write_text(text)
    mechanism = rd.load(tmp_path / "robot.yaml")
    assert mechanism.joint_names == names
    model = rd.derive(mechanism)
    assert len({*model.q, *model.qd, *model.qdd, *model.parameters}) == 6 + len(model.parameters)


@pytest.mark.parametrize(
    ("joint", "parameters"), [("pi", "numbers"), ("cos", "symbols"), ("tanh", "symbols")]
)
def test_a_joint_named_as_a_function_or_pi_is_neither(tmp_path, joint, parameters):
    link = {
        "alpha": "5*pi/24", "a": 0.3, "d": 0.1, "mass": 1.2,
        "friction": {"coulomb": 0.3, "smoothing": 0.2},
    }  # fmt: skip
    links = [
        {"name": f"l{k}", "joint": {"name": name, "type": "revolute"}, **link}
        for k, name in enumerate((joint, "q2"))
    ]
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump({"gravity": [3, 4, -5], "links": links}))
    mechanism = rd.load(tmp_path / "robot.yaml")
    state = np.random.default_rng(2).uniform(-1, 1, (3, 2))
    found = rd.derive(mechanism, "newton_euler", parameters=parameters).function()(*state)
    expected = rd.InverseDynamics(mechanism, backend="python")(*state)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("other", ["x", "x_d", "x_dd"])
def test_a_coordinate_with_the_name_of_another_or_of_its_rates_is_refused(other):
    q, qd = sympy.symbols(["x", other]), sympy.symbols("v w")
    with pytest.raises(rd.RobotDynamicsError, match="another's rate"):
        rd.from_energies(sum(v**2 for v in qd), 0, q, qd)


def test_the_last_step_of_lagrange_euler_is_without_friction_as_its_formula_is(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text((CONFIG / "polar.yaml").read_text() + "    friction: {viscous: 0.5}\n")
    model = rd.derive(rd.load(path))
    assert not model.friction.is_zero_matrix
    last = [each.value for each in model.sections()[-1].equations]
    D, C, g = model.D, model.C, model.g
    expected = D * sympy.Matrix(model.qdd) + C * sympy.Matrix(model.qd) + g
    assert same(last, expected)


def test_energies_say_that_friction_and_springs_are_left_out(tmp_path, capsys):
    text = (CONFIG / "polar.yaml").read_text()
    path = tmp_path / "robot.yaml"
    path.write_text(text + "    friction: {stiffness: 2.0}\n")
    assert main(["derive", str(path), "--formulation", "energies"]) == 0
    assert "springs" in capsys.readouterr().out
    assert main(["derive", str(CONFIG / "polar.yaml"), "--formulation", "energies"]) == 0
    assert "springs" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--formulation", "energies", "--terms", "gravity"],
        ["--latex", "--format", "html"],
        ["--document", "--format", "text"],
    ],
)
def test_options_of_derive_that_contradict_each_other_are_refused(capsys, options):
    assert main(["derive", str(CONFIG / "polar.yaml"), *options]) == 1
    assert options[2 if "--terms" in options else 1] in capsys.readouterr().err


def test_latex_and_text_say_the_same_torques():
    model = rd.derive(rd.load(CONFIG / "polar.yaml"))
    assert r"\ddot{\theta}_{1}" in model.latex()
    assert "tau[theta1] = c_z1**2*m1*theta1_dd + d2*m2*(d2*theta1_dd + 2*d2_d*theta1_d)" in (
        model.text()
    )


def test_lagrange_eulers_numbers_are_its_symbols_at_a_state():
    from robot_dynamics.formulations import lagrange_euler

    mechanism = rd.load(CONFIG / "three_axis.yaml")
    tree = lagrange_euler.prepare(mechanism)
    S, s = tree.coordinates()
    q, qd, qdd = state(4, 3)
    steps = lagrange_euler.steps(tree, S @ q + s)
    tau = S.T @ steps.torques(S @ qd, S @ qdd)
    assert relative(tau, rd.InverseDynamics(mechanism)(q, qd, qdd)) < RELATIVE_TO_SISTERS
    n = len(steps.names)
    assert steps.U.shape == (n, n, 4, 4)
    assert steps.dU.shape == (n, n, n, 4, 4)
    for i, j, k in np.ndindex(n, n, n):
        assert np.allclose(steps.dU[i, j, k], steps.dU[i, k, j])
    # note 4 of the book: h_ikm = h_imk and h_iii = 0
    assert np.allclose(steps.h, steps.h.transpose(0, 2, 1))
    assert np.allclose([steps.h[i, i, i] for i in range(n)], 0)
