"""Claim: the activation, norm and pooling of a network decide how good examples are that are learnt with it.

Gradient matching on Fashion-MNIST, one image per class. Starting from the recipe's network, one of activation, norm and
pooling is changed at a time; examples are learnt and networks are trained with the changed network. Random images show
what the network itself contributes. Batch norm is left out, because predictions would depend on the other examples of a
batch. An interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from attar.assess.metrics import mean_and_error
from attar.core.files import write_json
from attar.nets.names import canonical, parse
from attar.study import StudySpec
from attar.study.results import machine, values, versions
from benchmarks import RESULTS, carry_out, recipe

NAME = "activations"
AXES = {
    "activation": ("relu", "leakyrelu", "sigmoid"),
    "norm": ("instance", "none", "layer", "group"),
    "pool": ("avg", "max", "none"),
}


def main() -> list[Path]:
    """Run one study per network and write one JSON file."""
    path, spec = RESULTS / NAME / "activations.json", recipe(NAME)
    about = {"command": f"python -m benchmarks {NAME}", "setting": spec.plain()}
    write_json(path, {**about, "rows": rows(spec), "versions": versions(), "machine": machine()})
    return [path]


def networks(base: str) -> list[tuple[str, str, str]]:
    """What is changed, to what, and the network."""
    name, options = parse(base)
    return [
        (axis, choice, canonical(name, options | {axis: choice}))
        for axis, choices in AXES.items()
        for choice in choices
    ]


def rows(spec: StudySpec, workers: int = 2) -> list[dict[str, Any]]:
    """Test accuracy, mean and standard error over seeds, and costs, by network and method."""
    found = []
    for axis, choice, network in networks(spec.network or ""):
        study = carry_out(replace(spec, network=network), f"{NAME}/{network}", workers)
        for (method, size), runs in study.groups().items():
            mean, error = mean_and_error(accuracies := values(runs, lambda run: run.test.accuracy))
            spent = [run.reduce_cost + run.infer_cost for run in runs]
            cost = {"cpu": fmean(cost.cpu for cost in spent), "memory": max(cost.memory for cost in spent)}
            about = {"changed": axis, "to": choice, "network": network, "method": method, "per_class": size}
            found.append({**about, "seeds": len(accuracies), "accuracy": {"mean": mean, "error": error}, **cost})
    return found
