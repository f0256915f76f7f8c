"""Tables of the benchmarks of methods that learn through training, and of the applications, for the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable

import tables
from tables import percent, result, table

from attar.continual import Continual
from attar.nas import Nas
from attar.report.rows import rows
from attar.study import Study


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
        f"Mean ± standard error over {rows(studies[0])[0].coresets} seeds, with {studies[0].config['evaluations']} "
        f"networks for each coreset, which are scored one by one. Settings are those of "
        f"`benchmarks/recipes/meta_learning`. Times are processor seconds of one thread on a shared machine. Reproduce "
        f"with `{studies[0].command}`."
    )
    return "\n".join([*table(("data", "network", "per class", "method", *scores), lines), "", about])


def flexibility() -> str:
    """Test accuracy of distilled sets by the way of training."""
    path = tables.RESULTS / "flexibility" / "flexibility.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks flexibility` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, methods = found["setting"], found["rows"]
    ways = next(iter(methods.values()))["accuracy"]
    lines = [(way, *(percent(row["accuracy"][way]) for row in methods.values())) for way in ways]
    about = (
        f"{setting['data']}, {setting['per_class']} images per class, `{setting['network']}`; test accuracy in percent, "
        f"mean ± standard error over {len(setting['seeds'])} seeds with {setting['draws']} random networks each, scored "
        f"one by one. Reproduce with `{found['command']}`."
    )
    return "\n".join([*table(("training", *(f"`{name}`" for name in methods)), lines), "", about])


TABLES: dict[str, Callable[[], str]] = {"meta-learning": meta_learning, "flexibility": flexibility}
