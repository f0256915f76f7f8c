"""Attacks reach the optimum where it is known, stay where they may, and never make a posterior look stronger."""

import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
import torch
from torch import Tensor

import attar
from attar import Training
from attar.assess import evaluate
from attar.assess.apgd import CHECKPOINTS, LOSSES, ROUND, Ball, apgd
from attar.assess.attack import ATTACKS, MARGIN, Attacked, adversarial, averaged, robust_accuracy
from attar.assess.corruption.table import pixels
from attar.core.errors import AttarError
from attar.data import Data, Spec
from attar.data.transform import Identity, fit
from attar.infer import Draws
from attar.nets import network
from tests.known import digits, gaussians, generator, images

OURS = [name for name in ATTACKS if name not in ("autoattack", "standard")]
SCALINGS = ("none", "standard", "zca")


@cache
def trained(classes: int = 10, draws: int = 2) -> tuple[Draws, Data]:
    """A small network that knows the first digits, and test images of them."""
    train, test = (part[part.y < classes] for part in (digits().train, digits().test))
    spec = Spec.of(train.shape, train.spec.target.names[:classes], train.spec.transform, "digits")
    posterior = attar.infer(replace(train, spec=spec), draws=draws, network="mlp-d1w16", training=Training(steps=100))
    return posterior, replace(test, spec=spec)[:60]


def two_sides(kind: str) -> tuple[Draws, Data, Tensor]:
    """A linear model of two classes, images on both sides of its boundary, and their worst neighbours at 8/255.

    The difference of the two logits is a sum over pixels, whatever the scaling is. So the worst change moves each by
    epsilon along the sign of its weight, or as far as the box lets it.
    """
    gen = generator(3)
    x = torch.rand(80, 1, 8, 8, generator=gen)
    scaling = fit(kind, x)
    weights = torch.randn(64, generator=gen)
    middle = scaling.apply(torch.full((1, 1, 8, 8), 0.5)).flatten() @ weights
    theta = torch.cat([torch.zeros(64), weights, torch.stack([middle, torch.zeros(())])])
    posterior = Draws(network("linear", (1, 8, 8), 2), theta[None], Spec.of((1, 8, 8), "ab", scaling))
    y = posterior.predict(scaling.apply(x)).argmax(1)
    slope = torch.func.jacrev(lambda image: scaling.apply(image[None]).flatten() @ weights)(x[0])
    worst = (x + 8 / 255 * slope.sign() * (1 - 2 * y).view(-1, 1, 1, 1)).clamp(0, 1)
    return posterior, Data(scaling.apply(x), y, spec=posterior.spec), worst


def broken(
    posterior: Draws, data: Data, name: str, epsilon: float = 0.1, steps: int = 100, restarts: int = 1
) -> Tensor:
    """Which images an attack changes, and so breaks."""
    moved = adversarial(posterior, data, name, epsilon=epsilon, steps=steps, restarts=restarts, gen=generator())
    return (moved != pixels(data)).flatten(1).any(1)


# Where the truth is known


@pytest.mark.filterwarnings("ignore:The DLR loss")
@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("name", OURS)
def test_a_linear_model_of_two_classes_is_broken_exactly_where_it_can_be(name: str, kind: str) -> None:
    posterior, data, worst = two_sides(kind)
    best = evaluate(posterior, replace(data, x=data.spec.transform.apply(worst))).accuracy
    result = robust_accuracy(posterior, data, attack=name, steps=20)
    assert 0.2 < best < 0.8  # else there is nothing to see
    assert result == Attacked(name, 8 / 255, 1.0, best, 20, 1, 80, "" if name in ("pgd", "apgd-ce") else MARGIN)


def test_the_average_is_the_prediction_and_its_gradient_is_right() -> None:
    gen = generator()
    raw = torch.rand(3, 1, 4, 4, generator=gen)
    for kind in SCALINGS:
        scaling = fit(kind, raw)
        net = network("mlp-d1w4", (1, 4, 4), 3)
        theta = 2 * torch.stack([net.init(gen) for _ in range(3)]).double()
        posterior = Draws(net, theta, Spec.of(net.shape, "abc", scaling))
        x = raw.double().requires_grad_()
        assert torch.allclose(averaged(posterior)(x).exp(), posterior.predict(scaling.apply(x)), atol=1e-9)
        assert torch.autograd.gradcheck(averaged(posterior), x, atol=1e-4)


