"""The folder of the board: problems, references, coresets and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attar.assess.statistics import Paired
from attar.board.problem import Problem, read_problem
from attar.board.records import read_record
from attar.board.reference import KIND as REFERENCE
from attar.board.reference import Reference, read_reference
from attar.board.score import ADAPTER, KIND, Score
from attar.core.errors import AttarError, DamagedFile, unknown
from attar.study.compared import RANDOM


@dataclass(frozen=True)
class Results:
    """Everything on the board, read and checked; no data is needed for that."""

    folder: Path
    problems: Mapping[str, Problem]
    references: Mapping[str, Reference]  #: by the name of their problem
    scores: Sequence[Score]

    @staticmethod
    def read(folder: str | Path = "results") -> Results:
        """Read the board in a folder; what was changed by hand or made by another version is refused."""
        place = Path(folder)
        problems = {path.stem: read_problem(path) for path in _files(place / "problems")}
        if not problems:
            raise AttarError(f"{place} holds no problems: give the folder of a board, such as results.")
        references = {path.stem: read_reference(path) for path in _files(place / "references")}
        found = [(path, read_record(path, ADAPTER, KIND)) for path in _files(place / "scores")]
        for path, score in found:
            _check(path, score, problems)
            if path.stem != score.key:
                raise AttarError(f"{path} holds the score {score.key}: give the file that name.")
        for name, reference in references.items():
            _check(place / "references" / f"{name}.json", reference, problems)
        return Results(place, problems, references, [score for _, score in found])

    def problem(self, name: str) -> Problem:
        """The problem of this name."""
        if name not in self.problems:
            raise unknown("problem", name, self.problems)
        return self.problems[name]

    def of(self, problem: str, per_class: int | None = None) -> list[Score]:
        """The scores on a problem, perhaps of one size only."""
        return [score for score in self.scores if score.problem == problem and per_class in (None, score.per_class)]

    def random(self, problem: str, per_class: int) -> Score | None:
        """The score of random subsets of this size."""
        return next((score for score in self.of(problem, per_class) if score.method == RANDOM), None)

    def gain(self, score: Score, metric: str = "accuracy", scale: float = 100.0) -> Paired | None:
        """The difference to random subsets of the same size, over the seeds that both have; None if there is none."""
        random = self.random(score.problem, score.per_class)
        return None if random is None or score.method == RANDOM else score.against(random, metric, scale)

    def reference(self, problem: str) -> Reference | None:
        """The reference of a problem, its own or the one that it names."""
        return self.references.get(self.problem(problem).reference or problem)


def score_path(folder: Path, key: str) -> Path:
    """The file of a score."""
    return folder / "scores" / f"{key}.json"


def _files(folder: Path) -> list[Path]:
    """The JSON files in a folder, in order; hidden files are ignored."""
    return sorted(folder.glob("[!.]*.json"), key=lambda path: path.stem)


def _check(path: Path, record: Score | Reference, problems: Mapping[str, Problem]) -> None:
    if record.problem not in problems:
        raise AttarError(f"{path} is about the problem {record.problem!r}, which is not there: add its file.")
    if record.judged_by != problems[record.problem].checksum:
        again = KIND.again if isinstance(record, Score) else REFERENCE.again
        raise DamagedFile(path, f"was judged on another version of the problem {record.problem}", again)
