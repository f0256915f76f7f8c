import pytest
import torch
from torch.nn.functional import cross_entropy

from attar.condense.cafe import CAFE, WATCHED, CAFEState, accuracy, align, layers
from attar.condense.contract import Task
from attar.condense.matching import pairs
from attar.core.errors import AttarError
from attar.nets import network, passes
from attar.nets.objective import Objective
from tests.known import gaussian_task, generator, images


def image_task(per_class: int = 8, name: str = "convnet-d2w4") -> Task:
    data = images(per_class)
    return Task(data, network(name, data.shape, data.classes), data.classes)


def test_alignment_is_zero_and_stationary_when_synthetic_equals_what_is_matched() -> None:
    task = image_task()
    state = CAFE(query=2).init(task, generator())
    syn = task.data[~state.held].map(lambda x: x.clone().requires_grad_())
    loss = CAFE(batch=8, query=2, beta=0.0, strategy="flip-rotate").loss(syn, state, task, generator())
    (slope,) = torch.autograd.grad(loss.value, syn.x)
    assert loss.value.item() < 1e-8
    assert slope.abs().max().item() < 1e-4


@pytest.mark.parametrize("option", ["", "-weightnorm"])
def test_features_are_what_every_layer_gets_up_to_the_last(option: str) -> None:
    task = image_task(name=f"convnet-d2w4{option}")
    theta, x = task.network.init(generator()), task.data.x
    seen = layers(task.network, theta, x)
    assert len(seen) == 2  # two convolutions and the head, of which the first gets the examples
    assert torch.equal(seen[-1], task.network.features(theta, x))
    flat = gaussian_task()
    assert torch.equal(layers(flat.network, flat.network.init(generator()), flat.data.x)[0], flat.data.x)


def test_a_linear_network_aligns_means_and_classifies_by_them() -> None:
    # Its only layer gets the examples themselves, so that both terms can be written down.
    task = gaussian_task(8)
    syn = task.data[:6].map(lambda x: x + 1)
    matched = pairs(syn, task, 8, "none", generator())
    gap, confusion = align(task, task.network.init(generator()), matched, 0.1)
    centres = torch.stack([syn.of_class(c).x.mean(0) for c in range(3)])
    means = torch.stack([task.data.of_class(c).x.mean(0) for c in range(3)])
    assert gap.item() == pytest.approx((centres - means).square().sum().item(), rel=1e-5)
    expected = cross_entropy(task.data.x @ centres.T, task.data.y, reduction="sum")
    assert confusion.item() == pytest.approx(expected.item() / 8, rel=1e-5)  # the sum over classes of the mean


def test_the_balance_does_not_depend_on_the_batch_and_is_the_published_one_at_its_size() -> None:
    task = gaussian_task(8)
    theta, syn = task.network.init(generator()), task.data[:6].map(lambda x: x + 1)
    matched = pairs(syn, task, 8, "none", generator())
    twice = [(real[torch.arange(8).repeat(32)], fake) for real, fake in matched]  # 256 examples per class
    for a, b in zip(align(task, theta, matched, 0.1), align(task, theta, twice, 0.1), strict=True):
        assert a.item() == pytest.approx(b.item(), rel=1e-5)
    centres, real = torch.stack([fake.x.mean(0) for _, fake in twice]), [real for real, _ in twice]
    published = 0.01 * sum(cross_entropy(r.x @ centres.T, r.hard, reduction="sum") for r in real)
    assert CAFE().beta * align(task, theta, twice, 0.1)[1].item() == pytest.approx(float(published), rel=1e-5)


