"""A view of the data: features, predictions and gradients of a network, computed once and only if needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Generator, Tensor
from torch.nn.functional import linear

from attar.core.errors import AttarError
from attar.data import Data, Dataset
from attar.nets import Network
from attar.nets.passes import part_size
from attar.nets.train import Trainer, Training, train
from attar.select import keep
from attar.select.scoring import Look, of_one_class, scoring_network, warn_if_separate
from attar.select.signals import Signals


class View(Signals):
    """Features, predictions, gradients and curvature of every example under a scoring network.

    The network is trained briefly first, unless ``theta`` is given; ``seen`` gives the view of a method that stops that
    training earlier, or takes other gradients. See ``attar.select.sources`` for views of a trained module and of
    embeddings.

    Args:
        data: The examples to choose from; they need not be in memory.
        network: The scoring network.
        training: Its training on these examples; always with cross-entropy, whose gradients and curvature methods use.
        gen: Random generator of that training; its state is not changed.
        chunk: Examples per forward pass at most; fewer for a large network on the CPU.
        validation: Held-out examples, for methods named -val.
        theta: Parameters of the network, if it is already trained.
        cache: A folder for theta and features, keyed by content, so that other runs find them.
        look: How far the network is trained, which gradients are taken, and in which batches examples pass.
    """

    data: Dataset
    labelled = True
    counts: Tensor | None = None  #: how many examples each one stands for, if not one
    _full: View | None = None  # the view whose examples its networks are trained on, if not its own

    def __init__(
        self,
        data: Dataset,
        network: Network,
        training: Training,
        gen: Generator,
        chunk: int = 1024,
        *,
        validation: Dataset | View | None = None,
        theta: Tensor | None = None,
        cache: str | Path | None = None,
        look: Look = Look(),
    ) -> None:
        self.data, self.network, self.gen, self.chunk = data, network, gen, chunk
        self.training = replace(training, loss="cross-entropy")
        self.held, self._given, self._cache = validation, theta, None if cache is None else Path(cache)
        self.look = look
        self._like: View | None = None  # the view with the same parameters, if this is another look at it
        self._seen: dict[Look, View] = {}
        self._shared: dict[Hashable, Tensor] = {}
        self._of_class: dict[int, View] = {}

    def __len__(self) -> int:
        return len(self.data)

    @property
    def y(self) -> Tensor:
        """Labels, hard or soft; raises if labels are missing."""
        if not self.labelled:
            raise AttarError(
                "This needs labels: give them, or choose a method that needs none and no class balance "
                "(uniform, herding, k-center; with logits also entropy, margin, least-confidence)."
            )
        return self.data.labels

    @cached_property
    def theta(self) -> Tensor:
        """Parameters of the network, ``(p,)``."""
        if self._given is not None:
            return self._given
        if self._like is not None:
            return self._like.theta
        return self._kept.once("theta", self._trained)

    @cached_property
    def features(self) -> Tensor:
        """Inputs of the last layer, ``(n, h)``."""
        _ = self.theta  # before the lock, which it takes too
        features = self._kept.once("features", lambda: self._passed(self.network.features).flatten(1))
        return keep.warn_if_constant(keep.finite(features, "features"))

    @cached_property
    def logits(self) -> Tensor:
        """Outputs of the network, ``(n, classes)``."""
        with torch.no_grad():
            try:
                head = self.network.head(self.theta)
            except AttarError:  # no linear last layer: only features need one
                return self._passed(self.network)
            return torch.cat([linear(rows, *head) for rows in self.features.split(self.chunk)])

    @property
    def bias(self) -> bool:
        """Whether the last layer has a bias."""
        return self.network.outputs().shape[1] > self.features.shape[1]

    @cached_property
    def validation(self) -> View:
        """The held-out examples under the same network."""
        if self.held is None:
            raise AttarError(
                "This method needs a validation set: reduce a Split, give View(validation=...), "
                "or choose the method without -val."
            )
        return self.held.seen(self.look) if isinstance(self.held, View) else self._beside(self.held)

    @property
    def predicts(self) -> bool:
        """Whether predictions are computed already, or the network that makes them is trained."""
        return bool({"theta", "logits"} & vars(self).keys())

    @property
    def whole(self) -> View:
        """The view of all examples, if this is a part of it; else itself."""
        return self

    def part(self, indices: Tensor, label: int | None = None) -> Part:
        """The view of some examples under the same network; ``label`` is their class if they all have the same."""
        return Part(self, indices, label)

    def of_class(self, c: int) -> Part:
        """The view of one class, with the validation examples of that class."""
        return self.part((self.hard == c).nonzero().flatten(), c)

    def validation_of(self, c: int) -> View:
        """The held-out examples of one class."""
        if c not in self._of_class:
            self._of_class[c] = self.validation.of_class(c)
        if not len(self._of_class[c]):
            raise AttarError(f"Class {c} has no validation examples: add some, or do not select per class.")
        return self._of_class[c]

    def alone(self, indices: Tensor, held: Dataset | View | None) -> View:
        """A new view of some examples with networks that are trained on all, and other held-out ones; for forecasts."""
        made = self._in(self.look)
        made.data, made.counts, made.held, made._cache = self.data.take(indices), None, held, None
        made._full = self._full or self
        return made

    def seen(self, look: Look) -> View:
        """The same examples in another look; each is made once."""
        if look == self.look:
            return self
        if look not in self._seen:
            if look.mode == "train":
                warn_if_separate(self.network)
            made = self._seen[look] = self._in(look)
            made._like = None if look == Look(look.fit) else self.seen(Look(look.fit))
        return self._seen[look]

    def at(self, theta: Tensor) -> View:
        """The same examples under other parameters of the network."""
        held = self.held.data if isinstance(self.held, View) else self.held
        shared = self.data, self.network, self.training, self.gen, self.chunk
        view = View(*shared, validation=held, theta=theta, look=self.look)
        view.labelled = self.labelled
        return view

    def early(self, networks: int, steps: int) -> Iterator[View]:
        """The same examples under several new networks, each trained for a few steps at a constant learning rate."""
        short = replace(self.training, steps=steps, schedule="constant")
        for theta in train(self.network, self._trainable(), short, keep.stream(self.gen, "early"), networks):
            yield self.at(theta)

    def along(self, looks: int) -> Iterator[View]:
        """The same examples at equally spaced times of one training at a constant learning rate."""
        gen, between = keep.stream(self.gen, "along"), max(1, self.training.steps // looks)
        training = replace(self.training, steps=looks * between, schedule="constant")
        trainer = Trainer(self.network, self._trainable(), training, self.network.init(gen)[None])
        for _ in range(looks):
            for _ in range(between):
                trainer.step(gen)
            yield self.at(trainer.theta[0].clone())

    def shared(self, key: Hashable, compute: Callable[[View], Tensor]) -> Tensor:
        """One row per example, computed once from the whole view and shared by all its parts."""
        if key not in self._shared:
            self._shared[key] = compute(self)
        return self._shared[key]

    def _passed(self, call: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The outputs of a forward pass for every example, in order."""
        with torch.no_grad():
            if self.look.mode == "eval" or self.network.separate:
                size = part_size(self.network, self.data.device, self.chunk)
                return torch.cat([call(self.theta, part.x) for part in self.data.chunks(size)])
            batches = of_one_class(self.hard, self.training.batch)
            found = torch.cat([call(self.theta, self.data.take(index).x) for index in batches])
            return found[torch.cat(batches).argsort()]

    def _in(self, look: Look) -> View:
        """A new view of the same examples, with nothing computed yet."""
        shared = self.data, self.network, self.training, self.gen, self.chunk
        made = type(self)(*shared, validation=self.held, theta=self._given, cache=self._cache, look=look)
        made.labelled, made.counts, made._full = self.labelled, self.counts, self._full
        return made

    def _trainable(self) -> Dataset:
        _ = self.y  # raises if labels are missing
        if self._given is not None:
            raise AttarError("This method trains its own networks: give View an untrained network.")
        return (self._full or self).data

    def _beside(self, data: Dataset) -> View:
        return View(data, self.network, self.training, self.gen, self.chunk, theta=self.theta, look=self.look)

    @cached_property
    def _file(self) -> Path | None:
        if self._cache is None:
            return None
        theta = self.network.init(keep.stream(self.gen)) if self._given is None else self._given
        how = self.look.mode if self._given is not None else f"{self.training}{self.look.fit}{self.look.mode}"
        # The outputs on two examples distinguish networks of the same name and parameters.
        seen = self.network(theta, self.data.take(torch.arange(min(2, len(self)))).x)
        key = keep.digest(self.data.fingerprint, how, self.gen.get_state(), theta, seen)
        return self._cache / f"view-{key}.safetensors"

    @cached_property
    def _kept(self) -> keep.Kept:
        return keep.Kept(self._file, self.data.device)

    def _trained(self) -> Tensor:
        gen, full = keep.stream(self.gen), self._full or self
        return scoring_network(self.network, full.data, full.hard, self.training, gen, self.look.fit)


