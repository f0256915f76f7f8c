from typing import Any

import pytest
import torch
from torch import Tensor

from attar.nets.learner import SGD, Adam, Learner, State
from tests.known import generator

LEARNERS = [SGD(0.1), SGD(0.1, 0.9, 0.01), Adam(0.05), Adam(0.05, (0.8, 0.99), 1e-6, 0.01)]
of_learners = pytest.mark.parametrize("learner", LEARNERS)


def start(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator())


def slopes(count: int, *shape: int) -> list[Tensor]:
    gen = generator(1)
    return [torch.randn(*shape, generator=gen) * 10 ** float(k - 2) for k in range(count)]


def theirs(learner: Learner, theta: Tensor) -> torch.optim.Optimizer:
    match learner:
        case SGD(lr=float(lr), momentum=momentum, weight_decay=decay):
            return torch.optim.SGD([theta], lr, momentum, weight_decay=decay)
        case Adam(lr=float(lr), betas=betas, eps=eps, weight_decay=decay):
            return torch.optim.Adam([theta], lr, betas, eps, decay)
    raise AssertionError


@of_learners
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_those_of_torch_optim(learner: Learner, dtype: torch.dtype) -> None:
    theta = start(3, 20).to(dtype)
    state, leaf = learner.init(theta), theta.clone().requires_grad_()
    optimiser = theirs(learner, leaf)
    for number, slope in enumerate(slopes(6, 3, 20)):
        rate = 0.1 / (number + 1)
        optimiser.param_groups[0]["lr"] = rate
        leaf.grad = slope.to(dtype)
        optimiser.step()
        state = learner.step(state, slope.to(dtype), rate)
        exact = 1e-6 if dtype == torch.float32 else 1e-14
        assert torch.allclose(state.theta, leaf.detach(), rtol=10 * exact, atol=exact)
    assert state.steps.tolist() == [6, 6, 6]


@of_learners
def test_without_a_rate_it_is_the_learners_own(learner: Any) -> None:
    (slope,) = slopes(1, 5)
    state = learner.init(start(5))
    assert torch.equal(learner.step(state, slope).theta, learner.step(state, slope, learner.lr).theta)


@of_learners
def test_steps_leave_the_state_before_them_alone(learner: Learner) -> None:
    state = learner.init(start(4))
    for slope in slopes(3, 4):
        before = [part.clone() for part in state]
        after = learner.step(state, slope)
        assert all(torch.equal(a, b) for a, b in zip(state, before, strict=True))
        state = after


@of_learners
def test_a_state_is_all_that_the_next_step_needs(learner: Learner) -> None:
    first, second, *rest = slopes(5, 4)
    state = learner.step(learner.step(learner.init(start(4)), first), second)
    copy = State(*(part.clone() for part in state))
    for slope in rest:
        state, copy = learner.step(state, slope), learner.step(copy, slope)
    assert all(torch.equal(a, b) for a, b in zip(state, copy, strict=True))


@of_learners
def test_rows_are_vectors_of_their_own(learner: Learner) -> None:
    theta, seen = start(3, 4), slopes(3, 3, 4)
    state, alone = learner.init(theta), [learner.init(row) for row in theta]
    for slope in seen:
        state = learner.step(state, slope)
        alone = [learner.step(one, row) for one, row in zip(alone, slope, strict=True)]
    for k, one in enumerate(alone):
        for part, wanted in zip(state, one, strict=True):
            assert torch.equal(part[k], wanted)


@of_learners
def test_steps_are_differentiable_in_theta_gradient_and_learning_rate(learner: Learner) -> None:
    def end(theta: Tensor, slope: Tensor, rate: Tensor) -> Tensor:
        state = learner.init(theta)
        for number in range(3):
            state = learner.step(state, slope + number * state.theta, rate)
        return state.theta

    theta, slope = start(4).double().requires_grad_(), slopes(1, 4)[0].double().requires_grad_()
    assert torch.autograd.gradcheck(end, (theta, slope, torch.tensor(0.1).double().requires_grad_()))


def test_a_gradient_of_zero_leaves_no_nan_in_the_graph() -> None:
    theta, slope = start(3).requires_grad_(), torch.tensor([0.0, 1.0, 0.0], requires_grad=True)
    end = Adam(0.1).step(Adam(0.1).init(theta), slope).theta
    found = torch.autograd.grad(end.sum(), (theta, slope))
    assert all(bool(torch.isfinite(part).all()) for part in found)


def test_plain_descent_keeps_nothing_but_the_parameters() -> None:
    state = SGD(0.1).init(start(2, 1000))
    assert [part.numel() for part in state] == [2000, 0, 0, 2]


def test_a_learnt_momentum_is_that_number_and_can_be_differentiated() -> None:
    theta, along = start(5), slopes(3, 5)
    mu = torch.tensor(0.9, requires_grad=True)
    learnt, plain = SGD(0.1, mu).init(theta), SGD(0.1, 0.9).init(theta)
    for slope in along:
        learnt, plain = SGD(0.1, mu).step(learnt, slope), SGD(0.1, 0.9).step(plain, slope)
    assert torch.allclose(learnt.theta, plain.theta)
    (found,) = torch.autograd.grad(learnt.theta.sum(), mu)
    # θ₃ = θ₀ - η (g₁ (1 + μ + μ²) + g₂ (1 + μ) + g₃)
    assert found.item() == pytest.approx(-0.1 * float((1 + 2 * 0.9) * along[0].sum() + along[1].sum()), rel=1e-5)
