"""The report: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from attar.assess.questions import Assessment
from attar.assess.statistics import Paired, with_half
from attar.core.files import write_text
from attar.core.text import visible
from attar.data import Split
from attar.report import classes, figures, stress, svg, words
from attar.report.answers import looks
from attar.report.embed import as_json, policy, resource, script
from attar.report.gallery import Gallery, galleries
from attar.report.making import Making, makings
from attar.report.map import map_of
from attar.report.replies import replies
from attar.report.rows import DIGITS, METRICS, RECALLS, Row, by_size, rows, the_best, the_full
from attar.report.verdict import verdict
from attar.study.compared import distillation_sizes
from attar.study.cross import Crossings
from attar.study.results import Study

SCRIPTS = ("map.js", "film.js")
LIVE = "live.js"

Shown = TypeVar("Shown", Gallery, Making)


@dataclass(frozen=True)
class Tile:
    """One of the main results at the top of the page."""

    role: str
    who: str
    colour: str
    figure: str


def write(
    study: Study, folder: Path, path: Path, assessments: Sequence[Assessment] = (), split: Split | None = None
) -> Path:
    """Write the report of a study whose coreset files are in ``folder``; returns ``path``.

    Args:
        study: The study.
        folder: Its folder.
        path: The HTML file.
        assessments: Each gets its own section.
        split: The data, if it is at hand: for the map and for pictures of test examples.
    """
    write_text(path, render(study, folder, assessments, split))
    return path


def render(
    study: Study,
    folder: Path,
    assessments: Sequence[Assessment] = (),
    split: Split | None = None,
    live: str = "",
) -> str:
    """The page as text; ``live`` is the version of the results if a server tells about newer ones."""
    table = rows(study)
    best, shown = the_best(table), galleries(table, folder)
    code = script(*SCRIPTS, *([LIVE] if live else []))
    names = words.class_names(study)
    made = makings(table, folder, names)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            css=Markup(svg.style() + resource("page.css") + resource("explore.css")),
            script=Markup(code),
            policy=policy(code, connect=bool(live)),
            live=live,
            reload=False,
            headline=words.headline(study, table),
            verdict=verdict(study, table),
            summary=words.summary(study, table),
            tiles=_tiles(table),
            groups=_groups(table),
            gaps=any(row.gap for row in table),
            accuracy=figures.accuracy(table),
            by_size=figures.accuracy_by_size(table),
            by_cost=figures.accuracy_by_cost(table),
            gain=figures.gain(table),
            map=map_of(split, shown, best) if split else None,
            galleries=_shelves(shown),
            heat=any(gallery.strips and not gallery.pictures for gallery in shown),
            calibration=figures.calibration(table),
            learning=figures.learning(table),
            makings=_shelves([making for making in made if making.told]),
            untold=words.untold([making.row for making in made if not making.told]),
            confusion=classes.confusion(table, names),
            recall=classes.recall(table, names),
            names=len(names),
            test_size=words.tested(study),
            replies=replies(table, names, split),
            majority=f"{100 * study.majority:.1f}",
            means=words.means(table),
            kept=distillation_sizes(study),
            singles=words.singles(table),
            evaluated=any(row.evaluations > 1 for row in table),
            looks=looks(assessments, table),
            transfer=stress.transfer_matrix(assessments, Crossings.load(folder)),
            best=best,
            full=the_full(table),
            costs=words.cost_rows(table),
            command=study.command,
            facts=_facts(study, best, shown),
            protocol=words.protocol(study, table),
        )
    )


def waiting(study: Study, version: str) -> str:
    """The page of a study whose first run has not finished yet, for a server that tells when it has."""
    code, css = script(LIVE), Markup(svg.style() + resource("page.css") + resource("explore.css"))
    return (
        environment()
        .get_template("waiting.html.j2")
        .render(
            css=css,
            script=Markup(code),
            policy=policy(code, connect=True),
            headline=str(study.data.get("name", "data")),
            command=study.command,
            live=version,
            reload=True,
        )
    )


@cache
def environment() -> Environment:
    """Where templates are filled in, which are compiled once; text is escaped."""
    made = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.filters |= {"svg": Markup, "json": as_json, "scores": _scores, "points": _points}
    return made


def _tiles(table: list[Row]) -> list[Tile]:
    """The method that is best on validation, and the three rows to compare it with."""
    best = the_best(table)
    peers = [row for row in table if best and row.size == best.size and not row.full]
    reduced = [Tile(", ".join(row.marks), row.label, row.colour, f"{row.accuracy:.1f}") for row in peers if row.marks]
    return reduced + [Tile(row.label, row.amount, row.colour, f"{row.accuracy:.1f}") for row in table if row.full]


def _groups(table: list[Row]) -> list[tuple[str, list[Row]]]:
    """Rows grouped by size."""
    groups = [(group[0].amount, group) for group in by_size(table).values()]
    full = [row for row in table if row.full]
    return groups + ([(f"All {full[0].size:,} training examples", full)] if full else [])


def _shelves(shown: list[Shown]) -> dict[str, list[Shown]]:
    """What is shown of rows, grouped by size."""
    shelves: dict[str, list[Shown]] = {}
    for one in shown:
        shelves.setdefault(one.row.amount, []).append(one)
    return shelves


def _scores(row: Row) -> list[str]:
    """Accuracies in percent, then the other test scores."""
    recalls = [f"{row.recall(kind):.1f}" for kind in RECALLS]
    others = [f"{row.test(metric):.{DIGITS[metric]}f}" for metric in METRICS]
    return [*recalls, f"{row.validation:.1f}", *others]


def _points(gap: Paired) -> str:
    """A difference in points with its interval."""
    return with_half(gap.difference, gap.half, "+.1f").replace("-", "−").replace(" ", "\u00a0")


def _facts(study: Study, best: Row | None, shown: list[Gallery]) -> list[tuple[str, list[tuple[str, str]]]]:
    """All settings and facts, as named lists of keys and values."""
    recipes: list[tuple[str, dict[str, Any]]] = [
        (f"Coreset of {gallery.row.label}, seed {gallery.seed}", gallery.recipe)
        for gallery in shown
        if gallery.row is best
    ]
    parts = [("Study", study.config), ("Data", study.data), *recipes]
    parts += [("Versions", dict(study.versions)), ("Machine", dict(study.machine))]
    return [(name, words.flat(values)) for name, values in parts if values]
