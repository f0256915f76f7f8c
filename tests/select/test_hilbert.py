"""Bayesian coresets: GIGA, Frank-Wolfe and sparse variational inference."""

from itertools import islice

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attar.nets import network
from attar.nets.train import Training
from attar.select import frank_wolfe, giga
from attar.select.balance import PerClass
from attar.select.contract import Selector
from attar.select.frank_wolfe import FrankWolfe
from attar.select.giga import GIGA
from attar.select.hilbert import embed, likelihoods
from attar.select.keep import SelectionWarning
from attar.select.nnls import nnls
from attar.select.sources import from_embeddings
from attar.select.sparse_vi import SparseVI, posterior
from attar.select.view import View
from tests.known import digits, generator
from tests.select.seen import cloud, exact

of_methods = pytest.mark.parametrize("method", [GIGA(), FrankWolfe(), SparseVI()])


def vectors(n: int = 300, size: int = 12, seed: int = 0) -> Tensor:
    gen = generator(seed)
    return torch.randn(n, size, generator=gen, dtype=torch.float64) + 0.3


def test_a_case_worked_by_hand() -> None:
    # The sum is (3, 3). Its direction is that of (1, 1), which alone is enough: weight 3, nothing left. Without it,
    # (2, 1) is nearest (cosine 3/√10); with (0, 1) beside it, 1.5 and 1.5 give all.
    found = next(giga.rounds(torch.tensor([[1.0, 1.0], [2.0, 1.0], [0.0, 1.0]]).double()))
    assert found.pick == 0
    assert found.weights.tolist() == pytest.approx([3, 0, 0])
    assert found.error == pytest.approx(0, abs=1e-7)
    first, second = islice(giga.rounds(torch.tensor([[2.0, 1.0], [0.0, 1.0]]).double()), 2)
    assert (first.pick, second.pick) == (0, 1)
    assert second.weights.tolist() == pytest.approx([1, 1])
    assert second.error == pytest.approx(0, abs=1e-7)


def test_a_case_of_frank_wolfe_worked_by_hand() -> None:
    # Lengths are 3 and 1, so the vertices are (4, 0) and (0, 4), and the sum is (3, 1). The first vertex is best
    # aligned with it and leaves (−1, 1); a quarter of the way from there to the second leaves nothing.
    first, second = islice(frank_wolfe.rounds(torch.tensor([[3.0, 0.0], [0.0, 1.0]]).double()), 2)
    assert (first.pick, second.pick) == (0, 1)
    assert first.weights.tolist() == pytest.approx([4 / 3, 0])
    assert first.error == pytest.approx((2 / 10) ** 0.5)
    assert second.weights.tolist() == pytest.approx([1, 1])
    assert second.error == pytest.approx(0, abs=1e-12)


def test_a_case_of_sparse_vi_worked_by_hand() -> None:
    # Four copies of one example: whatever the draws, weight 4 on one of them explains everything. Three steps go 1/2,
    # 1/3 and 1/4 of what is left of the way there, so to weight 3, and a quarter stays unexplained.
    zeros = torch.zeros(4, dtype=torch.int64)
    with pytest.warns(SelectionWarning, match="Every example has the same features"):
        one = SparseVI().select(from_embeddings(torch.ones(4, 2), zeros, torch.zeros(4, 2)), 1, generator())
    assert one.weights is not None
    assert one.weights.tolist() == pytest.approx([3], rel=1e-5)
    assert one.scores.tolist() == pytest.approx([0.25], rel=1e-5)
    # Three copies and another example: a second copy would explain less of what is missing than the other does, which
    # goes to 3/4 of the weight 1 that it stands for.
    x = torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    two = SparseVI(draws=500).select(from_embeddings(x, zeros, torch.zeros(4, 2)), 2, generator())
    assert two.indices.tolist() == [0, 3]
    assert two.weights is not None
    assert float(two.weights[1]) == pytest.approx(0.75, rel=1e-5)