def test_the_average_is_attacked_and_not_one_draw() -> None:
    # Two draws that read opposite signs of the same pixels and one that reads others: the first two cancel.
    gen = generator()
    a, b = torch.randn(2, 64, generator=gen)
    a[32:], b[:32] = 0, 0
    theta = torch.stack([torch.cat([torch.zeros(64), w, torch.zeros(2)]) for w in (a, -a, b)])
    posterior = Draws(network("linear", (1, 8, 8), 2), theta, Spec.of((1, 8, 8), "ab"))
    x = torch.full((1, 1, 8, 8), 0.5, requires_grad=True)
    (gradient,) = torch.autograd.grad(averaged(posterior)(x)[0, 1], x)
    upper, lower = gradient.flatten().split(32)
    # A half of a's gradient at p and at 1 - p, which are equal: nothing is left of it.
    assert float(upper.abs().max()) < 1e-6 * float(lower.abs().max())


def test_losses_worked_by_hand() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]] * 2)
    y = torch.tensor([0, 1])
    assert LOSSES["margin"](logits, y).tolist() == [-1, 1]
    assert LOSSES["dlr"](logits, y).tolist() == pytest.approx([-0.5, 0.5])
    assert torch.allclose(LOSSES["dlr"](7 * logits + 2, y), LOSSES["dlr"](logits, y))
    assert torch.allclose(LOSSES["ce"](logits, y), -logits.log_softmax(1)[[0, 1], y])


def test_checkpoints_are_the_published_ones_of_a_hundred_steps() -> None:
    places = [0, 22]
    while places[-1] < ROUND:
        places.append(places[-1] + max(places[-1] - places[-2] - 3, 6))
    assert list(CHECKPOINTS) == places[1:-1]


@pytest.mark.parametrize("loss", ["ce", "dlr"])
def test_a_longer_walk_of_apgd_begins_with_the_shorter_ones(loss: str) -> None:
    posterior, data = trained()
    hard = Ball.around(pixels(data), 0.02)  # so little room that no class changes, and no walk ends early
    looked: list[Tensor] = []

    def model(x: Tensor) -> Tensor:
        looked.append(x.detach())
        return averaged(posterior)(x)

    still = posterior.predict(data.x).argmax(1) == data.y
    start, y = pixels(data)[still], data.y[still]
    ball = Ball(hard.low[still], hard.high[still], hard.epsilon)
    apgd(model, start, y, ball, LOSSES[loss], 230)
    long, looked = looked, []
    apgd(model, start, y, ball, LOSSES[loss], 45)
    assert len(looked) == 46
    assert len(long) == 231
    assert all(torch.equal(a, b) for a, b in zip(looked, long, strict=False))


def test_after_a_hundred_steps_apgd_begins_anew_from_its_best_point() -> None:
    looked: list[Tensor] = []

    def rugged(x: Tensor) -> Tensor:
        looked.append(x.detach())
        height = (60 * x).sin().flatten(1).sum(1) - 2  # below the other logit everywhere, so nothing is ever broken
        return torch.stack([torch.zeros_like(height), height], 1)

    start, y = torch.linspace(0.3, 0.7, 5).view(5, 1, 1, 1), torch.zeros(5, dtype=torch.long)
    apgd(rugged, start, y, Ball.around(start, 0.2), LOSSES["margin"], ROUND + 1)
    heights = torch.stack([rugged(x)[:, 1] for x in looked[: ROUND + 1]])
    best = torch.stack(looked[: ROUND + 1])[heights.argmax(0), torch.arange(5)]
    expected = Ball.around(start, 0.2).project(best + 2 * 0.2 * (60 * best).cos().sign())
    torch.testing.assert_close(looked[ROUND + 1], expected)


def test_overconfidence_hides_the_gradient_from_cross_entropy_but_not_from_the_ratio() -> None:
    posterior, data = trained(draws=1)
    shout = posterior.theta.clone()
    shout[:, -posterior.network.head(shout[0])[0].numel() - 10 :] *= 1e4  # last layer: the same classes, certain
    loud = replace(posterior, theta=shout)
    quiet_dlr, loud_dlr, loud_ce = (
        int(broken(which, data, name, epsilon=0.15, steps=20).sum())
        for which, name in ((posterior, "apgd-dlr"), (loud, "apgd-dlr"), (loud, "apgd-ce"))
    )
    assert loud_dlr == pytest.approx(quiet_dlr, abs=2)
    assert loud_ce < loud_dlr / 2


