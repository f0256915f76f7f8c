"""Convergence diagnostics of chains, computed on predictions: different parameters can be the same function."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from math import log10
from typing import Any, NamedTuple

import torch
from torch import Tensor

PROBES = 64  #: inputs at which predictions are compared
TRACES = 4  #: probes whose traces are kept for plots
FEWEST = 4  #: points of a chain below which nothing is computed
LARGEST = 1.1  #: R-hat of chains that count as mixed
SHUFFLES = 99  #: permutations that give the R-hat expected by chance


class MixingWarning(UserWarning):
    """Warns that chains have not mixed, or that it could not be judged."""


class Chains(NamedTuple):
    """The result of running chains."""

    theta: Tensor  #: (chains, kept, p)
    potential: Tensor  #: (chains, kept), the exact U of every kept vector
    acceptance: float | None = None  #: share of accepted proposals after warm-up, where there are proposals
    stopped: str | None = None  #: why the chains ended early, if they did
    seen: Tensor | None = None  #: (chains, points, probes, classes), logits at many more points than are kept


def diagnose(chains: Chains) -> dict[str, Any]:
    """Diagnostics as plain values; warns with ``MixingWarning`` if the chains have not mixed, or cannot be judged.

    At each probe, the log-odds of the class that is most likely on average are compared between chains, at the points
    that were recorded for this, not at the few draws. The largest R-hat and the smallest effective sample size are
    reported.
    """
    said = [chains.stopped] if chains.stopped else []
    count, points = (len(chains.theta), 0) if chains.seen is None else chains.seen.shape[:2]
    if chains.seen is None or points < FEWEST or count < 2:
        said.append(_unjudged(count, points))
        worst, smallest, probability = None, None, []
    else:
        odds = log_odds(chains.seen)
        worst, smallest = float(rhat(odds).max()), float(ess(odds).min())
        probability = odds[..., :TRACES].sigmoid().permute(2, 0, 1).tolist()  # (probe, chain, point)
        if worst > LARGEST:
            said.append(_apart(chains, odds, worst))
    for warning in said[bool(chains.stopped) :]:
        warnings.warn(warning, MixingWarning, stacklevel=2)
    trace = {"potential": chains.potential.tolist(), "probability": probability}
    found = {"rhat": worst, "ess": smallest, "points": count * points, "acceptance": chains.acceptance}
    return {**found, "trace": trace, "warnings": said}


def in_words(notes: Mapping[str, Any]) -> str:
    """What must stand beside the scores of chains: temperature and R-hat; empty for other posteriors."""
    heat, worst = notes.get("temperature"), notes.get("rhat")
    if heat is None:
        return ""
    what = "posterior, T = 1" if heat == 1 else f"tempered posterior, T = {heat:g}"
    return f"{what}, R-hat {'not judged' if worst is None else f'{worst:.2f}'}"


def together(notes: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """Temperature and largest R-hat of several posteriors, None if one was not judged; empty if none is of chains."""
    chains = [each for each in notes if each.get("temperature") is not None]
    seen = [each.get("rhat") for each in chains]
    worst = None if None in seen else max((float(value) for value in seen if value is not None), default=None)
    return {"temperature": chains[0]["temperature"], "rhat": worst} if chains else {}


def rhat(series: Tensor) -> Tensor:
    r"""Split R-hat of ``(chains, kept, ...)``: the spread of all half chains relative to that within each.

    .. math:: \hat R = \sqrt{\big(\tfrac{n-1}n W + \tfrac1n B\big) / W}

    with W the mean variance within the :math:`n` draws of a half chain and B/n the variance between their means
    (Gelman et al., Bayesian Data Analysis, 3rd edition, section 11.4).
    """
    within, total, _ = _variances(_halves(series.double()))
    return torch.where(total > 0, (total / within.clamp(min=1e-12 * total)).sqrt(), 1.0)


def ess(series: Tensor) -> Tensor:
    r"""Effective sample size of ``(chains, kept, ...)``.

    .. math:: S / \tau, \quad \tau = 1 + 2 \sum_t \rho_t

    summed over Geyer's initial monotone sequence: pairs :math:`\rho_{2t} + \rho_{2t+1}` as long as they are positive,
    none counted as larger than the one before (Geyer, Practical Markov Chain Monte Carlo, 1992; over several chains as
    in Vehtari et al., Rank-Normalization, Folding, and Localization, 2021).
    """
    halves = _halves(series.double())
    within, total, centred = _variances(halves)
    chains, n = halves.shape[:2]
    spectrum = torch.fft.rfft(centred, 2 * n, dim=1)  # zero-padded, so that the correlation is not circular
    covariance = torch.fft.irfft(spectrum.abs().square(), 2 * n, dim=1)[:, :n].mean(0) / n
    rho = torch.where(total > 0, 1 - (within - covariance) / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
    rho[0] = 1
    pairs = rho[: n - n % 2].unflatten(0, (-1, 2)).sum(1)
    kept = pairs.clamp(min=0) * (pairs > 0).cumprod(0)
    tau = 2 * kept.cummin(0).values.sum(0) - 1
    size: Tensor = (
        chains * n / tau.clamp(min=1 / log10(chains * n))
    )  # anti-correlated draws count for more, up to a limit
    return size


def _by_chance(series: Tensor) -> float:
    """The largest R-hat when the same draws are assigned to chains at random; with few draws it can be large."""
    gen, draws = torch.Generator(series.device).manual_seed(0), series.flatten(0, 1)
    orders = [torch.randperm(len(draws), generator=gen, device=gen.device) for _ in range(SHUFFLES)]
    return max(float(rhat(draws[order].view_as(series)).max()) for order in orders)


def _halves(series: Tensor) -> Tensor:
    """Each chain as two halves, so that drift shows; the middle draw of an odd number is dropped."""
    half = series.shape[1] // 2
    return torch.cat([series[:, :half], series[:, series.shape[1] - half :]])


def _variances(series: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Variance within chains, variance over all, and the series with each chain's mean taken off."""
    n, means = series.shape[1], series.mean(1, keepdim=True)
    centred = series - means
    within = centred.square().sum(1).mean(0) / (n - 1)
    return within, (n - 1) / n * within + means[:, 0].var(0), centred


