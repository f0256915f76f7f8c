"""The stages of class-incremental learning: the classes of one data set in groups, or several data sets in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from attar.core.errors import AttarError
from attar.data import Classes, Data, Spec, Split


def allowed(classes: int) -> list[int]:
    """The numbers of stages that divide this many classes into groups of at least two."""
    return [stages for stages in range(1, classes // 2 + 1) if classes % stages == 0]


def by_class(split: Split, stages: int, order: int) -> list[Split]:
    """One stage for each group of classes.

    Args:
        split: The data; its transform is fitted on all classes and stays.
        stages: How many.
        order: Seed of the order of the classes.
    """
    names = split.spec.target.names
    if stages not in allowed(len(names)):
        known = ", ".join(map(str, allowed(len(names))))
        raise AttarError(
            f"{len(names)} classes cannot be divided into {stages} stages of equally many, at least two, classes: "
            f"choose the number of stages from {known}."
        )
    gen = torch.Generator().manual_seed(order)
    mixed = [names[place] for place in torch.randperm(len(names), generator=gen).tolist()]
    each = len(names) // stages
    groups = [Classes(tuple(mixed[start : start + each])) for start in range(0, len(names), each)]
    return [_mapped(split, group) for group in groups]


def by_set(splits: Sequence[Split]) -> list[Split]:
    """One stage for each data set, with the classes and the transform of the first."""
    first = splits[0]
    for split in splits[1:]:
        _require_same(first.spec, split.spec)
    return [_mapped(_renamed(split, first.spec.target), first.spec.target, first.spec) for split in splits]


def _require_same(ours: Spec, theirs: Spec) -> None:
    if type(ours.element) is not type(theirs.element) or ours.element.shape != theirs.element.shape:
        raise AttarError(
            f"Examples of {ours.name} have shape {ours.element.shape} and those of {theirs.name} "
            f"{theirs.element.shape}: give data sets of one shape."
        )
    if set(ours.target.names) != set(theirs.target.names) and not ours.target.matches(theirs.target):
        raise AttarError(
            f"{ours.name} has the classes {_listed(ours.target)} and {theirs.name} {_listed(theirs.target)}: give data "
            "sets with the same classes, or one data set whose classes are divided into stages."
        )


def _listed(target: Classes) -> str:
    return ", ".join(target.names[:5]) + (", ..." if len(target) > 5 else "")


def _renamed(split: Split, target: Classes) -> Split:
    """The same data under the other set's class names, if one of both has only numbers."""
    if set(split.spec.target.names) == set(target.names):
        return split
    parts = [replace(part, spec=replace(part.spec, target=target)) for part in (split.train, split.val, split.test)]
    return replace(split, train=parts[0], val=parts[1], test=parts[2])


def _mapped(split: Split, target: Classes, like: Spec | None = None) -> Split:
    train, val, test = (only(part, target, like) for part in (split.train, split.val, split.test))
    return Split(train, val, test)


def only(data: Data, target: Classes, like: Spec | None = None) -> Data:
    """The examples of some classes, labelled in the order of ``target``, and in the transform of ``like``."""
    places = torch.full((data.classes,), -1, device=data.device)
    places[data.spec.target.places(target.names)] = torch.arange(len(target), device=data.device)
    labels = places[data.hard]
    picked = data[labels >= 0]
    picked = replace(picked, y=labels[labels >= 0], spec=replace(data.spec, target=target))
    return picked if like is None else picked.transformed(like.transform)
