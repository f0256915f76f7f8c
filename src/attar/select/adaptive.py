"""Selection repeated during training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.core.method import Needs
from attar.nets.train import train
from attar.select.contract import Selection, Selector
from attar.select.view import View


class Round(NamedTuple):
    """One round of selection and training."""

    selection: Selection  #: what the network was trained on
    theta: Tensor  #: its parameters after that, ``(p,)``


@dataclass(frozen=True)
class Adaptive(Selector):
    """Alternate selection and training: select with the current network, train it on the selection, repeat.

    Args:
        selector: The selection method; use ``PerClass(...)`` for class balance.
        rounds: Number of selections; the view's training is divided equally among them.
    """

    needs: ClassVar[Needs] = Needs(labels=False)  # the wrapped method says what it needs

    selector: Selector
    rounds: int = 5

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise AttarError(f"rounds must be at least 1, got {self.rounds}.")

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        """The selection of the last round."""
        *_, last = self.walk(view, size, gen)
        return last.selection

    def walk(self, view: View, size: int, gen: Generator) -> Iterator[Round]:
        """Train a new network, selecting again in every round."""
        piece = replace(view.training, steps=max(1, view.training.steps // self.rounds))
        theta = view.network.init(gen)
        for _ in range(self.rounds):
            picked = self.selector.select(view.at(theta), size, gen)
            data = replace(view.data.take(picked.indices), weights=picked.weights)
            theta = train(view.network, data, piece, gen, start=theta[None])[0]
            yield Round(picked, theta)
