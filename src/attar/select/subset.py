"""Selection in one call, from arrays or tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch

from attar import registry
from attar.errors import AttarError
from attar.nets.train import Training
from attar.select import budget
from attar.select.balance import PerClass
from attar.select.contract import Selection, Selector
from attar.select.mapreduce import MapReduce
from attar.select.sources import Array, from_embeddings
from attar.select.view import View


def subset(
    features: Array | View,
    method: str | Selector,
    *,
    labels: Array | None = None,
    logits: Array | None = None,
    size: int | None = None,
    fraction: float | None = None,
    per_class: int | None = None,
    balanced: bool | None = None,
    part: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    training: Training | None = None,
) -> Selection:
    """Select from embeddings, or from any view.

    Args:
        features: One row an example, from any model; or a ``View``, and then no labels, logits or training.
        method: A registered name, or a method's own object with its hyper-parameters set.
        labels: The class of every example, for methods that need it and for class balance.
        logits: The outputs of a last layer on these features; else softmax regression is trained if they are needed.
        size: Picks in all; or ``fraction`` of the examples; or ``per_class``.
        fraction: Picks in all, as a share of the examples.
        per_class: Picks of every class.
        balanced: Share ``size`` or ``fraction`` among classes equally (True), in proportion (False), or not at all.
        part: Select from parts of this many examples first (see ``MapReduce``), for very many examples.
        seed: Fixes every random choice.
        options: Hyper-parameters, where ``method`` is a name.
        training: How softmax regression is trained.

    Returns:
        Places of the picks, with scores and, for methods that weigh, weights.
    """
    gen = torch.Generator().manual_seed(seed)
    if isinstance(features, View):
        if labels is not None or logits is not None or training is not None:
            raise AttarError("A view has its own labels, logits and training: leave them out.")
        view = features
    else:
        view = from_embeddings(features, labels, logits, gen=gen, training=training)
    chosen: Selector = (
        cast(Selector, registry.build(method, options or {}, "select")) if isinstance(method, str) else method
    )
    chosen = chosen if part is None else MapReduce(chosen, part)
    if per_class is not None:
        if size is not None or fraction is not None or balanced is not None:
            raise AttarError("Give the budget once: as size, as fraction or as per_class.")
        if per_class < 1:
            raise AttarError(f"per_class must be at least 1, got {per_class}.")
        return PerClass(chosen).select(view, per_class, gen)
    wanted = budget.total(len(view), size, fraction)
    if balanced is None:
        return chosen.select(view, wanted, gen)
    _ = view.y  # so that missing labels are heard of
    counts = torch.bincount(view.data.hard, minlength=view.data.classes)
    return PerClass(chosen).share(view, budget.share(counts, wanted, balanced=balanced), gen)
