"""The last layer's posterior in closed form."""

from __future__ import annotations

from collections.abc import Iterable
from math import log, pi, sqrt
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from attar.data.noise import normal
from attar.infer.potential import Prior
from attar.nets import Network
from attar.nets.layers import with_ones


class LastLayer(NamedTuple):
    r"""The optimal Gaussian over the last layer, computed through n × n matrices, never h × h.

    .. math:: q(w_j) = N(m_j, V), \quad V = \Big(\rho I + \tfrac\gamma\beta \Phi^\top \Phi\Big)^{-1}
        = \tfrac1\rho \big(I - \Phi^\top K^{-1} \Phi\big), \quad
        m = \Phi^\top K^{-1} \hat y, \quad K = \Phi \Phi^\top + \tfrac{\rho\beta}\gamma I

    A row of :math:`\Phi` and :math:`\hat y` with weight w is multiplied by :math:`\sqrt w`.
    """

    phi: Tensor  #: (n, h)
    factor: Tensor  #: (n, n), the Cholesky factor of K
    targets: Tensor  #: (n, classes)
    rho: float
    ridge: float

    @staticmethod
    def fit(phi: Tensor, targets: Tensor, rho: float, ridge: float) -> LastLayer:
        r"""Fit to features and targets; ``ridge`` is :math:`\rho\beta/\gamma`."""
        gram = phi @ phi.T + ridge * torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
        return LastLayer(phi, torch.linalg.cholesky(gram), targets, rho, ridge)

    @staticmethod
    def of_many(parts: Iterable[tuple[Tensor, Tensor]], rho: float, ridge: float) -> LastLayer:
        r"""The same for more rows than features, in parts: :math:`\Phi^\top \Phi = R^\top R`: the h rows of R
        with targets :math:`R^{-\top} \Phi^\top \hat y` have the same posterior.
        """
        gram, cross = (sum(both, torch.zeros(())) for both in zip(*((p.T @ p, p.T @ y) for p, y in parts), strict=True))
        gram = gram + 1e-12 * gram.trace() * torch.eye(len(gram)).to(gram)  # for features that are always zero
        lower = torch.linalg.cholesky(gram)
        return LastLayer.fit(lower.T, torch.linalg.solve_triangular(lower, cross, upper=False), rho, ridge)

    @property
    def mean(self) -> Tensor:
        """The means of all classes, ``(h, classes)``."""
        return self._pull(self.targets)

    def variance(self, phi: Tensor) -> Tensor:
        r""":math:`\varphi^\top V \varphi`, the variance of each logit, of every row of ``phi``."""
        half: Tensor = torch.linalg.solve_triangular(self.factor, self.phi @ phi.T, upper=False)
        return (phi.square().sum(1) - half.square().sum(0)) / self.rho

    def kl(self) -> Tensor:
        r"""KL divergence from the prior, over all classes, by the determinant and trace identities.

        .. math:: \mathrm{KL}[q, p] = \tfrac12 \sum_j \Big( \rho \|m_j\|^2 - \mathrm{tr}(\Phi \Phi^\top K^{-1})
            + \log |K| - n \log \tfrac{\rho\beta}\gamma \Big)
        """
        gram = self.factor @ self.factor.T - self.ridge * torch.eye(len(self.factor)).to(self.factor)
        pulled = torch.cholesky_solve(self.targets, self.factor)
        length = self.rho * (pulled * (gram @ pulled)).sum()
        volume = 2 * self.factor.diagonal().log().sum() - len(gram) * log(self.ridge)
        spread = volume - (gram * torch.cholesky_inverse(self.factor)).sum()
        return (length + self.targets.shape[1] * spread) / 2

    def sample(self, gen: Generator) -> Tensor:
        r"""Sample weights ``(h, classes)`` by Matheron's rule: a draw from the prior, corrected by the data.

        .. math:: w = w_0 + \Phi^\top K^{-1} (\hat y - \Phi w_0 - \epsilon), \quad
            w_0 \sim N(0, I/\rho), \; \epsilon \sim N(0, I \beta/\gamma)
        """
        first = self._noise(self.phi.shape[1], gen) / sqrt(self.rho)
        error = self._noise(len(self.phi), gen) * sqrt(self.ridge / self.rho)
        return first + self._pull(self.targets - self.phi @ first - error)

    def _pull(self, residual: Tensor) -> Tensor:
        return self.phi.T @ torch.cholesky_solve(residual, self.factor)

    def _noise(self, rows: int, gen: Generator) -> Tensor:
        return normal(self.phi.new_empty(rows, self.targets.shape[1]), gen)


def mean_field(mean: Tensor, variance: Tensor) -> Tensor:
    r"""Logits whose softmax approximates the average over Gaussian logits (MacKay, Neural Computation 1992).

    .. math:: E[\mathrm{softmax}(z)] \approx \mathrm{softmax}\Big(\frac{\mu}{\sqrt{1 + \pi \sigma^2 / 8}}\Big)
    """
    return mean / (1 + pi / 8 * variance).sqrt()[:, None]


def units(network: Network) -> Tensor:
    r"""The prior standard deviation of every weight into a logit, :math:`h^{-1/2}`, the bias included."""
    return Prior(network).std[network.head_index()[0]].double()


def regressors(network: Network, features: Tensor) -> Tensor:
    """Features in the prior's units, in float64, with an appended one if the last layer has a bias."""
    return _regressors(features, units(network).to(features.device))


def _regressors(features: Tensor, width: Tensor) -> Tensor:
    return with_ones(features, len(width)).to(width) * width


class Heads(NamedTuple):
    """The Gaussian last layers of several networks, stacked: what prediction needs of each."""

    phi: Tensor  #: (draws, n, h), features of the examples in the prior's units
    factor: Tensor  #: (draws, n, n)
    targets: Tensor  #: (draws, n, classes)
    units: Tensor  #: (h,), the prior standard deviation of every weight
    rho: Tensor  #: ()
    scale: Tensor  #: (), from regression on labels to logits
    ridge: Tensor  #: ()

    def of(self, draw: int) -> LastLayer:
        """One of them."""
        return LastLayer(self.phi[draw], self.factor[draw], self.targets[draw], float(self.rho), float(self.ridge))

    def variance(self, draw: int, features: Tensor) -> Tensor:
        """The variance of every logit, for rows of the network's features."""
        variance = self.of(draw).variance(_regressors(features, self.units)).clamp_min(0)
        return (self.scale**2 * variance).to(features)

    def weight(self, draw: int, gen: Generator) -> Tensor:
        """A sample of one network's last layer, ``(classes, h)``."""
        return (self.scale * self.units[:, None] * self.of(draw).sample(gen)).T