def test_the_first_two_layers_have_little_weight() -> None:
    task = image_task(name="convnet-d3w4")
    theta, syn = task.network.init(generator()), task.data[:6]
    matched = pairs(syn, task, 8, "none", generator())
    parts = []
    for real, fake in matched:
        theirs, ours = (layers(task.network, theta, part.x) for part in (real, fake))
        parts.append([float((a.mean(0) - b.mean(0)).square().sum()) for a, b in zip(theirs, ours, strict=True)])
    first, second, last = torch.tensor(parts).sum(0).tolist()
    assert align(task, theta, matched, 0.1)[0].item() == pytest.approx(0.1 * (first + second) + last, rel=1e-4)
    assert CAFE().shallow == 0.1


def test_both_terms_do_not_depend_on_the_parts_of_the_real_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    task = image_task()
    theta, matched = task.network.init(generator()), pairs(task.data[:6], task, 8, "none", generator())
    whole = align(task, theta, matched, 0.1)
    monkeypatch.setattr(passes, "FORWARD", 3 * task.network.activations)
    for a, b in zip(align(task, theta, matched, 0.1), whole, strict=True):
        assert a.item() == pytest.approx(b.item(), rel=1e-5)


def test_the_query_is_held_out_from_matching_and_at_most_half_of_a_class() -> None:
    task = gaussian_task(8)
    state = CAFE(query=3).init(task, generator())
    assert torch.bincount(task.data.y[state.held]).tolist() == [3, 3, 3]
    assert torch.bincount(task.data.y[CAFE(query=100).init(task, generator()).held]).tolist() == [4, 4, 4]
    for real, _ in pairs(task.data, task, 100, "none", generator(), state.held):
        assert len(real) == 5
        assert not any(bool((task.data.x[state.held] == x).all(1).any()) for x in real.x)
    with pytest.raises(AttarError, match="at least two of one class"):
        CAFE().init(gaussian_task(1), generator())


def steady(task: Task, scores: torch.Tensor, updates: int) -> CAFEState:
    return CAFE(query=2).init(task, generator())._replace(scores=scores, updates=updates)


def test_a_network_whose_score_no_longer_varies_is_drawn_anew() -> None:
    task, syn = gaussian_task(8), gaussian_task(8).data[:3]
    flat, moving = torch.full((WATCHED,), 0.5).double(), torch.linspace(0.4, 0.6, WATCHED).double()
    method = CAFE(query=2, net_steps=0, outer=0.04)
    for scores, updates, renewed in ((flat, WATCHED, True), (flat, WATCHED - 1, False), (moving, WATCHED, False)):
        before = steady(task, scores, updates)
        after = method.loss(syn, before, task, generator(1)).state
        assert torch.equal(before.theta, after.theta) != renewed
        assert after.updates == (1 if renewed else updates + 1)
        assert torch.equal(after.scores[:-1], scores[1:])
        assert after.scores[-1] == accuracy(task.network, after.theta, task.data[before.held])


def test_training_on_the_examples_ends_once_the_score_has_changed_enough_or_after_so_many_steps() -> None:
    task = gaussian_task(16)
    syn = task.data.sample_per_class(2, generator())
    before = steady(task, torch.linspace(0, 1, WATCHED).double(), WATCHED)

    def trained(inner: float) -> torch.Tensor:
        method = CAFE(query=8, net_steps=12, net_lr=0.1, inner=inner)
        theta: torch.Tensor = method.loss(syn, before, task, generator()).state.theta
        return theta

    query, theta, walk, scores = task.data[before.held], before.theta, [], []
    scores.append(accuracy(task.network, theta, query))
    for _ in range(12):
        theta = torch.add(theta, Objective(task.network).gradient(theta, syn), alpha=-0.1)
        walk.append(theta)
        scores.append(accuracy(task.network, theta, query))
    looks = [scores[max(0, k - 8) : k + 2] for k in range(12)]
    changed = [len(look) == 10 and float(max(look) - min(look)) > 0.03 for look in looks]
    assert any(changed)
    assert torch.equal(trained(1.0), walk[-1])
    assert torch.equal(trained(0.03), walk[changed.index(True)])
    assert changed.index(True) < 11
