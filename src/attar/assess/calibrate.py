"""Temperature scaling."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attar.assess.metrics import TINY, check
from attar.assess.score import predictions
from attar.core.errors import AttarError
from attar.data import Data, Spec
from attar.infer.contract import Posterior
from attar.nets import Network

COLDEST, HOTTEST = 0.01, 100.0  #: range of temperatures
NEWTON = 100  #: steps at most; about six are needed, and bisection alone would need sixty


@dataclass(frozen=True)
class Tempered:
    r"""A posterior with a softer (T > 1) or sharper (T < 1) predictive distribution.

    .. math:: p_T(y \mid x) \propto p(y \mid x)^{1/T}

    The order of the classes does not change, so accuracy does not either.
    """

    posterior: Posterior
    temperature: float

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise AttarError(f"A temperature must be positive and finite, got {self.temperature}.")

    @property
    def network(self) -> Network:
        return self.posterior.network

    @property
    def spec(self) -> Spec:
        return self.posterior.spec

    def sample(self, n: int, gen: Generator) -> Tensor:
        """Samples of the posterior itself: only predictions are tempered."""
        return self.posterior.sample(n, gen)

    def to(self, device: torch.device | str) -> Tempered:
        """A copy on another device."""
        return Tempered(self.posterior.to(device), self.temperature)

    def predict(self, x: Tensor) -> Tensor:
        """Tempered class probabilities ``(n, classes)``, in float64."""
        return temper(self.posterior.predict(x), self.temperature)


def calibrate(posterior: Posterior, validation: Data) -> Tempered:
    """The posterior at the temperature with the lowest NLL on validation data (Guo et al., ICML 2017).

    Use validation data, not the training or test set. NLL on it never rises.
    """
    if validation.classes != posterior.network.classes:
        raise AttarError(
            f"The posterior has {posterior.network.classes} classes, the validation data {validation.classes}: "
            "calibrate it on the data set that it was made from."
        )
    return Tempered(posterior, temperature(predictions(posterior, validation), validation.hard.cpu()))


def temper(probabilities: Tensor, temperature: float) -> Tensor:
    """Probabilities to the power 1/T, in float64, normalised again."""
    return (_log(probabilities.double()) / temperature).softmax(1)


def temperature(probabilities: Tensor, y: Tensor) -> float:
    r"""The temperature with the lowest NLL, between 0.01 and 100; 1 if all predictions are right and no minimum exists.

    .. math:: T = 1 / \arg\min_\beta \tfrac1n \sum_i \Big[\log \sum_c e^{\beta z_{ic}} - \beta z_{i y_i}\Big],
        \quad z = \log p

    which is convex in β: Newton's method, with bisection whenever a step would leave the bracket.
    """
    p = check(probabilities, y)
    if len(y.unique()) < 2:
        raise AttarError("A temperature needs validation data of at least two classes: draw it from the whole set.")
    z = _log(p)
    low, high = 1 / HOTTEST, 1 / COLDEST
    if _slopes(z, y, low)[0] >= 0:
        _warn("are no better than a guess", "the largest temperature is used")
        return HOTTEST
    if _slopes(z, y, high)[0] <= 0:
        _warn("are all right, so NLL falls without limit as T goes to 0", "the temperature is left at 1")
        return 1.0
    beta = 1.0
    for _ in range(NEWTON):
        slope, curvature = _slopes(z, y, beta)
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = beta - slope / curvature if curvature > 0 else low
        new = step if low < step < high else (low + high) / 2
        if abs(new - beta) <= 1e-14 * beta:
            break
        beta = new
    return 1 / beta if _loss(z, y, beta) < _loss(z, y, 1.0) else 1.0


def _slopes(z: Tensor, y: Tensor, beta: float) -> tuple[float, float]:
    """First and second derivative of the loss: mean of E z − z_y, and mean variance of z, under the tempered p."""
    p = (beta * z).softmax(1)
    mean = (p * z).sum(1)
    variance = (p * (z - mean[:, None]).square()).sum(1)
    return float((mean - z.gather(1, y[:, None])[:, 0]).mean()), float(variance.mean())


def _loss(z: Tensor, y: Tensor, beta: float) -> float:
    return float(torch.nn.functional.cross_entropy(beta * z, y))


def _warn(what: str, consequence: str) -> None:
    warnings.warn(f"The predictions {what}: {consequence}; calibrate on more data.", stacklevel=3)


def _log(p: Tensor) -> Tensor:
    return p.clamp_min(TINY).log()