@pytest.mark.parametrize("way", [giga, frank_wolfe])
def test_errors_are_what_the_weights_leave(way: object) -> None:
    points = vectors()
    total = points.sum(0)
    for found in islice(way.rounds(points), 40):  # type: ignore[attr-defined]
        left = (found.weights @ points - total).norm() / total.norm()
        assert found.error == pytest.approx(float(left), rel=1e-6, abs=1e-9)
        assert bool((found.weights >= 0).all())


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_giga_falls_geometrically(seed: int) -> None:
    errors = torch.tensor([found.error for found in islice(giga.rounds(vectors(seed=seed)), 201)])
    assert bool((errors.diff() <= 1e-12).all())
    assert bool((errors[40::40] < errors[:-40:40] / 2).all())  # by half in 40 rounds, again and again
    assert float(errors[-1]) < 1e-3


def test_the_error_of_frank_wolfe_never_grows_and_falls_more_slowly() -> None:
    points = vectors(size=60)
    slow = torch.tensor([found.error for found in islice(frank_wolfe.rounds(points), 200)])
    quick = torch.tensor([found.error for found in islice(giga.rounds(points), 200)])
    assert bool((slow.diff() <= 1e-12).all())
    assert float(quick[-1]) < float(slow[-1])


def test_frank_wolfe_stays_in_its_polytope() -> None:
    points = vectors()
    norms = points.norm(dim=1)
    for found in islice(frank_wolfe.rounds(points), 30):
        assert float(found.weights @ norms) == pytest.approx(float(norms.sum()))


def test_likelihoods_are_those_of_the_moved_last_layer() -> None:
    view = exact()
    shifts = torch.randn(4, 3, 6, generator=generator(), dtype=torch.float64)
    found = likelihoods(view, shifts)
    for draw, shift in zip(found.T, shifts, strict=True):
        theta = view.theta.index_put((view.network.head_index(),), shift, accumulate=True)
        logits = view.network(theta, view.data.x)
        assert torch.allclose(draw, -cross_entropy(logits, view.data.y, reduction="none"), atol=1e-10)


def test_in_float32_vectors_are_those_of_float64_as_far_as_the_sum_of_all_can_tell() -> None:
    single = cloud(200)
    double = View(single.data, single.network, Training(), generator(), theta=torch.zeros(single.network.size).double())
    double.features, double.logits = single.features.double(), 4 * single.logits.double()  # up to margins of 50
    single.logits = 4 * single.logits
    exact_ones, ours = (embed(view, 100, 1.0, generator()) for view in (double, single))
    assert float((ours - exact_ones).norm(dim=1).max()) < 1e-5 * float(exact_ones.sum(0).norm())


def test_inner_products_are_covariances_of_log_likelihoods() -> None:
    points = embed(cloud(20), 500, 1.0, generator())
    assert points.shape == (20, 500)
    assert torch.allclose(points.sum(1), torch.zeros(20).double(), atol=1e-9)
    shifted = likelihoods(cloud(20), _draws(500))
    assert torch.allclose(points @ points.T, torch.cov(shifted, correction=0), atol=1e-8)


def _draws(draws: int) -> Tensor:
    precision = cloud(20).curvatures.double().sum() + 1
    return torch.randn(draws, *precision.shape, generator=generator(), dtype=torch.float64) / precision.sqrt()


@of_methods
def test_the_log_likelihood_is_approximated_better_than_by_a_random_subset(method: Selector) -> None:
    rough = cloud(200)  # whose own logits are no optimum, as the centre of a posterior is
    view = from_embeddings(rough.features.log(), rough.y, training=Training(steps=300, lr=0.2, weight_decay=0.005))
    fresh = embed(view, 400, 1.0, generator(99))  # under draws that the method has not seen
    total = fresh.sum(0)
    selection = method.select(view, 20, generator())
    assert selection.weights is not None
    ours = float((selection.weights.double() @ fresh[selection.indices] - total).norm())
    random = []
    for seed in range(20):
        draw = torch.randperm(200, generator=generator(seed))[:20]
        random.append(float((10 * fresh[draw].sum(0) - total).norm()))
    assert ours < min(random)


