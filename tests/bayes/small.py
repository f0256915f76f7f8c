"""A small problem that networks learn at once, and experts on it."""

from pathlib import Path

import torch

from attar import Training, experts
from attar.condense.contract import Condenser, Loss, Task
from attar.condense.source import Pixels
from attar.experts import Schedule, Trajectories
from attar.nets import network
from tests.known import gaussians, generator

DATA = gaussians(16)
NET = network("mlp-d1w8", DATA.shape, DATA.classes)
TRAJECTORIES, EPOCHS = 3, 4


def train_experts(folder: Path) -> Trajectories:
    budget = Training(batch=16, lr=0.05, schedule="constant")
    return experts(DATA, NET, Schedule(TRAJECTORIES, EPOCHS, budget), folder=folder)


def thetas(n: int = 3) -> torch.Tensor:
    return torch.stack([NET.init(generator(seed)) for seed in range(n)])


def check_learns_from_experts(method: Condenser, store: Trajectories) -> Loss:
    """The objective pulls at the examples, and its metrics name an expert that exists."""
    task = Task(DATA, NET, DATA.classes, store)
    source = Pixels(DATA.sample_per_class(1, generator()), scalars={"step_size": 0.02})
    loss = method.loss(source(), method.init(task, generator()), task, generator(1))
    loss.value.backward()
    assert source.x.grad is not None
    assert float(source.x.grad.norm()) > 0
    assert 0 <= int(loss.metrics["trajectory"]) < TRAJECTORIES
    assert 0 <= int(loss.metrics["epoch"]) <= EPOCHS
    return loss
