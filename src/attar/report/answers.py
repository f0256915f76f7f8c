"""The detailed evaluation of one coreset or posterior: every question with its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attar.assess.questions import Assessment
from attar.infer.run import EXPERTS
from attar.report import mixing, stress, trust, worth
from attar.report.blocks import Block
from attar.report.rows import COLOURS, Row
from attar.report.words import LEAK, flat


@dataclass(frozen=True)
class Look:
    """One section of the page."""

    id: str
    name: str
    colour: str
    text: str
    label: str  #: a caution for all figures; empty if there is none
    warning: str
    blocks: list[Block]
    made: list[tuple[str, str]]


def looks(assessments: Sequence[Assessment], table: Sequence[Row]) -> list[Look]:
    """One section per assessment; a method of the study keeps its colour."""
    known = {row.method: row.colour for row in table}
    spare = [f"c{i + 1}" for i in range(COLOURS) if f"c{i + 1}" not in known.values()] or ["c1"]
    strangers = [one.name for one in assessments if one.name not in known]
    known |= {name: spare[i % len(spare)] for i, name in enumerate(dict.fromkeys(strangers))}
    return [_look(one, i, known[one.name]) for i, one in enumerate(assessments, 1)]


def _look(asked: Assessment, number: int, colour: str) -> Look:
    notes = asked.diagnostics
    leaks = notes.get("start") == "experts"
    found = [
        trust.calibration(asked, colour),
        trust.selective(asked, colour),
        trust.detection(asked),
        trust.distance(asked),
        stress.corruption(asked),
        stress.attacks(asked),
        stress.transfer(asked, colour),
        worth.fairness(asked),
        worth.privacy(asked, colour),
        mixing.mixing(notes, asked.name),
    ]
    return Look(
        f"look-{number}",
        asked.name,
        colour,
        _text(asked),
        EXPERTS if leaks else "",
        LEAK if leaks else "",
        [block for block in found if block],
        flat(mixing.made(notes)),
    )


def _text(asked: Assessment) -> str:
    tested = sum(map(sum, asked.scores.confusion))
    sampler = asked.diagnostics.get("sampler")
    way = f" (sampler: {sampler})" if sampler else ""
    return (
        f"One posterior{way}, evaluated on {tested:,} test examples. It is a single run, so there is no ± unless "
        f"stated; use the scores above to compare methods."
    )
