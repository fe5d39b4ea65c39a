# SPDX-License-Identifier: Apache-2.0
"""Random robots by seed, and the same robots in Pinocchio. Oracles only: nothing here is the
package's own mathematics."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RELATIVE_TO_PINOCCHIO = 1e-9
"""What the package promises; rounding alone leaves about 1e-13"""
RELATIVE_TO_SISTERS = 1e-12
"""Different orders of the same sums: some hundred roundings of 1e-16"""

CONFIG = Path(__file__).resolve().parents[1] / "config"


class _Pinocchio:
    """The module; if it is not installed, the test that asks for it is skipped."""

    def __getattr__(self, name: str) -> Any:
        reason = "Pinocchio, the oracle of this test, is not installed: extra `dev`"
        found = getattr(pytest.importorskip("pinocchio", reason=reason), name)
        setattr(self, name, found)  # for the next time: looking for the module takes long
        return found


pin = _Pinocchio()


def example_robots() -> list[Path]:
    """The URDFs of example-robot-data that Pinocchio reads."""
    roots = [Path(p) / "cmeel.prefix/share/example-robot-data" for p in sys.path]
    files = sorted(file for root in roots if root.is_dir() for file in root.rglob("*.urdf"))
    return [file for file in files if _pinocchio_reads(file)]


def example_robots_that_move() -> list[Path]:
    """Those of them that have a joint."""
    return [file for file in example_robots() if file.stem != "quadrotor_base"]


def _pinocchio_reads(file: Path) -> bool:
    # it refuses a robot without a name, and says so on the terminal
    return (
        b"<robot name" in file.read_bytes()
        or b"name=" in file.read_bytes().split(b"<robot", 1)[1].split(b">", 1)[0]
    )


def inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """(3, 3) inertia of a real body: four masses about their common centre."""
    points = rng.uniform(-0.2, 0.2, (4, 3))
    weights = rng.dirichlet(np.ones(4)) * mass
    points -= weights @ points / mass
    return sum(
        w * (p @ p * np.eye(3) - np.outer(p, p)) for w, p in zip(weights, points, strict=True)
    )


def numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def random_urdf(seed: int, joints: int = 7, branching: bool = True) -> str:
    """A tree with every feature that a URDF's dynamics may have."""
    rng = np.random.default_rng(seed)
    parts = ['<robot name="random">', '<link name="link0"/>']
    moving: list[str] = []
    for i in range(1, joints + 1):
        parent = int(rng.integers(0, i)) if branching else i - 1
        kind = str(rng.choice(["revolute", "continuous", "prismatic", "revolute", "fixed"]))
        if i % 5 == 0:
            parts.append(f'<link name="link{i}"/>')  # without an inertial
        else:
            mass = float(rng.uniform(0.1, 5))
            I = inertia(rng, mass).tolist()
            parts.append(
                f'<link name="link{i}"><inertial>'
                f'<origin xyz="{numbers(rng.uniform(-0.3, 0.3, 3))}" '
                f'rpy="{numbers(rng.uniform(-3, 3, 3))}"/><mass value="{mass!r}"/>'
                f'<inertia ixx="{I[0][0]!r}" ixy="{I[0][1]!r}" ixz="{I[0][2]!r}" '
                f'iyy="{I[1][1]!r}" iyz="{I[1][2]!r}" izz="{I[2][2]!r}"/></inertial>'
                '<visual><geometry><mesh filename="package://nowhere/mesh.dae"/></geometry>'
                "</visual></link>"
            )
        limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
        parts.append(
            f'<joint name="joint{i}" type="{kind}"><parent link="link{parent}"/>'
            f'<child link="link{i}"/><origin xyz="{numbers(rng.uniform(-0.5, 0.5, 3))}" '
            f'rpy="{numbers(rng.uniform(-3, 3, 3))}"/>'
            f'<axis xyz="{numbers(rng.normal(size=3))}"/>{limit}</joint>'
        )
        if kind != "fixed":
            moving.append(f"joint{i}")
    # a chain of fixed links at the end: their mass counts
    for i in (joints + 1, joints + 2):
        mass = float(rng.uniform(0.1, 2))
        parts.append(
            f'<link name="link{i}"><inertial><mass value="{mass!r}"/>'
            '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>'
            f'<joint name="joint{i}" type="fixed"><parent link="link{i - 1}"/>'
            f'<child link="link{i}"/><origin xyz="{numbers(rng.uniform(-0.3, 0.3, 3))}" '
            f'rpy="{numbers(rng.uniform(-3, 3, 3))}"/></joint>'
        )
    return "\n".join([*parts, "</robot>"])


