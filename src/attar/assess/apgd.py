"""Attacks by projected gradient ascent inside an l-infinity ball of images in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Model = Callable[[Tensor], Tensor]  #: from pixels to logits, or to log-probabilities
Loss = Callable[[Tensor, Tensor], Tensor]  #: of logits and labels, one number per example; attacks maximise it


class Ball(NamedTuple):
    """The l-infinity ball of radius epsilon around clean images, within [0, 1]."""

    low: Tensor
    high: Tensor
    epsilon: float

    @staticmethod
    def around(x: Tensor, epsilon: float) -> Ball:
        return Ball((x - epsilon).clamp(0, 1), (x + epsilon).clamp(0, 1), epsilon)

    def project(self, x: Tensor) -> Tensor:
        return x.clamp(self.low, self.high)


def ce(logits: Tensor, y: Tensor) -> Tensor:
    r"""Cross-entropy, :math:`-\log p_y`."""
    return F.cross_entropy(logits, y, reduction="none")


def margin(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`\max_{i \ne y} z_i - z_y`, positive where the class is wrong."""
    right = F.one_hot(y, logits.shape[1]).bool()
    return logits.masked_fill(right, -torch.inf).amax(1) - logits[right]


def dlr(logits: Tensor, y: Tensor) -> Tensor:
    r"""Difference of logits ratio, :math:`(\max_{i \ne y} z_i - z_y) / (z_{(1)} - z_{(3)})`, for three classes or more.

    It is invariant to the scale of the logits, so overconfidence does not hide the gradient.
    """
    first, _, third = logits.topk(3, 1).values.unbind(1)
    return margin(logits, y) / (first - third + 1e-12)


ROUND = 100  #: steps of APGD before it restarts from the best point
CHECKPOINTS = (22, 41, 57, 70, 80, 87, 93, 99)  #: intervals that shrink by three steps, down to six
LOSSES: dict[str, Loss] = {"ce": ce, "dlr": dlr, "margin": margin}


class Look(NamedTuple):
    """The model at some point: loss, gradient, and whether the predicted class is wrong."""

    loss: Tensor
    gradient: Tensor
    broken: Tensor

    @staticmethod
    def at(x: Tensor, y: Tensor, model: Model, loss: Loss) -> Look:
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            logits = model(point)
            value = loss(logits, y)
            (gradient,) = torch.autograd.grad(value.sum(), point)
        return Look(value.detach(), gradient, logits.detach().argmax(1) != y)


def pgd(model: Model, start: Tensor, y: Tensor, ball: Ball, loss: Loss, steps: int) -> Tensor:
    r"""Steps of a quarter of the ball's radius along the sign of the gradient.

    .. math:: x_{k+1} = \Pi\big(x_k + \tfrac\epsilon4 \,\mathrm{sign} \nabla L(x_k)\big)

    Madry et al., Towards Deep Learning Models Resistant to Adversarial Attacks, ICLR 2018. Returns the first points
    found whose class is wrong; more steps can only find more.
    """
    x, seen = start, Look.at(start, y, model, loss)
    found, broken = x, seen.broken
    for _ in range(steps):
        if bool(broken.all()):
            break
        x = ball.project(x + ball.epsilon / 4 * seen.gradient.sign())
        seen = Look.at(x, y, model, loss)
        found, broken = _where(seen.broken & ~broken, x, found), broken | seen.broken
    return found


def apgd(model: Model, start: Tensor, y: Tensor, ball: Ball, loss: Loss, steps: int) -> Tensor:
    r"""Auto-PGD: momentum, and a step size that is halved when progress stalls.

    .. math::
        z_{k+1} &= \Pi(x_k + \eta \,\mathrm{sign} \nabla L(x_k)) \\
        x_{k+1} &= \Pi(x_k + \tfrac34 (z_{k+1} - x_k) + \tfrac14 (x_k - x_{k-1}))

    with :math:`\eta = 2 \epsilon` at first. At checkpoints it is halved, and the search continues from the best point,
    for every image whose loss rose in fewer than three quarters of the steps since the last checkpoint, or whose step
    size and best loss both did not change. Returns the first points found whose class is wrong.

    Croce & Hein, Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free Attacks,
    ICML 2020. There, checkpoints are shares of the number of steps. Here they are always those for 100 steps, and every
    further 100 steps restart from the best point. So a longer search begins with the shorter ones, and more steps never
    break fewer images. At 100 steps the two are the same.
    """
    widest = start.new_full((len(start), *[1] * (start.ndim - 1)), 2 * ball.epsilon)
    step, x, before, seen = widest, start, start, Look.at(start, y, model, loss)
    best, peak = x, seen
    found, broken = x, seen.broken
    rises, since, best_then, halved = torch.zeros_like(seen.loss), 0, seen.loss, torch.ones_like(seen.broken)
    for k in range(1, steps + 1):
        if bool(broken.all()):
            break
        ahead = ball.project(x + step * seen.gradient.sign())
        if k % ROUND != 1:
            ahead = ball.project(x + 0.75 * (ahead - x) + 0.25 * (x - before))
        before, last, x = x, seen, ahead
        seen = Look.at(x, y, model, loss)
        rises, since = rises + (seen.loss > last.loss), since + 1
        better = seen.loss > peak.loss
        best, peak = _where(better, x, best), _merge(better, seen, peak)
        found, broken = _where(seen.broken & ~broken, x, found), broken | seen.broken
        if k % ROUND in CHECKPOINTS:
            halve = (rises < 0.75 * since) | (~halved & (peak.loss <= best_then))
            step = _where(halve, step / 2, step)
            x, seen = _where(halve, best, x), _merge(halve, peak, seen)
            rises, since, best_then, halved = torch.zeros_like(rises), 0, peak.loss, halve
        elif k % ROUND == 0:
            step, x, seen = widest, best, peak
            rises, since, best_then, halved = torch.zeros_like(rises), 0, peak.loss, torch.ones_like(halved)
    return found


def _where(mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(mask.view(-1, *[1] * (a.ndim - 1)), a, b)


def _merge(mask: Tensor, a: Look, b: Look) -> Look:
    return Look(*(_where(mask, ours, theirs) for ours, theirs in zip(a, b, strict=True)))
