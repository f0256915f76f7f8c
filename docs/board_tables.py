"""Parts of the pages on the board: its rules, its scores, and which method to choose, in words that intervals give."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from tables import RESULTS, noted, table

from attar.assess.statistics import FEWEST, SPREAD, t_interval, with_half
from attar.board import Problem, Results, Score
from attar.coreset import Coreset
from attar.data.load import TEXTS
from attar.report.board import RULES
from attar.study.compared import RANDOM

METRICS = (("accuracy", 100, ".1f"), ("nll", 1, ".3f"), ("ece", 1, ".3f"))
FOLDER = Path(__file__).parents[1] / "results"
LONG = ("-wide", "-branches", "-branches-4")  #: how the names of problems with long runs end
# The best accuracy (%) and the best NLL of any method, which need not be one method's, with ConvNet-D3W128: Table 1 of
# Tiwary, Shubham, Kashyap & Prathosh, Bayesian Pseudo-Coresets via Contrastive Divergence, UAI 2024.
TABLE_1 = {
    ("mnist", 1): (93.42, 1.53), ("mnist", 10): (97.71, 1.51), ("mnist", 50): (98.91, 1.36),
    ("fashion-mnist", 1): (78.24, 1.90), ("fashion-mnist", 10): (88.40, 1.53), ("fashion-mnist", 50): (89.47, 1.30),
    ("cifar10", 1): (46.87, 1.87), ("cifar10", 10): (56.39, 1.72), ("cifar10", 50): (71.93, 1.54),
}  # fmt: skip
TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
KINDS = {"image": "Images", "text": "Texts", "model": "Bayesian models with a known posterior"}


def rules() -> str:
    """The rules of admission."""
    return "\n".join(f"{number}. {rule}" for number, rule in enumerate(RULES, 1))


def scores() -> str:
    """All scores as one table."""
    board = Results.read(FOLDER)
    classes = {"balanced_accuracy": "balanced, %", "worst": "worst class, %", "majority": "majority, %"}
    first, rest = (
        ("problem", "per class", "method", "accuracy, %", "over random, points"),
        ("distance", "floor", "CPU s"),
    )
    head = (*first, *classes.values(), "NLL", "ECE", *rest)
    ordered = sorted(board.scores, key=lambda score: (score.problem, score.per_class, -score.validation_accuracy))
    lines = [
        (
            score.problem,
            score.per_class,
            f"`{score.method}`",
            _figure(score, "accuracy", 100, ".1f"),
            _gain(board, score),
            *(_figure(score, metric, 100, ".1f") for metric in classes),
            _figure(score, "nll", 1, ".2f"),
            _figure(score, "ece", 1, ".3f"),
            "–" if score.distance is None else f"{score.distance:.3f}",
            _floor(board, score),
            "–" if score.cpu_seconds is None else f"{score.cpu_seconds:.1f}",
        )
        for score in ordered
    ]
    about = (
        f"Means over seeds; {SPREAD}. Rows of a problem and size are ordered by validation accuracy. Distance is the "
        "total variation from the predictive of the reference, floor that distance for all data with another seed, "
        "CPU s what making a coreset took. Balanced is the mean accuracy over classes, worst class the lowest recall "
        "of one, majority the accuracy of always answering the most frequent training class. A dash is what a file "
        "from before does not have. Reproduce with `python -m benchmarks board`."
    )
    return noted(head, lines, about)


def long_runs() -> str:
    """What long runs of vbpc reach, beside random subsets and published figures."""
    board = Results.read(FOLDER)
    own_head = ("data", "per class", "accuracy, %", "NLL", "ECE", "random subset, %", "network")
    head = (*own_head, "steps", "CPU minutes", "loss at ¼, ½, ¾ and the end", "published, %", "NLL")
    lines = []
    for score in _long(board):
        random = board.random(score.problem, score.per_class)
        accuracy, nll = TABLE_1[score.data, score.per_class]
        assert random is not None
        assert score.cpu_seconds is not None
        own = (_figure(score, name, scale, spec) for name, scale, spec in METRICS)
        network = f"`{board.problems[score.problem].network}`"
        made = (network, f"{_steps(score):,}", f"{score.cpu_seconds / 60:.0f}", _curve(score))
        known = (f"{accuracy:.1f}", f"{nll:.2f}")
        lines.append((score.data, score.per_class, *own, _figure(random, *METRICS[0]), *made, *known))
    about = (
        "`vbpc`; `benchmarks/_problems.py` has all settings. Five networks are averaged; `b8` stands for eight stacks "
        f"side by side under one last layer. Means over seeds; {SPREAD}. CPU minutes are those of one coreset on one "
        "core. The loss is the mean over the last twentieth of the steps up to that point and over seeds, on real "
        "batches and networks of the pool, to which the examples are fitted: on new networks it may be higher. A dash "
        "is a run from before curves were kept. Published are the best accuracy and the best NLL of any method in "
        "Table 1 of Tiwary et al. (UAI 2024), with ConvNet-D3W128: a mark, not a target, since settings and the "
        "number of averaged networks differ. Reproduce with `PROBLEMS=fashion-mnist-wide SIZES=1,10 python -m "
        "benchmarks board`, and likewise for the other problems. Sizes that are not here have not been run."
    )
    return noted(head, lines, about)


def long_headline() -> str:
    """What long runs reach in a small table; of several runs of a size, the one with the best validation accuracy."""
    board = Results.read(FOLDER)
    best = {(score.data, score.per_class): score for score in sorted(_long(board), key=lambda s: s.validation_accuracy)}
    minutes = [score.cpu_seconds / 60 for score in best.values() if score.cpu_seconds is not None]
    draws = _only({board.problem(score.problem).draws for score in best.values()})
    seeds = _only({len(score.seeds) for score in best.values()})
    head = ("long runs of `vbpc`, images per class", *(f"{title}, %" for title in TITLES.values()))
    lines = [
        (size, *(_short(best.get((data, size))) for data in TITLES)) for size in sorted({size for _, size in best})
    ]
    about = (
        f"Test accuracy, and NLL in brackets. Learning a set takes {min(minutes):.0f} to {max(minutes):.0f} minutes on "
        f"one processor core. Predictions of {draws} networks are averaged; means over {seeds} seeds; {SPREAD} "
        "([more](docs/results.md#what-long-runs-reach))."
    )
    return noted(head, lines, about)


def _short(score: Score | None) -> str:
    """Accuracy and NLL in one cell."""
    return "–" if score is None else f"{_figure(score, *METRICS[0])} ({score.nll:.3f})"


def _only(values: set[int]) -> int:
    """The value that all rows of a sentence share."""
    (value,) = values
    return value


def _long(board: Results) -> list[Score]:
    """The scores of long runs, by data and size."""
    found = [score for score in board.scores if score.problem.endswith(LONG) and score.method != RANDOM]
    return sorted(found, key=lambda score: (score.data, score.per_class, score.problem))


def _steps(score: Score) -> int:
    """The optimiser steps of a score's coresets: from a learning curve, or from the file of one where none was kept."""
    curves = _curves(score)
    if curves:
        return int(curves[0]["steps"][-1])
    return int(Coreset.load(FOLDER / "coresets" / score.coresets[0]).recipe.descent["steps"])


