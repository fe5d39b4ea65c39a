# SPDX-License-Identifier: Apache-2.0
"""robotics-toolbox-python's conventions for reflected rotors and friction."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from robots import RELATIVE_TO_PINOCCHIO, inertia, relative, state, tensor

import robot_dynamics as rd

rtb = pytest.importorskip("roboticstoolbox", reason="roboticstoolbox-python is not installed")


@pytest.mark.parametrize("seed", range(3))
def test_reflected_rotors_and_motor_side_friction_are_the_toolboxs(tmp_path, seed):
    """There inertia Jm and friction B, Tc are the motor's, referred through the gear G."""
    rng = np.random.default_rng(seed)
    theirs, ours = [], []
    for i in range(4):
        d, a, alpha = rng.uniform(-0.5, 0.5, 3).tolist()
        mass, center = float(rng.uniform(1, 5)), rng.uniform(-0.2, 0.2, 3)
        I = inertia(rng, mass)
        spin, gear = float(rng.uniform(1e-5, 1e-3)), float(rng.choice([-1, 1]) * rng.uniform(5, 90))
        viscous, coulomb = rng.uniform(1e-4, 1e-2, 2).tolist()
        theirs.append(
            rtb.RevoluteDH(
                d=d, a=a, alpha=alpha, m=mass, r=center, I=I,
                Jm=spin, G=gear, B=viscous, Tc=[coulomb, -coulomb],
            )
        )  # fmt: skip
        ours.append(
            {
                "name": f"link{i}",
                "joint": {"name": f"q{i}", "type": "revolute"},
                "d": d,
                "a": a,
                "alpha": alpha,
                "mass": mass,
                "center_of_mass": center.tolist(),
                "inertia": tensor(I),
                "friction": {"viscous": gear**2 * viscous, "coulomb": abs(gear) * coulomb},
                "rotor": {
                    "gear_ratio": gear,
                    "inertia": {"ixx": spin, "iyy": spin, "izz": spin},
                },
            }
        )
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump({"links": ours}))
    q, qd, qdd = state(seed, 4)
    # without gravity, whose sign the toolbox has changed between releases
    expected = rtb.DHRobot(theirs).rne_python(q, qd, qdd, gravity=[0, 0, 0])
    terms = ["inertia", "coriolis", "friction", "rotors"]
    tau = rd.InverseDynamics(rd.load(path), rotors="reflected", terms=terms)(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO
