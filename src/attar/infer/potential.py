"""The potential of samplers: the negative log posterior, up to a constant."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Generator, Tensor

from attar.data import Data
from attar.data.batches import Minibatches
from attar.nets import Network
from attar.nets.objective import Objective
from attar.nets.weightnorm import LENGTH, direction


class Potential(Protocol):
    """A function of parameter vectors, for several chains at once."""

    def value(self, theta: Tensor) -> Tensor:
        """U of every row of ``(chains, p)``, exactly: ``(chains,)``."""
        ...

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        """The gradient of U at every row, or an unbiased estimate of it from a minibatch: ``(chains, p)``."""
        ...


class Prior:
    r"""Independent Gaussians, scaled per layer so that activations keep their scale from layer to layer.

    .. math:: \pi_0(\theta) = \prod_k N(\theta_k; \mu_k, (s\, \sigma_k)^2), \quad \sigma_k = \text{fan-in}^{-1/2}

    with :math:`\mu_k = 1` for the gains of normalisation layers and cosine classifiers, :math:`\mu_k = s` for the
    lengths g of normalised weights :math:`g V / \|V\|`, which is about the length of a row of plain weights, and 0
    elsewhere. Biases and lengths have the fan-in of their layer, and gains and biases of normalisation that of the
    layer before. PyTorch's own initialisation is as wide as this with :math:`s = 3^{-1/2}`.
    """

    def __init__(self, network: Network, scale: float = 1.0) -> None:
        means, widths, width = [], [], scale
        parts = network.unflatten(torch.zeros(network.size))
        for name, part in parts.items():
            matrix = parts.get(direction(name), part)  # normalised weights come after their bias
            if matrix.ndim > 1:
                width = scale * matrix[0].numel() ** -0.5
            gain = float(part.ndim == 1 and name.endswith(("weight", "gain")))
            means.append(torch.full((part.numel(),), scale if name.endswith(LENGTH) else gain))
            widths.append(torch.full((part.numel(),), width))
        self.mean, self.std = torch.cat(means), torch.cat(widths)
        self._precision = self.std**-2
        self._pull = -self._precision * self.mean

    def whiten(self, theta: Tensor) -> Tensor:
        """Parameters in units of the prior."""
        return (theta - self.mean.to(theta)) / self.std.to(theta)

    def unwhiten(self, z: Tensor) -> Tensor:
        """Parameters from units of the prior."""
        return torch.addcmul(self.mean.to(z), self.std.to(z), z)

    def minus_log(self, theta: Tensor) -> Tensor:
        r""":math:`\tfrac12 \sum_k ((\theta_k - \mu_k) / s\sigma_k)^2` of every row."""
        return self.whiten(theta).square().sum(-1) / 2

    def gradient(self, theta: Tensor) -> Tensor:
        """The gradient of ``minus_log``."""
        return torch.addcmul(self._pull.to(theta), self._precision.to(theta), theta)


class NetworkPotential:
    r"""The potential of a network's posterior.

    .. math:: U(\theta) = -\frac{n_\text{eff}}{\hat n} \sum_i w_i \log p(y_i \mid x_i, \theta) - \log \pi_0(\theta)

    Args:
        network: The network.
        data: The :math:`\hat n` examples; weights count relative to their mean.
        examples: :math:`n_\text{eff}`, the number of examples that the data represents; by default its own.
        prior: The prior.
        batch: Examples per gradient; all if there are fewer.
        augment: Augmentation of the batches.
        loss: The name of the loss used as negative log-likelihood.
    """

    def __init__(
        self,
        network: Network,
        data: Data,
        prior: Prior,
        *,
        examples: float | None = None,
        batch: int = 256,
        augment: str = "none",
        loss: str = "cross-entropy",
    ) -> None:
        self.objective, self.batches, self.prior = Objective(network, loss), Minibatches(data, batch, augment), prior
        self.examples = float(len(data)) if examples is None else examples

    def value(self, theta: Tensor) -> Tensor:
        with torch.no_grad():
            return self.examples * self.objective.value(theta, self.batches.all()) + self.prior.minus_log(theta)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        likelihood = self.objective.gradient(theta, self.batches.draw(len(theta), gen))
        return self.prior.gradient(theta).add_(likelihood, alpha=self.examples)


class Whitened:
    r"""A potential in units in which one step size fits all layers and any number of examples.

    .. math:: z = (\theta - \mu) / s\sigma, \qquad U(\mu + s\sigma z) / n

    Its distribution at temperature T/n is that of the potential at T.

    Args:
        potential: U.
        prior: Its mean and widths are the units of z.
        examples: n.
    """

    def __init__(self, potential: Potential, prior: Prior, examples: float = 1.0) -> None:
        self.potential, self.prior, self.examples = potential, prior, examples
        self._units = prior.std / examples

    def value(self, theta: Tensor) -> Tensor:
        return self.potential.value(self.prior.unwhiten(theta)) / self.examples

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        return self._units.to(theta) * self.potential.gradient(self.prior.unwhiten(theta), gen)
