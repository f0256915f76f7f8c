"""Kernel inducing points."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.condense import kernels
from attar.condense.contract import REGRESSION, Condenser, Descent, Inference, Loss, NoState, Task
from attar.condense.kernels import KernelRidge
from attar.condense.source import Frozen, Labels, Pixels, Source
from attar.core.registry import condenser
from attar.data import Data, augment
from attar.nets.losses import targets


@condenser(
    "kip",
    about="learns for kernel regression",
    choose="for a kernel",
    takes="1 min",
    paper="Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021",
    learns="pixels, or targets, or both",
    cost="a kernel between a real batch and the synthetic examples, and the cube of their number",
)
@dataclass(frozen=True)
class KIP(Condenser):
    r"""Learn examples from which kernel ridge regression predicts the real ones.

    .. math:: \min_S \; E_{K, T} \; \tfrac{1}{2|T|}
        \Big\|\hat y_T - K_{TS} \Big(K_{SS} + \lambda \tfrac{\mathrm{tr} K_{SS}}{|S|} I\Big)^{-1} \hat y_S\Big\|^2,
        \quad \hat y = y - \tfrac1C

    in float64, with a batch T of real examples and a kernel K of ``kernels`` drawn at every step: ``rbf``, ``nngp1`` to
    ``nngp3`` and ``ntk1`` to ``ntk3`` of fully connected networks, ``cnngp1`` to ``cnngp3`` and ``cntk1`` to ``cntk3``
    of convolutional networks (3x3, no pooling; for images), ``features`` of the task's network with random parameters.
    With ``frozen`` = p it is KIP_p: that share of every example's pixels is noise and is never updated. To predict with
    the regression itself, use ``attar.condense.kernels.KernelRidge``.
    """

    kernels: str = Field(default="ntk1", description="kernels to draw from, such as ntk1-ntk2-cntk1-features")
    ridge: float = Field(default=1e-6, ge=0, description="λ, in units of the kernel's mean diagonal")
    batch: int = Field(default=1024, ge=1, description="real examples per step")
    support: int | None = Field(default=None, ge=1, description="synthetic examples per step; all if not set")
    learn: Literal["pixels", "labels", "both"] = Field(default="pixels", description="pixels, labels or both")
    frozen: float = Field(default=0.0, ge=0, lt=1, description="share of pixels that are noise and never updated, p")
    strategy: str = Field(default="none", description="augmentation of the real examples, drawn independently for each")

    descent: ClassVar[Descent] = Descent(steps=1000, optimiser="adam", lr=0.01)
    shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        kernels.parse(self.kernels)
        augment.parse(self.strategy)

    def source(self, start: Data, gen: Generator) -> Source:
        labels: Labels = "hard" if self.learn == "pixels" else "targets"
        if self.frozen:
            return Frozen(start, labels, pixels=self.learn != "labels", share=self.frozen, gen=gen)
        return Pixels(start, labels, pixels=self.learn != "labels")

    @property
    def inference(self) -> Inference:
        """Learnt labels are regression targets; hard labels are trained on with the usual loss."""
        return Inference() if self.learn == "pixels" else Inference("last-layer-vi", {}, REGRESSION)

    def loss(self, syn: Data, state: NoState, task: Task, gen: Generator) -> Loss:
        kernel = kernels.draw(self.kernels, task.network, gen)
        real = task.data.sample(self.batch, gen).dense().map(lambda x: augment.jitter(self.strategy, x, gen))
        some = syn if self.support is None else syn.sample(self.support, gen)
        fitted = KernelRidge.fit(some, kernel, self.ridge, task.classes)
        own = real[task.share.rows(len(real))]
        said = fitted(own.x)
        value = (targets(own.y, task.classes) - said).square().sum() / (2 * len(real))
        right = task.share.total((said.detach().argmax(1) == own.hard).double().sum()) / len(real)
        return Loss(value, state, {"batch_accuracy": right, "jitter": torch.tensor(fitted.jitter)})
