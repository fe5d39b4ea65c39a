# SPDX-License-Identifier: Apache-2.0
"""A network that learns the part of measured torques that the model does not explain.

The "robot" has friction of a kind that the model lacks. The network sees q and qd; the model stays
unchanged, so that little is left to learn.
Run it: python examples/torch_residual.py
"""

from __future__ import annotations

import torch

import robot_dynamics as rd


def train(samples: int = 4000, epochs: int = 300) -> tuple[float, float]:
    """RMS torque error (N·m) on unseen states: of the model alone, and with the network."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    model = rd.functions(mechanism, "torch").torques
    n = len(mechanism.joint_names)

    def recorded(count: int):
        q, qd, qdd = 2 * torch.rand(3, count, n) - 1
        unknown = 4.0 * torch.tanh(8 * qd) * (1 + 0.5 * torch.cos(q)) * torch.exp(-(qd**2))
        return q, qd, model(q, qd, qdd), model(q, qd, qdd) + unknown + 0.05 * torch.randn(count, n)

    network = torch.nn.Sequential(
        torch.nn.Linear(2 * n, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
        torch.nn.Linear(64, n),
    )  # fmt: skip
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    q, qd, described, measured = recorded(samples)
    for _ in range(epochs):
        optimiser.zero_grad()
        residual = measured - described - network(torch.cat([q, qd], dim=-1))
        (residual**2).mean().backward()
        optimiser.step()
    with torch.no_grad():
        q, qd, described, measured = recorded(1000)
        learned = described + network(torch.cat([q, qd], dim=-1))
    return tuple(float(((measured - each) ** 2).mean().sqrt()) for each in (described, learned))


if __name__ == "__main__":
    before, after = train()
    print("RMS torque error on unseen states:")
    print(f"{before:.3f} N·m with the model alone, {after:.3f} N·m with the network")
