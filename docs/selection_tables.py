"""Tables of the selection benchmarks for the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import tables
from tables import interval, noted, percent, table

from attar.assess.statistics import SPREAD, Paired, over_seeds
from attar.report.words import seconds


def accuracy() -> str:
    """The study of selection: accuracy by method and fraction, with costs."""
    found = _found("study")
    if found is None:
        return "No results are committed yet: `python -m benchmarks selection_study` makes them."
    setting, fractions, seeds = found["setting"], list(found["table"]), len(found["setting"]["seeds"])
    best, middle = found["table"][fractions[-1]], found["table"][fractions[len(fractions) // 2]]
    order = sorted(best, key=lambda name: -best[name]["accuracy"]["mean"])
    heads = [f"{100 * float(fraction):g} %" for fraction in fractions]
    lines = [
        (
            f"`{name}`",
            *(percent(found["table"][fraction][name]["accuracy"], seeds) for fraction in fractions),
            f"{middle[name]['hardness']['mean']:.2f}",
            seconds(best[name]["selection_cpu"]),
        )
        for name in order
    ]
    lines.append(("full data", *[""] * (len(fractions) - 1), percent(found["full"]["accuracy"], seeds), "1.00", "–"))
    about = (
        f"Test accuracy in percent on {setting['data']}, means over {seeds} seeds ({SPREAD}), "
        f"sorted by accuracy at {heads[-1]}. Picks are from {setting['train']:,} training examples, equally many per "
        f"class. All methods of a seed share one scoring network at the end of its training, that is, with `fit=1` "
        f"where a method has it (`{setting['network']}`, "
        f"{setting['scoring']['steps']:,} steps, {seconds(found['scoring_cpu'])} CPU s). New networks are trained on "
        f"the picks, and on the full data, for {setting['training']['steps']} steps with batches of "
        f"{setting['training']['batch']}. The loss of the picks is their mean loss under the scoring network, "
        f"relative to that of all examples. Times are processor seconds of selection at {heads[-1]} without the "
        f"scoring network, on a shared machine. Reproduce with `{found['command']}`."
    )
    head = ("method", *heads, f"loss of the picks at {heads[len(heads) // 2]}", f"selection at {heads[-1]}, CPU s")
    return noted(head, lines, about)


def above() -> str:
    """Gains over a random subset, paired by seed, of methods that are better at some fraction."""
    found = _found("study")
    if found is None:
        return ""
    above = found["above_uniform"]
    lines = [
        (f"`{name}`", *(interval(above[f][name], len(found["setting"]["seeds"]), 100, "+.1f") for f in above))
        for name in above[next(iter(above))]
        if any(above[f][name]["mean"] > 0 for f in above)
    ]
    heads = (f"{100 * float(f):g} %" for f in above)
    return "\n".join(table(("gain over `uniform`", *heads), lines))


def fit() -> str:
    """Methods whose scoring network stops by fit, against a random subset."""
    return _fitted("fit", _against_random)


def fit_choice() -> str:
    """Values of fit that were tried."""
    return _fitted("fit_choice", _choice)


def fit_steps() -> str:
    """Step sizes of glister that were tried."""
    return _fitted("fit_steps", _against_random)


def fit_published() -> str:
    """What published code does otherwise than its papers, beside their equations."""
    return "\n\n".join(_fitted(name, _against_random) for name in ("fit_published", "fit_mode"))


def _fitted(name: str, say: Callable[[dict[str, Any]], str]) -> str:
    found = _found(name)
    if found is None:
        return f"Not measured here yet (`{name}`): `python -m benchmarks selection_fit` makes the table."
    return say(found)


def _against_random(found: dict[str, Any]) -> str:
    """Accuracies by data set and fraction, and the order that the differences to a random subset give, seed by seed."""
    setting, groups = found["setting"], found["accuracies"]
    lines = [
        (data, f"`{label}`", *(cell for f in by for cell in _with_order(by[f], rows["uniform"][f], label)))
        for data, rows in groups.items()
        for label, by in rows.items()
    ]
    heads = (head for f in setting["fractions"] for head in (f"{100 * f:g} %", "against `uniform`"))
    about = (
        f"{'Test' if setting['test'] else 'Validation'} accuracy in percent, {len(setting['seeds'])} seeds; {SPREAD}, "
        f"and the order is that of the differences, seed by seed. Picks are from {setting['examples']:,} training "
        f"examples, equally many per class; the scoring network (`{setting['network']}`) takes at most "
        f"{setting['scoring']['steps']} steps. New networks learn from the picks for {setting['training']['steps']} "
        f"steps with batches of at most {setting['training']['batch']}{_learner(setting)}. "
        f"Reproduce with `{found['command']}`."
    )
    return noted(("data", "method", *heads), lines, about)


def _learner(setting: dict[str, Any]) -> str:
    """The network that learns from the picks, if it is not the scoring network."""
    name = setting.get("learner", setting["network"])
    return "" if name == setting["network"] else f" (`{name}`)"


def _with_order(ours: list[float], random: list[float], label: str) -> tuple[str, str]:
    shares = [[100 * value for value in values] for values in (ours, random)]
    gap = Paired.of(*(dict(enumerate(values)) for values in shares))
    return over_seeds(shares[0], ".1f"), "–" if label == "uniform" or gap is None else str(gap)


def _choice(found: dict[str, Any]) -> str:
    """Validation accuracy above a random subset by fit."""
    setting, gains = found["setting"], found["gains"]
    labels = [label for label in next(iter(gains.values())) if label != "uniform"]
    lines = [(f"`{label}`", *(f"{100 * by[label]:+.1f}" for by in gains.values())) for label in labels]
    about = (
        f"Validation accuracy in percentage points above a random subset, mean of {_percents(setting['fractions'])} of "
        f"{setting['examples']:,} examples, seed {', '.join(map(str, setting['seeds']))}; the test set is not read. "
        f"Reproduce with `{found['command']}`."
    )
    return noted(("method", *gains), lines, about)


def _percents(fractions: list[float]) -> str:
    return " and ".join(f"{100 * f:g} %" for f in fractions)


def further() -> str:
    """Larger fractions, other networks, the radius of LCMat-S, and the training of the scoring network."""
    parts = {"wide": _wide, "architectures": _architectures, "rho": _radius, "robustness": _robustness}
    return "\n\n".join("\n".join(say(found)) for name, say in parts.items() if (found := _found(name)))


def _wide(found: dict[str, Any]) -> list[str]:
    setting = found["setting"]
    seen = setting["training"]["steps"] * setting["training"]["batch"] / setting["train"]
    epochs = " and ".join(f"{seen / float(f):.1g} at {100 * float(f):g} %" for f in found["table"])
    about = (
        f"Larger fractions, {len(setting['seeds'])} seeds, {setting['training']['steps']} steps with batches of "
        f"{setting['training']['batch']} (epochs: {epochs}):"
    )
    return [about, "", *_accuracies(found, [f"{100 * float(fraction):g} %" for fraction in found["table"]])]


def _architectures(found: dict[str, Any]) -> list[str]:
    setting = found["setting"]
    about = (
        f"Other networks, trained on the picks of scoring network `{setting['network']}`, "
        f"{100 * setting['fraction']:g} %, {len(setting['seeds'])} seeds:"
    )
    return [about, "", *_accuracies(found, [f"`{network}`" for network in found["table"]])]


def _radius(found: dict[str, Any]) -> list[str]:
    lines = [
        (
            f"`{row['method']}`",
            "–" if row.get("rho") is None else f"{row['rho']:g}",
            {None: "–", True: "yes", False: "no"}[row.get("weighted")],
            percent(row["accuracy"], len(found["setting"]["seeds"])),
            interval(row["gap"], len(found["setting"]["seeds"]), 1, ".2f"),
        )
        for row in found["table"]
    ]
    setting = found["setting"]
    about = (
        f"LCMat-S by its radius ρ, with the loss-curvature gap of Eq. 4 within {setting['radius_of_the_gap']:g} "
        f"({setting['examples']:,} examples, {100 * setting['fraction']:g} %, {len(setting['seeds'])} seeds):"
    )
    return [about, "", *table(("method", "ρ", "weights", "test accuracy, %", "gap"), lines)]


def _robustness(found: dict[str, Any]) -> list[str]:
    setting, ways = found["setting"], len(found["duels_won"])
    overall = ", ".join(f"`{name}` {100 * won:.0f} %" for name, won in found["overall"].items())
    about = (
        f"Pairwise comparisons won, over {ways} training settings of the scoring network ({setting['examples']:,} "
        f"examples, {100 * setting['fraction']:g} %, {len(setting['seeds'])} seeds each): {overall}."
    )
    return [
        f"{about} {_beaten(found)}",
        "",
        "![Pairwise comparisons won](../benchmarks/results/selection/robustness.svg)",
    ]


def _beaten(found: dict[str, Any]) -> str:
    """In how many runs LCMat-S beats a random subset, by the epochs of the scoring network."""
    runs = {(run["condition"], run["method"]): run["accuracies"] for run in found["runs"]}
    pairs: dict[str, list[bool]] = {}
    for condition in found["duels_won"]:
        ours, random = runs.get((condition, "lcmat-s"), []), runs[condition, "uniform"]
        epochs = condition.split(", ")[1]
        pairs.setdefault(epochs, []).extend(a > b for a, b in zip(ours, random, strict=False))
    said = ", ".join(f"{sum(won)} of {len(won)} after {epochs}" for epochs, won in pairs.items() if won)
    return f"Runs in which `lcmat-s` beats `uniform`: {said}." if said else ""


def _accuracies(found: dict[str, Any], heads: list[str]) -> list[str]:
    """One row per method, one column per group."""
    groups, seeds = found["table"].values(), len(found["setting"]["seeds"])
    methods = next(iter(groups))
    lines = [(f"`{name}`", *(percent(group[name]["accuracy"], seeds) for group in groups)) for name in methods]
    return table(("method", *heads), lines)


def _found(name: str) -> dict[str, Any] | None:
    path = tables.RESULTS / "selection" / f"{name}.json"
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def speed() -> str:
    """The cost of selection: against other libraries, by fraction, on wide features, and by parts."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (tables.RESULTS / "selection").glob("*.json")
    }
    if missing := {"facility", "lcmat", "features", "mapreduce"} - found.keys():
        return f"No results are committed yet of: {', '.join(sorted(missing))}."
    longer, setting = found["facility"]["times_longer_than_attar"], found["facility"]["setting"]
    about = (
        f"Facility location with {setting['points']:,} points and {setting['picks']} picks, which all agree on: "
        + ", ".join(f"{name} takes {times:.1f} times as long" for name, times in longer.items())
        + " (processor time, each with its own lazy greedy on the same similarity matrix)."
    )
    lines = [
        (
            f"`lcmat-s`, {found['lcmat']['setting']['examples']:,} images, {100 * float(f):g} %",
            f"{run['selection']['wall']:.0f} s and {run['forward_pass']['wall']:.0f} s for the forward pass",
            f"{max(run['selection']['peak_bytes'], run['forward_pass']['peak_bytes']) / 1e9:.2f} GB",
        )
        for f, run in found["lcmat"]["fractions"].items()
    ]
    wide = found["features"]["setting"]
    lines += [
        (
            f"`{name}`, {wide['examples']:,} x {wide['coordinates']:,} features, {100 * wide['fraction']:g} %",
            f"{run['wall']:.0f} s",
            f"{run['peak_bytes'] / 1e9:.2f} GB",
        )
        for name, run in found["features"]["methods"].items()
    ]
    parts = found["mapreduce"]["setting"]
    lines += [
        (
            f"`{name}` in parts of {parts['part']:,}, {int(n):,} x {parts['coordinates']}, {parts['picks']} picks",
            f"{run['wall']:.0f} s",
            f"{run['peak_bytes_beyond_the_data'] / 1e9:.2f} GB in addition to the data",
        )
        for name, runs in found["mapreduce"]["methods"].items()
        for n, run in runs.items()
    ]
    commands = ", ".join(f"`{found[name]['command']}`" for name in ("facility", "lcmat", "features", "mapreduce"))
    return "\n".join(
        [about, "", *table(("selection", "time", "peak memory"), lines), "", f"Reproduce with {commands}."]
    )


TABLES: dict[str, Callable[[], str]] = {
    "selection": accuracy,
    "selection-above": above,
    "selection-fit": fit,
    "selection-fit-choice": fit_choice,
    "selection-fit-steps": fit_steps,
    "selection-fit-published": fit_published,
    "selection-further": further,
    "selection-speed": speed,
}
