"""What coresets of a problem are compared with: all data, trained to convergence, or draws from its posterior."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.assess.converged import EPOCHS, converged
from attar.assess.distance import distance
from attar.assess.metrics import STRICT, score
from attar.assess.score import most_frequent, predictions
from attar.board.models import LogisticProblem, stream
from attar.board.problem import Problem
from attar.board.records import Kind, read_record, write_record
from attar.board.score import Judged
from attar.core.cost import Cost, measure
from attar.core.errors import AttarError, DamagedFile, MissingFile
from attar.core.files import read_tensors, write_tensors
from attar.data import Split
from attar.nets import network
from attar.study.results import machine, versions

FORMAT: Final = "attar-board-reference-1"
TENSORS = "attar-board-tensors-1"
DRAWS = 2000  #: from the posterior of a Bayesian model
KIND = Kind("reference", FORMAT, "make it again with `python -m benchmarks board`.")


@dataclass(frozen=True, config=STRICT)
class Reference:
    """Scores of all data, and how they were reached; predictions or draws are in a file of tensors beside."""

    problem: str
    judged_by: str  #: checksum of the problem
    kind: Literal["converged", "posterior"]
    scores: dict[str, float]
    cost: Cost
    steps: int | None = None  #: of training, chosen on validation
    rungs: list[list[float]] = field(default_factory=list)  #: steps, accuracy and NLL on validation of what was tried
    rising: bool | None = None  #: whether longer training might still gain
    epochs: int | None = None  #: the most that were allowed
    draws: int = 0
    rhat: float | None = None
    ess: float | None = None
    floor: float | None = (
        None  #: total variation from the predictive of all data with another seed; None in older files
    )
    versions: dict[str, str] = field(default_factory=versions)
    machine: dict[str, str] = field(default_factory=machine)
    format: Literal["attar-board-reference-1"] = FORMAT


ADAPTER: TypeAdapter[Reference] = TypeAdapter(Reference)


def refer(
    problem: Problem, results: str | Path = "results", *, split: Split | None = None, epochs: int = EPOCHS
) -> Path:
    """Make the reference of a problem; returns its file in ``references``.

    Args:
        problem: The problem.
        results: The folder of the board.
        split: Its data, if it is already loaded.
        epochs: The most often that training may go through the data; the file says if longer might still gain.
    """
    data, place = split or problem.load(), _place(problem, results)
    tensors, about = _made(problem, data, epochs)
    write_tensors(place.with_suffix(".safetensors"), tensors, {"format": TENSORS, "problem": problem.checksum})
    write_record(place, ADAPTER, Reference(problem.name, problem.checksum, **about))
    return add_floor(problem, results, split=data)


def add_floor(problem: Problem, results: str | Path = "results", *, split: Split | None = None) -> Path:
    """Add to a reference how far a second posterior of all data is from it, of another seed; returns its file.

    Its predictions stay as they are, because scores were judged by them.

    Args:
        problem: The problem, which has a reference of its own.
        results: The folder of the board.
        split: Its data, if it is already loaded.
    """
    place, first = _place(problem, results), tensors_of(Path(results), problem)
    if first is None:
        raise AttarError(f"The problem {problem.name} has no reference: {KIND.again}")
    found = read_reference(place)
    second, _ = _made(problem, split or problem.load(), found.epochs or EPOCHS, seed=1)
    far = distance(normal(first["predictive"]), normal(second["predictive"]))
    write_record(place, ADAPTER, replace(found, floor=far.total_variation))
    return place


def normal(probabilities: Tensor) -> Tensor:
    """Rows that sum to one again after rounding."""
    p = probabilities.double()
    return p / p.sum(1, keepdim=True)


def _place(problem: Problem, results: str | Path) -> Path:
    return Path(results) / "references" / f"{problem.name}.json"


def _made(problem: Problem, split: Split, epochs: int, seed: int = 0) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Predictions on test, perhaps draws, and the fields of the record."""
    if problem.model is not None:
        return _posterior(problem.model, split, seed)
    return _converged(problem, split, epochs, seed)


def read_reference(path: Path) -> Reference:
    """The reference in a file."""
    return read_record(path, ADAPTER, KIND)


def tensors_of(results: Path, problem: Problem) -> dict[str, Tensor] | None:
    """Predictions on test, and draws where there are any; None if the problem has no reference."""
    path = results / "references" / f"{problem.reference or problem.name}.safetensors"
    try:
        tensors, header = read_tensors(path)
    except MissingFile:
        return None
    if header.get("format") != TENSORS or "predictive" not in tensors:
        raise DamagedFile(path, "is no reference of this version of Attar", KIND.again)
    if problem.reference is None and header.get("problem") != problem.checksum:
        raise DamagedFile(path, f"is of another version of the problem {problem.name}", KIND.again)
    if len(tensors["predictive"]) != problem.sizes["test"]:
        raise AttarError(f"{path} predicts other test examples than those of {problem.name}: {KIND.again}")
    return tensors


def _converged(problem: Problem, split: Split, epochs: int, seed: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    found = converged(split, network(problem.network, split.spec), problem.training, problem.draws, seed, epochs)
    said, before = (predictions(found.posterior, part) for part in (split.test, split.val))
    scores = Judged.scores(
        score(said, split.test.hard.cpu()), score(before, split.val.hard.cpu()), most_frequent(split.train)
    )
    about = {
        "kind": "converged",
        "scores": scores,
        "cost": found.cost,
        "steps": found.steps,
        "rungs": [list(map(float, rung)) for rung in found.rungs],
        "rising": found.rising,
        "epochs": epochs,
        "draws": problem.draws,
    }
    return {"predictive": said.float()}, about


def _posterior(model: LogisticProblem, split: Split, seed: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with measure() as cost:
        walked = model.walk(split.train, DRAWS, stream(seed))
    said, before = (model.predict(walked.flat, part) for part in (split.test, split.val))
    about = {
        "kind": "posterior",
        "scores": Judged.scores(
            score(said, split.test.hard), score(before, split.val.hard), most_frequent(split.train)
        ),
        "cost": cost,
        "draws": len(walked.flat),
        "rhat": walked.rhat,
        "ess": walked.ess,
    }
    return {"predictive": said.float(), "draws": walked.draws}, about
