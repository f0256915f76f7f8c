"""From a data set to a coreset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from torch import Generator, nn

from attar.condense.contract import Condenser, Descent, Inference, Learns, Task
from attar.condense.driver import Condensation
from attar.condense.observers import Observer, checkpoint
from attar.condense.source import STARTS, start
from attar.core import registry
from attar.core.cost import measure
from attar.core.errors import AttarError, MissingFile
from attar.coreset import Coreset, Recipe
from attar.data import Data, Split, augment
from attar.experts import Trajectories, find
from attar.nets import Network, default, network
from attar.nets.train import Training
from attar.select.balance import PerClass
from attar.select.contract import Selector
from attar.select.keep import streams
from attar.select.view import View


@dataclass(frozen=True)
class Plan:
    """A reduction that is fully decided but not run: every default filled in, every name found."""

    method: Selector | Condenser
    data: Data
    network: Network
    descent: Descent | None
    training: Training
    per_class: int
    seed: int
    experts: Trajectories | None = None
    validation: Data | None = None  #: held-out examples, for selection methods that look at them

    def recipe(self) -> Recipe:
        """What the artifact will say about how it was made."""
        return Recipe(
            method=registry.entry_of(self.method).name,
            per_class=self.per_class,
            seed=self.seed,
            data=self.data.domain.name,
            fingerprint=self.data.fingerprint(),
            network=self.network.name,
            version=version("attar"),
            options=registry.options_of(self.method),
            descent=asdict(self.descent) if self.descent else {},
            training=self.training,
            experts=self.experts.manifest.identity if self.experts else None,
            validation=self.validation.fingerprint() if self.validation else None,
            sampler=_inference(self.method).sampler,
            sampler_options=dict(_inference(self.method).options),
        )

    def memory(self) -> int:
        """A rough upper estimate of the bytes that running takes, beside what the libraries take."""
        batch = max(256, getattr(self.method, "batch", 0)) + self.per_class * self.data.classes
        return self.data.x.nbytes + 4 * (6 * self.network.size + 3 * batch * self.network.activations)


def plan(
    data: Data | Split,
    method: str | Selector | Condenser,
    *,
    per_class: int,
    seed: int = 0,
    network: str | Network | Callable[[], nn.Module] | None = None,
    options: Mapping[str, Any] | None = None,
    descent: Mapping[str, Any] | None = None,
    training: Training | None = None,
    experts: Trajectories | str | Path | None = None,
) -> Plan:
    """Decide a reduction without running it; arguments are those of ``reduce``."""
    train = data.train if isinstance(data, Split) else data
    if isinstance(method, str):
        method = cast("Selector | Condenser", registry.build(method, options or {}, *registry.REDUCERS))
    elif options:
        raise AttarError("Give options to the method's own constructor, or name the method and pass options.")
    name = registry.entry_of(method).name
    registry.find(name, *registry.REDUCERS)
    if per_class < 1:
        raise AttarError(f"per_class must be at least 1, got {per_class}.")
    train.require_per_class(per_class * _learns(method).factor ** 2)
    steps = None
    if isinstance(getattr(method, "descent", None), Descent):
        steps = registry.make(
            Descent, {**asdict(cast(Condenser, method).descent), **(descent or {})}, f"{name} descent"
        )
    elif descent:
        raise AttarError(f"{name} selects examples and takes no steps: leave out {', '.join(descent)}.")
    net = _network(network, train)
    own = dict(_inference(method).training)
    if "augment" in own:
        own["augment"] = augment.siamese(own["augment"], train.x)
    budget = replace(training or Training(), **own)
    store = _experts(method, train, net, experts)
    start = registry.build(steps.init, {}, "select") if steps and steps.init not in STARTS else None
    held = _validation(method, data) or _validation(start, data)
    return Plan(method, train, net, steps, budget, per_class, seed, store, held)


def reduce(
    data: Data | Split,
    method: str | Selector | Condenser,
    *,
    per_class: int,
    seed: int = 0,
    network: str | Network | Callable[[], nn.Module] | None = None,
    options: Mapping[str, Any] | None = None,
    descent: Mapping[str, Any] | None = None,
    training: Training | None = None,
    experts: Trajectories | str | Path | None = None,
    observers: Sequence[Observer] = (),
    checkpoint: str | Path | None = None,
    every: int = 100,
) -> Coreset:
    """Distil a data set into ``per_class`` examples of every class.

    Args:
        data: The training data, or a whole ``Split`` of which ``train`` is used, and ``val`` by methods named -val.
        method: A registered name, or a method's own object with its hyper-parameters set.
        per_class: Examples of every class to keep or to learn.
        seed: Fixes every random choice; the same seed gives the same bits.
        network: What the method looks through: a name, a ``Network`` or a module factory; by shape if not set.
        options: Hyper-parameters, where ``method`` is a name.
        descent: What to change of the method's own way down (steps, lr, ...), for methods that learn.
        training: What the coreset's users should train with; recorded, and used to train scoring networks.
        experts: Networks trained on the full data (``attar.experts``) or their folder, for methods that need them; if
            not set, those that ``attar experts`` made for this data and network.
        observers: What watches the steps of a method that learns (``attar.condense.observers``).
        checkpoint: Where the run is saved now and then; if that file is there, the run goes on from it.
        every: Steps from one save to the next; it is also saved every half minute and on Ctrl-C.

    Returns:
        The coreset, with its recipe and what it cost.
    """
    decided = plan(
        data,
        method,
        per_class=per_class,
        seed=seed,
        network=network,
        options=options,
        descent=descent,
        training=training,
        experts=experts,
    )
    return run(decided, observers, checkpoint, every)


def run(
    plan: Plan, observers: Sequence[Observer] = (), checkpoint: str | Path | None = None, every: int = 100
) -> Coreset:
    """Run a plan; ``observers``, ``checkpoint`` and ``every`` are those of ``reduce``."""
    if every < 1:
        raise AttarError(f"every must be at least 1 step, got {every}.")
    recipe = plan.recipe()
    with measure() as cost:
        if plan.descent is None:
            coreset = _select(plan, recipe)
        else:
            coreset = _condense(plan, recipe, observers, Path(checkpoint) if checkpoint else None, every)
    return replace(coreset, recipe=replace(coreset.recipe, cost=coreset.recipe.cost + cost))


def _select(plan: Plan, recipe: Recipe) -> Coreset:
    gen, scoring = streams(plan.seed, plan.data.x.device)
    view = View(plan.data, plan.network, plan.training, scoring, validation=plan.validation)
    picked = PerClass(cast(Selector, plan.method)).select(view, plan.per_class, gen)
    data = replace(plan.data[picked.indices], weights=picked.weights)
    return Coreset(data, recipe, picked.indices)


def _start(plan: Plan, init: str) -> tuple[Data, Generator]:
    """The examples to learn from on, and the generator as they left it."""
    gen, scoring = streams(plan.seed, plan.data.x.device)
    size = plan.per_class * _learns(plan.method).factor ** 2
    if init in STARTS:
        return start(plan.data, size, init, gen), gen
    view = View(plan.data, plan.network, plan.training, scoring, validation=plan.validation)
    picked = PerClass(cast(Selector, registry.build(init, {}, "select"))).select(view, size, gen)
    return plan.data[picked.indices], gen


def _condense(plan: Plan, recipe: Recipe, observers: Sequence[Observer], path: Path | None, every: int) -> Coreset:
    task = Task(plan.data, plan.network, plan.data.classes, plan.experts)
    descent = cast(Descent, plan.descent)
    first, gen = _start(plan, descent.init)
    source = _learns(plan.method).source(first, gen)
    identity = hashlib.blake2b(repr(recipe).encode(), digest_size=16).hexdigest()
    condensation = Condensation(cast(Condenser, plan.method), task, source, descent, gen, identity)
    steps = iter(condensation)
    if path is not None:
        with suppress(MissingFile):
            condensation.resume(path)
        steps = checkpoint(steps, path, every)
    for observe in observers:
        steps = observe(steps)
    for _ in steps:
        pass
    learnt = condensation.scalars
    options = {name: learnt.get(name, value) for name, value in recipe.sampler_options.items()}
    recipe = replace(recipe, sampler_options=options, cost=condensation.before)
    return Coreset(condensation.examples, recipe, step_size=learnt.get("step_size"))


def _experts(
    method: Selector | Condenser, data: Data, network: Network, given: Trajectories | str | Path | None
) -> Trajectories | None:
    if not needs_experts(method):
        if given is not None:
            raise AttarError(f"{registry.entry_of(method).name} uses no experts: leave them out.")
        return None
    if given is None:
        return find(data, network)
    store = given if isinstance(given, Trajectories) else Trajectories.open(given)
    store.check(network, data.fingerprint())
    return store


def needs_experts(method: str | Selector | Condenser) -> bool:
    """Whether a method, or the one of this name, starts from networks trained on the full data."""
    known = registry.find(method, *registry.REDUCERS).build if isinstance(method, str) else method
    return bool(getattr(known, "needs_experts", False))


def _validation(method: Selector | Condenser | None, data: Data | Split) -> Data | None:
    """The held-out examples, for methods that say they look at them: what the recipe does not name is not shown."""
    if method is None or not getattr(method, "needs_validation", False):
        return None
    if not isinstance(data, Split):
        name = registry.entry_of(method).name
        raise AttarError(f"{name} needs a validation set: reduce a Split, or choose the method without -val.")
    return data.val


def _learns(method: Selector | Condenser) -> Learns:
    found: Learns = getattr(method, "learns", Learns())
    return found


def _inference(method: Selector | Condenser) -> Inference:
    found: Inference = getattr(method, "inference", Inference())
    return found


def _network(spec: str | Network | Callable[[], nn.Module] | None, data: Data) -> Network:
    return network(default(data.shape) if spec is None else spec, data.shape, data.classes)
