"""The jobs of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from attar.study.protocol import HONEST
from attar.study.spec import CONVERGED, FULL, StudySpec


@dataclass(frozen=True)
class Job:
    """One job: a coreset and its posteriors; ``per_class`` is None for the full data."""

    method: str
    per_class: int | None
    seed: int

    @property
    def key(self) -> str:
        """A name that is unique in the grid and safe as a file name."""
        return "-".join([self.method, "all" if self.per_class is None else str(self.per_class), str(self.seed)])

    @property
    def coreset(self) -> str:
        """The file of its coreset, in the folder of the study."""
        return f"coresets/{self.key}.safetensors"


@dataclass(frozen=True)
class Seeded:
    """One job of a grid whose sizes are not compared: a method and a seed."""

    method: str
    seed: int

    @property
    def key(self) -> str:
        """A name that is unique in the grid and safe as a file name."""
        return f"{self.method}-{self.seed}"


class Progress(NamedTuple):
    """Progress of a study, reported after each part."""

    stage: str  #: what is counted: ``runs`` or ``transfers``
    done: int
    total: int
    line: str  #: what was finished, as text
    kept: bool = False  #: whether it was already done by an earlier call


def grid(spec: StudySpec) -> list[Job]:
    """Methods × sizes × seeds, with a random subset, herding and the full data if ``baselines`` is set.

    The full data is there twice, unless ``converged`` is off: with the budget of all rows, and trained to convergence.
    Under the protocol ``published`` it has its published budget alone.
    """
    jobs = [Job(name, size, seed) for name in spec.names for size in spec.per_class for seed in spec.seeds]
    full = (FULL, CONVERGED) if spec.converged and spec.protocol == HONEST else (FULL,)
    return jobs + [Job(name, None, seed) for name in full for seed in spec.seeds if spec.baselines]
