"""Privacy: membership inference, and distances to training examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from attar.data import Data, Split, Tokens
from attar.data.data import require_per_class
from attar.infer import Posterior, infer
from attar.nets.train import Training
from attar.plan import plan
from attar.reduce import run

Maker = Callable[[Data, int], Posterior]  #: from training data and a seed to a posterior

ENOUGH = 16  #: shadows needed for a standard deviation per example; with fewer, all share one
RATE, ABOVE = 0.01, 5  #: a true-positive rate at this false-positive rate needs so many others above the threshold
COPY = 1e-4  #: a normalised distance below which examples differ only by rounding
SAMPLE, CHUNK = 1000, 4096


@dataclass(frozen=True)
class Membership:
    """The success of membership inference: training examples (members) against others."""

    auroc: float  #: ½ or less is chance, 1 is perfect
    tpr: float | None  #: true-positive rate at a false-positive rate of 1 %; None with too few others
    members: int
    others: int

    @property
    def above(self) -> int:
        """Others above the threshold of the true-positive rate."""
        return int(RATE * self.others + 1e-9)

    @property
    def rate(self) -> str:
        """The true-positive rate at 1 % with what supports it, or why it is not given; older files had too few."""
        if self.tpr is None or self.above < ABOVE:
            return f"not given: {self.others:,} non-members, {round(ABOVE / RATE):,} are needed"
        return (
            f"{self.tpr:.1%} of {self.members:,} members ({self.above:,} of {self.others:,} non-members misclassified)"
        )

    @property
    def luck(self) -> float:
        r"""Standard error of the AUROC by chance: :math:`\sqrt{(m + n + 1) / 12mn}`."""
        return sqrt((self.members + self.others + 1) / (12 * self.members * self.others))

    def __str__(self) -> str:
        return f"membership AUROC {self.auroc:.3f} (chance 0.5 ± {self.luck:.3f})  TPR at 1 % FPR {self.rate}"


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

    Half of the targets, the members, are added to the data that the attacked posterior is made from. The other half is
    not, and counts as others together with all validation and test examples. Shadow posteriors are made in the same way
    from as many other examples, without any target. With the logit of the true class's probability
    :math:`\phi = \log p_y - \log(1 - p_y)`, the score of membership is

    .. math:: (\phi - \mu_{out}) / \sigma_{out}

    with mean and standard deviation of a Gaussian fitted to its logits under the shadows (one deviation for all if
    there are few shadows). A posterior that memorised its data reveals its members, and a selected coreset those that
    it contains. The cost is one reduction and one inference for every shadow and one more: half a minute to minutes on
    digits.

    Args:
        make: A method's name, at the defaults of ``through``, or any function from data and seed to a posterior.
        split: Members and the data of all posteriors are from ``train``; ``val`` and ``test`` are others.
        targets: Training examples to classify, balanced over classes.
        shadows: Shadow posteriors, at least 2.
        seed: Random seed.
        watch: Called before each posterior with the progress and, from the second on, the time left.
    """
    if shadows < 2:
        raise AttarError(f"Membership inference needs at least 2 shadows, got {shadows}.")
    build = _timed(through(make) if isinstance(make, str) else make, 1 + shadows, watch)
    data, gen = split.train, torch.Generator().manual_seed(seed)
    members, others, rest = _roles(data, targets, gen)
    size = len(rest) // 2
    attacked = build(data[torch.cat([members, _some(data, rest, size - len(members), gen)])], seed)
    out = [build(data[_some(data, rest, size, gen)], seed + k) for k in range(1, shadows + 1)]

    chosen = [data[torch.cat([members, others])], *(part for part in (split.val, split.test) if len(part))]
    logits = torch.stack([_logits(shadow, chosen) for shadow in out])
    deviation = logits.std(0) if shadows >= ENOUGH else logits.var(0).mean().sqrt()
    z = (_logits(attacked, chosen) - logits.mean(0)) / deviation.clamp_min(TINY)
    inside, outside = z[: len(members)], z[len(members) :]
    found = Membership(auroc(outside, inside), tpr_at(outside, inside, RATE), len(members), len(outside))
    return found if found.above >= ABOVE else replace(found, tpr=None)


def _timed(make: Maker, total: int, watch: Callable[[str], None]) -> Maker:
    """The same function, which reports progress and time left before each of ``total`` calls."""
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
    sampler: str | None = None,
    sampler_options: Mapping[str, Any] | None = None,
) -> Maker:
    """A function that reduces data with this method and infers a posterior; for ``full``, without reduction."""

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
        decided = plan(
            data,
            method,
            per_class=per_class,
            seed=seed,
            network=network,
            training=training,
            options=options,
            descent=descent,
        )
        return infer(run(decided), sampler, draws=draws, seed=seed, options=sampler_options)

    return make


def nearest(coreset: Coreset, data: Data) -> Tensor:
    """Distance of each of the coreset's examples to the nearest training example, ``(n,)``.

    Euclidean in the units of the original data (pixels in [0, 1]), divided by the median distance between a training
    example and its nearest neighbour, over at most 1,000 of them. So 0 is an exact copy, below 1 is nearer than
    training examples typically are, and well above 1 is unlike any of them.
    """
    if coreset.data.shape != data.shape:
        raise AttarError(
            f"The coreset's examples have shape {coreset.data.shape}, the data's {data.shape}: compare it with the "
            "data that it was made from."
        )
    if len(data) < 2:
        raise AttarError(f"Distances between training examples need at least 2 examples, got {len(data)}.")
    sample = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    typical = _to_nearest(data[sample.to(data.x.device)], data, sample).median()
    if typical == 0:
        raise AttarError("Most training examples have an exact copy among them: remove duplicates first.")
    near = _to_nearest(coreset.data, data) / typical
    return torch.where(near < COPY, 0.0, near)


def _roles(data: Data, targets: int, gen: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of members, other targets and the rest, each with the same share of every class."""
    each = targets // (2 * data.classes)
    if each < 1:
        raise AttarError(f"targets must be at least two per class, {2 * data.classes} in all, got {targets}.")
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


def _logits(posterior: Posterior, parts: Sequence[Data]) -> Tensor:
    """Logits of the true class's probability; the other classes are summed, since 1 − p would round to 0."""
    y = torch.cat([data.hard.cpu() for data in parts])
    p = check(torch.cat([predictions(posterior, data) for data in parts]), y)
    true = torch.nn.functional.one_hot(y, p.shape[1]).bool()
    right, wrong = p[true], p.masked_fill(true, 0).sum(1)
    return right.clamp_min(TINY).log() - wrong.clamp_min(TINY).log()


def _to_nearest(some: Data, data: Data, own: Tensor | None = None) -> Tensor:
    """Distance of each of ``some`` to the nearest of ``data``, except itself, at the indices ``own``."""
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
    """Examples in their original units; texts as embeddings, because differences of tokens mean nothing."""
    text = isinstance(data.spec.element, Tokens)
    return (data.spec.dense(data.x) if text else data.spec.stored(data.x)).flatten(1).double()
