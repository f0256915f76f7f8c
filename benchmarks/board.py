"""Every score of the board in ``results``: problems, references, coresets of several methods, and published sets.

What is already there is not made again, so an interrupted run resumes; coresets are kept in the work folder, with
checkpoints of those that are learnt; the learning curves of long runs are in ``benchmarks/results/board``. The
environment variables ``PROBLEMS`` and ``SIZES``, separated by commas, restrict a call to some problems and numbers of
examples per class. The sets of RFAD are read from ``published/rfad-cifar10-1.npz`` and ``-10.npz`` in the folder of
data sets, and left out if they are not there.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import torch

import attar
from attar.board import Problem, refer
from attar.board.models import LogisticProblem
from attar.board.problem import Loading, problem_of, read_problem, write_problem
from attar.board.reference import add_floor, read_reference
from attar.board.results import score_path
from attar.condense.observers import log
from attar.core import registry
from attar.core.files import write_json
from attar.core.method import REGRESSION
from attar.coreset import Coreset
from attar.data import Split
from attar.data.foreign import arrays
from attar.engine import keep_freed_memory
from attar.nets.train import Training
from attar.study.compared import RANDOM
from benchmarks import RESULTS, WORK
from benchmarks._logistic import distilled
from benchmarks._problems import ENTRIES, SEEDS, SIZES, Entry

NAME, ROOT = "board", Path(__file__).parents[1] / "results"
RFAD = "yolky/RFAD c9ef03e"
LOGISTIC = "logistic"
CURVES, WINDOWS = RESULTS / NAME, 20


def main() -> list[Path]:
    """Make what is missing; returns the files of all scores."""
    keep_freed_memory()
    torch.set_num_threads(1)
    asked = _asked("PROBLEMS")
    for entry in ENTRIES:
        if not asked or entry.name in asked:
            _run(entry)
    if not asked or LOGISTIC in asked:
        _logistic()
    return sorted((ROOT / "scores").glob("*.json"))


def _asked(name: str) -> set[str]:
    """What an environment variable names."""
    return {word for word in os.environ.get(name, "").split(",") if word}


def _run(entry: Entry) -> None:
    sizes = [size for size in entry.per_class if not (asked := _asked("SIZES")) or str(size) in asked]
    done = (
        (entry.reference or _referred(entry.name))
        and all(score_path(ROOT, f"{entry.name}--{m}-{n}").exists() for m in entry.methods for n in sizes)
        and not (entry.published and _missing())
    )
    if done:
        return
    split = attar.load(entry.data, scaling=entry.scaling, vectors=entry.vectors)
    problem = entry.problem(split)
    _write(problem)
    if entry.reference is None:
        _reference(problem, split, entry.epochs)
    for method in entry.methods:
        for size in sizes:
            if not score_path(ROOT, f"{entry.name}--{method}-{size}").exists():
                files = [_coreset(entry, split, method, size, seed) for seed in entry.seeds]
                _submit(files, problem, split)
    if entry.published:
        _published(problem, split)


def _write(problem: Problem) -> None:
    """Write a problem that is not there; one with other settings is an error, as scores refer to it."""
    path = ROOT / "problems" / f"{problem.name}.json"
    if not path.exists():
        write_problem(ROOT, problem)
    elif read_problem(path).checksum != problem.checksum:
        raise attar.AttarError(f"{path} has other settings than benchmarks/board.py: remove it and its scores first.")


def _referred(name: str) -> bool:
    """Whether there is a reference with its floor."""
    path = ROOT / "references" / f"{name}.json"
    return path.exists() and read_reference(path).floor is not None


def _reference(problem: Problem, split: Split, epochs: int = 30) -> None:
    if not (ROOT / "references" / f"{problem.name}.json").exists():
        sys.stderr.write(f"{refer(problem, ROOT, split=split, epochs=epochs)}\n")
    elif not _referred(problem.name):
        sys.stderr.write(f"{add_floor(problem, ROOT, split=split)}\n")


def _coreset(entry: Entry, split: Split, method: str, size: int, seed: int) -> Path:
    """The file of a coreset, made if it is missing."""
    path = WORK / NAME / f"{entry.name}--{method}-{size}-{seed}.safetensors"
    logged = path.with_suffix(".jsonl")
    options, descent = entry.settings(method, size)
    if not path.exists():
        attar.reduce(
            split,
            method,
            per_class=size,
            seed=seed,
            network=entry.network,
            training=entry.training,
            options=options or None,
            descent=descent or None,
            checkpoint=path.with_suffix(".checkpoint") if descent else None,
            observers=[partial(log, path=logged)] if entry.curves else (),
        ).save(path)
        sys.stderr.write(f"{path.stem}\n")
    if entry.curves and logged.exists():
        write_json(CURVES / f"{path.stem}.json", curve(logged))
    return path


def curve(logged: Path) -> dict[str, Any]:
    """The learning curve of a coreset: the mean loss on real batches in at most ``WINDOWS`` equal windows of steps."""
    losses = [json.loads(line)["loss"] for line in logged.read_text(encoding="utf-8").splitlines()]
    ends = [round((i + 1) * len(losses) / WINDOWS) for i in range(WINDOWS)]
    points = {end: mean(losses[start:end]) for start, end in pairwise([0, *ends]) if end > start}
    return {"command": f"python -m benchmarks {NAME}", "steps": list(points), "loss": list(points.values())}


def _submit(files: list[Path], problem: Problem, split: Split, name: str | None = None) -> None:
    found = attar.submit(files, problem=problem.name, results=ROOT, name=name, split=split)
    sys.stderr.write(f"{found.key}: {found.validation_accuracy:.1%} on validation\n")


def _sets() -> list[Path]:
    """The published sets that are there."""
    folder = Path(os.environ.get("ATTAR_DATA") or "~/.cache/attar/data").expanduser() / "published"
    found = [folder / f"rfad-cifar10-{size}.npz" for size in SIZES]
    return [path for path in found if path.exists()]


def _missing() -> list[Path]:
    """The published sets that are there and not yet judged both ways."""
    keys = {size: (f"cifar10-zca--rfad-{size}", f"cifar10-rfad-{size}--rfad-{size}") for size in SIZES}
    sizes = {path: int(path.stem.rpartition("-")[2]) for path in _sets()}
    return [path for path, size in sizes.items() if not all(score_path(ROOT, key).exists() for key in keys[size])]


def _published(problem: Problem, split: Split) -> None:
    """RFAD's sets, judged as ours are and as their authors train on them."""
    sizes = [int(path.stem.rpartition("-")[2]) for path in _missing()]
    made = {size: _imported(path, split, size) for path, size in zip(_missing(), sizes, strict=True)}
    for judged, size in [*((problem, size) for size in sizes), *((_authors(problem, size), size) for size in sizes)]:
        if not score_path(ROOT, f"{judged.name}--rfad-{size}").exists():
            _write(judged)
            score = attar.submit(made[size], problem=judged.name, results=ROOT, split=split)
            sys.stderr.write(f"{score.key}: {score.validation_accuracy:.1%} on validation\n")


