# SPDX-License-Identifier: Apache-2.0
"""`rd.functions` over CasADi, JAX and PyTorch computes the same as our own kernels."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from robots import CONFIG, example_robots

import robot_dynamics as rd
from robot_dynamics.mechanism.dynamic_parameters import with_parameters

SMALL = 1e-10
"""Of the largest entry: other orders of the same sums, and other libraries' sines"""
ROBOTS = ("polar.yaml", "cartesian.yaml", "three_axis.yaml", "six_axis", "panda.urdf", "go2.urdf")
LIBRARIES = ("casadi", "jax", "torch")
SETS_OF_TERMS = [
    chosen
    for terms in (("inertia", "coriolis"), ("gravity",), ("rotors",), ("friction",))
    for others in ((), ("friction",), ("gravity",))
    if (chosen := tuple(dict.fromkeys(terms + others)))
]


def load(name: str) -> rd.Mechanism:
    if name.endswith(".yaml"):
        return rd.load(CONFIG / name)
    if name == "six_axis":
        return rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    found = [path for path in example_robots() if path.name == name]
    if not found:
        pytest.skip("example-robot-data is not installed, which has this robot")
    return rd.load(found[0])


class Over:
    """A library, and its arrays to and from NumPy's."""

    def __init__(self, name: str):
        self.name = name
        self.module: Any = pytest.importorskip(name, reason=f"{name} is not installed")
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)

    def of(self, x: Any) -> Any:
        if self.name == "casadi":
            return self.module.DM(np.asarray(x))
        if self.name == "jax":
            return self.module.numpy.asarray(x)
        return self.module.tensor(np.asarray(x), dtype=self.module.float64)

    def call(self, function: Any, *vectors: Any) -> Any:
        """At one state, as NumPy arrays."""
        results = function(*map(self.of, vectors))
        if not isinstance(results, (tuple, list)):
            return np.asarray(results).squeeze()
        return [np.asarray(each).squeeze() for each in results]


@pytest.fixture(params=LIBRARIES)
def over(request) -> Over:
    return Over(request.param)


def close(found: Any, expected: Any) -> None:
    expected = np.squeeze(expected)
    atol = SMALL * max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_function_is_our_own_kernels(over, name):
    mechanism = load(name)
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, over.name)
    n = len(mechanism.joint_names)
    assert theirs.joint_names == ours.joint_names
    assert theirs.parameter_names == tuple(ours.parameter_names)
    np.testing.assert_array_equal(theirs.parameters, ours.parameters)
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-2, 2, (3, n))
    tau = ours(q, qd, qdd)
    close(over.call(theirs.torques, q, qd, qdd), tau)
    close(over.call(theirs.mass_matrix, q), ours.mass_matrix(q))
    close(over.call(theirs.gravity, q), ours.gravity(q))
    close(over.call(theirs.forward, q, qd, tau), qdd)
    kinetic, potential = over.call(theirs.energies, q, qd)
    close(kinetic, ours.kinetic_energy(q, qd))
    close(potential, ours.potential_energy(q))
    link = mechanism.links[-1].name
    close(over.call(theirs.pose(link), q), ours.pose(q, link))
    close(over.call(theirs.jacobian(link), q), ours.jacobian(q, link))
    close(over.call(theirs.coriolis_matrix, q, qd), ours.coriolis_matrix(q, qd))
    close(over.call(theirs.regressor, q, qd, qdd), ours.regressor(q, qd, qdd))
    for found, expected in zip(
        over.call(theirs.derivatives, q, qd, qdd), ours.derivatives(q, qd, qdd), strict=True
    ):
        close(found, expected)


@pytest.mark.parametrize("formulation", ["lagrange_euler", "gibbs_appell", "murphy"])
@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_options_are_those_of_the_facade(over, formulation, rotors):
    mechanism = load("three_axis.yaml")
    options: dict[str, Any] = {
        "formulation": formulation,
        "rotors": rotors,
        "terms": ("inertia", "gravity", "friction"),
        "friction_smoothing": 0.3,
    }
    ours, theirs = (
        rd.InverseDynamics(mechanism, **options),
        rd.functions(mechanism, over.name, **options),
    )
    state = np.random.default_rng(1).uniform(-1, 1, (3, 3))
    close(over.call(theirs.torques, *state), ours(*state))