def _curves(score: Score) -> list[dict[str, Any]]:
    """The learning curves of a score's coresets, if they were kept."""
    paths = [RESULTS / "board" / f"{score.key}-{seed}.json" for seed in score.seeds]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def _curve(score: Score) -> str:
    """The mean learning curve of a score's coresets in four figures."""
    losses = [found["loss"] for found in _curves(score)]
    if not losses:
        return "–"
    return ", ".join(f"{mean(loss[len(loss) * part // 4 - 1] for loss in losses):.3f}" for part in (1, 2, 3, 4))


def choose() -> str:
    """Which method: by kind of data, size, budget and need for calibration."""
    board = Results.read(FOLDER)
    parts = []
    for kind, title in KINDS.items():
        problems = [problem for problem in board.problems.values() if _kind(problem) == kind and board.of(problem.name)]
        if not problems:
            parts.append(f"### {title}\n\nNo scores are on the board yet: `attar submit` adds them.")
            continue
        lines = [line for problem in problems for line in _problem(board, problem)]
        parts.append("\n".join([f"### {title}\n", *lines]))
    return "\n\n".join(parts)


def regret() -> str:
    """What recommendations lose against the best method, on data sets that they were not made from."""
    found = json.loads((RESULTS / "recommend" / "regret.json").read_text(encoding="utf-8"))
    ways = {"recommend": "`attar recommend`", **{name: f"always `{name}`" for name in found["accuracy"]["less"]}}
    head = ("data left out", "per class", "recommended", "best", *ways.values())
    lines = [
        (
            row["data"],
            row["per_class"],
            f"`{row['chosen']}`",
            f"`{row['best']}`",
            *(f"{row['regret'][way]:.1f}" for way in ways),
        )
        for row in found["accuracy"]["rows"]
    ]
    lines.append(("**mean**", "", "", "", *(f"**{found['accuracy']['mean'][way]:.1f}**" for way in ways)))
    return "\n".join([*table(head, lines), "", *(_less(found, goal) for goal in ("accuracy", "calibration"))])


def _less(found: dict[str, Any], goal: str) -> str:
    """How the regret of recommendations compares with that of fixed methods."""
    unit, digits = ("points", ".1f") if goal == "accuracy" else ("NLL", ".2f")
    rows, said = found[goal]["rows"], []
    for name, gap in found[goal]["less"].items():
        gaps = [row["regret"][name] - row["regret"]["recommend"] for row in rows]
        counts = (
            f"{sum(g > 0 for g in gaps)} better, {sum(g == 0 for g in gaps)} equal, {sum(g < 0 for g in gaps)} worse"
        )
        said.append(f"- always `{name}`: {with_half(*gap, f'+{digits}')} ({counts})")
    about = (
        f"\nGoal {goal}: the mean regret is {found[goal]['mean']['recommend']:{digits}} {unit}. How much more others "
        f"have, over {len({row['data'] for row in rows})} data sets ({SPREAD}), and on how many of the {len(rows)} "
        "problems the recommendation is better, equal or worse:\n"
    )
    return "\n".join([about, *said])


