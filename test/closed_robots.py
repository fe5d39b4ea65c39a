# SPDX-License-Identifier: Apache-2.0
"""Random closed mechanisms by seed, and Pinocchio's results for them: the cut tree at a closed
state, projected with a T from Pinocchio's own frame Jacobians. Oracles only."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import robots
import yaml
from robots import pin

import robot_dynamics as rd
from robot_dynamics import closure

ClosedChain = partial(closure.ClosedChain, backend="python")
"""Nothing is compiled for robots that are used only once"""

LOCKED = {  # (translations, rotations) of the successor that the joint forbids, predecessor's axes
    "revolute": ("xyz", "xy"),
    "spherical": ("xyz", ""),
    "universal": ("xyz", "*"),  # about the common normal of its two axes
    "prismatic": ("xy", "xyz"),
    "fixed": ("xyz", "xyz"),
}
X, Y, Z = np.eye(3)


def load(robot: dict, folder: Path) -> rd.Mechanism:
    file = folder / f"{robot['robot']}.yaml"
    file.write_text(yaml.safe_dump(robot))
    return rd.load(file)


# --- robots ----------------------------------------------------------------------------------


def body(rng: np.random.Generator) -> dict:
    mass = float(rng.uniform(0.5, 3))
    return {
        "mass": mass,
        "center_of_mass": rng.uniform(-0.2, 0.2, 3).tolist(),
        "inertia": robots.tensor(robots.inertia(rng, mass)),
    }


def revolute(name: str) -> dict:
    return {"name": name, "type": "revolute"}


def tilted_ground(rng: np.random.Generator) -> dict:
    """A fixed link that the planar robots stand on: their plane is anywhere in space."""
    return {
        "name": "ground",
        "parent": "base",
        "origin": {"xyz": rng.uniform(-1, 1, 3).tolist(), "rpy": rng.uniform(-3, 3, 3).tolist()},
        "joint": {"type": "fixed"},
    }


def random_rrr(
    seed: int, carrier: int = 0, rotors: bool = False, sliding: int | None = None
) -> dict:
    """A 3RRR of any shape, in any plane; its platform hangs on the leg `carrier` (0, 1, 2).

    `sliding`: the leg that is an RPR, whose motor is its slide.
    """
    rng = np.random.default_rng(seed)
    links = [tilted_ground(rng)]
    corners, home = [], {}
    for leg, turn in enumerate(np.radians([210, 330, 90])):
        A = (0.5 + rng.uniform(-0.05, 0.05)) * np.array([np.cos(turn), np.sin(turn)])
        L, l = rng.uniform(0.3, 0.4, 2)
        C = A * 0.35 + rng.uniform(-0.03, 0.03, 2)
        q_a, q_p = two_links(A, C, L, l)
        corners.append(C)
        if leg == sliding:  # along z behind alpha, a quarter turn behind the angle
            q_a, q_p = np.arctan2(*(C - A)[::-1]) + np.pi / 2, np.linalg.norm(C - A)
        home[f"qa{leg}"], home[f"qp{leg}"] = float(q_a), float(q_p)
        z = rng.uniform(-0.1, 0.1, 2)  # the links lie in layers
        proximal = {
            "name": f"proximal{leg}",
            "parent": "ground",
            "origin": {"xyz": [float(A[0]), float(A[1]), 0.0]},
            "joint": revolute(f"qa{leg}"),
            "a": float(L),
            "d": float(z[0]),
            "friction": {"viscous": float(rng.uniform(0, 0.3))},
            **body(rng),
        }
        distal = {
            "name": f"distal{leg}",
            "joint": revolute(f"qp{leg}"),
            "a": float(l),
            "d": float(z[1]),
            "friction": {"viscous": float(rng.uniform(0, 0.3))},
            **body(rng),
        }
        if leg == sliding:
            proximal |= {"a": 0.0, "alpha": np.pi / 2}
            distal |= {"a": 0.0, "d": 0.0, "alpha": -np.pi / 2}
            distal["joint"] = {"name": f"qp{leg}", "type": "prismatic"}
        if rotors:
            proximal["rotor"] = robots.random_rotor(rng, "ground")
        links += [proximal, distal]
    center = np.mean(corners, axis=0)
    load_body, platform_body = body(rng), body(rng)
    theta = float(rng.uniform(-1, 1))
    # the platform's frame is at `center`, turned by theta, whatever leg it hangs on
    q_c = theta - home[f"qa{carrier}"] - home[f"qp{carrier}"] * (carrier != sliding)
    arm = turned(-theta) @ (center - corners[carrier])
    home["qc"] = float(q_c)
    height = -sum(links[1 + 2 * carrier + i]["d"] for i in (0, 1))
    links += [
        {"name": "hub", "parent": f"distal{carrier}", "joint": revolute("qc")},
        {
            "name": "platform",
            "parent": "hub",
            "origin": {"xyz": [float(arm[0]), float(arm[1]), height]},
            "joint": {"type": "fixed"},
            **platform_body,
        },
        {"name": "load", "parent": "platform", "joint": {"type": "fixed"}, **load_body},
    ]
    robot = {
        "robot": f"rrr{seed}_{carrier}",
        "gravity": rng.uniform(-9, 9, 3).tolist(),
        "links": links,
        "actuated": [f"{'qp' if leg == sliding else 'qa'}{leg}" for leg in range(3)],
        "sensed": [f"{'qa' if leg == sliding else 'qp'}{leg}" for leg in range(3)],
        "platform": "platform",
        "home": home,
    }
    others = [leg for leg in range(3) if leg != carrier]
    return closed_at_home(robot, [(f"distal{leg}", "platform", "revolute") for leg in others])


def random_five_bar(seed: int, cut: str = "tip", platform: bool = False) -> dict:
    """Two arms that meet; cut open at the tip or at an elbow."""
    rng = np.random.default_rng(seed)
    A = np.array([[-0.15, 0.0], [0.15, 0.0]]) + rng.uniform(-0.03, 0.03, (2, 2))
    tip = np.array([0.0, 0.45]) + rng.uniform(-0.05, 0.05, 2)
    L = rng.uniform(0.28, 0.35, (2, 2))
    angles = [two_links(A[0], tip, *L[0]), tuple(-x for x in two_links(-A[1], tip, *L[1]))]
    B = [A[i] + L[i, 0] * np.array([np.cos(angles[i][0]), np.sin(angles[i][0])]) for i in (0, 1)]
    q_b = np.arctan2(*(tip - B[1])[::-1]) - angles[1][0]
    if abs(np.linalg.norm(tip - B[1]) - L[1, 1]) > 1e-12:  # the elbow of the mirrored arm
        angles[1] = mirrored(A[1], tip, *L[1])
        q_b = angles[1][1]
    bodies = [body(rng) for _ in range(4)]
    links = [tilted_ground(rng)]
    for i in (0, 1):
        links.append(
            {
                "name": f"proximal{i}",
                "parent": "ground",
                "origin": {"xyz": [*A[i].tolist(), 0.0]},
                "joint": revolute(f"qa{i}"),
                "a": float(L[i, 0]),
                "rotor": robots.random_rotor(rng, "ground"),
                **bodies[i],
            }
        )
    gravity = rng.uniform(-9, 9, 3).tolist()
    home = {"qa0": angles[0][0], "qp0": angles[0][1], "qa1": angles[1][0]}
    first = {"name": "distal0", "parent": "proximal0", "a": float(L[0, 1]), **bodies[2]}
    links.append({**first, "joint": revolute("qp0")})
    if cut == "tip":
        home["qp1"] = q_b
        second = {"name": "distal1", "parent": "proximal1", "a": float(L[1, 1]), **bodies[3]}
        links.append({**second, "joint": revolute("qp1")})
        loop = ("distal0", "distal1", "revolute")
    else:
        # distal1 hangs on the tip instead, its frame at the same end of it: the elbow is open
        absolute = angles[1][0] + q_b
        home["tip"] = absolute - angles[0][0] - angles[0][1]
        links.append({"name": "distal1", "joint": revolute("tip"), **bodies[3]})
        loop = ("proximal1", "distal1", "revolute")
    robot = {
        "robot": f"five_bar{seed}_{cut}",
        "gravity": gravity,
        "links": links,
        "actuated": ["qa0", "qa1"],
        "sensed": ["qp0"],
        "home": {name: float(value) for name, value in home.items()},
    }
    if platform:
        links.append({"name": "tool", "parent": "distal0", "joint": {"type": "fixed"}})
        robot["platform"] = "tool"
    return closed_at_home(robot, [loop])


def random_gough_stewart(seed: int, universal: bool = False) -> dict:
    """Six legs of any kind of shape. `universal`: the sixth passive joint of each leg is a roll
    of the piston, and the platform's joints are universal."""
    rng = np.random.default_rng(seed)
    links, home, loops = [], {}, []
    for leg in range(6):
        turn, swing = np.radians([60 * leg, 20 * (-1) ** leg])
        foot = rng.uniform(-0.04, 0.04, 3) + 0.4 * on_circle(turn + swing)
        top = rng.uniform(-0.04, 0.04, 3) + 0.25 * on_circle(turn - swing) + 0.55 * Z
        yaw = rng.uniform(-3, 3)
        q_u, q_v, q_l = pointing(foot, top, yaw)
        links += [
            {
                "name": f"cross{leg}",
                "parent": "base",
                "origin": {
                    "xyz": foot.tolist(),
                    "rpy": [0.0, -np.pi / 2, float(yaw)],
                },
                "joint": revolute(f"qu{leg}"),
                "alpha": np.pi / 2,
                **body(rng),
            },
            {
                "name": f"cylinder{leg}",
                "joint": revolute(f"qv{leg}"),
                "theta": np.pi / 2,
                "alpha": np.pi / 2,
                **body(rng),
            },
            {
                "name": f"piston{leg}",
                "joint": {"name": f"ql{leg}", "type": "prismatic"},
                "friction": {"viscous": float(rng.uniform(0, 5)), "coulomb": 1.0},
                **body(rng),
            },
        ]
        home |= {f"qu{leg}": q_u, f"qv{leg}": q_v, f"ql{leg}": q_l}
        end = f"piston{leg}"
        if universal and leg > 0:
            links.append({"name": f"tube{leg}", "joint": revolute(f"qr{leg}"), **body(rng)})
            home[f"qr{leg}"] = rng.uniform(-1, 1)
            end = f"tube{leg}"
        if leg == 0:
            for i, theta in enumerate((0.0, np.pi / 2)):
                links.append(
                    {
                        "name": f"wrist{i}",
                        "joint": revolute(f"qw{i}"),
                        "theta": theta,
                        "alpha": np.pi / 2,
                    }
                )
                home[f"qw{i}"] = rng.uniform(-0.3, 0.3)
            links.append({"name": "wrist2", "joint": revolute("qw2")})
            home["qw2"] = rng.uniform(-0.3, 0.3)
            links.append(
                {
                    "name": "platform",
                    "origin": {
                        "xyz": rng.uniform(-0.2, 0.2, 3).tolist(),
                        "rpy": rng.uniform(-1, 1, 3).tolist(),
                    },
                    "joint": {"type": "fixed"},
                    **body(rng),
                }
            )
        else:
            loops.append((end, "platform", "universal" if universal else "spherical"))
    robot = {
        "robot": f"gough_stewart{seed}_{universal}",
        "gravity": rng.uniform(-9, 9, 3).tolist(),
        "links": links,
        "actuated": [f"ql{leg}" for leg in range(6)],
        "sensed": ["qu1", "qv1", "qu3", "qv3"],
        "platform": "platform",
        "home": {name: float(value) for name, value in home.items()},
    }
    return closed_at_home(robot, loops)


