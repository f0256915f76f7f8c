"""The sentences of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from attar.assess.distance import distillation_ratio
from attar.assess.statistics import FEWEST, SPREAD
from attar.infer.run import EXPERTS
from attar.report.rows import Row, by_size, the_best, the_full
from attar.study.best import CHOSEN
from attar.study.compared import RANDOM, how_long, paired
from attar.study.protocol import HONEST
from attar.study.results import Study, mixing
from attar.study.spec import CONVERGED

LEAK = (
    f"Inference {EXPERTS} (start = experts), which leaks the full data: these scores are higher than the coreset alone "
    "can give."
)
CHOICE = (
    "Where a label says so, the test set chose the best of several coresets or epochs, as in the method’s public code: "
    "these scores are higher than those of a choice without the test set."
)


def class_names(study: Study) -> list[str]:
    """The names of the classes; their numbers if the study does not name all of them."""
    count, named = len(study.runs[0].test.confusion), study.data.get("classes")
    if isinstance(named, Sequence) and not isinstance(named, str) and len(named) == count:
        return [str(name) for name in named]
    return [str(c) for c in range(count)]


def tested(study: Study) -> int:
    """Number of test examples."""
    return sum(map(sum, study.runs[0].test.confusion))


def validated(study: Study) -> int:
    """Number of validation examples."""
    return sum(map(sum, study.runs[0].validation.confusion))


def headline(study: Study, table: list[Row]) -> str:
    """The title: the data and the sizes."""
    sizes = [f"{size:,}" for size in by_size(table)]
    name, full = str(study.data.get("name", "data")), the_full(table)
    if not sizes:
        return f"{name}: the full data"
    source = f"{full.size:,} examples " if full else ""
    return f"{name}: {source}reduced to {_join(sizes)}"


def summary(study: Study, table: list[Row]) -> str:
    """The summary: what was done, which method is best on validation, and its test score."""
    best, full = the_best(table), the_full(table)
    if not best:
        return f"Only the full data was trained on: {_percent(table[0])} test accuracy."
    methods = {row.method for row in table if not row.full}
    name, source = str(study.data.get("name", "The data")), f"its {full.size:,} training examples" if full else "it"
    sizes = _join([f"{size:,}" for size in by_size(table)])
    return " ".join(
        [
            f"{name} has {len(class_names(study))} classes; {source} {'were' if full else 'was'} reduced to {sizes}",
            f"by {_count(len(methods), 'method')} ({runs(table)} each).",
            f"On validation, {best.label} has the highest mean accuracy ({best.amount}):",
            f"networks trained on its examples reach {_percent(best)} accuracy on {tested(study):,} test examples.",
            *_comparisons(best, table),
            *leaks(table),
        ]
    )


def leaks(table: list[Row]) -> list[str]:
    """The warnings for inference that started from full-data experts, and for choices by test accuracy."""
    said = " ".join(row.caution for row in table)
    return [sentence for sign, sentence in ((EXPERTS, LEAK), (CHOSEN, CHOICE)) if sign in said]


def _comparisons(best: Row, table: list[Row]) -> list[str]:
    peers = [row for row in table if not row.full and row.size == best.size and row is not best]
    random = [row for row in peers if row.method == RANDOM]
    selection = [row for row in peers if row.best_selection and row.method != RANDOM]
    against = [f"a random subset of the same size reaches {_percent(row)}{_order(best, row)}" for row in random]
    against += [f"the best selection method, {row.label}, {_percent(row)}{_order(best, row)}" for row in selection]
    full = [row for row in table if row.full]
    against += [f"{row.called}, {_percent(row)}{_order(best, row)}" for row in full]
    if full and full[-1].accuracy.mean > 0:
        against[-1] += f", of which {best.label} keeps {_ratio(best, full[-1]):.0f}\u00a0%"
    if best.method == RANDOM:
        against.insert(0, "this is the random subset itself, so no method justified its cost")
    gaps = [gap for row in (*random, *selection, *full) if (gap := paired(best.runs, row.runs))]
    few = bool(gaps) and all(gap.order == "too few seeds" for gap in gaps)
    doubt = (
        [f"These are too few seeds to say which is above another: it takes {_count(FEWEST, 'seed')}."] if few else []
    )
    return [f"For comparison: {'; '.join(against)}.", *doubt] if against else []


def _order(best: Row, other: Row) -> str:
    """Where the best row lies relative to another; with too few seeds that is left to one sentence for all."""
    gap = paired(best.runs, other.runs)
    return f" ({best.label}: {gap})" if gap and gap.order != "too few seeds" else ""


def _ratio(best: Row, full: Row) -> float:
    return distillation_ratio(best.accuracy.mean / 100, full.accuracy.mean / 100)


def protocol(study: Study, table: list[Row]) -> list[str]:
    """How the scores were made, and their limits."""
    return [
        f"Choices (such as “best on validation” and “best selection”) use only the {validated(study):,} validation "
        f"examples.",
        *_settings(study, table),
        *(f"{_capital(row.called)}: {how_long(row.runs)}." for row in table if row.method == CONVERGED),
        *_inferred(table),
        *(f"Chains: {line}." for line in mixing(study)),
        *_spread(table),
        *leaks(table),
    ]


def _settings(study: Study, table: list[Row]) -> list[str]:
    """Which network and training the rows have, and what the test set is used for."""
    if study.protocol == HONEST:
        return [
            f"The {tested(study):,} test examples are used once for each reported score, after all choices.",
            "All rows train the same network with the same settings, except for the full data trained to convergence; "
            "only methods with a learnt step size, regression labels or a prescribed augmentation use their own "
            "settings for these.",
        ]
    sources: dict[str, list[str]] = {}
    for row in table:
        sources.setdefault(row.source, []).append(row.label)
    told = "; ".join(f"{', '.join(dict.fromkeys(names))}: {source}" for source, names in sources.items())
    return [
        f"Protocol {study.protocol}: every row has the training, the number of networks and the choice of a checkpoint "
        f"of its public code, so budgets differ between rows. Sources: {told}.",
    ]


def _inferred(table: list[Row]) -> list[str]:
    """The sampler of every row, if they differ."""
    ways: dict[str, list[str]] = {}
    for row in table:
        for way in sorted({str(run.notes["sampler"]) for run in row.runs if run.notes.get("sampler")}):
            ways.setdefault(way, []).append(row.label)
    if len(ways) < 2:
        return []
    told = "; ".join(f"{way} for {', '.join(dict.fromkeys(names))}" for way, names in ways.items())
    return [f"Posteriors are inferred with each method’s recommended sampler: {told}. Set a sampler to use it for all."]


def _spread(table: list[Row]) -> list[str]:
    """The meaning of ±."""
    if _single(table):
        return ["Every row is one run, so the spread is unknown and no ± is given."]
    said = [
        f"Scores are the {means(table)}; for a single one, no ± is given. {_capital(SPREAD)}.",
        f"Differences are taken seed by seed. “Above” and “below” need {_count(FEWEST, 'seed')} and an interval of the "
        "difference without zero; an interval with zero is “not distinguishable”.",
    ]
    reduced = [row for row in table if not row.full]
    if any(row.coresets == 1 and row.evaluations > 1 for row in reduced):
        said.append(
            "For a single coreset, ± is the variation between its evaluations, not between coresets of its method."
        )
    if any(row.coresets > 1 and row.evaluations > 1 for row in reduced):
        said.append("Each coreset counts once, with the mean of its evaluations, which are not independent.")
    return said


def means(table: list[Row]) -> str:
    """What a score of the table is."""
    return "score of one run" if _single(table) else f"mean over {runs(table)}, ± 95 % t-interval"


def _single(table: list[Row]) -> bool:
    return all(len(row.runs) == 1 for row in table)


def runs(table: list[Row]) -> str:
    """What means are over: coresets, their evaluations, or both."""
    reduced = [row for row in table if not row.full]
    thing = "coreset" if reduced else "seed"
    coresets = sorted({row.coresets for row in reduced or table})
    evaluations = sorted({row.evaluations for row in reduced or table})
    if coresets == [1]:
        return f"one {thing}" if evaluations == [1] else f"{_range(evaluations, 'evaluation')} of one {thing}"
    again = "" if evaluations == [1] else f" ({_range(evaluations, 'evaluation')} each)"
    return f"{_range(coresets, thing)}{again}"


def singles(table: list[Row]) -> str:
    """What a faint dot is."""
    return "evaluations" if all(row.coresets == 1 for row in table) else "coresets"


def untold(table: list[Row]) -> str:
    """A note on rows without film and log; empty if there are none."""
    if not table:
        return ""
    names = _join([f"{row.label} ({row.amount})" for row in table])
    return f"Neither film nor log is in the study’s folder, so how these were learnt is not shown: {names}."


def cost_rows(table: list[Row]) -> list[tuple[Row, list[str]]]:
    """Mean seconds and highest memory of the reduction and of the inference of every row."""
    return [(row, _cost(row, reduce=True) + _cost(row, reduce=False)) for row in table]


def _cost(row: Row, reduce: bool) -> list[str]:
    costs = [run.reduce_cost if reduce else run.infer_cost for run in row.runs]
    if row.full and reduce:
        return ["–", "–", "–"]
    wall, cpu = (sum(values) / len(costs) for values in zip(*((c.wall, c.cpu) for c in costs), strict=True))
    return [seconds(wall), seconds(cpu), f"{max(c.memory for c in costs) / 2**20:,.0f}"]


def seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested keys and values as dotted names and text."""
    pairs: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            pairs += flat(value, f"{name}.")
        elif name.endswith("cost.memory") and isinstance(value, int):
            pairs.append((name, f"{value / 2**20:,.0f} MiB"))
        elif name.endswith(("cost.wall", "cost.cpu")):
            pairs.append((name, f"{plain(value)} s"))
        else:
            pairs.append((name, plain(value)))
    return pairs


def plain(value: Any) -> str:
    """A value as text: three digits of a long fraction, a dash for nothing."""
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "–"
    if value is None or value == {}:
        return "–"
    if isinstance(value, float) and len(str(value)) > 7 and isfinite(value):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
    return str(value)


def _percent(row: Row) -> str:
    return f"{row.accuracy:.1f}\u00a0%"


def _range(counts: Sequence[int], thing: str) -> str:
    return _count(counts[0], thing) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} {thing}s"


def _count(number: int, thing: str) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return f"{words[number] if number < len(words) else number} {thing}{'' if number == 1 else 's'}"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
