"""The contract of condensation methods: a pure scalar objective, and the state carried from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from torch import Generator, Tensor

from attar.condense.source import Pixels, Source, Synthetic
from attar.core.forecast import Order
from attar.core.method import REGRESSION, Descent, Inference, Method, Needs
from attar.data import Data
from attar.engine.share import Share
from attar.experts import Trajectories, missing
from attar.nets import Network
from attar.nets.names import convnet_width
from attar.nets.objective import Energy, Objective

__all__ = ["REGRESSION", "Condenser", "Descent", "Inference", "Loss", "Needs", "NoState", "Source", "Task"]


PUBLISHED_WIDTH = 128  #: of the ConvNets for which learning rates are published


class Task(NamedTuple):
    """The inputs of a method: training data, a network, and perhaps experts trained on that data."""

    data: Data
    network: Network
    classes: int
    experts: Trajectories | None = None
    theta: Tensor | None = None  #: networks of a training that goes on, ``(k, p)``
    share: Share = Share()  #: of the work, if several processes compute together

    @property
    def trajectories(self) -> Trajectories:
        """The experts; raises if there are none."""
        if self.experts is None:
            raise missing(self.data, self.network)
        return self.experts

    def objective(self, loss: str = "cross-entropy") -> Energy:
        """The mean loss, whose gradient without a graph the processes compute together, each on a part of the batch."""
        whole = Objective(self.network, loss)
        return whole if self.share.size == 1 or not self.network.separate else Divided(whole, self.share)


class Divided:
    """A mean loss whose gradient is the sum over processes, each of which has a part of the batch."""

    def __init__(self, whole: Objective, share: Share) -> None:
        self.whole, self.share = whole, share

    def value(self, theta: Tensor, batch: Data) -> Tensor:
        """The value on the whole batch."""
        return self.whole.value(theta, batch)

    def gradient(self, theta: Tensor, batch: Data, *, graph: bool = False) -> Tensor:
        """The gradient on the whole batch; with a graph, every process computes all of it."""
        if graph or len(batch) < self.share.size:
            return self.whole.gradient(theta, batch, graph=graph)
        own = batch[self.share.rows(len(batch))]
        return self.share.total(self.whole.gradient(theta, own) * (len(own) / len(batch)))


class Loss(NamedTuple):
    """One evaluation of an objective; ``metrics`` are logged, ``state`` is passed to the next step."""

    value: Tensor
    state: Any
    metrics: dict[str, Tensor]


class NoState(NamedTuple):
    """The state of a method that carries nothing from step to step."""


class Condenser(Method):
    """A method that learns examples: a frozen dataclass of hyper-parameters with ``loss`` and perhaps ``init``.

    A state is a NamedTuple of tensors, ints and floats: only what the next step needs, so that a checkpoint is
    exact. ``loss`` must draw all randomness from ``gen`` and must not modify its arguments.
    """

    descent: ClassVar[Descent] = Descent()
    growth: ClassVar[float] = 0.0  #: p, where gradients of images grow with the width of a ConvNet as its power p

    @property
    def grows(self) -> Order:
        return Order(rows=0)

    def descent_on(self, network: Network) -> Descent:
        """The optimiser settings for a network: the learning rate for width 128 times (128 / width)^p."""
        width = convnet_width(network.name)
        if width is None or not self.growth:
            return self.descent
        rate = self.descent.lr * (PUBLISHED_WIDTH / width) ** self.growth
        return replace(self.descent, lr=float(f"{rate:.3g}"))

    def source(self, start: Data, gen: Generator) -> Source:
        """What is learnt, initialised from these examples: by default every pixel or feature, with hard labels."""
        return Pixels(start)

    def init(self, task: Task, gen: Generator) -> Any:
        """The state before the first step; also refuses a task that the method cannot work on."""
        return NoState()

    def adjust(self, memory: Data, network: Network, theta: Tensor, gen: Generator) -> Data:
        """Fit examples of earlier phases to the networks of a new one; by default they stay as they are.

        Only methods with ``needs.phase`` are asked, by ``attar continual``.

        Args:
            memory: The examples.
            network: A network with an output for each of their classes.
            theta: Its parameters after training in the new phase, ``(k, p)``.
            gen: Random generator.
        """
        return memory

    def recommend(self, state: Any) -> Mapping[str, Any]:
        """Training settings found while the examples were learnt, such as the number of steps."""
        return {}

    def loss(self, syn: Synthetic, state: Any, task: Task, gen: Generator) -> Loss:
        """The objective at the current examples; of a method that shares, the part of ``task.share``."""
        raise TypeError(f"{type(self).__name__} must define loss")
