# SPDX-License-Identifier: Apache-2.0
"""Closed mechanisms in symbols: against the paper's own energies, and against the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy
from closed_robots import ClosedChain, closed_at_home, load, random_rrr, shipped
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.mechanism import Friction
from robot_dynamics.symbolic import projections
from robot_dynamics.symbolic.closed_equations import derive
from robot_dynamics.symbolic.short import shown
from robot_dynamics.symbolic.symbolic_parameters import near

SAME = 1e-9
"""Relative: the same numbers through two long ways"""
EXACT = 1e-12
"""Relative: the same numbers by the same projections, of a well-conditioned robot"""


@pytest.fixture(scope="module")
def rrr():
    """(mechanism, its model)"""
    mechanism = rd.load(CONFIG / "rrr.yaml")
    return mechanism, derive(mechanism)


def numbers(model, values):
    """A function from matrices of the model to numbers."""
    known = {**model.parameters, **values}
    symbols = list(known)
    arguments = [float(known[symbol]) for symbol in symbols]
    return lambda m: np.array(
        sympy.lambdify(symbols, m, modules="numpy", cse=True)(*arguments), dtype=float
    )


def scene(rrr, seed: int = 0):
    """(chain, q, qd, qdd, state, evaluate) at a closed moving state"""
    mechanism, model = rrr
    chain = ClosedChain(mechanism)
    rng = np.random.default_rng(seed)
    q = chain.home.q_a + rng.uniform(-0.3, 0.3, 3)
    qd, qdd = rng.uniform(-1, 1, (2, 3))
    state = chain.forward_kinematics(q, qd)
    pose = state.platform_pose
    x = [*pose[:2, 3], np.arctan2(pose[1, 0], pose[0, 0])]
    values = dict(zip((*model.q_a, *model.q_s), state.q_r[:6], strict=True))
    values |= dict(zip(model.x, x, strict=True))
    values |= dict(zip(model.qd, state.qd_r[:6], strict=True))
    values |= dict(zip(model.xd, state.v[[0, 1, 5]], strict=True))
    return chain, q, qd, qdd, state, numbers(model, values)


def test_the_closure_is_closed_and_its_jacobians_are_its_slopes(rrr):
    _, model = rrr
    *_, evaluate = scene(rrr)
    assert np.abs(evaluate(model.closure)).max() < 1e-10
    q_r = [*model.q_a, *model.q_s]
    assert sympy.simplify(model.closure.jacobian(q_r) - model.J_q).is_zero_matrix
    assert sympy.simplify(model.closure.jacobian(list(model.x)) - model.J_x).is_zero_matrix


def test_the_legs_are_those_of_the_papers_energy(rrr):
    """(33) with its misprints mended: l_cL, no L_i² alone, m_s at B_i, both gravity terms of one
    sign; the sensor's own inertia counts."""
    _, model = rrr
    g = sympy.Symbol("g", real=True)
    lagrangian = 0
    for leg in range(3):
        q_a, q_p = model.q_a[leg], model.q_s[leg]
        qd_a, qd_p = model.qd[leg], model.qd[3 + leg]
        L, m_L, m_s, m_l, I_L, I_s, I_l, l_cL, l_cl = sympy.symbols(
            f"L_{leg + 1} m_L m_s m_l I_L I_s I_l l_cL l_cl", real=True
        )
        lagrangian += (
            (m_L * l_cL**2 + m_l * (L**2 + l_cl**2 + 2 * L * l_cl * sympy.cos(q_p)) + m_s * L**2
             + I_L + I_s + I_l) * qd_a**2 / 2
            + (m_l * (l_cl**2 + L * l_cl * sympy.cos(q_p)) + I_l) * qd_a * qd_p
            + (m_l * l_cl**2 + I_l) * qd_p**2 / 2
            - (m_L * l_cL + m_s * L + m_l * L) * g * sympy.sin(q_a)
            - m_l * l_cl * g * sympy.sin(q_a + q_p)
        )  # fmt: skip
    q, qd = sympy.Matrix([*model.q_a, *model.q_s]), sympy.Matrix(model.qd)
    momentum = sympy.Matrix([lagrangian]).jacobian(qd)
    D = momentum.jacobian(qd)
    assert sympy.simplify(model.D_q - D).is_zero_matrix
    slope = sympy.Matrix([lagrangian.subs(dict.fromkeys(model.qd, 0))]).jacobian(q).T
    assert sympy.simplify(model.G_q + slope).is_zero_matrix
    force = momentum.jacobian(q) * qd - sympy.Matrix([lagrangian]).jacobian(q).T
    assert sympy.simplify(force - model.C_q * qd - model.G_q).is_zero_matrix


