"""Scoring networks that stop by fit, gradients and passes as in published code, and what users are told about picks."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy, softmax

import attar
from attar import SelectionWarning
from attar.core import registry
from attar.core.errors import AttarError
from attar.data import Data
from attar.nets import network
from attar.nets.train import Trainer, Training, train
from attar.select.balance import PerClass
from attar.select.craig import CRAIG
from attar.select.glister import Glister, OneStep
from attar.select.gradients import GradientSelector
from attar.select.keep import warn_if_misclassified
from attar.select.lcmats import LCMatS
from attar.select.mapreduce import MapReduce
from attar.select.scoring import Look, logit_gradients, scoring_network
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import gaussians, generator, images
from tests.select.seen import exact

DATA = gaussians(60)
NET = network("mlp-d1w16", DATA.shape, DATA.classes)
LONG = Training(steps=200, lr=0.01, batch=16)
BY_GRADIENT = ["adacore", "craig", "glister", "glister-val", "gradmatch", "gradmatch-val", "lcmat-s"]
BATCH_NORM = "convnet-d1w4-batch"


def accuracy(view: View) -> float:
    return float((view.logits.argmax(1) == view.hard).float().mean())


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_methods_by_gradient_stop_their_scoring_network_by_fit(name: str) -> None:
    method = registry.build(name, {}, "select")
    assert isinstance(method, GradientSelector)
    view = View(DATA, NET, LONG, generator(2), validation=gaussians(8, seed=1))
    method.select(view, 3, generator())
    assert "theta" not in vars(view)  # the network at the end of its steps is not even trained
    assert accuracy(method.seen(view)) < accuracy(view)
    assert accuracy(method.seen(view)) > 1 / 3


def test_training_stops_at_the_first_measurement_that_reaches_the_target() -> None:
    found = {fit: View(DATA, NET, LONG, generator(2)).seen(Look(fit)) for fit in (0.3, 0.6, 0.9)}
    ends = {fit: next(s for s in range(1, 201) if _after(s).equal(seen.theta)) for fit, seen in found.items()}
    assert ends[0.3] < ends[0.6] < ends[0.9] < 200
    for fit, seen in found.items():
        assert accuracy(seen) >= 1 / 3 + 2 / 3 * fit  # 180 examples are fewer than the sample, so all are measured
    assert 1 < ends[0.6] <= 20  # so far it is measured after every step
    before = View(DATA, NET, LONG, generator(2), theta=_after(ends[0.6] - 1))
    assert accuracy(before) < 1 / 3 + 2 / 3 * 0.6


def _after(steps: int) -> torch.Tensor:
    """The parameters after some steps of the same training."""
    gen = generator(2)
    trainer = Trainer(NET, DATA, LONG, NET.init(gen)[None])
    for _ in range(steps):
        trainer.step(gen)
    return trainer.theta[0]


def test_a_fit_of_one_takes_all_steps_and_measures_nothing() -> None:
    labels = DATA.y
    whole = scoring_network(NET, DATA, labels, LONG, generator(3), 1.0)
    assert torch.equal(whole, train(NET, DATA, LONG, generator(3))[0])


def test_the_same_seed_gives_the_same_bits_also_from_the_cache(tmp_path: Path) -> None:
    first, second = (View(DATA, NET, LONG, generator(2), cache=tmp_path).seen(Look(0.5)) for _ in range(2))
    assert torch.equal(first.features, second.features)
    assert torch.equal(first.theta, View(DATA, NET, LONG, generator(2)).seen(Look(0.5)).theta)
    other = View(DATA, NET, LONG, generator(2), cache=tmp_path).seen(Look(0.9))
    assert not torch.equal(other.features, first.features)  # another fit is another file
    assert len(list(tmp_path.iterdir())) == 2


def test_guessing_the_most_frequent_class_is_no_fit() -> None:
    y = (torch.arange(100) % 10 == 0).long()  # nine of ten are class 0, so an untrained network may be right on 90 %
    x = torch.randn(100, 6, generator=generator()) + 3 * y[:, None]
    net = network("linear", (6,), 2)
    theta = scoring_network(net, Data(x, y), y, Training(steps=300, lr=0.01), generator(1), 0.5)
    assert float((net(theta, x).argmax(1) == y).float().mean()) >= 0.95


def test_a_network_that_never_fits_is_used_and_one_sentence_says_so() -> None:
    hopeless = Training(steps=2, lr=1e-6)
    with pytest.warns(
        SelectionWarning, match=r"should reach a training accuracy of 93%, and has \d+% after all its 2 "
    ):
        picked = attar.select(DATA, "craig", per_class=2, network="mlp-d1w16", training=hopeless, options={"fit": 0.9})
    assert len(picked.indices) == 6


def test_looks_share_parameters_parts_and_validation() -> None:
    view = View(DATA, NET, LONG, generator(2), validation=gaussians(8, seed=1))
    plain, other = view.seen(Look(0.5)), view.seen(Look(0.5, "published"))
    assert other.theta is plain.theta
    assert view.seen(Look(0.5)) is plain
    part = view.of_class(1).seen(Look(0.5, "published"))
    assert torch.equal(part.residuals, other.residuals[part.indices])
    assert torch.equal(part.validation.residuals, other.validation.of_class(1).residuals)
    assert not torch.equal(other.validation.residuals, plain.validation.residuals)


def test_published_gradients_are_those_of_a_double_softmax() -> None:
    view = exact(12)
    logits = view.logits.clone().requires_grad_()
    loss = cross_entropy(softmax(logits, 1), view.y, reduction="sum")
    expected = torch.autograd.grad(loss, logits)[0]
    assert torch.allclose(logit_gradients(view.logits, view.targets, "published"), expected, atol=1e-12)
    assert torch.allclose(view.seen(Look(1.0, "published")).residuals, expected, atol=1e-12)


def test_a_confident_mistake_has_a_gradient_but_not_a_published_one() -> None:
    logits, label = torch.tensor([[30.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert float(logit_gradients(logits, label, "exact").norm()) > 1
    assert float(logit_gradients(logits, label, "published").norm()) < 1e-10


def test_published_gradients_pick_fewer_mislabelled_examples() -> None:
    y, wrong = DATA.y.clone(), torch.arange(0, 180, 20)
    y[wrong] = (y[wrong] + 1) % 3
    view = View(replace(DATA, y=y), NET, replace(LONG, steps=300, lr=0.05), generator(2))
    share = {}
    for kind in ("exact", "published"):
        method = Glister(fit=1.0, gradient=kind)  # type: ignore[arg-type]
        picked = PerClass(method).select(view, 3, generator()).indices
        share[kind] = len(set(picked.tolist()) & set(wrong.tolist()))
    assert share["published"] < share["exact"]


def test_glister_s_steps_use_the_same_gradients_as_its_first() -> None:
    view = exact(12).seen(Look(1.0, "published"))
    one = OneStep(view, view, eta=0.5)
    one.add(3)
    expected = logit_gradients(one.logits, view.targets, "published")
    assert torch.allclose(one.held.left, expected)


def batch_normed(per_class: int = 20) -> View:
    data = images(per_class)
    net = network(BATCH_NORM, data.shape, data.classes)
    return View(data, net, Training(steps=30, batch=16), generator(2))


def test_in_training_mode_batch_norm_sees_batches_of_one_class() -> None:
    view = batch_normed()
    seen = view.seen(Look(1.0, "exact", "train"))
    index = (view.hard == 1).nonzero().flatten()
    halves = [view.network.features(seen.theta, view.data.take(part).x) for part in index.tensor_split(2)]
    assert torch.allclose(seen.of_class(1).features, torch.cat(halves).flatten(1), atol=1e-6)  # 20 are two batches
    assert not torch.allclose(seen.features, view.features, atol=1e-2)
    eval_picks, train_picks = (
        PerClass(LCMatS(fit=1.0, mode=mode)).select(view, 3, generator()).indices.tolist()  # type: ignore[arg-type]
        for mode in ("eval", "train")
    )
    assert eval_picks != train_picks


def test_training_mode_needs_two_examples_of_a_class() -> None:
    view = batch_normed()
    lone = view.data[view.hard.argsort()[:21]]  # all of class 0, one of class 1
    seen = View(lone, view.network, view.training, generator(), theta=view.theta).seen(Look(1.0, "exact", "train"))
    with pytest.raises(AttarError, match="mode=train needs 2 examples of every class, and class 1 has 1"):
        _ = seen.features


def test_training_mode_that_cannot_matter_is_said_aloud_and_changes_nothing() -> None:
    view = View(DATA, NET, LONG, generator(2))
    with pytest.warns(SelectionWarning, match="mode=train changes nothing, because mlp-d1w16 predicts every example"):
        train_mode = PerClass(CRAIG(mode="train")).select(view, 2, generator())
    assert torch.equal(train_mode.indices, PerClass(CRAIG()).select(view, 2, generator()).indices)


def test_picks_that_are_mostly_misclassified_are_reported_with_a_remedy() -> None:
    y = DATA.y.clone()
    y[::10] = (y[::10] + 1) % 3
    noisy = replace(DATA, y=y)
    how = {"per_class": 1, "network": NET, "training": Training(steps=200, lr=0.05), "options": {"fit": 1.0}}
    says = r"The scoring network misclassifies \d+% of the picks, and \d+% of all examples.*choose herding or lcmat-s"
    with pytest.warns(SelectionWarning, match=says):
        attar.select(noisy, "gradmatch", **how)  # type: ignore[arg-type]
    with pytest.warns(SelectionWarning, match=says):
        attar.reduce(noisy, "gradmatch", **how)  # type: ignore[arg-type]
    with pytest.warns(SelectionWarning, match=says):
        attar.select(noisy, "gradmatch", part=60, size=3, **{**how, "per_class": None})  # type: ignore[arg-type]


def test_no_report_where_the_network_is_wrong_anyway_or_most_picks_are_right() -> None:
    labels, picks = torch.tensor([0] * 4 + [1] * 6), torch.tensor([0, 1, 2])
    wrong_anyway = torch.eye(2)[torch.tensor([1] * 8 + [0] * 2)]
    right = torch.eye(2)[labels]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_misclassified(wrong_anyway, 1 - labels, torch.arange(10))
        warn_if_misclassified(right, labels, picks)


@pytest.mark.parametrize(("wrong", "reported"), [(100, True), (90, True), (80, False), (72, False)])
def test_where_the_default_fit_leaves_72_of_100_wrong_only_clearly_more_are_reported(
    wrong: int, reported: bool
) -> None:
    labels = torch.zeros(1000, dtype=torch.long)
    logits = torch.eye(2)[(torch.arange(1000) < 720).long()]
    picks = torch.cat([torch.arange(wrong), torch.arange(720, 820 - wrong)])  # 100 of them
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_misclassified(logits, labels, picks)
    told = [f"{wrong}% of the picks, and 72% of all examples" in str(warning.message) for warning in caught]
    assert told == ([True] if reported else [])


def test_a_random_subset_trains_no_network_to_judge_its_picks() -> None:
    view = View(DATA, NET, LONG, generator(2))
    attar.select(view, "uniform", per_class=2)
    assert not view.predicts
    embedded = from_embeddings(DATA.x, DATA.y)
    attar.select(embedded, "k-center", size=3)
    assert not embedded.predicts


def test_parts_look_as_their_method_does() -> None:
    view = View(DATA, NET, LONG, generator(2))
    assert MapReduce(CRAIG(fit=0.5), 30).seen(view) is view.seen(Look(0.5))