def _imported(path: Path, split: Split, size: int) -> Coreset:
    found = arrays(path)
    return Coreset.from_arrays(
        found["images"],
        found["labels"],
        data=split,
        scaling="zca",
        convention="centred",
        training=registry.make(Training, REGRESSION, "training"),
        method="rfad",
        network="convnet-d3w1024-nonorm-he",
        source=f"{RFAD}, distilled_images_final/cifar10/{size}/best.npz",
    )


def _authors(problem: Problem, size: int) -> Problem:
    """How RFAD's authors train on their sets, with a narrower network.

    Their loss is the mean over examples and classes, divided by the squared scale of labels; ours half the sum over
    classes. Gradients of outputs grow with the width, so the learning rate is raised as the width falls.
    """
    scale, width, theirs = {1: 8.0, 10: 2.0}[size], 64, 1024
    lr = 1e-3 * 2 / (problem.classes * scale**2) * theirs / width
    training = Training(
        steps=1000, batch=513, lr=lr, momentum=0.9, weight_decay=0.0, schedule="constant", loss="squared"
    )
    return replace(
        problem,
        name=f"cifar10-rfad-{size}",
        about=f"CIFAR-10 after ZCA whitening, trained as RFAD's authors do, but with width {width} instead of {theirs} "
        f"(learning rate times {theirs // width}), 1,000 steps at most instead of 20,000, and biases that start at 0.",
        per_class=[size],
        network=f"convnet-d3w{width}-nonorm-he",
        training=training,
        draws=1,
        evaluations=3,
        protocol="published",
        way="centred",
        options={"scale": scale, "every": 100, "patience": 500},
        source=f"{RFAD}, eval_distilled_set.py and training.py, with the values of utils.py",
        reference=problem.name,
    )


def _logistic() -> None:
    """Bayesian logistic regression: random subsets and pseudo-coresets that minimise the reverse divergence."""
    model = LogisticProblem(4, 1000, 2.0)
    split = model.split()
    problem = problem_of(
        LOGISTIC,
        "Bayesian logistic regression on simulated data: the posterior of few weighted examples against that of all.",
        split,
        "logistic-4",
        per_class=[5],
        network="linear",
        training=Training(),
        draws=1,
        model=model,
        loading=Loading("none"),
    )
    _write(problem)
    _reference(problem, split)
    for method in (RANDOM, "bpc-rkl"):
        if not score_path(ROOT, f"{LOGISTIC}--{method}-5").exists():
            files = []
            for seed in SEEDS:
                path = WORK / NAME / f"{LOGISTIC}--{method}-5-{seed}.safetensors"
                if not path.exists():
                    distilled(model, split, method, seed).save(path)
                files.append(path)
            _submit(files, problem, split)