# What holds of all


@pytest.mark.parametrize("epsilon", [2 / 255, 0.1, 1.0])
@pytest.mark.parametrize("name", OURS)
def test_what_is_found_is_near_and_an_image_and_wrong(name: str, epsilon: float) -> None:
    posterior, data = trained()
    x, moved = pixels(data), adversarial(posterior, data, name, epsilon=epsilon, steps=10, gen=generator())
    assert moved.shape == x.shape
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 1
    assert float((moved - x).abs().max()) <= epsilon + 1e-6
    scaling = posterior.spec.transform
    before, after = (posterior.predict(scaling.apply(images)).argmax(1) for images in (x, moved))
    touched = (moved != x).flatten(1).any(1)
    assert touched.any()
    assert (before[touched] == data.y[touched]).all()
    assert (after[touched] != data.y[touched]).all()


def test_no_room_means_no_harm_and_all_room_means_all_harm() -> None:
    posterior, data = trained()
    for name in ATTACKS:  # AutoAttack too: there is nothing to run
        nothing = robust_accuracy(posterior, data, attack=name, epsilon=0)
        own = name == "autoattack"  # and steps of its own, which nobody here knows
        assert (nothing.steps, nothing.restarts) == ((None, None) if own else (100, 1))
        assert nothing.robust == nothing.clean == evaluate(posterior, data).accuracy
    for name in OURS:
        assert robust_accuracy(posterior, data, attack=name, epsilon=1, steps=20).robust < 0.05


@pytest.mark.parametrize("name", OURS)
def test_more_room_is_never_harder(name: str) -> None:
    posterior, data = trained()
    robust = [robust_accuracy(posterior, data, attack=name, epsilon=e, steps=20).robust for e in (0, 0.03, 0.1, 0.3)]
    assert robust == sorted(robust, reverse=True)
    assert robust[0] > robust[1] > robust[-1]


def test_more_steps_of_pgd_break_the_same_images_and_more() -> None:
    posterior, data = trained()
    few, some, many = (broken(posterior, data, "pgd", steps=steps, epsilon=0.1) for steps in (1, 4, 20))
    assert (few <= some).all()
    assert (some <= many).all()
    assert int(few.sum()) < int(many.sum())


@pytest.mark.parametrize("name", ["apgd-ce", "apgd-dlr"])
def test_more_steps_of_apgd_break_the_same_images_and_more(name: str) -> None:
    posterior, data = trained()
    found = [broken(posterior, data, name, steps=steps, epsilon=0.12) for steps in (1, 2, 3, 5, 8, 13, 21, 34, 55)]
    assert all((few <= more).all() for few, more in pairwise(found))
    assert int(found[0].sum()) < int(found[-1].sum())


@pytest.mark.parametrize("name", OURS)
def test_the_accuracy_under_attack_is_never_above_the_clean_one(name: str) -> None:
    posterior, data = trained()
    mislabelled = replace(data, y=torch.where(torch.arange(len(data)) % 3 == 0, (data.y + 1) % 10, data.y))
    for epsilon, steps in ((1e-4, 1), (0.05, 3), (0.3, 10)):
        result = robust_accuracy(posterior, mislabelled, attack=name, epsilon=epsilon, steps=steps)
        assert result.robust <= result.clean == evaluate(posterior, mislabelled).accuracy


@pytest.mark.parametrize("name", ["pgd", "apgd-ce"])
def test_more_restarts_break_the_same_images_and_more(name: str) -> None:
    posterior, data = trained()
    one, more = (broken(posterior, data, name, restarts=r, steps=1, epsilon=0.12) for r in (1, 6))
    assert (one <= more).all()
    assert int(one.sum()) < int(more.sum())


def test_both_losses_are_the_default() -> None:
    posterior, data = trained()
    default, both, ce = (
        robust_accuracy(posterior, data, epsilon=0.1, steps=5, **which)
        for which in ({}, {"attack": "apgd"}, {"attack": "apgd-ce"})
    )
    assert default == both
    assert default.name == "apgd"
    assert default.robust <= ce.robust


def test_both_losses_together_break_what_either_does() -> None:
    posterior, data = trained()
    ce, dlr, both = (broken(posterior, data, n, steps=10, epsilon=0.1) for n in ("apgd-ce", "apgd-dlr", "apgd"))
    assert torch.equal(both, ce | dlr)


