"""The test examples that the best method answers worst, and those of which it is least certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from attar.assess.answers import Answer
from attar.data import Split
from attar.report.images import data_uri, is_image, tile, zoom
from attar.report.readable import in_words, named
from attar.report.rows import Row, the_best


@dataclass(frozen=True)
class Chance:
    """A class, its probability, and whether it is the true one."""

    name: str
    share: float
    right: bool


@dataclass(frozen=True)
class Reply:
    """One test example and its answer."""

    name: str
    label: str
    chances: list[Chance]
    picture: str = ""
    words: str = ""


@dataclass(frozen=True)
class Replies:
    """Examples of the method that is best on validation."""

    row: Row
    seed: int
    worst: list[Reply]
    uncertain: list[Reply]


def replies(table: list[Row], classes: Sequence[str], split: Split | None) -> Replies | None:
    """The answers that the first seed of the best row kept; None for studies of earlier versions."""
    best = the_best(table)
    known = sorted((run.seed, i) for i, run in enumerate(best.runs) if run.answers) if best else []
    if best is None or not known:
        return None
    found = best.runs[known[0][1]].answers
    assert found is not None
    shown = [[_reply(answer, classes, split) for answer in some] for some in (found.worst, found.uncertain)]
    return Replies(best, known[0][0], *shown)


def _reply(answer: Answer, classes: Sequence[str], split: Split | None) -> Reply:
    chances = [Chance(classes[c], share, c == answer.label) for c, share in answer.chances]
    label = classes[answer.label]
    if split is None:
        return Reply(f"test example {answer.place:,}", label, chances)
    one = split.test.take(torch.tensor([answer.place], device=split.test.device)).to("cpu")
    name, told = named(one, 0, "test example"), in_words(one)
    if told is not None:
        return Reply(name, label, chances, words=told[0])
    pixels = one.spec.stored(one.x)[0]
    picture = data_uri(tile(pixels, 2 * zoom(pixels.shape))) if is_image(one.spec.element) else ""
    return Reply(name, label, chances, picture)
