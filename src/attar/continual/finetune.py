"""Fine-tuning from the last stage: more outputs, and a distillation loss on the old ones."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor
from torch.nn.functional import cosine_similarity

from attar.core.errors import Diverged
from attar.data import Data
from attar.data.batches import Minibatches
from attar.nets import Network
from attar.nets.losses import losses
from attar.nets.objective import value_and_slope
from attar.nets.train import Training, rate

Kind = Literal["logits", "features"]  #: what a distillation keeps


class Distilled:
    r"""The loss of fine-tuning (Li & Hoiem, ECCV 2016; Liu et al., Mnemonics Training, CVPR 2020).

    .. math:: L(\theta) = (1 - \lambda) \tfrac1n \sum_i \ell(f_\theta(x_i), y_i)
        + \lambda T^2 \tfrac1n \sum_i KL\big(p_{\theta'}^T(x_i) \,\|\, p_\theta^T(x_i)\big)

    where :math:`p^T` is the softmax of the logits of old classes divided by the temperature T, and :math:`\theta'` are
    the parameters after the last stage. With features :math:`\phi`, the second term is the less-forget constraint of
    LUCIR (Hou et al., CVPR 2019): :math:`\lambda \tfrac1n \sum_i (1 - \cos(\phi_{\theta'}(x_i), \phi_\theta(x_i)))`.

    Args:
        network: The network, with outputs for old and new classes; old ones come first.
        teacher: The network of the last stage.
        old: Its parameters, ``(p,)``.
        weight: :math:`\lambda`.
        temperature: T.
        loss: The loss of an example, by name.
        kind: ``logits`` or ``features``.
    """

    def __init__(
        self,
        network: Network,
        teacher: Network,
        old: Tensor,
        weight: float,
        temperature: float,
        loss: str,
        kind: Kind = "logits",
    ) -> None:
        self.network, self.teacher, self.old, self.kind = network, teacher, old, kind
        self.weight, self.temperature, self._each = weight, temperature, losses(loss)

    def value(self, theta: Tensor, batch: Data) -> Tensor:
        """The loss of one parameter vector, ``()``."""
        logits = self.network(theta, batch.x)
        each = self._each(logits, batch.y)
        fit = (each if batch.weights is None else batch.weights * each).mean()
        if not self.weight:
            return fit
        gap = self._turned(theta, batch.x) if self.kind == "features" else self._apart(logits, batch.x)
        return (1 - self.weight) * fit + self.weight * gap

    def _apart(self, logits: Tensor, x: Tensor) -> Tensor:
        with torch.no_grad():
            before = (self.teacher(self.old, x) / self.temperature).log_softmax(1)
        now = (logits[:, : self.teacher.classes] / self.temperature).log_softmax(1)
        return self.temperature**2 * (before.exp() * (before - now)).sum(1).mean()

    def _turned(self, theta: Tensor, x: Tensor) -> Tensor:
        with torch.no_grad():
            before = self.teacher.features(self.old, x)
        return (1 - cosine_similarity(before, self.network.features(theta, x))).mean()

    def gradient(self, theta: Tensor, batch: Data, *, graph: bool = False) -> Tensor:
        """The gradient in theta, ``(p,)``."""
        return value_and_slope(lambda at: self.value(at, batch), theta, graph)[1]


def widened(old: Network, theta: Tensor, new: Network, gen: Generator) -> Tensor:
    """Parameters ``(p,)`` of a network with more outputs: those of the old one, and fresh ones for new outputs."""
    fresh = new.init(gen)
    fresh[_body(new, theta)] = theta[_body(old, theta)]
    fresh[new.outputs()[: old.classes].to(theta.device)] = theta[old.outputs().to(theta.device)]
    return fresh


def narrowed(wide: Network, theta: Tensor, few: Network, places: Tensor) -> Tensor:
    """Parameters ``(k, p)`` of networks with fewer outputs, those at ``places`` of the wide ones."""
    cut = theta.new_empty(len(theta), few.size)
    cut[:, _body(few, theta)] = theta[:, _body(wide, theta)]
    cut[:, few.outputs().to(theta.device)] = theta[:, wide.outputs()[places].to(theta.device)]
    return cut


def _body(network: Network, theta: Tensor) -> Tensor:
    """Which parameters do not belong to a single output, ``(p,)``."""
    shared = torch.ones(network.size, dtype=torch.bool, device=theta.device)
    shared[network.outputs().flatten().to(theta.device)] = False
    return shared


def finetuned(objective: Distilled, data: Data, training: Training, start: Tensor, gen: Generator) -> Tensor:
    """Train one network from ``start``, ``(p,)``."""
    learner, batches = training.learner, Minibatches(data, training.batch, training.augment)
    state = learner.init(start)
    for step in range(training.steps):
        drawn = batches.draw(1, gen)
        batch = drawn if isinstance(drawn, Data) else drawn[0]
        slope = objective.gradient(state.theta, batch)
        state = learner.step(state, slope, rate(training.lr, training.schedule, step, training.steps))
    if not bool(torch.isfinite(state.theta).all()):
        raise Diverged(f"Fine-tuning diverged: try a smaller learning rate than {training.lr}.")
    return state.theta
