import pytest
import torch
from torch import Tensor

from attar.condense.contract import Task
from attar.condense.dc import DC, DCState, paper_loops
from attar.condense.matching import distance
from attar.data import Data
from attar.nets import network
from attar.nets.objective import Objective
from tests.known import gaussian_task, gaussians, generator, slope


def learnt(data: Data) -> Data:
    return data.map(lambda x: x.clone().requires_grad_())


def follow(method: DC, task: Task, syns: list[Data], seed: int = 0) -> list[DCState]:
    """The states after each of the given examples was looked at in turn."""
    gen = generator(seed)
    states = [method.init(task, gen)]
    for syn in syns:
        states.append(method.loss(syn, states[-1], task, gen).state)
    return states


def test_the_gradient_is_that_of_the_mean_cross_entropy() -> None:
    # Softmax regression: dL/dW = mean (p − onehot) xᵀ and dL/db = mean (p − onehot).
    task = gaussian_task(8, network="linear")
    theta = task.network.init(generator())
    residual = task.network(theta, task.data.x).softmax(1) - torch.nn.functional.one_hot(task.data.y)
    weight, bias = task.network.unflatten(Objective(task.network).gradient(theta, task.data)).values()
    assert torch.allclose(weight, residual.T @ task.data.x / len(task.data), atol=1e-6)
    assert torch.allclose(bias, residual.mean(0), atol=1e-6)


def test_distance_counts_one_minus_cosine_for_every_row_and_no_bias() -> None:
    net = network("linear", (2,), 3)  # weight (3, 2), then bias (3,)
    a = torch.tensor([3.0, 0, 0, 2, 1, 1, 5, 5, 5])
    same, opposite, across = a.clone(), -a, torch.tensor([0.0, 1, 1, 0, 1, -1, 5, 5, 5])
    assert distance(net, a, same).item() == pytest.approx(0, abs=1e-5)
    assert distance(net, a, opposite).item() == pytest.approx(6, abs=1e-5)
    assert distance(net, a, across).item() == pytest.approx(3, abs=1e-5)
    assert distance(net, a, 7 * a).item() == pytest.approx(0, abs=1e-5)  # lengths do not count
    same[6:] = -100
    assert distance(net, a, same).item() == pytest.approx(0, abs=1e-5)  # nor do biases


def test_rows_of_a_convolution_are_its_filters_and_norms_do_not_count() -> None:
    net = network("convnet-d1w4-instance", (1, 4, 4), 3)
    rows = sum(len(value) for value in net.unflatten(net.init(generator())).values() if value.ndim > 1)
    assert rows == 4 + 3
    a = torch.randn(net.size, generator=generator())
    assert distance(net, a, -a).item() == pytest.approx(2 * rows, abs=1e-4)


def test_loss_is_zero_and_stationary_when_synthetic_equals_real() -> None:
    # Up to the published 1e-6 in the cosine, beside rows whose gradient has a norm near one.
    task = gaussian_task(8, network="linear")
    method, syn = DC(batch=8), learnt(task.data)
    loss = method.loss(syn, method.init(task, generator()), task, generator())
    (grad,) = torch.autograd.grad(loss.value, syn.x)
    assert loss.value.item() < 1e-3
    assert grad.abs().max().item() < 1e-3
    other = learnt(task.data.map(lambda x: x.flip(0)))
    far = method.loss(other, method.init(task, generator()), task, generator())
    (pull,) = torch.autograd.grad(far.value, other.x)
    assert far.value.item() > 1
    assert pull.abs().max().item() > 0.01


@pytest.mark.parametrize("name", ["linear", "mlp-d1w3-sigmoid"])
def test_the_matching_loss_has_the_right_derivative(name: str) -> None:
    data = gaussians(2, classes=2, size=3)
    net = network(name, (3,), 2)
    theta = net.init(generator()).double()
    real = slope(net, theta, data.map(lambda x: x.double()))

    def matching(x: Tensor) -> Tensor:
        return distance(net, real, Objective(net).gradient(theta, Data(x, data.y), graph=True))

    x = torch.randn(4, 3, dtype=torch.float64, generator=generator(1), requires_grad=True)
    assert torch.autograd.gradcheck(matching, x)


def test_the_first_match_is_under_the_first_network() -> None:
    task = gaussian_task(4)
    first, second = follow(DC(batch=4, matches=3, net_steps=2), task, [task.data[:3]])
    assert torch.equal(first.theta, second.theta)
    assert (first.matched, second.matched) == (0, 1)


def test_the_network_is_trained_on_the_examples_as_they_are_now() -> None:
    task = gaussian_task(4)
    old, new = task.data[:3], task.data[3:6]
    method = DC(batch=4, matches=5, net_steps=2, net_lr=0.1)
    _, before, after = follow(method, task, [old, new])
    expected = before.theta
    for _ in range(2):
        expected = torch.add(expected, Objective(task.network).gradient(expected, new), alpha=-0.1)
    assert torch.equal(after.theta, expected)
    assert not after.theta.requires_grad


def test_no_network_steps_leave_the_network_as_it_is() -> None:
    task = gaussian_task(4)
    states = follow(DC(batch=4, matches=3, net_steps=0), task, [task.data[:3]] * 3)
    assert all(torch.equal(state.theta, states[0].theta) for state in states)


def test_a_new_network_is_drawn_after_so_many_matches() -> None:
    task, gen = gaussian_task(4), generator(5)
    method = DC(batch=4, matches=2, net_steps=1)
    state = method.init(task, gen)
    for _ in range(2):
        state = method.loss(task.data[:3], state, task, gen).state
    assert state.matched == 2
    copy = torch.Generator()
    copy.set_state(gen.get_state())
    renewed = method.loss(task.data[:3], state, task, gen).state
    assert torch.equal(renewed.theta, task.network.init(copy))
    assert renewed.matched == 1


@pytest.mark.parametrize(
    ("per_class", "matches"), [(1, 1), (2, 2), (5, 5), (10, 10), (12, 12), (20, 20), (40, 40), (60, 50)]
)
def test_the_paper_s_loops_go_by_the_examples_per_class(per_class: int, matches: int) -> None:
    task = gaussian_task(per_class, classes=2)
    method = DC(batch=1, net_steps=0)
    counts = [state.matched for state in follow(method, task, [task.data] * (matches + 1))]
    assert counts == [*range(matches + 1), 1]


def test_the_paper_s_network_steps_go_by_the_examples_per_class() -> None:
    published = {1: 1, 10: 50, 20: 25, 30: 20, 40: 15, 50: 10}
    for per_class, steps in published.items():
        task = gaussian_task(per_class, classes=2)
        assert DC()._loops(task.data, task) == (per_class, steps)


def test_between_published_sizes_the_loops_lie_on_a_line() -> None:
    assert [paper_loops(size) for size in (2, 5, 9, 15, 32, 99)] == [
        (2, 6),
        (5, 23),
        (9, 45),
        (15, 38),
        (32, 19),
        (50, 10),
    ]


def test_a_step_down_the_loss_brings_the_gradients_closer() -> None:
    task, method = gaussian_task(16, network="mlp-d1w16"), DC(batch=16)
    state, syn = method.init(task, generator()), learnt(task.data.sample_per_class(1, generator(4)))
    loss = method.loss(syn, state, task, generator())
    (grad,) = torch.autograd.grad(loss.value, syn.x)
    moved = syn.map(lambda x: x.detach() - 0.01 * grad)
    assert method.loss(moved, state, task, generator()).value < loss.value
