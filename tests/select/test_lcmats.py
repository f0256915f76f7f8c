"""LCMat-S and AdaCore, which look at curvature."""

import pytest
import torch
from torch import Tensor

from attar.select.adacore import AdaCore
from attar.select.balance import PerClass
from attar.select.contract import Selector
from attar.select.craig import CRAIG
from attar.select.facility import FacilityLocation
from attar.select.lcmats import CurvedDistance, LCMatS
from attar.select.metrics import WeighedGradientDistance
from attar.select.sources import from_embeddings
from attar.select.uniform import Uniform
from attar.select.view import View
from tests.known import generator
from tests.select.seen import cloud, exact, line


def test_a_distance_worked_by_hand() -> None:
    # Gradients of h = 1 and 3 differ by 2 / √2. With p = ½ the curvature is ¼ of [h², 1] in both classes, so two
    # coordinates differ by 8 / 4 and two do not: ½ρ(2 + 2). Of these four, the two that vary are matched first.
    for rho in (0.0, 0.1, 0.5):
        for dimensions, varying in ((1, 1), (2, 2), (100, 2)):
            rows = CurvedDistance(line(1, 3), rho, dimensions).rows(torch.tensor([0]))
            assert rows[0].tolist() == pytest.approx([0, 2**0.5 + rho / 2 * 2 * varying], rel=1e-6)


def test_without_curvature_it_is_craig() -> None:
    view = cloud()
    ours, craig = LCMatS(rho=0, weighted=True).select(view, 12, generator()), CRAIG().select(view, 12, generator())
    assert torch.equal(ours.indices, craig.indices)
    assert ours.weights is not None
    assert craig.weights is not None
    assert torch.equal(ours.weights, craig.weights)
    assert LCMatS().select(view, 12, generator()).weights is None


def test_curvature_changes_what_is_picked() -> None:
    view = cloud()
    assert not torch.equal(
        LCMatS(rho=5).select(view, 12, generator()).indices, CRAIG().select(view, 12, generator())[0]
    )


def test_the_matched_coordinates_are_those_of_largest_variance() -> None:
    view = exact(40)
    width = view.curvatures.mean().numel()
    built = view.curvatures.columns(torch.arange(width))
    widest = built.var(0).argsort(descending=True)[:4]
    rows = CurvedDistance(view, 0.3, 4).rows(torch.tensor([5]))
    gradients = view.gradients.columns(torch.arange(width))
    expected = (gradients - gradients[5]).norm(dim=1) + 0.15 * (built - built[5])[:, widest].abs().sum(1)
    assert torch.allclose(rows[0], expected, atol=1e-7)


@pytest.mark.parametrize("method", [LCMatS(), CRAIG(), AdaCore()])
def test_every_example_has_a_nearer_pick_than_in_a_random_subset(method: Selector) -> None:
    view = cloud(200)
    metric = {
        LCMatS: CurvedDistance(view, 0.1, 100),
        CRAIG: CurvedDistance(view, 0, 1),
        AdaCore: WeighedGradientDistance(view.gradients, 1 / _damped(view)),
    }[type(method)]  # type: ignore[index]

    def ways(picks: Tensor) -> float:
        return float(metric.rows(picks).amin(0).sum())

    ours = ways(method.select(view, 10, generator()).indices)
    assert ours < min(ways(torch.randperm(200, generator=generator(s))[:10]) for s in range(20))
    assert FacilityLocation(metric).near.min() >= metric.rows(torch.arange(200)).max()


def _damped(view: View) -> Tensor:
    diagonal = view.curvatures.mean()
    return diagonal + 0.1 * diagonal.mean()


