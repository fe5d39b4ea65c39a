# SPDX-License-Identifier: Apache-2.0
"""FMUs of any robot: as the standard says, and the torques are Python's."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.controller import write_fmu
from robot_dynamics.formulations.equations import TERMS
from robot_dynamics.mechanism import Inertial

pytest.importorskip("fmpy", reason="FMPy is not installed: no FMU is written or run")

import fmpy
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import fmi3Discard
from fmpy.validation import validate_fmu

ROUNDING = 1e-12
"""Relative: the same sums in another order"""
FAR = np.array([1.4, -1.4])
"""rad: the legs of the five-bar cannot reach that far"""
URDF = CONFIG.parent / "urdf" / "six_axis.urdf"
FILES = {"polar": CONFIG / "polar.yaml", "six_axis": URDF, "five_bar": CONFIG / "five_bar.yaml"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fmus")
    return {name: write_fmu(str(file), folder)["files"][0] for name, file in FILES.items()}


class Unit:
    """An instance, by the variables' names."""

    def __init__(self, path, kind="CoSimulation", token=None):
        self.description = fmpy.read_model_description(path)
        if token is not None:
            self.description.instantiationToken = token
        self.references = {each.name: each for each in self.description.modelVariables}
        self.words = []
        self.unit = fmpy.instantiate_fmu(
            fmpy.extract(path),
            self.description,
            fmi_type=kind,
        )
        self.unit.enterInitializationMode()

    def set(self, **values):
        for name, value in values.items():
            each = self.references[name.replace("__", ".")]
            setter = getattr(self.unit, f"set{each.type}")
            setter([each.valueReference], [value])

    def take(self, **vectors):
        """q, qd, qdd of all joints."""
        for letters, values in vectors.items():
            references = [x for x in self.references if x.startswith(f"{letters}.")]
            self.unit.setFloat64(
                [self.references[x].valueReference for x in references], list(values)
            )

    @property
    def tau(self):
        found = [x.valueReference for name, x in self.references.items() if name[:4] == "tau."]
        return np.array(self.unit.getFloat64(found))


@contextmanager
def running(path, kind="CoSimulation"):
    one = Unit(path, kind)
    yield one
    one.unit.terminate()
    one.unit.freeInstance()


def states(dynamics):
    """A way from home on."""
    rng = np.random.default_rng(1)
    home = dynamics.mechanism.home
    q = np.array([float(home.get(name, 0.0)) for name in dynamics.joint_names])
    for step in (0.0, 0.01, 0.05, 0.1):
        q = q + step * rng.uniform(-1, 1, len(q))
        yield q, *rng.uniform(-1, 1, (2, len(q)))


@pytest.mark.parametrize("robot", FILES)
def test_it_is_as_the_standard_says(robot, written):
    assert validate_fmu(written[robot]) == []
    description = fmpy.read_model_description(written[robot])
    dynamics = rd.InverseDynamics(rd.load(FILES[robot]), backend="python")
    inputs = [x.name for x in description.modelVariables if x.causality == "input"]
    assert inputs == [f"{x}.{name}" for x in ("q", "qd", "qdd") for name in dynamics.joint_names]
    outputs = [x.name for x in description.modelVariables if x.causality == "output"]
    assert outputs == [f"tau.{name}" for name in dynamics.actuated_names]


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("robot", FILES)
def test_torques_are_pythons_whatever_is_set(robot, kind, written):
    mechanism = rd.load(FILES[robot])
    links = [link.name for link in mechanism.links]
    body = Inertial(1.5, np.array([0.1, -0.05, 0.2]), np.diag([0.02, 0.03, 0.04]))
    sets = [TERMS, ("gravity",), ("inertia", "friction"), ("coriolis", "rotors")]
    with running(written[robot], kind) as unit:
        for terms in sets if kind == "CoSimulation" else sets[1:2]:
            unit.set(**{f"terms.{term}": term in terms for term in TERMS})
            dynamics = rd.InverseDynamics(
                mechanism, terms=terms, friction_smoothing=0.2, backend="python"
            )
            for k, (q, qd, qdd) in enumerate(states(dynamics)):
                gravity = [1.0, -2.0, 9.0] if k % 2 else mechanism.gravity
                link, mass = k % len(links), 1.5 * (k % 3)
                for name in links:
                    dynamics.set_payload(name, None)
                if mass:
                    dynamics.set_payload(
                        links[link], Inertial(mass, body.center_of_mass, body.inertia)
                    )
                dynamics.gravity_vector = gravity
                unit.set(friction_smoothing=0.2, payload__link=link, payload__mass=mass)
                unit.set(**{f"gravity.{a}": float(x) for a, x in zip("xyz", gravity, strict=True)})
                unit.set(
                    **{
                        f"payload.center_of_mass.{a}": float(x)
                        for a, x in zip("xyz", body.center_of_mass, strict=True)
                    }
                )
                unit.set(
                    **{
                        f"payload.inertia.{a}{a}": float(body.inertia[i, i])
                        for i, a in enumerate("xyz")
                    }
                )
                unit.take(q=q, qd=qd, qdd=qdd)
                assert relative(unit.tau, dynamics(q, qd, qdd)) < ROUNDING


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_a_simulator_gets_the_torques_of_its_signals(kind, written):
    dynamics = rd.InverseDynamics(rd.load(FILES["five_bar"]), backend="python")
    home = np.array([dynamics.mechanism.home[name] for name in dynamics.joint_names])
    time = np.linspace(0.0, 0.5, 51)
    names = [f"{x}.{name}" for x in ("q", "qd", "qdd") for name in dynamics.joint_names]
    signals = np.zeros(len(time), dtype=[("time", float), *((name, float) for name in names)])
    signals["time"] = time
    for j, name in enumerate(dynamics.joint_names):
        signals[f"q.{name}"] = home[j] + 0.1 * np.sin(3 * time + j) - 0.1 * np.sin(j)
        signals[f"qd.{name}"] = 0.3 * np.cos(3 * time + j)
        signals[f"qdd.{name}"] = -0.9 * np.sin(3 * time + j)
    found = fmpy.simulate_fmu(
        written["five_bar"],
        fmi_type=kind,
        stop_time=0.5,
        step_size=0.01,
        output_interval=0.01,
        solver="Euler",
        input=signals,
        output=[*names, *(f"tau.{name}" for name in dynamics.actuated_names)],
    )
    assert len(found) > 40
    assert found["qd.qa1"].std() > 0.01
    n = len(dynamics.joint_names)
    for row in found:
        state = np.array([row[name] for name in names]).reshape(3, n)
        tau = np.array([row[f"tau.{name}"] for name in dynamics.actuated_names])
        assert relative(tau, dynamics(*state)) < 1e-9  # Newton's last step, from another side


