"""Variational inference of the last layer in closed form."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from attar.data import Data
from attar.infer.contract import Draws
from attar.infer.curvature import homogeneous
from attar.infer.potential import Prior
from attar.nets import Network
from attar.nets.train import Objective, Training, train
from attar.registry import sampler


class LastLayer(NamedTuple):
    r"""The best Gaussian over the last layer, with no matrix of h × h numbers: all goes through n × n.

    .. math:: q(w_j) = N(m_j, V), \quad V = \Big(\rho I + \tfrac\gamma\beta \Phi^\top \Phi\Big)^{-1}
        = \tfrac1\rho \big(I - \Phi^\top K^{-1} \Phi\big), \quad
        m = \Phi^\top K^{-1} \hat y, \quad K = \Phi \Phi^\top + \tfrac{\rho\beta}\gamma I

    A row of :math:`\Phi` and :math:`\hat y` that counts w times is multiplied by :math:`\sqrt w`.
    """

    phi: Tensor  #: (n, h)
    factor: Tensor  #: (n, n), the Cholesky factor of K
    targets: Tensor  #: (n, classes)
    rho: float
    ridge: float

    @staticmethod
    def fit(phi: Tensor, targets: Tensor, rho: float, ridge: float) -> LastLayer:
        r"""From features and targets, where ``ridge`` is :math:`\rho\beta/\gamma`."""
        gram = phi @ phi.T + ridge * torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
        return LastLayer(phi, torch.linalg.cholesky(gram), targets, rho, ridge)

    @property
    def mean(self) -> Tensor:
        """The means of all classes, ``(h, classes)``."""
        return self._pull(self.targets)

    def variance(self, phi: Tensor) -> Tensor:
        r""":math:`\varphi^\top V \varphi`, the variance of each logit, of every row of ``phi``."""
        half: Tensor = torch.linalg.solve_triangular(self.factor, self.phi @ phi.T, upper=False)
        return (phi.square().sum(1) - half.square().sum(0)) / self.rho

    def sample(self, gen: Generator) -> Tensor:
        r"""Weights ``(h, classes)``, by Matheron's rule: draw from the prior, then move as the data says.

        .. math:: w = w_0 + \Phi^\top K^{-1} (\hat y - \Phi w_0 - \epsilon), \quad
            w_0 \sim N(0, I/\rho), \; \epsilon \sim N(0, I \beta/\gamma)
        """
        first = self._noise(self.phi.shape[1], gen) / sqrt(self.rho)
        error = self._noise(len(self.phi), gen) * sqrt(self.ridge / self.rho)
        return first + self._pull(self.targets - self.phi @ first - error)

    def _pull(self, residual: Tensor) -> Tensor:
        return self.phi.T @ torch.cholesky_solve(residual, self.factor)

    def _noise(self, rows: int, gen: Generator) -> Tensor:
        shape = (rows, self.targets.shape[1])
        return torch.randn(shape, generator=gen, device=gen.device, dtype=self.phi.dtype)


@sampler(
    "last-layer-vi",
    paper="Lee, Lee & Lee, Variational Bayesian Pseudo-Coreset, ICLR 2025",
    cost="one training a draw, and n³ of the examples",
)
@dataclass(frozen=True)
class LastLayerVI:
    r"""Train a network a draw, and draw its last layer from the posterior under a Gaussian likelihood.

    .. math:: \hat y_i = e_{y_i} - \tfrac1C \sim N(W^\top \varphi(x_i), \gamma^{-1} I), \quad W \sim N(0, \rho^{-1} I),
        \quad \min_q E_q[-\log p(\hat y \mid W)] + \beta\, \mathrm{KL}[q(W), p(W)]

    on the features of the examples divided by the root of their number, in float64. A regression on labels gives no
    logits, so what it predicts is multiplied by ``scale``. That is an option, not fitted: features that were trained
    on the labels predict left-out ones far too well, and leave-one-out then asks for a scale of hundreds, where
    validation on digits wants about 10 (with 10 examples a class; with one it has nothing to go by).
    """

    rho: float = Field(default=1.0, gt=0, description="precision of the prior")
    beta: float = Field(default=1.0, gt=0, description="weight of the prior: 1 is the posterior, less is colder")
    gamma: float = Field(default=100.0, gt=0, description="precision of the Gaussian likelihood")
    scale: float = Field(default=10.0, gt=0, description="from regression on labels to logits")

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        theta = train(network, data, training, gen, draws, start)
        index = network.head_index().to(theta.device)
        units = Prior(network).std.to(theta.device)[index[0]].double()  # 1/√h, the bias with it
        root = Objective(network, data, training.batch).weights.double().sqrt()[:, None]
        y = data.y.double() if data.y.ndim == 2 else one_hot(data.y, network.classes).double()
        targets = root * (y - 1 / network.classes)
        for row in theta:
            parts = [network.features(row, x).detach().double() for x in data.x.split(training.batch)]
            phi = homogeneous(torch.cat(parts), index) * units
            fitted = LastLayer.fit(root * phi, targets, self.rho, self.rho * self.beta / self.gamma)
            weight = fitted.sample(gen) * units[:, None]
            row[index] = (self.scale * weight).T.to(row)
        return Draws(network, theta, data.domain)
