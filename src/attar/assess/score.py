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
        posterior: What ``attar.infer`` returned.
        data: The test examples; or a ``Split`` or anything that ``attar.load`` takes, of which the test set is used.
        device: Where to compute; by default the data's device.
    """
    if not hasattr(posterior, "predict"):
        raise AttarError(f"{type(posterior).__name__} is no posterior: infer one first, with attar.infer(coreset).")
    given = loaded(data)
    examples = given.test if isinstance(given, Split) else given
    if device is not None:
        place = device_of(device)
        examples, posterior = examples.to(place), posterior.to(place)
    return score(probabilities(posterior, examples), examples.hard.cpu())


def probabilities(posterior: Posterior, data: Data) -> Tensor:
    """Averaged class probabilities ``(n, classes)`` of examples whose shape and classes are those of the posterior."""
    network, ours, theirs = posterior.network, posterior.spec.target, data.spec.target
    if data.shape != network.shape or data.classes != network.classes:
        raise AttarError(
            f"The posterior is for {network.classes} classes and shape {network.shape}, but the data has "
            f"{data.classes} and shape {data.shape}: evaluate it on the data set that it was made from."
        )
    if not ours.matches(theirs):
        raise AttarError(
            f"The posterior's classes are {', '.join(ours.names)}, but the data's are {', '.join(theirs.names)}: "
            "evaluate it on the data set that it was made from."
        )
    return predictions(posterior, data)


def require_fitting(coreset: Coreset, split: Split) -> None:
    """Refuse a coreset of another shape or number of classes."""
    if coreset.data.shape != split.shape or coreset.data.classes != split.classes:
        raise AttarError(
            f"The coreset has {coreset.data.classes} classes and shape {coreset.data.shape}, but the data "
            f"{split.classes} and shape {split.shape}: evaluate it on the data that it was made from."
        )


def made_from(coreset: Coreset, split: Split) -> None:
    """Refuse a coreset that does not fit; warn if it was made from other training data than this split's."""
    require_fitting(coreset, split)
    if coreset.recipe.fingerprint != split.train.fingerprint:
        warnings.warn(
            f"This coreset was made from other training data than {split.spec.name} as loaded here (another scaling, "
            "seed or version): it may contain validation examples; load the data in the same way.",
            stacklevel=3,
        )


def most_frequent(data: Data) -> int:
    """The class with the most examples, the first of several: the answer of one who knows nothing else."""
    return int(torch.bincount(data.hard.cpu(), minlength=data.classes).argmax())


def predictions(posterior: Posterior, data: Data) -> Tensor:
    """Averaged class probabilities on the CPU, for data of any classes; applies the posterior's scaling first."""
    if data.shape != posterior.network.shape:
        raise AttarError(
            f"The posterior is for examples of shape {posterior.network.shape}, but the data has {data.shape}: "
            "use data of the same shape."
        )
    return posterior.predict(data.transformed(posterior.spec.transform).x).cpu()
