"""Variational inference of the last layer in closed form."""

from __future__ import annotations

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.core.registry import sampler
from attar.data import Data, Image
from attar.infer.contract import Draws, Sampler
from attar.infer.divide import trained
from attar.infer.head import Heads, LastLayer, regressors, units
from attar.nets import Network
from attar.nets.losses import targets
from attar.nets.train import Training


@sampler(
    "last-layer-vi",
    about="Gaussian last layer, closed form",
    choose="well calibrated",
    takes="2 min",
    paper="Lee, Lee & Lee, Variational Bayesian Pseudo-Coreset, ICLR 2025",
    cost="one training per draw, and n³ operations for n examples",
)
@dataclass(frozen=True)
class LastLayerVI(Sampler):
    r"""Train one network per draw, and average over the posterior of its last layer under a Gaussian likelihood.

    .. math:: \hat y_i = e_{y_i} - \tfrac1C \sim N(W^\top \varphi(x_i), \gamma^{-1} I), \quad W \sim N(0, \rho^{-1} I),
        \quad \min_q E_q[-\log p(\hat y \mid W)] + \beta\, \mathrm{KL}[q(W), p(W)]

    on the features divided by the square root of their number, in float64. Regression on labels gives no logits, so
    predictions are multiplied by ``scale``. It is an option and is not fitted: the features were trained on the labels,
    so leave-one-out predictions are far too good and would choose a scale of hundreds, where validation on digits
    chooses about 10 (with 10 examples per class; with one there is nothing to leave out).
    """

    rho: float = Field(default=1.0, gt=0, description="precision of the prior")
    beta: float = Field(
        default=1.0, gt=0, description="weight of the KL term: 1 is the posterior, less is a cold posterior"
    )
    gamma: float = Field(default=100.0, gt=0, description="precision of the Gaussian likelihood")
    scale: float = Field(default=10.0, gt=0, description="factor from regression on labels to logits")
    flips: bool = Field(default=False, description="fit the last layer to the examples and their mirror images")
    average: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="decay of the running mean of parameters over training; 0 for none",
    )

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        theta = trained(network, data, training, gen, draws, start, self.average)
        data = _mirrored(data) if self.flips else data
        index = network.head_index().to(theta.device)
        width = units(network).to(theta.device)
        root = data.relative.double().sqrt()[:, None]
        y = root * targets(data.y, network.classes)
        ridge, fits = self.rho * self.beta / self.gamma, []
        for row in theta:
            features = (network.features(row, x).detach() for x in data.x.split(training.batch))
            rows = (r * regressors(network, f) for r, f in zip(root.split(training.batch), features, strict=True))
            if len(data) > len(width):
                fits.append(LastLayer.of_many(zip(rows, y.split(training.batch), strict=True), self.rho, ridge))
            else:
                fits.append(LastLayer.fit(torch.cat(list(rows)), y, self.rho, ridge))
            row[index] = (self.scale * width[:, None] * fits[-1].mean).T.to(row)
        rho, scale, small = (torch.tensor(value, dtype=torch.float64) for value in (self.rho, self.scale, ridge))
        phi, factor, aims = map(torch.stack, zip(*(fit[:3] for fit in fits), strict=True))
        return Draws(network, theta, data.spec, heads=Heads(phi, factor, aims, width, rho, scale, small))


def _mirrored(data: Data) -> Data:
    """The examples and their mirror images."""
    if not isinstance(data.spec.element, Image):
        raise AttarError("Only images can be mirrored: leave flips out.")
    weights = None if data.weights is None else data.weights.repeat(2)
    return Data(torch.cat([data.x, data.x.flip(3)]), torch.cat([data.y, data.y]), weights, data.spec)
