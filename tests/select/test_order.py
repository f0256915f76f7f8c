"""The order in which examples come must not matter to methods that draw nothing for each of them."""

import pytest
import torch

import attar
from attar.core import registry
from attar.select.balance import PerClass
from tests.known import generator
from tests.select.seen import cloud, shuffled

#: Random subsets and starts, random ties, trainings on shuffled batches.
CHANCE = {"uniform", "forgetting", "grand", "el2n", "k-means", "optimised-real"}
#: One pass over the examples in the order in which they come.
ONE_PASS = {"k-center-doubling", "sieve-streaming"}
#: Picks of one class depend on those of the others.
TOGETHER = {"glister", "glister-val"}


@pytest.mark.parametrize("name", sorted(set(attar.methods("select")) - CHANCE - ONE_PASS))
def test_shuffled_examples_give_the_same_picks(name: str) -> None:
    view, order = cloud(), torch.randperm(60, generator=generator(5))
    method = registry.build(name, {})
    first, second = (method.select(v, 10, generator(1)) for v in (view, shuffled(view, order)))
    assert order[second.indices].tolist() == first.indices.tolist()
    assert torch.allclose(first.scores, second.scores, rtol=1e-3, atol=1e-4)
    if first.weights is not None:
        assert second.weights is not None
        assert torch.allclose(first.weights, second.weights, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", sorted(set(attar.methods("select")) - CHANCE - TOGETHER))
def test_balanced_and_unbalanced_selection_rank_a_class_the_same_way(name: str) -> None:
    view = cloud()
    members = (view.y == 1).nonzero().flatten()
    method = registry.build(name, {})
    alone = members[method.select(view.of_class(1), 2, generator(1)).indices]
    sizes = [1, 2, 1]
    # The classes before draw too, so the stream is put where it stands when class 1 has its turn.
    gen = generator(1)
    method.select(view.of_class(0), 1, gen)
    turn = members[method.select(view.of_class(1), 2, gen).indices]
    shared = PerClass(method).share(view, sizes, generator(1)).indices[1:3]
    assert shared.tolist() == turn.tolist()
    if name not in {"giga", "frank-wolfe", "sparse-vi"}:
        assert shared.tolist() == alone.tolist()
