import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.select.gradmatch import GradMatch, GradMatchVal
from attar.select.nnls import nnls
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import generator
from tests.select.seen import cloud, line


def unmatched(view: View, indices: Tensor, weights: Tensor, target: Tensor) -> float:
    return float((target - view.gradients[indices].sum(weights)).norm() / target.norm())


def test_a_case_worked_by_hand() -> None:
    # Up to a factor, the gradients are (0, 1), (0, 1), (2, 1): their sum is (2, 3). Inner products with it are 3, 3
    # and 7, so the third is taken; its weight 7/5 leaves (-0.8, 1.6). Then the first: weights 1 and 2 leave nothing.
    one, two = (GradMatch(penalty=1e-9).select(line(0, 0, 2), size, generator()) for size in (1, 2))
    assert one.indices.tolist() == [2]
    assert two.indices.tolist() == [2, 0]
    assert one.weights is not None
    assert two.weights is not None
    assert one.weights.tolist() == pytest.approx([1.4])
    assert two.weights.tolist() == pytest.approx([1, 2])
    assert two.scores.tolist() == pytest.approx([(0.8**2 + 1.6**2) ** 0.5 / 13**0.5, 0], abs=1e-6)


def test_the_penalty_shrinks_the_weights() -> None:
    # One pick of (2, 1) with λ equal to the mean of the squares 1, 1 and 5: the weight is 7 / (5 + 7/3).
    selection = GradMatch(penalty=1).select(line(0, 0, 2), 1, generator())
    assert selection.weights is not None
    assert selection.weights.tolist() == pytest.approx([7 / (5 + 7 / 3)])


def test_the_gradient_is_matched_far_better_than_by_a_random_subset_with_the_best_weights() -> None:
    view = cloud(200)
    target = view.gradients.sum()
    selection = GradMatch(penalty=1e-6).select(view, 8, generator())
    assert selection.weights is not None
    ours = unmatched(view, selection.indices, selection.weights, target)
    assert ours == pytest.approx(float(selection.scores[-1]), abs=1e-4)
    random = []
    for seed in range(20):
        draw = torch.randperm(200, generator=generator(seed))[:8]
        own = view.gradients[draw].double()
        weights = nnls(own.gram(own) + 1e-9 * torch.eye(8).double(), own.dot(target.double()))
        random.append(unmatched(view, draw, weights.float(), target))
    assert ours < min(random)
    assert ours < sorted(random)[10] / 2


def test_what_is_left_never_grows_and_weights_are_never_negative() -> None:
    selection = GradMatch(penalty=1e-6).select(cloud(), 30, generator())
    assert selection.weights is not None
    assert bool((selection.scores.diff() < 1e-5).all())
    assert bool((selection.weights >= 0).all())


def test_a_case_of_gradmatch_val_worked_by_hand() -> None:
    # The gradients are (0, 1), (0, 1), (2, 1) again, but the one to match is three times (1, 1). The third has the
    # largest inner product; its weight 9/5 leaves (−0.6, 1.2). With the first beside it, 3/2 and 3/2 leave nothing.
    zeros = torch.zeros(3, dtype=torch.int64)
    view = from_embeddings(torch.tensor([[0.0], [0.0], [2.0]]), zeros, torch.zeros(3, 2), validation=line(1))
    one, two = (GradMatchVal(penalty=1e-9).select(view, size, generator()) for size in (1, 2))
    assert two.indices.tolist() == [2, 0]
    assert one.weights is not None
    assert two.weights is not None
    assert one.weights.tolist() == pytest.approx([1.8])
    assert two.weights.tolist() == pytest.approx([1.5, 1.5])
    assert two.scores.tolist() == pytest.approx([(0.6**2 + 1.2**2) ** 0.5 / 18**0.5, 0], abs=1e-6)


def test_gradmatch_val_matches_the_validation_gradient_instead() -> None:
    view = cloud(200)
    target = view.validation.gradients.mean() * 200
    val, own = (method.select(view, 10, generator()) for method in (GradMatchVal(), GradMatch()))
    assert val.weights is not None
    assert own.weights is not None
    assert unmatched(view, val.indices, val.weights, target) < unmatched(view, own.indices, own.weights, target)


def test_by_class_the_validation_examples_of_that_class_are_matched() -> None:
    view = cloud(200)
    of_class, held = view.of_class(1), view.validation.data.hard == 1
    assert torch.equal(of_class.validation.features, view.validation.features[held])


def test_without_a_validation_set_the_remedy_is_named() -> None:
    with pytest.raises(AttarError, match="needs a validation set: reduce a Split"):
        GradMatchVal().select(line(0, 1, 2), 1, generator())


@pytest.mark.parametrize("seed", range(20))
def test_nnls_meets_the_conditions_of_an_optimum(seed: int) -> None:
    gen = generator(seed)
    basis = torch.randn(12, 15, generator=gen, dtype=torch.float64)
    gram = basis.T @ basis + 0.01 * torch.eye(15).double()
    target = basis.T @ torch.randn(12, generator=gen, dtype=torch.float64)
    warm = torch.rand(15, generator=gen, dtype=torch.float64).round()
    for start in (None, warm):
        w = nnls(gram, target, start)
        slope = target - gram @ w
        assert bool((w >= 0).all())
        assert float(slope[w > 0].abs().max()) < 1e-9
        assert float(slope.max()) < 1e-9


def test_nnls_gives_nothing_where_nothing_helps() -> None:
    assert nnls(torch.eye(3).double(), -torch.ones(3).double()).tolist() == [0, 0, 0]
    assert nnls(torch.eye(3).double(), torch.zeros(3).double()).tolist() == [0, 0, 0]
