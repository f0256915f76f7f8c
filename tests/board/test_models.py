import torch

from attar.board.models import LogisticProblem, stream
from attar.data import Data
from attar.truth import Gaussian

PROBLEM = LogisticProblem(2, 80, 1.0)


def test_the_data_is_the_same_every_time_and_its_parts_differ() -> None:
    one, two = PROBLEM.split(), PROBLEM.split()
    assert torch.equal(one.train.x, two.train.x)
    assert not torch.equal(one.train.x, one.test.x)
    assert (len(one.train), one.classes, one.shape) == (80, 2, (2,))


def test_examples_without_weights_stand_for_all_in_equal_parts() -> None:
    few = PROBLEM.split().train[:8]
    weights = PROBLEM.counted(few).weights
    assert weights is not None
    assert weights.tolist() == [10.0] * 8
    own = Data(few.x, few.y, torch.arange(8.0), few.spec)
    assert PROBLEM.counted(own).weights.tolist() == list(range(8))  # type: ignore[union-attr]


def test_chains_find_the_mode_and_the_curvature_of_the_posterior() -> None:
    train = PROBLEM.split().train
    walked = PROBLEM.walk(train, 800, stream(0))
    assert walked.rhat < 1.05
    potential, at = PROBLEM.model.potential(train), torch.zeros(2).double().requires_grad_()
    for _ in range(10):  # Newton
        (slope,) = torch.autograd.grad(potential.value(at[None])[0], at)
        hessian = torch.autograd.functional.hessian(lambda t: potential.value(t[None])[0], at.detach())
        at = (at - torch.linalg.solve(hessian, slope)).detach().requires_grad_()
    found, width = Gaussian.of(walked.flat), torch.linalg.inv(hessian).diagonal().sqrt()
    assert bool(((found.mean - at.detach()).abs() < 0.5 * width).all())
    assert torch.allclose(found.covariance.diagonal().sqrt(), width, rtol=0.25)


def test_the_predictive_averages_over_draws() -> None:
    test = PROBLEM.split().test
    said = PROBLEM.predict(torch.zeros(3, 2).double(), test)
    assert torch.allclose(said, torch.full_like(said, 0.5))
