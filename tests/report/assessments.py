"""Assessments made by hand: made-up predictions, with the real measures taken of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator

from attar.assess.attack import Attacked
from attar.assess.calibrate import temper
from attar.assess.corruption import CORRUPTIONS, Corrupted
from attar.assess.detect import out_of_distribution, selective
from attar.assess.distance import distance, distillation_ratio
from attar.assess.fairness import Fairness, Pair
from attar.assess.metrics import score
from attar.assess.privacy import Membership
from attar.assess.questions import Assessment
from attar.assess.transfer import Transferred
from attar.core.cost import Cost
from tests.report.studies import generator

NETWORKS = {"convnet": 320_010, "resnet10": 4_903_242, "vgg11": 9_231_114, "CN-D3W128": 320_138, "mlp": 118_282}


def plain(name: str = "posterior") -> Assessment:
    """Nothing but the scores was asked, of networks that were trained rather than walked to."""
    p, y = predictions(2.0, generator(3))
    return Assessment(
        name, score(p, y), curve(p, y), {"sampler": "ensemble", "options": {}, "seed": 0, "start": "prior"}
    )


def whole(name: str = "dm", start: str = "prior", classes: int = 3) -> Assessment:
    """Every question was asked."""
    gen = generator(len(name))
    p, y = predictions(2.6, gen, classes)
    sharp, full = temper(p, 0.25), predictions(4.5, gen, classes)[0]
    before = score(sharp, y)
    strange = {other: predictions(skill, gen, classes)[0] for other, skill in (("kmnist", 0.8), ("noise", 0.1))}
    return Assessment(
        name,
        before,
        curve(sharp, y),
        diagnostics(gen, start),
        temperature=2.0,
        calibrated=score(temper(sharp, 2.0), y),
        detection={other: out_of_distribution(p, q) for other, q in strange.items()},
        distance=distance(sharp, full),
        floor=distance(full, temper(full, 0.8)),
        ratio=distillation_ratio(before.accuracy, score(full, y).accuracy),
        corruption=corrupted(before.accuracy, gen),
        attacks=[
            Attacked("pgd", 0.5 / 255, 0.847, 0.801, 40, 5, 1000),
            Attacked("apgd-ce", 8 / 255, 0.847, 0.312, 100, 1, 1000),
            Attacked("autoattack", 8 / 255, 0.847, 0.187, None, None, 1000),
            Attacked("standard", 8 / 255, 0.847, 0.186, 100, 1, 1000),
        ],
        transfer=transferred(before.accuracy, gen),
        fairness=Fairness(
            own=Pair([0.84, 0.85, 0.83], [0.71, 0.74, 0.70]),
            hard=[0.82, 0.81, 0.83],
            full=[0.97, 0.96, 0.97],
            plain=Pair([0.83, 0.84, 0.83], [0.70, 0.72, 0.71]),
            augmented=Pair([0.86, 0.85, 0.86], [0.76, 0.77, 0.75]),
        ),
        nearest=(0.6 + 0.35 * torch.randn(100, generator=gen).abs()).tolist(),
        membership=Membership(0.523, 0.013, 100, 700),
    )


def predictions(skill: float, gen: Generator, classes: int = 3, n: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.arange(n) % classes
    logits = skill * torch.nn.functional.one_hot(y, classes) + 1.2 * torch.randn(n, classes, generator=gen)
    return logits.double().softmax(1), y


def curve(p: torch.Tensor, y: torch.Tensor) -> list[tuple[float, float]]:
    found = selective(p, y)
    return list(zip(found.coverage, found.accuracy, strict=True))[::6]


def corrupted(clean: float, gen: Generator) -> list[Corrupted]:
    found = []
    for name in CORRUPTIONS:
        slope = 0.02 + 0.1 * float(torch.rand((), generator=gen))
        for severity in range(1, 6):
            accuracy = max(clean - slope * severity, 0.3)
            found.append(Corrupted(name, severity, accuracy, 2.5 * (1 - accuracy), 1000))
    return found


def transferred(accuracy: float, gen: Generator) -> list[Transferred]:
    losses = 0.2 * torch.rand(len(NETWORKS), generator=gen)
    found = [
        Transferred(
            network, size, accuracy - float(loss), 0.012, 0.6 + float(loss), Cost(wall=31.25, cpu=60.5), seeds=3
        )
        for (network, size), loss in zip(NETWORKS.items(), losses, strict=True)
    ]
    return [*found, Transferred("alexnet", problem="alexnet needs pictures of at least 32 × 32 pixels, got 8 × 8.")]


def diagnostics(gen: Generator, start: str = "prior", chains: int = 4, kept: int = 40) -> dict[str, Any]:
    """Notes of chains that wander about the same height, as a sampler that walks leaves them."""
    walk = torch.zeros(chains, kept)
    for i in range(1, kept):
        walk[:, i] = 0.8 * walk[:, i - 1] + torch.randn(chains, generator=gen)
    odds = 1.0 + 0.5 * torch.randn(4, chains, kept, generator=gen)
    label = {"label": "started from full-data experts"} if start == "experts" else {}
    return {
        "rhat": 1.043,
        "ess": 61.7,
        "points": 160,
        "acceptance": 0.8125,
        "trace": {"potential": (812 + 6 * walk).tolist(), "probability": odds.sigmoid().tolist()},
        "warnings": [],
        "sampler": "hmc",
        "options": {"step": 0.001, "chains": chains, "warmup": 300, "thin": 20, "examples": None},
        "seed": 0,
        "start": start,
    } | label
