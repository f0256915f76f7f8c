"""Convergence diagnostics of a posterior's chains, from its notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from attar.infer.diagnose import LARGEST
from attar.report import panels
from attar.report.blocks import Block, Figure, Measure, percent, plural

TOLD = (
    "trace",
    "warnings",
    "rhat",
    "ess",
    "points",
    "acceptance",
    "temperature",
)  #: notes shown in this block; others are listed as plain values


def mixing(notes: Mapping[str, Any], name: str) -> Block | None:
    """Traces of the potential, R-hat, effective sample size, acceptance rate and warnings, if there were chains."""
    trace = notes.get("trace")
    chains = _chains(trace.get("potential")) if isinstance(trace, Mapping) else []
    warnings = [str(one) for one in notes.get("warnings") or []]
    measures = _measures(notes)
    if not (chains or warnings or measures):
        return None
    text = (
        "Each line is one chain with its own start. Chains that have mixed cover the same range; a trend, or lines "
        "that stay apart, means that the draws are not yet from the posterior."
    )
    return Block("Convergence of the chains", text, _figures(trace, chains, name), measures=measures, warnings=warnings)


def made(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The other notes: how the posterior was made."""
    return {key: value for key, value in notes.items() if key not in TOLD}


def _figures(trace: Any, chains: list[list[float]], name: str) -> list[Figure]:
    if not chains:
        return []
    title = f"Potential along the chains of {name}"
    drawn = f"Potential of the {plural(len(chains[0]), 'draw')} that each of {plural(len(chains), 'chain')} kept."
    figures = [Figure(panels.traces(chains, "potential U", title), "", drawn)]
    probes = [_chains(probe) for probe in trace.get("probability") or []]
    if probes and probes[0]:
        title = f"Probability of one example’s most likely class along the chains of {name}"
        note = "Predicted probability of the most likely class of one example; R-hat is over many examples."
        figures.append(Figure(panels.traces(probes[0], "probability", title, unit=True), "", note))
    return figures


def _chains(found: Any) -> list[list[float]]:
    """Chains of finite numbers; everything else is dropped."""
    if not isinstance(found, Sequence):
        return []
    chains = [[float(v) for v in chain if _number(v)] for chain in found if isinstance(chain, Sequence)]
    return [chain for chain in chains if chain]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _measures(notes: Mapping[str, Any]) -> list[Measure]:
    rhat, ess, acceptance, points = (notes.get(key) for key in ("rhat", "ess", "acceptance", "points"))
    measures = []
    if _number(heat := notes.get("temperature")):
        meaning = "Of exp(−U/T): 1 is the posterior, any other value a tempered posterior."
        measures.append(Measure("Temperature T", f"{heat:g}", meaning))
    if _number(rhat):
        verdict = "mixed" if float(rhat or 0) <= LARGEST else "not shown to have mixed"
        meaning = f"Chains count as {verdict}: 1 is perfect, up to {LARGEST} is accepted. The largest over all probes."
        measures.append(Measure("R-hat", f"{rhat:.2f}", meaning))
    if _number(ess):
        of = f" of {points:,}" if _number(points) else ""
        meaning = "The number of independent points with the same information on the mean."
        measures.append(Measure("Effective sample size", f"{ess:,.0f}{of}", meaning))
    if _number(acceptance):
        measures.append(Measure("Acceptance rate", percent(float(acceptance or 0), 0), "Of proposals, after warm-up."))
    return measures
