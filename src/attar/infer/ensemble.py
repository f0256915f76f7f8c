"""Deep ensembles."""

from __future__ import annotations

from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.registry import sampler
from attar.data import Data
from attar.infer.contract import Draws, Sampler
from attar.infer.divide import trained
from attar.nets import Network
from attar.nets.train import Training


@sampler(
    "ensemble",
    about="networks trained independently",
    choose="the default",
    takes="2 min",
    paper="Lakshminarayanan, Pritzel & Blundell, Simple and Scalable Predictive Uncertainty, NeurIPS 2017",
    cost="one training per draw",
)
@dataclass(frozen=True)
class Ensemble(Sampler):
    r"""Each draw is a mode of the posterior, found by training from its own initialisation.

    .. math:: \theta_s = \arg\min_\theta -\tfrac1n \sum_i w_i \log p(y_i \mid x_i, \theta)
        + \tfrac\lambda2 \|\theta\|^2, \quad \theta_s^{(0)} \sim p_0

    with weights :math:`w_i` of mean one.
    """

    def infer(
        self, data: Data, network: Network, training: Training, draws: int, gen: Generator, start: Tensor | None = None
    ) -> Draws:
        return Draws(network, trained(network, data, training, gen, draws, start), data.spec)
