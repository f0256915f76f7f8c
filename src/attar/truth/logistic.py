"""Bayesian logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from attar.core.errors import require
from attar.data import Data
from attar.data.noise import normal
from attar.truth.gaussian import Gaussian
from attar.truth.model import Model, weights_of


@dataclass(frozen=True)
class LogisticRegression(Model):
    r"""Two classes, 0 and 1.

    .. math:: \theta \sim N(\mu_0, \Sigma_0), \quad p(y_i = 1) = (1 + e^{-x_i^\top \theta})^{-1}

    Its posterior has no closed form, so the reference is a long run of another library's sampler.
    """

    prior: Gaussian

    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        return logsigmoid((2 * data.y - 1) * (theta @ data.x.T)) @ weights_of(data)

    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        """``n`` examples with standard normal inputs."""
        x = normal(theta.expand(n, -1), gen)
        coin = torch.rand(n, generator=gen, device=gen.device, dtype=theta.dtype)
        return Data(x, (coin < torch.sigmoid(x @ theta)).long())

    def reference(self, data: Data, gen: Generator, draws: int = 4000, warmup: int = 1000) -> Tensor:
        """Draws ``(draws, d)`` by the no-U-turn sampler of Pyro (Hoffman & Gelman, JMLR 2014), on the CPU."""
        mcmc = require("pyro.infer.mcmc", "reference")
        potential = self.potential(data)
        kernel = mcmc.NUTS(potential_fn=lambda at: potential.value(at["theta"][None])[0])
        run = mcmc.MCMC(kernel, draws, warmup, initial_params={"theta": self.prior.mean.clone()}, disable_progbar=True)
        seed = int(torch.randint(2**63 - 1, (), generator=gen, device=gen.device))
        with torch.random.fork_rng(devices=[]):  # Pyro only uses the global generator
            torch.default_generator.manual_seed(seed)
            run.run()
        found: Tensor = run.get_samples()["theta"]
        return found
