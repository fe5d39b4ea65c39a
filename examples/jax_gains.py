# SPDX-License-Identifier: Apache-2.0
"""The gradient of a tracking cost with respect to a PD controller's gains, over many rollouts at
once.

Each robot starts at another position and is up to 10 % heavier or lighter than the model, which
provides the feed-forward torques.
Run it: python examples/jax_gains.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import robot_dynamics as rd

jax.config.update("jax_enable_x64", True)
STEP = 0.005  # s


def cost_of_gains(rollouts: int = 1000, steps: int = 100):
    """A function of the gains (2, n), Kp and Kd: all rollouts' mean squared tracking error."""
    mechanism = rd.load("package://robot_dynamics/config/polar.yaml")
    model = rd.functions(mechanism, "jax")
    robots = rd.functions(mechanism, "jax", arguments="parameters")
    rng = np.random.default_rng(0)
    pi = robots.parameters * rng.uniform(0.9, 1.1, (rollouts, 1))
    start = np.array([0.0, 0.8]) + rng.normal(0, 0.05, (rollouts, 2))

    def desired(t):
        q = jnp.array([jnp.sin(2 * t), 0.8 + 0.1 * jnp.sin(3 * t)])
        qd = jnp.array([2 * jnp.cos(2 * t), 0.3 * jnp.cos(3 * t)])
        return q, qd, jnp.array([-4 * jnp.sin(2 * t), -0.9 * jnp.sin(3 * t)])

    def cost(gains):
        kp, kd = gains

        def step(state, k):
            q, qd = state
            q_d, qd_d, qdd_d = desired(k * STEP)
            tau = model.torques(q_d, qd_d, qdd_d) + kp * (q_d - q) + kd * (qd_d - qd)
            qdd = robots.forward(q, qd, jnp.broadcast_to(tau, q.shape), pi)
            qd = qd + STEP * qdd  # semi-implicit Euler
            q = q + STEP * qd
            return (q, qd), ((q_d - q) ** 2).mean()

        initial = (jnp.asarray(start), jnp.zeros_like(start))
        return jax.lax.scan(step, initial, jnp.arange(steps))[1].mean()

    return cost


if __name__ == "__main__":
    descend = jax.jit(jax.value_and_grad(cost_of_gains()))
    gains = jnp.array([[50.0, 50.0], [5.0, 5.0]])
    for _ in range(20):
        value, slope = descend(gains)
        print(f"{float(value):.3e}  Kp {np.round(gains[0], 1)}  Kd {np.round(gains[1], 1)}")
        gains = gains * (1 - 0.2 * jnp.sign(slope))
