# SPDX-License-Identifier: Apache-2.0
"""A mechanism simulated by MuJoCo, as independent code for the same robot.

The model is built with MuJoCo's own model API, with a body for each link and each rotor. A mimic
joint or a geared rotor has a joint of its own, which an equality constraint on a tendon couples to
the joints that it follows. A rotor's friction is that of a tendon whose length is the rotor's
angle. A loop is closed by equality constraints between its two links.

MuJoCo softens every constraint: even at its stiffest setting an equality yields by about one part
in ten thousand of the acceleration, whereas gears and hinges should be rigid. The softness is a
number in each row of the solver's table, so `Simulation` runs MuJoCo's pipeline stage by stage and
writes `SOFTNESS` into the rows of equalities before the solver reads them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..description.mujoco_compiler import library
from ..errors import DescriptionError, InputError, wrong
from ..mechanism import Coupling, Friction, Inertial, Joint, Loop, Mechanism, Pose
from ..mechanism.transform import Ratios
from ..scalar import Floats, sign

Vector = tuple[float, float, float]

SOFTNESS = 1e-10
"""How much an equality yields, as a fraction of the acceleration that it prevents. A smaller value
would be lost in the rounding errors of the solver's factorisation"""

DIFFERENCE = 1e-5
"""rad or m: the step of central differences, about the cube root of the rounding error; the
relative error is about the square of the step"""

ROUNDED, CLOSED = 1e-3, 1e-13
"""m or rad: how far rounded angles may leave a loop open; a loop within it counts as closed"""

REDUNDANT = 1e-5
"""Singular values of the equalities below this fraction of the largest count as zero"""

MOST_STEPS = 5

