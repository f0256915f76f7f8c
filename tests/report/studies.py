"""Small studies made by hand, with real scores and real coreset files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator, Tensor

from attar.assess.answers import answers
from attar.assess.metrics import Scores, score
from attar.condense.film import Film
from attar.core.cost import Cost
from attar.coreset import Coreset
from attar.data.data import Data
from attar.data.spec import Spec
from attar.data.transform import Standard
from attar.recipe import Recipe
from attar.study.results import Run, Study

SKILL = {"uniform": 1.6, "herding": 2.0, "craig": 1.8, "dm": 2.4, "bpc-cd": 2.8, "full": 4.5}
FAMILY = {"uniform": "select", "herding": "select", "craig": "select", "dm": "condense", "bpc-cd": "condense"}
CLASSES = ("shirt", "shoe", "bag")


def generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def guesses(skill: float, classes: int, gen: Generator, n: int = 300) -> tuple[Tensor, Tensor]:
    """Made-up predictions and true labels; more skill, more right."""
    y = torch.arange(n) % classes
    right = torch.nn.functional.one_hot(y, classes)
    return (skill * right + 1.2 * torch.randn(n, classes, generator=gen)).softmax(1), y


def scores(skill: float, classes: int, gen: Generator) -> Scores:
    """Scores of made-up predictions."""
    return score(*guesses(skill, classes, gen))


def study(
    folder: Path,
    methods: Sequence[str] = ("uniform", "herding", "dm", "full"),
    per_class: Sequence[int] = (2,),
    seeds: int = 3,
    classes: Sequence[str] = CLASSES,
    pool: Tensor | None = None,
    labels: Tensor | None = None,
    evaluations: int = 1,
) -> Study:
    """A study whose coresets hold examples of ``pool`` (by default, noise of 6 x 6 pixels)."""
    if pool is None or labels is None:
        pool, labels = torch.rand(60, 1, 6, 6, generator=generator(0)), torch.arange(60) % len(classes)
    data = Data(pool, labels, spec=Spec.of(pool.shape[1:], classes, name="Toy set"))
    runs = []
    for method in methods:
        for size in [None] if method == "full" else per_class:
            for seed in range(seeds):
                runs += [_run(method, size, seed, data, folder, number) for number in range(evaluations)]
    sizes = {"train": 3000, "val": 300, "test": 300}
    about = {"name": "Toy set", "classes": list(classes), "shape": list(data.shape), "fingerprint": "0f" * 16} | sizes
    config = {"methods": list(methods), "per_class": list(per_class), "seeds": seeds, "training": {"steps": 300}}
    return Study("attar compare toy --methods dm,uniform --per-class 2", config, about, runs)


def _run(method: str, per_class: int | None, seed: int, data: Data, folder: Path, evaluation: int) -> Run:
    gen = generator(100_000 * evaluation + 1000 * seed + len(method) + 7 * (per_class or 0))
    skill = SKILL[method] + 0.12 * float(torch.randn((), generator=gen)) + 0.02 * (per_class or 0)
    size = 3000 if per_class is None else per_class * data.classes
    curve = (
        [(s, 3.0 * 0.99**s + 0.5 + 0.05 * seed) for s in range(0, 500, 5)] if FAMILY.get(method) == "condense" else []
    )
    return Run(
        method,
        FAMILY.get(method, "full"),
        per_class,
        seed,
        size,
        validation=scores(skill, data.classes, gen),
        test=scores(skill, data.classes, gen),
        reduce_cost=Cost(wall=12.5, cpu=24.0, memory=400 * 2**20) if per_class else Cost(),
        infer_cost=Cost(wall=3.25, cpu=6.5, memory=500 * 2**20),
        curve=curve,
        coreset=None if per_class is None else coreset(method, per_class, seed, data, folder, gen),
        evaluation=evaluation,
        answers=answers(*guesses(skill, data.classes, generator(seed), n=60)),
    )


def coreset(method: str, per_class: int, seed: int, data: Data, folder: Path, gen: Generator) -> str:
    """Save a coreset of some examples of every class; returns its name in the folder."""
    scaling = Standard.fit(data.x)
    chosen = data.sample_per_class(per_class, gen)
    scaled = Data(scaling.apply(chosen.x), chosen.y, spec=replace(data.spec, transform=scaling))
    recipe = Recipe(method, per_class, seed, data.spec.name, data.fingerprint, "convnet", "0.1.0")
    name = f"{method}-{per_class}-{seed}.safetensors"
    Coreset(scaled, recipe).save(folder / name)
    return name


def making(folder: Path, key: str, x: Tensor, steps: int = 200) -> None:
    """Write a film, of examples ``x`` that fade in, and a log of all that methods log, as the protocol does."""
    frames = {number: (0.2 + 0.8 * number / steps) * x for number in (0, steps // 2, steps)}
    Film(torch.arange(len(x)), frames, steps).save(folder / "films" / f"{key}.safetensors")
    lines = [
        {
            "step": step,
            "loss": 1.0,
            "positive": 2.0 + step % 7 / 7,
            "negative": 1.0 + step % 5 / 5,
            "trajectory": float(step % 3),
            "epoch": step % 4 + (0.5 if step % 3 == 0 else 0.0),
            "scale": 10.0 + step / steps,
            "gap": 5.0,
        }
        for step in range(1, steps + 1)
    ]
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / f"{key}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
