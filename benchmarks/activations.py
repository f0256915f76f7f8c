"""Claim: the activation, norm and pooling of a network decide how good examples are that are learnt with it.

Gradient matching on Fashion-MNIST, one image per class. Starting from the recipe's network, one of activation, norm and
pooling is changed at a time; examples are learnt and networks are trained with the changed network. Random images show
what the network itself contributes. Batch norm is left out, because predictions would depend on the other examples of a
batch. An interrupted benchmark resumes.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from attar.assess.metrics import mean_and_error
from attar.core.files import write_text
from attar.nets.names import canonical, parse
from attar.study import StudySpec
from attar.study.results import values
from benchmarks import RESULTS, carry_out, recipe

NAME = "activations"
AXES = {
    "activation": ("relu", "leakyrelu", "sigmoid"),
    "norm": ("instance", "none", "layer", "group"),
    "pool": ("avg", "max", "none"),
}


def main() -> list[Path]:
    """Run one study per network and write one table."""
    path = RESULTS / NAME / "table.csv"
    write_text(path, table(recipe(NAME)))
    return [path]


def networks(base: str) -> list[tuple[str, str, str]]:
    """What is changed, to what, and the network."""
    name, options = parse(base)
    return [
        (axis, choice, canonical(name, options | {axis: choice}))
        for axis, choices in AXES.items()
        for choice in choices
    ]


def table(spec: StudySpec, workers: int = 2) -> str:
    """Test accuracy in percent, mean and standard error over seeds, by network and method."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["changed", "to", "network", "method", "per_class", "accuracy", "error", "seeds"])
    for axis, choice, network in networks(spec.network or ""):
        study = carry_out(replace(spec, network=network), f"{NAME}/{network}", workers)
        for (method, size), runs in study.groups().items():
            found = values(runs, lambda run: 100 * run.test.accuracy)
            lines.writerow([axis, choice, network, method, size, *mean_and_error(found), len(found)])
    return text.getvalue()
