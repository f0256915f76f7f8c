"""Score a posterior on held-out data."""

from __future__ import annotations

from attar.data import Data
from attar.errors import AttarError
from attar.evaluate.metrics import Scores, score
from attar.infer.contract import Posterior


def evaluate(posterior: Posterior, data: Data) -> Scores:
    """Accuracy, NLL, ECE and Brier score of the averaged prediction on ``data``.

    Data under another scaling than the posterior's is brought to the posterior's first.
    """
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
    probabilities = posterior.predict(data.rescaled(posterior.domain.scaling).x)
    return score(probabilities, data.hard.cpu())
