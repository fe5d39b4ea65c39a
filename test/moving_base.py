# SPDX-License-Identifier: Apache-2.0
"""A robot on a base that something else moves, Pinocchio's free flyer of it, and its sensors."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from robots import pin, random_urdf
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from geometry_msgs.msg import Transform, Twist  # isort: skip

G = np.array([0.0, 0.0, -9.81])
BASE, SENSOR = "link0", "imu"
PLACE, TURN = np.array([0.4, -0.3, 0.2]), np.array([0.5, -1.1, 2.0])
"""Of the IMU in the base's frame: m, and roll, pitch, yaw"""
MOUNT = Rotation.from_euler("xyz", TURN).as_matrix()


class Motion(NamedTuple):
    """Of the base, on its own axes."""

    R: np.ndarray
    turning: np.ndarray
    spinning: np.ndarray
    pushing: np.ndarray


def motion(seed: int, spins: bool = True) -> Motion:
    rng = np.random.default_rng(seed)
    turning, spinning, pushing = rng.uniform(-2, 2, (3, 3))
    R = Rotation.random(random_state=seed).as_matrix()
    return Motion(R, turning, spinning * spins, pushing)


def described(folder: Path, seed: int = 4) -> Path:
    """A YAML beside the URDF of a random robot on a floating base with an IMU."""
    numbers = " ".join(map(repr, PLACE.tolist())), " ".join(map(repr, TURN.tolist()))
    mounted = f"""<link name="sea"/><joint name="waves" type="floating"><parent link="sea"/>
      <child link="{BASE}"/></joint>
      <link name="{SENSOR}"/><joint name="bolt" type="fixed"><parent link="{BASE}"/>
      <child link="{SENSOR}"/><origin xyz="{numbers[0]}" rpy="{numbers[1]}"/></joint></robot>"""
    (folder / "ship.urdf").write_text(random_urdf(seed).replace("</robot>", mounted))
    (folder / "ship.yaml").write_text("urdf: ship.urdf\nbase_motion: waves\n")
    return folder / "ship.yaml"


class FreeFlyer:
    """What Pinocchio says of the robot of `described`."""

    def __init__(self, names: tuple[str, ...], seed: int = 4):
        self.model = pin.buildModelFromXML(random_urdf(seed), pin.JointModelFreeFlyer())
        self._joints = [self.model.joints[self.model.getJointId(name)] for name in names]

    def __call__(self, q, qd, qdd, base: Motion) -> np.ndarray:
        model = self.model
        whole = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        whole[0][3:7] = Rotation.from_matrix(base.R).as_quat()
        whole[1][3:6], whole[2][:6] = base.turning, [*base.pushing, *base.spinning]
        for k, joint in enumerate(self._joints):
            if joint.nq == 2:
                whole[0][joint.idx_q : joint.idx_q + 2] = np.cos(q[k]), np.sin(q[k])
            else:
                whole[0][joint.idx_q] = q[k]
            whole[1][joint.idx_v], whole[2][joint.idx_v] = qd[k], qdd[k]
        full = pin.rnea(model, model.createData(), *whole)
        return full[[joint.idx_v for joint in self._joints]]


def imu(base: Motion, stamp=None, *, place=PLACE, mount=MOUNT, frame: str = SENSOR) -> Imu:
    """What an ideal IMU reads there."""
    message = Imu()
    message.header.frame_id = frame
    if stamp is not None:
        message.header.stamp = stamp
    w, alpha = base.turning, base.spinning
    there = base.pushing + np.cross(alpha, place) + np.cross(w, np.cross(w, place))
    _set(message.angular_velocity, mount.T @ w)
    _set(message.linear_acceleration, mount.T @ (there - base.R.T @ G))
    _turn(message.orientation, base.R @ mount)
    return message


def told(base: Motion, stamp=None, *, joint: str = "waves") -> MultiDOFJointTrajectory:
    """The same motion by pose, twist and acceleration on the sea's axes."""
    pose, twist, acceleration = Transform(), Twist(), Twist()
    _turn(pose.rotation, base.R)
    _set(twist.angular, base.R @ base.turning)
    _set(acceleration.angular, base.R @ base.spinning)
    _set(acceleration.linear, base.R @ base.pushing)
    point = MultiDOFJointTrajectoryPoint(
        transforms=[pose], velocities=[twist], accelerations=[acceleration]
    )
    message = MultiDOFJointTrajectory(joint_names=[joint], points=[point])
    message.header.frame_id = "sea"
    if stamp is not None:
        message.header.stamp = stamp
    return message


def _set(vector, values) -> None:
    vector.x, vector.y, vector.z = map(float, values)


def _turn(quaternion, R) -> None:
    values = Rotation.from_matrix(R).as_quat()
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = map(float, values)
