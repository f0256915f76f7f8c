"""Dataset condensation with gradient matching."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from attar.condense.contract import Descent, Loss, Task
from attar.data import Data
from attar.nets import Network
from attar.registry import condenser

PAPER_LOOPS = {1: (1, 1), 10: (10, 50), 50: (50, 10)}  # examples per class → (matches per network, steps between)


class DCState(NamedTuple):
    """The network under which gradients are matched, and how often it has been so far."""

    theta: Tensor
    matched: int


@condenser(
    "dc",
    paper="Zhao, Mopuri & Bilen, Dataset Condensation with Gradient Matching, ICLR 2021",
    learns="pixels",
    cost="gradients of a real batch a class, and second derivatives through the synthetic examples",
)
@dataclass(frozen=True)
class DC:
    r"""Match the gradients that real and synthetic examples of a class give, along training on the synthetic ones.

    .. math:: \min_S \; E_{\theta_0 \sim p_0} \sum_t \sum_c
        D\big(\nabla_\theta L(T_c; \theta_t), \nabla_\theta L(S_c; \theta_t)\big), \quad
        D(A, B) = \sum_l \sum_i \Big(1 - \frac{A^l_i \cdot B^l_i}{\|A^l_i\| \|B^l_i\|}\Big)

    over layers :math:`l` with weights and their output rows :math:`i`. After ``matches`` updates of :math:`S` a new
    :math:`\theta_0` is drawn; between two of them :math:`\theta` is trained on :math:`S` for ``net_steps`` steps.
    """

    batch: int = Field(default=256, ge=1, description="real examples per class and step")
    matches: int | None = Field(default=None, ge=1, description="matches before a new network; the paper's if not set")
    net_steps: int | None = Field(
        default=None, ge=0, description="network steps between matches; the paper's if not set"
    )
    net_lr: float = Field(default=0.01, gt=0, description="learning rate of the network")

    descent: ClassVar[Descent] = Descent(steps=1000, lr=0.1, momentum=0.5)

    def init(self, task: Task, gen: Generator) -> DCState:
        return DCState(task.network.init(gen), 0)

    def loss(self, syn: Data, state: DCState, task: Task, gen: Generator) -> Loss:
        matches, net_steps = self._loops(len(syn) // task.classes)
        theta, matched = state
        if matched == matches:
            theta, matched = task.network.init(gen), 0
        elif matched:  # the examples have moved since the last match, so this trains on the updated ones
            theta = self._train(theta, syn, task.network, net_steps)
        total = syn.x.new_zeros(())
        for c in range(task.classes):
            real = gradient(task.network, theta, task.data.sample_class(c, self.batch, gen))
            fake = gradient(task.network, theta, syn.of_class(c), graph=True)
            total = total + distance(task.network, real, fake)
        return Loss(total, DCState(theta, matched + 1), {"per_class": total.detach() / task.classes})

    def _loops(self, per_class: int) -> tuple[int, int]:
        matches, net_steps = PAPER_LOOPS[min(PAPER_LOOPS, key=lambda known: abs(known - per_class))]
        return self.matches or matches, net_steps if self.net_steps is None else self.net_steps

    def _train(self, theta: Tensor, syn: Data, network: Network, steps: int) -> Tensor:
        still = syn.map(Tensor.detach)
        for _ in range(steps):
            theta = theta - self.net_lr * gradient(network, theta, still)
        return theta


def gradient(network: Network, theta: Tensor, data: Data, graph: bool = False) -> Tensor:
    """The gradient of the mean cross-entropy with respect to ``theta``; with ``graph`` it can be differentiated."""
    theta = theta.detach().requires_grad_()
    loss = cross_entropy(network(theta, data.x), data.y)
    (g,) = torch.autograd.grad(loss, theta, create_graph=graph)
    return g


def distance(network: Network, a: Tensor, b: Tensor) -> Tensor:
    """One minus cosine, summed over layers with weights and their output rows (biases and norms do not count)."""
    layers = zip(network.unflatten(a).values(), network.unflatten(b).values(), strict=True)
    return torch.stack([_rows(u.flatten(1), v.flatten(1)) for u, v in layers if u.ndim > 1]).sum()


def _rows(u: Tensor, v: Tensor) -> Tensor:
    # The published 1e-6 damps rows whose gradients are next to nothing, which would else steer the examples.
    cosine: Tensor = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1) + 1e-6)
    return (1 - cosine).sum()
