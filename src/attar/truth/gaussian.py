"""Gaussians and divergences between them, differentiable in the moments of both."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data.noise import normal


@dataclass(frozen=True)
class Gaussian:
    """A normal distribution: mean ``(d,)`` and covariance ``(d, d)``, best in float64."""

    mean: Tensor
    covariance: Tensor

    @staticmethod
    def standard(size: int, scale: float = 1.0) -> Gaussian:
        r""":math:`N(0, s^2 I)` in ``size`` dimensions, in float64."""
        return Gaussian(torch.zeros(size).double(), scale**2 * torch.eye(size).double())

    @staticmethod
    def of(draws: Tensor) -> Gaussian:
        """The Gaussian with the mean and covariance of draws ``(n, d)``."""
        if draws.ndim != 2 or len(draws) <= draws.shape[1]:
            raise AttarError(
                f"Moments need more draws than dimensions, got draws of shape {tuple(draws.shape)}: draw more."
            )
        centred = draws.double() - draws.double().mean(0)
        return Gaussian(draws.double().mean(0), centred.T @ centred / (len(draws) - 1))

    @property
    def factor(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        factor: Tensor = torch.linalg.cholesky(self.covariance)
        return factor

    @property
    def precision(self) -> Tensor:
        """The inverse of the covariance."""
        return torch.cholesky_inverse(self.factor)

    def sample(self, n: int, gen: Generator) -> Tensor:
        """``n`` draws, ``(n, d)``."""
        return self.mean + normal(self.mean.expand(n, -1), gen) @ self.factor.T

    def log_density(self, x: Tensor) -> Tensor:
        """The log density of every row of ``(n, d)``."""
        factor = self.factor
        white: Tensor = torch.linalg.solve_triangular(factor, (x - self.mean).T, upper=False)
        return -white.square().sum(0) / 2 - factor.diagonal().log().sum() - len(self.mean) / 2 * log(2 * pi)


def kl(p: Gaussian, q: Gaussian) -> Tensor:
    r"""The Kullback-Leibler divergence KL[p, q]: the information lost when q replaces p.

    .. math:: \mathrm{KL}[p, q] = \tfrac12 \Big(\mathrm{tr}(\Sigma_q^{-1} \Sigma_p) - d
        + (\mu_q - \mu_p)^\top \Sigma_q^{-1} (\mu_q - \mu_p) + \log \frac{|\Sigma_q|}{|\Sigma_p|}\Big)
    """
    ours, theirs = p.factor, q.factor
    ratio: Tensor = torch.linalg.solve_triangular(theirs, ours, upper=False)
    gap: Tensor = torch.linalg.solve_triangular(theirs, (q.mean - p.mean)[:, None], upper=False)
    stretch = theirs.diagonal().log().sum() - ours.diagonal().log().sum()
    return (ratio.square().sum() - len(p.mean) + gap.square().sum()) / 2 + stretch


def squared_w2(p: Gaussian, q: Gaussian) -> Tensor:
    r"""The squared 2-Wasserstein distance.

    .. math:: W_2^2 = \|\mu_p - \mu_q\|^2 + \mathrm{tr}\,\Sigma_p + \mathrm{tr}\,\Sigma_q
        - 2\, \mathrm{tr} (L_q^\top \Sigma_p L_q)^{1/2}, \quad \Sigma_q = L_q L_q^\top
    """
    both: Tensor = torch.linalg.eigvalsh(q.factor.T @ p.covariance @ q.factor)
    spread = p.covariance.trace() + q.covariance.trace() - 2 * both.clamp_min(0).sqrt().sum()
    return (p.mean - q.mean).square().sum() + spread


def divergence(approximation: Gaussian | Tensor, truth: Gaussian) -> dict[str, float]:
    """Divergences of a Gaussian, or of the Gaussian with the moments of draws ``(n, d)``, from the true posterior.

    Returns:
        ``kl`` is KL[truth, approximation], ``reverse_kl`` is KL[approximation, truth], ``w2`` the 2-Wasserstein
        distance. To optimise one of them, call ``kl`` or ``squared_w2``, which are differentiable.
    """
    ours = Gaussian.of(approximation) if isinstance(approximation, Tensor) else approximation
    return {
        "kl": float(kl(truth, ours)),
        "reverse_kl": float(kl(ours, truth)),
        "w2": float(squared_w2(ours, truth).clamp_min(0).sqrt()),
    }
