"""The cells of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from attar.study.spec import FULL, StudySpec


@dataclass(frozen=True)
class Job:
    """One cell: a coreset and its posteriors; ``per_class`` is None for the full data."""

    method: str
    per_class: int | None
    seed: int

    @property
    def key(self) -> str:
        """A name that is unique in the grid and safe as a file name."""
        return "-".join([self.method, "all" if self.per_class is None else str(self.per_class), str(self.seed)])


class Progress(NamedTuple):
    """How far a study is, told after each of its parts."""

    stage: str  #: what is counted: ``runs`` or ``transfers``
    done: int
    total: int
    line: str  #: what was finished, in words
    kept: bool = False  #: whether an earlier call did it


def grid(spec: StudySpec) -> list[Job]:
    """Methods × sizes × seeds, with a random subset, herding and the full data beside them if asked."""
    jobs = [Job(name, size, seed) for name in spec.names for size in spec.per_class for seed in spec.seeds]
    return jobs + [Job(FULL, None, seed) for seed in spec.seeds if spec.baselines]
