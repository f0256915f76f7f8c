from dataclasses import replace

import pytest
import torch

import attar
from attar.assess.metrics import score
from attar.core.errors import AttarError
from attar.data import Data, Spec
from attar.data.transform import Standard
from attar.infer import Draws
from attar.nets import network
from tests.known import gaussians, generator, images

TEST = gaussians(10)


def posterior(data: Data = TEST, name: str = "linear") -> Draws:
    net, gen = network(name, data.shape, data.classes), generator()
    return Draws(net, torch.stack([net.init(gen) for _ in range(2)]), data.spec)


def test_scores_are_those_of_the_averaged_prediction() -> None:
    assert attar.evaluate(posterior(), TEST) == score(posterior().predict(TEST.x), TEST.y)


def test_a_classifier_that_reads_the_class_off_scores_all() -> None:
    # Class c is far out along axis c, so the identity as weights tells them apart.
    theta = torch.cat([5 * torch.eye(3, 6).flatten(), torch.zeros(3)])[None]
    s = attar.evaluate(replace(posterior(), theta=theta), TEST)
    assert s.accuracy == 1
    assert s.nll < 1e-3


def test_data_under_another_scaling_is_brought_to_the_posterior_s() -> None:
    data = images(6)
    raw = replace(data, x=data.spec.stored(data.x), spec=replace(data.spec, transform=Standard.fit(data.x)))
    other = raw.map(raw.spec.transform.apply)
    ours, theirs = (attar.evaluate(posterior(data, "mlp-d1w4"), d) for d in (data, other))
    assert ours.nll == pytest.approx(theirs.nll, rel=1e-4)
    assert ours.confusion == theirs.confusion


def test_soft_labels_are_scored_by_their_likeliest_class() -> None:
    soft = replace(TEST, y=torch.eye(3)[TEST.y] * 0.7 + 0.1)
    assert attar.evaluate(posterior(), soft) == attar.evaluate(posterior(), TEST)


def test_data_of_another_shape_or_number_of_classes_is_refused() -> None:
    for other in (gaussians(4, size=5), gaussians(4, classes=4), images(2)):
        with pytest.raises(AttarError, match="evaluate it on the data set that it was made from"):
            attar.evaluate(posterior(), other)


def test_what_is_no_posterior_is_refused_with_the_way_to_one() -> None:
    coreset = attar.reduce(TEST, "uniform", per_class=1, network="linear")
    for given in (coreset, 3):
        with pytest.raises(AttarError, match=f"{type(given).__name__} is no posterior: infer one first"):
            attar.evaluate(given, TEST)  # type: ignore[arg-type]


def test_data_whose_classes_have_other_names_is_refused() -> None:
    mixed = replace(TEST, spec=Spec.of(TEST.shape, ("class 1", "class 0", "class 2")))
    with pytest.raises(AttarError, match="classes are class 0, class 1, class 2, but the data's are class 1, class 0"):
        attar.evaluate(posterior(), mixed)
    nameless = replace(TEST, spec=Spec.of(TEST.shape, 3))
    assert attar.evaluate(posterior(), nameless) == attar.evaluate(posterior(), TEST)
