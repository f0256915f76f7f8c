"""Small boards: one whose problem can be judged in a moment, and one made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import attar
from attar.assess.distance import Distance
from attar.board import Problem, Score
from attar.board.problem import problem_of, write_problem
from attar.board.records import write_record
from attar.board.reference import ADAPTER as REFERENCE
from attar.board.reference import Reference
from attar.board.results import score_path
from attar.board.score import ADAPTER, Judged, summarised
from attar.core.cost import Cost
from attar.coreset import Coreset
from attar.nets.train import Training
from tests.known import digits

SHORT = Training(steps=3, batch=32)


def problem(folder: Path, name: str = "digits", **settings: Any) -> Problem:
    """A problem on digits, with a linear network and three steps; its file is written."""
    usual = {"per_class": [1, 2], "network": "linear", "training": SHORT, "draws": 1, "evaluations": 2}
    made = problem_of(name, "A small one.", digits(), "digits", **{**usual, **settings})
    write_problem(folder, made)
    return made


def coreset(seed: int = 0, method: str = "uniform", per_class: int = 1) -> Coreset:
    return attar.reduce(digits(), method, per_class=per_class, seed=seed, network="linear", training=SHORT)


def saved(folder: Path, seeds: Sequence[int] = (0, 1), **how: Any) -> list[Path]:
    """Files of coresets, one for each seed."""
    paths = [folder / f"{how.get('method', 'uniform')}-{seed}.safetensors" for seed in seeds]
    for seed, path in zip(seeds, paths, strict=True):
        coreset(seed, **how).save(path)
    return paths


def judged(
    of: Problem, method: str, accuracies: Sequence[float], per_class: int = 1, random: float | None = None, **more: Any
) -> Score:
    """A score with these accuracies, one for each seed."""
    gen = torch.Generator().manual_seed(len(method))
    cost = 10 ** float(4 * torch.rand((), generator=gen) - 2)
    runs = [
        Judged(
            seed,
            0,
            f"{method}{seed}",
            a,
            2 - a,
            a,
            0.1,
            1 - a,
            a,
            2 - a,
            Distance(0.5, 1 - a, a),
            Cost(1, cost, 10**8),
            Cost(),
        )
        for seed, a in enumerate(accuracies)
    ]
    about = {"problem": of.name, "judged_by": of.checksum, "data": of.data, "protocol": of.protocol, "bytes": 2600}
    told: dict[str, Any] = {**about, "network": of.network, "family": "condense", **summarised(runs, random), **more}
    return Score(method=method, per_class=per_class, runs=runs, **told)


def board(folder: Path) -> Path:
    """A board of two problems, made by hand: random subsets, methods above and not distinguishable, a foreign set."""
    first, second = problem(folder), problem(folder, "digits-wide", network="mlp-d1w8")
    low, high = [0.5, 0.52, 0.48, 0.5, 0.51], [0.7, 0.71, 0.69, 0.72, 0.7]
    rows = [
        judged(first, "uniform", low, family="select"),
        judged(first, "dm", high, random=0.502),
        judged(first, "herding", low[::-1], random=0.502, family="select"),
        judged(first, "uniform", high, per_class=2, family="select"),
        judged(second, "uniform", high, family="select"),
        judged(
            second, "theirs", low[:1], random=0.7, cpu_seconds=None, mb=None, family="",
            source="a <script>alert(1)</script> paper", notes=["its training data is not on record"],
        ),
    ]  # fmt: skip
    for row in rows:
        write_record(score_path(folder, row.key), ADAPTER, row)
    scores = {"accuracy": 0.95, "nll": 0.2}
    full = Reference(first.name, first.checksum, "converged", scores, Cost(), steps=300, rising=True)
    write_record(folder / "references" / "digits.json", REFERENCE, full)
    return folder