def test_the_platform_is_that_of_32_with_the_loads_weight(rrr):
    _, model = rrr
    m_p, m_c, I_p, I_c, g = (
        sympy.Symbol(name, real=True) for name in ("m_p", "m_c", "I_p", "I_c", "g")
    )
    assert sympy.diag(m_p + m_c, m_p + m_c, I_p + I_c) == model.D_x
    assert model.C_x.is_zero_matrix
    assert sympy.Matrix([0, (m_p + m_c) * g, 0]) == sympy.expand(model.G_x).applyfunc(sympy.factor)


def test_the_jacobians_and_their_rates_are_those_of_the_numbers(rrr):
    _, model = rrr
    *_, state, evaluate = scene(rrr)
    legs = slice(0, 6)  # the numbers have the platform's hinge among the joints
    plane = [0, 1, 5]
    assert relative(evaluate(model.T), state.T[legs]) < SAME
    assert relative(evaluate(model.J_R), state.J_R[plane]) < SAME
    assert relative(evaluate(model.T_rate), state.T_rate[legs]) < SAME
    assert relative(evaluate(model.J_R_rate), state.J_R_rate[plane]) < SAME
    # any J_C is right on the rates that the loops allow
    assert relative(evaluate(model.J_C) @ state.T[legs], state.J_R[plane]) < SAME


def test_model_40_is_the_model_of_the_numbers(rrr):
    _, model = rrr
    chain, q, qd, _, _, evaluate = scene(rrr)
    T, J = evaluate(model.T), evaluate(model.J_R)
    T_rate, J_rate = evaluate(model.T_rate), evaluate(model.J_R_rate)
    D_q, C_q, G_q, D_x, C_x, G_x = (
        evaluate(getattr(model, name)) for name in ("D_q", "C_q", "G_q", "D_x", "C_x", "G_x")
    )
    D = T.T @ D_q @ T + J.T @ D_x @ J
    C = T.T @ (C_q @ T + D_q @ T_rate) + J.T @ (D_x @ J_rate + C_x @ J)
    G = T.T @ G_q + J.T @ G_x
    assert relative(D, chain.mass_matrix(q)) < SAME
    assert relative(C, chain.coriolis_matrix(q, qd)) < SAME
    assert relative(G[:, 0], chain.gravity(q)) < SAME
    # and the products in symbols are these
    assert relative(evaluate(model.active()["D"]), D) < SAME
    assert relative(evaluate(model.active()["G"]), G) < SAME


def test_model_39_agrees_with_40_on_rates_that_the_loops_allow(rrr):
    _, model = rrr
    chain, q, qd, qdd, state, evaluate = scene(rrr)
    T, J = evaluate(model.T), evaluate(model.J_C)
    J_rate = evaluate(model.J_C_rate)
    D_q, C_q, G_q, D_x, G_x = (
        evaluate(getattr(model, name)) for name in ("D_q", "C_q", "G_q", "D_x", "G_x")
    )
    D = T.T @ (D_q + J.T @ D_x @ J)
    C = T.T @ (C_q + J.T @ D_x @ J_rate)
    G = T.T @ (G_q + J.T @ G_x)
    accelerations = (state.T @ qdd + state.T_rate @ qd)[:6]
    tau = D @ accelerations + C @ state.qd_r[:6] + G[:, 0]
    assert relative(tau, chain(q, qd, qdd)) < SAME
    shapes = {name: values.shape for name, values in model.sensed().items()}
    assert shapes == {"D": (3, 6), "C": (3, 6), "G": (3, 1), "F_ext": (3, 3)}


def test_text_and_latex_name_every_matrix(rrr):
    _, model = rrr
    text = model.text()
    for name in ("Gamma[6]", "J_x[6][3]", "J_q[6][6]", "D_x[3][3]", "D_q[6][6]", "K[6][3]", "(40)"):
        assert name in text
    assert r"\begin{align*}" in model.latex()


FORMULATIONS = ("lagrange_euler", "newton_euler", "gibbs_appell", "murphy")
FRAMES = r"Delta|(v|omega|p|R|zeta)(_[ef])?_[xyz]+\d+"
"""The names of a determinant and of entries of frames"""
LINES = {"rrr": 220, "five_bar": 70, "delta": 620, "gough_stewart": 1150}
"""Most intermediates"""


