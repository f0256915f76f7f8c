"""Whether the chains of a posterior mixed, read from its notes, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from attar.infer.diagnose import LARGEST
from attar.report import panels
from attar.report.blocks import Block, Figure, Measure, percent, plural

TOLD = ("trace", "warnings", "rhat", "ess", "acceptance")  #: notes that this block tells; others are listed as they are


def mixing(notes: Mapping[str, Any], name: str) -> Block | None:
    """Traces of the potential, R-hat, effective sample size, acceptance and warnings, where a chain walked."""
    trace = notes.get("trace")
    chains = _chains(trace.get("potential")) if isinstance(trace, Mapping) else []
    warnings = [str(one) for one in notes.get("warnings") or []]
    measures = _measures(notes, sum(map(len, chains)))
    if not (chains or warnings or measures):
        return None
    text = (
        "Each line is one chain, started from its own place. Chains that mixed wander over the same heights and cannot "
        "be told apart; a slope, or lines that keep to themselves, mean that the draws are not yet the posterior’s."
    )
    return Block("Did the chains mix?", text, _figures(trace, chains, name), measures=measures, warnings=warnings)


def made(notes: Mapping[str, Any]) -> dict[str, Any]:
    """How the posterior was made: the notes that are not told in words."""
    return {key: value for key, value in notes.items() if key not in TOLD}


def _figures(trace: Any, chains: list[list[float]], name: str) -> list[Figure]:
    if not chains:
        return []
    title = f"Potential along the chains of {name}"
    drawn = f"Potential of the {plural(len(chains[0]), 'draw')} that each of {plural(len(chains), 'chain')} kept."
    figures = [Figure(panels.traces(chains, "potential U", title), "", drawn)]
    probes = [_chains(probe) for probe in trace.get("probability") or []]
    if probes and probes[0]:
        title = f"Probability of one example’s likeliest class along the chains of {name}"
        note = "Probability that they give to the likeliest class of one example; R-hat looks at many such."
        figures.append(Figure(panels.traces(probes[0], "probability", title, unit=True), "", note))
    return figures


def _chains(found: Any) -> list[list[float]]:
    """Chains of finite numbers; none of what is anything else."""
    if not isinstance(found, Sequence):
        return []
    chains = [[float(v) for v in chain if _number(v)] for chain in found if isinstance(chain, Sequence)]
    return [chain for chain in chains if chain]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _measures(notes: Mapping[str, Any], kept: int) -> list[Measure]:
    rhat, ess, acceptance = (notes.get(key) for key in ("rhat", "ess", "acceptance"))
    measures = []
    if _number(rhat):
        verdict = "mixed" if float(rhat or 0) <= LARGEST else "not mixed"
        meaning = (
            f"Chains count as {verdict}: 1 is perfect, up to {LARGEST} will do. The worst of all examples looked at."
        )
        measures.append(Measure("R-hat", f"{rhat:.2f}", meaning))
    if _number(ess):
        of = f" of {kept:,}" if kept else ""
        meaning = "Independent draws that would tell as much, since neighbours in a chain are alike."
        measures.append(Measure("Effective draws", f"{ess:,.0f}{of}", meaning))
    if _number(acceptance):
        measures.append(Measure("Accepted", percent(float(acceptance or 0), 0), "Of the proposals, after warm-up."))
    return measures
