"""Stages divide the classes and nothing else."""

from dataclasses import replace

import pytest
import torch

from attar.continual.stages import allowed, by_class, by_set
from attar.core.errors import AttarError
from attar.data import Classes, Data, Split
from tests.continual.sets import split
from tests.known import images


def named(whole: Split, names: tuple[str, ...]) -> Split:
    parts = [replace(p, spec=replace(p.spec, target=Classes(names))) for p in (whole.train, whole.val, whole.test)]
    return Split(*parts)


def test_every_example_is_in_one_stage_under_the_name_of_its_class() -> None:
    whole = split(classes=6)
    stages = by_class(whole, 3, order=1)
    names = [name for stage in stages for name in stage.spec.target.names]
    assert sorted(names) == sorted(whole.spec.target.names)
    for part in ("train", "val", "test"):
        before: Data = getattr(whole, part)
        seen = [(name, row) for stage in stages for name, row in pairs(getattr(stage, part))]
        assert sorted(seen) == sorted(pairs(before))


def pairs(data: Data) -> list[tuple[str, tuple[float, ...]]]:
    names = [data.spec.target.names[label] for label in data.y.tolist()]
    return list(zip(names, map(tuple, data.x.tolist()), strict=True))


def test_the_order_of_the_classes_follows_its_seed() -> None:
    whole = split(classes=6)
    orders = [[stage.spec.target.names for stage in by_class(whole, 3, order)] for order in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_stages_that_do_not_divide_the_classes_are_refused_with_those_that_do() -> None:
    assert allowed(10) == [1, 2, 5]
    with pytest.raises(AttarError, match=r"10 classes cannot be divided into 3 stages .* from 1, 2, 5\.$"):
        by_class(split(classes=10), 3, 0)
    with pytest.raises(AttarError, match="at least two"):
        by_class(split(classes=10), 10, 0)


def test_several_sets_take_labels_by_name_and_the_transform_of_the_first() -> None:
    first, second = split(), split(seed=1)
    turned = named(second, tuple(reversed(second.spec.target.names)))
    one, other = by_set([first, turned])
    assert torch.equal(one.train.y, first.train.y)
    assert torch.equal(other.train.y, 3 - second.train.y)
    assert other.spec.target == first.spec.target
    numbered = by_set([first, named(second, ("0", "1", "2", "3"))])[1]
    assert torch.equal(numbered.train.y, second.train.y)


def test_sets_of_other_classes_or_shapes_are_refused() -> None:
    with pytest.raises(AttarError, match=r"has the classes class 0, .* and gaussians a, b, c, d: give data sets with"):
        by_set([split(), named(split(), ("a", "b", "c", "d"))])
    pixels = images(9)
    with pytest.raises(AttarError, match=r"shape \(6,\) and those of rows \(1, 8, 8\): give data sets of one shape"):
        by_set([split(classes=3), Split(pixels[:9], pixels[9:18], pixels[18:])])