@pytest.mark.parametrize("terms", SETS_OF_TERMS, ids="+".join)
def test_parameters_are_those_that_the_terms_feel(terms):
    over = Over("casadi")
    mechanism = load("three_axis.yaml")  # with heavy rotors
    for rotors in ("full", "none"):
        options: dict[str, Any] = {"terms": terms, "rotors": rotors}
        ours = rd.InverseDynamics(mechanism, **options, backend="python")
        theirs = rd.functions(mechanism, over.name, **options, arguments="parameters")
        assert theirs.parameter_names == tuple(ours.parameter_names)
        felt = rotors == "full" and not {"rotors", "gravity"}.isdisjoint(terms)
        assert ("q1.mass" in theirs.parameter_names) == felt  # a rotor's name
        q, qd, qdd = np.random.default_rng(4).uniform(-1, 1, (3, 3))
        pi = theirs.parameters
        close(over.call(theirs.torques, q, qd, qdd, pi), ours(q, qd, qdd))
        close(over.call(theirs.regressor, q, qd, qdd), ours.regressor(q, qd, qdd))
        close(over.call(theirs.mass_matrix, q, pi), ours.mass_matrix(q))
        close(over.call(theirs.coriolis_matrix, q, qd, pi), ours.coriolis_matrix(q, qd))
        close(over.call(theirs.gravity, q, pi), ours.gravity(q))


def test_what_is_not_linear_in_the_parameters_is_refused():
    over = Over("casadi")
    for arguments in ("parameters", ()):
        theirs = rd.functions(
            load("three_axis.yaml"), over.name, rotors="reflected", terms=("inertia", "gravity"),
            arguments=arguments,
        )  # fmt: skip
        with pytest.raises(rd.InputError, match="a link's mass includes its rotors' mass"):
            _ = theirs.regressor
    # D and C are those of the links, with masses that are not among the parameters
    theirs = rd.functions(
        load("three_axis.yaml"), over.name, rotors="reflected", terms=("gravity",),
        arguments="parameters",
    )  # fmt: skip
    for name in ("mass_matrix", "coriolis_matrix"):
        with pytest.raises(rd.InputError, match="a link's mass includes its rotors' mass"):
            getattr(theirs, name)


@pytest.mark.parametrize("name", ["three_axis.yaml", "six_axis"])
def test_parameters_and_gravity_are_arguments_where_wanted(over, name):
    mechanism = load(name)
    theirs = rd.functions(mechanism, over.name, arguments=["gravity", "parameters"])
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.uniform(-1, 1, (3, len(mechanism.joint_names)))
    pi = theirs.parameters * rng.uniform(0.9, 1.1, len(theirs.parameters))
    weight = np.array([1.0, -2.0, 3.0])
    other = rd.InverseDynamics(with_parameters(mechanism, pi))
    other.gravity_vector = weight
    tau = other(q, qd, qdd)
    close(over.call(theirs.torques, q, qd, qdd, pi, weight), tau)
    close(over.call(theirs.mass_matrix, q, pi, weight), other.mass_matrix(q))
    close(over.call(theirs.coriolis_matrix, q, qd, pi, weight), other.coriolis_matrix(q, qd))
    close(over.call(theirs.gravity, q, pi, weight), other.gravity(q))
    close(over.call(theirs.forward, q, qd, tau, pi, weight), qdd)
    close(over.call(theirs.regressor, q, qd, qdd, weight), other.regressor(q, qd, qdd))
    alone = rd.functions(mechanism, over.name, arguments="gravity")
    held = rd.InverseDynamics(mechanism)
    held.gravity_vector = weight
    close(over.call(alone.torques, q, qd, qdd, weight), held(q, qd, qdd))
    close(over.call(alone.energies, q, qd, weight)[1], held.potential_energy(q))


def test_a_payload_is_added_to_its_links_parameters(over):
    mechanism = load("six_axis")
    theirs = rd.functions(mechanism, over.name, arguments="parameters")
    pi = theirs.parameters.copy()
    first = theirs.parameter_names.index("flange.mass")
    pi[first : first + 4] += [2.0, 0.2, 0.0, 0.4]  # 2 kg at (0.1, 0, 0.2)
    pi[first + 4 : first + 10] += [0.08, 0.0, 0.1, -0.04, 0.0, 0.02]  # m (c·c 1 - c cᵀ)
    loaded = rd.InverseDynamics(mechanism)
    loaded.set_payload("flange", rd.Inertial(2.0, [0.1, 0.0, 0.2]))
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    close(over.call(theirs.torques, q, qd, qdd, pi), loaded(q, qd, qdd))


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_leading_axes_broadcast(library):
    over = Over(library)
    mechanism = load("three_axis.yaml")
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, library)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (5, 1, 3)), rng.uniform(-1, 1, (4, 3)), np.zeros(3)
    found = np.asarray(theirs.torques(*map(over.of, (q, qd, qdd))))
    assert found.shape == (5, 4, 3)
    close(found, ours(*np.broadcast_arrays(q, qd, qdd)))
    # a constant is of the batch's shape, too
    assert theirs.mass_matrix(over.of(q)).shape == (5, 1, 3, 3)


