"""How many experts, how long, and how each is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from attar.nets.train import Training


class Schedule(NamedTuple):
    """How many networks, how many epochs, and how each is trained (``training.steps`` follows from the epochs)."""

    trajectories: int
    epochs: int
    training: Training


_PLAIN = Training(batch=256, lr=0.01, momentum=0, weight_decay=0, schedule="constant")
#: As published (Cazenavette et al., CVPR 2022; Kim et al., NeurIPS 2022): days on a few cores.
PAPER = Schedule(100, 50, _PLAIN)
#: For two cores. Momentum of 0.9 goes ten times as far in a step, so that three epochs lead about where thirty of the
#: paper's do.
SMALL = Schedule(10, 3, replace(_PLAIN, momentum=0.9))
