"""Tables of the benchmarks of methods that learn through training, and of the applications, for the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable

import tables
from tables import noted, percent, result

from attar.assess.metrics import mean_and_error
from attar.assess.statistics import SPREAD
from attar.continual import Continual
from attar.continual.results import RESULT, forgetting, interval
from attar.nas import Nas
from attar.nas.results import RESULT as SEARCH
from attar.nas.results import TOP, summarised
from attar.report.rows import rows
from attar.study import Study
from attar.study.results import values


def meta_learning() -> str:
    """All studies as one table, and how they were made."""
    studies = [Study.load(path) for path in sorted((tables.RESULTS / "meta_learning").glob("*/study.json"))]
    if not studies:
        return "No results are committed yet: `python -m benchmarks meta_learning` makes them."
    lines = [
        (study.data["name"], f"`{study.config['network']}`", *result(row)) for study in studies for row in rows(study)
    ]
    scores = ("test accuracy, %", "NLL", "ECE", "reduction, CPU s", "training, CPU s")
    about = (
        f"Means over {rows(studies[0])[0].coresets} seeds ({SPREAD}), with {studies[0].config['evaluations']} "
        f"networks for each coreset, which are scored one by one. Settings are those of "
        f"`benchmarks/recipes/meta_learning`. Times are processor seconds of one thread on a shared machine. Reproduce "
        f"with `{studies[0].command}`."
    )
    return noted(("data", "network", "per class", "method", *scores), lines, about)


def flexibility() -> str:
    """Test accuracy of distilled sets by the way of training."""
    path = tables.RESULTS / "flexibility" / "flexibility.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks flexibility` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, methods = found["setting"], found["rows"]
    ways = next(iter(methods.values()))["accuracy"]
    lines = [(way, *(percent(row["accuracy"][way], len(setting["seeds"])) for row in methods.values())) for way in ways]
    about = (
        f"{setting['data']}, {setting['per_class']} images per class, `{setting['network']}`; test accuracy in "
        f"percent, means over {len(setting['seeds'])} seeds ({SPREAD}) with {setting['draws']} random networks "
        f"each, scored one by one. Reproduce with `{found['command']}`."
    )
    return noted(("training", *(f"`{name}`" for name in methods)), lines, about)


def continual() -> str:
    """Class-incremental learning: average accuracy and forgetting by method."""
    path = tables.RESULTS / "applications" / "continual-fashion" / RESULT
    if not path.exists():
        return f"No results are committed yet: `attar continual --recipe {_recipe('continual')}` makes them."
    found = Continual.load(path)
    lines = []
    for method, runs in found.groups().items():
        averages, last = [found.average(run) for run in runs], [found.curve(run)[-1] for run in runs]
        spent = sum(cost.cpu for run in runs for cost in run.reduce_cost) / len(runs)
        forgot = interval([forgetting(run.test) for run in runs])
        lines.append((method, interval(averages), interval(last), forgot, f"{spent:.0f}"))
    head = ("memory", "average accuracy, %", "after the last stage, %", "forgetting, %", "reduction, CPU s")
    about = (
        f"Fashion-MNIST, {len(found.stages)} stages, {found.config['per_class']} examples per class, "
        f"`{found.config['network']}`; test data, means over {len(found.config['seeds'])} seeds; {SPREAD}. "
        f"Reproduce with `{found.command}`."
    )
    return noted(head, lines, about)


def nas() -> str:
    """Architecture search by what networks are trained on."""
    path = tables.RESULTS / "applications" / "nas-fashion" / SEARCH
    if not path.exists():
        return f"No results are committed yet: `attar nas --recipe {_recipe('nas')}` makes them."
    found = Nas.load(path)
    lines = [(row, *summarised(found, row, seeds)) for row, seeds in found.searches().items()]
    head = ("trained on", "correlation", f"top {TOP}", "chosen, test %", "time, % of full", "without making the set, %")
    about = (
        f"Fashion-MNIST, {len(found.networks)} ConvNets, {found.config['per_class']} examples per class, one search "
        f"per row. Full data: {found.config['full_steps']} steps. Reproduce with `{found.command}`."
    )
    return noted(head, lines, about)


def bias() -> str:
    """Accuracy over all classes and of the worst one, with classes of unequal size and with wrong labels."""
    paths = {name: tables.RESULTS / "bias" / name / "study.json" for name in ("bias-imbalance", "bias-flips")}
    if not all(path.exists() for path in paths.values()):
        return "No results are committed yet: `python -m benchmarks bias` makes them."
    studies, lines = {name: Study.load(path) for name, path in paths.items()}, []
    for method, size in studies["bias-flips"].groups():
        scores = []
        for study in studies.values():
            runs = study.groups()[method, size]
            for score in (lambda run: run.test.accuracy, lambda run: run.test.worst):
                mean, error = mean_and_error(values(runs, score))
                scores.append(percent({"mean": mean, "error": error}, len(runs)))
        lines.append((method, *scores))
    head = ("method", "imbalance: accuracy, %", "worst class, %", "flipped labels: accuracy, %", "worst class, %")
    one = studies["bias-flips"]
    about = (
        f"Fashion-MNIST, {one.runs[0].per_class} examples per class, `{one.config['network']}`; test data, means over "
        f"{len({run.seed for run in one.runs})} seeds; {SPREAD}. Full data is before reduction. Reproduce with "
        f"`{one.command}`."
    )
    return noted(head, lines, about)


def activations() -> str:
    """Learnt and random images by activation, norm and pooling."""
    path = tables.RESULTS / "activations" / "activations.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks activations` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in found["rows"]:
        cells.setdefault((row["changed"], row["to"]), {})[row["method"]] = percent(row["accuracy"], row["seeds"])
    methods = list(next(iter(cells.values())))
    lines = [(*place, *(scores[method] for method in methods)) for place, scores in cells.items()]
    setting = found["setting"]
    about = (
        f"{setting['data']}, {setting['per_class'][0]} image per class, `{setting['network']}` with one change; test "
        f"accuracy in percent over {len(setting['seeds'])} seeds; {SPREAD}. Reproduce with `{found['command']}`."
    )
    return noted(("changed", "to", *(f"`{name}`" for name in methods)), lines, about)


def _recipe(name: str) -> str:
    return f"benchmarks/recipes/applications/{name}-fashion.toml"


TABLES: dict[str, Callable[[], str]] = {
    "meta-learning": meta_learning,
    "flexibility": flexibility,
    "continual": continual,
    "nas": nas,
    "bias": bias,
    "activations": activations,
}