def random_dh(
    seed: int, joints: int = 6, convention: str = "standard", rotors: bool = False
) -> dict:
    """A description in the YAML's own shape, with branches, origins and fixed joints."""
    rng = np.random.default_rng(seed)
    links: list[dict] = []
    for i in range(1, joints + 1):
        mass = float(rng.uniform(0.5, 5))
        I = inertia(rng, mass)
        link = {
            "name": f"link{i}",
            "joint": {
                "name": f"q{i}",
                "type": str(rng.choice(["revolute", "prismatic", "continuous", "revolute"])),
            },
            "theta": float(rng.uniform(-3, 3)),
            "d": float(rng.uniform(-0.4, 0.4)),
            "a": float(rng.uniform(-0.5, 0.5)),
            "alpha": float(rng.uniform(-3, 3)),
            "mass": mass,
            "center_of_mass": rng.uniform(-0.3, 0.3, 3).tolist(),
            "inertia": tensor(I),
        }
        if i == 3:
            link["joint"] = {"name": "welded", "type": "fixed"}
        if i % 3 == 2:
            link["origin"] = {
                "xyz": rng.uniform(-0.3, 0.3, 3).tolist(),
                "rpy": rng.uniform(-3, 3, 3).tolist(),
            }
        if i >= 4 and i % 2 == 0:
            link["parent"] = f"link{int(rng.integers(1, i - 1))}"
        if rotors and link["joint"]["type"] != "fixed":
            below = _ancestors(links, link.get("parent", links[-1]["name"] if links else "base"))
            link["rotor"] = random_rotor(rng, str(rng.choice(below)))
        links.append(link)
    return {
        "robot": "random",
        "gravity": rng.uniform(-10, 10, 3).tolist(),
        "dh_convention": convention,
        "links": links,
    }


def _ancestors(links: list[dict], name: str) -> list[str]:
    """`name` and all that carry it: links that the next joint does not move."""
    by_name = {link["name"]: (i, link) for i, link in enumerate(links)}
    names = [name]
    while names[-1] != "base":
        i, link = by_name[names[-1]]
        names.append(link.get("parent", links[i - 1]["name"] if i else "base"))
    return names


def random_rotor(rng: np.random.Generator, mount: str) -> dict:
    """Unbalanced, not of revolution, mounted anyhow."""
    mass = float(rng.uniform(0.1, 1))
    return {
        "mount": mount,
        "origin": {
            "xyz": rng.uniform(-0.3, 0.3, 3).tolist(),
            "rpy": rng.uniform(-3, 3, 3).tolist(),
        },
        "gear_ratio": float(rng.choice([-1, 1]) * rng.uniform(1, 20)),
        "mass": mass,
        "center_of_mass": rng.uniform(-0.02, 0.02, 3).tolist(),
        "inertia": tensor(inertia(rng, mass) * 0.1),
    }


def tensor(I: np.ndarray) -> dict:
    rows = {"x": 0, "y": 1, "z": 2}
    return {f"i{r}{c}": float(I[rows[r], rows[c]]) for r, c in ("xx", "yy", "zz", "xy", "xz", "yz")}


def tensor_matrix(entries: dict) -> np.ndarray:
    get = lambda key: float(entries.get(key, 0.0))  # noqa: E731
    return np.array(
        [
            [get("ixx"), get("ixy"), get("ixz")],
            [get("ixy"), get("iyy"), get("iyz")],
            [get("ixz"), get("iyz"), get("izz")],
        ]
    )


def placement(entries: dict | None) -> pin.SE3:
    entries = entries or {}
    rpy = np.array(entries.get("rpy", [0.0] * 3), dtype=float)
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), np.array(entries.get("xyz", [0.0] * 3), dtype=float))


