"""The page of the board: every score, sorted and filtered by the reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from attar.assess.statistics import SPREAD, t_interval, with_half
from attar.board import Results, Score
from attar.board.problem import Problem
from attar.core.files import write_text
from attar.report import svg
from attar.report.blocks import plural
from attar.report.embed import policy, resource, script
from attar.report.estimate import Percent
from attar.report.page import environment
from attar.report.rows import colours, label
from attar.report.svg import MARKERS, Axis, drawing, frame, line, marker

WIDTH, HEIGHT = 440.0, 290.0
LEAST = 0.01  #: CPU seconds below which a cost is drawn at the edge

#: Who comes onto the board, and how: printed on the page and in docs/board.md.
RULES = (
    "A row is one method at one size on one problem. The problem fixes the data and its split, the network, the "
    "training steps, the number of networks that are averaged, and the protocol; nobody chooses them for a row.",
    "Under `honest`, a coreset brings its scaling, labels, loss, optimiser, learning rate and sampler, because they "
    "are a part of it. Under `published`, everything is as its authors do it, and the problem names their code.",
    "Everything is chosen on validation data. The test set is read once for every posterior, by `attar submit` and "
    "nobody else; a coreset that the test set chose is not admitted.",
    "Five seeds, with one coreset each, or three where making one takes longer than ten minutes, or one coreset with "
    "five posteriors if only one was published. The same seed counts once. An order in words needs five seeds and an "
    "interval without zero.",
    "Random subsets of the same size stand on every problem, and every row says what it gains over them.",
    "Cost is that of making the coreset, measured by Attar; a set that was made elsewhere has none on record.",
    "A set that was made elsewhere states its scaling, its label convention and its recommended training, and where it "
    "was published.",
    "Scores are written by `attar submit` with a checksum. A file that was edited, or judged on another version of a "
    "problem, is refused with the whole board.",
)


class Column(NamedTuple):
    """A column of the table: heading, what a cell shows, and the value by which it sorts."""

    name: str
    title: str


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and by what it sorts; None comes last."""

    shown: str
    value: float | str | None = None
    note: str = ""


COLUMNS = (
    Column("Method", "what made the coreset"),
    Column("Problem", "what it is judged by"),
    Column("Per class", "examples per class"),
    Column("Accuracy, %", "on test data"),
    Column("Over random, points", "accuracy minus that of random subsets of the same size"),
    Column("Balanced, %", "mean accuracy over classes"),
    Column("Worst class, %", "lowest recall of a class"),
    Column("Majority, %", "accuracy of always answering the most frequent training class"),
    Column("NLL", "negative log-likelihood"),
    Column("ECE", "expected calibration error"),
    Column("Brier", "Brier score"),
    Column("Distance", "total variation from the predictive of all data; for models also divergences of the posterior"),
    Column("Floor", "that distance for all data with another seed, which no coreset can be expected to fall below"),
    Column("CPU s", "to make the coreset"),
    Column("MB", "peak memory while it was made"),
    Column("Bytes", "of examples and labels"),
    Column("Seeds", "coresets × posteriors of each"),
)


@dataclass(frozen=True)
class Line:
    """A row of the table."""

    score: Score
    cells: Sequence[Cell]
    colour: str

    @property
    def filters(self) -> dict[str, str]:
        """What the reader can filter by."""
        score = self.score
        family = {"select": "selected", "condense": "learnt", "bayes": "learnt", "": "made elsewhere"}[score.family]
        return {
            "problem": score.problem,
            "data": score.data,
            "size": str(score.per_class),
            "protocol": score.protocol,
            "kind": family,
        }


def board(results: str | Path | Results = "results", path: str | Path = "board.html") -> Path:
    """Write the board as one self-contained HTML file; returns its path.

    Args:
        results: The folder of the board, or what ``attar.board.Results.read`` returned.
        path: The file to write.
    """
    found = results if isinstance(results, Results) else Results.read(results)
    write_text(path, render(found))
    return Path(path)


def render(results: Results) -> str:
    """The page as text."""
    shades, code = colours(score.method for score in _ordered(results)), script("board.js")
    lines = [Line(score, cells(results, score), shades[score.method]) for score in _ordered(results)]
    filters = {
        name: sorted({line.filters[name] for line in lines}, key=lambda text: (len(text), text))
        for name in ("data", "problem", "size", "protocol", "kind")
    }
    return (
        environment()
        .get_template("board.html.j2")
        .render(
            css=Markup(svg.style() + resource("page.css") + resource("board.css")),
            script=Markup(code),
            policy=policy(code),
            headline=f"Board of coresets: {plural(len(lines), 'score')} on {plural(len(results.problems), 'problem')}",
            columns=COLUMNS,
            lines=lines,
            filters=filters,
            spread=SPREAD,
            figures=[
                (problem, _chart(results, problem, shades))
                for problem in results.problems.values()
                if results.of(problem.name)
            ],
            methods=[(label(method), shade) for method, shade in shades.items() if any(_is(lines, method))],
            shapes=list(zip(_sizes(results), MARKERS, strict=False)),
            problems=[(problem, _facts(results, problem)) for problem in results.problems.values()],
            rules=RULES,
        )
    )


def _is(lines: Sequence[Line], method: str) -> list[bool]:
    return [line.score.method == method for line in lines]


def _ordered(results: Results) -> list[Score]:
    """By problem and size, best validation accuracy first."""
    return sorted(results.scores, key=lambda score: (score.problem, score.per_class, -score.validation_accuracy))


