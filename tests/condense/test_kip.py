import pytest
import torch
from torch import Tensor

import attar
from attar.condense.contract import NoState, Task
from attar.condense.kernels import FIXED, KernelRidge
from attar.condense.kip import KIP
from attar.condense.label_solve import LabelSolve
from attar.core import registry
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from tests.known import gaussian_task, gaussians, generator, images

NOTHING = NoState()


def centred(y: Tensor, classes: int = 3) -> Tensor:
    return torch.eye(classes, dtype=torch.float64)[y] - 1 / classes


@pytest.mark.parametrize("name", ["rbf", "nngp2", "ntk1"])
def test_with_the_real_examples_as_synthetic_ones_it_is_ridge_regression(name: str) -> None:
    task, ridge = gaussian_task(8), 0.01
    loss = KIP(kernels=name, ridge=ridge, batch=24).loss(task.data, NOTHING, task, generator())
    gram, y = FIXED[name](task.data.x, task.data.x), centred(task.data.y)
    said = gram @ torch.linalg.solve(gram + ridge * gram.diagonal().mean() * torch.eye(24).double(), y)
    assert loss.value.item() == pytest.approx((y - said).square().sum(1).mean().item() / 2)
    assert loss.metrics["batch_accuracy"].item() == 1


def test_without_a_ridge_the_real_examples_predict_themselves() -> None:
    task = gaussian_task(8)
    loss = KIP(kernels="ntk1", ridge=0.0, batch=24).loss(task.data, NOTHING, task, generator())
    assert loss.value.item() < 1e-12


def test_the_loss_has_the_right_derivative_in_examples_and_labels() -> None:
    task = gaussian_task(4)

    def value(x: Tensor, y: Tensor) -> Tensor:
        syn = Data(x, y, spec=task.data.spec)
        return KIP(kernels="ntk2", ridge=1e-3, batch=12).loss(syn, NOTHING, task, generator()).value

    x = torch.randn(3, 6, dtype=torch.float64, generator=generator(1), requires_grad=True)
    y = torch.rand(3, 3, dtype=torch.float64, generator=generator(2), requires_grad=True)
    assert torch.autograd.gradcheck(value, (x, y))


def test_equal_examples_grow_the_jitter_and_are_learnt_apart_all_the_same() -> None:
    task = gaussian_task(8)
    syn = task.data[torch.zeros(4, dtype=torch.long)].map(lambda x: x.clone().requires_grad_())
    loss = KIP(kernels="rbf", ridge=0.0, batch=24).loss(syn, NOTHING, task, generator())
    (slope,) = torch.autograd.grad(loss.value, syn.x)
    assert loss.metrics["jitter"].item() > 0
    assert bool(torch.isfinite(slope).all())
    solved = LabelSolve(kernels="rbf", ridge=0.0).loss(syn.map(Tensor.detach), NoState(), task, generator())
    assert solved.metrics["jitter"].item() > 0


def learn(learn: str, **options: float) -> attar.Coreset:
    return attar.reduce(
        gaussians(16),
        "kip",
        per_class=2,
        network="linear",
        options={"learn": learn, "batch": 48, "kernels": "ntk1-rbf", **options},
        descent={"steps": 30},
    )


def test_pixels_labels_or_both_are_learnt() -> None:
    first = attar.reduce(
        gaussians(16), "kip", per_class=2, network="linear", descent={"steps": 1}, options={"batch": 1}
    )
    pixels, labels, both = learn("pixels"), learn("labels"), learn("both")
    assert pixels.data.y.dtype == torch.int64
    assert labels.data.y.shape == both.data.y.shape == (6, 3)
    assert (labels.data.x - first.data.x).abs().max().item() < 0.02  # at most Adam's one step apart
    assert (pixels.data.x - first.data.x).abs().max().item() > 0.02
    assert (both.data.x - first.data.x).abs().max().item() > 0.02
    assert not torch.equal(both.data.y, torch.eye(3)[both.data.hard])


def test_learning_lowers_the_error_of_regression_on_data_not_seen() -> None:
    held = gaussians(64, seed=9)
    start = attar.reduce(gaussians(16), "uniform", per_class=2, network="linear").data
    before, after = (
        (KernelRidge.fit(d, FIXED["ntk1"])(held.x) - centred(held.y)).square().sum(1).mean().item()
        for d in (start, learn("both").data)
    )
    assert after < before


def test_the_frozen_share_of_every_example_is_noise_and_is_never_updated() -> None:
    short, long = (
        attar.reduce(
            gaussians(16), "kip", per_class=2, network="linear", options={"frozen": 0.5}, descent={"steps": steps}
        ).data.x
        for steps in (1, 20)
    )
    assert ((short == long).sum(1) == 3).all()  # half of six numbers
    real = gaussians(16).x
    still = short == long
    assert not any(bool((value == real).any()) for value in long[still])


def test_targets_are_augmented_and_a_part_of_the_support_can_be_used() -> None:
    data = images(8)
    task = Task(data, network("convnet-d1w4", data.shape, 3), 3)
    plain, moved = (
        KIP(batch=24, kernels="rbf", strategy=s).loss(data[:6], NOTHING, task, generator()).value.item()
        for s in ("none", "flip-rotate")
    )
    assert plain != moved
    some = data[:6].map(lambda x: x.clone().requires_grad_())
    loss = KIP(batch=24, kernels="features", support=4).loss(some, NOTHING, task, generator())
    (slope,) = torch.autograd.grad(loss.value, some.x)
    assert (slope.flatten(1).abs().sum(1) > 0).sum().item() == 4


def test_bad_options_are_refused() -> None:
    for name in ("kip", "label-solve"):
        with pytest.raises(AttarError, match="Unknown kernel 'ntk'"):
            registry.build(name, {"kernels": "ntk"})
    with pytest.raises(AttarError, match="frozen"):
        registry.build("kip", {"frozen": 1.0})


@pytest.mark.parametrize(
    ("method", "options", "descent"), [("label-solve", {}, {}), ("kip", {"learn": "both"}, {"steps": 100})]
)
def test_networks_learn_solved_labels_by_regression(
    method: str, options: dict[str, str], descent: dict[str, int]
) -> None:
    split = attar.load("digits")
    coreset = attar.reduce(split, method, per_class=2, network="mlp", options=options, descent=descent)
    assert (coreset.data.y < 0).any()  # no probabilities: cross-entropy with them has no minimum
    assert coreset.recipe.sampler == "last-layer-vi"
    assert coreset.training.loss == "squared"
    random = attar.reduce(split, "uniform", per_class=2, network="mlp")
    learnt, plain = (attar.evaluate(attar.infer(c, draws=2), split.val).accuracy for c in (coreset, random))
    assert learnt > plain
    assert attar.reduce(split, "kip", per_class=1, descent={"steps": 1}).recipe.sampler == "ensemble"