@cache
def derived(name: str, formulation: str, parameters: str = "symbols"):
    """The model of a shipped robot, for all tests that only read it: some take long to derive."""
    return derive(rd.load(CONFIG / f"{name}.yaml"), formulation, parameters=parameters)


def listing(model, mechanism, *, seed: int = 0, reach: float = 0.2, **options):
    """(ClosedChain, {name: (its value in the listing, that of the numbers)}) at a closed moving
    state"""
    chain = ClosedChain(mechanism, **options)
    rng = np.random.default_rng(seed)
    a = len(model.qdd)
    q = chain.home.q_r[:a] + rng.uniform(-reach, reach, a)
    qd, qdd = rng.uniform(-1, 1, (2, a))
    state = chain.forward_kinematics(q)
    # a platform that is free has coordinates of its own in place of the joints that carry it
    joints = dict(zip(chain.coordinate_names, state.q_r, strict=True))
    x = model.place(state.platform_pose) if model.x else []
    entered = [*(joints[name] for name in model.coordinate_names), *x, *qd, *qdd]
    known = dict(zip((*model.q, *model.x, *model.qd[:a], *model.qdd), entered, strict=True))
    known |= model.parameters
    compute = sympy.lambdify(
        list(known),
        [model.torques, model.D, model.C, model.g, model.T, model.J_q, model.closure],
        modules="numpy",
        cse=lambda expressions: (model.intermediates, expressions),
        dummify=True,
    )
    torques, D, C, g, T, J_q, closure = compute(*map(float, known.values()))
    assert np.abs(closure).max() < 1e-9
    if not model.x:
        # the rates that T allows keep the loops closed
        assert np.abs(J_q @ T).max() < 1e-12
    rows = [chain.coordinate_names.index(name) for name in model.coordinate_names]
    return chain, {
        "torques": (np.ravel(torques), chain(q, qd, qdd)),
        "D": (D, chain.mass_matrix(q)),
        "C": (C, chain.coriolis_matrix(q, qd)),
        "g": (np.ravel(g), chain.gravity(q)),
        "T": (T, state.T[rows]),
    }


def assert_exact(found):
    for name, (value, expected) in found.items():
        assert np.allclose(
            value, expected, rtol=0, atol=EXACT * max(np.abs(expected).max(), 1e-3)
        ), name


@pytest.mark.parametrize("parameters", ["symbols", "numbers"])
@pytest.mark.parametrize("name", ["rrr", "delta", "five_bar"])
def test_other_mechanisms_are_listed(name, parameters):
    model = derived(name, "newton_euler", parameters)
    chain, found = listing(model, rd.load(CONFIG / f"{name}.yaml"))
    assert_exact(found)
    assert "tau = D qdd_a + C qd_a + G + T^T F_q" in model.text()
    assert f"tau[{chain.joint_names[-1]}] = " in model.document(steps=True).text()


@pytest.mark.parametrize(
    ("name", "formulation"),
    [(name, formulation) for name in ("rrr", "five_bar", "delta") for formulation in FORMULATIONS]
    + [("gough_stewart", "lagrange_euler"), ("gough_stewart", "newton_euler")],
)
def test_lists_are_short_and_exact_by_any_formulation(name, formulation):
    reach = 0.02 if name == "gough_stewart" else 0.2
    model = derived(name, formulation)
    _, found = listing(model, rd.load(CONFIG / f"{name}.yaml"), seed=1, reach=reach)
    assert_exact(found)
    assert len(model.intermediates) <= LINES[name]
    # each is an entry of a matrix, a rate, a part of a link's frame, or a determinant
    entries = {str(x) for x, _ in model.intermediates} - {str(x) for x in model.rates}
    assert all(x in model.entries or re.fullmatch(FRAMES, x) for x in entries)


@pytest.mark.parametrize(
    ("name", "first"), [("delta", 1), ("rrr", 1), ("gough_stewart", 1), ("five_bar", 2)]
)
def test_long_entries_of_frames_have_letters(name, first, monkeypatch):
    """As in robots whose frames are turned by arbitrary angles. The loops are numbered from 2, as
    their letters e_x2 are; 1 is the joint that carries a free platform."""
    monkeypatch.setattr(projections, "FRAME", 1)
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    model = derive(mechanism)
    quantities = {re.sub(r"_[xyz]+\d+$", "", str(x)) for x, _ in model.others["frames"]}
    assert {"R", "p"} <= quantities
    assert_exact(listing(model, mechanism, reach=0.02)[1])
    written = model.latex()
    assert f"p^{{e}}_{{x{first}}}" in written or f"p^{{f}}_{{x{first}}}" in written
    assert f"p^{{e}}_{{x{first - 1}}}" not in written


