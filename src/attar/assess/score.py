"""Score a posterior on held-out data."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from attar.assess.metrics import Scores, score
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.data.load import Source, loaded
from attar.infer.contract import Posterior


def evaluate(posterior: Posterior, data: Source | Data | Split, *, device: torch.device | str | None = None) -> Scores:
    """Accuracy, NLL, ECE and Brier score of the posterior predictive distribution.

    Args:
        posterior: What ``attar.infer`` gave.
        data: The test examples; or a ``Split``, or anything that ``attar.load`` takes, whose test set is used.
        device: Where to compute; where the data is if not set.
    """
    given = loaded(data)
    examples = given.test if isinstance(given, Split) else given
    if device is not None:
        place = device_of(device)
        examples, posterior = examples.to(place), posterior.to(place)
    return _scores(posterior, examples)


def _scores(posterior: Posterior, data: Data) -> Scores:
    network, ours, theirs = posterior.network, posterior.spec.target, data.spec.target
    if data.shape != network.shape or data.classes != network.classes:
        raise AttarError(
            f"The posterior is for {network.classes} classes of shape {network.shape}, the data has {data.classes} of "
            f"shape {data.shape}: evaluate it on the data set that it was made from."
        )
    if not ours.matches(theirs):
        raise AttarError(
            f"The posterior's classes are {', '.join(ours.names)}, the data's {', '.join(theirs.names)}: "
            "evaluate it on the data set that it was made from."
        )
    return score(predictions(posterior, data), data.hard.cpu())


def made_from(coreset: Coreset, split: Split) -> None:
    """Refuse a coreset of another shape, and warn where it was made from other training data than this split's."""
    if coreset.data.shape != split.shape or coreset.data.classes != split.classes:
        raise AttarError(
            f"The coreset has {coreset.data.classes} classes of shape {coreset.data.shape}, the data {split.classes} "
            f"of shape {split.shape}: judge it on the data it was made from."
        )
    if coreset.recipe.fingerprint != split.train.fingerprint:
        warnings.warn(
            f"This coreset was made from other training data than {split.spec.name} as it is loaded here (another "
            "scaling, seed or version): validation examples may be in it; load the data as it was.",
            stacklevel=3,
        )


def predictions(posterior: Posterior, data: Data) -> Tensor:
    """Averaged class probabilities of data of any classes, brought to the posterior's scaling first; on the CPU."""
    if data.shape != posterior.network.shape:
        raise AttarError(
            f"The posterior is for examples of shape {posterior.network.shape}, the data has {data.shape}: "
            "choose data of the same shape."
        )
    return posterior.predict(data.transformed(posterior.spec.transform).x).cpu()
