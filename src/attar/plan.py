"""A reduction that is fully specified but not run: all defaults filled in, all names resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from torch import Generator, Tensor, nn

from attar.condense.contract import Condenser, Task
from attar.condense.driver import Condensation
from attar.condense.forecast import Forecast, forecast
from attar.condense.source import borrowed
from attar.condense.source import start as first_examples
from attar.core import registry
from attar.core.budget import require_memory
from attar.core.errors import AttarError, instance, whole
from attar.core.method import STARTS, Descent, Needs
from attar.core.streams import reduction, seed_of
from attar.coreset import Coreset
from attar.data import Data, Split, augment
from attar.data.data import require_per_class
from attar.data.load import Source, loaded
from attar.data.split import Origin
from attar.engine.share import Share
from attar.experts import Trajectories, find
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.calibrate import decide
from attar.nets.fast.modes import AUTO, NONE
from attar.nets.train import Training
from attar.recipe import Recipe
from attar.select import forecast as selecting
from attar.select.balance import PerClass
from attar.select.budget import BALANCED, per_class_of, sizes
from attar.select.contract import Selection, Selector
from attar.select.keep import digest, streams
from attar.select.view import View

Reducer = Selector | Condenser


@dataclass(frozen=True, repr=False)
class Plan:
    """A reduction that is fully specified but not run: all defaults filled in, all names resolved."""

    method: Reducer
    data: Data
    network: Network
    descent: Descent | None
    training: Training
    per_class: int
    seed: int
    experts: Trajectories | None = None
    validation: Data | None = None  #: the validation set, for selection methods that use it
    origin: Origin | None = None  #: how to load the data again
    start: Data | None = None  #: examples of a coreset to continue from
    base: Data | None = None  #: another data set, which gives the examples whose labels are learnt
    theta: Tensor | None = None  #: networks of a training that goes on, ``(k, p)``, for methods with ``needs.phase``
    budget: str = BALANCED  #: how the classes share the examples
    accelerate: str = NONE  #: how gradients are computed; ``auto`` is decided by ``run``, as a resumed run keeps it

    @property
    def sizes(self) -> list[int]:
        """Examples of each class: ``per_class`` of each if they are balanced."""
        return sizes(self.data, self.per_class, self.budget)

    def recipe(self) -> Recipe:
        """The recipe that the coreset will hold."""
        inference, given = self.method.inference, self._given()
        return Recipe(
            method=registry.entry_of(self.method).name,
            per_class=self.per_class,
            budget=self.budget,
            seed=self.seed,
            data=self.data.spec.name,
            fingerprint=self.data.fingerprint,
            network=self.network.name,
            version=version("attar"),
            options=registry.options_of(self.method),
            descent=asdict(self.descent) if self.descent else {},
            training=self.training,
            experts=self.experts.manifest.identity if self.experts else None,
            validation=self.validation.fingerprint if self.validation else None,
            sampler=inference.sampler,
            sampler_options=dict(inference.options),
            origin=self.origin,
            start=given.fingerprint if given else None,
            phase=None if self.theta is None else digest(self.theta),
            accelerate=self.accelerate,
        )

    def to(self, device: torch.device | str) -> Plan:
        """A copy on another ``device``."""
        parts = {name: getattr(self, name) for name in ("data", "validation", "start", "base", "theta")}
        return replace(self, **{name: part.to(device) for name, part in parts.items() if part is not None})

    def memory(self) -> int:
        """A forecast of the memory in bytes, without that of the libraries; of a method that learns, a rehearsal's."""
        if isinstance(self.method, Selector):
            return selecting.memory(self._view(), self.method, self.sizes)
        return self._learning.memory

    def seconds(self) -> float:
        """A forecast of the running time on this machine, from rehearsals on small parts of the data."""
        if isinstance(self.method, Selector):
            return selecting.seconds(self._view(), self.method, self.sizes)
        return self._learning.seconds

    @cached_property
    def _learning(self) -> Forecast:
        """The forecast of a method that learns, with the selection that it starts from."""
        method, descent = cast(Condenser, self.method), cast(Descent, self.descent)
        each = list(map(method.starts, self.sizes))
        if self._given() is None and descent.init not in STARTS:
            first = cast(Selector, registry.build(descent.init, {}, "select"))
            rest = replace(self, descent=replace(descent, init="real"))._learning
            seconds = selecting.seconds(self._view(), first, each) + rest.seconds
            return Forecast(seconds, max(selecting.memory(self._view(), first, each), rest.memory))
        return forecast(
            lambda data: replace(self, data=data).condensation(), method.grows, self.data, max(each), descent.steps
        )

    def condensation(self, identity: str = "", share: Share = Share()) -> Condensation:
        """The loop of a method that learns, before its first step.

        Args:
            identity: Names its checkpoints.
            share: The place of this process, if several compute together.
        """
        method, descent = cast(Condenser, self.method), cast(Descent, self.descent)
        first, gen = self._start(descent.init)
        task = Task(self.data, self.network, self.data.classes, self.experts, self.theta, share)
        return Condensation(method, task, method.source(first, gen), descent, gen, identity)

    def select(self, selector: Selector, sizes: Sequence[int]) -> tuple[Selection, Generator]:
        """Pick ``sizes[c]`` examples of every class c; also returns the generator in its state after that."""
        gen, view = streams(self.seed, self.data.device)[0], self._view()
        return selector.checked(view, PerClass(selector).share(view, sizes, gen)), gen

    def _view(self) -> View:
        """The data as its scoring network sees it."""
        scoring = streams(self.seed, self.data.device)[1]
        return View(self.data, self.network, self.training, scoring, validation=self.validation)

    def _start(self, init: str) -> tuple[Data, Generator]:
        """The initial examples, and the generator in its state after they were made."""
        gen, _ = streams(self.seed, self.data.device)
        sizes, given = [self.method.starts(size) for size in self.sizes], self._given()
        if given is not None:
            return given, gen
        if init in STARTS:
            return first_examples(self.data, sizes, init, gen), gen
        picked, gen = self.select(cast(Selector, registry.build(init, {}, "select")), sizes)
        return self.data[picked.indices], gen

    def _given(self) -> Data | None:
        """The initial examples that the user gives: those of a coreset, or random ones of the base."""
        if self.base is None:
            return self.start
        gen = reduction(seed_of("base", self.seed), self.data.device)
        return borrowed(self.base, self.data, self.per_class * self.data.classes, gen)

    def __repr__(self) -> str:
        name = registry.entry_of(self.method).name
        return f"Plan({name}, {self.per_class} per class of {self.data}, {self.network.name}, seed {self.seed})"