def dh_to_pinocchio(robot: dict, rotors: bool = True) -> tuple[pin.Model, dict]:
    """(model with each rotor as a body on a joint of its own, {rotor joint: (driven, ratio)}).

    The joints are placed by hand, so that the package's reading of DH tables is tested too.
    """
    model = pin.Model()
    model.gravity.linear = np.array(robot.get("gravity", [0, 0, -9.81]), dtype=float)
    frames: dict[str, tuple[int, pin.SE3]] = {"base": (0, pin.SE3.Identity())}
    before = "base"
    turned = lambda axis, angle: pin.SE3(  # noqa: E731
        pin.AngleAxis(angle, np.array(axis, dtype=float)).matrix(), np.zeros(3)
    )
    moved = lambda x, y, z: pin.SE3(np.eye(3), np.array([x, y, z], dtype=float))  # noqa: E731
    geared: dict[str, tuple[dict, dict]] = {}
    waiting = []
    for link in robot["links"]:
        joint_id, frame = frames[link.get("parent", before)]
        frame = frame * placement(link.get("origin"))
        about_z = turned([0, 0, 1], link.get("theta", 0.0)) * moved(0, 0, link.get("d", 0.0))
        about_x = turned([1, 0, 0], link.get("alpha", 0.0)) * moved(link.get("a", 0.0), 0, 0)
        if robot.get("dh_convention", "standard") == "standard":
            frame, tail = frame * about_z, about_x
        else:
            frame, tail = frame * about_x * about_z, pin.SE3.Identity()
        kind = link["joint"]["type"]
        if kind == "fixed":
            frame = frame * tail
        else:
            joint = pin.JointModelPZ() if kind == "prismatic" else pin.JointModelRZ()
            joint_id = model.addJoint(joint_id, joint, frame, link["joint"]["name"])
            frame = tail
        body = pin.Inertia(
            link.get("mass", 0.0),
            np.array(link.get("center_of_mass", [0.0] * 3), dtype=float),
            tensor_matrix(link.get("inertia", {})),
        )
        if joint_id:
            model.appendBodyToJoint(joint_id, body, frame)
        mount = link.get("parent", before)
        frames[link["name"]] = (joint_id, frame)
        model.addFrame(pin.Frame(link["name"], joint_id, 0, frame, pin.FrameType.OP_FRAME))
        before = link["name"]
        if "rotor" in link:
            waiting.append((link["joint"]["name"], mount, link["rotor"]))
    for driven, mount, rotor in waiting if rotors else ():
        joint_id, frame = frames[rotor.get("mount", mount)]
        name = f"rotor of {driven}"
        new = model.addJoint(
            joint_id, pin.JointModelRZ(), frame * placement(rotor.get("origin")), name
        )
        body = pin.Inertia(
            rotor.get("mass", 0.0),
            np.array(rotor.get("center_of_mass", [0.0] * 3), dtype=float),
            tensor_matrix(rotor.get("inertia", {})),
        )
        model.appendBodyToJoint(new, body, pin.SE3.Identity())
        ratio = rotor["gear_ratio"]
        geared[name] = ratio if isinstance(ratio, dict) else {driven: ratio}
    return model, geared


def pinocchio_torques(
    model: pin.Model,
    names: tuple[str, ...],
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    geared: dict | None = None,
) -> np.ndarray:
    """rnea on the joints of these names; geared joints follow theirs and hand the torques back."""
    pq, pv, pa = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    column = {name: j for j, name in enumerate(names)}
    shares = {name: {name: 1.0} for name in names} | (geared or {})
    for name, share in shares.items():
        joint = model.joints[model.getJointId(name)]
        at = [sum(ratio * x[column[k]] for k, ratio in share.items()) for x in (q, qd, qdd)]
        if joint.nq == 2:
            pq[joint.idx_q : joint.idx_q + 2] = np.cos(at[0]), np.sin(at[0])
        else:
            pq[joint.idx_q] = at[0]
        pv[joint.idx_v], pa[joint.idx_v] = at[1:]
    full = pin.rnea(model, model.createData(), pq, pv, pa)
    tau = np.zeros(len(names))
    for name, share in shares.items():
        for driven, ratio in share.items():
            tau[column[driven]] += ratio * full[model.joints[model.getJointId(name)].idx_v]
    return tau


def state(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, qd, qdd (n,) each."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, n), rng.uniform(-3, 3, n), rng.uniform(-5, 5, n)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest expected entry."""
    if not np.size(expected):
        return 0.0
    return float(np.abs(np.asarray(found) - expected).max() / max(np.abs(expected).max(), 1e-12))


@contextmanager
def unmeasured() -> Iterator[None]:
    """C that is written here is not compiled to tell its size: that takes as long as a test's own
    compiling."""
    from robot_dynamics.dynamics import export

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "compiled_size", lambda *_: None)
        yield


def python_functions(program):
    """A recorded program as (a function of floats, a function of arrays), of single inputs."""
    from robot_dynamics.codegen.python_code import compile_text, source

    return tuple(bind() for bind in compile_text(source(program)))
