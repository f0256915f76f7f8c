"""Variational Bayesian pseudo-coresets."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator
from torch.nn.functional import cross_entropy

from attar.condense.contract import REGRESSION, Descent, Inference, Loss, Task
from attar.condense.pool import Pool, Pooled
from attar.condense.source import Pixels, Source, Synthetic
from attar.core.registry import pseudo_coreset
from attar.data import Data
from attar.infer.head import LastLayer, mean_field

SCALE = 10.0  #: initial scale of the logits
RHO, RIDGE = 100.0, 0.01  # the prior's precision and ρβ/γ, of the method and of inference on its coresets


@pseudo_coreset(
    "vbpc",
    about="closed-form last layer",
    choose="best accuracy and NLL",
    takes="6 min",
    paper="Lee, Lee & Lee, Variational Bayesian Pseudo-Coreset, ICLR 2025",
    learns="pixels, soft labels and the scale of logits",
    cost="one forward pass of a real batch, two forward and backward passes of the synthetic examples",
)
@dataclass(frozen=True)
class VBPC(Pooled):
    r"""Learn examples whose last-layer posterior, in closed form, predicts the real data best.

    .. math:: \min_S \; \tfrac{n}{|B|} \sum_{i \in B}
        E_{q_S}\big[-\log \mathrm{softmax}_{y_i}(s\, W^\top \varphi(x_i))\big] + \beta_D\, \mathrm{KL}[q_S, p]

    divided by n, with the posterior :math:`q_S` of ``attar.infer.head.LastLayer`` and the mean-field average of a
    softmax over Gaussian logits. The features :math:`\varphi` are those of a network from a pool, divided by the root
    of their number; the network is then trained on S for one step with the Gaussian likelihood, and replaced by a new
    one after ``net_steps`` steps. The scale s that turns regression outputs into logits is learnt with the examples.
    """

    rho: float = Field(default=RHO, gt=0, description="precision of the last layer's prior")
    gamma: float = Field(default=RHO / RIDGE, gt=0, description="precision of the Gaussian likelihood of labels")
    beta_s: float = Field(default=1.0, gt=0, description="weight of the prior in the examples' posterior")
    beta_d: float = Field(default=1e-8, ge=0, description="weight of the divergence from the prior in the objective")

    descent: ClassVar[Descent] = Descent(
        steps=2000, optimiser="adam", lr=9e-3, label_lr=3e-3, scalar_lr=3e-2, schedule="cosine"
    )

    @property
    def inference(self) -> Inference:
        """Training as for the pool, then the last layer in closed form."""
        options = {"scale": SCALE, "rho": self.rho, "gamma": self.gamma, "beta": self.beta_s, "flips": self.flips}
        return Inference("last-layer-vi", options, {**REGRESSION, "lr": self.net_lr})

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(self._scaled(start), "targets", {"scale": SCALE})

    def loss(self, syn: Synthetic, state: Pool, task: Task, gen: Generator) -> Loss:
        seen, state = self.look(syn, state, task, gen)
        fitted = LastLayer.fit(seen.phi, seen.targets, self.rho, self.rho * self.beta_s / self.gamma)
        scale = syn.scalars["scale"]
        logits = mean_field(scale * (seen.real @ fitted.mean), scale**2 * fitted.variance(seen.real))
        nll = cross_entropy(logits.to(syn.x.dtype), seen.labels, reduction="sum") / self.batch
        divergence = fitted.kl().to(syn.x.dtype) / len(task.data)
        metrics = {"nll": task.share.total(nll.detach()), "divergence": divergence.detach(), "scale": scale.detach()}
        return Loss(nll + self.beta_d * divergence / task.share.size, state, metrics)
