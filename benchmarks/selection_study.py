"""Claim: the accuracy of networks trained on 0.1 to 5 % of Fashion-MNIST, picked by every selection method.

As in the paper of LCMat, with five epochs instead of ten: one scoring network per seed is trained and shared by all
methods, and then new networks are trained on their picks with one training budget. ``wide`` extends this to 30 % with a
longer budget, and ``architectures`` to other networks, with a few methods; ``robustness`` measures whether the ranking
of methods depends on the training of the scoring network, ``sweep`` the effect of ρ and weights on LCMat-S. Every
finished cell is a file under ``build/benchmarks``, so an interrupted benchmark resumes, and more seeds only add cells;
``--fresh`` starts over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from attar.assess.metrics import mean_and_error
from attar.core import registry
from attar.core.files import write_json, write_text
from attar.engine import keep_freed_memory
from attar.nets.train import Training
from attar.report import svg
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks._selecting import Bench, Options, Row, Setting, fill

FRACTIONS, WIDE, SEEDS, WORKERS = (0.001, 0.005, 0.01, 0.05), (0.1, 0.2, 0.3), tuple(range(5)), 2
NETWORKS = ("mlp", "lenet", "convnet-d2w32-nonorm-max")
VARIANTS: dict[str, Row] = {"lcmat-s, weighted": ("lcmat-s", {"fit": 1.0, "weighted": True})}
RIVALS = ("uniform", "herding", "craig", "gradmatch", "adacore", "lcmat-s")
RATES = {"sgd": 0.05, "adam": 0.001}
SMALL = Setting(examples=10_000, scoring=Training(steps=196))  # five epochs of these
SPREAD = ("uniform", "herding", "craig", "lcmat-s")
LONGER = Setting(training=Training(steps=500, batch=100))
#: With the default options one seed took more than 45 minutes.
CHEAPER: dict[str, tuple[str, Row]] = {
    "sparse-vi": ("sparse-vi, 25 draws, 1 step", ("sparse-vi", {"draws": 25, "steps": 1}))
}
COMMAND = "python -m benchmarks selection_study"


def main() -> list[Path]:
    """Measure everything and write the files."""
    keep_freed_memory()
    found = [table(workers=WORKERS), architectures(workers=WORKERS), sweep(workers=WORKERS)]
    found += robustness(workers=WORKERS)
    return [*found, table(LONGER, SPREAD, WIDE, SEEDS[:2], name="wide", workers=WORKERS)]


def table(
    setting: Setting = Setting(),
    methods: Sequence[str] | None = None,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    results: Path = RESULTS,
    name: str = "study",
    workers: int = 1,
) -> Path:
    """Methods × fractions × seeds, and the full data; all methods if none are named."""
    names = methods or sorted(registry.methods("select"))
    rows: dict[str, Row] = dict(CHEAPER.get(name, (name, _row(name))) for name in names)
    rows |= {label: row for label, row in VARIANTS.items() if row[0] in names}
    bench = fill(setting, fractions, list(rows.values()), seeds, workers=workers)
    runs = [
        {
            "row": label,
            "fraction": fraction,
            "seed": seed,
            "hardness": bench.hardness(*row, fraction, seed),
            **bench.cell(*row, fraction, seed),
        }
        for seed, (label, row), fraction in product(seeds, rows.items(), fractions)
    ]
    groups = {str(f): {label: _of(runs, label, f) for label in rows} for f in fractions}
    return _write(
        results / "selection" / f"{name}.json",
        setting,
        {"fractions": fractions, "seeds": seeds, "train": len(bench.train)},
        {
            "table": {f: {label: _summary(some) for label, some in group.items()} for f, group in groups.items()},
            "above_uniform": {
                f: {label: _above(some, group["uniform"]) for label, some in group.items() if label != "uniform"}
                for f, group in groups.items()
                if "uniform" in group
            },
            "full": _summary([bench.full(seed) for seed in seeds]),
            "scoring_cpu": mean(bench.scoring(seed)["cpu"] for seed in seeds),
            "runs": runs,
        },
    )


def architectures(
    setting: Setting = Setting(),
    methods: Sequence[str] = RIVALS,
    networks: Sequence[str] = NETWORKS,
    seeds: Sequence[int] = SEEDS[:3],
    fraction: float = 0.01,
    results: Path = RESULTS,
    workers: int = 1,
) -> Path:
    """Accuracy of other networks trained on the picks of one scoring network."""
    bench = fill(setting, [fraction], [_row(name) for name in methods], seeds, networks, workers)
    found = {
        network: {
            name: _summary([bench.cell(*_row(name), fraction, seed, network) for seed in seeds]) for name in methods
        }
        for network in networks
    }
    about = {"fraction": fraction, "seeds": seeds}
    return _write(results / "selection" / "architectures.json", setting, about, {"table": found})


def robustness(
    setting: Setting = SMALL,
    methods: Sequence[str] = RIVALS,
    epochs: Sequence[int] = (1, 10),
    decays: Sequence[float] = (0.0, 5e-3),
    optimisers: Sequence[str] = ("sgd", "adam"),
    seeds: Sequence[int] = SEEDS[:2],
    fraction: float = 0.01,
    results: Path = RESULTS,
    workers: int = 1,
) -> list[Path]:
    """Epochs × weight decay × optimiser × seeds of the scoring network: pairwise comparisons won under each."""
    wins: dict[str, dict[str, float]] = {}
    runs = []
    for number, (optimiser, count, decay) in enumerate(product(optimisers, epochs, decays)):
        own = [1000 * number + seed for seed in seeds]  # so that random subsets differ between conditions
        steps = max(1, round(count * len(Bench(setting, [fraction]).train) / setting.scoring.batch))
        trained: dict[str, Any] = {
            "steps": steps,
            "optimiser": optimiser,
            "lr": RATES[optimiser],
            "weight_decay": decay,
        }
        changed = replace(setting, scoring=replace(setting.scoring, **trained))
        bench = fill(changed, [fraction], [_row(name) for name in methods], own, workers=workers)
        condition = f"{optimiser}, {count} epoch{'s' if count > 1 else ''}, decay {decay:g}"
        found = {name: [bench.cell(*_row(name), fraction, seed)["accuracy"] for seed in own] for name in methods}
        runs += [{"condition": condition, "method": name, "accuracies": all_} for name, all_ in found.items()]
        wins[condition] = {name: duels(name, found) for name in methods}
    overall = {name: mean(won[name] for won in wins.values()) for name in methods}
    path = results / "selection" / "robustness.json"
    write_text(path.with_suffix(".svg"), heat_map(wins))
    about = {"fraction": fraction, "seeds": seeds}
    return [
        _write(path, setting, about, {"duels_won": wins, "overall": overall, "runs": runs}),
        path.with_suffix(".svg"),
    ]


def sweep(
    setting: Setting = SMALL,
    rhos: Sequence[float] = (0.0, 0.01, 0.05, 0.1, 0.5),
    seeds: Sequence[int] = SEEDS[:3],
    fraction: float = 0.01,
    results: Path = RESULTS,
    workers: int = 1,
) -> Path:
    """LCMat-S by ρ, with and without weights: test accuracy, and the loss-curvature gap of the picks."""
    ways: list[tuple[str, Options]] = [("uniform", {})]
    name, options = _row("lcmat-s")
    ways += [(name, {**options, "rho": rho, "weighted": weighted}) for rho, weighted in product(rhos, (False, True))]
    bench, radius = fill(setting, [fraction], ways, seeds, workers=workers), max(rhos)
    rows = []
    for method, options in ways:
        gaps = [bench.gap(method, options, fraction, seed, radius) for seed in seeds]
        cells = [bench.cell(method, options, fraction, seed) for seed in seeds]
        rows.append({"method": method, **options, **_summary(cells), "gap": _figure(gaps)})
    about = {"fraction": fraction, "seeds": seeds, "radius_of_the_gap": radius}
    return _write(results / "selection" / "rho.json", setting, about, {"table": rows})


def _row(name: str) -> Row:
    """A method that looks at the scoring network which all share, at the end of its training."""
    return name, {"fit": 1.0} if "fit" in registry.fields(registry.find(name).build) else {}


def duels(name: str, found: Mapping[str, Sequence[float]]) -> float:
    """The share of pairwise comparisons, seed by seed, that each method wins; a tie is half a win."""
    pairs = [pair for rival, other in found.items() if rival != name for pair in zip(found[name], other, strict=True)]
    return mean((own > other) + (own == other) / 2 for own, other in pairs)


def heat_map(wins: Mapping[str, Mapping[str, float]]) -> str:
    """Pairwise comparisons won in percent: one row per condition, one column per method."""
    methods = list(next(iter(wins.values())))
    left, top, wide, high = svg.CHARACTER * max(map(len, wins)), 26, 76, 24
    parts = [svg.text(left + (i + 0.5) * wide, 16, name, "tick", "middle") for i, name in enumerate(methods)]
    for line, (condition, won) in enumerate(wins.items()):
        y = top + line * high
        parts.append(svg.text(left - 8, y + 16, condition, "tick", "end"))
        for column, name in enumerate(methods):
            x, said = left + column * wide, f"{name} wins {won[name]:.0%} of its duels: {condition}"
            parts.append(svg.rect(x, y, wide - 2, high - 2, "heat", won[name], said))
            parts.append(svg.text(x + wide / 2 - 1, y + 16, f"{100 * won[name]:.0f}", "count", "middle"))
    title = "Duels won, in percent, by how the scoring network was trained"
    return svg.drawing(left + wide * len(methods), top + high * len(wins), title, parts, standalone=True)


def _of(runs: Sequence[dict[str, Any]], label: str, fraction: float) -> list[dict[str, Any]]:
    return [run for run in runs if run["row"] == label and run["fraction"] == fraction]


def _summary(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means and standard errors over seeds, and mean costs."""
    names = [name for name in ("accuracy", "nll", "validation", "hardness") if name in cells[0]]
    scores = {name: _figure([cell[name] for cell in cells]) for name in names}
    costs = {
        f"{part}_{unit}": (max if unit == "memory" else mean)(cell[part][unit] for cell in cells)
        for part in ("selection", "learning")
        for unit in ("wall", "cpu", "memory")
        if part in cells[0]
    }
    return {"size": cells[0]["size"], **scores, **costs}


def _above(cells: Sequence[Mapping[str, Any]], uniform: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The difference in accuracy to a random subset, seed by seed."""
    return _figure([a["accuracy"] - b["accuracy"] for a, b in zip(cells, uniform, strict=True)])


def _figure(values: list[float]) -> dict[str, float]:
    centre, error = mean_and_error(values)
    return {"mean": centre, "error": error}


def _write(path: Path, setting: Setting, about: Mapping[str, Any], found: Mapping[str, Any]) -> Path:
    shared = {"command": COMMAND, "setting": setting.plain() | dict(about)}
    write_json(path, {**shared, **found, "versions": versions(), "machine": machine()})
    return path
