"""DD-Ranking: how much of a coreset's accuracy is due to its examples, not to labels and augmentation.

Li et al., DD-Ranking: Rethinking the Evaluation of Dataset Distillation, 2025 (arXiv:2505.13300).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import e, exp
from statistics import mean
from typing import Any

from pydantic.dataclasses import dataclass

from attar.assess.score import evaluate, require_fitting
from attar.assess.statistics import t_interval, with_half
from attar.core.errors import AttarError
from attar.core.streams import evaluation
from attar.coreset import Coreset
from attar.data import Data, Image, Split
from attar.data.augment import DSA
from attar.infer import Posterior, infer
from attar.nets.train import Training


@dataclass(frozen=True)
class Pair:
    """Test accuracies of the coreset and of random subsets with the same settings, one per seed."""

    coreset: list[float]
    random: list[float]

    @property
    def gain(self) -> tuple[float, float | None]:
        """Mean improvement over random, and half the width of its 95 % t-interval over seeds (None for one seed)."""
        return t_interval([ours - theirs for ours, theirs in zip(self.coreset, self.random, strict=True)])


@dataclass(frozen=True)
class Fairness:
    """The result of ``fair``: test accuracies as fractions, one per seed."""

    own: Pair  #: with the given settings and the coreset's kind of labels
    hard: list[float]  #: the coreset with hard labels
    full: list[float]  #: the full data with its hard labels
    plain: Pair  #: without augmentation
    augmented: Pair | None  #: with augmentation; None if the data is not images

    @property
    def ior(self) -> float:
        """Improvement over random, from −1 to 1: the gain from the examples, at equal labels and settings."""
        return self.own.gain[0]

    @property
    def hlr(self) -> float:
        """Hard-label recovery, from −1 to 1: the loss against the full data with hard labels (lower is better)."""
        return mean(self.full) - mean(self.hard)

    def lrs(self, w: float = 0.5) -> float:
        """Label-robust score, from 0 to 1, where the weight ``w`` is on ``ior``."""
        return label_robust(self.ior, self.hlr, w)

    def ars(self, gamma: float = 0.5) -> float | None:
        """Augmentation-robust score, from 0 to 1, where the weight ``gamma`` is on the gain with augmentation."""
        return augmentation_robust(self.augmented.gain[0], self.plain.gain[0], gamma) if self.augmented else None

    def __str__(self) -> str:
        ars = self.ars()
        tail = "" if ars is None else f"  ARS {ars:.3f}"
        return f"IOR {with_half(*self.own.gain, '+.3f')}  HLR {self.hlr:+.3f}  LRS {self.lrs():.3f}{tail}"


def label_robust(ior: float, hlr: float, w: float = 0.5) -> float:
    r""":math:`\alpha = w\,\mathrm{IOR} - (1 - w)\,\mathrm{HLR}`, mapped to [0, 1] by ``normalised``."""
    return normalised(_between(w, "w") * ior - (1 - w) * hlr)


def augmentation_robust(gain_with: float, gain_without: float, gamma: float = 0.5) -> float:
    r""":math:`\beta = \gamma\,\mathrm{IOR}_{aug} + (1 - \gamma)\,\mathrm{IOR}_{plain}`, normalised."""
    return normalised(_between(gamma, "gamma") * gain_with + (1 - gamma) * gain_without)


def normalised(alpha: float) -> float:
    r""":math:`(e^\alpha - e^{-1}) / (e - e^{-1})`: 0 at −1, 1 at 1, and 0.269 at 0, where there is no gain."""
    if not -1 - 1e-9 <= alpha <= 1 + 1e-9:
        raise AttarError(f"Differences of accuracies must lie between -1 and 1, got {alpha:g}: give them as fractions.")
    return (exp(alpha) - 1 / e) / (e - 1 / e)


def fair(
    coreset: Coreset,
    split: Split,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    draws: int = 1,
    training: Training | None = None,
    sampler: str = "ensemble",
    options: Mapping[str, Any] | None = None,
    augment: str = DSA,
) -> Fairness:
    """Train on the coreset and on random subsets, for every kind of label and setting that the scores need.

    Random subsets are balanced, have the coreset's size, and are drawn for each seed. If the coreset's labels are soft,
    theirs are soft too: predictions of a posterior of the full data, as a teacher. A learnt step size of the coreset is
    a setting, so random subsets get it as well.

    Args:
        coreset: The coreset.
        split: The data that it was made from; ``test`` is used.
        seeds: One random subset and one posterior of each kind per seed.
        draws: Networks whose predictions are averaged.
        training: The training settings; by default the coreset's own.
        sampler: The sampler.
        options: Its hyper-parameters.
        augment: The augmentation of the second setting, if the first has none.
    """
    if not seeds:
        raise AttarError("Fairness needs at least one seed: pass seeds=[0].")
    require_fitting(coreset, split)
    asked = training or coreset.recipe.training
    step = asked if coreset.step_size is None else replace(asked, lr=coreset.step_size)
    network, own = coreset.recipe.network, coreset.data

    def posterior(data: Data, seed: int, budget: Training) -> Posterior:
        return infer(data, sampler, draws=draws, seed=seed, network=network, training=budget, options=options)

    def accuracies(sets: Sequence[Data], budget: Training) -> list[float]:
        pairs = zip(sets, seeds, strict=True)
        return [evaluate(posterior(data, seed, budget), split.test).accuracy for data, seed in pairs]

    teachers = [posterior(split.train, seed, asked) for seed in seeds]
    random = [random_like(own, split.train, t, seed) for t, seed in zip(teachers, seeds, strict=True)]

    def pair(augmentation: str) -> Pair:
        budget = replace(step, augment=augmentation)
        return Pair(accuracies([own] * len(seeds), budget), accuracies(random, budget))

    second = asked.augment if asked.augment != "none" else augment
    able = isinstance(split.spec.element, Image) and second != "none"
    plain, augmented = pair("none"), pair(second) if able else None
    at_asked = plain if asked.augment == "none" or augmented is None else augmented
    soft = own.y.ndim == 2
    hard = accuracies([replace(own, y=own.hard)] * len(seeds), step) if soft else at_asked.coreset
    full = [evaluate(teacher, split.test).accuracy for teacher in teachers]
    return Fairness(at_asked, hard, full, plain, augmented)


def random_like(data: Data, train: Data, teacher: Posterior, seed: int) -> Data:
    """A random subset of as many examples as ``data`` has, with labels of the same kind (soft ones by ``teacher``)."""
    gen = evaluation(seed, train.x.device, "random subset")
    each, rest = divmod(len(data), train.classes)
    drawn = train.sample(len(data), gen) if rest else train.sample_per_class(each, gen)
    return replace(drawn, y=teacher.predict(drawn.x).to(drawn.x.dtype)) if data.y.ndim == 2 else drawn


def _between(share: float, name: str) -> float:
    if not 0 <= share <= 1:
        raise AttarError(f"{name} must lie between 0 and 1, got {share}.")
    return share
