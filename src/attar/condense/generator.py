"""A source that is a generator network."""

from __future__ import annotations

from math import prod
from typing import Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import one_hot

from attar.condense.source import Source, Synthetic
from attar.core.errors import AttarError
from attar.core.streams import seed_of
from attar.data import Data, Image
from attar.nets.module import fresh
from attar.nets.weightnorm import normalise

Curriculum = Literal["noise", "all-shuffled", "shuffled-batches", "full"]


class Teacher(Source):
    r"""Examples :math:`x_i = G(z_i, y_i)` with fixed classes, the inner learning rate and momentum.

    Args:
        start: Gives the number of examples and their classes, in the order of training.
        curriculum: With ``noise``, z is drawn anew every step; otherwise it is learnt with the generator.
        steps: Inner steps, each with the same learnt rate.
        size: Numbers in z.
        width: Channels (images) or units (other data) of the generator.
        step_size: Learning rate to start from.
        momentum: Momentum to start from, between 0 and 1.
        normalised: Whether weights are :math:`g V / \|V\|`.
        gen: Draws the generator's parameters and z.
    """

    z: Tensor
    y: Tensor

    def __init__(
        self,
        start: Data,
        curriculum: Curriculum,
        steps: int,
        size: int,
        width: int,
        step_size: float,
        momentum: float,
        normalised: bool,
        gen: Generator,
    ) -> None:
        super().__init__()
        self.spec, self.steps, self.noisy = start.spec, steps, curriculum == "noise"
        self.seed = int(torch.randint(2**62, (), generator=gen, device=gen.device))
        self.register_buffer("y", start.hard.clone())
        z = self._noise(len(start), size, 0).to(start.device)
        if self.noisy:
            self.register_buffer("z", z)
        else:
            self.z = nn.Parameter(z)
        inputs, shape = size + start.classes, start.dense().x.shape[1:]
        images = isinstance(self.spec.element, Image)
        made = fresh(lambda: generator(inputs, shape, width, normalised, images=images), self.seed)
        self.network = made.to(start.device)
        self.log_rate = nn.Parameter(torch.tensor(step_size, device=start.device).log())
        self.logit_momentum = nn.Parameter(torch.tensor(momentum, device=start.device).logit(1e-6))

    def forward(self) -> Synthetic:
        made = self.network(torch.cat([self.z, one_hot(self.y, len(self.spec.target)).to(self.z)], 1))
        if isinstance(self.spec.element, Image):  # pixels between 0 and 1, scaled as the data is
            made = self.spec.transform.apply(made.sigmoid())
        rates = self.log_rate.exp().expand(self.steps)
        scalars = {"rates": rates, "net_momentum": self.logit_momentum.sigmoid()}
        return Synthetic(made, self.y, spec=self.spec, scalars=scalars)

    def renew(self, step: int) -> None:
        """New z for this step, where it is noise."""
        if self.noisy:
            self.z = self._noise(len(self.z), self.z.shape[1], step).to(self.z.device)

    def groups(self) -> dict[str, list[nn.Parameter]]:
        z = {} if self.noisy else {"inputs": [self.z] if isinstance(self.z, nn.Parameter) else []}
        return {"generator": list(self.network.parameters()), **z, "scalars": [self.log_rate, self.logit_momentum]}

    def extra(self) -> dict[str, Tensor]:
        """The generator and its inputs."""
        return {name: tensor.detach().clone() for name, tensor in self.state_dict().items()}

    def _noise(self, n: int, size: int, step: int) -> Tensor:
        return torch.randn(n, size, generator=torch.Generator().manual_seed(seed_of("z", self.seed, step)))


def generator(inputs: int, shape: torch.Size, width: int, normalised: bool, *, images: bool) -> nn.Sequential:
    """For images, a linear layer and two convolutions that each double the sides; else one hidden layer."""
    if images:
        channels, height, sides = int(shape[0]), int(shape[1]), int(shape[2])
        if height % 4 or sides % 4:
            raise AttarError(f"The generator makes images whose sides 4 divides, got {height}x{sides}: resize them.")
        layers: list[nn.Module] = [
            nn.Linear(inputs, 2 * width * (height // 4) * (sides // 4)),
            nn.LeakyReLU(0.1),
            nn.Unflatten(1, (2 * width, height // 4, sides // 4)),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width, channels, 3, padding=1),
        ]
    else:
        layers = [nn.Linear(inputs, width), nn.LeakyReLU(0.1), nn.Linear(width, prod(shape)), nn.Unflatten(1, shape)]
    if normalised:
        layers = [normalise(part) if isinstance(part, nn.Linear | nn.Conv2d) else part for part in layers]
    return nn.Sequential(*layers)
