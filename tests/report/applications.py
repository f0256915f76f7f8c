"""Results of applications made by hand."""

from __future__ import annotations

import torch

from attar.continual.results import Continual, Episode, StageInfo
from attar.core.cost import Cost
from attar.nas.results import Nas, Proxy, Trial

METHODS = ("uniform", "herding", "dm", "a-variant-with-a-long-name", "full")


def stages(count: int = 5, seeds: int = 3) -> Continual:
    """Class-incremental learning whose accuracy falls from stage to stage."""
    gen = torch.Generator().manual_seed(0)
    about = [StageInfo("Toy set", [f"class {2 * s}", f"class {2 * s + 1}"], 500, 50, 100) for s in range(count)]
    runs = []
    for place, method in enumerate(METHODS):
        for seed in range(seeds):
            noise = (0.05 * torch.rand(count, count, generator=gen)).tolist()
            scores = [[0.9 - 0.05 * (t - s) + noise[t][s] - 0.02 * place for s in range(t + 1)] for t in range(count)]
            cost = [Cost(1.0, 1.0, 10)] * count
            runs.append(Episode(method, "select", seed, scores, scores, [20] * count, cost, cost))
    config = {"regime": "memory", "per_class": 10, "network": "convnet-d3w32", "seeds": list(range(seeds))}
    return Continual("attar continual toy --stages 5", config, about, runs)


def search(count: int = 12) -> Nas:
    """A search whose proxy sets rank networks almost as the full data; one training failed."""
    gen = torch.Generator().manual_seed(0)
    names = [f"convnet-d3w{k}-nonorm-leakyrelu-nopool" for k in range(1, count + 1)]
    trials = []
    for row in ("uniform", "dm", "early-stopping", "full"):
        for place, name in enumerate(names):
            score = 0.5 + place / 30 + 0.1 * float(torch.rand((), generator=gen))
            trials.append(Trial(row, 0, name, 1000 * place, Cost(cpu=1 + 9 * (row == "full")), score, score - 0.01))
    trials[3] = Trial("uniform", 0, names[3], 4000, Cost(), problem="Training diverged at step 2: try <b>less</b>.")
    proxies = [Proxy(row, 0, 100, Cost(cpu=2.0)) for row in ("uniform", "dm")]
    data = {"name": "Toy set", "train": 1000, "classes": ["a", "b"]}
    return Nas("attar nas toy", {"per_class": 10}, data, names, proxies, trials)
