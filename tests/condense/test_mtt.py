from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import attar
from attar import Training
from attar import experts as train_experts
from attar.bayes.w import BPCW
from attar.condense.contract import Task
from attar.condense.mtt import MTT
from attar.condense.source import Pixels, Synthetic
from attar.condense.trajectory import distance, train_through
from attar.core.errors import AttarError, Diverged
from attar.data import Data
from attar.experts import Schedule, Trajectories
from attar.nets import network
from attar.nets.objective import Objective
from tests.known import gaussians, generator, images

DATA = gaussians(16)
NET = network("mlp-d1w8", DATA.shape, DATA.classes)


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    budget = Training(batch=16, lr=0.05, schedule="constant")
    return train_experts(DATA, NET, Schedule(2, 4, budget), folder=tmp_path_factory.mktemp("experts"))


def synthetic(per_class: int = 2, step_size: float = 0.02) -> Synthetic:
    return Pixels(DATA.sample_per_class(per_class, generator()), scalars={"step_size": step_size})()


def test_the_gradient_through_five_unrolled_steps_passes_gradcheck() -> None:
    net = network("mlp-d1w3-sigmoid", (3,), 2)
    start, target = (net.init(generator(seed)).double() for seed in (0, 1))
    y = torch.tensor([0, 1, 0, 1])
    objective = Objective(net)
    looks = MTT(net_steps=5, minibatch=2)._looks(Data(torch.zeros(4, 3), y), generator(3))

    def gap(x: Tensor, log_size: Tensor) -> Tensor:
        return distance(train_through(objective, start, Data(x, y), log_size.exp(), looks), target, start)

    x = torch.randn(4, 3, dtype=torch.float64, generator=generator(2), requires_grad=True)
    size = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(gap, (x, size))


def test_it_is_training_by_hand_on_minibatches(experts: Trajectories) -> None:
    task, syn, method = Task(DATA, NET, 3, experts), synthetic(), MTT(net_steps=5, minibatch=2)
    loss = method.loss(syn, method.init(task, generator()), task, generator(1))
    gen = generator(1)
    _, theta, target = experts.pair(gen, method.ahead, method.max_epoch)
    start, seen = theta, []
    for look in method._looks(syn, gen):
        batch = look(syn)
        seen.append(batch.x)
        at = theta.detach().requires_grad_()
        (slope,) = torch.autograd.grad(cross_entropy(NET(at, batch.x), batch.y), at)
        theta = theta - 0.02 * slope
    assert loss.value.item() == pytest.approx(distance(theta, target, start).item(), rel=1e-4)
    first = torch.cat(seen[:3])  # six examples in minibatches of two: each once in three steps
    assert torch.equal(first.sort(0).values, syn.x.sort(0).values)