STIFFEST = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""solimp: the stiffest that MuJoCo allows"""

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
O = (0.0, 0.0, 0.0)

CLOSURES: dict[str, tuple[bool, tuple[tuple[Vector, Vector], ...]]] = {
    "spherical": (True, ()),
    "universal": (True, ((Y, X),)),
    "revolute": (True, ((Z, X), (Z, Y))),
    "fixed": (True, ((Z, X), (Z, Y), (X, Y))),
    "prismatic": (False, ((O, X), (O, Y), (Z, X), (Z, Y), (X, Y))),
}
"""By type of loop: whether the two frames' origins coincide, and (point, normal) pairs: the point
(m) of the successor's frame stays in the plane through the predecessor's origin with this normal"""

PLAIN_FRICTION = {"viscous", "coulomb", "stiffness", "presliding", "smoothing"}
"""The parameters of friction that MuJoCo supports, or that are left out: its dry friction is always
developed, and holds a joint at rest"""

BALL = (1.0, (1.0, 1.0, 1.0))
"""kg, kg m²: a placeholder for every body while the model is compiled"""


def mujoco() -> Any:
    """MuJoCo, imported on first use.

    Raises:
        BackendError: it is not installed.
    """
    engine = library()
    # MuJoCo's own handler writes a file into the working directory
    engine.set_mju_user_warning(_warn)
    return engine


def _warn(text: str) -> None:
    with suppress(Warning):  # an exception here (-W error) would end the process
        warnings.warn(f"MuJoCo: {text}", stacklevel=3)


class Simulation:
    """The robot in MuJoCo, with its state.

    Arrays are float64 in SI units, in the order of `joint_names`: the independent joints, including
    passive ones.

    Args:
        mechanism: the robot, as from `rd.load`.
        timestep: the step of the integrator (semi-implicit Euler), s.

    Raises:
        InputError: a timestep that is not positive.
        BackendError: MuJoCo is not installed.
        DescriptionError: MuJoCo rejects this robot.
    """

    def __init__(self, mechanism: Mechanism, *, timestep: float = 2e-4):
        if not (np.isfinite(timestep) and timestep > 0):
            raise wrong(InputError, "timestep", timestep, "a positive number of seconds")
        self.mechanism = mechanism
        self.joint_names = mechanism.joint_names
        self.timestep = float(timestep)
        self._engine = mujoco()
        self._model, self._coordinates, self._offsets = _build(mechanism, self.timestep)
        self._data = self._engine.MjData(self._model)
        self._other = self._engine.MjData(self._model)
        moving = [(link.joint, _joint(link.joint.name)) for link in mechanism.moving]
        dofs = {name: self._model.joint(name).dofadr[0] for _, name in moving}
        laws = [(dofs[name], joint.friction) for joint, name in moving]
        # simple friction laws are left to MuJoCo
        self._laws = [(dof, law) for dof, law in laws if set(law.numbers) - PLAIN_FRICTION]
        rows = np.zeros((len(_shafts(mechanism)), self._model.nv))
        self._shafts: list[tuple[int, Floats, Friction]] = []
        for row, (name, ratios, law) in zip(rows, _shafts(mechanism), strict=True):
            for joint, ratio in ratios:
                row[dofs[_joint(joint)]] += float(ratio)
            if set(law.numbers) - PLAIN_FRICTION:
                self._shafts.append((self._model.tendon(name).id, row, law))
        self._own = [self._model.joint(_joint(name)).dofadr[0] for name in self.joint_names]
        self.reset()

    @property
    def time(self) -> float:
        """The simulated time, s."""
        return float(self._data.time)

    @property
    def q(self) -> Floats:
        """Positions (n,), rad or m."""
        q: Floats = self._data.qpos[self._own].copy()
        return q

    @property
    def qd(self) -> Floats:
        """Rates (n,), rad/s or m/s."""
        qd: Floats = self._data.qvel[self._own].copy()
        return qd

    def reset(self, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        """Set the state, at time zero.

        Joints and rotors that follow others are placed accordingly. Loops that are open by less
        than ROUNDED, due to rounded numbers, are closed by the least motion of all joints; others
        stay open.

        Args:
            q: (n,) positions, rad or m; None: the mechanism's `home`, with 0 for joints that it
                does not give.
            qd: (n,) rates, rad/s or m/s; None: at rest.

        Raises:
            InputError: a wrong shape, or numbers that are not finite.
        """
        home = [self.mechanism.home_of(name) for name in self.joint_names]
        position = self._vector("q", home if q is None else q)
        velocity = self._vector("qd", np.zeros(len(home)) if qd is None else qd)
        self._engine.mj_resetData(self._model, self._data)
        self._data.qpos[:] = self._coordinates @ position + self._offsets
        self._data.qvel[:] = self._coordinates @ velocity
        if self.mechanism.loops:
            self._close_rounded()

    def _close_rounded(self) -> None:
        """Gauss–Newton on the equalities, q ← q - J⁺ c.

        In a loop that is slightly open, redundant rows are independent: a planar loop would resist
        its own motion.
        """
        engine, model, data = self._engine, self._model, self._data
        for _ in range(MOST_STEPS):
            if not CLOSED < self.closure_residual() < ROUNDED:
                return
            J = data.efc_J.reshape(-1, model.nv)[: data.ne]
            step = -np.linalg.pinv(J, rcond=REDUNDANT) @ data.efc_pos[: data.ne]
            engine.mj_integratePos(model, data.qpos, step, 1.0)

    def save(self, path: Path) -> tuple[dict[str, int], Floats]:
        """Write MuJoCo's model to a file (.mjb), for other programs.

        Args:
            path: of the file.

        Returns:
            (each joint's index in MuJoCo's qpos, qvel and qfrc_applied, the present qpos).
        """
        self._engine.mj_saveModel(self._model, str(path))
        places = dict(zip(self.joint_names, map(int, self._own), strict=True))
        return places, np.array(self._data.qpos)

    def accelerations(self, tau: ArrayLike) -> Floats:
        """The accelerations qdd (n,), rad/s² or m/s², in the present state.

        Args:
            tau: (n,) joint torques, N·m or N.

        Raises:
            InputError: a wrong shape, or numbers that are not finite.
        """
        self._apply(tau)
        self._forward()
        qdd: Floats = self._data.qacc[self._own].copy()
        return qdd

    def advance(self, tau: ArrayLike, steps: int = 1) -> None:
        """Simulate some time steps with constant joint torques.

        Args:
            tau: (n,) joint torques, N·m or N.
            steps: number of time steps.

        Raises:
            InputError: a wrong shape, or torques under which the motion diverges.
        """
        self._apply(tau)
        for _ in range(steps):
            self._forward()
            self._engine.mj_Euler(self._model, self._data)
        if not np.all(np.isfinite(self._data.qpos)):
            raise InputError(
                f"the simulated motion diverged at {self.time:.4f} s: smaller gains or a smaller "
                "time step are needed",
                name="tau",
                value=tau,
            )

    def closure_residual(self) -> float:
        """The largest violation of an equality constraint in the present state (m or rad)."""
        self._engine.mj_fwdPosition(self._model, self._data)
        violations = self._data.efc_pos[: self._data.ne]
        return float(np.max(np.abs(violations), initial=0.0))

    def _apply(self, tau: ArrayLike) -> None:
        """Apply the joint torques minus the friction offsets."""
        self._data.qfrc_applied[:] = 0.0
        self._data.qfrc_applied[self._own] = self._vector("tau", tau)
        for dof, law in self._laws:
            self._data.qfrc_applied[dof] -= law.offset
        for _, row, law in self._shafts:
            self._data.qfrc_applied[:] -= row * float(law.offset)

    def _set_dry_friction(self) -> None:
        """Set the dry friction of each joint and shaft at its rate or, at rest, the friction that
        holds in both directions.

        MuJoCo takes one number for each and applies it against any motion.
        """
        for dof, law in self._laws:
            self._model.dof_frictionloss[dof] = _dry(law, float(self._data.qvel[dof]))
        for tendon, row, law in self._shafts:
            rate = float(row @ self._data.qvel)
            self._model.tendon_frictionloss[tendon] = _dry(law, rate)

    def _forward(self) -> None:
        """Run mj_forward with hardened equalities."""
        engine, model, data = self._engine, self._model, self._data
        self._set_dry_friction()
        engine.mj_fwdPosition(model, data)
        engine.mj_fwdVelocity(model, data)
        if data.ne:
            self._harden()
        if self.mechanism.loops:
            self._set_reference_accelerations()
        engine.mj_fwdActuation(model, data)
        engine.mj_fwdAcceleration(model, data)
        engine.mj_fwdConstraint(model, data)

    def _harden(self) -> None:
        """Set R = softness · diag(J M⁻¹ Jᵀ) for the equalities.

        MuJoCo evaluates this diagonal with all joints at zero, where a loop may be stretched out
        and appear massless.
        """
        data, model = self._data, self._model
        J = data.efc_J.reshape(-1, model.nv)[: data.ne]
        solved = np.empty_like(J)
        self._engine.mj_solveM(model, data, solved, np.ascontiguousarray(J))
        diagonal = np.sum(J * solved, axis=1)
        # a row that no motion can violate (out of a planar robot's plane) also needs some softness
        R = SOFTNESS * np.maximum(diagonal, SOFTNESS * np.max(diagonal))
        data.efc_R[: data.ne] = R
        data.efc_D[: data.ne] = 1.0 / R

    def _set_reference_accelerations(self) -> None:
        """Set J q̈ + J̇ q̇ = -b J q̇ - k r for all equalities, as MuJoCo omits J̇ q̇ for some."""
        data = self._data
        equalities = slice(data.ne)
        k, b, impedance, _ = data.efc_KBIP[equalities].T
        restoring = b * data.efc_vel[equalities] + k * impedance * data.efc_pos[equalities]
        data.efc_aref[equalities] = -restoring - self._centripetal()

    def _centripetal(self) -> Floats:
        """J̇ q̇ of the equalities, by a central difference of J along q̇ on a copy of the state."""
        engine, model, data, other = self._engine, self._model, self._data, self._other
        speed = float(np.max(np.abs(data.qvel)))
        if speed == 0.0:
            return np.zeros(data.ne)
        h = DIFFERENCE / speed
        sides = []
        for step in (h, -h):
            other.qpos[:] = data.qpos + step * data.qvel
            engine.mj_fwdPosition(model, other)
            rows = other.efc_J.reshape(-1, model.nv)[: data.ne]
            sides.append(rows @ data.qvel)
        return np.asarray((sides[0] - sides[1]) / (2 * h))

    def _vector(self, name: str, values: ArrayLike) -> Floats:
        array = np.asarray(values, dtype=float)
        if array.shape != (len(self.joint_names),) or not np.all(np.isfinite(array)):
            raise wrong(InputError, name, values, f"{len(self.joint_names)} finite numbers")
        return array


def _dry(law: Friction, rate: float) -> float:
    if not rate:
        return float(min(law.coulomb, law.coulomb_backwards) + law.stribeck_torque)
    return float(abs(law.torque(rate, sign(rate)) - law.viscous * rate - law.offset))


def _shafts(mechanism: Mechanism) -> list[tuple[str, Ratios, Friction]]:
    """(name, ratios, friction) of the rotors that turn and the armatures that have friction."""
    return [
        (f"friction {k}", ratios, law)
        for k, (ratios, law) in enumerate(mechanism.shafts_with_friction())
        if ratios
    ]


def _joint(name: str) -> str:
    return f"joint {name}"


def _link(mechanism: Mechanism, name: str) -> str:
    return "world" if name == mechanism.base else f"link {name}"


def _build(mechanism: Mechanism, timestep: float) -> tuple[Any, Floats, Floats]:
    """The compiled model, and (S, s) with q_mujoco = S q + s."""
    engine = mujoco()
    spec = engine.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = timestep
    spec.option.gravity = mechanism.gravity
    # with equalities only, Newton's method converges in one step and is exact after the next;
    # further steps are for the corners of Coulomb friction
    spec.option.tolerance = 0.0
    spec.option.jacobian = engine.mjtJacobian.mjJAC_DENSE
    spec.option.iterations = 10
    # with islands, the solver would copy its table, and the hardening would have no effect
    spec.option.disableflags |= engine.mjtDisableBit.mjDSBL_ISLAND

    bodies, followers = _add_bodies(spec, mechanism, timestep)
    for name, coupling in followers.items():
        # q_follower - Σ ratio q_master = offset
        tendon = spec.add_tendon(name=name)
        tendon.wrap_joint(name, 1.0)
        for master, ratio in coupling.ratios:
            tendon.wrap_joint(_joint(master), -float(ratio))
        _add_equality(spec, "tendon", name, offset=float(coupling.offset))
    for number, armature in enumerate(mechanism.armatures):
        tendon = spec.add_tendon(name=f"armature {number}", armature=float(armature.inertia))
        for master, ratio in armature.ratios:
            tendon.wrap_joint(_joint(master), float(ratio))
    for name, ratios, law in _shafts(mechanism):
        solref, solimp = _rigid(timestep).values()
        tendon = spec.add_tendon(
            name=name,
            damping=float(law.viscous),
            frictionloss=float(law.coulomb),
            solref_friction=solref,
            solimp_friction=solimp,
        )
        for master, ratio in ratios:
            tendon.wrap_joint(_joint(master), float(ratio))
    for number, loop in enumerate(mechanism.loops):
        _add_loop(spec, mechanism, loop, f"loop {number} {loop.name}")

    try:
        model = spec.compile()
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise DescriptionError(
            f"{mechanism.name}: MuJoCo rejects it: {reason}", name=mechanism.name
        ) from None
    for name, (mass, moments) in bodies.items():
        model.body(name).mass[:] = mass
        model.body(name).inertia[:] = moments
    _check_masses(mechanism, model)
    engine.mj_setConst(model, engine.MjData(model))
    model.tendon_length0[:] = 0.0  # equalities refer to lengths, not to changes of length
    return model, *_coordinates(model, mechanism.joint_names, followers)


def _add_bodies(
    spec: Any, mechanism: Mechanism, timestep: float
) -> tuple[dict[str, tuple[float, Floats]], dict[str, Coupling]]:
    """Add links and rotors to the model.

    Returns mass (kg) and principal moments (3,) (kg m²) by body, and the couplings by joint.
    """
    bodies: dict[str, tuple[float, Floats]] = {}
    followers: dict[str, Coupling] = {}
    for link in mechanism.links:
        body = spec.body(_link(mechanism, link.parent)).add_body(name=_link(mechanism, link.name))
        # the link's frame at q = 0: origin · tail
        _set_pose(body, link.joint.origin @ link.joint.tail)
        bodies[body.name] = _set_principal_axes(body, link.inertial)
        if link.joint.moves:
            _add_joint(body, link.joint, **_rigid(timestep))
        if link.joint.coupling is not None:
            followers[_joint(link.joint.name)] = link.joint.coupling
    for number, rotor in enumerate(mechanism.rotors):
        if rotor.inertial.is_nothing:  # only its gear ratio is known
            continue
        name = f"rotor {number} {rotor.name}"
        body = spec.body(_link(mechanism, rotor.mount)).add_body(name=name)
        _set_pose(body, rotor.origin)
        bodies[body.name] = _set_principal_axes(body, rotor.inertial)
        body.add_joint(name=name, axis=(0.0, 0.0, 1.0))
        followers[name] = Coupling(rotor.ratios)
    return bodies, followers


def _check_masses(mechanism: Mechanism, model: Any) -> None:
    """Check that every joint moves some mass or inertia."""
    nothing = [
        not (mass or np.any(inertia))
        for mass, inertia in zip(model.body_mass, model.body_inertia, strict=True)
    ]
    for body in range(model.nbody - 1, 0, -1):  # children come after their parents
        nothing[model.body_parentid[body]] &= nothing[body]
    for link in mechanism.moving:
        if nothing[model.body(_link(mechanism, link.name)).id]:
            raise DescriptionError(
                f"{link.joint.name}: it moves neither mass nor inertia, so its acceleration is "
                f"undetermined; give {link.name} a mass, or fix the joint",
                name=link.joint.name,
                expected="a mass",
            )


def _coordinates(
    model: Any, joint_names: Iterable[str], followers: Mapping[str, Coupling]
) -> tuple[Floats, Floats]:
    column = {name: j for j, name in enumerate(joint_names)}
    matrix, offsets = np.zeros((model.nq, len(column))), np.zeros(model.nq)
    for name, j in column.items():
        matrix[model.joint(_joint(name)).qposadr[0], j] = 1.0
    for name, coupling in followers.items():
        row = model.joint(name).qposadr[0]
        offsets[row] = coupling.offset
        for master, ratio in coupling.ratios:
            matrix[row, column[master]] += ratio
    return matrix, offsets


def _quaternion(rotation: Floats) -> Floats:
    quaternion = np.zeros(4)
    mujoco().mju_mat2Quat(quaternion, np.ascontiguousarray(rotation, dtype=float).ravel())
    return quaternion


def _set_pose(body: Any, pose: Pose) -> None:
    body.pos = np.asarray(pose.translation, dtype=float)
    body.quat = _quaternion(pose.rotation)


def _set_principal_axes(body: Any, inertial: Inertial) -> tuple[float, Floats]:
    """Place the body's principal axes; return its mass and moments (3,), to be set after compiling.

    The compiler requires every moving body to have mass and inertia, and refuses impossible
    inertias, even those of thin plates that are impossible only by rounding. The engine itself
    accepts all of them.
    """
    moments, axes = np.linalg.eigh(np.asarray(inertial.inertia, dtype=float))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    body.explicitinertial = True
    body.mass, body.inertia = BALL
    body.ipos = np.asarray(inertial.center_of_mass, dtype=float)
    body.iquat = _quaternion(axes)
    return float(inertial.mass), moments


def _rigid(timestep: float) -> dict[str, Any]:
    """The fastest and stiffest parameters of constraints that MuJoCo allows."""
    return {"solref": (2.0 * timestep, 1.0), "solimp": STIFFEST}


def _add_joint(body: Any, joint: Joint, solref: Any, solimp: Any) -> None:
    """Add a joint to the body, with its position and axis in the body's frame."""
    kinds = mujoco().mjtJoint
    tail = joint.tail.inverse()
    body.add_joint(
        name=_joint(joint.name),
        type=kinds.mjJNT_HINGE if joint.turns else kinds.mjJNT_SLIDE,
        pos=np.asarray(tail.translation, dtype=float),
        axis=np.asarray(tail.rotation @ joint.axis, dtype=float),
        damping=float(joint.friction.viscous),
        frictionloss=float(joint.friction.coulomb),
        stiffness=float(joint.friction.stiffness),
        solref_friction=solref,
        solimp_friction=solimp,
    )


