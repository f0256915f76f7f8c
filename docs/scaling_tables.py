"""Tables of costs for docs/scaling.md: how they grow, how well they are forecast, and what a billion rows take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tables import RESULTS, noted

from attar.core.text import duration

NAMES = {
    "examples": "examples n",
    "side": "numbers of an example d",
    "classes": "classes C",
    "per_class": "per class k",
    "steps": "steps",
}
BILLION, CORES, NODES, PRICE = 10**9, 32, (1, 8), 0.05  #: rows, cores of a node, and an assumed price of a core hour

HEAD = ("method", "forecast, s", "run, s", "ratio", "memory forecast, MB", "memory of the run, MB")


def forecasts() -> str:
    """Forecasts beside what the runs took."""
    found = _found()
    if found is None:
        return "No results are committed yet: `python -m benchmarks forecasts` makes them."
    setting = found["setting"]
    large, embedded, stored = setting["large"], setting["of_embeddings"], setting["of_tables"]
    runs = {f"`{name}`": run for name, run in found["forecasts"].items()}
    runs |= {f"`{name}` of embeddings": run for name, run in found["of_embeddings"].items()}
    runs |= {f"`{name}` from a table": run for name, run in found["of_tables"].items()}
    lines = [
        (name, f"{run['forecast']:.2f}", f"{run['seconds']:.2f}", _ratio(run), *_megabytes(run))
        for name, run in runs.items()
    ]
    ratios = [run["forecast"] / run["seconds"] for run in runs.values() if run["seconds"] >= 0.1]
    within = sum(0.5 <= ratio <= 2 for ratio in ratios)
    peaks = [run["forecast_bytes"] / run["bytes"] for run in runs.values() if "bytes" in run]
    near = sum(0.5 <= ratio <= 2 for ratio in peaks)
    rehearsed = sorted(run["rehearsal"] for run in runs.values())
    about = (
        f"Images: {large['examples']:,} of {setting['data']}, {large['side']} × {large['side']}, {large['classes']} "
        f"classes, {large['per_class']} per class, `{setting['network']}`, and a few steps of methods that learn. "
        f"Embeddings: {embedded['picks']} of {embedded['rows']:,} rows of {embedded['columns']} numbers in "
        f"memory, or of {stored['rows']:,} rows of a table in a file. Seconds are "
        f"the lesser of wall clock and processor time of one thread, on a shared machine. Of the {len(ratios)} runs of "
        f"a tenth of a second or more, {within} are within a factor of two; the ratios are {min(ratios):.2f} to "
        f"{max(ratios):.2f}. A forecast took {rehearsed[len(rehearsed) // 2]:.1f} s (median) and at most "
        f"{rehearsed[-1]:.1f} s. Memory is the peak, with the data; from tables with the libraries, too. Of "
        f"{len(peaks)} peaks, {near} are within a factor of two of the forecast; the ratios are {min(peaks):.2f} to "
        f"{max(peaks):.2f}. "
        f"Reproduce with `{found['command']}`."
    )
    return noted(HEAD, lines, about)


def growth() -> str:
    """Fitted exponents of time and memory."""
    found = _found()
    if found is None:
        return "No results are committed yet: `python -m benchmarks forecasts` makes them."
    base, lines = found["setting"]["base"], []
    for name, family in found["families"].items():
        if name not in found["fits"]:
            continue
        fit, runs = found["fits"][name], found["runs"][name]
        powers = [f"{fit['seconds']['exponents'][key]:.1f}; {fit['bytes']['exponents'][key]:.1f}" for key in NAMES]
        lines.append((f"`{name}`", family, *powers, f"{runs[0]['seconds']:.2f} s; {runs[0]['bytes'] / 1e6:.0f} MB"))
    missing = [name for name in found["families"] if name not in found["fits"]]
    about = (
        f"Exponents of time; of peak memory with the data and without the libraries, fitted to "
        f"{len(next(iter(found['runs'].values())))} runs of each method: the last column is that with n = "
        f"{base['examples']:,}, d = {base['side']}², C = {base['classes']} and k = {base['per_class']}, in the others "
        f"one quantity is smaller or larger by a factor of two or so. Exponents are below those of the formulas where "
        f"fixed costs are a large share of such short runs. Not run: {', '.join(missing) or 'none'}. Reproduce with "
        f"`{found['command']}`."
    )
    return noted(("method", "family", *NAMES.values(), "base"), lines, about)


def large() -> str:
    """Time and memory of selection from large tables, whether Ray picks the same, and what parts cost in quality."""
    found = json.loads((RESULTS / "selection" / "large.json").read_text(encoding="utf-8"))
    lines = []
    for name, given in found["methods"].items():
        runs, fit = sorted((int(n), run) for n, run in given.items()), found["fit"][name]
        sizes, seconds = ", ".join(f"{n:,}" for n, _ in runs), ", ".join(f"{run['cpu']:.1f}" for _, run in runs)
        line = f"{fit['fixed_seconds']:.1f} + {fit['seconds_per_million_rows']:.1f} n / 10⁶, {fit['exponent']:.2f}"
        peak = max(run["peak_bytes"] for _, run in runs)
        lines.append((f"`{name}`", sizes, seconds, line, f"{peak / 1e6:.0f} MB"))
    columns = found["setting"]["coordinates"]
    head = ("method", f"rows of {columns} numbers", "processor seconds", "fitted seconds; exponent of n", "peak memory")
    picked = [run["same_picks"] for runs in found["ray"].values() for run in runs.values()]
    at = "; ".join(f"`{name}` {', '.join(f'{int(n):,}' for n in runs)}" for name, runs in found["ray"].items())
    lost = "; ".join(_lost(name, int(n), runs) for name, by in found["quality"].items() for n, runs in by.items())
    seeds = len(next(runs for by in found["quality"].values() for runs in by.values()))
    about = (
        f"One process, with libraries. Ray picked the same rows in {sum(picked)} of {len(picked)} runs (rows: {at}). "
        "The objective of the picks relative to that of the exact method (k-center: radius; others: sum of distances), "
        f"from parts, from shares, and of uniform picks, with the least and the most of {seeds} seeds: {lost}. "
        f"Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def _lost(name: str, rows: int, runs: Sequence[Mapping[str, Any]]) -> str:
    """The relative objective of picks of parts, of shares, and of uniform ones: mean, and least to most."""
    values = ", ".join(_spread([run["relative"][way] for run in runs], 2) for way in ("parts", "shares", "uniform"))
    return f"`{name}` {values} on {rows:,} rows"


def neighbours() -> str:
    """What facility location by neighbours loses, by the number of picks."""
    path = RESULTS / "selection" / "neighbours.json"
    if not path.exists():
        return "No results are committed yet: `python -m benchmarks neighbours` makes them."
    found = json.loads(path.read_text(encoding="utf-8"))
    setting, runs = found["setting"], found["runs"]
    lines = [
        (
            f"{int(centres):,} of about {round(setting['rows'] / int(centres)):,}",
            f"{k:,}",
            *(_spread([run["relative"][way][str(k)] for run in some]) for way in ("neighbours", "uniform")),
        )
        for centres, some in runs.items()
        for k in setting["picks"]
    ]
    every = [run for some in runs.values() for run in some]
    seconds = [sum(run["cpu"][way] for run in every) / len(every) for way in ("neighbours", "exact")]
    about = (
        f"Sum of distances from all examples to their nearest pick, relative to facility location with all distances: "
        f"mean, and least to most of {setting['seeds']} seeds. {setting['rows']:,} embeddings of "
        f"{setting['coordinates']} numbers. {max(setting['picks']):,} picks took "
        f"{seconds[0]:.0f} processor seconds by neighbours, {seconds[1]:.0f} with all distances. Reproduce with "
        f"`{found['command']}`."
    )
    return noted(("clusters", "picks", "`facility-neighbours`", "`uniform`"), lines, about)


def _spread(values: list[float], digits: int = 3) -> str:
    mean, least, most = (f"{value:.{digits}f}" for value in (sum(values) / len(values), min(values), max(values)))
    return f"{mean} ({least} to {most})"


def billion() -> str:
    """What selection from a billion rows takes, by lines through the measured sizes."""
    found = json.loads((RESULTS / "selection" / "large.json").read_text(encoding="utf-8"))
    columns, lines = found["setting"]["coordinates"], []
    for name, runs in found["methods"].items():
        n, largest = max((int(n), run) for n, run in runs.items())
        again = 0.0 if name == "uniform" else found["setting"]["methods"][name]["size"] * largest["parts"] / n
        seconds = 1e-6 * found["fit"][name]["seconds_per_million_rows"] * BILLION
        spread = [again * seconds + (1 - again) * seconds / (nodes * CORES) for nodes in NODES]
        price = PRICE * NODES[0] * CORES * spread[0] / 3600
        memory = CORES * max(run["peak_bytes"] for run in runs.values())
        per_row = 1e6 * seconds / BILLION
        cells = f"{n:,}", f"{per_row:.1f} s", f"{seconds / 3600:,.1f}", *map(duration, spread)
        lines.append((f"`{name}`", *cells, f"{price:,.2f}", f"{memory / 1e9:.0f} GB"))
    head = (
        "method",
        "largest n measured",
        "processor time of a million rows",
        "CPU hours",
        *(f"divided by {nodes} × {CORES} cores" for nodes in NODES),
        f"price on {NODES[0]} node, at {PRICE} a core hour",
        "memory of a node",
    )
    about = (
        f"For {BILLION:,} rows of {columns} numbers ({4 * BILLION * columns / 1e9:,.0f} GB), with the picks and parts "
        f"measured above. Processor time is a line in n, fitted to the measured sizes, since parts are of equal size. "
        f"Parts are shared among the nodes; selection among their picks is not, and is in proportion to picks over "
        f"rows of a part. The price of a core hour is an assumption. All times are processor time: waiting for disks "
        f"and remote storage and starting a cluster come on top. Peak memory is an upper bound, which includes that of "
        f"the process that starts the run. Reproduce with `{found['command']}`."
    )
    return noted(head, lines, about)


def _ratio(run: Mapping[str, float]) -> str:
    return f"{run['forecast'] / run['seconds']:.2f}"


def _megabytes(run: Mapping[str, float]) -> list[str]:
    return [f"{run[key] / 1e6:,.0f}" if key in run else "" for key in ("forecast_bytes", "bytes")]


def _found() -> dict[str, Any] | None:
    path = RESULTS / "forecasts" / "forecasts.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


TABLES: dict[str, Callable[[], str]] = {
    "large": large,
    "neighbours": neighbours,
    "forecasts": forecasts,
    "growth": growth,
    "billion": billion,
}
