"""What a coreset tells about the examples that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from time import perf_counter
from typing import Any

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.assess.detect import auroc, tpr_at
from attar.assess.metrics import TINY, check
from attar.assess.score import predictions
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.data.data import require_per_class
from attar.infer import Posterior, infer
from attar.nets.train import Training
from attar.reduce import reduce

Maker = Callable[[Data, int], Posterior]  #: from training data and a seed to a posterior

ENOUGH = 16  #: shadows from which on every example has a deviation of its own; with fewer all share one
COPY = 1e-4  #: a normalised distance below which examples differ by rounding alone
SAMPLE, CHUNK = 1000, 4096


@dataclass(frozen=True)
class Membership:
    """How well an attacker tells members, whose data was used, from examples that were not."""

    auroc: float  #: ½ is luck, 1 is certainty; below ½ is luck too
    tpr: float  #: share of the members found while at most 1 % of the others are taken for members
    members: int
    others: int

    @property
    def luck(self) -> float:
        r"""Standard error of the AUROC where nothing leaks: :math:`\sqrt{(m + n + 1) / 12mn}`."""
        return sqrt((self.members + self.others + 1) / (12 * self.members * self.others))

    def __str__(self) -> str:
        return f"membership AUROC {self.auroc:.3f} (luck 0.5 ± {self.luck:.3f})  TPR at 1 % FPR {self.tpr:.3f}"


def membership(
    make: str | Maker,
    split: Split,
    *,
    targets: int = 200,
    shadows: int = 8,
    seed: int = 0,
    watch: Callable[[str], None] = lambda said: None,
) -> Membership:
    r"""Attack a posterior with likelihood ratios, offline (Carlini et al., Membership Inference Attacks, S&P 2022).

    Half of the targets, the members, join the data that the attacked posterior is made from; the other half does not.
    Shadows are made in the same way from as many other examples, without any target. With the logit of the true
    class's probability :math:`\phi = \log p_y - \log(1 - p_y)`, an example is taken for a member the sooner, the larger

    .. math:: (\phi - \mu_{out}) / \sigma_{out}

    with mean and deviation of the Gaussian that its shadows' logits fit (one deviation for all where shadows are few).
    A posterior that memorised its data gives the members away, a selected coreset those that it holds as they are.
    It costs one reduction and one inference for every shadow and one more: half a minute to minutes on digits.

    Args:
        make: A method's name, at the defaults of ``through``, or any function from data and seed to a posterior.
        split: Only ``train`` is used.
        targets: Examples to tell apart, balanced over classes; a rate at 1 % takes 200 or more to mean something.
        shadows: Posteriors that never saw a target, at least 2.
        seed: Fixes who is a member, what shadows see, and how all are made.
        watch: Called before each posterior with how far it is and, from the second on, how long the rest will take.
    """
    if shadows < 2:
        raise AttarError(f"A Gaussian needs at least 2 shadows, got {shadows}.")
    build = _timed(through(make) if isinstance(make, str) else make, 1 + shadows, watch)
    data, gen = split.train, torch.Generator().manual_seed(seed)
    members, others, rest = _roles(data, targets, gen)
    size = len(rest) // 2
    attacked = build(data[torch.cat([members, _some(data, rest, size - len(members), gen)])], seed)
    out = [build(data[_some(data, rest, size, gen)], seed + k) for k in range(1, shadows + 1)]

    chosen = data[torch.cat([members, others])]
    logits = torch.stack([_logits(shadow, chosen) for shadow in out])
    deviation = logits.std(0) if shadows >= ENOUGH else logits.var(0).mean().sqrt()
    z = (_logits(attacked, chosen) - logits.mean(0)) / deviation.clamp_min(TINY)
    inside, outside = z[: len(members)], z[len(members) :]
    return Membership(auroc(outside, inside), tpr_at(outside, inside, 0.01), len(members), len(others))


def _timed(make: Maker, total: int, watch: Callable[[str], None]) -> Maker:
    """The same, which says before each of ``total`` calls what is done and, by the mean so far, what is left."""
    count, start = 0, perf_counter()

    def timed(data: Data, seed: int) -> Posterior:
        nonlocal count
        left = f", about {(perf_counter() - start) / count * (total - count):.0f} s left" if count else ""
        watch(f"membership: posterior {count + 1} of {total}{left}")
        count += 1
        return make(data, seed)

    return timed


def through(
    method: str,
    *,
    per_class: int = 10,
    draws: int = 1,
    network: str | None = None,
    training: Training | None = None,
    options: Mapping[str, Any] | None = None,
    descent: Mapping[str, Any] | None = None,
    sampler: str = "ensemble",
    sampler_options: Mapping[str, Any] | None = None,
) -> Maker:
    """The way to a posterior through a coreset of this method, or, for ``full``, from the data itself."""

    def make(data: Data, seed: int) -> Posterior:
        if method == "full":
            return infer(
                data,
                sampler,
                draws=draws,
                seed=seed,
                network=network,
                training=training,
                options=sampler_options,
            )
        coreset = reduce(
            data,
            method,
            per_class=per_class,
            seed=seed,
            network=network,
            training=training,
            options=options,
            descent=descent,
        )
        return infer(coreset, sampler, draws=draws, seed=seed, options=sampler_options)

    return make


def nearest(coreset: Coreset, data: Data) -> Tensor:
    """Distance of each of the coreset's examples to the nearest training example, ``(n,)``.

    Euclidean in the units of the original data (pixels in [0, 1]), divided by the median distance from a training
    example to its nearest other one, taken over at most 1,000 of them. So 0 is an exact copy, below 1 is nearer than
    two training examples usually are, and well above 1 is like none of them.
    """
    if coreset.data.shape != data.shape:
        raise AttarError(
            f"The coreset's examples have shape {coreset.data.shape}, the data's {data.shape}: compare it with the "
            "data that it was made from."
        )
    if len(data) < 2:
        raise AttarError(f"Distances between training examples need at least 2 of them, got {len(data)}.")
    sample = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    typical = _to_nearest(data[sample.to(data.x.device)], data, sample).median()
    if typical == 0:
        raise AttarError("Most training examples have an exact copy among them: remove duplicates first.")
    near = _to_nearest(coreset.data, data) / typical
    return torch.where(near < COPY, 0.0, near)


def _roles(data: Data, targets: int, gen: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of members, of others, and of the rest, each with the same share of every class."""
    each = targets // (2 * data.classes)
    if each < 1:
        raise AttarError(f"targets must be at least two a class, {2 * data.classes} in all, got {targets}.")
    require_per_class(data.hard, data.spec.target, 6 * each)
    y = data.hard.cpu()
    shuffled = [_shuffled((y == c).nonzero().flatten(), gen) for c in range(data.classes)]
    cuts = [(s[:each], s[each : 2 * each], s[2 * each :]) for s in shuffled]
    members, others, rest = (torch.cat(part) for part in zip(*cuts, strict=True))
    return members, others, rest