def _add_equality(
    spec: Any, kind: str, first: str, second: str = "", *, offset: float = 0.0
) -> None:
    """Add an equality. tendon: length of the first - length of the second = offset; connect: the
    two sites coincide."""
    engine = mujoco()
    kinds = {
        "tendon": (engine.mjtEq.mjEQ_TENDON, engine.mjtObj.mjOBJ_TENDON),
        "connect": (engine.mjtEq.mjEQ_CONNECT, engine.mjtObj.mjOBJ_SITE),
    }
    equality = spec.add_equality(
        type=kinds[kind][0],
        objtype=kinds[kind][1],
        name1=first,
        name2=second,
        **_rigid(spec.option.timestep),
    )
    equality.data[:] = 0.0
    equality.data[:2] = (offset, 1.0)


def _add_loop(spec: Any, mechanism: Mechanism, loop: Loop, name: str) -> None:
    """Add the equalities between the loop's two links."""
    points, planes = CLOSURES[loop.type]
    before = spec.body(_link(mechanism, loop.predecessor.link))
    after = spec.body(_link(mechanism, loop.successor.link))

    def site(body: Any, label: str, pose: Pose, point: ArrayLike) -> str:
        marker = body.add_site(name=f"{name} {label}")
        marker.pos = np.asarray(pose.apply(np.asarray(point, dtype=float)), dtype=float)
        return str(marker.name)

    if points:
        ends = [
            site(body, label, end.pose, (0.0, 0.0, 0.0))
            for body, label, end in (
                (before, "before", loop.predecessor),
                (after, "after", loop.successor),
            )
        ]
        _add_equality(spec, "connect", *ends)
    for row, (point, normal) in enumerate(planes):
        # a point is in the plane if it is as far from n as from -n
        tip = site(after, f"point {row}", loop.successor.pose, point)
        strings = []
        for side in (1.0, -1.0):
            label = f"row {row} side {side:+.0f}"
            end = site(before, label, loop.predecessor.pose, side * np.asarray(normal))
            string = spec.add_tendon(name=f"{name} {label}")
            string.wrap_site(end)
            string.wrap_site(tip)
            strings.append(str(string.name))
        _add_equality(spec, "tendon", *strings)