def cells(results: Results, score: Score) -> list[Cell]:
    """The cells of a score, in the order of ``COLUMNS``."""
    gap = results.gain(score)
    gain = None if score.gain_over_random is None else 100 * score.gain_over_random
    said = "–" if gain is None else with_half(gain, gap.half if gap else None, "+.1f").replace("-", "−")
    order = gap.order if gap and gap.order != "too few seeds" else ""
    far, full = score.divergence, results.reference(score.problem)
    notes = "; ".join([*score.notes, *([score.source] if score.source else [])])
    return [
        Cell(label(score.method), score.method, notes),
        Cell(score.problem, score.problem, score.protocol),
        Cell(f"{score.per_class:,}", float(score.per_class)),
        _mean(score, "accuracy", 100, 1),
        Cell(said, gain, order),
        _mean(score, "balanced_accuracy", 100, 1),
        _mean(score, "worst", 100, 1),
        _mean(score, "majority", 100, 1),
        _mean(score, "nll", 1, 2),
        _mean(score, "ece", 1, 3),
        _mean(score, "brier", 1, 3),
        _number(score.distance, ".3f", "" if far is None else f"posterior: KL {far['kl']:.2f}, W2 {far['w2']:.2f}"),
        _number(None if full is None else full.floor, ".3f"),
        _number(score.cpu_seconds, ",.1f"),
        _number(score.mb, ",.0f"),
        Cell(f"{score.bytes:,}", float(score.bytes)),
        Cell(f"{len(score.seeds)} × {len(score.runs) // len(score.seeds)}", float(len(score.seeds))),
    ]


def _mean(score: Score, metric: str, scale: float, digits: int) -> Cell:
    if getattr(score, metric) is None:  # in older files
        return Cell("–")
    mean, half = t_interval([scale * value for value in score.values(metric)])
    return Cell(with_half(mean, half, f".{digits}f"), mean)


def _number(value: float | None, spec: str, note: str = "") -> Cell:
    return Cell("–" if value is None else format(value, spec), value, note)


def _sizes(results: Results) -> list[int]:
    return sorted({score.per_class for score in results.scores})


def _chart(results: Results, problem: Problem, shades: dict[str, str]) -> str:
    """Accuracy against the CPU seconds that making a coreset took; sets without a cost on record are left out."""
    costs = [(score, score.cpu_seconds) for score in results.of(problem.name)]
    drawn = [(score, max(cost, LEAST)) for score, cost in costs if cost is not None]
    reference, shapes = results.reference(problem.name), dict(zip(_sizes(results), MARKERS, strict=False))
    top = [] if reference is None else [100 * reference.scores["accuracy"]]
    if not drawn:
        return ""
    ends = {score.key: Percent.of([100 * value for value in score.values()]) for score, _ in drawn}
    heights = [height for estimate in ends.values() for height in (estimate.low, estimate.high)]
    x = Axis.over([cost for _, cost in drawn], 44, WIDTH - 14, log=True)
    y = Axis.over([*heights, *top], HEIGHT - 50, 26)
    parts = frame(x, y, "CPU seconds to make a coreset (logarithmic)", "test accuracy, %")
    parts += [line(x.start, y(value), x.end, y(value), "reference") for value in top]
    for score, cost in drawn:
        found = ends[score.key]
        says = f"{label(score.method)}, {score.per_class} per class: {found:.1f} % in {cost:.1f} s"
        parts.append(line(x(cost), y(found.low), x(cost), y(found.high), f"whisker {shades[score.method]}"))
        shape = shapes.get(score.per_class, MARKERS[-1])
        parts.append(marker(x(cost), y(found.mean), shape, f"mark {shades[score.method]}", says))
    return drawing(WIDTH, HEIGHT - 8, f"Test accuracy against cost: {problem.name}", parts)


def _facts(results: Results, problem: Problem) -> list[tuple[str, str]]:
    """What a problem fixes, and its reference."""
    sizes, training, reference = problem.sizes, problem.training, results.reference(problem.name)
    split = f"{sizes['train']:,} train, {sizes['val']:,} validation, {sizes['test']:,} test"
    how = f"{problem.loading.vectors} word vectors" if problem.loading.vectors else f"scaling {problem.loading.scaling}"
    facts = [("data", f"{problem.data}, {split}; {how}"), ("protocol", problem.protocol)]
    if problem.model is not None:
        model = problem.model
        prior = f"prior N(0, {model.prior_scale:g}²)"
        facts.append(("model", f"{model.kind} regression, {plural(model.dimensions, 'parameter')}, {prior}"))
    else:
        budget = f"{training.steps:,} steps of at most {training.batch:,} examples, {plural(problem.draws, 'network')}"
        facts += [("network", problem.network), ("budget", budget)]
    if problem.source:
        facts.append(("trained as in", problem.source))
    if reference is None:
        return [*facts, ("reference", "none yet")]
    accuracy = f"{100 * reference.scores['accuracy']:.1f} % accuracy, NLL {reference.scores['nll']:.3f}"
    far = "" if reference.floor is None else f"; {reference.floor:.3f} from all data with another seed"
    if reference.kind == "posterior":
        said = f"{reference.draws:,} draws from the posterior of all data, R-hat {reference.rhat:.3f}; {accuracy}{far}"
    else:
        more = "; longer training might still gain" if reference.rising else ""
        said = f"all data, {reference.steps:,} steps chosen on validation; {accuracy}{more}{far}"
    return [*facts, ("reference", said)]
