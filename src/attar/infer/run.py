"""Inference in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from attar.core import budget, registry
from attar.core.device import device_of
from attar.core.errors import AttarError, instance, whole
from attar.core.streams import evaluation
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.data.load import Source, loaded
from attar.engine.pool import Engine, Where
from attar.experts import Trajectories
from attar.infer.contract import Draws, Sampler
from attar.infer.divide import dividing
from attar.infer.separate import require_separate
from attar.nets import Network
from attar.nets import network as build_network
from attar.nets.calibrate import decide
from attar.nets.fast.modes import NONE, using
from attar.nets.train import Training

USUAL = "ensemble"  #: the sampler of coresets that were made for none
EXPERTS = "started from full-data experts"


def infer(
    data: Coreset | Source | Data | Split,
    sampler: str | Sampler | None = None,
    *,
    draws: int = 5,
    seed: int = 0,
    network: str | Network | Callable[[], nn.Module] | None = None,
    training: Training | None = None,
    options: Mapping[str, Any] | None = None,
    start: Literal["prior", "experts"] = "prior",
    experts: Tensor | Trajectories | None = None,
    device: torch.device | str | None = None,
    accelerate: str = NONE,
    workers: int = 1,
    engine: Engine | Where = "local",
) -> Draws:
    """Infer the posterior over a network's parameters from examples, starting from the prior.

    Args:
        data: A coreset, with its own network and training; or anything that ``attar.load`` takes, or a ``Split``, whose
            training set is used; or a ``Data``.
        sampler: A registered name, or a sampler object; by default the one that the coreset recommends, and an ensemble
            for other data. The recommended one, named or not, has the options that the coreset holds, where an object
            has its defaults; another warns of what is lost.
        draws: Parameter vectors to draw from the posterior.
        seed: Random seed; the same seed gives exactly the same result. It shares no random numbers with a reduction of
            the same or any other seed.
        network: A name, a ``Network`` or a module factory; by default the coreset's own.
        training: The training settings; by default the coreset's own.
        options: Hyper-parameters, if ``sampler`` is a name; each overrides the coreset's own.
        start: Where chains and trainings start. ``experts`` leaks the full data: use it only to compare with papers
            that did so. Everything made with it is labelled.
        experts: Networks trained on the full data, for ``start="experts"``: parameter vectors ``(m, p)``, or a store of
            trajectories, of which the last epochs are used.
        device: Where to compute; by default the data's device.
        accelerate: How gradients are computed, as for ``attar.reduce``; noted in the draws.
        workers: Processes that share out trainings and chains, with the same result. With more than one, a script must
            be guarded by ``if __name__ == "__main__"``. Small networks are computed together by one process.
        engine: ``local``, or ``ray`` (an extra); or an ``attar.Engine``, which has the workers, too.
    """
    draws, seed = whole("draws", draws, 1), whole("seed", seed)
    instance("training", training, Training, type(None))
    if isinstance(data, Coreset):
        network = network or data.recipe.network
        training = training or data.training
        if sampler is not None and (lost := what_is_lost(data, sampler)):
            warnings.warn(lost, stacklevel=2)
        sampler, options = _completed(data, sampler, options)
        examples, origin = data.data, data.recipe.origin
    else:
        given = loaded(data)
        examples, origin = (given.train, given.origin) if isinstance(given, Split) else (given, None)
    examples = examples if device is None else examples.to(device_of(device))
    chosen: Sampler = registry.resolve(sampler or USUAL, options, "infer")
    net = build_network(network, examples.spec)
    require_separate(net)
    require_room(draws, net)
    gen = evaluation(seed, examples.device)
    first = _first(experts, net, draws, gen) if start == "experts" else None
    settings = training or Training()
    where = Engine.of(engine, workers)
    mode = decide(accelerate, net, examples, settings, where.workers)
    with using(mode), dividing(where):
        posterior = chosen.infer(examples, net, settings, draws, gen, first)
    made = {"sampler": registry.entry_of(chosen).name, "options": registry.options_of(chosen), "seed": seed}
    label = {"start": "experts", "label": EXPERTS} if start == "experts" else {"start": "prior"}
    how = {} if mode == NONE else {"accelerate": mode}
    return replace(posterior, notes={**posterior.notes, **made, **label, **how}, origin=origin)


def require_room(draws: int, network: Network) -> None:
    """Refuse draws that do not fit into the free memory."""
    what = f"{draws:,} draws of {network.name} with {network.size:,} parameters"
    budget.require_memory(4 * draws * network.size, what, "ask for fewer draws, or for a smaller network")


def what_is_lost(coreset: Coreset, sampler: str | Sampler) -> str:
    """One sentence on what a coreset loses under another sampler than the one that it was made for; else empty.

    Most coresets are made for training on labelled examples, which most samplers do.
    """
    recipe = coreset.recipe
    entry = registry.find(sampler, "infer") if isinstance(sampler, str) else registry.entry_of(sampler)
    name, trains = entry.name, cast(type[Sampler], entry.build).trains
    if recipe.sampler not in (USUAL, name):
        lost = f"drops its {', '.join(recipe.sampler_options)}" if recipe.sampler_options else "ignores it"
        made = f"for the sampler {recipe.sampler}"
    elif coreset.step_size is not None and not trains:
        made, lost = "with a learnt step size", "ignores it"
    else:
        return ""
    return (
        f"This coreset was made {made}, and {name} {lost}: leave the sampler out for the inference that it was learnt "
        "for."
    )


def _completed(
    coreset: Coreset, sampler: str | Sampler | None, options: Mapping[str, Any] | None
) -> tuple[str | Sampler, Mapping[str, Any] | None]:
    """The sampler and its options; the recommended one has those of the coreset, each of which the user's override."""
    recipe, given = coreset.recipe, options or {}
    if isinstance(sampler, Sampler):
        if given or registry.entry_of(sampler).name != recipe.sampler:
            return sampler, options
        sampler, given = recipe.sampler, registry.changed(sampler)
    if sampler not in (None, recipe.sampler):
        return sampler, options
    return recipe.sampler, {**recipe.sampler_options, **given}


def _first(experts: Tensor | Trajectories | None, network: Network, draws: int, gen: torch.Generator) -> Tensor:
    if isinstance(experts, Trajectories):
        experts.check(network)
        drawn = [experts.draw(gen, first=experts.epochs) for _ in range(draws)]
        return torch.stack([experts.vector(*place) for place in drawn]).to(gen.device)
    if experts is None or experts.ndim != 2 or experts.shape[1] != network.size:
        raise AttarError(
            f"start='experts' needs experts=: a store made by `attar experts`, or vectors of shape (m, {network.size})."
        )
    index = torch.randint(len(experts), (draws,), generator=gen, device=gen.device)
    return experts[index.to(experts.device)]