def test_frames_of_robots_with_many_joints_have_letters_early(monkeypatch):
    """Otherwise the closures of a leg of many joints in space have more terms than are computed."""
    mechanism, found = rd.load(CONFIG / "five_bar.yaml"), []
    for most in (9, 1):
        monkeypatch.setattr(projections, "MANY", most)
        monkeypatch.setattr(projections, "FRAME_OF_MANY", 1)
        model = derive(mechanism)
        assert_exact(listing(model, mechanism, reach=0.02)[1])
        found.append(len(model.others["frames"]))
    assert found[0] < found[1]


@pytest.mark.parametrize(("seed", "sliding", "rotors"), [(1, 0, False), (2, None, True)])
def test_planar_robots_in_any_plane_with_any_frames_are_exact(seed, sliding, rotors, tmp_path):
    robot = random_rrr(seed, carrier=seed, sliding=sliding, rotors=rotors)
    platform = next(link for link in robot["links"] if link["name"] == "platform")
    platform["origin"]["rpy"] = [0.4, -0.3, 0.2]
    others = [f"distal{leg}" for leg in range(3) if leg != seed]
    closed = closed_at_home(
        {key: value for key, value in robot.items() if key != "loops"},
        [(name, "platform", "revolute") for name in others],
    )
    mechanism = load(closed, tmp_path)
    model = derive(mechanism)
    assert len(model.x) == 3
    assert_exact(listing(model, mechanism, reach=0.01)[1])


def test_rows_beyond_those_of_the_legs_constrain_the_platform(tmp_path):
    """With a leg of one moving joint the platform has two degrees of freedom: K has a row too many
    of closures, which are E v = 0."""
    robot = shipped("rrr")
    proximal = next(link for link in robot["links"] if link["joint"].get("name") == "qa3")
    proximal |= {"joint": {"type": "fixed"}, "theta": robot["home"].pop("qa3")}
    robot |= {"actuated": ["qa1", "qa2"]}
    mechanism = load(robot, tmp_path)
    model = derive(mechanism)
    assert "E" in model.matrices
    assert_exact(listing(model, mechanism, reach=0.05)[1])
    assert "Rate of E" in model.text()


def test_the_simplest_rows_and_names_are_chosen():
    text = derived("delta", "newton_euler").text()
    assert "K[1][1] = c14/(a1*s4)" in text
    assert "Inverse of J_q" not in derived("rrr", "newton_euler").text()


@pytest.mark.filterwarnings("ignore:.*can spin freely")
def test_a_linkage_with_oblique_axes_has_short_equations(tmp_path):
    """The tutorial's: written out, one entry of T would fill ten pages."""
    page = (CONFIG.parent / "docs" / "tutorial_parallel.md").read_text(encoding="utf-8")
    for kind, name in (("xml", "linkage.urdf"), ("yaml", "linkage.yaml")):
        block = re.search(f"```{kind}\n(.*?)```", page, re.DOTALL)
        assert block
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    file = str(tmp_path / "linkage.yaml")
    assert main(["close", file, "--mode", "1", "--out", file]) == 0
    mechanism = rd.load(file)
    model = derive(mechanism)
    assert "T[3] = J_q[3][4]*(J_q[1][1]*J_q[2][2] - J_q[1][2]*J_q[2][1])/Delta_1" in model.text()
    assert max(map(len, model.document(steps=True).text().splitlines())) < 1000
    assert_exact(listing(model, mechanism)[1])


def test_hinges_of_the_platform_have_letters_on_it():
    """e of the three legs are the triangle that they hold."""
    model = derived("delta", "newton_euler")
    e = {name: model.parameters.get(sympy.Symbol(name, real=True), 0.0)
         for name in ("e_x1", "e_y1", "e_x2", "e_y2", "e_x3", "e_y3")}  # fmt: skip
    legs = [complex(e[f"e_x{k}"], e[f"e_y{k}"]) for k in (1, 2, 3)]
    assert abs(sum(legs)) < 1e-12
    assert np.allclose(np.abs(legs), 0.05)


