"""The base class of methods that go by gradients."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from attar.select.contract import Selector
from attar.select.scoring import Gradient, Look, Mode
from attar.select.view import View


@dataclass(frozen=True)
class GradientSelector(Selector):
    """A method that goes by gradients of the examples, under a network that is not trained for long.

    Once most examples are classified with confidence, only hard and mislabelled ones have gradients that differ from
    zero. So the training of the scoring network stops by fit.
    """

    fit: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="training accuracy at which the scoring network stops training, between guessing (0) and all "
        "correct (1); at 1 it takes all its steps",
    )
    gradient: Gradient = Field(
        default="exact", description="exact, or published: of the double softmax in the code of DeepCore and LCMat"
    )
    mode: Mode = Field(
        default="eval",
        description="eval, or train: batch norm uses batches of one class, as in the code of LCMat-S",
    )

    def seen(self, view: View) -> View:
        return view.seen(Look(self.fit, self.gradient, self.mode))