def log_odds(logits: Tensor) -> Tensor:
    """Log-odds ``(chains, points, probes)`` of every probe's most likely class, finite also at probability 1."""
    flat = logits.double().flatten(0, 1)
    likeliest = flat.softmax(-1).mean(0).argmax(-1, keepdim=True).expand(len(flat), -1, -1)
    others = flat.scatter(-1, likeliest, -torch.inf).logsumexp(-1)
    odds: Tensor = (flat.gather(-1, likeliest)[..., 0] - others).unflatten(0, logits.shape[:2])
    return odds


def _unjudged(chains: int, points: int) -> str:
    """Why mixing could not be judged, and the remedy."""
    if chains < 2:
        return "Whether a single chain has mixed cannot be judged: ask for at least 2 draws, and chains of 2 or more."
    return (
        f"Whether the chains have mixed was not judged, as they have only {points} transitions after warm-up: set thin "
        f"to {FEWEST} or more."
    )


def _apart(chains: Chains, odds: Tensor, worst: float) -> str:
    """What an R-hat above the largest that counts as mixed says, and the remedy."""
    if worst > _by_chance(odds):
        return f"The chains have not mixed (R-hat {worst:.2f} > {LARGEST}): {_remedy(chains, odds)}."
    return (
        f"The chains are not shown to have mixed (R-hat {worst:.2f} > {LARGEST}, which so few points can have by "
        "chance): ask for more draws, or set a larger thin."
    )


def _remedy(chains: Chains, odds: Tensor) -> str:
    """The remedy, by the likely cause."""
    half = odds.shape[1] // 2
    drift = odds[:, -half:].mean((0, 1)) - odds[:, :half].mean((0, 1))
    if chains.acceptance is not None and chains.acceptance < 0.5:
        return f"only {chains.acceptance:.0%} of the proposals were accepted, so try a smaller step or more warmup"
    if bool((drift.abs() > odds.var(1).mean(0).sqrt()).any()):
        return "predictions still drift, so try more warmup"
    return "each chain stays in its own mode, so try a larger step, a larger thin or more warmup"