def plan(
    data: Source | Data | Split,
    method: str | Reducer,
    *,
    per_class: int | None = None,
    fraction: float | None = None,
    budget: str = BALANCED,
    seed: int = 0,
    network: str | Network | Callable[[], nn.Module] | None = None,
    options: Mapping[str, Any] | None = None,
    descent: Mapping[str, Any] | None = None,
    training: Training | None = None,
    experts: Trajectories | str | Path | None = None,
    start: Coreset | None = None,
    base: Source | Data | Split | None = None,
    device: torch.device | str | None = None,
    accelerate: str = NONE,
) -> Plan:
    """Specify a reduction without running it; the arguments are those of ``reduce``.

    ``data``, ``method``, ``per_class``, ``fraction``, ``budget``, ``seed``, ``network``, ``options``, ``descent``,
    ``training``, ``experts``, ``start``, ``base``, ``device`` and ``accelerate`` are described there.
    """
    given = loaded(data, device)
    train = given.train if isinstance(given, Split) else given
    chosen: Reducer = registry.resolve(method, options, *registry.REDUCERS)
    registry.find(registry.entry_of(chosen).name, *registry.REDUCERS)  # raises if the object is a sampler
    each = per_class_of(train, per_class, fraction)
    wanted = [chosen.starts(size) for size in sizes(train, each, budget)]
    require_per_class(train.hard, train.spec.target, wanted[0] if budget == BALANCED else wanted)
    net = build_network(network, train.spec)
    what = f"Learning with {net.name} of {net.size:,} parameters"
    require_memory(3 * 4 * net.size, what, "choose a smaller network")  # parameters, gradient and momentum
    settings = _descent(chosen, net, descent)
    if start is not None and settings is None:
        raise AttarError(f"{registry.entry_of(chosen).name} selects examples: leave out start.")
    if chosen.needs.features:
        net.outputs()  # raises if it has no features
    if chosen.needs.linear:
        net.head_index()  # raises if its last layer is not linear
    beginning = registry.build(settings.init, {}, "select") if settings and settings.init not in STARTS else None
    held = [method for method in (chosen, beginning) if method is not None and method.needs.validation]
    trained = _training(chosen, training, train)
    decided = Plan(
        chosen,
        train,
        net,
        settings,
        trained,
        each,
        whole("seed", seed),
        _experts(chosen, train, net, experts),
        _validation(held[0], given) if held else None,
        given.origin if isinstance(given, Split) else None,
        None if start is None else _matching(start, train).to(train.device),
        None if base is None else _base(chosen, start, base, train),
        budget=budget,
        accelerate=accelerate if accelerate == AUTO else decide(accelerate, net, train, trained),
    )
    decided._given()  # raises if the base does not fit
    return decided