def test_what_is_no_state_is_refused_and_the_next_one_is_not(written):
    dynamics = rd.InverseDynamics(rd.load(FILES["five_bar"]), backend="python")
    q, qd, qdd = next(iter(states(dynamics)))
    with running(written["five_bar"]) as unit:
        unit.take(q=q, qd=qd, qdd=qdd)
        good = unit.tau
        for wrong in (np.nan, np.inf):
            with pytest.raises(FMICallException):
                unit.take(q=[wrong, q[1]])
        assert (unit.tau == good).all()
        kept = unit.unit.getFMUState()
        unit.take(q=q + FAR)
        with pytest.raises(FMICallException):
            _ = unit.tau
        with pytest.raises(FMICallException):
            unit.unit.doStep(0.0, 0.1)
        unit.unit.setFMUState(kept)
        assert (unit.tau == good).all()
        unit.take(q=q + FAR)
        unit.take(q=q)
        assert relative(unit.tau, good) < ROUNDING
        for name, value in (
            ("payload.mass", -1.0),
            ("friction_smoothing", -0.1),
            ("payload.link", 99),
        ):
            with pytest.raises(FMICallException):
                unit.set(**{name: value})
        with pytest.raises(FMICallException):
            unit.unit.getFloat64([10_000])
        with pytest.raises(FMICallException):
            unit.set(tau__qa1=1.0)
        unit.unit.freeFMUState(kept)
        unit.unit.reset()
        unit.take(q=q, qd=qd, qdd=qdd)
        assert (unit.tau == good).all()


def test_a_solver_is_told_to_come_with_a_smaller_step(written):
    dynamics = rd.InverseDynamics(rd.load(FILES["five_bar"]), backend="python")
    q, *_ = next(iter(states(dynamics)))
    with running(written["five_bar"], "ModelExchange") as unit:
        unit.take(q=q + FAR)
        with pytest.raises(FMICallException) as failure:
            _ = unit.tau
        assert failure.value.status == fmi3Discard
        unit.take(q=q)
        assert np.isfinite(unit.tau).all()


def test_another_models_token_is_no_model(written):
    with pytest.raises(Exception, match="nstantiate"):
        Unit(written["polar"], token="another")


def test_the_archive_is_the_same_each_time_and_its_sources_are_there(written, tmp_path):
    again = write_fmu(str(FILES["polar"]), tmp_path)["files"][0]
    with zipfile.ZipFile(written["polar"]) as one, zipfile.ZipFile(again) as other:
        assert one.namelist() == other.namelist()
        names = [name for name in one.namelist() if not name.startswith("binaries/")]
        assert {"sources/fmu.c", "sources/polar_dynamics.c", "sources/fmi3Functions.h"} < {*names}
        for name in names:
            assert one.read(name) == other.read(name)
    with pytest.raises(rd.RobotDynamicsError, match="force"):
        write_fmu(str(FILES["polar"]), tmp_path)


def test_links_whose_names_cannot_be_told_carry_nothing(tmp_path):
    text = (CONFIG / "polar.yaml").read_text()
    for link in rd.load(CONFIG / "polar.yaml").links:
        text = text.replace(f"name: {link.name}\n", f'name: "{link.name} <&"\n')
        text = text.replace(f"parent: {link.name}\n", f'parent: "{link.name} <&"\n')
    file = tmp_path / "polar.yaml"
    file.write_text(text)
    assert all("<" in link.name for link in rd.load(file).links)
    path = write_fmu(str(file), tmp_path)["files"][0]
    assert validate_fmu(path) == []
    with running(path) as unit:
        unit.set(payload__mass=2.0)
        assert np.isfinite(unit.tau).all()
        assert "payload.link" not in unit.references


def test_without_fmpy_one_line_says_what_to_install(monkeypatch, tmp_path):
    from robot_dynamics.controller import fmu

    monkeypatch.setattr(fmu, "find_spec", lambda _: None)
    with pytest.raises(rd.RobotDynamicsError, match=r"robot_dynamics\[fmu\]"):
        write_fmu(str(FILES["polar"]), tmp_path)


def test_the_command_line_writes_one(tmp_path, capsys):
    from robot_dynamics.app.cli import main

    assert main(["export", str(FILES["polar"]), "--as", "fmu", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "polar.fmu").exists()
    assert main(["export", str(FILES["polar"]), "--as", "fmu", "--out", "x", "--link", "a"]) == 1
    assert "the FMU computes torques only" in capsys.readouterr().err
