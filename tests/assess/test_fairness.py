"""The scores of DD-Ranking at their ends, and measured where the answer is known."""

from dataclasses import replace
from functools import cache
from math import e

import pytest
import torch

import attar
from attar import Coreset, Data, Split, Training
from attar.assess.fairness import (
    Fairness,
    Pair,
    augmentation_robust,
    fair,
    label_robust,
    normalised,
    random_like,
)
from attar.assess.statistics import t_quantile
from attar.core.errors import AttarError
from tests.known import digits, gaussians

QUICK = Training(steps=20, batch=64)


def split(data: Data) -> Split:
    return Split(data[: len(data) // 2], data[:0], data[len(data) // 2 :])


IMAGES, FEATURES = split(digits().train[:400]), split(gaussians(24))


def coreset(of: Split, method: str = "uniform", per_class: int = 2) -> Coreset:
    network = "convnet-d1w4" if len(of.shape) == 3 else "linear"
    return attar.reduce(of, method, per_class=per_class, network=network, training=QUICK)


@cache
def measured(kind: str) -> Fairness:
    of = IMAGES if kind == "images" else FEATURES
    return fair(coreset(of), of, seeds=[0, 1])


def test_the_scale_runs_from_zero_to_one() -> None:
    assert normalised(-1) == 0
    assert normalised(1) == 1
    assert normalised(0) == pytest.approx(1 / (1 + e))
    assert normalised(-0.5) < normalised(0) < normalised(0.5)


def test_the_label_robust_score_worked_by_hand() -> None:
    assert label_robust(1, -1) == 1  # alpha = 1: all gained, and nothing lost but won
    assert label_robust(-1, 1) == 0  # alpha = -1
    assert label_robust(0.3, 0.3) == pytest.approx(1 / (1 + e))  # what is gained is lost
    assert label_robust(0.2, 0.4, w=1) == normalised(0.2)
    assert label_robust(0.2, 0.4, w=0) == normalised(-0.4)
    assert label_robust(0.2, 0.4, w=0.25) == pytest.approx(normalised(0.05 - 0.3))


def test_the_augmentation_robust_score_worked_by_hand() -> None:
    assert augmentation_robust(1, 1) == 1
    assert augmentation_robust(-1, -1) == 0
    assert augmentation_robust(0.4, 0.2) == pytest.approx(normalised(0.3))
    assert augmentation_robust(0.4, 0.2, gamma=1) == normalised(0.4)
    assert augmentation_robust(0.4, 0.2, gamma=0) == normalised(0.2)


def test_what_was_measured_makes_the_scores() -> None:
    pair, plain = Pair([0.8, 0.6], [0.5, 0.5]), Pair([0.5, 0.5], [0.4, 0.6])
    f = Fairness(pair, [0.6, 0.6], [0.9, 0.7], plain, pair)
    assert pair.gain == pytest.approx((0.2, 0.1 * t_quantile(1)))
    assert f.ior == pytest.approx(0.2)
    assert f.hlr == pytest.approx(0.2)
    assert f.lrs() == pytest.approx(normalised(0))
    assert f.ars() == pytest.approx(normalised(0.1))
    assert str(f) == "IOR +0.200 ± 1.271  HLR +0.200  LRS 0.269  ARS 0.314"
    assert str(replace(f, augmented=None)) == "IOR +0.200 ± 1.271  HLR +0.200  LRS 0.269"


def test_one_accuracy_for_each_seed_and_hard_labels_are_trained_on_once() -> None:
    f = measured("images")
    assert f.augmented is not None
    assert f.ars() is not None
    for pair in (f.own, f.plain, f.augmented):
        assert len(pair.coreset) == len(pair.random) == 2
    assert len(f.full) == 2
    assert f.hard == f.own.coreset  # its labels are hard already
    assert f.own == f.plain  # the settings asked for have no augmentation
    assert f.plain != f.augmented


def test_settings_with_augmentation_are_judged_with_it() -> None:
    f = fair(coreset(IMAGES), IMAGES, seeds=[0], training=replace(QUICK, augment="flip"))
    assert f.own == f.augmented
    assert f.plain.coreset == measured("images").plain.coreset[:1]


def test_feature_vectors_have_no_augmentation_to_be_robust_to() -> None:
    f = measured("features")
    assert f.augmented is None
    assert f.ars() is None
    assert 0 < f.lrs() < 1


def test_the_full_data_itself_recovers_all_and_is_no_better_than_random() -> None:
    whole = replace(coreset(FEATURES), data=FEATURES.train)
    f = fair(whole, FEATURES, seeds=[0, 1])
    assert f.hlr == 0
    assert f.ior == pytest.approx(0, abs=0.05)
    assert f.lrs() == pytest.approx(1 / (1 + e), abs=0.02)


def test_examples_with_wrong_hard_labels_are_worse_than_random() -> None:
    good = coreset(FEATURES)
    bad = replace(good, data=replace(good.data, y=(good.data.y + 1) % 3))
    f = fair(bad, FEATURES, seeds=[0])
    assert f.ior < -0.5
    assert f.hlr > 0.5
    assert f.lrs() < 0.15


def test_soft_labels_are_judged_by_their_hard_ones_too() -> None:
    good = coreset(FEATURES)
    turned = torch.eye(3)[good.data.y] * 0.5 + torch.eye(3)[(good.data.y + 1) % 3] * 0.5
    nearly = (turned + 1e-3 * torch.eye(3)[(good.data.y + 1) % 3]) / 1.001  # the likeliest class is wrong by a hair
    f = fair(replace(good, data=replace(good.data, y=nearly)), FEATURES, seeds=[0])
    assert f.hard[0] < 0.5
    assert f.own.coreset != f.hard


def test_random_subsets_are_as_large_as_balanced_and_as_soft() -> None:
    train = FEATURES.train
    teacher = attar.infer(train, draws=1, network="linear", training=QUICK)
    like = coreset(FEATURES).data
    subset = random_like(like, train, teacher, 0)
    assert torch.bincount(subset.y).tolist() == [2, 2, 2]
    assert not torch.equal(subset.x, like.x)  # though that was picked at random with the same seed
    assert torch.equal(random_like(like, train, teacher, 0).x, subset.x)
    assert not torch.equal(random_like(like, train, teacher, 1).x, subset.x)
    soft = random_like(replace(like, y=torch.eye(3)[like.y]), train, teacher, 0)
    torch.testing.assert_close(soft.y, teacher.predict(subset.x).float())
    assert len(random_like(like[:5], train, teacher, 0)) == 5


def test_a_learnt_step_size_is_a_setting_of_coreset_and_random_alike() -> None:
    slow = replace(coreset(FEATURES), step_size=1e-9)  # nothing is learnt, so both are the same untrained network
    f = fair(slow, FEATURES, seeds=[0, 1])
    assert f.own.coreset == f.own.random
    assert f.full == measured("features").full


def test_bad_input_is_refused() -> None:
    for alpha in (1.5, -2.0, float("nan")):
        with pytest.raises(AttarError, match="give them as fractions"):
            normalised(alpha)
    with pytest.raises(AttarError, match="w must lie between 0 and 1"):
        label_robust(0, 0, 2)
    with pytest.raises(AttarError, match="gamma must lie"):
        augmentation_robust(0, 0, -1)
    with pytest.raises(AttarError, match="at least one seed"):
        fair(coreset(FEATURES), FEATURES, seeds=[])
    with pytest.raises(AttarError, match="evaluate it on the data that it was made from"):
        fair(coreset(FEATURES), IMAGES, seeds=[0])