def rotor_on(mount: str) -> dict:
    """A rotor that this link carries."""
    inertia = {"ixx": 2e-4, "iyy": 2e-4, "izz": 3e-4}
    return {"mount": mount, "origin": {"xyz": [0.02, 0.01, 0.03], "rpy": [0.3, 0.0, 0.0]},
            "gear_ratio": 20.0, "mass": 0.2, "inertia": inertia}  # fmt: skip


def test_a_rotor_on_the_platform_is_part_of_the_equations(tmp_path):
    robot = shipped("rrr")
    link = next(link for link in robot["links"] if link["joint"].get("name") == "qa2")
    link["rotor"] = rotor_on("platform")
    mechanism = load(robot, tmp_path)
    assert_exact(listing(derive(mechanism), mechanism)[1])


def test_bodies_of_the_wrist_that_carries_the_platform_are_part_of_the_equations(tmp_path):
    robot = shipped("delta")
    wrist = next(link for link in robot["links"] if link["name"] == "wrist1")
    wrist |= {"mass": 0.3, "center_of_mass": [0.01, 0.02, 0.0],
              "inertia": {"ixx": 1e-3, "iyy": 2e-3, "izz": 1.5e-3}}  # fmt: skip
    mechanism = load(robot, tmp_path)
    model = derive(mechanism)
    assert "qv1" in model.coordinate_names
    assert_exact(listing(model, mechanism)[1])


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
@pytest.mark.parametrize("terms", [("inertia",), ("rotors", "gravity"), ("coriolis", "friction")])
def test_lists_of_some_terms_are_exact(terms, rotors):
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    model = derive(mechanism, "newton_euler", terms=terms, rotors=rotors)
    assert_exact(listing(model, mechanism, terms=terms, rotors=rotors)[1])


def sprung(name: str, folder):
    """A shipped robot with a friction of its own, springs included, at every joint of its legs."""
    robot = shipped(name)
    for k, link in enumerate(robot["links"]):
        if link["joint"].get("name", "qc1") != "qc1":
            law = {"viscous": 0.1 + k, "coulomb": 0.3, "offset": 0.2, "stiffness": 2.0 + k}
            link["friction"] = law
    return load(robot, folder)


@pytest.mark.parametrize("name", ["five_bar", "rrr"])
def test_listed_friction_turns_round_after_a_reversal(name):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    law = Friction(0.4, 3.0, presliding=0.5)
    links = [replace(link, joint=replace(link.joint, friction=law)) for link in mechanism.links]
    mechanism = replace(mechanism, links=tuple(links))
    model = derive(mechanism, "newton_euler", terms=["friction"])
    assert any(str(symbol).startswith("bd") for symbol in model.parameters)
    for seed in range(3):
        assert_exact(listing(model, mechanism, seed=seed, reach=0.02, terms=["friction"])[1])


def test_listed_friction_has_springs(tmp_path):
    mechanism = sprung("five_bar", tmp_path)
    model = derive(mechanism, "newton_euler", terms=["friction"])
    assert_exact(listing(model, mechanism, terms=["friction"])[1])


def test_the_legs_friction_has_springs(tmp_path):
    mechanism = sprung("rrr", tmp_path)
    model = derive(mechanism)
    _, q, qd, qdd, state, evaluate = scene((mechanism, model))
    tau = state.T[:6].T @ evaluate(model.friction)[:, 0]
    assert relative(tau, ClosedChain(mechanism, terms=["friction"])(q, qd, qdd)) < SAME


def test_intermediates_stand_on_those_before_them_and_each_is_needed():
    model = derived("delta", "newton_euler")
    rates = model.qd[: len(model.qdd)]
    known = {*model.q, *model.x, *rates, *model.qdd, *model.parameters}
    used = set()
    for symbol, value in model.intermediates:
        assert symbol not in known
        assert value.free_symbols <= known
        known.add(symbol)
        used |= value.free_symbols
    for part in (model.closure, model.J, model.T, model.D, model.C, model.g, model.torques):
        used |= part.free_symbols
    assert {symbol for symbol, _ in model.intermediates} <= used


def test_angles_that_were_rounded_are_exact_in_symbols_and_said_to_be(tmp_path):
    robot = shipped("five_bar")
    robot["links"][0]["origin"] = {"xyz": [-0.1, 0, 0], "rpy": [1.5708, 0, 0]}
    robot["links"][3]["origin"] = {"xyz": [0.1, 0, 0], "rpy": [1.5708, 0, 0]}
    model = derive(load(robot, tmp_path), "newton_euler")
    assert "1.5708 rad is taken as pi/2" in model.text()
    assert len(model.intermediates) <= LINES["five_bar"]


