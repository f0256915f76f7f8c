"""The memory of class-incremental learning: the coresets of all stages so far as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import mean
from typing import Any

from attar.coreset import Coreset
from attar.data import Data
from attar.data.merge import merge

CURRICULUM = "unrolled"  #: the sampler that needs the examples of one reduction in their order


def joined(parts: Sequence[Coreset]) -> Coreset:
    """All coresets as one, whose classes are the union in the order of the stages.

    Numbers that were learnt with the examples are averaged: the step size (its logarithm) and options of the sampler.
    Steps that were learnt for the examples of one stage alone do not train on several: a network is trained in the
    usual way instead.
    """
    sizes = [part.step_size for part in parts if part.step_size is not None]
    step_size = exp(mean(map(log, sizes))) if sizes else None
    together = [replace(_trainable(part), step_size=step_size) for part in parts]
    found = together[0].merge(*together[1:])
    options = _averaged([part.recipe.sampler_options for part in together])
    return replace(found, recipe=replace(found.recipe, sampler_options=options))


def united(parts: Sequence[Coreset | Data], new: Data | None, loss: str) -> Data:
    """The examples of all stages so far and of the new one.

    Args:
        parts: What is in the memory.
        new: The data of the new stage, if any.
        loss: The loss that a network is trained with: labels that were learnt for another one become hard.
    """
    kept = [_labelled(part, loss) if isinstance(part, Coreset) else part for part in parts]
    return merge([*kept, *([] if new is None else [new])])


def _labelled(part: Coreset, loss: str) -> Data:
    same = part.recipe.training.loss == loss
    return part.data if same else replace(part.data, y=part.data.hard)


def _trainable(part: Coreset) -> Coreset:
    if part.recipe.sampler != CURRICULUM:
        return part
    return replace(part, recipe=replace(part.recipe, sampler="ensemble", sampler_options={}))


def _averaged(options: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first options, with the mean of every number that differs."""
    return {
        name: mean(one[name] for one in options) if isinstance(value, float) else value
        for name, value in options[0].items()
    }