def needs_of(method: str | Reducer) -> Needs:
    """What a method, or the one of this name, cannot do without."""
    known: Any = registry.find(method, *registry.REDUCERS).build if isinstance(method, str) else method
    needs: Needs = known.needs
    return needs


def _descent(method: Reducer, network: Network, changes: Mapping[str, Any] | None) -> Descent | None:
    name = registry.entry_of(method).name
    if not isinstance(method, Condenser):
        if changes:
            raise AttarError(f"{name} selects examples and has no optimiser settings: leave out {', '.join(changes)}.")
        return None
    return cast(
        Descent, registry.make(Descent, {**asdict(method.descent_on(network)), **(changes or {})}, f"{name} descent")
    )


def _training(method: Reducer, training: Training | None, data: Data) -> Training:
    """The user's training settings, with those that the method prescribes for its coresets."""
    instance("training", training, Training, type(None))
    own = dict(method.inference.training)
    if "augment" in own:
        own["augment"] = augment.resolve(own["augment"], data.spec)
    return replace(training or Training(), **own)


def _experts(
    method: Reducer, data: Data, network: Network, given: Trajectories | str | Path | None
) -> Trajectories | None:
    if method.needs.pretrained and given is not None:
        store = given if isinstance(given, Trajectories) else Trajectories.open(given)
        store.check(network)
        return store
    if not method.needs.experts:
        if given is not None:
            raise AttarError(f"{registry.entry_of(method).name} uses no experts: leave them out.")
        return None
    if given is None:
        return find(data, network)
    store = given if isinstance(given, Trajectories) else Trajectories.open(given)
    store.check(network, data.fingerprint)
    return store


def _validation(method: Reducer, data: Data | Split) -> Data:
    """The validation set, for methods that need it; other methods never see it."""
    if not isinstance(data, Split):
        name = registry.entry_of(method).name
        raise AttarError(f"{name} needs a validation set: reduce a Split, or choose the method without -val.")
    return data.val


def _base(method: Reducer, start: Coreset | None, base: Source | Data | Split, data: Data) -> Data:
    """The examples of another data set, for methods that learn only labels."""
    if start is not None or not method.needs.base:
        reason = "start is given" if start is not None else f"{registry.entry_of(method).name} learns no labels alone"
        raise AttarError(
            f"A base cannot be used, because {reason}: use label-distillation or label-solve without start."
        )
    given = loaded(base).to(data.device)
    return given.train if isinstance(given, Split) else given


def _matching(start: Coreset, data: Data) -> Data:
    """The examples of a coreset, in the transform of this data."""
    if start.data.shape != data.shape or not start.data.spec.target.matches(data.spec.target):
        raise AttarError(f"{start!r} has other shapes or classes than {data!r}: start from a coreset of this data.")
    return start.data.transformed(data.spec.transform)
