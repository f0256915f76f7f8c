from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attar.data import Data, Mapped
from attar.data.augment import jitter
from attar.data.batches import Minibatches
from tests.known import gaussians, generator, images

DATA = gaussians(4)


def test_a_set_that_fits_into_a_batch_is_one_batch_for_all() -> None:
    found = Minibatches(DATA, 12).draw(3, generator())
    assert isinstance(found, Data)
    assert torch.equal(found.x, DATA.x)


def test_every_network_has_random_examples_of_its_own_and_none_twice() -> None:
    batches = Minibatches(DATA, 5).draw(3, generator())
    assert isinstance(batches, list)
    drawn = [[(DATA.x == x).all(1).nonzero().item() for x in batch.x] for batch in batches]
    assert all(len(set(places)) == 5 for places in drawn)
    assert len({tuple(sorted(places)) for places in drawn}) > 1
    assert all(torch.equal(batch.y, DATA.y[places]) for batch, places in zip(batches, drawn, strict=True))


def test_weights_are_relative_to_the_mean_of_the_whole_set() -> None:
    weights = torch.rand(12, generator=generator(1))
    data = replace(DATA, weights=5 * weights)
    (batch,) = Minibatches(data, 3).take(torch.tensor([[2, 7, 9]]), generator())
    assert batch.weights is not None
    assert torch.allclose(batch.weights, (weights / weights.mean())[[2, 7, 9]])
    whole = Minibatches(data, 99).draw(1, generator())
    assert isinstance(whole, Data)
    assert whole.weights is not None
    assert torch.allclose(whole.weights, data.relative)
    assert data.relative.mean().item() == pytest.approx(1)


def test_named_examples_come_in_order_and_augmented_by_the_generator() -> None:
    data, index = images(4), torch.tensor([[3, 1], [0, 3]])
    found = Minibatches(data, 2, "flip-crop").take(index, generator(5))
    wanted = jitter("flip-crop", data.x[index].flatten(0, 1), generator(5))
    assert torch.equal(torch.cat([batch.x for batch in found]), wanted)
    assert [batch.y.tolist() for batch in found] == data.y[index].tolist()


def test_a_set_with_augmentation_is_drawn_even_if_it_fits() -> None:
    found = Minibatches(images(2), 99, "flip").draw(2, generator())
    assert isinstance(found, list)
    assert [len(batch) for batch in found] == [6, 6]


@pytest.mark.parametrize("size", [5, 99])
def test_a_set_in_a_file_gives_the_same_batches(tmp_path: Path, size: int) -> None:
    np.save(tmp_path / "x.npy", DATA.x.numpy())
    here, there = (Minibatches(data, size).draw(2, generator()) for data in (DATA, Mapped(tmp_path / "x.npy", DATA.y)))
    pairs = [(here, there)] if isinstance(here, Data) else zip(here, there, strict=True)
    for a, b in pairs:
        assert isinstance(a, Data)
        assert isinstance(b, Data)
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
