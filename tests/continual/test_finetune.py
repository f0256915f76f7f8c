"""The distillation loss and the wider network."""

import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy, kl_div

from attar.continual.finetune import Distilled, finetuned, narrowed, widened
from attar.nets import network
from attar.nets.train import Training
from tests.known import gaussians, generator


@pytest.mark.parametrize("name", ["mlp-d1w8", "mlp-d1w8-cosine"])
def test_a_wider_network_gives_the_old_logits_for_the_old_classes(name: str) -> None:
    old, new = network(name, (6,), 2), network(name, (6,), 5)
    theta = old.init(generator(1))
    x = gaussians().x
    wide = widened(old, theta, new, generator(2))
    assert torch.allclose(new(wide, x)[:, :2], old(theta, x))
    assert torch.equal(widened(old, theta, old, generator(2)), theta)


@pytest.mark.parametrize("name", ["mlp-d1w8", "mlp-d1w8-cosine"])
def test_a_narrower_network_gives_the_logits_of_its_classes(name: str) -> None:
    wide, few = network(name, (6,), 5), network(name, (6,), 2)
    theta = torch.stack([wide.init(generator(seed)) for seed in (1, 2)])
    cut = narrowed(wide, theta, few, torch.tensor([3, 1]))
    x = gaussians().x
    for before, after in zip(theta, cut, strict=True):
        assert torch.allclose(few(after, x), wide(before, x)[:, [3, 1]])


def test_distilled_features_are_compared_by_their_angles() -> None:
    data = gaussians()
    old, new = network("mlp-d1w8-cosine", (6,), 2), network("mlp-d1w8-cosine", (6,), 3)
    before, theta = old.init(generator(1)), new.init(generator(2))
    loss = Distilled(new, old, before, 0.3, 2.0, "cross-entropy", "features")
    turn = 1 - cosine_similarity(old.features(before, data.x), new.features(theta, data.x)).mean()
    assert torch.allclose(loss.value(theta, data), 0.7 * cross_entropy(new(theta, data.x), data.y) + 0.3 * turn)
    wide = widened(old, before, new, generator())
    assert torch.allclose(loss.value(wide, data), 0.7 * cross_entropy(new(wide, data.x), data.y), atol=1e-5)


def test_the_loss_and_its_gradient_are_those_of_the_formula() -> None:
    data = gaussians()
    old, new = network("linear", (6,), 2), network("linear", (6,), 3)
    before, theta = old.init(generator(1)), new.init(generator(2))
    loss = Distilled(new, old, before, weight=0.3, temperature=2.0, loss="cross-entropy")

    def formula(at: torch.Tensor) -> torch.Tensor:
        logits = new(at, data.x)
        soft = (logits[:, :2] / 2).log_softmax(1)
        gap = kl_div(soft, (old(before, data.x) / 2).softmax(1), reduction="batchmean")
        return 0.7 * cross_entropy(logits, data.y) + 0.3 * 4 * gap

    assert torch.allclose(loss.value(theta, data), formula(theta))
    assert torch.allclose(loss.gradient(theta, data), torch.func.grad(formula)(theta), atol=1e-6)


def test_distillation_holds_the_old_outputs_where_the_old_data_is_gone() -> None:
    data = gaussians(32, classes=4)
    old, new = network("mlp-d1w16", (6,), 2), network("mlp-d1w16", (6,), 4)
    first, rest = data[data.y < 2], data[data.y >= 2]
    training = Training(steps=60, batch=32)
    teacher = finetuned(
        Distilled(old, old, old.init(generator(0)), 0, 1, "cross-entropy"), first, training, old.init(generator(0)),
        generator(0),
    )  # fmt: skip
    drift = []
    for weight in (0.0, 0.9):
        start = widened(old, teacher, new, generator(1))
        loss = Distilled(new, old, teacher, weight, 2.0, "cross-entropy")
        theta = finetuned(loss, rest, training, start, generator(2))
        now = new(theta, rest.x)[:, :2].softmax(1)
        drift.append(float((now - old(teacher, rest.x).softmax(1)).abs().mean()))
    assert drift[1] < drift[0] / 2