def _problem(board: Results, problem: Problem) -> Iterator[str]:
    for size in sorted({score.per_class for score in board.of(problem.name)}):
        rows = [score for score in board.of(problem.name, size) if score.method != RANDOM]
        if not rows:
            continue
        examples = "example" if size == 1 else "examples"
        yield f"**{problem.name}, {size} {examples} per class** ({problem.protocol}, `{problem.network}`)\n"
        if all(len(score.seeds) < FEWEST for score in rows):
            yield f"- Fewer than {FEWEST} seeds, so no order is claimed."
            yield from (f"- {_reached(board, score)}" for score in rows)
            yield ""
            continue
        yield f"- Accuracy: {_above(board, rows, 'accuracy', 100, better=1)}"
        yield f"- NLL, lower is better: {_above(board, rows, 'nll', 1, better=-1)}"
        yield f"- Calibration (ECE, lower is better): {_above(board, rows, 'ece', 100, better=-1)}"
        yield f"- {_first(board.of(problem.name, size))}"
        yield f"- {_cheap(board, rows)}\n"


def _reached(board: Results, score: Score) -> str:
    """What a method reaches that has too few seeds for an order."""
    random = board.random(score.problem, score.per_class)
    beside = "" if random is None else f" (random subsets {_figure(random, *METRICS[0])} %)"
    cost = "" if score.cpu_seconds is None else f", {score.cpu_seconds:,.0f} CPU s for one coreset"
    own = [_figure(score, *metric) for metric in METRICS]
    return f"`{score.method}`: {own[0]} %{beside}, NLL {own[1]}, ECE {own[2]}{cost}."


def _above(board: Results, rows: list[Score], metric: str, scale: float, better: int) -> str:
    """Which methods differ from random subsets by more than the interval, and which do not."""
    gaps = {score.method: board.gain(score, metric, better * scale) for score in rows}
    words = {"above": "better than random", "below": "worse than random"}
    words |= {"not distinguishable": "not distinguishable from random", "too few seeds": f"fewer than {FEWEST} seeds"}
    said = []
    for order, meaning in words.items():
        names = [f"`{name}`" for name, gap in gaps.items() if (gap.order if gap else "too few seeds") == order]
        said += [f"{meaning}: {', '.join(names)}"] if names else []
    return "; ".join(said) + "."


def _first(rows: list[Score]) -> str:
    """The method with the best validation accuracy, and those that its test accuracy is not above."""
    best = max(rows, key=lambda score: score.validation_accuracy)
    others = [score for score in rows if score is not best]
    gaps = {score.method: best.against(score) for score in others}
    clear = [name for name, gap in gaps.items() if gap and gap.order == "above"]
    unclear = [name for name in gaps if name not in clear]
    words = f"Highest on validation, random subsets included: `{best.method}`"
    if clear:
        words += f", on test above {', '.join(f'`{name}`' for name in clear)}"
    if unclear:
        words += f"; an order against {', '.join(f'`{name}`' for name in unclear)} is not shown"
    return words + "."


def _cheap(board: Results, rows: list[Score]) -> str:
    """The methods by cost, cheapest first, that are better than random in accuracy."""
    paid = [(score.cpu_seconds, score) for score in rows if score.cpu_seconds is not None]
    good = [(cost, score) for cost, score in paid if (gap := board.gain(score)) and gap.order == "above"]
    judged = [score for _, score in paid if len(score.seeds) >= FEWEST]
    if not paid:
        return "Budget: no method here has a cost on record."
    if not judged:
        return f"Budget: no method with a cost on record has {FEWEST} seeds, so none is called better than random."
    if not good:
        return "Budget: no method with a cost on record is above random here, so take a random subset."
    listed = ", ".join(f"`{score.method}` {cost:.1f} s" for cost, score in sorted(good, key=lambda pair: pair[0]))
    return f"Budget, of those above random, CPU seconds for one coreset: {listed}."


def _kind(problem: Problem) -> str:
    if problem.model is not None:
        return "model"
    return "text" if problem.data in TEXTS else "image"


def _floor(board: Results, score: Score) -> str:
    full = board.reference(score.problem)
    return "–" if full is None or full.floor is None else f"{full.floor:.3f}"


def _figure(score: Score, metric: str, scale: float, spec: str) -> str:
    if getattr(score, metric) is None:  # in older files
        return "–"
    return with_half(*t_interval([scale * value for value in score.values(metric)]), spec)


def _gain(board: Results, score: Score) -> str:
    gap = board.gain(score)
    if score.gain_over_random is None:
        return "–"
    return with_half(100 * score.gain_over_random, gap.half if gap else None, "+.1f")


TABLES: dict[str, Callable[[], str]] = {
    "board-rules": rules,
    "board-scores": scores,
    "long-runs": long_runs,
    "long-headline": long_headline,
    "choose": choose,
    "regret": regret,
}
