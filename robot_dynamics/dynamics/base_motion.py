"""A base that is moved from outside: mobile and tilted arms, arms on ships, legs on a body.

The torques are those of the same robot on six joints more, three that slide and three that turn,
at zero, where their rates are the base's twist. Gravity is an acceleration of the base:

    slides: q̈ = a - g        turns: q̇ = ω,  q̈ = α - Σ_{i<j} z_i q̇_i × z_j q̇_j

Where the base is and how fast it moves along makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ClosedChain
from ..codegen.kernel import as_floats
from ..errors import InputError, wrong
from ..mechanism import Joint, Link, Mechanism
from ..scalar import Floats
from .open_chain import OpenChain

SLIDES, TURNS = "xyz", "zyx"
"""The six joints in turn; turned so, ω = (q̇_x, q̇_y, q̇_z) at zero"""


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """How the base frame moves, on its own axes; leading axes are a batch.

    Raises:
        InputError: a wrong shape, a number that is not finite, or no rotation.
    """

    angular_velocity: ArrayLike = (0.0, 0.0, 0.0)
    """ω (…, 3), rad/s"""
    angular_acceleration: ArrayLike = (0.0, 0.0, 0.0)
    """α (…, 3), rad/s²"""
    linear_acceleration: ArrayLike = (0.0, 0.0, 0.0)
    """a (…, 3), m/s²: of the base frame's origin, without gravity"""
    rotation: ArrayLike | None = None
    """(…, 3, 3): the base frame's axes in the frame that `gravity_vector` is given in; None: the
    base stands as the description has it"""
    specific_force: ArrayLike | None = None
    """(…, 3), m/s²: a - g as an IMU at the base frame's origin reads it, in place of
    `linear_acceleration`, `rotation` and the description's gravity"""

    def __post_init__(self) -> None:
        for name in ("angular_velocity", "angular_acceleration", "linear_acceleration"):
            object.__setattr__(self, name, _vector(name, getattr(self, name)))
        if self.rotation is not None:
            object.__setattr__(self, "rotation", _rotation(self.rotation))
        if self.specific_force is not None:
            if self.rotation is not None or np.any(self.linear_acceleration):
                raise wrong(
                    InputError, "specific_force", "rotation or linear_acceleration beside it",
                    "neither: an accelerometer feels both",
                )  # fmt: skip
            vector = _vector("specific_force", self.specific_force)
            object.__setattr__(self, "specific_force", vector)

    def felt(self, gravity: Floats) -> Floats:
        """a - g (…, 3) on the base's axes, with gravity (3,) as the description has it."""
        if self.specific_force is not None:
            return np.asarray(self.specific_force)
        g = np.asarray(gravity, dtype=float)
        if self.rotation is not None:
            # g_base = Rᵀ g
            g = np.einsum("...ji,j->...i", np.asarray(self.rotation), g)
        return np.asarray(self.linear_acceleration) - g


class MovingBase:
    """A robot's torques with its base moved from outside. It never changes.

    Args:
        mechanism: the robot.
        compiled: gives the chain of a mechanism, with the choices of the robot's.
        terms: of these torques.

    Raises:
        InputError: terms without those of motion: gravity is one of the base here.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        compiled: Callable[[Mechanism], OpenChain | ClosedChain],
        terms: tuple[str, ...],
    ):
        needed = ["inertia", "coriolis", *(["rotors"] if mechanism.rotors else [])]
        if missing := [name for name in needed if name not in terms]:
            raise wrong(
                InputError, "terms", sorted(terms), f"{', '.join(missing)} too, for base_motion"
            )
        self._gravity = np.asarray(mechanism.gravity, dtype=float) * ("gravity" in terms)
        self._chain = compiled(on_six_joints(mechanism))

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, motion: BaseMotion) -> Floats:
        """(…, n) at q, qd, qdd (…, n)."""
        felt = motion.felt(self._gravity)
        turning = np.asarray(motion.angular_velocity)
        x, y, z = np.moveaxis(turning, -1, 0)
        # z z × y y + (z z + y y) × x x
        crossed = np.stack([-z * y, z * x, -y * x], axis=-1)
        # the turns' order is z, y, x
        turns = (np.asarray(motion.angular_acceleration) - crossed)[..., ::-1]
        n, still = len(self._chain.joint_names) - 6, np.zeros(6)
        tau = self._chain.torques(
            _beside("q", still, q, n),
            _beside(
                "qd", np.concatenate([np.zeros_like(turning), turning[..., ::-1]], axis=-1), qd, n
            ),
            _beside("qdd", _joined(felt, turns), qdd, n),
        )
        return np.ascontiguousarray(tau[..., 6:])


def on_six_joints(mechanism: Mechanism) -> Mechanism:
    """The same robot, its base carried by three joints that slide and three that turn."""
    taken = {mechanism.base, *(link.name for link in mechanism.links)}
    taken |= {link.joint.name for link in mechanism.links}

    def free(name: str) -> str:
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    ground, links = free("ground"), []
    parts = [(f"base_{axis}", axis, "prismatic") for axis in SLIDES]
    parts += [(f"base_r{axis}", axis, "revolute") for axis in TURNS]
    parent = ground
    for name, axis, kind in parts:
        joint = Joint(free(name), kind, axis=np.eye(3)["xyz".index(axis)])
        last = name == parts[-1][0]
        links.append(Link(mechanism.base if last else joint.name, parent, joint))
        parent = joint.name
    names = tuple(link.joint.name for link in links)
    driven = mechanism.actuated or (mechanism.actuated_names if mechanism.loops else ())
    return replace(
        mechanism,
        links=(*links, *mechanism.links),
        base=ground,
        gravity=np.zeros(3),
        actuated=(*names, *driven) if driven else (),
        driving=(*names, *mechanism.driving) if mechanism.driving else (),
        home=dict.fromkeys(names, 0.0) | dict(mechanism.home) if mechanism.loops else {},
    )


def _beside(name: str, base: Floats, state: ArrayLike, n: int) -> Floats:
    """[base; state] (…, 6 + n)."""
    array = as_floats(name, state)
    if array.ndim == 0 or array.shape[-1] != n:
        raise wrong(InputError, name, array.shape, f"shape (…, {n})")
    return _joined(base, array)


def _joined(one: Floats, other: Floats) -> Floats:
    batch = np.broadcast_shapes(one.shape[:-1], other.shape[:-1])
    return np.concatenate(
        [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (one, other)], axis=-1
    )


def _vector(name: str, value: Any) -> Floats:
    found = as_floats(f"base_motion: {name}", value)
    if found.ndim == 0 or found.shape[-1] != 3:
        raise wrong(InputError, f"base_motion: {name}", found.shape, "shape (…, 3)")
    if not np.isfinite(found).all():
        raise wrong(InputError, f"base_motion: {name}", found.tolist(), "finite numbers")
    return found


def _rotation(value: Any) -> Floats:
    R = as_floats("base_motion: rotation", value)
    if R.shape[-2:] != (3, 3):
        raise wrong(InputError, "base_motion: rotation", R.shape, "shape (…, 3, 3)")
    off = abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    if not off <= 1e-6 or not (np.linalg.det(R) > 0).all():
        raise wrong(InputError, "base_motion: rotation", R.tolist(), "a rotation matrix (det = 1)")
    return R