def test_casadi_differentiates_maps_and_expands():
    over = Over("casadi")
    casadi, mechanism = over.module, load("six_axis")
    theirs, ours = rd.functions(mechanism, "casadi"), rd.InverseDynamics(mechanism)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    x = casadi.SX.sym("x", 6)
    slope = casadi.Function("slope", [x], [casadi.jacobian(theirs.torques(x, qd, qdd), x)])
    close(np.asarray(slope(q)), ours.derivatives(q, qd, qdd)[0])
    states = np.random.default_rng(1).uniform(-1, 1, (3, 8, 6))
    mapped = theirs.torques.map(8)(*(casadi.DM(each.T) for each in states))
    close(np.asarray(mapped).T, ours(*states))
    assert theirs.torques.name_in() == ["q", "qd", "qdd"]


def test_jax_compiles_differentiates_and_maps():
    over = Over("jax")
    jax, mechanism = over.module, load("three_axis.yaml")
    theirs, ours = rd.functions(mechanism, "jax"), rd.InverseDynamics(mechanism)
    states = np.random.default_rng(0).uniform(-1, 1, (3, 7, 3))
    close(np.asarray(jax.jit(theirs.torques)(*states)), ours(*states))
    close(np.asarray(jax.vmap(theirs.torques)(*states)), ours(*states))
    slope = jax.jit(jax.vmap(jax.jacfwd(theirs.torques)))(*states)
    close(np.asarray(slope), ours.derivatives(*states)[0])


def test_torch_differentiates():
    over = Over("torch")
    torch, mechanism = over.module, load("three_axis.yaml")
    theirs, ours = rd.functions(mechanism, "torch"), rd.InverseDynamics(mechanism)
    state = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    slope = torch.func.jacrev(theirs.torques)(*map(over.of, state))
    close(slope.numpy(), ours.derivatives(*state)[0])


STONE = rd.Mechanism("stone", ())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: rd.functions(m, "numpy"), "casadi"),
        (lambda m: rd.functions("polar", "casadi"), "rd.load"),
        (lambda m: rd.functions(STONE, "casadi"), "no joint that moves"),
        (lambda m: rd.functions(m, "casadi", arguments=["mass"]), "parameters"),
        (lambda m: rd.functions(m, "casadi", formulation="kane"), "murphy"),
        (lambda m: rd.functions(m, "casadi", terms=["weight"]), "coriolis"),
        (lambda m: rd.functions(m, "casadi").pose("hand"), "link2"),
        (lambda m: rd.functions(m, "casadi", terms="gravity").forward, "inertia"),
        (lambda m: rd.functions(m, "casadi", arguments="parameters").energies, "energies"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, said):
    pytest.importorskip("casadi", reason="casadi is not installed")
    with pytest.raises(rd.InputError, match=said) as caught:
        call(load("polar.yaml"))
    assert "\n" not in str(caught.value)


def test_a_wrong_shape_names_the_argument():
    jax = Over("jax")
    theirs = rd.functions(load("polar.yaml"), "jax")
    with pytest.raises(rd.InputError, match="qd"):
        theirs.torques(jax.of([0, 0]), jax.of([0, 0, 0]), jax.of([0, 0]))
    with pytest.raises(rd.InputError, match="arguments"):
        theirs.torques(jax.of([0, 0]))


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("file", ["polar.yaml", "five_bar.yaml"])
def test_what_is_no_array_of_the_library_names_the_argument(library, file):
    over = Over(library)
    theirs, zero = rd.functions(load(file), library), over.of([0, 0])
    for wrong in (None, "text"):
        for place, name in enumerate(("q", "qd", "qdd")):
            state = [zero, zero, zero]
            state[place] = wrong
            with pytest.raises(rd.InputError, match=rf"^{name}: found '{type(wrong).__name__}'"):
                theirs.torques(*state)


def test_a_library_that_is_missing_is_named(monkeypatch):
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name == ".torch":
            raise ImportError("No module named 'torch'")
        return real(name, package)

    monkeypatch.setattr("robot_dynamics.libraries.of_mechanism.import_module", missing)
    with pytest.raises(rd.BackendError, match="pip install torch"):
        rd.functions(load("polar.yaml"), "torch")
