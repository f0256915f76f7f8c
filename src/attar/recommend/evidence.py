"""The results that recommendations rest on: one small file of the package, made by ``python -m benchmarks recommend``.

Its scores are means over seeds on validation data, from the studies in ``benchmarks/results/recommend``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from attar.core.files import parsed

FILE = "evidence.json"
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)


class About(NamedTuple):
    """What a recommendation depends on."""

    kind: str  #: image, text or table
    rows: int  #: training examples
    classes: int
    per_class: int


@dataclass(frozen=True, config=STRICT)
class Score:
    """Mean validation scores of a candidate on a problem, and what making a coreset cost."""

    accuracy: float
    nll: float
    ece: float
    cpu: float  #: seconds


@dataclass(frozen=True, config=STRICT)
class Problem:
    """A data set and a size."""

    data: str
    about: About
    full: Score  #: of the full data, trained for as many steps
    scores: dict[str, Score]  #: by candidate


@dataclass(frozen=True, config=STRICT)
class Settings:
    """A method, and the settings with which it was measured where they are not its defaults."""

    method: str
    options: dict[str, Any]
    descent: dict[str, Any]


@dataclass(frozen=True, config=STRICT)
class Evidence:
    """All problems, and the candidates that were run on each: methods with their settings."""

    settings: dict[str, Settings]  #: by name of the candidate
    problems: list[Problem]
    format: Literal["attar-evidence-1"] = "attar-evidence-1"


@cache
def evidence() -> Evidence:
    """The evidence of this version."""
    text = files("attar.recommend").joinpath(FILE).read_text(encoding="utf-8")
    return TypeAdapter(Evidence).validate_python(parsed(text))
