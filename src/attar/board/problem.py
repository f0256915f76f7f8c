"""A problem of the board: which data, which network and which budget all coresets are judged by."""

from __future__ import annotations

import hashlib
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal

import torch
from pydantic import Field, TypeAdapter, field_validator
from pydantic.dataclasses import dataclass

from attar.assess.metrics import STRICT
from attar.board.models import LogisticProblem
from attar.board.records import Kind, plain, read_record, write_record
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Data, Split, load
from attar.data.download import Progress
from attar.data.load import is_known
from attar.data.transform import Embedding
from attar.nets.names import canonical, parse
from attar.nets.train import Training
from attar.study.protocol import PUBLISHED

FORMAT: Final = "attar-problem-1"
KIND = Kind("problem", FORMAT, "take it from the repository again.")
WAYS = ("centred",)  #: trainings of the protocol published that are no samplers; see ``attar.board.centred``


@dataclass(frozen=True, config=STRICT)
class Loading:
    """How the data is loaded and split."""

    scaling: str = "standard"
    val: float = 0.1
    test: float = 0.2
    seed: int = 0
    #: Word vectors of texts; left out of files of other data, whose checksums are from before.
    vectors: Literal["learnt"] | None = Field(default=None, exclude_if=lambda vectors: vectors is None)

    @property
    def transform(self) -> str:
        """The kind of the transform of what was loaded so."""
        return Embedding.kind if self.vectors else self.scaling


@dataclass(frozen=True, config=STRICT)
class Problem:
    """What a coreset is judged by. Under ``honest`` a coreset brings its own loss, optimiser and sampler, and the
    problem fixes network, steps, batch and draws; under ``published`` everything is the problem's.
    """

    name: str
    about: str  #: one sentence
    data: str  #: a known name
    fingerprints: dict[str, str]  #: of labels and rows of train, val and test
    sizes: dict[str, int]  #: of train, val and test
    classes: int
    shape: list[int]
    per_class: list[int]  #: sizes of coresets
    network: str
    training: Training
    draws: int = Field(ge=1)  #: networks whose predictions are averaged
    evaluations: int = Field(default=5, ge=1)  #: posteriors of a coreset that is submitted alone
    protocol: Literal["honest", "published"] = "honest"
    loading: Loading = Loading()
    way: str | None = None  #: how networks are trained under ``published``, one of ``WAYS``
    options: dict[str, Any] = field(default_factory=dict)  #: of that way
    source: str | None = None  #: where that way was published
    reference: str | None = None  #: the problem whose reference is used, if not its own
    model: LogisticProblem | None = None  #: a Bayesian model with its prior, in place of a network
    format: Literal["attar-problem-1"] = FORMAT

    @field_validator("network")
    @classmethod
    def _network(cls, name: str) -> str:
        return canonical(*parse(name))

    def __post_init__(self) -> None:
        if {self.way is not None, self.source is not None} != {self.protocol == PUBLISHED}:
            raise ValueError("a problem of the protocol published names its way of training and where it is from")
        if self.way is not None and self.way not in WAYS:
            raise ValueError(f"there is no way of training {self.way!r}")

    @property
    def checksum(self) -> str:
        """The checksum of its file."""
        return str(plain(ADAPTER, self)["checksum"])

    def load(self, progress: Progress | None = None) -> Split:
        """Its data, checked to be the same split of the same data."""
        if self.model is not None:
            split = self.model.split()
        elif not is_known(self.data):
            raise AttarError(f"The problem {self.name} names {self.data!r}, which is no known data set: name one.")
        else:
            split = self._loaded(progress)
        return self.checked(split)

    def checked(self, split: Split) -> Split:
        """The split, if it is the same split of the same data."""
        if fingerprints(split) != self.fingerprints or list(split.shape) != self.shape:
            raise AttarError(
                f"The data of the problem {self.name} is not what it was made for, so nothing was judged: get "
                f"{self.data} anew, or take the version of Attar that made the problem."
            )
        return split

    def _loaded(self, progress: Progress | None) -> Split:
        try:
            return load(self.data, **vars(self.loading), progress=progress)
        except (AttarError, OSError) as error:
            reason = str(error).rstrip(".")
            raise AttarError(
                f"The data of the problem {self.name} cannot be loaded, so nothing was judged: {reason}."
            ) from error

    def require_fitting(self, coreset: Coreset, where: str) -> None:
        """Refuse a coreset of other data, another shape, scaling or size."""
        recipe, spec = coreset.recipe, coreset.data.spec
        if list(coreset.data.shape) != self.shape or coreset.data.classes != self.classes:
            raise AttarError(
                f"{where} has {coreset.data.classes} classes and shape {coreset.data.shape}, and the problem "
                f"{self.name} {self.classes} and {tuple(self.shape)}: submit it to a problem of its data."
            )
        if self.model is None and spec.transform.kind != self.loading.transform:
            raise AttarError(
                f"{where} is scaled by {spec.transform.kind!r}, and the problem {self.name} by "
                f"{self.loading.transform!r}: make or import it with that scaling, or name another problem."
            )
        if recipe.per_class not in self.per_class:
            sizes = " or ".join(map(str, self.per_class))
            raise AttarError(
                f"{where} has {recipe.per_class} examples per class, and the problem {self.name} is for {sizes}: "
                "submit one of that size."
            )
        origin = recipe.origin
        if origin is not None and (origin.source, origin.test) != (self.data, self.loading.test):
            raise AttarError(
                f"{where} was made from {origin.source!r} with other test examples than those of the problem "
                f"{self.name}, and may hold some: make it from {self.data} as the problem loads it."
            )
        if origin is not None and origin.vectors != self.loading.vectors:
            raise AttarError(
                f"{where} has other word vectors than the problem {self.name}: make it from {self.data} with "
                f"--vectors {self.loading.vectors}."
            )

    def labels(self, coreset: Coreset) -> list[str]:
        """What must be said beside the scores of a coreset."""
        origin, how = coreset.recipe.origin, self.loading
        if self.model is not None:
            return []
        if origin is None:
            return ["its training data is not on record"]
        other = (origin.val, origin.seed) != (how.val, how.seed)
        return ["made with other validation examples"] if other else []


