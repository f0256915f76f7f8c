"""Score a posterior on held-out data."""

from __future__ import annotations

from torch import Tensor

from attar.data import Data
from attar.errors import AttarError
from attar.evaluate.metrics import Scores, score
from attar.infer.contract import Posterior


def evaluate(posterior: Posterior, data: Data) -> Scores:
    """Accuracy, NLL, ECE and Brier score of the averaged prediction on ``data``."""
    network, names = posterior.network, posterior.domain.classes
    if data.shape != network.shape or data.classes != network.classes:
        raise AttarError(
            f"The posterior is for {network.classes} classes of shape {network.shape}, the data has {data.classes} of "
            f"shape {data.shape}: evaluate it on the data set that it was made from."
        )
    if names and data.domain.classes and names != data.domain.classes:
        raise AttarError(
            f"The posterior's classes are {', '.join(names)}, the data's {', '.join(data.domain.classes)}: "
            "evaluate it on the data set that it was made from."
        )
    return score(predictions(posterior, data), data.hard.cpu())


def predictions(posterior: Posterior, data: Data) -> Tensor:
    """Averaged class probabilities of data of any classes, brought to the posterior's scaling first."""
    if data.shape != posterior.network.shape:
        raise AttarError(
            f"The posterior is for examples of shape {posterior.network.shape}, the data has {data.shape}: "
            "choose data of the same shape."
        )
    return posterior.predict(data.rescaled(posterior.domain.scaling).x)
