"""Selection in one call, from embeddings, arrays, data sets or any view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, nn

from attar.core import registry
from attar.core.device import device_of
from attar.core.errors import AttarError
from attar.data import Data, Dataset, Mapped, Split
from attar.data.data import require_per_class
from attar.data.load import Source, loaded
from attar.data.parts import InParts
from attar.engine import Engine, Where
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.train import Training
from attar.select import budget as shares
from attar.select import forecast, keep, large
from attar.select.adaptive import Adaptive
from attar.select.balance import PerClass
from attar.select.contract import Array, Selection, Selector
from attar.select.mapreduce import MapReduce
from attar.select.sources import from_embeddings
from attar.select.view import View


def select(
    data: Array | Source | Dataset | Split | View | InParts,
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
    budget: str | None = None,
    part: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    id: str | None = None,
    memory: int | str | None = None,
    workers: int = 1,
    engine: Engine | Where = "local",
    address: str | None = None,
    folder: str | Path | None = None,
) -> Selection:
    """Select from embeddings, from a data set, from any view, or from a table larger than memory.

    Args:
        data: Embeddings from any model, one row per example; or anything that ``attar.load`` takes; or a ``Split``:
            picks are from its ``train``, and methods named -val also use its ``val``; or a data set that stays in its
            file (``attar.data.Mapped``); or a ``View``, also of any other ``Dataset``; or a table that is read in parts
            (``attar.data.InParts``, or with ``features`` a path, a pattern such as ``folder/*.parquet``, a URL or a
            data set of Hugging Face).
        method: A registered name, or a method object.
        labels: The class of every embedding, for methods that need it and for class balance.
        logits: The outputs of a classifier on the embeddings; by default softmax regression is trained if needed.
        network: The network that scores the examples of a data set: a name, a ``Network`` or a module factory; by
            default a small one. For images or texts of a table in parts, a name or a trained module.
        training: Training of that network, or of softmax regression on embeddings.
        size: Number of picks; or give ``fraction`` or ``per_class``.
        fraction: Number of picks as a share of the examples.
        per_class: Picks per class.
        balanced: Divide ``size`` or ``fraction`` among the classes equally (True) or in proportion to their sizes
            (False); by default classes are ignored.
        budget: How classes share ``size``, ``fraction`` or ``per_class`` times their number: ``balanced``,
            ``proportional``, ``minimum`` or ``minimum=N`` (see ``attar.reduce``); in place of ``balanced``.
        part: Select from parts of this many examples first (see ``MapReduce``), for very many examples.
        seed: Random seed; the same seed gives exactly the same result.
        options: Hyper-parameters, if ``method`` is a name.
        device: Where to compute; by default the data's device.
        features: The column of a table with the examples, or several columns of numbers; the table is then read in
            parts, and only what is picked is kept in memory. The arguments below are for such tables.
        label: The column with the classes.
        id: The column with the keys; by default rows are numbered.
        memory: Bytes that each process may take, such as ``"2GB"``, which is the default; it decides how large parts
            are.
        workers: Processes that work at the same time.
        engine: ``local`` or ``ray``, with the same picks; or an ``attar.Engine``, which has the workers, too.
        address: Of a Ray cluster; by default ``$RAY_ADDRESS``, else Ray starts on this machine.
        folder: Where finished parts are kept, so that the same call goes on after a kill; by default nowhere.

    Returns:
        Positions of the picks, with scores, the user's own rows and, if the method gives them, weights.
    """
    table = large.table_of(data, features, label, id)
    if table is not None:
        if labels is not None or logits is not None or device is not None:
            raise AttarError("A table in parts has its labels in a column, and is read on the CPU: leave these out.")
        chosen = registry.resolve(method, options, "select")
        asked: dict[str, Any] = {
            "size": size,
            "fraction": fraction,
            "per_class": per_class,
            "balanced": balanced,
            "budget": budget,
            "part": part,
        }
        place = None if folder is None else Path(folder)
        made: dict[str, Any] = {
            "memory": memory,
            "network": network,
            "training": training,
            "seed": seed,
            "folder": place,
        }
        plan = large.plan(table, chosen, **asked, **made)
        return large.run(plan, place, engine=Engine.of(engine, workers, address))[0]
    return decide(
        data,
        method,
        labels=labels,
        logits=logits,
        network=network,
        training=training,
        size=size,
        fraction=fraction,
        per_class=per_class,
        balanced=balanced,
        budget=budget,
        part=part,
        seed=seed,
        options=options,
        device=device,
    ).run()


class Decided(NamedTuple):
    """A selection from examples in memory that is decided but not run."""

    view: View
    method: Selector
    sizes: int | list[int]  #: picks of all examples together, or of every class
    budget: str | None  #: how classes share them
    gen: Generator

    def run(self) -> Selection:
        """Select."""
        if isinstance(self.sizes, int):
            picked = self.method.select(self.view, self.sizes, self.gen)
        else:
            picked = PerClass(self.method).share(self.view, self.sizes, self.gen)
        self.method.checked(self.view, picked)
        if self.budget is not None:
            shares.warn_if_skewed(self.view.hard.bincount(), self.budget, up=2)
        return picked._replace(rows=_rows(self.view, picked.indices))

    def seconds(self) -> float:
        """A forecast of the running time on this machine, from rehearsals on small parts of the data."""
        return forecast.seconds(self.view, self.method, self.sizes)

    def memory(self) -> int:
        """A rough estimate of the memory in bytes, without that of the libraries."""
        return forecast.memory(self.view, self.method, self.sizes)


def decide(
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
    budget: str | None = None,
    part: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
) -> Decided:
    """Decide a selection from examples in memory without running it; the arguments are those of ``select``."""
    given = _given(data, device)
    gen, scoring = keep.streams(seed, _device(given))
    chosen = registry.resolve(method, options, "select")
    if isinstance(chosen, PerClass):
        raise AttarError("Pass the method that PerClass wraps, with per_class=... or balanced=True.")
    budget = shares.asked(balanced, budget, per_class)
    if isinstance(chosen, Adaptive) and budget is not None:
        raise AttarError("Adaptive trains on all classes at once: wrap PerClass(...) in it and call its own select.")
    view = _view(given, labels, logits, network, training, scoring)
    if chosen.needs.labels:
        _ = view.y  # raises if labels are missing
    sizes = _sizes(view, size, fraction, per_class, budget)
    return Decided(view, chosen if part is None else MapReduce(chosen, part), sizes, budget, gen)


def _sizes(
    view: View, size: int | None, fraction: float | None, per_class: int | None, budget: str | None
) -> int | list[int]:
    """Picks of all examples together, or of every class."""
    classes = len(view.data.spec.target)
    if per_class is not None:
        if size is not None or fraction is not None:
            raise AttarError("Give the budget as one of size, fraction and per_class.")
        if per_class < 1:
            raise AttarError(f"per_class must be at least 1, got {per_class}.")
        if budget == shares.BALANCED:
            require_per_class(view.hard, view.data.spec.target, per_class)
            return [per_class] * classes
        size = per_class * classes
    wanted = shares.total(len(view), size, fraction)
    if budget is None:
        return wanted
    return shares.divide(torch.bincount(view.hard, minlength=classes), wanted, budget)


def _rows(view: View, indices: torch.Tensor) -> list[int] | list[str]:
    """The user's rows of the picks, or their positions if the data has no rows."""
    return view.data.take(indices).names or indices.tolist()


def _given(data: Any, device: torch.device | str | None) -> Any:
    """Embeddings, a data set or a view as they are; anything else is loaded."""
    known = isinstance(data, torch.Tensor | np.ndarray | Data | Split | View | Mapped)
    given = data if known else loaded(data)
    if device is None:
        return given
    if isinstance(given, View | Mapped):
        raise AttarError("A View or Mapped data set has its own device: leave out device.")
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
            raise AttarError("A View has its own labels, logits, network and training: leave them out.")
        return data
    if isinstance(data, Data | Split | Mapped):
        if told:
            raise AttarError("A data set has its own labels, and its network gives the logits: leave them out.")
        train, held = (data.train, data.val) if isinstance(data, Split) else (data, None)
        net = build_network(network, train.spec)
        return View(train, net, training or Training(), gen, validation=held)
    if network is not None:
        raise AttarError("Embeddings need no network: leave out the network.")
    return from_embeddings(data, labels, logits, gen=gen, training=training)


def _device(data: Any) -> torch.device:
    inner = data.train if isinstance(data, Split) else data.data if isinstance(data, View) else data
    return torch.device("cpu") if isinstance(inner, np.ndarray) else inner.device