ADAPTER: TypeAdapter[Problem] = TypeAdapter(Problem)


def fingerprints(split: Split) -> dict[str, str]:
    """Hashes of labels and row numbers: the same split of the same data, however its examples are rounded."""
    return {
        part: _fingerprint(data) for part, data in (("train", split.train), ("val", split.val), ("test", split.test))
    }


def _fingerprint(data: Data) -> str:
    rows = torch.arange(len(data)) if data.rows is None else data.rows.cpu()
    content = torch.stack([data.hard.cpu(), rows]).contiguous()
    return hashlib.blake2b(content.numpy().tobytes(), digest_size=16).hexdigest()


def problem_of(name: str, about: str, split: Split, data: str, **settings: Any) -> Problem:
    """A problem on loaded data; ``settings`` are the other fields of ``Problem``."""
    sizes = {"train": len(split.train), "val": len(split.val), "test": len(split.test)}
    return Problem(name, about, data, fingerprints(split), sizes, split.classes, list(split.shape), **settings)


def write_problem(folder: Path, problem: Problem) -> Path:
    """Write ``problems/NAME.json``; returns its path."""
    path = folder / "problems" / f"{problem.name}.json"
    write_record(path, ADAPTER, problem)
    return path


def read_problem(path: Path) -> Problem:
    """The problem in a file; its name is that of the file."""
    found = read_record(path, ADAPTER, KIND)
    if found.name != path.stem:
        raise AttarError(f"{path} holds the problem {found.name!r}: give file and problem the same name.")
    return found
