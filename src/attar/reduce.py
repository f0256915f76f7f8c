"""From a data set to a coreset."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from attar.condense.driver import Condensation, OtherRecipe
from attar.condense.observers import SECONDS, Observer, checkpoint
from attar.core import registry
from attar.core.cost import Cost, measure
from attar.core.errors import AttarError, DamagedFile, Diverged, MissingFile
from attar.core.files import open_tensors, set_aside
from attar.core.lock import claimed
from attar.core.signals import require_seconds
from attar.coreset import Coreset
from attar.data import Data, Split
from attar.data.load import Source
from attar.engine.share import Share, link_here, together
from attar.experts import Trajectories
from attar.nets import Network
from attar.nets.calibrate import decide
from attar.nets.fast.modes import AUTO, MODES, NONE, using
from attar.nets.train import Training
from attar.plan import Plan, Reducer, plan
from attar.recipe import Recipe
from attar.select.budget import BALANCED, warn_if_skewed
from attar.select.contract import Selector


def reduce(
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
    observers: Sequence[Observer] = (),
    checkpoint: str | Path | None = None,
    every: int = 100,
    checkpoint_every: float | None = None,
    processes: int = 1,
) -> Coreset:
    """Reduce a data set to ``per_class`` examples of every class, or on average of the classes.

    Args:
        data: Anything that ``attar.load`` takes, or a ``Split``: its ``train`` is used, and by methods named -val its
            ``val`` too; or the training data itself.
        method: A registered name, or a method object.
        per_class: Examples to keep or learn per class; or give ``fraction``.
        fraction: Size of the coreset as a share of the training data, as a whole number per class.
        budget: How classes share the examples: ``balanced`` (equally many of each), ``proportional`` (as they are in
            the data, at least one each), ``minimum`` (in proportion, but at least half of an equal share each) or
            ``minimum=5`` (at least five each, or all that a class has).
        seed: Random seed; the same seed gives exactly the same result.
        network: The network that the method uses: a name, a ``Network`` or a module factory; by default a small one.
        options: Hyper-parameters, if ``method`` is a name.
        descent: Optimiser settings (steps, lr, ...) that differ from the method's own, for methods that learn.
        training: Training on the coreset; stored in its recipe, and used to train scoring networks.
        experts: Networks trained on the full data (``attar.experts``) or their folder, for methods that need them; by
            default those that ``attar experts`` made for this data and network.
        start: A coreset to continue learning from, instead of ``descent["init"]``.
        base: Another data set whose examples get learnt labels, for label-distillation and label-solve.
        device: Where to compute; by default the data's device.
        accelerate: How networks are trained: ``none`` for float32; ``bfloat16``, ``compile`` or ``bfloat16+compile``;
            or ``auto`` for the fastest of these on this machine that agrees with float32. Gradients that are
            differentiated again are always in float32. The recipe holds what was used, and a resumed run keeps it.
        observers: Called with the steps of a method that learns (``attar.condense.observers``).
        checkpoint: File to save the run to; if it exists, the run resumes from it.
        every: Steps between checkpoints; the run is also saved every 30 seconds.
        checkpoint_every: Seconds between checkpoints, instead of these steps and seconds. A signal that ends the
            program (Ctrl-C, SIGTERM, SIGHUP) also saves the run first.
        processes: Processes that compute one run together on this machine, each with its share of the work, for
            methods whose work can be divided. A script must then be guarded by ``if __name__ == "__main__"``. Under
            torchrun, set up ``torch.distributed`` and call ``reduce`` in every process instead.

    Returns:
        The coreset, with its recipe and cost.
    """
    decided = plan(
        data,
        method,
        per_class=per_class,
        fraction=fraction,
        budget=budget,
        seed=seed,
        network=network,
        options=options,
        descent=descent,
        training=training,
        experts=experts,
        start=start,
        base=base,
        device=device,
        accelerate=accelerate,
    )
    warn_if_skewed(decided.data.hard.bincount(), decided.budget)
    return run(decided, observers, checkpoint, every, checkpoint_every, processes)


def run(
    plan: Plan,
    observers: Sequence[Observer] = (),
    checkpoint: str | Path | None = None,
    every: int = 100,
    checkpoint_every: float | None = None,
    processes: int = 1,
) -> Coreset:
    """Run a plan; all other arguments are those of ``reduce``."""
    if every < 1:
        raise AttarError(f"every must be at least 1 step, got {every}.")
    seconds = require_seconds(checkpoint_every)
    share = Share.here()
    _require_divisible(plan, processes if processes != 1 else share.size)
    path = Path(checkpoint) if checkpoint else None
    plan = _accelerated(plan, path, processes, share)
    recipe = plan.recipe()
    if plan.descent is None:
        with measure() as cost, using(plan.accelerate):
            coreset = _select(plan, recipe)
        return replace(coreset, recipe=replace(coreset.recipe, cost=cost))
    times = (every, SECONDS) if seconds is None else (None, seconds)
    alone = claimed(path) if path and share.rank == 0 else nullcontext()
    given, device = (plan, recipe, path), plan.data.device
    group = nullcontext(share) if processes == 1 else together(processes, _assist, given, device)
    with alone, group as place, using(plan.accelerate):
        return _condense(plan, recipe, observers, path, times, place)


def _require_divisible(plan: Plan, processes: int) -> None:
    """An error if so many processes cannot share the work of a plan."""
    name, method = registry.entry_of(plan.method).name, plan.method
    if processes < 1:
        raise AttarError(f"processes must be at least 1, got {processes}.")
    if processes == 1:
        return
    if not method.shares:
        able = ", ".join(name for name, entry in registry.methods("condense", "bayes").items() if entry.build.shares)
        why = f", as {method.whole}" if method.whole else ""
        raise AttarError(
            f"The work of {name} cannot be divided among processes{why}: leave processes out, or choose a method whose "
            f"work can ({able})."
        )
    if processes > plan.data.classes:
        raise AttarError(f"Processes share out the {plan.data.classes} classes: set processes to no more than that.")
    if not plan.network.separate:
        raise AttarError(
            f"The predictions of {plan.network.name} depend on the whole batch, so it cannot be divided among "
            "processes: use a network without batch norm."
        )


def _assist(share: Share, given: tuple[Plan, Recipe, Path | None]) -> None:
    """The steps of a process that helps the first one, which saves and watches."""
    plan, recipe, path = given
    plan = plan.to(link_here(plan.data.device, share)[1])
    with using(plan.accelerate):
        for _ in _loop(plan, recipe, path, share):
            pass


def _loop(plan: Plan, recipe: Recipe, path: Path | None, share: Share) -> Condensation:
    """The loop of a plan, resumed if there is a checkpoint; a damaged one is kept under another name."""
    identity = _identity(recipe)
    condensation = plan.condensation(identity, share)
    try:
        if path is not None:
            condensation.resume(path)
    except MissingFile:
        pass
    except OtherRecipe:
        raise
    except DamagedFile as damaged:
        if share.rank == 0:
            set_aside(damaged, "the run starts anew")
        return plan.condensation(identity, share)
    return condensation


def _identity(recipe: Recipe) -> str:
    """A hash of all that decides a run; the path of the data does not."""
    return hashlib.blake2b(repr(replace(recipe, origin=None)).encode(), digest_size=16).hexdigest()


def _accelerated(plan: Plan, path: Path | None, processes: int, share: Share) -> Plan:
    """The plan with the acceleration that ``auto`` stands for: that of its checkpoint, if there is one."""
    if plan.accelerate != AUTO:
        return plan
    if processes == 1 and share.size > 1:
        raise AttarError("Processes that were started apart must agree: name the acceleration, or leave it out.")
    began = None
    if path is not None:
        with suppress(DamagedFile, MissingFile), open_tensors(path) as file:  # the loop tells of a damaged one
            began = file.metadata().get("identity")
    tries = (replace(plan, accelerate=mode) for mode in (NONE, *MODES))
    wanted = next((tried.accelerate for tried in tries if _identity(tried.recipe()) == began), AUTO)
    return replace(plan, accelerate=decide(wanted, plan.network, plan.data, plan.training, processes))


def _select(plan: Plan, recipe: Recipe) -> Coreset:
    picked, _ = plan.select(cast(Selector, plan.method), plan.sizes)
    data = replace(plan.data[picked.indices], weights=picked.weights)
    return Coreset(data, recipe, picked.indices)


def _condense(
    plan: Plan,
    recipe: Recipe,
    observers: Sequence[Observer],
    path: Path | None,
    times: tuple[int | None, float],
    share: Share,
) -> Coreset:
    with measure() as cost:
        begin = time.perf_counter(), time.process_time()
        condensation = _loop(plan, recipe, path, share)
        setup = Cost(time.perf_counter() - begin[0], time.process_time() - begin[1])
        steps = iter(condensation)
        if path is not None and share.rank == 0:
            steps = checkpoint(steps, path, *times)
        for observe in observers:
            steps = observe(steps)
        for _ in steps:
            pass
    made = finished(condensation, recipe)
    spent = setup + condensation.cost  # without observers and checkpoints
    return replace(made, recipe=replace(made.recipe, cost=replace(spent, memory=cost.memory)))


def finished(condensation: Condensation, recipe: Recipe) -> Coreset:
    """The coreset of a condensation as it is now, with the recommended training that was found on the way."""
    learnt = condensation.scalars
    options = {name: learnt.get(name, value) for name, value in recipe.sampler_options.items()}
    training = replace(recipe.training, **condensation.method.recommend(condensation.state))
    recipe = replace(recipe, training=training, sampler_options=options)
    step_size = learnt.get("step_size")
    if step_size == 0:
        raise Diverged("The learnt step size is 0, with which nothing is learnt: start from a larger one.")
    return Coreset(condensation.examples, recipe, step_size=step_size, extra=condensation.source.extra())