def gap(view: View, picks: Tensor, weights: Tensor, rho: float) -> float:
    """Eq. 4: how much more the losses of all and of the picked can differ within ``rho`` of the last layer."""
    gen = generator(9)
    shape = view.gradients.mean().shape
    ways = torch.randn(150, *shape, generator=gen)
    worst = view.gradients.mean() - view.gradients[picks].sum(weights) / weights.sum()
    ways = torch.cat([ways, worst[None], -worst[None]])  # to first order the worst that there is
    ways = rho * ways / ways.flatten(1).norm(dim=1)[:, None, None]
    with_one = torch.cat([view.features, torch.ones(len(view), 1)], 1)

    def difference(shift: Tensor) -> Tensor:
        losses = torch.nn.functional.cross_entropy(view.logits + with_one @ shift.T, view.y, reduction="none")
        return (losses.mean() - (weights * losses[picks]).sum() / weights.sum()).abs()

    here = difference(torch.zeros(shape))
    return max(float(difference(way) - here) for way in ways) / rho


#: Clouds whose every class is large enough to be selected from.
ROOMY = [seed for seed in range(20) if int(torch.bincount(cloud(300, seed=seed).y, minlength=3).min()) >= 20][:3]


@pytest.mark.parametrize("rho", [0.1, 0.5])
@pytest.mark.parametrize("seed", ROOMY)
def test_with_weights_the_loss_curvature_gap_is_below_that_of_weighted_random_subsets(rho: float, seed: int) -> None:
    view = cloud(300, seed=seed)
    counts = torch.bincount(view.y)
    selection = PerClass(LCMatS(rho=rho, weighted=True)).select(view, 8, generator())
    assert selection.weights is not None
    ours = gap(view, selection.indices, selection.weights, rho)
    draws = [PerClass(Uniform()).select(view, 8, generator(s)).indices for s in range(15)]
    random = [gap(view, draw, counts[view.y[draw]] / 8, rho) for draw in draws]  # each stands for its class
    assert ours < sorted(random)[7]


def test_hutchinson_s_estimate_of_the_curvature_goes_to_the_diagonal_that_adacore_uses() -> None:
    view = exact(20)
    with_one = torch.cat([view.features, torch.ones(20, 1).double()], 1)

    def loss(head: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(with_one @ head.T, view.y)

    head = torch.cat([view.network.head(view.theta)[0], view.network.head(view.theta)[1][:, None]], 1)
    gen, total, probes = generator(), torch.zeros_like(head), 2000
    for _ in range(probes):
        z = torch.randint(2, head.shape, generator=gen).double() * 2 - 1
        total += z * torch.autograd.functional.hvp(loss, head, z)[1]
    exact_diagonal = view.curvatures.mean()
    assert torch.allclose(total / probes, exact_diagonal, atol=float(exact_diagonal.max()) / 10)


def test_where_curvature_is_the_same_everywhere_adacore_picks_as_craig_does() -> None:
    view = line(1, -1, 1, 1, -1)
    assert torch.equal(AdaCore().select(view, 3, generator())[0], CRAIG().select(view, 3, generator())[0])


def test_a_case_of_adacore_worked_by_hand() -> None:
    # Mean squares of the features are 1.9 and 0.1, of the bias 1, so D is (2, 0.2, 1.1) in units of its mean, and after
    # D⁻¹ the examples lie at (1.5, 0), (¼, 0), (−¼, 0), (0, ±2.5). The second has the shortest ways, 1.25 + 0.5 +
    # 2·√6.3125; then the fourth saves √6.3125, the fifth as much, the first only 1.25. Without D⁻¹ the first would come
    # second. Ways are 1/√2 of those, as gradients are ½ of [h, 1] in each of two classes.
    x = torch.tensor([[3, 0], [0.5, 0], [-0.5, 0], [0, 0.5], [0, -0.5]])
    view = from_embeddings(x, torch.zeros(5, dtype=torch.int64), torch.zeros(5, 2))
    selection = AdaCore(smoothing=0.1, weighted=True).select(view, 4, generator())
    assert selection.indices.tolist() == [1, 3, 4, 0]
    assert selection.scores[1:].tolist() == pytest.approx([way / 2**0.5 for way in (6.3125**0.5, 6.3125**0.5, 1.25)])
    assert selection.weights is not None
    assert selection.weights.tolist() == [2, 1, 1, 1]
    assert CRAIG().select(view, 2, generator()).indices.tolist() == [1, 0]
