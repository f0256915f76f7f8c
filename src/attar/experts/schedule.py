"""The schedule of experts: how many, for how long, with which training settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from attar.data.augment import DSA
from attar.nets.train import Training

_PLAIN = Training(batch=256, lr=0.01, momentum=0, weight_decay=0, schedule="constant")
_MOMENTUM = replace(_PLAIN, momentum=0.9)


class Schedule(NamedTuple):
    """How experts are trained; the defaults are for two cores.

    With momentum 0.9 a step is effectively ten times as long, so an epoch is about ten of the paper's, and a tenth of
    it, which is the distance of checkpoints by default, about one. Methods read no later epoch by default.

    Args:
        trajectories: Networks to train, each from its own initialisation.
        epochs: Passes through the data.
        training: Optimiser, batch, augmentation and loss; its ``steps`` follow from the epochs.
        every: Steps between two checkpoints within the first epoch, in which parameters change fastest; by default a
            tenth of it, and 0 keeps whole epochs only.
        dtype: Precision of stored vectors; float16 halves the disk space and keeps three digits.
        seed: Random seed.
    """

    trajectories: int = 10
    epochs: int = 1
    training: Training = _MOMENTUM
    dtype: Literal["float32", "float16"] = "float32"
    seed: int = 0
    every: int | None = None


SMALL = Schedule()
#: As published (Cazenavette et al., CVPR 2022; Kim et al., NeurIPS 2022), for images: days on a few cores.
PAPER = Schedule(100, 50, replace(_PLAIN, augment=DSA), every=0)
