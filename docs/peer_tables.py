"""Speed beside other packages and plain code, from committed results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tables import RESULTS, noted

Line = tuple[str, str, str, str]


def peers() -> str:
    """Ratios of processor time, and of memory where it was measured; a benchmark without a result has no line."""
    lines = [line for name, part in PARTS.items() if (found := _read(name)) for line in part(found)]
    commands = " and ".join(f"`{found['command']}`" for name in PARTS if (found := _read(name)))
    about = (
        "Processor seconds of one thread in rounds that alternate; the fastest of each side, for programs the median. "
        f"Above 1, attar is faster. Reproduce with {commands}."
    )
    return noted(("work", "beside", "times faster", "memory"), lines, about)


def _loading(found: dict[str, Any]) -> Iterator[Line]:
    for name, run in found["data"].items():
        peak = run["peak_over_float32_bytes"]
        share = f"{peak['attar']:.2f} times the float32 bytes, numpy {peak['numpy']:.2f}"
        yield f"loading `{name}`", "bare numpy read, no checks", f"{1 / run['times_longer_than_numpy']:.2f}", share


def _help(found: dict[str, Any]) -> Iterator[Line]:
    yield "`attar --help`", "`import torch`", f"{1 / found['help']['share_of_importing_torch']:.1f}", "–"


def _selection(found: dict[str, Any]) -> Iterator[Line]:
    setting = found["setting"]
    work = f"{setting['picks']} of {setting['points']:,} examples with {setting['features']} features"
    called = {
        "numpy": "plain numpy loop",
        "coreax, with row means": "coreax",
        "coreax, loop": "coreax, without the means of its kernel's rows",
    }
    for name, ways in found["times_longer_than_attar"].items():
        for way, times in ways.items():
            yield f"`{name}`, {work}", called[way], f"{times:.2f}", "–"


def _steps(found: dict[str, Any]) -> Iterator[Line]:
    setting = found["setting"]
    called = {"published": "published structure", "published, memory kept": "the same, freed memory kept"}
    for name, run in found["methods"].items():
        inside = f"{setting['batch']} real per class" if name == "dm" else f"{setting['net_steps']} steps"
        for way, times in run["times_faster"].items():
            memory = f"{run['bytes'][way] / 1e6:,.0f} → {run['bytes']['attar'] / 1e6:,.0f} MB"
            yield f"a step of `{name}`, {inside}, `{setting['network']}`", called[way], f"{times:.2f}", memory


def _chains(found: dict[str, Any]) -> Iterator[Line]:
    setting = found["setting"]
    for name, times in found["times_longer_than_blackjax"].items():
        work = f"transitions of `{name}`, {setting['chains']} chains, `{setting['network']}`"
        yield work, "blackjax, compiled", f"{1 / times:.2f}", "–"


PARTS: dict[str, Callable[[dict[str, Any]], Iterator[Line]]] = {
    "loading/loading": _loading,
    "footprint/footprint": _help,
    "selection/peers": _selection,
    "step_peers/step_peers": _steps,
    "chain_peers/chain_peers": _chains,
}
TABLES: dict[str, Callable[[], str]] = {"peers": peers}


def _read(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
