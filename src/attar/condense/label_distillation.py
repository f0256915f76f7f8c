"""Label distillation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.contract import Condenser, Descent, Inference, Loss, Needs, Task
from attar.condense.kernels import factorise
from attar.condense.source import Pixels, Source
from attar.core.registry import condenser
from attar.data import Data
from attar.infer.head import regressors, units
from attar.nets import Network
from attar.nets.learner import SGD, Adam, State
from attar.nets.losses import losses, targets
from attar.nets.objective import Objective, value_and_slope

SMOOTH = 0.9  #: of the moving average of accuracy
TRAINING = {"optimiser": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "constant"}


class LabelState(NamedTuple):
    """The network in training with its optimiser, the ridge classifier, and the watch for overfitting."""

    theta: Tensor
    first: Tensor
    second: Tensor
    steps: Tensor  #: since the last reset
    head: Tensor  #: ``(features, classes)``, the global ridge classifier
    average: float  #: moving average of accuracy on real batches
    best: float
    stale: int  #: steps without a better average
    length: int  #: steps until the last overfit, the recommended training; 0 before the first


@condenser(
    "label-distillation",
    about="learns labels of fixed examples",
    choose="labels only",
    takes="5 min",
    paper="Bohdal, Yang & Hospedales, Flexible Dataset Distillation: Learn Labels Instead of Images, 2020",
    learns="soft labels and the length of training",
    cost="a forward pass of a real batch, a few passes of the base examples",
)
@dataclass(frozen=True)
class LabelDistillation(Condenser):
    r"""Learn the labels of fixed base examples, while a network trains on them.

    With ``order=ridge``, a ridge regression from the network's features :math:`\varphi` gives labels a gradient without
    second derivatives:

    .. math:: W_l = \Phi^\top (\Phi \Phi^\top + \lambda I)^{-1} \tilde Y, \quad
        W \leftarrow (1 - \alpha) W + \alpha W_l, \quad \min_{\tilde Y} L(\varphi_\theta(T)\, W)

    With ``order=second``, labels are differentiated through one step of the network:
    :math:`\min_{\tilde Y} L(T; \theta - \alpha \nabla L(\tilde X, \tilde Y; \theta))`. The network then takes an Adam
    step on the base examples and starts anew when the moving average of its accuracy stops improving; the time that
    this took is the recommended number of training steps.
    """

    order: Literal["ridge", "second"] = Field(default="ridge", description="how labels get their gradient")
    alpha: float = Field(
        default=0.01, gt=0, le=1, description="step of the ridge classifier, or of the network (second)"
    )
    ridge: float = Field(default=0.1, gt=0, description="λ, in units of the kernel's mean diagonal")
    scale: float = Field(default=10.0, gt=0, description="factor from ridge regression to logits")
    net_lr: float = Field(default=1e-3, gt=0, description="learning rate of the network")
    minibatch: int = Field(default=50, ge=1, description="base examples a step; all if there are fewer")
    batch: int = Field(default=1024, ge=1, description="real examples a step")
    patience: int = Field(default=50, ge=1, description="steps without a better average before the network is reset")
    labels: Literal["soft", "targets"] = Field(
        default="soft", description="soft: probabilities; targets: any numbers, as regression takes them"
    )
    objective: str = Field(default="cross-entropy", description="loss on the real batch and of the network")

    descent: ClassVar[Descent] = Descent(steps=2000, optimiser="adam", lr=0.02)
    needs: ClassVar[Needs] = Needs(linear=True, base=True)

    def __post_init__(self) -> None:
        losses(self.objective)

    @property
    def inference(self) -> Inference:
        """Training by Adam, as the labels were learnt for."""
        return Inference(training={**TRAINING, "lr": self.net_lr, "batch": self.minibatch, "loss": self.objective})

    def source(self, start: Data, gen: Generator) -> Source:
        return Pixels(start, self.labels, pixels=False)

    def init(self, task: Task, gen: Generator) -> LabelState:
        return self._reset(task, gen, 0)

    def recommend(self, state: LabelState) -> Mapping[str, Any]:
        """Training as long as it took the network to overfit."""
        return {"steps": max(1, state.length or int(state.steps))}

    def loss(self, syn: Data, state: LabelState, task: Task, gen: Generator) -> Loss:
        real, base = task.data.sample(self.batch, gen), syn.sample(self.minibatch, gen)
        state = self._train(syn.sample(self.minibatch, gen), state, task)
        if self.order == "ridge":
            head = (1 - self.alpha) * state.head + self.alpha * self._fitted(base, state.theta, task)
            logits = self.scale * _features(task.network, state.theta, real.x).detach() @ head
        else:
            head, learner = state.head, SGD(self.alpha)
            slope = Objective(task.network, self.objective).gradient(state.theta, base, graph=True)
            logits = task.network(learner.step(learner.init(state.theta), slope).theta, real.x)
        value = losses(self.objective)(logits, real.y).mean()
        right = float((logits.detach().argmax(1) == real.hard).float().mean())
        state = self._watch(state._replace(head=head.detach()), right)
        metrics = {"batch_accuracy": torch.tensor(right), "training_length": torch.tensor(state.length)}
        if state.stale >= self.patience:
            state = self._reset(task, gen, int(state.steps))
        return Loss(value.to(syn.y.dtype), state, metrics)

    def _fitted(self, base: Data, theta: Tensor, task: Task) -> Tensor:
        """The ridge regression of labels on features, W_l, differentiable in the labels."""
        phi = _features(task.network, theta, base.x).detach()
        lower, _ = factorise(phi @ phi.T, self.ridge)
        return phi.T @ torch.cholesky_solve(targets(base.y, task.classes), lower)

    def _train(self, base: Data, state: LabelState, task: Task) -> LabelState:
        """A step of the network on base examples with the labels as they are now; none before the first labels."""
        base, theta = Data(base.x, base.y.detach(), spec=base.spec), state.theta.detach()

        def value(at: Tensor) -> Tensor:
            logits = self.scale * _features(task.network, at, base.x) @ state.head
            return losses(self.objective)(logits, base.y.to(logits)).mean()

        second = self.order == "second"
        objective = Objective(task.network, self.objective)
        slope = objective.gradient(theta, base) if second else value_and_slope(value, theta)[1]
        before = State(theta, state.first, state.second, state.steps)
        return state._replace(**Adam(self.net_lr).step(before, slope)._asdict())

    def _watch(self, state: LabelState, right: float) -> LabelState:
        """The moving average with one more accuracy, and how long it has not improved."""
        average = right if int(state.steps) <= 1 else SMOOTH * state.average + (1 - SMOOTH) * right
        better = average > state.best
        best, stale = (average, 0) if better else (state.best, state.stale + 1)
        return state._replace(average=average, best=best, stale=stale)

    def _reset(self, task: Task, gen: Generator, length: int) -> LabelState:
        """A new network, which has not been trained."""
        start = Adam(self.net_lr).init(task.network.init(gen).to(task.data.device))
        head = torch.zeros(len(units(task.network)), task.classes, dtype=torch.float64, device=task.data.device)
        return LabelState(*start, head, 0.0, 0.0, 0, length)


def _features(network: Network, theta: Tensor, x: Tensor) -> Tensor:
    return regressors(network, network.features(theta, x))
