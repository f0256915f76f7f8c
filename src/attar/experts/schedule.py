"""How many experts, how long, and how each is trained: the one place that says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from attar.nets.train import Training

_PLAIN = Training(batch=256, lr=0.01, momentum=0, weight_decay=0, schedule="constant")
_MOMENTUM = replace(_PLAIN, momentum=0.9)


class Schedule(NamedTuple):
    """What experts are trained; the defaults are for two cores.

    Momentum of 0.9 goes ten times as far in a step, so that three epochs lead about where thirty of the paper's do.

    Args:
        trajectories: Networks to train, each from its own initialisation.
        epochs: Passes through the data.
        training: Optimiser, batch, augmentation and loss; its ``steps`` follow from the epochs.
        dtype: How vectors are stored; float16 halves the disk and keeps three digits.
        seed: Fixes every random choice.
    """

    trajectories: int = 10
    epochs: int = 3
    training: Training = _MOMENTUM
    dtype: Literal["float32", "float16"] = "float32"
    seed: int = 0


SMALL = Schedule()
#: As published (Cazenavette et al., CVPR 2022; Kim et al., NeurIPS 2022): days on a few cores.
PAPER = Schedule(100, 50, _PLAIN)
