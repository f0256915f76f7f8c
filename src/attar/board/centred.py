"""Training on centred outputs by squared error, as the authors of RFAD train on their sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from attar.data import Data, Spec
from attar.data.data import soft
from attar.nets import Network, in_parts
from attar.nets.train import Trainer, Training

CHUNK = 1024


@dataclass(frozen=True)
class Centred:
    r"""Networks whose outputs at their own initial parameters are subtracted.

    .. math:: p(y \mid x) = \tfrac1S \sum_s \mathrm{softmax} (f_{\theta_s}(x) - f_{\theta_s^0}(x))
    """

    network: Network
    theta: Tensor  #: (draws, p)
    start: Tensor  #: (draws, p), the initial parameters
    spec: Spec

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        """Averaged class probabilities ``(n, classes)`` in float64."""
        return torch.cat([self._average(part) for part in in_parts(self.network, x, CHUNK)])

    def _average(self, x: Tensor) -> Tensor:
        pairs = zip(self.theta, self.start, strict=True)
        each = [(self.network(end, x) - self.network(first, x)).softmax(1).double() for end, first in pairs]
        return torch.stack(each).mean(0)

    def sample(self, n: int, gen: Generator) -> Tensor:
        """``n`` of the networks' parameters, with replacement."""
        return self.theta[torch.randint(len(self.theta), (n,), generator=gen)]

    def to(self, device: torch.device | str) -> Centred:
        """A copy on another device."""
        return replace(self, theta=self.theta.to(device), start=self.start.to(device))


def train_centred(
    data: Data,
    network: Network,
    training: Training,
    draws: int,
    gen: Generator,
    validation: Data,
    *,
    scale: float,
    every: int,
    patience: int,
) -> Centred:
    r"""Train ``draws`` networks one after another, each stopped early by its validation accuracy.

    .. math:: \min_\theta \; \tfrac{1}{2n} \sum_i \|f_\theta(x_i) - f_{\theta_0}(x_i) - a (y_i - \tfrac1C)\|^2

    Args:
        data: Examples, whose labels are regression targets or classes.
        network: The network.
        training: Training settings; its steps are the most that are taken, its loss must be squared.
        draws: Networks.
        gen: Random generator.
        validation: Examples that decide when to stop.
        scale: The factor a of the labels.
        every: Steps between looks at the validation accuracy.
        patience: Steps without a better one after which training stops.
    """
    found = [_one(data, network, training, gen, validation, scale, every, patience) for _ in range(draws)]
    theta, start = map(torch.stack, zip(*found, strict=True))
    return Centred(network, theta, start, data.spec)


def _one(
    data: Data,
    network: Network,
    training: Training,
    gen: Generator,
    validation: Data,
    scale: float,
    every: int,
    patience: int,
) -> tuple[Tensor, Tensor]:
    """The parameters with the best validation accuracy, and those at the start."""
    start, classes = network.init(gen), network.classes
    with torch.no_grad():
        first = network(start, data.x)
    # The loss subtracts 1/C from labels; outputs at the start become a part of them.
    shifted = replace(data, y=scale * (soft(data.y, classes) - 1 / classes) + first + 1 / classes)
    trainer = Trainer(network, shifted, training, start[None])
    best, seen, when = start, -1.0, 0
    for step in range(1, training.steps + 1):
        trainer.step(gen)
        if step % every == 0 or step == training.steps:
            now = Centred(network, trainer.theta, start[None], data.spec)
            right = float((now.predict(validation.x).argmax(1) == validation.hard).double().mean())
            if right > seen:
                best, seen, when = trainer.theta[0].clone(), right, step
            if step >= when + patience:
                break
    return best, start