def test_images_that_were_wrong_before_count_as_broken() -> None:
    posterior, data = trained()
    wrong = replace(data, y=(data.y + 1) % 10)
    result = robust_accuracy(posterior, wrong, epsilon=0.1, steps=5)
    assert result.clean == evaluate(posterior, wrong).accuracy < 0.1
    assert result.robust <= result.clean
    untouched = ~broken(posterior, wrong, "apgd-ce", epsilon=0.1, steps=5)
    assert untouched[posterior.predict(data.x).argmax(1) != wrong.y].all()


def test_the_generator_decides_and_nothing_else_does() -> None:
    posterior, data = trained()
    state = torch.get_rng_state()
    one, two, other = (adversarial(posterior, data, "apgd", steps=5, epsilon=0.1, gen=generator(s)) for s in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    small = adversarial(replace(posterior, chunk=14), data, "apgd", steps=5, epsilon=0.1, gen=generator())
    assert torch.allclose(small, one, atol=1e-5)
    fewer = adversarial(posterior, data[:20], "apgd", steps=5, epsilon=0.1, gen=generator())
    assert torch.allclose(fewer, one[:20], atol=1e-5)


def test_data_under_another_scaling_is_attacked_alike() -> None:
    posterior, data = trained()
    raw = replace(data, x=pixels(data), spec=replace(data.spec, transform=Identity()))
    ours, theirs = (robust_accuracy(posterior, d, epsilon=0.1, steps=5) for d in (data, raw))
    assert ours == theirs


def test_a_limit_takes_that_many() -> None:
    posterior, data = trained()
    assert robust_accuracy(posterior, data, attack="pgd", steps=1, limit=7).n == 7
    assert robust_accuracy(posterior, data, attack="pgd", steps=1, limit=700).n == len(data)


# Bad input


def test_the_ratio_of_two_classes_is_replaced_with_a_word() -> None:
    posterior, data, _ = two_sides("none")
    with pytest.warns(UserWarning, match="DLR loss needs three classes"):
        found = robust_accuracy(posterior, data, steps=5)
    assert found.note == MARGIN


def test_errors_name_the_remedy() -> None:
    posterior, data = trained()
    with pytest.raises(AttarError, match="did you mean 'apgd'"):
        robust_accuracy(posterior, data, attack="agpd")
    for epsilon in (-0.1, 1.5, 8):
        with pytest.raises(AttarError, match=r"in \[0, 1\]"):
            robust_accuracy(posterior, data, epsilon=epsilon)
    with pytest.raises(AttarError, match="at least one step"):
        robust_accuracy(posterior, data, steps=0)
    with pytest.raises(AttarError, match="images with pixels"):
        robust_accuracy(posterior, gaussians(4))
    with pytest.raises(AttarError, match="evaluate it on the data set that it was made from"):
        robust_accuracy(posterior, images(4))


# AutoAttack


def test_autoattack_breaks_what_can_be_broken_of_a_linear_model_of_two_classes() -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    posterior, data, worst = two_sides("standard")
    weak = posterior.predict(data.spec.transform.apply(worst)).argmax(1) != data.y
    assert robust_accuracy(posterior, data[weak], attack="autoattack").robust == 0


SLOW = [pytest.param(classes, marks=pytest.mark.slow) for classes in (4, 10)]


@pytest.mark.parametrize("classes", [3, *SLOW])
def test_autoattack_is_no_weaker_than_ours(classes: int, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    posterior, data = trained(classes, draws=1)
    data, state, tracer = data[:8], torch.get_rng_state(), sys.gettrace()
    ours = broken(posterior, data, "apgd", epsilon=0.1)
    found = adversarial(posterior, data, "autoattack", epsilon=0.1, gen=generator())
    theirs = (found != pixels(data)).flatten(1).any(1)
    assert 0 < int(ours.sum()) <= int(theirs.sum()) < 8
    assert float((found - pixels(data)).abs().max()) <= 0.1 + 1e-6
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    assert torch.equal(state, torch.get_rng_state())  # the package seeds the global generator
    assert sys.gettrace() is tracer  # and takes a debugger's hook away
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_standard_attack_breaks_what_ours_do() -> None:
    pytest.importorskip("pyautoattack", reason="pyautoattack is not installed")
    posterior, data = trained()
    ours, all_of_them = (broken(posterior, data[:16], name, steps=5) for name in ("apgd", "standard"))
    assert (ours <= all_of_them).all()
