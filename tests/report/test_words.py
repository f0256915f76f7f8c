from __future__ import annotations

import re
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from attar.assess.statistics import t_quantile
from attar.report import render
from attar.report.words import flat
from tests.report.reading import section, text
from tests.report.studies import study


@pytest.mark.parametrize(
    ("seeds", "evaluations", "says", "cells"),
    [
        (3, 2, "mean over three coresets (two evaluations each), ± 95 % t-interval", "3 × 2"),
        (1, 3, "mean over three evaluations of one coreset, ± 95 % t-interval", "1 × 3"),
        (3, 1, "mean over three coresets, ± 95 % t-interval", "3"),
        (1, 1, "score of one run", "1"),
    ],
)
def test_what_a_mean_is_over_is_said(tmp_path: Path, seeds: int, evaluations: int, says: str, cells: str) -> None:
    page = render(study(tmp_path, seeds=seeds, evaluations=evaluations), tmp_path)
    assert f"{says}, best validation accuracy first" in text(section(page, "scores"))
    assert page.count(f"<td>{cells}</td>") == 4
    protocol = text(section(page, "protocol"))
    assert ("not between coresets of its method" in protocol) == (seeds == 1 < evaluations)
    assert ("Each coreset counts once" in protocol) == (min(seeds, evaluations) > 1)


def test_evaluations_of_a_coreset_do_not_count_as_coresets(tmp_path: Path) -> None:
    made = study(tmp_path, evaluations=2)
    uniform = [run for run in made.runs if run.method == "uniform"]
    each = [mean(100 * run.test.accuracy for run in uniform if run.seed == seed) for seed in range(3)]
    page = render(made, tmp_path)
    assert f"{mean(each):.1f} ± {t_quantile(2) * stdev(each) / sqrt(3):.1f}" in text(section(page, "scores"))
    assert section(page, "learning").count("<polyline") == 3


def test_long_numbers_are_rounded_and_nothing_is_a_dash() -> None:
    cost = {"wall": 5.168551369999932, "cpu": 12345.678901, "memory": 812 * 2**20}
    settings = {"lr": 0.05, "rate": 1e-05, "share": 1 / 3}
    lists: dict[str, Any] = {"batch": None, "options": {}, "sizes": [0.1 + 0.2, None]}
    assert flat({"cost": cost, **settings, **lists}) == [
        ("cost.wall", "5.17 s"),
        ("cost.cpu", "12,346 s"),
        ("cost.memory", "812 MiB"),
        ("lr", "0.05"),
        ("rate", "1e-05"),
        ("share", "0.333"),
        ("batch", "–"),
        ("options", "–"),
        ("sizes", "0.3, –"),
    ]


def test_rows_that_were_inferred_in_another_way_are_named(tmp_path: Path) -> None:
    made = study(tmp_path, seeds=1, evaluations=1)
    ways = {"uniform": "ensemble", "herding": "ensemble"}
    alike = [replace(run, notes={"sampler": "ensemble"}) for run in made.runs]
    own = [replace(run, notes={"sampler": ways.get(run.method, "last-layer-vi")}) for run in made.runs]
    assert "each method’s recommended sampler" not in render(replace(made, runs=alike), tmp_path)
    protocol = text(section(render(replace(made, runs=own), tmp_path), "protocol"))
    assert re.search(r"ensemble for .*(uniform|herding)", protocol)
    assert "last-layer-vi for" in protocol