def on_circle(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def pointing(foot: np.ndarray, top: np.ndarray, yaw: float) -> tuple[float, float, float]:
    """The universal joint's angles and the length of a leg from foot to top."""
    length = np.linalg.norm(top - foot)
    # the leg's direction is (cos u cos v, sin u cos v, sin v) in the frame of the first axis
    x, y, z = pin.rpy.rpyToMatrix(0.0, -np.pi / 2, yaw).T @ (top - foot) / length
    return np.arctan2(y, x), np.arcsin(z), length


def slider_crank(seed: int) -> dict:
    """A block that slides on the ground: a prismatic closure in a plane."""
    rng = np.random.default_rng(seed)
    links = [
        tilted_ground(rng),
        {"name": "crank", "joint": revolute("crank"), "a": 0.2, **body(rng)},
        {"name": "rod", "joint": revolute("rod"), "a": 0.6, **body(rng)},
        {"name": "block", "joint": revolute("pin"), **body(rng)},
    ]
    robot = {
        "robot": f"slider_crank{seed}",
        "links": links,
        "actuated": ["crank"],
        "sensed": ["pin"],
        "platform": "block",
        "home": {"crank": 0.7, "rod": -0.9, "pin": 0.3},
    }
    # it slides along z of the loop's frames: in the plane, across the crank's axis
    return closed_at_home(robot, [("ground", "block", "prismatic")], rpy=[0.0, np.pi / 2, 0.3])


def driven_slider(seed: int) -> dict:
    """A crank, a rod and a block on a slide, with motors at crank and slide: one too many."""
    rng = np.random.default_rng(seed)
    slide = {"xyz": [0.5, 0.1, 0.0], "rpy": [0.0, float(np.pi / 2), 0.0]}
    links = [
        tilted_ground(rng),
        {"name": "crank", "joint": revolute("crank"), "a": 0.2, **body(rng)},
        {"name": "rod", "joint": revolute("rod"), "a": 0.6, **body(rng)},
        {"name": "block", "parent": "ground", "origin": slide,
         "joint": {"name": "slide", "type": "prismatic"}, **body(rng)},
    ]  # fmt: skip
    for link in links[1:]:
        link["friction"] = {"viscous": float(rng.uniform(0, 0.3))}
    robot = {
        "robot": f"driven_slider{seed}",
        "gravity": rng.uniform(-9, 9, 3).tolist(),
        "links": links,
        "actuated": ["crank", "slide"],
        "home": {"crank": 0.7, "rod": -0.9, "slide": 0.05},
    }
    return closed_at_home(robot, [("rod", "block", "revolute")])


def welded_four_bar(seed: int) -> dict:
    """A four-bar whose last joint is in the tree: what closes it is a weld to the ground."""
    rng = np.random.default_rng(seed)
    links = [
        tilted_ground(rng),
        {"name": "crank", "joint": revolute("crank"), "a": 0.2, **body(rng)},
        {"name": "coupler", "joint": revolute("coupler"), "a": 0.5, **body(rng)},
        {"name": "rocker", "joint": revolute("rocker"), "a": 0.4, **body(rng)},
        {"name": "foot", "joint": revolute("foot"), **body(rng)},
    ]
    robot = {
        "robot": f"four_bar{seed}",
        "links": links,
        "actuated": ["crank"],
        "home": {"crank": 1.2, "coupler": -0.8, "rocker": -1.4, "foot": 0.2},
    }
    return closed_at_home(robot, [("ground", "foot", "fixed")])


def palletiser(home: dict) -> dict:
    """An arm and a crank that drive a forearm by a parallelogram; two more keep the tool level."""
    reach, short, back = 0.8, 0.25, 0.2

    def link(name: str, parent: str, joint: str, at: tuple, length: float, mass: float) -> dict:
        # in the plane of x and z of the base
        turn = {"rpy": [np.pi / 2, 0.0, 0.0]} if parent == "base" else {}
        return {
            "name": name,
            "parent": parent,
            "origin": {"xyz": [*at, 0.0], **turn},
            "joint": revolute(joint),
            "mass": mass,
            "center_of_mass": [length / 2, 0.02, 0.0],
            "inertia": robots.tensor(np.diag([1e-3, mass * length**2 / 12, mass * length**2 / 12])),
        }

    def end(link: str, x: float, y: float = 0.0) -> dict:
        return {"link": link, "xyz": [x, y, 0.0]}

    def hinge(name: str, one: dict, other: dict) -> dict:
        return {"name": name, "type": "revolute", "predecessor": one, "successor": other}

    return {
        "robot": "palletiser",
        "links": [
            link("upper", "base", "arm", (0.0, 0.0), reach, 20.0),
            link("crank_link", "base", "crank", (0.0, 0.0), short, 6.0),
            link("rod", "crank_link", "rod_foot", (short, 0.0), reach, 4.0),
            link("forearm", "upper", "elbow", (reach, 0.0), 1.0, 12.0),
            link("level_rod", "base", "level_foot", (-back, 0.0), reach, 3.0),
            link("triangle", "upper", "triangle_pivot", (reach, 0.0), back, 2.0),
            link("upper_rod", "triangle", "upper_foot", (0.0, back), 1.0, 2.0),
            link("tool", "forearm", "wrist", (1.0, 0.0), 0.1, 5.0),
        ],
        "loops": [
            hinge("crank_loop", end("rod", reach), end("forearm", -short)),
            hinge("level_loop", end("level_rod", reach), end("triangle", -back)),
            hinge("tool_loop", end("upper_rod", 1.0), end("tool", 0.0, back)),
        ],
        "actuated": ["arm", "crank"],
        "platform": "tool",
        "home": home,
    }


def renamed(part, mark: str, key: str = ""):
    """A description, or a part of it, with a mark before every name but the base's."""
    if isinstance(part, dict):
        if key == "home":
            return {mark + name: value for name, value in part.items()}
        return {name: renamed(value, mark, name) for name, value in part.items()}
    if isinstance(part, list):
        return [renamed(each, mark, key) for each in part]
    named = isinstance(part, str) and key in ("name", "parent", "link", "actuated")
    return mark + part if named and part != "base" else part


def beside(first: dict, second: dict) -> dict:
    """Two robots on one base, without a joint in common: the names of the second one are marked."""
    second = renamed(second, "other ")
    links = [dict(link) for link in second["links"]]
    for before, link in zip([{"name": "base"}, *links], links, strict=False):
        link.setdefault("parent", before["name"])
    both = {key: first[key] + second[key] for key in ("loops", "actuated")}
    home = first["home"] | second["home"]
    return {"robot": "pair", "links": first["links"] + links, **both, "home": home}


def two_links(A: np.ndarray, C: np.ndarray, L: float, l: float) -> tuple[float, float]:
    """(q_a, q_p) with the elbow to the right of the way from A to C."""
    way = np.asarray(C) - A
    reach = float(np.linalg.norm(way))
    inner = np.arccos((L**2 + reach**2 - l**2) / (2 * L * reach))
    q_a = np.arctan2(way[1], way[0]) + inner
    rest = np.asarray(C) - A - L * np.array([np.cos(q_a), np.sin(q_a)])
    return float(q_a), float(np.arctan2(rest[1], rest[0]) - q_a)


def mirrored(A: np.ndarray, C: np.ndarray, L: float, l: float) -> tuple[float, float]:
    """(q_a, q_p) with the elbow on the other side."""
    flip = np.array([1.0, -1.0])
    q_a, q_p = two_links(A * flip, C * flip, L, l)
    return -q_a, -q_p


def turned(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def closed_at_home(robot: dict, loops: list, rpy: list | None = None) -> dict:
    """The robot with loops whose successor frames are put where home closes them."""
    rng = np.random.default_rng(1)
    model, _ = robots.dh_to_pinocchio(robot, rotors=False)
    places = frames(model, robot["home"])
    robot["loops"] = []
    for i, (predecessor, successor, kind) in enumerate(loops):
        first = robots.placement({"rpy": rpy or [0.0, 0.0, 0.0]})
        where = places[successor].inverse() * places[predecessor] * first
        if kind == "universal":  # any angles that the joint may have
            a, b = rng.uniform(-0.4, 0.4, 2)
            where = where * spin(X, a) * spin(Y, b)
        elif kind == "revolute":
            where = where * spin(Z, rng.uniform(-3, 3))
        elif kind == "prismatic":
            where = where * pin.SE3(np.eye(3), 0.1 * Z)
        robot["loops"].append(
            {
                "name": f"loop{i}",
                "type": kind,
                "predecessor": {"link": predecessor, "rpy": rpy or [0.0, 0.0, 0.0]},
                "successor": {
                    "link": successor,
                    "xyz": where.translation.tolist(),
                    "rpy": pin.rpy.matrixToRpy(where.rotation).tolist(),
                },
            }
        )
    return robot


def spin(axis: np.ndarray, angle: float) -> pin.SE3:
    return pin.SE3(pin.AngleAxis(float(angle), axis).matrix(), np.zeros(3))


def frames(model: pin.Model, q: dict) -> dict[str, pin.SE3]:
    data = model.createData()
    pq = pin.neutral(model)
    for name, value in q.items():
        pq[model.joints[model.getJointId(name)].idx_q] = value
    pin.framesForwardKinematics(model, data, pq)
    return {frame.name: data.oMf[i] for i, frame in enumerate(model.frames)}


# --- Pinocchio -------------------------------------------------------------------------------


def shipped(name: str) -> dict:
    """The description of config/, as a dictionary."""
    robot = yaml.safe_load((robots.CONFIG / f"{name}.yaml").read_text())
    return numeric(robot, {"pi": np.pi, **robot.pop("symbols", {})})


def numeric(value, known):
    """pi/2, a letter and the like in a description as numbers."""
    if isinstance(value, dict):
        return {key: numeric(entry, known) for key, entry in value.items()}
    if isinstance(value, list):
        return [numeric(entry, known) for entry in value]
    if isinstance(value, str):
        try:
            return float(eval(value, {"__builtins__": {}}, known))
        except (NameError, SyntaxError, TypeError):
            return value
    return value


class Oracle:
    """The cut tree in Pinocchio and its closure, from frame Jacobians and accelerations."""

    def __init__(self, robot: dict, names: tuple[str, ...], actuated: int):
        self.robot, self.names, self.actuated = robot, names, actuated
        self.model, self.geared = robots.dh_to_pinocchio(robot)
        self.bare, _ = robots.dh_to_pinocchio(robot, rotors=False)
        self.column = [self.bare.joints[self.bare.getJointId(name)].idx_v for name in names]

    def _full(self, x: np.ndarray) -> np.ndarray:
        full = np.zeros(self.bare.nv)
        full[self.column] = x
        return full

    def frame(self, data, entries: dict):
        """(placement, Jacobian (6, n), velocity (6,), acceleration at q̈ = 0 (6,)), world axes."""
        base = entries["link"] == "base"
        parent = 0 if base else self.bare.frames[self.bare.getFrameId(entries["link"])].parentJoint
        local = (
            pin.SE3.Identity()
            if base
            else self.bare.frames[self.bare.getFrameId(entries["link"])].placement
        )
        local = local * robots.placement({k: entries[k] for k in ("xyz", "rpy") if k in entries})
        place = data.oMi[parent] * local
        around = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pin.getFrameJacobian(self.bare, data, parent, local, around)[:, self.column]
        v = pin.getFrameVelocity(self.bare, data, parent, local, around).vector
        a = pin.getFrameClassicalAcceleration(self.bare, data, parent, local, around).vector
        return place, J, v, a

    def closure(self, q: np.ndarray, qd: np.ndarray):
        """(miss, J, J̇ q̇) of all locked directions, of which many may say the same."""
        data = self.bare.createData()
        pin.forwardKinematics(self.bare, data, self._full(q), self._full(qd), self._full(0 * q))
        pin.computeJointJacobians(self.bare, data, self._full(q))
        miss, rows, bias = [], [], []
        for loop in self.robot["loops"]:
            p, Jp, vp, ap = self.frame(data, loop["predecessor"])
            s, Js, vs, as_ = self.frame(data, loop["successor"])
            d, dv, da = s.translation - p.translation, (vs - vp)[:3], (as_ - ap)[:3]
            w, w_rel, alpha_rel = vp[3:], (vs - vp)[3:], (as_ - ap)[3:]
            translations, rotations = LOCKED[loop["type"]]
            for axis in translations:
                # n·d = 0 with n on the predecessor: n̈·d + 2 ṅ·ḋ + n·d̈ = 0
                n = p.rotation[:, "xyz".index(axis)]
                n_rate = np.cross(w, n)
                turning = np.array([np.cross(e, n) for e in np.eye(3)])  # ∂ṅ/∂ω_p
                n_bias = np.cross(ap[3:], n) + np.cross(w, n_rate)
                miss.append(n @ d)
                rows.append(n @ (Js - Jp)[:3] + (turning @ d) @ Jp[3:])
                bias.append(n_bias @ d + 2 * n_rate @ dv + n @ da)
            relative = p.rotation.T @ s.rotation
            for axis in rotations:
                if axis == "*":
                    x, y = p.rotation[:, 0], s.rotation[:, 1]
                    n = np.cross(x, y)
                    n_rate = np.cross(np.cross(w, x), y) + np.cross(x, np.cross(vs[3:], y))
                    miss.append(x @ y)
                else:
                    n = p.rotation[:, "xyz".index(axis)]
                    n_rate = np.cross(w, n)
                    vee = {"x": (2, 1), "y": (0, 2), "z": (1, 0)}[axis]
                    miss.append(relative[vee] - relative[vee[::-1]])
                # n·ω_rel = 0
                rows.append(n @ (Js - Jp)[3:])
                bias.append(n_rate @ w_rel + n @ alpha_rel)
        return np.array(miss), np.array(rows), np.array(bias)

    def T(self, q: np.ndarray) -> np.ndarray:
        """(n, n_a)"""
        _, J, _ = self.closure(q, 0 * q)
        a = self.actuated
        below = -np.linalg.pinv(J[:, a:], rcond=1e-9) @ J[:, :a]
        return np.vstack([np.eye(a), below])

    def accelerations(self, q: np.ndarray, qd_a: np.ndarray, qdd_a: np.ndarray) -> np.ndarray:
        """q̈_r (n,)"""
        a, T = self.actuated, self.T(q)
        _, J, bias = self.closure(q, T @ qd_a)
        passive = -np.linalg.pinv(J[:, a:], rcond=1e-9) @ (J[:, :a] @ qdd_a + bias)
        return np.concatenate([qdd_a, passive])

    def torques(
        self, q: np.ndarray, qd_a: np.ndarray, qdd_a: np.ndarray, smoothing: float = 0.0
    ) -> np.ndarray:
        """(n_a,): rnea of the tree with its rotors, and the joints' friction, projected with Tᵀ."""
        T = self.T(q)
        rates, accelerations = T @ qd_a, self.accelerations(q, qd_a, qdd_a)
        tau = robots.pinocchio_torques(self.model, self.names, q, rates, accelerations, self.geared)
        laws = {link["joint"].get("name"): link.get("friction", {}) for link in self.robot["links"]}
        for j, name in enumerate(self.names):
            law = laws[name]
            tau[j] += law.get("viscous", 0.0) * rates[j]
            tau[j] += law.get("coulomb", 0.0) * np.sign(rates[j])
        return T.T @ tau

    def platform(self, q: np.ndarray, qd: np.ndarray):
        """(placement, J_C (6, n), J̇_C q̇ (6,)) of the platform link's frame, world axes."""
        data = self.bare.createData()
        pin.forwardKinematics(self.bare, data, self._full(q), self._full(qd), self._full(0 * q))
        pin.computeJointJacobians(self.bare, data, self._full(q))
        place, J, _, a = self.frame(data, {"link": self.robot["platform"]})
        return place, J, a

    def energy(self, q: np.ndarray, qd: np.ndarray) -> float:
        """Kinetic and potential energy of the tree without rotors, J."""
        data = self.bare.createData()
        kinetic = pin.computeKineticEnergy(self.bare, data, self._full(q), self._full(qd))
        return kinetic + pin.computePotentialEnergy(self.bare, data, self._full(q))
