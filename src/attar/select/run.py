"""Selection in one call, from embeddings, arrays, data sets or any view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Generator, nn

from attar.core import registry
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.data import Data, Dataset, Mapped, Split
from attar.data.load import Source, loaded
from attar.nets import Network, default
from attar.nets import network as build_network
from attar.nets.train import Training
from attar.select import budget, keep
from attar.select.adaptive import Adaptive
from attar.select.balance import PerClass
from attar.select.contract import Array, Selection, Selector
from attar.select.mapreduce import MapReduce
from attar.select.sources import from_embeddings
from attar.select.view import View


def select(
    data: Array | Source | Dataset | Split | View,
    method: str | Selector,
    *,
    labels: Array | None = None,
    logits: Array | None = None,
    network: str | Network | Callable[[], nn.Module] | None = None,
    training: Training | None = None,
    size: int | None = None,
    fraction: float | None = None,
    per_class: int | None = None,
    balanced: bool | None = None,
    part: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
) -> Selection:
    """Select from embeddings, from a data set, or from any view.

    Args:
        data: Embeddings from any model, one row an example; or anything that ``attar.load`` takes; or a ``Split``, of
            which ``train`` is selected from, and ``val`` looked at by methods named -val; or any ``Dataset``, such as
            one that stays in its file (``attar.data.Mapped``); or a ``View``.
        method: A registered name, or a method's own object with its hyper-parameters set.
        labels: The class of every embedding, for methods that need it and for class balance.
        logits: The outputs of a last layer on embeddings; else softmax regression is trained if they are needed.
        network: What looks at a data set: a name, a ``Network`` or a module factory; by shape if not set.
        training: How that network is trained, or softmax regression on embeddings.
        size: Picks in all; or ``fraction`` of the examples; or ``per_class``.
        fraction: Picks in all, as a share of the examples.
        per_class: Picks of every class.
        balanced: Share ``size`` or ``fraction`` among classes equally (True), in proportion (False), or not at all.
        part: Select from parts of this many examples first (see ``MapReduce``), for very many examples.
        seed: Fixes every random choice.
        options: Hyper-parameters, where ``method`` is a name.
        device: Where to compute; where the data is if not set.

    Returns:
        Positions of the picks, with scores, the user's own rows and, for methods that weigh, weights.
    """
    given = _given(data, device)
    gen, scoring = keep.streams(seed, _device(given))
    if isinstance(method, str):
        chosen = cast(Selector, registry.build(method, options or {}, "select"))
    elif options:
        raise AttarError("Give options to the method's own constructor, or name the method and pass options.")
    else:
        chosen = method
    if isinstance(chosen, PerClass):
        raise AttarError("Give what PerClass wraps, and ask for balance by per_class=... or balanced=True.")
    if isinstance(chosen, Adaptive) and (per_class is not None or balanced is not None):
        raise AttarError("Adaptive trains on all classes at once: give it PerClass(...) and call its own select.")
    view = _view(given, labels, logits, network, training, scoring)
    if chosen.needs.labels:
        _ = view.y  # raises if labels are missing
    picked = _picked(
        chosen if part is None else MapReduce(chosen, part), view, gen, size, fraction, per_class, balanced
    )
    return picked._replace(rows=_rows(view, picked.indices))


def _picked(
    chosen: Selector,
    view: View,
    gen: Generator,
    size: int | None,
    fraction: float | None,
    per_class: int | None,
    balanced: bool | None,
) -> Selection:
    if per_class is not None:
        if size is not None or fraction is not None or balanced is not None:
            raise AttarError("Give the budget once: as size, as fraction or as per_class, which is balanced by itself.")
        if per_class < 1:
            raise AttarError(f"per_class must be at least 1, got {per_class}.")
        return PerClass(chosen).select(view, per_class, gen)
    wanted = budget.total(len(view), size, fraction)
    if balanced is None:
        return chosen.select(view, wanted, gen)
    counts = torch.bincount(view.hard, minlength=len(view.data.spec.target))
    return PerClass(chosen).share(view, budget.share(counts, wanted, balanced=balanced), gen)


def _rows(view: View, indices: torch.Tensor) -> list[int] | list[str]:
    """What the user calls the picks: rows of the file or array, or positions where the data has no rows of its own."""
    return view.data.take(indices).names or indices.tolist()


def _given(data: Any, device: torch.device | str | None) -> Any:
    """Embeddings, a data set or a view; whatever else there is goes through ``load``."""
    known = isinstance(data, torch.Tensor | np.ndarray | Data | Split | View | Mapped)
    given = data if known else loaded(data)
    if device is None:
        return given
    if isinstance(given, View | Mapped):
        raise AttarError("A view or a mapped file has its own device: leave out device.")
    place = device_of(device)
    return given.to(place) if not isinstance(given, np.ndarray) else torch.from_numpy(given).to(place)


def _view(
    data: Any,
    labels: Array | None,
    logits: Array | None,
    network: str | Network | Callable[[], nn.Module] | None,
    training: Training | None,
    gen: Generator,
) -> View:
    told = labels is not None or logits is not None
    if isinstance(data, View):
        if told or training is not None or network is not None:
            raise AttarError("A view has its own labels, logits, network and training: leave them out.")
        return data
    if isinstance(data, Data | Split | Mapped):
        if told:
            raise AttarError("A data set has its own labels, and its network gives the logits: leave them out.")
        train, held = (data.train, data.val) if isinstance(data, Split) else (data, None)
        net = build_network(network or default(train.spec), train.spec)
        return View(train, net, training or Training(), gen, validation=held)
    if network is not None:
        raise AttarError("Embeddings are looked at as they are: leave out the network.")
    return from_embeddings(data, labels, logits, gen=gen, training=training)


def _device(data: Any) -> torch.device:
    inner = data.train if isinstance(data, Split) else data.data if isinstance(data, View) else data
    return torch.device("cpu") if isinstance(inner, np.ndarray) else inner.device