def test_with_all_examples_a_step_and_no_augmentation_it_is_bpc_w(experts: Trajectories) -> None:
    task, syn = Task(DATA, NET, 3, experts), synthetic()
    ours, theirs = MTT(net_steps=5, ahead=1), BPCW(net_steps=5, ahead=1)
    values = [m.loss(syn, m.init(task, generator()), task, generator(1)).value.item() for m in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_the_gradient_of_soft_labels_is_that_of_the_whole_walk(experts: Trajectories) -> None:
    task, method = Task(DATA, NET, 3, experts), MTT(net_steps=5, labels="soft", strategy="none")
    source = method.source(DATA.sample_per_class(2, generator()), generator())

    def gap(logits: Tensor) -> Tensor:
        syn = replace(source(), y=logits.softmax(1))
        return method.loss(syn, method.init(task, generator()), task, generator(1)).value

    logits = source.y.detach().requires_grad_()
    (slope,) = torch.autograd.grad(gap(logits), logits)
    way = slope / slope.norm()
    with torch.no_grad():
        measured = (gap(logits + 0.05 * way) - gap(logits - 0.05 * way)) / 0.1
    assert float(slope.norm()) > 1e-3
    assert float(measured) == pytest.approx(float(slope.norm()), rel=0.02)


def test_soft_labels_are_learnt_with_the_examples_and_inferred_from(experts: Trajectories) -> None:
    options = {"net_steps": 5, "labels": "soft"}
    coreset = attar.reduce(
        DATA, "mtt", per_class=2, network=NET.name, experts=experts, options=options, descent={"steps": 3}
    )
    learnt = coreset.data.y
    assert torch.equal(learnt.argmax(1), torch.tensor([0, 0, 1, 1, 2, 2]))
    assert torch.allclose(learnt.sum(1), torch.ones(6))
    assert len(learnt.amax(1).unique()) == 6  # each moved by itself from where all started
    posterior = attar.infer(coreset, network=NET.name, training=Training(steps=50))
    assert attar.evaluate(posterior, DATA).accuracy > 0.8


def test_the_gap_is_one_if_training_goes_nowhere(experts: Trajectories) -> None:
    task = Task(DATA, NET, 3, experts)
    still = MTT(net_steps=3).loss(synthetic(step_size=1e-12), None, task, generator())  # type: ignore[arg-type]
    assert still.value.item() == pytest.approx(1, rel=1e-4)


class Spy(torch.autograd.Function):
    """Says whether gradients are recorded while a gradient is taken."""

    recorded: ClassVar[list[bool]] = []

    @staticmethod
    def forward(ctx: Any, theta: Tensor) -> Tensor:
        return theta.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        Spy.recorded.append(torch.is_grad_enabled())
        return gradients[0]


class Watched(nn.Module):
    """A linear classifier with a spy on its logits."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        watched: Tensor = Spy.apply(self.layer(x))  # type: ignore[no-untyped-call]
        return watched


def test_the_way_there_keeps_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spy, "recorded", [])
    syn = Data(torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1]))
    net = network(Watched, (3,), 2)
    looks = [lambda data: data] * 4
    end = train_through(Objective(net), net.init(generator()), syn, torch.tensor(0.01), looks)
    assert Spy.recorded == [False] * 4
    torch.autograd.grad(end.sum(), syn.x)
    assert sum(Spy.recorded) == 4  # each step once, on the way back


def test_an_expert_that_did_not_move_is_refused() -> None:
    still = torch.ones(3)
    with pytest.raises(AttarError, match="did not move"):
        distance(still + 1, still, still)


def test_augmented_minibatches_are_the_same_when_a_step_is_repeated() -> None:
    data = images(4)
    for look in MTT(net_steps=4, minibatch=5)._looks(data, generator()):
        assert torch.equal(look(data).x, look(data).x)


def test_unrolled_steps_that_diverge_are_reported_with_the_learnt_step_size(experts: Trajectories) -> None:
    task = Task(DATA, NET, 3, experts)
    syn = replace(synthetic(step_size=1e30), x=DATA.x[:6] * 1e10)
    for method in (MTT(net_steps=5), BPCW(net_steps=5)):
        with pytest.raises(Diverged, match=r"diverged within 5 steps at the learnt step size 1e\+30: lower scalar_lr"):
            method.loss(syn, method.init(task, generator()), task, generator())


def test_the_step_size_is_learnt_and_kept(experts: Trajectories) -> None:
    coreset = attar.reduce(
        DATA,
        "mtt",
        per_class=1,
        network=NET.name,
        experts=experts,
        options={"net_steps": 5, "step_size": 0.03},
        descent={"steps": 20, "lr": 0.1, "scalar_lr": 0.1},
    )
    assert coreset.step_size is not None
    assert coreset.step_size > 0
    assert coreset.step_size != pytest.approx(0.03)
    assert coreset.training.lr == coreset.step_size


def test_a_step_size_that_vanishes_is_an_error(experts: Trajectories) -> None:
    options = {"net_steps": 2, "step_size": 1e-300}
    with pytest.raises(Diverged, match="The learnt step size is 0"):
        attar.reduce(DATA, "mtt", per_class=1, network=NET.name, experts=experts, options=options, descent={"steps": 1})


def test_trajectories_of_another_network_and_epochs_not_there_are_refused(experts: Trajectories) -> None:
    with pytest.raises(AttarError, match="mlp-d1w8"):
        attar.reduce(DATA, "mtt", per_class=1, network="mlp-d1w16", experts=experts)
    with pytest.raises(AttarError, match="epoch"):
        attar.reduce(DATA, "mtt", per_class=1, network=NET.name, experts=experts, options={"ahead": 9})
