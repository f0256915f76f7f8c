"""What the documentation says of the study of selection and of its speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import tables
from tables import percent, table

from attar.report.words import seconds


def accuracy() -> str:
    """The study of selection: accuracy by method and fraction with its cost, as far as it was measured."""
    found = _found("study")
    if found is None:
        return "No results are committed yet: `python -m benchmarks selection_study` makes them."
    setting, fractions = found["setting"], list(found["table"])
    best, middle = found["table"][fractions[-1]], found["table"][fractions[len(fractions) // 2]]
    order = sorted(best, key=lambda name: -best[name]["accuracy"]["mean"])
    heads = [f"{100 * float(fraction):g} %" for fraction in fractions]
    lines = [
        (
            f"`{name}`",
            *(percent(found["table"][fraction][name]["accuracy"]) for fraction in fractions),
            f"{middle[name]['hardness']['mean']:.2f}",
            seconds(best[name]["selection_cpu"]),
        )
        for name in order
    ]
    lines.append(("full data", *[""] * (len(fractions) - 1), percent(found["full"]["accuracy"]), "1.00", "–"))
    about = (
        f"Test accuracy in percent on {setting['data']}, mean ± standard error over {len(setting['seeds'])} seeds, "
        f"best at {heads[-1]} first. Picks are from {setting['train']:,} training examples, as many of each class; all "
        f"methods of a seed look through one network (`{setting['network']}`, {setting['scoring']['steps']:,} steps, "
        f"{seconds(found['scoring_cpu'])} CPU s), and new ones are trained on the picks, "
        f"{setting['training']['steps']} steps of {setting['training']['batch']} each, as on the full data. Their loss "
        "is the mean loss of the picks under the first network, "
        f"in units of that of all examples. Seconds are processor seconds of selection at {heads[-1]} beside that "
        f"network, on a shared machine. `{found['command']}` repeats it."
    )
    head = ("method", *heads, f"their loss at {heads[len(heads) // 2]}", f"selection at {heads[-1]}, CPU s")
    return "\n".join([*table(head, lines), "", about])


def above() -> str:
    """By how much methods that are above a random subset at some fraction are so, seed by seed."""
    found = _found("study")
    if found is None:
        return ""
    above = found["above_uniform"]
    lines = [
        (f"`{name}`", *(f"{100 * above[f][name]['mean']:+.1f} ± {100 * above[f][name]['error']:.1f}" for f in above))
        for name in above[next(iter(above))]
        if any(above[f][name]["mean"] > 0 for f in above)
    ]
    heads = (f"{100 * float(f):g} %" for f in above)
    return "\n".join(table(("above `uniform` somewhere", *heads), lines))


def further() -> str:
    """Larger fractions, other networks, the radius of LCMat-S, and how the scoring network was trained."""
    parts = {"wide": _wide, "architectures": _architectures, "rho": _radius, "robustness": _robustness}
    return "\n\n".join("\n".join(say(found)) for name, say in parts.items() if (found := _found(name)))


def _wide(found: dict[str, Any]) -> list[str]:
    setting = found["setting"]
    seen = setting["training"]["steps"] * setting["training"]["batch"] / setting["train"]
    epochs = " and ".join(f"{seen / float(f):.1g} at {100 * float(f):g} %" for f in found["table"])
    about = (
        f"Larger fractions, {len(setting['seeds'])} seeds, {setting['training']['steps']} steps of "
        f"{setting['training']['batch']}, in epochs {epochs}:"
    )
    return [about, "", *_accuracies(found["table"], [f"{100 * float(fraction):g} %" for fraction in found["table"]])]


def _architectures(found: dict[str, Any]) -> list[str]:
    setting = found["setting"]
    about = (
        f"Other networks on the picks that `{setting['network']}` led to, {100 * setting['fraction']:g} %, "
        f"{len(setting['seeds'])} seeds:"
    )
    return [about, "", *_accuracies(found["table"], [f"`{network}`" for network in found["table"]])]


def _radius(found: dict[str, Any]) -> list[str]:
    lines = [
        (
            f"`{row['method']}`",
            "–" if row.get("rho") is None else f"{row['rho']:g}",
            {None: "–", True: "yes", False: "no"}[row.get("weighted")],
            percent(row["accuracy"]),
            f"{row['gap']['mean']:.2f} ± {row['gap']['error']:.2f}",
        )
        for row in found["table"]
    ]
    setting = found["setting"]
    about = (
        f"LCMat-S by its radius, with the loss-curvature gap of Eq. 4 within {setting['radius_of_the_gap']:g} "
        f"({setting['examples']:,} examples, {100 * setting['fraction']:g} %, {len(setting['seeds'])} seeds):"
    )
    return [about, "", *table(("method", "ρ", "weights", "test accuracy, %", "gap"), lines)]


def _robustness(found: dict[str, Any]) -> list[str]:
    setting, ways = found["setting"], len(found["duels_won"])
    overall = ", ".join(f"`{name}` {100 * won:.0f} %" for name, won in found["overall"].items())
    about = (
        f"Duels won under {ways} ways to train the scoring network ({setting['examples']:,} examples, "
        f"{100 * setting['fraction']:g} %, {len(setting['seeds'])} seeds each), over all of them: {overall}."
    )
    return [f"{about} {_beaten(found)}", "", "![Duels won](../benchmarks/results/selection/robustness.svg)"]


def _beaten(found: dict[str, Any]) -> str:
    """In how many runs LCMat-S is above a random subset, by the epochs of the scoring network."""
    runs = {(run["condition"], run["method"]): run["accuracies"] for run in found["runs"]}
    pairs: dict[str, list[bool]] = {}
    for condition in found["duels_won"]:
        ours, random = runs.get((condition, "lcmat-s"), []), runs[condition, "uniform"]
        epochs = condition.split(", ")[1]
        pairs.setdefault(epochs, []).extend(a > b for a, b in zip(ours, random, strict=False))
    said = ", ".join(f"{sum(won)} of {len(won)} after {epochs}" for epochs, won in pairs.items() if won)
    return f"Runs in which `lcmat-s` is above `uniform`: {said}." if said else ""


def _accuracies(groups: dict[str, Any], heads: list[str]) -> list[str]:
    """A line a method, a column a group."""
    methods = next(iter(groups.values()))
    lines = [(f"`{name}`", *(percent(group[name]["accuracy"]) for group in groups.values())) for name in methods]
    return table(("method", *heads), lines)


def _found(name: str) -> dict[str, Any] | None:
    path = tables.RESULTS / "selection" / f"{name}.json"
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def speed() -> str:
    """What selection costs: beside other libraries, by fraction, on wide features, and by parts."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (tables.RESULTS / "selection").glob("*.json")
    }
    if missing := {"facility", "lcmat", "features", "mapreduce"} - found.keys():
        return f"No results are committed yet of: {', '.join(sorted(missing))}."
    longer, setting = found["facility"]["times_longer_than_attar"], found["facility"]["setting"]
    about = (
        f"Facility location, {setting['points']:,} points, {setting['picks']} picks, the same ones: "
        + ", ".join(f"{name} takes {times:.1f} times as long" for name, times in longer.items())
        + " (processor time, each with its own lazy greedy on one table of similarities)."
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
            f"`{name}` by parts of {parts['part']:,}, {int(n):,} x {parts['coordinates']}, {parts['picks']} picks",
            f"{run['wall']:.0f} s",
            f"{run['peak_bytes_beyond_the_data'] / 1e9:.2f} GB beyond the data",
        )
        for name, runs in found["mapreduce"]["methods"].items()
        for n, run in runs.items()
    ]
    commands = ", ".join(f"`{found[name]['command']}`" for name in ("facility", "lcmat", "features", "mapreduce"))
    return "\n".join([about, "", *table(("selection", "time", "peak memory"), lines), "", f"Measured by {commands}."])


TABLES: dict[str, Callable[[], str]] = {
    "selection": accuracy,
    "selection-above": above,
    "selection-further": further,
    "selection-speed": speed,
}
