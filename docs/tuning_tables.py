"""Tables of settings that were tried on validation data, for the documentation."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from statistics import mean
from typing import Any

import tables
from tables import noted, table

from attar.assess.statistics import SPREAD, Paired, with_half


def vbpc_levers() -> str:
    """The options of vbpc, each alone against the same baseline, on validation data."""
    path = tables.RESULTS / "vbpc_levers" / "levers.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks vbpc_levers` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, lines, cpu = found["setting"], [], defaultdict(list)
    for run in found["runs"]:
        cpu[run["data"], run["per_class"], run["lever"]].append(run["cpu"])
    for row in found["differences"]:
        accuracy, nll, base = row["accuracy"], row["nll"], row["lever"] == "baseline"
        gaps = (accuracy, 100, "+.1f"), (nll, 1, "+.3f")
        moved = ["–" if base else _gap(score, times, spec) for score, times, spec in gaps]
        place = row["data"], row["per_class"], row["lever"], row["seeds"]
        scores = f"{100 * accuracy['mean']:.1f}", moved[0], f"{nll['mean']:.3f}", moved[1]
        lines.append((*place, *scores, f"{mean(cpu[place[:3]]):.0f}"))
    scores = "validation accuracy, %", "difference", "NLL", "difference"
    head = ("data", "per class", "change", "seeds", *scores, "reduction, CPU s")
    others = {row["lever"]: row["against"] for row in found["differences"] if row["against"] != "baseline"}
    other = "".join(f", that of `{lever}` from `{against}`" for lever, against in others.items())
    options = ", ".join(f"{name} {value}" for name, value in setting["options"].items())
    about = (
        f"Every row is the baseline with one change, or the two that it names: `{setting['network']}`, "
        f"{setting['steps']} steps, {options}; "
        f"{setting['draws']} draw of {setting['training_steps']} training steps. Differences are from the "
        f"baseline{other}, and paired by seed; {SPREAD}. `average` and `augment` change inference alone. Validation "
        f"images only. Reproduce with `{found['command']}`, which goes on where it stopped."
    )
    return noted(head, lines, about)


def _gap(score: dict[str, float], times: int, spec: str) -> str:
    half = score["half"]
    return with_half(times * score["difference"], None if half is None else times * half, spec)


def tune_experts() -> str:
    """Stretches of experts' training, tried with one seed, and the best of each method against the defaults before."""
    path = tables.RESULTS / "tune_experts" / "tune_experts.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks tune_experts` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting = found["setting"]
    tried = [
        (f"`{method}`", name, run["steps"], f"{100 * run['accuracy']:.1f}", f"{run['nll']:.2f}")
        for method, runs in found["tried"].items()
        for name, run in runs.items()
    ]
    head = ("per class", "method", "updates before", "setting", "with it, %", "before, %", "with it, against before")
    about = (
        f"Validation accuracy on {setting['data']}, `{setting['network']}`, {setting['experts']} experts of one epoch; "
        f"one network trained for {setting['training_steps']} steps. The first table has one seed and one image per "
        f"class; the second has the best of each method with other seeds, differences paired by seed, and {SPREAD}. "
        f"Runs of a method take about the same time: fewer steps on the examples, more updates. "
        f"Reproduce with `{found['command']}`."
    )
    first = table(("method", "setting", "updates", "accuracy, %", "NLL"), tried)
    return "\n".join([*first, "", *table(head, map(_compared, found["compared"])), "", about])


def _compared(row: dict[str, Any]) -> tuple[Any, ...]:
    ours, theirs = (
        {seed: 100 * run["accuracy"] for seed, run in row["runs"][name].items()} for name in (row["chosen"], "before")
    )
    means = (f"{row['mean']:.1f}", f"{row['before']:.1f}")
    return row["per_class"], f"`{row['method']}`", row["updates"], row["chosen"], *means, Paired.of(ours, theirs)


def tune_rates() -> str:
    """Learning rates of methods that learn from experts, at ten images per class."""
    path = tables.RESULTS / "tune_rates" / "tune_rates.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks tune_rates` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, accuracy = found["setting"], {}
    for row in found["rows"]:
        accuracy[row["method"], row["lr"]] = {seed: 100 * run["accuracy"] for seed, run in row["runs"].items()}
    first = max(rate for _, rate in accuracy if rate is not None)
    lines = [
        (
            f"`{method}`",
            setting["updates"].get(method, "–"),
            "–" if rate is None else rate,
            f"{mean(own.values()):.1f}",
            "–" if rate in (None, first) else Paired.of(own, accuracy[method, first]),
            "–" if rate is None else Paired.of(own, accuracy["uniform", None]),
        )
        for (method, rate), own in accuracy.items()
    ]
    head = ("method", "updates", "learning rate", "accuracy, %", f"against {first}", "against random images")
    about = (
        f"Validation accuracy on {setting['data']}, {setting['per_class']} images per class, `{setting['network']}`, "
        f"{setting['experts']} experts of one epoch, {len(setting['seeds'])} seeds; one network trained for "
        f"{setting['training_steps']} steps. Other options are the defaults. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


TABLES: dict[str, Callable[[], str]] = {
    "vbpc-levers": vbpc_levers,
    "tune-experts": tune_experts,
    "tune-rates": tune_rates,
}
