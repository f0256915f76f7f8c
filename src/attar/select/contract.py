"""What a selection method is: a rule that picks examples from a view of the data."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from torch import Generator, Tensor
from torch.utils.data import Dataset, Subset, WeightedRandomSampler

from attar.errors import AttarError
from attar.files import write_text
from attar.select.view import View

Item = TypeVar("Item", covariant=True)


class Selection(NamedTuple):
    """Picks in order, so that a smaller budget is a prefix; ``scores`` say how good each was to its method."""

    indices: Tensor  #: (size,) int64, unique
    scores: Tensor  #: (size,) float
    weights: Tensor | None = None  #: (size,) float, where examples stand for different numbers of others

    def subset(self, dataset: Dataset[Item]) -> Subset[Item]:
        """The picked items of a PyTorch data set."""
        return Subset(dataset, self.indices.tolist())

    def sampler(self, gen: Generator, draws: int | None = None) -> WeightedRandomSampler:
        """Draws places in ``subset`` in proportion to the weights; as many a pass as there are picks, if not set."""
        weights = [1.0] * len(self.indices) if self.weights is None else self.weights.tolist()
        if sum(weights) <= 0:
            raise AttarError("Every weight is zero, so none can be drawn: select more examples.")
        return WeightedRandomSampler(weights, draws or len(weights), generator=gen)

    def csv(self, path: str | Path, labels: Tensor | None = None) -> None:
        """Write index, score, class and weight, a row a pick; ``labels`` are those of all the data."""
        text = StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["index", "score", "class", "weight"])
        classes = [""] * len(self.indices) if labels is None else labels.cpu()[self.indices.cpu()].tolist()
        weights = [1.0] * len(self.indices) if self.weights is None else self.weights.tolist()
        table.writerows(zip(self.indices.tolist(), self.scores.tolist(), classes, weights, strict=True))
        write_text(path, text.getvalue())


class Selector(Protocol):
    """A frozen dataclass of hyper-parameters with one method.

    One that looks at ``view.validation`` says so by the class variable ``needs_validation = True``, so that the recipe
    of its coresets names the validation set too.
    """

    def select(self, view: View, size: int, gen: Generator) -> Selection: ...
