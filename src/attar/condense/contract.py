"""What a condensation method is: a pure scalar objective plus the state it carries from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.condense.source import STARTS, Learns, Synthetic
from attar.core import registry
from attar.core.errors import unknown
from attar.data import Data
from attar.experts import Trajectories, missing
from attar.nets import Network

__all__ = ["REGRESSION", "Condenser", "Descent", "Inference", "Learns", "Loss", "Task"]


class Task(NamedTuple):
    """What a method may look at: the training data, a network to look through, and networks trained on the data."""

    data: Data
    network: Network
    classes: int
    experts: Trajectories | None = None

    @property
    def trajectories(self) -> Trajectories:
        """The experts, for methods that cannot do without."""
        if self.experts is None:
            raise missing(self.data, self.network)
        return self.experts


class Loss(NamedTuple):
    """One evaluation of an objective; ``metrics`` are worth showing, ``state`` goes into the next step."""

    value: Tensor
    state: Any
    metrics: dict[str, Tensor]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Descent:
    """Optimiser settings of a method that learns."""

    steps: int = Field(default=1000, ge=1, description="updates of the synthetic examples")
    optimiser: Literal["sgd", "adam"] = Field(
        default="sgd", description="optimiser of the synthetic examples; sgd has momentum"
    )
    lr: float = Field(default=0.1, gt=0, description="learning rate of the synthetic examples")
    momentum: float = Field(default=0.5, ge=0, lt=1, description="momentum of sgd")
    schedule: Literal["constant", "cosine"] = Field(default="constant", description="schedule of the learning rates")
    label_lr: float | None = Field(default=None, gt=0, description="learning rate of labels, where they are learnt")
    scalar_lr: float | None = Field(
        default=None, gt=0, description="learning rate of the log of a learnt step size or scale"
    )
    clip: float | None = Field(
        default=None, gt=0, description="largest gradient norm; larger gradients are scaled down to it"
    )
    init: str = Field(
        default="real", description="initial examples: real, noise, mean (of parts of a class), or a selection method"
    )

    def __post_init__(self) -> None:
        if self.init not in STARTS:
            selectors = registry.methods("select")
            if self.init not in selectors:
                raise unknown("start", self.init, (*STARTS, *selectors))


#: How networks are trained on labels that are targets of regression, and so no probabilities.
REGRESSION = {"loss": "squared", "optimiser": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "constant"}


class Inference(NamedTuple):
    """How to infer from a method's coresets: the sampler, its options by name of a learnt number, the training."""

    sampler: str = "ensemble"
    options: Mapping[str, Any] = MappingProxyType({})
    training: Mapping[str, Any] = MappingProxyType({})  #: what must be so; the rest of the budget is the user's. If
    #: ``augment`` is None there, it is the usual one for images and none for other examples.


class Condenser(Protocol):
    """A frozen dataclass of hyper-parameters with two methods.

    A state is a NamedTuple of tensors, ints and floats: only what the next step needs, so that a checkpoint is
    exact. ``loss`` must draw all randomness from ``gen`` and leave its arguments as they were. Three more class
    variables are optional, each with a default: ``learns``, ``inference`` and ``needs_experts``.
    """

    descent: ClassVar[Descent]  #: the paper's way down, where the user sets nothing else

    def init(self, task: Task, gen: Generator) -> Any: ...

    def loss(self, syn: Synthetic, state: Any, task: Task, gen: Generator) -> Loss: ...
