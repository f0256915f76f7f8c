"""What a condensation method is: a pure scalar objective plus the state it carries from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from torch import Generator, Tensor

from attar.condense.source import Pixels, Source, Synthetic
from attar.core.method import REGRESSION, Descent, Inference, Method, Needs
from attar.data import Data
from attar.experts import Trajectories, missing
from attar.nets import Network

__all__ = ["REGRESSION", "Condenser", "Descent", "Inference", "Loss", "Needs", "Source", "Task"]


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


class Condenser(Method):
    """A method that learns examples: a frozen dataclass of hyper-parameters with ``init`` and ``loss``.

    A state is a NamedTuple of tensors, ints and floats: only what the next step needs, so that a checkpoint is
    exact. ``loss`` must draw all randomness from ``gen`` and leave its arguments as they were.
    """

    descent: ClassVar[Descent] = Descent()

    def source(self, start: Data, gen: Generator) -> Source:
        """What is learnt, from these examples on: every pixel or feature, with labels that stay hard."""
        return Pixels(start)

    def init(self, task: Task, gen: Generator) -> Any:
        """The state before the first step."""
        raise TypeError(f"{type(self).__name__} must define init")

    def recommend(self, state: Any) -> Mapping[str, Any]:
        """Training settings found while the examples were learnt, such as the number of steps."""
        return {}

    def loss(self, syn: Synthetic, state: Any, task: Task, gen: Generator) -> Loss:
        """The objective at the examples as they are now."""
        raise TypeError(f"{type(self).__name__} must define loss")