def test_listed_equations_are_in_the_letters_of_the_description():
    model = derived("five_bar", "newton_euler")
    assert model.parameters[sympy.Symbol("a1", real=True)] == 0.25
    values = dict(model.intermediates)
    numbers = {
        number for value in values.values() for number in value.atoms(sympy.Number) if number
    }
    # the equations' own: no length, mass or scale is written as a number
    assert numbers <= {*map(sympy.Rational, ("1/2", "1/4", "1", "2", "3", "4")),
                       *map(sympy.Rational, ("-1/2", "-1/4", "-1", "-2", "-4"))}  # fmt: skip
    names = set(map(str, values))
    # the legs' inertia and its rates, the joints' rates, what the loops make of them
    assert {"D_q_1_3", "C_q_1_3", "G_q_3", "qp1_d", "B_3_1", "T_3_1", "dT_3_1", "D_1_2"} <= names
    a1, a2, qa1, qp1 = sympy.symbols("a1 a2 qa1 qp1", real=True)
    assert model.J[0, 0] == a1 * sympy.sin(qa1) + a2 * sympy.sin(qa1 + qp1)


def renamed(robot, names):
    """The description with these names of its moving joints."""
    links = [link for link in robot["links"] if "name" in link["joint"]]
    new = dict(zip((link["joint"]["name"] for link in links), names, strict=True))
    for link in links:
        link["joint"]["name"] = new[link["joint"]["name"]]
    for key in ("actuated", "sensed"):
        if key in robot:
            robot[key] = [new[name] for name in robot[key]]
    robot["home"] = {new[name]: value for name, value in robot["home"].items()}
    return robot


@pytest.mark.parametrize(
    "names",
    [
        ("q2", "2nd", "q3", "3rd"),
        ("qa", "qa_d", "qa_dd", "x"),
        ("T_3_1", "tau_1", "C_1_2", "Delta1"),
        ("é", "q1", "a1", "m1"),
        ("sin", "pi", "cos", "q1"),
    ],
)
def test_names_of_joints_that_mean_something_else_in_formulas_do_no_harm(names, tmp_path):
    robot = load(renamed(shipped("five_bar"), names), tmp_path)
    model = derive(robot, "newton_euler")
    assert_exact(listing(model, robot)[1])
    letters = [*model.q, *model.qd[: len(model.qdd)], *model.qdd, *model.parameters]
    letters += [symbol for symbol, _ in model.intermediates]
    assert len(set(letters)) == len(letters)


def test_joints_named_as_the_platforms_position_are_not_confused_with_it(tmp_path):
    names = ("x", "y", "theta_z", "x_d", "y_d", "q3", "q4")
    robot = load(renamed(shipped("rrr"), names), tmp_path)
    model = derive(robot)
    letters = [*model.q_a, *model.q_s, *model.x, *model.qd, *model.xd]
    assert len(set(letters)) == len(letters)
    state = scene((robot, model))[-2]
    assert relative(scene((robot, model))[-1](model.T), state.T[:6]) < SAME


def test_what_is_no_short_decimal_is_said_to_be_rounded():
    model = derived("delta", "newton_euler", "numbers")
    numbers = {n for _, value in model.intermediates for n in value.atoms(sympy.Number)}
    assert all(n.q < 10**12 for n in numbers if n.is_Rational)
    assert "rounded to double precision" in model.text()


def test_differences_of_short_decimals_are_short():
    model = derived("five_bar", "newton_euler", "numbers")
    numbers = {n for _, value in model.intermediates for n in value.atoms(sympy.Number)}
    assert not any(n.is_Float for n in numbers)
    assert max(n.q for n in numbers) <= 10**6


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0222 - 0.02215, sympy.Rational(5, 10**5)),
        (0.1 + 0.2, sympy.Rational(3, 10)),
        (3**0.5 / 2, None),
        (0.123456789012345, None),
        (0.5 * (1 + 1e-12), None),
        (1e-300, None),
        (0.0, 0),
        (0.123456789, sympy.Rational(123456789, 10**9)),
    ],
)
def test_a_constant_is_exact_only_where_rounding_alone_is_in_between(value, expected):
    found = shown(sympy.Rational(repr(near(value))))
    if expected is None:
        assert found.is_Float
        assert float(found) == value
    else:
        assert found == expected
