"""Laplace's approximation: a Gaussian at a mode, with the inverse curvature as covariance."""

from __future__ import annotations

from math import exp, log
from typing import Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.core.registry import sampler
from attar.data import Data
from attar.data.noise import normal
from attar.infer.contract import Draws, Sampler
from attar.infer.curvature import STRUCTURES, Mode
from attar.infer.potential import Prior
from attar.nets import Network
from attar.nets.train import Training, train

SMALLEST, LARGEST = 1e-8, 1e8  #: precisions that the criterion chooses from
#: What the notes hold in the place of a log evidence.
NO_EVIDENCE = (
    "not given: the network was trained with the weight decay of its training settings, so it is not "
    "the mode under the prior of this approximation, at which alone the evidence could be computed."
)


@sampler(
    "laplace",
    about="Gaussian around one trained network",
    choose="cheapest",
    takes="30 s",
    paper="Daxberger et al., Laplace Redux: Effortless Bayesian Deep Learning, NeurIPS 2021",
    cost="one training, and a gradient of every logit of every example (by default only of the last layer)",
)
@dataclass(frozen=True)
class Laplace(Sampler):
    r"""Train to a mode and draw from the Gaussian there.

    .. math:: q(\theta) = N(\theta^*, \Sigma), \quad
        \Sigma^{-1} = \tfrac{n_\text{eff}}{\hat n} \sum_i w_i J_i^\top \Lambda_i J_i
        + \delta\, \mathrm{diag}(\sigma)^{-2}

    with the prior's standard deviations :math:`\sigma` and one precision :math:`\delta`, which is fixed by default. If
    a network fits its few examples perfectly, the likelihood has no curvature left; ``evidence`` then chooses a
    :math:`\delta` near zero, and draws from so wide a Gaussian lose accuracy. The mode :math:`\theta^*` is that of the
    training settings, with their weight decay, not of the prior above. So no log evidence is given, and what
    ``evidence`` maximises, the formula of the evidence with :math:`\theta^*` in the place of the mode, is a criterion
    to choose :math:`\delta` by and not an evidence.

    The logits are linear in the last layer, so draws of ``last-layer`` predict exactly what the Gaussian implies. Draws
    of ``diagonal`` and ``kron`` go through the whole network, not through its linearisation at the mode: expect them
    to underfit unless the precision is 100 or more.
    """

    structure: Literal["last-layer", "diagonal", "kron"] = Field(
        default="last-layer",
        description="structure of the covariance: full over the last layer, diagonal, or Kronecker-factored",
    )
    precision: float = Field(
        default=10.0, gt=0, description="precision of the prior, in units of its per-layer standard deviations"
    )
    evidence: bool = Field(
        default=False,
        description="choose the precision by the formula of the evidence at the trained network: a criterion, not an "
        "evidence, as that network is not the mode under this prior",
    )
    examples: float | None = Field(
        default=None, gt=0, description="effective number of examples; by default that of the data"
    )

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        if training.loss != "cross-entropy":
            raise AttarError(
                f"laplace needs the loss cross-entropy, and this training has {training.loss}: use the sampler that "
                "the coreset was made for, or another."
            )
        theta = train(network, data, training, gen, 1, None if start is None else start[:1])
        prior = Prior(network)
        examples = float(len(data)) if self.examples is None else self.examples
        std, weights = prior.std.to(data.x.device), data.relative * examples / len(data)
        blocks = STRUCTURES[self.structure](Mode(network, theta[0], data.x, weights, std))
        values = torch.cat([block.values for block in blocks])
        index = torch.cat([block.index for block in blocks])
        distance = float(prior.whiten(theta[0].double())[index].square().sum())
        precision = best_precision(values, distance) if self.evidence else self.precision
        drawn = theta.repeat(draws, 1)
        for block in blocks:
            noise = normal(block.values.expand(draws, -1), gen)
            drawn[:, block.index] += (block.colour(noise, precision) * std[block.index]).to(drawn)
        return Draws(network, drawn, data.spec, {"precision": precision, "log_evidence": NO_EVIDENCE})


def gain(values: Tensor, distance: float, precision: float) -> float:
    r"""The criterion that chooses the precision, from the eigenvalues of the curvature.

    .. math:: -\tfrac\delta2 \|z^*\|^2 - \tfrac12 \sum_k \log\Big(1 + \frac{\lambda_k}\delta\Big)

    At the mode under the prior it would be the log evidence minus the log-likelihood.
    """
    return -precision * distance / 2 - float((values / precision).log1p().sum()) / 2


def best_precision(values: Tensor, distance: float) -> float:
    r"""The prior precision with the largest criterion, where :math:`\sum_k \lambda_k / (\lambda_k + \delta) =
    \delta \|z^*\|^2`: the left side falls with :math:`\delta` and the right side grows, so bisection finds it.
    """
    low, high = log(SMALLEST), log(LARGEST)
    for _ in range(60):
        middle = (low + high) / 2
        measured = float((values / (values + exp(middle))).sum())
        low, high = (middle, high) if measured > exp(middle) * distance else (low, middle)
    return exp((low + high) / 2)