class Part(View):
    """Some examples of a whole view; everything is computed there and copied only if needed."""

    def __init__(self, of: View, indices: Tensor, label: int | None = None) -> None:
        self.network, self.training, self.gen, self.chunk = of.network, of.training, of.gen, of.chunk
        self.held, self._given, self._cache = of.held, None, None
        places = indices.nonzero().flatten() if indices.dtype == torch.bool else indices
        self.of, self.indices, self.label, self.labelled, self.look = of, places, label, of.labelled, of.look
        self.counts = None if of.counts is None else of.counts[places]

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def data(self) -> Data:  # type: ignore[override]
        return self.of.data.take(self.indices)

    @property
    def y(self) -> Tensor:
        return self.of.y[self.indices]

    @cached_property
    def theta(self) -> Tensor:
        return self.of.theta

    @cached_property
    def features(self) -> Tensor:
        return self.of.features[self.indices]

    @cached_property
    def logits(self) -> Tensor:
        return self.of.logits[self.indices]

    @property
    def bias(self) -> bool:
        return self.of.bias

    @property
    def whole(self) -> View:
        return self.of.whole

    def shared(self, key: Hashable, compute: Callable[[View], Tensor]) -> Tensor:
        return self.of.shared(key, compute)[self.indices]

    def seen(self, look: Look) -> Part:
        return Part(self.of.seen(look), self.indices, self.label)

    def part(self, indices: Tensor, label: int | None = None) -> Part:
        """A part of the whole view, so that parts of parts do not nest."""
        return Part(self.of, self.indices[indices], self.label if label is None else label)

    @cached_property
    def validation(self) -> View:
        return self.of.validation if self.label is None else self.of.validation_of(self.label)
