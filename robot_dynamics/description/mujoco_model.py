# SPDX-License-Identifier: Apache-2.0
"""Conversion of MJCF, read by MuJoCo's own compiler, and of MuJoCo's models to a mechanism.

| MuJoCo                                 | mechanism                                         |
|----------------------------------------|---------------------------------------------------|
| body without joints                    | link on a fixed joint                             |
| body with several joints               | several links, all but the last massless          |
| hinge, slide; `ref`                    | revolute, prismatic; q is MuJoCo's qpos           |
| ball, free                             | rz, ry, rx; x, y, z, rz, ry, rx, as in a YAML     |
| damping, frictionloss, armature, range | viscous and Coulomb friction, armature, limits    |
| stiffness, springref of hinge, slide   | stiffness                                         |
| actuatorfrcrange, forcerange (their    | limits of effort                                  |
| sum, if a joint has several actuators) |                                                   |
| gear of an actuator on a joint, or on  | gear ratio                                        |
| a fixed tendon of one joint and others |                                                   |
| that follow it                         |                                                   |
| damping, armature of an actuator       | of a shaft                                        |
| damping, frictionloss, armature of a   | of a shaft that several joints turn               |
| fixed tendon                           |                                                   |
| equality connect, weld                 | loops: spherical, fixed                           |
| equality joint (linear)                | a joint that follows                              |

Elements outside rigid-body dynamics (springs of balls and tendons, spatial tendons, gravity
compensation, fluids) are left out with a warning; contacts are not part of a description.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DescriptionError, Place, wrong
from ..mechanism import (
    Armature,
    Attachment,
    Coupling,
    Friction,
    Inertial,
    Joint,
    Limits,
    Link,
    Loop,
    Mechanism,
    Pose,
    Rotor,
)
from ..mechanism.mechanism import new_name
from ..scalar import array, exact, roll_pitch_yaw, rotation_about, rotation_quaternion
from .compound import PARTS, split
from .fields import LARGEST, text, tolerate
from .mujoco_compiler import compiled, library


def read(source: Path | str, where: str, *, strict: bool = False) -> Mechanism:
    """The mechanism of an MJCF file or text.

    Args:
        source: the path, or the text.
        where: how messages refer to it.
        strict: raise an error instead of warnings.

    Raises:
        BackendError: MuJoCo is not installed.
        DescriptionError: see `compiled`; or a number beyond LARGEST.

    Warns:
        DescriptionWarning: an element that is left out, which it names.
    """
    return made(compiled(source, where), where, strict)


def made(model: Any, where: str, strict: bool) -> Mechanism:
    """The mechanism of a compiled model, before `load.finished` checks it."""
    reader = _Reader(model, where)
    mechanism = reader.mechanism()
    for complaint in reader.left_out:
        tolerate(complaint, strict)
    return mechanism


class _Reader:
    """Converts one model to a mechanism."""

    def __init__(self, model: Any, where: str):
        self.model, self.where = model, where
        self.mujoco = library()
        self.left_out: list[DescriptionError] = []
        self.links: list[Link] = []
        self.armatures: list[Armature] = []
        self._couplings: dict[str, Coupling] = {}
        self.bodies = [self._name("BODY", k) or f"body{k}" for k in range(model.nbody)]
        self.joints = [self._joint_name(k) for k in range(model.njnt)]

    def mechanism(self) -> Mechanism:
        """The complete mechanism."""
        model = self.model
        self._check_numbers()
        for body in range(1, model.nbody):
            self._body(body)
        self._couplings = dict(self._followers())
        loops = tuple(self._loops())
        self._tendons()
        rotors, efforts, driven = self._actuators()
        armatures = tuple(self._independent(each) for each in self.armatures)
        links = [replace(link, joint=self._finished(link.joint, efforts)) for link in self.links]
        independent = [
            link.joint.name for link in links if link.joint.moves and link.joint.coupling is None
        ]
        actuated = tuple(name for name in independent if name in driven)
        self._report_other_elements()
        return Mechanism(
            text(model_name(model.names) or "robot", f"{self.where}: model name"),
            tuple(links),
            base=self.bodies[0],
            gravity=np.zeros(3) if self._disabled("GRAVITY") else array(model.opt.gravity.tolist()),
            rotors=rotors,
            armatures=tuple(each for each in armatures if each.ratios),
            loops=loops,
            actuated=actuated if loops else (),
            home=self._home(independent) if loops else {},
        )

    def _check_numbers(self) -> None:
        """Refuse numbers that are not finite, or so large that torques would not be."""
        model, where = self.model, Place(self.where)
        bodies = [where.named("link", name) for name in self.bodies]
        joints = [where.named("joint", name) for name in self.joints]
        by_dof = [joints[k] for k in model.dof_jntid]
        for places, kind, fields in (
            (bodies, "body", ("mass", "inertia", "pos", "ipos", "quat", "iquat")),
            (joints, "jnt", ("pos", "axis")),
            (by_dof, "dof", ("armature", "damping", "frictionloss")),
            (joints, "jnt", ("stiffness",)),
            ([where] * model.nsite, "site", ("pos", "quat")),
            ([where] * len(model.actuator_gear), "actuator", ("gear",)),
            ([where] * model.neq, "eq", ("data",)),
            ([where] * model.nkey, "key", ("qpos",)),
        ):
            for field in fields:
                _check_size(getattr(model, f"{kind}_{field}"), places, field)
        for what, values in (
            ("gravity", model.opt.gravity),
            ("ref", model.qpos0),
            ("springref", model.qpos_spring),
            ("tendon", model.wrap_prm),
        ):
            _check_size([values], [where], what)

    # Bodies and joints

    def _body(self, body: int) -> None:
        """The links of a body: one, or one for each of its joints."""
        model = self.model
        name, parent = self.bodies[body], self.bodies[model.body_parentid[body]]
        # X = X_parent · T(pos) R(quat) · Π_j T(p_j) · motion_j · T(-p_j) with the anchors p_j
        before = _pose(model.body_quat[body], model.body_pos[body])
        mass, moments = float(model.body_mass[body]), np.diag(model.body_inertia[body])
        principal = _pose(model.body_iquat[body], model.body_ipos[body])
        inertial = Inertial(mass, np.zeros(3), moments).seen_from(principal)
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        if not count:
            own = new_name(f"{name}_fixed", set(self.joints), "_")
            joint = Joint(own, "fixed", origin=before)
            self.links.append(Link(name, parent, joint, inertial))
            return
        for k in range(first, first + count):
            last = k == first + count - 1
            link = name if last else f"{name}_{self.joints[k]}"
            body_here = inertial if last else Inertial()
            self._joint(k, link, parent, before, body_here)
            parent, before = link, Pose()

    def _joint(self, k: int, link: str, parent: str, before: Pose, inertial: Inertial) -> None:
        model, kinds = self.model, self.mujoco.mjtJoint
        kind, name = model.jnt_type[k], self.joints[k]
        dof = int(model.jnt_dofadr[k])
        if kind == kinds.mjJNT_FREE:
            # qpos is its pose in the world, regardless of the body's own pose
            self._compound(k, Link(link, parent, Joint(name, "floating"), inertial))
            return
        anchor = array(model.jnt_pos[k].tolist())
        origin, back = before @ Pose(translation=anchor), Pose(translation=-anchor)
        if kind == kinds.mjJNT_BALL:
            whole = Joint(name, "spherical", origin=origin, tail=back)
            self._compound(k, Link(link, parent, whole, inertial))
            return
        if polynomial := self._nonzero(("dof_dampingpoly",), dof):
            self._leave_out(f"joint {name!r}: damping that is not linear", polynomial)
        if polynomial := self._nonzero(("jnt_stiffnesspoly",), k):
            self._leave_out(f"joint {name!r}: stiffness that is not linear", polynomial)
        axis = array(model.jnt_axis[k].tolist())
        # q = qpos, while MuJoCo moves the body by qpos - qpos0
        place = model.jnt_qposadr[k]
        shift, stiffness = float(model.qpos0[place]), self._active_value("jnt", "stiffness", k)
        if kind == kinds.mjJNT_HINGE:
            kind_here, tail = "revolute", Pose(exact(rotation_about(axis, -shift))) @ back
        else:
            kind_here, tail = "prismatic", Pose(translation=-shift * axis) @ back
        lower = upper = None
        if model.jnt_limited[k]:
            lower, upper = (x if abs(x) <= LARGEST else None for x in model.jnt_range[k].tolist())
        elif kind_here == "revolute":
            kind_here = "continuous"
        for field in ("range", "actfrcrange"):
            self._check_order(f"joint {name!r}: {field}", getattr(model, f"jnt_{field}")[k])
        joint = Joint(
            name,
            kind_here,
            origin=origin,
            axis=axis,
            tail=tail,
            friction=Friction(
                self._active_value("dof", "damping", dof),
                self._active_value("dof", "frictionloss", dof),
                offset=-stiffness * float(model.qpos_spring[place]),
                stiffness=stiffness,
            ),
            limits=Limits(lower, upper),
        )
        if model.dof_armature[dof]:
            self.armatures.append(Armature(((name, 1.0),), float(model.dof_armature[dof])))
        self.links.append(Link(link, parent, joint, inertial, link not in self.bodies))

    def _compound(self, k: int, link: Link) -> None:
        """The links of joint k, of which this one has the whole joint."""
        model, name, kind = self.model, link.joint.name, link.joint.type
        dofs = slice(int(model.jnt_dofadr[k]), int(model.jnt_dofadr[k]) + len(PARTS[kind]))
        for what, values in (
            ("stiffness", self._nonzero(("jnt_stiffness", "jnt_stiffnesspoly"), k)),
            ("damping", model.dof_damping[dofs]),
            ("frictionloss", model.dof_frictionloss[dofs]),
            ("armature", model.dof_armature[dofs]),
        ):
            if np.any(values):
                self._leave_out(f"joint {name!r}: {what} of a {kind} joint", [*map(float, values)])
        self.links += split(link, PARTS[kind])

    def _finished(self, joint: Joint, efforts: Mapping[str, float]) -> Joint:
        """The joint with what equalities and actuators say of it."""
        limits = joint.limits
        if joint.name in efforts:
            limits = replace(joint.ends, effort=efforts[joint.name])
        return replace(joint, coupling=self._couplings.get(joint.name), limits=limits)

    # Shafts: parts that turn with several joints

    def _shaft(self, what: str, kind: str, k: int, ratios: dict[str, float]) -> None:
        """Inertia and friction of element k of `kind` ("tendon", "actuator"), which moves at
        Σ ratio·qd."""
        if polynomial := self._nonzero((f"{kind}_dampingpoly",), k):
            self._leave_out(f"{what}: damping that is not linear", polynomial)
        inertia, viscous, coulomb = (
            self._active_value(kind, name, k) for name in ("armature", "damping", "frictionloss")
        )
        law = Friction(viscous, coulomb) if viscous or coulomb else None
        if inertia or law:
            self.armatures.append(Armature(tuple(ratios.items()), inertia, law))

    def _tendons(self) -> None:
        for k in range(self.model.ntendon):
            what = f"tendon {self._name('TENDON', k) or k!r}"
            ratios = self._tendon_ratios(k)
            fields = ["stiffness", "stiffnesspoly"]
            if ratios is None:
                what = f"spatial {what}"
                fields += ["damping", "dampingpoly", "frictionloss", "armature"]
            else:
                self._shaft(what, "tendon", k, ratios)
            if acts := self._nonzero([f"tendon_{field}" for field in fields], k):
                said = "stiffness" if ratios else "stiffness, damping, frictionloss, armature"
                self._leave_out(f"{what}: {said}", acts)

    def _tendon_ratios(self, tendon: int) -> dict[str, float] | None:
        """By joint, the rate of a fixed tendon relative to the joint's; None: the tendon is
        spatial."""
        model, first = self.model, int(self.model.tendon_adr[tendon])
        ratios: dict[str, float] = {}
        for k in range(first, first + int(model.tendon_num[tendon])):
            if model.wrap_type[k] != int(self.mujoco.mjtWrap.mjWRAP_JOINT):
                return None
            ratios[self.joints[model.wrap_objid[k]]] = float(model.wrap_prm[k])
        return ratios

    def _independent(self, shaft: Any) -> Any:
        """The armature or rotor in terms of the joints that its own joints follow."""
        ratios: dict[str, float] = {}
        for joint, ratio in shaft.ratios:
            follows = self._couplings.get(joint)
            for master, share in follows.ratios if follows else ((joint, 1.0),):
                ratios[master] = ratios.get(master, 0.0) + float(ratio * share)
        return replace(shaft, ratios=tuple(each for each in ratios.items() if each[1]))

    def _active_value(self, kind: str, name: str, k: int) -> float:
        """A number of element k of `kind`; 0 if its flag disables it."""
        flags = {"stiffness": "SPRING", "damping": "DAMPER", "frictionloss": "FRICTIONLOSS"}
        if name in flags and self._disabled(flags[name]):
            return 0.0
        return sum(self._nonzero((f"{kind}_{name}",), k))

    def _disabled(self, flag: str) -> bool:
        # older releases have one flag for springs and dampers
        known = self.mujoco.mjtDisableBit
        bit = getattr(known, f"mjDSBL_{flag}", None) or known.mjDSBL_PASSIVE
        return bool(self.model.opt.disableflags & int(bit))

    def _nonzero(self, fields: Iterable[str], k: int) -> list[float]:
        """The fields that are not 0 for element k, of these; older releases lack some."""
        found = [
            np.ravel(getattr(self.model, field)[k])
            for field in fields
            if hasattr(self.model, field)
        ]
        return [float(x) for x in np.concatenate([*found, np.zeros(1)]) if x]

    # Couplings and loops

    def _followers(self) -> Iterator[tuple[str, Coupling]]:
        """(joint, coupling) of each linear equality between joints."""
        model, kinds = self.model, self.mujoco.mjtEq
        taken: set[str] = set()
        for k in self._active(kinds.mjEQ_JOINT):
            one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
            name, data = self.joints[one], model.eq_data[k]
            at = f"equality {self._name('EQUALITY', k) or k}: joint {name!r}"
            if np.any(data[2:5]):
                self._leave_out(f"{at}: polynomial", data[:5].tolist())
                continue
            rest = self._reference_position(one)
            # q1 - q1_0 = c0 + c1 (q2 - q2_0)
            ratios: tuple[tuple[str, float], ...] = ()
            offset = rest + data[0]
            if two >= 0:
                ratios = ((self.joints[two], float(data[1])),)
                offset -= data[1] * self._reference_position(two)
            if name in taken or any(master in taken for master, _ in ratios):
                self._leave_out(f"{at}: a joint that already follows another", name)
                continue
            taken.add(name)
            yield name, Coupling(ratios, float(offset))

    def _loops(self) -> Iterator[Loop]:
        model, kinds = self.model, self.mujoco.mjtEq
        site = self.mujoco.mjtObj.mjOBJ_SITE
        for kind, joint in ((kinds.mjEQ_CONNECT, "spherical"), (kinds.mjEQ_WELD, "fixed")):
            for k in self._active(kind):
                one, two, data = int(model.eq_obj1id[k]), int(model.eq_obj2id[k]), model.eq_data[k]
                if model.eq_objtype[k] == site:
                    sides = [self._site(each) for each in (one, two)]
                elif kind == kinds.mjEQ_CONNECT:
                    sides = [
                        Attachment(self.bodies[body], Pose(translation=array(point.tolist())))
                        for body, point in ((one, data[:3]), (two, data[3:6]))
                    ]
                else:
                    # the anchor in body 2, and its pose in body 1
                    anchor = Pose(translation=array(data[:3].tolist()))
                    pose = _pose(data[6:10], data[3:6])
                    sides = [
                        Attachment(self.bodies[one], pose),
                        Attachment(self.bodies[two], anchor),
                    ]
                name = self._name("EQUALITY", k) or f"loop{k}"
                if moved := [side.link for side in sides if side.link in self._mocap()]:
                    self._leave_out(f"equality {name!r}: a mocap body", moved[0])
                    continue
                yield Loop(name, joint, *sides)

    def _mocap(self) -> set[str]:
        """The bodies that are moved from outside (mocap), and those fixed to them."""
        model = self.model
        roots = model.body_mocapid[model.body_weldid] >= 0
        return {name for name, moved in zip(self.bodies, roots, strict=True) if moved}

    def _site(self, site: int) -> Attachment:
        model = self.model
        pose = _pose(model.site_quat[site], model.site_pos[site])
        return Attachment(self.bodies[model.site_bodyid[site]], pose)

    def _active(self, kind: int) -> Iterator[int]:
        for k in range(self.model.neq):
            if self.model.eq_type[k] == int(kind) and self.model.eq_active0[k]:
                yield k

    def _home(self, joints: list[str]) -> dict[str, float]:
        """The qpos of the keyframe `home`, else of the first keyframe, else the initial qpos0."""
        model, kinds = self.model, self.mujoco.mjtJoint
        qpos = model.qpos0
        if model.nkey:
            names = [self._name("KEY", k) for k in range(model.nkey)]
            qpos = model.key_qpos[names.index("home") if "home" in names else 0]
        home: dict[str, float] = {}
        for name, kind, at in zip(self.joints, model.jnt_type, model.jnt_qposadr, strict=True):
            if kind == kinds.mjJNT_FREE:
                home |= zip((f"{name}_{axis}" for axis in "xyz"), qpos[at : at + 3], strict=True)
                at += 3
            if kind == kinds.mjJNT_FREE or kind == kinds.mjJNT_BALL:
                turned = roll_pitch_yaw(rotation_quaternion(*qpos[at : at + 4]))
                home |= zip((f"{name}_r{axis}" for axis in "xyz"), turned, strict=True)
            else:
                home[name] = qpos[at]
        return {name: float(home[name]) for name in joints}

    # Motors

    def _actuators(self) -> tuple[tuple[Rotor, ...], dict[str, float], set[str]]:
        """(gears as massless rotors, effort limits by joint, joints with a motor)"""
        model, kinds = self.model, self.mujoco.mjtTrn
        mounts = {link.joint.name: link.parent for link in self.links}
        efforts = {
            name: float(np.abs(model.jnt_actfrcrange[k]).max())
            for k, name in enumerate(self.joints)
            if model.jnt_actfrclimited[k]
        }
        pushes: dict[str, float] = {}
        rotors: list[Rotor] = []
        driven: set[str] = set()
        # from MuJoCo 4 on an actuator may have several controls, and gears in several rows
        gears = getattr(model, "actuator_outadr", range(model.nu))
        for k, row in enumerate(gears):
            transmission, target = model.actuator_trntype[k], int(model.actuator_trnid[k, 0])
            name = self._name("ACTUATOR", k) or f"actuator{k}"
            gear, what = float(model.actuator_gear[row, 0]), f"actuator {name!r}"
            turned: dict[str, float] = {}
            if transmission == kinds.mjTRN_JOINT:
                # else a ball or free joint
                turned = {joint: 1.0 for joint in [self.joints[target]] if joint in mounts}
            elif transmission == kinds.mjTRN_TENDON:
                turned = self._tendon_ratios(target) or {}
            acts_on = dict(self._independent(Armature(tuple(turned.items()), 0.0)).ratios)
            driven.update(acts_on)
            if len(turned) == 1:
                acts_on = turned
            if len(acts_on) > 1:
                self._leave_out(f"{what}: gear, forcerange", list(acts_on), "one joint")
            elif not turned and transmission != kinds.mjTRN_JOINT:
                self._leave_out(f"{what}: transmission", kinds(int(transmission)).name)
            if turned:
                self._shaft(what, "actuator", k, {j: gear * r for j, r in turned.items()})
            elif acts := self._nonzero(("actuator_armature", "actuator_damping"), k):
                self._leave_out(f"{what}: armature, damping", acts)
            if len(acts_on) != 1:
                continue
            ((joint, ratio),) = acts_on.items()
            gear *= ratio
            self._check_order(f"{what}: forcerange", model.actuator_forcerange[k])
            if model.actuator_forcelimited[k]:
                most = abs(gear) * float(np.abs(model.actuator_forcerange[k]).max())
                pushes[joint] = pushes.get(joint, 0.0) + most
            if gear not in (0.0, 1.0):
                # it has no mass; the only condition on its mount is that this joint does not turn
                # the mount
                mount = self.bodies[0] if joint in self._couplings else mounts[joint]
                rotor = Rotor(name, mount, Pose(), ((joint, gear),), Inertial())
                rotors.append(self._independent(rotor))
        # a joint's own range bounds the sum of its actuators
        efforts |= {joint: min(most, efforts.get(joint) or most) for joint, most in pushes.items()}
        return (
            tuple(each for each in rotors if each.ratios),
            {k: v for k, v in efforts.items() if 0 < v <= LARGEST},
            driven,
        )

    def _report_other_elements(self) -> None:
        """Report other elements that act in MuJoCo but are left out."""
        model, kinds = self.model, self.mujoco.mjtEq
        for body in np.flatnonzero(model.body_gravcomp):
            self._leave_out(
                f"body {self.bodies[body]!r}: gravcomp", float(model.body_gravcomp[body])
            )
        for k in range(model.neq):
            if model.eq_active0[k] and model.eq_type[k] > int(kinds.mjEQ_JOINT):
                kind = self.mujoco.mjtEq(int(model.eq_type[k])).name
                self._leave_out(f"equality {self._name('EQUALITY', k) or k}", kind)
        for k in range(model.nflex):
            if not model.flex_rigid[k]:
                self._leave_out(f"flex {self._name('FLEX', k) or k!r}", "a deformable body")
        if model.opt.density or model.opt.viscosity:
            self._leave_out("fluid: density, viscosity", [model.opt.density, model.opt.viscosity])

    # Names

    def _leave_out(self, what: str, value: Any, expected: str = "none") -> None:
        at = f"{self.where}: {what}"
        self.left_out.append(wrong(DescriptionError, at, value, f"{expected}: it is left out"))

    def _check_order(self, what: str, ends: Any) -> None:
        """Report limits that MuJoCo ignores because the lower one is not below the upper one."""
        if ends.any() and ends[0] >= ends[1]:
            self._leave_out(what, ends.tolist(), "a lower limit below the upper one")

    def _reference_position(self, joint: int) -> float:
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def _name(self, kind: str, k: int) -> str:
        of = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}")
        found = self.mujoco.mj_id2name(self.model, of, k)
        return text(found, f"{self.where}: {kind.lower()} name") if found else ""

    def _joint_name(self, k: int) -> str:
        body = self.bodies[self.model.jnt_bodyid[k]]
        first = int(self.model.body_jntadr[self.model.jnt_bodyid[k]])
        return self._name("JOINT", k) or f"{body}_joint{k - first + 1}"


def _pose(quaternion: Any, position: Any) -> Pose:
    return Pose(rotation_quaternion(*quaternion), array(position.tolist()))


def _check_size(rows: Iterable[Any], places: Iterable[Place], what: str) -> None:
    for row, place in zip(rows, places, strict=True):
        for value in np.ravel(row).tolist():
            if not abs(value) <= LARGEST:
                expected = f"a finite number of at most {LARGEST:g}"
                raise wrong(DescriptionError, place / what, value, expected)


def model_name(names: bytes) -> str:
    """The model's own name, the first in MuJoCo's buffer of names."""
    return names.split(b"\0", 1)[0].decode(errors="replace")
