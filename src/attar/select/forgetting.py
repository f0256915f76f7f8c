"""Forgetting events."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
from attar.select.ranking import highest
from attar.select.view import View


@selector(
    "forgetting",
    about="most often forgotten",
    choose="not for small sizes",
    takes="2 min",
    paper="Toneva et al., An Empirical Study of Example Forgetting during Deep Neural Network Learning, ICLR 2019",
    cost="a training, with several forward passes of the data",
)
@dataclass(frozen=True)
class Forgetting(Selector):
    r"""Pick the examples forgotten most often: classified correctly at one checkpoint of training, wrongly at the next.

    .. math:: f_i = \sum_t [a_i^t > a_i^{t+1}], \qquad a_i^t = [\arg\max_c p_{ic}^t = y_i]

    An example that was never classified correctly was never forgotten. It counts 0, as in DeepCore's code, or with
    ``never_learnt`` = first more than any other, as in the paper; many of these examples have wrong labels. Many counts
    are equal; ties are broken at random.
    """

    needs: ClassVar[Needs] = Needs()

    never_learnt: Literal["first", "last"] = Field(
        default="last", description="whether examples that were never classified correctly are picked first or last"
    )
    looks: int = Field(default=10, ge=2, description="checkpoints during training at which all examples are classified")

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        return highest(view.shared(self, self._events), size, gen)

    def _events(self, view: View) -> Tensor:
        right = torch.stack([seen.logits.argmax(1) == view.hard for seen in view.along(self.looks)])
        events = (right[:-1] & ~right[1:]).sum(0)
        return torch.where(right.any(0), events, self.looks if self.never_learnt == "first" else 0).float()
