import pytest
import torch

from attar.infer.swag import SWAG, Moments
from attar.nets import network
from attar.nets.train import Training, train
from tests.known import gaussians, generator, slope

DATA = gaussians(8)
NET = network("mlp-d1w5", DATA.shape, 3)
BUDGET = Training(steps=100)


def iterates(n: int = 30, p: int = 4) -> torch.Tensor:
    """Correlated and skewed, so that neither the order nor the sign of anything is free."""
    steps = torch.rand(n, p, generator=generator(), dtype=torch.float64).square()
    return steps.cumsum(0) @ torch.tensor([[1.0, 0.5, 0, 0], [0, 1, 0, 0], [0, 0, 1, -2], [0, 0, 0, 1]]).double()


def test_draws_have_the_mean_and_covariance_of_the_equation() -> None:
    rows, n = iterates(), 200_000
    drawn = Moments.of(rows, rank=10).sample(n, generator())
    deviations = rows[-10:] - rows.mean(0)
    covariance = torch.diag(rows.var(0)) / 2 + deviations.T @ deviations / (2 * 9)
    error = (covariance.diagonal() / n).sqrt()
    assert ((drawn.mean(0) - rows.mean(0)).abs() < 4 * error).all()
    scale = covariance.diagonal().sqrt()
    assert ((drawn.T.cov() - covariance).abs() < 4 * (2 / n) ** 0.5 * torch.outer(scale, scale)).all()


def test_with_all_deviations_the_variances_are_those_of_the_iterates_and_covariances_half_of_them() -> None:
    rows = iterates()
    drawn = Moments.of(rows, rank=len(rows)).sample(200_000, generator()).T.cov()
    expected = (rows.T.cov() + torch.diag(rows.var(0))) / 2
    assert torch.allclose(drawn, expected, rtol=0.03, atol=0.02 * expected.max().item())
    assert torch.allclose(expected.diagonal(), rows.var(0))


def test_the_rank_may_exceed_the_iterates() -> None:
    assert len(Moments.of(iterates(5), rank=20).deviations) == 5


def test_draws_take_turns_over_the_modes() -> None:
    posterior = SWAG(modes=3, rate=1e-4, iterates=3, every=1).infer(DATA, NET, BUDGET, 7, generator())
    trained = train(NET, DATA, BUDGET, generator(), 3)
    assert torch.cdist(posterior.theta, trained).argmin(1).tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_iterates_of_a_small_set_differ_by_the_noise_of_minibatches() -> None:
    # Without that noise, SGD from one place would go one way, whatever the generator.
    trained = train(NET, DATA, BUDGET, generator())
    for data in (DATA, DATA[:2]):
        first, second = (SWAG(iterates=2)._collect(trained, NET, data, BUDGET, generator(seed)) for seed in (0, 1))
        assert not torch.equal(first[-1], second[-1])


def test_iterates_are_those_of_plain_descent_with_a_constant_rate() -> None:
    # Copies of one example: every minibatch has the gradient of all.
    same, decay = DATA[torch.zeros(6, dtype=torch.int64)], BUDGET.weight_decay
    theta = NET.init(generator())[None]
    found = SWAG(iterates=3, every=2, rate=0.1)._collect(theta, NET, same, BUDGET, generator())
    expected = []
    for step in range(1, 7):
        theta = theta - 0.1 * (slope(NET, theta[0], same) + decay * theta)
        if step % 2 == 0:
            expected.append(theta)
    assert torch.allclose(torch.cat(found), torch.cat(expected), atol=1e-6)


def test_it_starts_where_it_is_told_to() -> None:
    start = torch.stack([NET.init(generator(seed)) for seed in (5, 6)])
    short = Training(steps=1, lr=1e-6)
    posterior = SWAG(modes=2, rate=1e-6, iterates=2, every=1).infer(DATA, NET, short, 2, generator(), start)
    assert torch.allclose(posterior.theta, start, atol=1e-3)


@pytest.mark.parametrize("modes", [1, 3])
def test_every_draw_classifies_what_it_was_trained_on(modes: int) -> None:
    posterior = SWAG(modes=modes).infer(DATA, NET, BUDGET, 6, generator())
    for theta in posterior.theta:
        assert (NET(theta, DATA.x).argmax(1) == DATA.y).double().mean().item() > 0.95