def _some(data: Data, among: Tensor, size: int, gen: Generator) -> Tensor:
    """About ``size`` of these indices, the same share of every class."""
    y = data.hard.cpu()[among]
    parts = [_shuffled(among[y == c], gen) for c in range(data.classes)]
    return torch.cat([part[: round(size * len(part) / len(among))] for part in parts])


def _shuffled(index: Tensor, gen: Generator) -> Tensor:
    return index[torch.randperm(len(index), generator=gen)]


def _logits(posterior: Posterior, data: Data) -> Tensor:
    """Logit of the true class's probability; the other classes are summed, since 1 − p would round to 0."""
    y = data.hard.cpu()
    p = check(predictions(posterior, data), y)
    true = torch.nn.functional.one_hot(y, p.shape[1]).bool()
    right, wrong = p[true], p.masked_fill(true, 0).sum(1)
    return right.clamp_min(TINY).log() - wrong.clamp_min(TINY).log()


def _to_nearest(some: Data, data: Data, own: Tensor | None = None) -> Tensor:
    """Distance of each of ``some`` to the nearest of ``data``, other than itself at the indices ``own``."""
    x = _original(some)
    best = torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
    for start in range(0, len(data), CHUNK):
        gaps = torch.cdist(x, _original(data[start : start + CHUNK]).to(x.device))
        if own is not None:
            here = ((own >= start) & (own < start + gaps.shape[1])).nonzero().flatten()
            gaps[here, own[here] - start] = torch.inf
        best = torch.minimum(best, gaps.min(1).values)
    return best


def _original(data: Data) -> Tensor:
    return data.spec.stored(data.x).flatten(1).double()