def test_giga_takes_the_example_that_brings_it_nearest() -> None:
    points = vectors(40)
    total, now = points.sum(0), torch.zeros(12, dtype=torch.float64)
    for found in islice(giga.rounds(points), 15):
        best = min(_nearest(total, now, point) for point in points)
        assert found.error * float(total.norm()) == pytest.approx(best, rel=1e-9)
        now = found.weights @ points


def _nearest(total: Tensor, now: Tensor, point: Tensor) -> float:
    """How near a combination of two vectors, neither taken away, comes to a third."""
    basis = torch.stack([now, point])
    weights = nnls(basis @ basis.T + 1e-12 * torch.eye(2).double(), basis @ total)
    return float((weights @ basis - total).norm())


def test_the_posterior_of_sparse_vi_is_the_best_newton_step_along_the_way_of_the_hessian_s_diagonal() -> None:
    view, picks, weights = exact(), torch.tensor([1, 4]), torch.tensor([2.0, 3.0]).double()
    head = torch.zeros(3, 6, dtype=torch.float64)

    def minus_log(shift: Tensor) -> Tensor:
        return shift.square().sum() * 0.7 / 2 - weights @ likelihoods(view, shift[None])[picks, 0]

    slope = torch.func.grad(minus_log)(head)
    hessian = torch.func.jacrev(torch.func.grad(minus_log))(head).reshape(18, 18)
    mean, precision = posterior(view, picks, weights, 0.7)
    assert torch.allclose(precision.flatten(), hessian.diagonal(), atol=1e-10)
    way = -(slope / precision).flatten()
    best = -(slope.flatten() @ way) / (way @ hessian @ way)
    assert torch.allclose(mean.flatten(), best * way, atol=1e-10)


@pytest.mark.parametrize(("steps", "times"), [(5, 5), (100, 1.5)])
def test_the_weights_of_sparse_vi_stand_for_about_as_many_examples_as_there_are(steps: int, times: float) -> None:
    # A whole step by the diagonal alone overshoots until every pick is certain, and weights explode into NaN.
    view = digits_view(steps)
    selection = PerClass(SparseVI(draws=50)).select(view, 4, generator())
    assert selection.weights is not None
    assert bool(torch.isfinite(selection.scores).all())
    assert 1 / times < float(selection.weights.sum()) / len(view) < times


def digits_view(steps: int) -> View:
    data = digits().train
    return View(data, network("mlp-d1w32", data.shape, 10), Training(steps=steps, batch=64), generator())


@of_methods
def test_a_network_that_fits_everything_gives_equal_weights_with_a_warning(method: Selector) -> None:
    y = torch.arange(12) % 2
    fitted = from_embeddings(torch.randn(12, 3, generator=generator()), y, 5000 * torch.eye(2)[y])
    with pytest.warns(SelectionWarning, match="every example with certainty"):
        selection = method.select(fitted, 4, generator())
    assert selection.weights is not None
    assert selection.weights.tolist() == [3, 3, 3, 3]  # so that training on it goes on


def test_an_example_that_says_nothing_is_never_a_vertex_of_frank_wolfe() -> None:
    c, s = 0.9, 0.19**0.5
    vectors = torch.tensor([[1, 0], [c, s], [c, -s], [0, 0]], dtype=torch.float64)
    for _, found in zip(range(20), frank_wolfe.rounds(vectors), strict=False):
        assert found.pick != 3
        assert torch.isfinite(found.weights).all()


@of_methods
def test_weights_are_never_negative_and_picks_never_twice(method: Selector) -> None:
    selection = method.select(cloud(), 60, generator())
    assert selection.weights is not None
    assert bool((selection.weights >= 0).all())
    assert sorted(selection.indices.tolist()) == list(range(60))


def test_where_fewer_are_enough_the_rest_has_no_weight() -> None:
    view = cloud(40)
    selection = GIGA(draws=3).select(view, 30, generator())  # in the plane that three centred draws leave
    assert selection.weights is not None
    assert len(selection.indices.unique()) == 30
    assert int((selection.weights > 0).sum()) < 10
    assert float(selection.scores[-1]) < 1e-6
