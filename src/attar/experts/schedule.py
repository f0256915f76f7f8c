"""The schedule of experts: how many, for how long, with which training settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.data.augment import DSA
from attar.nets.train import Training

_PLAIN = Training(batch=256, lr=0.01, momentum=0, weight_decay=0, schedule="constant")
_MOMENTUM = replace(_PLAIN, momentum=0.9)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Schedule:
    """How experts are trained; the defaults are for two cores.

    With momentum 0.9 a step is effectively ten times as long, so an epoch is about ten of the paper's, and a tenth of
    it, which is the distance of checkpoints by default, about one. Methods read no later epoch by default.
    """

    trajectories: int = Field(default=10, ge=1, description="networks to train, each from its own initialisation")
    epochs: int = Field(default=1, ge=1, description="passes through the data for each network")
    training: Training = Field(
        default=_MOMENTUM, description="training settings; the number of steps follows from the epochs"
    )
    dtype: Literal["float32", "float16"] = Field(
        default="float32",
        description="precision of stored parameters: float32, or float16, which halves the disk space",
    )
    seed: int = Field(default=0, ge=0, le=2**62, description="random seed")
    every: int | None = Field(
        default=None,
        ge=0,
        description="steps between checkpoints within the first epoch; by default a tenth of it, and 0 keeps whole "
        "epochs only",
    )


SMALL = Schedule()
#: As published (Cazenavette et al., CVPR 2022; Kim et al., NeurIPS 2022), for images: days on a few cores.
PAPER = Schedule(100, 50, replace(_PLAIN, augment=DSA), every=0)
