"""How a coreset was made, and how to train on it."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from attar.core.cost import Cost
from attar.data.split import Origin
from attar.nets.train import Training

FOREIGN = "foreign"  #: the method name of sets made elsewhere, if they give none
LONGEST = 100_000  #: steps that a file may ask for
MERGED = "merged"  #: the method name of coresets merged from several methods


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Recipe:
    """How a coreset was made, and how to train on it."""

    method: str  #: its registered name
    per_class: int  #: examples of each class
    seed: int  #: of all random choices
    data: str  #: name of the data set
    fingerprint: str  #: of the training data
    network: str  #: name of the network that it was made for
    version: str  #: of this library
    options: dict[str, Any] = Field(default_factory=dict)  #: hyper-parameters of the method
    descent: dict[str, Any] = Field(default_factory=dict)  #: optimiser settings, for methods that learn
    training: Training = Training()  #: recommended training
    experts: str | None = None  #: identity of the experts it was made with, if any
    validation: str | None = None  #: fingerprint of the validation set, if the method used it
    sampler: str = "ensemble"  #: recommended sampler
    sampler_options: dict[str, Any] = Field(default_factory=dict)  #: of the recommended sampler
    cost: Cost = Field(default_factory=lambda: Cost())  #: of making it
    origin: Origin | None = None  #: how to load the data again; None where it was given as arrays
    start: str | None = None  #: fingerprint of the coreset that learning continued from, if any
    phase: str | None = None  #: digest of the networks of a training that went on, if it was learnt from them
    budget: str = "balanced"  #: how the classes share the examples
    source: str | None = None  #: where it was published, if it was made elsewhere
    accelerate: str = "none"  #: half precision or compiled code that its gradients were computed with

    @property
    def amount(self) -> str:
        """The number of examples as text."""
        return f"{self.per_class} per class" + ("" if self.budget == "balanced" else f" on average, {self.budget}")


def capped(recipe: Recipe, path: str | Path) -> Recipe:
    """The recipe, with at most 100,000 steps of training or of a sampler, whatever the file says, and a warning."""
    counts = {"steps": recipe.training.steps, **recipe.sampler_options}
    long = [name for name, value in counts.items() if isinstance(value, int) and value > LONGEST]
    if not long:
        return recipe
    warnings.warn(
        f"{path} asks for {', '.join(f'{name} = {counts[name]:,}' for name in long)}: {LONGEST:,} are done, unless you "
        "give --train-steps or --force, or Coreset.load(force=True).",
        stacklevel=3,
    )
    shorter = {name: LONGEST if name in long else value for name, value in recipe.sampler_options.items()}
    training = replace(recipe.training, steps=min(recipe.training.steps, LONGEST))
    return replace(recipe, training=training, sampler_options=shorter)


def one_source(recipes: list[Recipe]) -> bool:
    """Whether all were made from the same training data, so that rows of one are rows of the other."""
    return all((recipe.fingerprint, recipe.origin) == (recipes[0].fingerprint, recipes[0].origin) for recipe in recipes)


def merged(recipes: list[Recipe]) -> Recipe:
    """The recipe of several coresets in one."""
    first, same = recipes[0], one_source(recipes)
    together = hashlib.blake2b("".join(recipe.fingerprint for recipe in recipes).encode(), digest_size=16).hexdigest()
    cost = first.cost
    for recipe in recipes[1:]:
        cost = cost + recipe.cost
    return replace(
        first,
        method=first.method if len({recipe.method for recipe in recipes}) == 1 else MERGED,
        fingerprint=first.fingerprint if same else together,
        data="+".join(dict.fromkeys(recipe.data for recipe in recipes)),
        cost=cost,
        origin=first.origin if same else None,
    )
