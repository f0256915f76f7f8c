"""Variational Bayesian pseudo-coresets."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator
from torch.nn.functional import cross_entropy

from attar.condense.contract import REGRESSION, Condenser, Descent, Inference, Loss, Needs, Task
from attar.condense.source import Pixels, Source, Synthetic
from attar.core.registry import pseudo_coreset
from attar.data import Data, augment
from attar.infer.head import LastLayer, mean_field, regressors
from attar.nets import Network
from attar.nets.learner import Adam, State
from attar.nets.losses import targets
from attar.nets.objective import Objective

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
class VBPC(Condenser):
    r"""Learn examples whose last-layer posterior, in closed form, predicts the real data best.

    .. math:: \min_S \; \tfrac{n}{|B|} \sum_{i \in B}
        E_{q_S}\big[-\log \mathrm{softmax}_{y_i}(s\, W^\top \varphi(x_i))\big] + \beta_D\, \mathrm{KL}[q_S, p]

    divided by n, with the posterior :math:`q_S` of ``attar.infer.head.LastLayer`` and the mean-field average of a
    softmax over Gaussian logits. The features :math:`\varphi` are those of a network from a pool, divided by the root
    of their number; the network is then trained on S for one step with the Gaussian likelihood, and replaced by a new
    one after ``net_steps`` steps. The scale s that turns regression outputs into logits is learnt with the examples.
    """

    batch: int = Field(default=256, ge=1, description="real examples per step")
    pool: int = Field(default=10, ge=1, description="networks in training at a time")
    net_steps: int = Field(default=100, ge=1, description="steps before a network of the pool is replaced by a new one")
    net_lr: float = Field(default=1e-3, gt=0, description="learning rate of the pool's networks (Adam)")
    rho: float = Field(default=RHO, gt=0, description="precision of the last layer's prior")
    gamma: float = Field(default=RHO / RIDGE, gt=0, description="precision of the Gaussian likelihood of labels")
    beta_s: float = Field(default=1.0, gt=0, description="weight of the prior in the examples' posterior")
    beta_d: float = Field(default=1e-8, ge=0, description="weight of the divergence from the prior in the objective")
    strategy: str = Field(default="none", description="siamese augmentation of real and synthetic examples")

    descent: ClassVar[Descent] = Descent(
        steps=2000, optimiser="adam", lr=9e-3, label_lr=3e-3, scalar_lr=3e-2, schedule="cosine"
    )
    needs: ClassVar[Needs] = Needs(linear=True)

    def __post_init__(self) -> None:
        augment.parse(self.strategy)

    @property
    def inference(self) -> Inference:
        """Training as for the pool, then the last layer in closed form."""
        options = {"scale": SCALE, "rho": self.rho, "gamma": self.gamma, "beta": self.beta_s}
        return Inference("last-layer-vi", options, {**REGRESSION, "lr": self.net_lr})

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start, "targets", {"scale": SCALE})

    def init(self, task: Task, gen: Generator) -> State:
        """A pool of networks in training on the examples, ``(pool, p)``."""
        return Adam(self.net_lr).init(torch.stack([task.network.init(gen) for _ in range(self.pool)]))

    def loss(self, syn: Synthetic, state: State, task: Task, gen: Generator) -> Loss:
        device = gen.device
        pick = int(torch.randint(self.pool, (), generator=gen, device=device))
        theta, network = state.theta[pick], task.network
        real = task.data[torch.randint(len(task.data), (self.batch,), generator=gen, device=device)]
        omega = augment.draw(self.strategy, gen)
        x = omega(syn.x)
        with torch.no_grad():
            seen = regressors(network, network.features(theta, omega(real.x)))
        fitted = LastLayer.fit(
            regressors(network, network.features(theta, x)),
            targets(syn.y, task.classes),
            self.rho,
            self.rho * self.beta_s / self.gamma,
        )
        scale = syn.scalars["scale"]
        logits = mean_field(scale * (seen @ fitted.mean), scale**2 * fitted.variance(seen))
        nll = cross_entropy(logits.to(syn.x.dtype), real.y)
        divergence = fitted.kl().to(syn.x.dtype) / len(task.data)
        metrics = {"nll": nll.detach(), "divergence": divergence.detach(), "scale": scale.detach()}
        state = self._train(state, pick, replace(syn, x=x).detach(), network, gen)
        return Loss(nll + self.beta_d * divergence, state, metrics)

    def _train(self, pool: State, pick: int, batch: Data, network: Network, gen: Generator) -> State:
        """The pool after one training step of one network, or with that network replaced by a new one."""
        learner, one = Adam(self.net_lr), State(*(part[pick] for part in pool))
        if int(one.steps) + 1 == self.net_steps:
            one = learner.init(network.init(gen))
        else:
            one = learner.step(one, Objective(network, "squared").gradient(one.theta, batch))
        place = torch.tensor([pick], device=one.theta.device)
        return State(*(part.index_copy(0, place, new[None]) for part, new in zip(pool, one, strict=True)))
