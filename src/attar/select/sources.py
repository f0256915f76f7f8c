"""Views from the user's own trained module, or from embeddings of any model."""

from __future__ import annotations

import copy
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from attar.core.errors import AttarError
from attar.data import Data, Dataset
from attar.nets import Network, network
from attar.nets.train import Training
from attar.select import keep
from attar.select.contract import Array
from attar.select.scoring import Look
from attar.select.view import View


def from_module(
    module: nn.Module,
    data: Data,
    chunk: int = 1024,
    *,
    validation: Data | View | None = None,
    cache: str | Path | None = None,
) -> View:
    """The view of a trained module in evaluation mode; the module itself is not changed."""
    still = copy.deepcopy(module).eval().requires_grad_()
    net = Network(type(module).__name__, data.shape, data.classes, lambda: copy.deepcopy(still))
    gen = torch.Generator(data.x.device).manual_seed(0)
    theta = net.init(gen)  # the module's own parameters, not random ones
    return View(data, net, Training(), gen.manual_seed(0), chunk, validation=validation, theta=theta, cache=cache)


def from_embeddings(
    features: Array,
    labels: Array | None = None,
    logits: Array | None = None,
    *,
    gen: Generator | None = None,
    training: Training | None = None,
    chunk: int = 1024,
    validation: View | None = None,
) -> Embedded:
    """The view of embeddings, with or without labels and logits.

    If logits are missing and a method needs them, softmax regression is trained on the features; it also scores the
    validation embeddings.
    """
    x, scores = _floats(features, "features"), None if logits is None else _floats(logits, "logits")
    y = torch.zeros(len(x), dtype=torch.int64) if labels is None else _labels(labels)
    if len(y) != len(x) or (scores is not None and len(scores) != len(x)):
        raise AttarError("Features, labels and logits must have one row per example: give equally many of each.")
    classes = int(y.max()) + 1 if scores is None else scores.shape[1]
    if int(y.max()) >= classes:
        raise AttarError(f"Label {int(y.max())} has no logit: give at least {int(y.max()) + 1} logits per example.")
    seen = Embedded(
        Data(x, y),
        network("linear", (x.shape[1],), max(classes, 2)),
        training or Training(),
        gen or torch.Generator().manual_seed(0),
        chunk,
        validation=validation,
    )
    seen.labelled, seen.scores = labels is not None, scores
    return seen


class Embedded(View):
    """Given features; the logits are given, or computed by softmax regression trained on the features."""

    data: Data
    scores: Tensor | None = None

    @cached_property
    def features(self) -> Tensor:
        return keep.warn_if_constant(keep.finite(self.data.x, "features"))

    @cached_property
    def theta(self) -> Tensor:
        _ = self.y, self.features  # raises if labels are missing or features are NaN
        return super().theta

    @cached_property
    def logits(self) -> Tensor:
        if self.scores is not None:
            return keep.finite(self.scores, "logits")
        head = self.network.head(self.theta)
        return torch.cat([linear(rows, *head) for rows in self.features.split(self.chunk)])

    def alone(self, indices: Tensor, held: Dataset | View | None) -> Embedded:
        made = cast(Embedded, super().alone(indices, held))
        made.scores = None if self.scores is None else self.scores[indices]
        return made

    def _in(self, look: Look) -> Embedded:
        made = cast(Embedded, super()._in(look))
        made.scores = self.scores
        return made

    @cached_property
    def validation(self) -> View:
        held = super().validation
        if not isinstance(held, Embedded) or held.scores is not None:
            return held
        if self.scores is not None:
            raise AttarError("Logits are given for the examples but not for the validation set: give both or none.")
        if int(held.y.max()) >= self.network.classes:
            raise AttarError("The validation set has a class that the examples lack: leave it out.")
        return self._beside(held.data)


def _floats(array: Array, what: str) -> Tensor:
    tensor = array if isinstance(array, Tensor) else _wrapped(array)
    if tensor.ndim != 2 or not tensor.numel():
        raise AttarError(f"The {what} have shape {tuple(tensor.shape)}: give one row of numbers per example.")
    return tensor if tensor.dtype == torch.float32 else tensor.to(torch.float32)


def _labels(array: Array) -> Tensor:
    tensor = array if isinstance(array, Tensor) else _wrapped(array)
    if tensor.ndim != 1 or tensor.is_floating_point() or (len(tensor) and int(tensor.min()) < 0):
        raise AttarError("Labels must be one whole number from 0 per example: number the classes first.")
    return tensor.long()


def _wrapped(array: NDArray[Any]) -> Tensor:
    with warnings.catch_warnings():  # about read-only arrays, such as memory maps; nothing here writes
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(array))
