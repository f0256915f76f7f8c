"""Dataset condensation under differentiable siamese augmentation."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.condense.contract import Inference, Task
from attar.condense.dc import DC
from attar.core.registry import condenser
from attar.data import Data, augment


@condenser(
    "dsa",
    about="matches augmented gradients",
    choose="published baseline",
    takes="2 h",
    paper="Zhao & Bilen, Dataset Condensation with Differentiable Siamese Augmentation, ICML 2021",
    learns="pixels",
    cost="as dc, and an augmentation of every batch",
)
@dataclass(frozen=True)
class DSA(DC):
    r"""Gradient matching with siamese augmentation: one draw :math:`\omega` per class for real and synthetic examples.

    .. math:: \min_S \; E_{\theta_0 \sim p_0} \sum_t \sum_c E_{\omega \sim \Omega} \;
        D\big(\nabla_\theta L(A_\omega(T_c); \theta_t), \nabla_\theta L(A_\omega(S_c); \theta_t)\big)

    with the distance, the loops and the learning rates of ``dc``. Between two matches the network is trained on
    :math:`S` with an independent draw for every example, as in ordinary training; networks are trained on its coresets
    in the same way.
    """

    strategy: str | None = Field(
        default=None, description="siamese augmentations, one drawn per class; the paper's for images if not set"
    )

    @property
    def inference(self) -> Inference:
        """Training uses the same augmentation."""
        return Inference(training={"augment": self.strategy})

    def __post_init__(self) -> None:
        augment.parse(self.strategy or "none")

    def _strategy(self, syn: Data) -> str:
        return augment.resolve(self.strategy, syn.spec)

    def _batches(self, syn: Data, task: Task, steps: int, gen: Generator) -> Iterable[Data]:
        strategy = self._strategy(syn)
        return (syn.map(lambda x: augment.jitter(strategy, x, gen)) for _ in range(steps))
