"""Adversarial robustness of the posterior predictive."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from math import log

import torch
from pydantic.dataclasses import dataclass
from torch import Generator, Tensor

from attar.assess.apgd import LOSSES, Ball, Model, apgd, pgd
from attar.assess.corruption.dice import Dice, seeds
from attar.assess.corruption.table import pixels
from attar.assess.score import evaluate
from attar.core.errors import AttarError, require, unknown
from attar.data import Data
from attar.infer.contract import Draws

#: Attacks by name, as their stages: each stage attacks the images that withstood the previous ones.
ATTACKS = {
    "pgd": ("pgd-ce",),
    "apgd-ce": ("apgd-ce",),
    "apgd-dlr": ("apgd-dlr",),
    "apgd": ("apgd-ce", "apgd-dlr"),
    "autoattack": ("autoattack",),
    "standard": ("apgd-ce", "apgd-dlr", "autoattack"),
}
WALKS = {"pgd": pgd, "apgd": apgd}
MARGIN = "the margin between the two classes takes the place of DLR"


@dataclass(frozen=True)
class Attacked:
    """Accuracy before and after an attack."""

    name: str
    epsilon: float
    clean: float
    robust: float
    steps: int | None  #: of PGD or APGD; None if there is only AutoAttack, which has its own
    restarts: int | None
    n: int
    note: str = ""  #: what was done differently


def robust_accuracy(
    posterior: Draws,
    data: Data,
    *,
    attack: str = "apgd",
    epsilon: float = 8 / 255,
    steps: int = 100,
    restarts: int = 1,
    seed: int = 0,
    limit: int | None = None,
) -> Attacked:
    """The share of images that are classified correctly before and under an attack.

    Args:
        posterior: The attack is on the average over its draws.
        data: Images with their labels.
        attack: ``apgd`` (an image is broken if ``apgd-ce`` or ``apgd-dlr`` breaks it), either of them alone, ``pgd``,
            ``autoattack`` (the standard version, by its own
            package) or ``standard`` (all but ``pgd``).
        epsilon: Largest change of every pixel, on a scale from 0 (black) to 1 (white).
        steps: Gradient steps; AutoAttack has its own.
        restarts: Random starts; AutoAttack has its own.
        seed: Random seed.
        limit: Images to use at most, drawn at random.
    """
    gen = torch.Generator().manual_seed(seed)
    data = data if limit is None else data.sample(limit, gen)
    x, scaling = pixels(data), posterior.spec.transform
    seen = replace(data, x=scaling.apply(x), spec=replace(data.spec, transform=scaling))
    clean = evaluate(posterior, seen).accuracy
    moved = adversarial(posterior, data, attack, epsilon=epsilon, steps=steps, restarts=restarts, gen=gen)
    robust = evaluate(posterior, replace(seen, x=scaling.apply(moved))).accuracy
    walked = ATTACKS[attack] != ("autoattack",)
    note = MARGIN if "apgd-dlr" in ATTACKS[attack] and data.classes < 3 else ""
    return Attacked(
        attack, epsilon, clean, robust, steps if walked else None, restarts if walked else None, len(data), note
    )


def adversarial(
    posterior: Draws,
    data: Data,
    name: str = "apgd",
    *,
    epsilon: float = 8 / 255,
    steps: int = 100,
    restarts: int = 1,
    gen: Generator,
) -> Tensor:
    """Adversarial images, as unscaled pixels; arguments as in ``robust_accuracy``.

    All are in [0, 1] and within epsilon of the clean ones. Images that were misclassified before, and those that
    withstood the attack, are returned unchanged.
    """
    if name not in ATTACKS:
        raise unknown("attack", name, ATTACKS)
    if not 0 <= epsilon <= 1:
        raise AttarError(
            f"epsilon is the largest change of a pixel between 0 and 1 and must lie in [0, 1], got {epsilon}."
        )
    if steps < 1 or restarts < 1:
        raise AttarError(f"An attack needs at least one step and one restart, got {steps} and {restarts}.")
    siege = Siege(posterior, data, epsilon, gen)
    for stage in ATTACKS[name] if epsilon > 0 else ():
        if stage == "autoattack":
            siege.autoattack()
        else:
            walk, loss = stage.split("-")
            siege.walk(WALKS[walk], loss, steps, restarts)
    return siege.moved


def averaged(posterior: Draws) -> Model:
    r"""The log of the averaged prediction as a differentiable function of the pixels.

    .. math:: \log p(y \mid x) = \log \tfrac1S \sum_s \mathrm{softmax}_y f_{\theta_s}(\mathrm{scale}(x))
    """

    def model(x: Tensor) -> Tensor:
        scaled = posterior.spec.transform.apply(x.to(posterior.theta.dtype))
        each = torch.stack([posterior.logits(i, scaled).log_softmax(1) for i in range(len(posterior.theta))])
        return each.logsumexp(0) - log(len(each))

    return model


class Siege:
    """The state of an attack: which images still withstand it, and the adversarial images for the others.

    Every image has its own seed. So whether an image is broken does not depend on other images or stages, and an attack
    with more stages or restarts breaks at least the same ones. Only AutoAttack has one seed for all images.
    """

    def __init__(self, posterior: Draws, data: Data, epsilon: float, gen: Generator) -> None:
        self.x, self.y = pixels(data), data.hard
        self.moved = self.x.clone()
        self._posterior, self._model, self._epsilon = posterior, averaged(posterior), epsilon
        self._seeds = seeds(len(self.x) + 1, gen)
        self._standing = self._right(self.x, self.y)

    def walk(self, walk: Callable[..., Tensor], loss: str, steps: int, restarts: int) -> None:
        """Maximise the loss from random starts."""
        if loss == "dlr" and self._posterior.network.classes < 3:
            warnings.warn(f"The DLR loss needs three classes: {MARGIN}.", stacklevel=4)
            loss = "margin"
        for part in self._parts():
            x, y = self.x[part], self.y[part]
            ball, dice = Ball.around(x, self._epsilon), Dice(x, self._seeds[part.cpu()])
            for _ in range(restarts):
                if not self._standing[part].any():
                    break
                start = ball.project(x + dice.uniform(-self._epsilon, self._epsilon, *x.shape[1:]))
                self._take(part, walk(self._model, start, y, ball, LOSSES[loss], steps))

    def autoattack(self) -> None:
        """The standard version of AutoAttack, with the targets and losses possible for this number of classes."""
        package, classes = require("pyautoattack", "attack"), self._posterior.network.classes
        index = self._standing.nonzero().flatten()
        if not len(index):
            return
        x, y = self.x[index], self.y[index]
        tracer, log = sys.gettrace(), logging.getLogger("auto-attack")
        log.addFilter(_apt)
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):  # the package seeds the global generator
            try:
                seed = int(self._seeds[-1]) % 2**31
                runner = package.AutoAttack(self._model, eps=self._epsilon, seed=seed, device=x.device)
                runner.apgd_targeted.n_target_classes = runner.fab.n_target_classes = min(9, classes - 1)
                if classes < 4:  # the targeted DLR loss needs four classes, the other three
                    runner.attacks_to_run = ["apgd-ce", *(["apgd-dlr"] if classes == 3 else []), "fab-t", "square"]
                found, _ = runner.run_standard_evaluation(x, y, batch_size=self._chunk)
            finally:
                log.removeFilter(_apt)
                sys.settrace(tracer)  # the package removes it
        self._take(index, Ball.around(x, self._epsilon).project(found))

    @property
    def _chunk(self) -> int:
        """Images per batch: the gradient of the average needs the activations of every draw."""
        return max(1, self._posterior.chunk // len(self._posterior.theta))

    def _parts(self) -> list[Tensor]:
        return [part for part in self._standing.nonzero().flatten().split(self._chunk) if len(part)]

    def _right(self, x: Tensor, y: Tensor) -> Tensor:
        return self._posterior.predict(self._posterior.spec.transform.apply(x)).argmax(1) == y

    def _take(self, index: Tensor, found: Tensor) -> None:
        """Keep the points that the posterior misclassifies, for images that withstood so far."""
        won = self._standing[index] & ~self._right(found, self.y[index])
        self.moved[index[won]] = found[won]
        self._standing[index[won]] = False


def _apt(record: logging.LogRecord) -> bool:
    """Drop the package's warning about the targeted DLR loss, which is not used with too few classes."""
    return "targeted DLR loss" not in record.getMessage()
