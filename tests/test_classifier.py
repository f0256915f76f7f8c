from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import attar
from attar.classifier import CoresetClassifier
from attar.core.errors import AttarError, MissingExtra
from attar.select.herding import Herding


def blobs(sizes: tuple[int, ...] = (30, 20, 25)) -> tuple[NDArray[Any], NDArray[Any]]:
    centres = np.array([[0, 0], [8, 0], [0, 8]])[: len(sizes)]
    x, y, *_ = make_blobs(list(sizes), centers=centres, random_state=0)
    return x, y


def quick(**options: Any) -> CoresetClassifier:
    settings: dict[str, Any] = {"per_class": 5, "draws": 2, "steps": 30, "network": "mlp-d1w16"} | options
    return CoresetClassifier(**settings)


def picked(model: CoresetClassifier) -> list[int]:
    assert model.coreset_.indices is not None
    indices: list[int] = model.coreset_.indices.tolist()
    return indices


@parametrize_with_checks([CoresetClassifier(draws=2, steps=100, network="mlp-d1w32")])  # type: ignore[untyped-decorator]
def test_it_keeps_the_contract_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_hundred_herded_digits_predict_the_rest() -> None:
    x, y = load_digits(return_X_y=True)
    x, held, y, truth = train_test_split(x, y, test_size=0.3, stratify=y, random_state=0)
    model = attar.CoresetClassifier(method="herding", per_class=10).fit(x, y)
    assert len(model.coreset_) == 100
    assert model.score(held, truth) > 0.80


def test_the_coreset_is_rows_of_x_and_may_be_used_alone() -> None:
    x, y = blobs()
    names = np.array(["ant", "bee", "cow"])
    model = quick().fit(x, names[y])
    indices = picked(model)
    assert np.allclose(model.coreset_.pixels().numpy(), x[indices], atol=1e-4)
    assert names[y][indices].tolist() == names[model.coreset_.data.y.numpy()].tolist()
    assert model.coreset_.data.spec.target.names == tuple(model.classes_) == ("ant", "bee", "cow")
    probabilities = model.predict_proba(x)
    assert np.allclose(model.posterior_.predict_proba(x), probabilities, atol=1e-4)
    assert (names[probabilities.argmax(1)] == model.predict(x)).all()
    assert set(model.predict(x)) == set(names)


def test_the_smallest_class_caps_the_size_of_a_balanced_coreset() -> None:
    with pytest.warns(attar.SkewWarning, match="Classes have 3 to 30 examples"):
        model = quick(per_class=10).fit(*blobs((30, 3, 20)))
    assert model.coreset_.recipe.per_class == 3
    assert torch.bincount(model.coreset_.data.y).tolist() == [3, 3, 3]
    shared = quick(per_class=10, budget="minimum=2").fit(*blobs((30, 3, 20)))
    assert torch.bincount(shared.coreset_.data.y).tolist() == [17, 2, 11]


def test_the_random_state_fixes_everything_and_the_global_generator_is_left_alone() -> None:
    x, y = blobs()
    before = torch.get_rng_state()
    first, again, other = (quick(random_state=seed).fit(x, y) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.posterior_.theta, again.posterior_.theta)
    assert picked(first) == picked(again)
    assert picked(first) != picked(other)
    stream = np.random.RandomState(0)
    one, two = (quick(random_state=stream).fit(x, y) for _ in range(2))
    assert not torch.equal(one.posterior_.theta, two.posterior_.theta)


def test_it_does_not_mind_the_units_of_a_column() -> None:
    # A column such as a time in seconds is far from zero: in float32 its spread would be lost.
    x, y = blobs()
    x = x + np.array([1.7e9, 0])
    assert quick(steps=100).fit(x, y).score(x, y) > 0.95


def test_rows_that_are_images_meet_a_convnet() -> None:
    gen = np.random.default_rng(0)
    x, y = gen.random((40, 3 * 4 * 4)), np.arange(40) % 2
    model = quick(network=None, image_shape=(3, 4, 4)).fit(x, y)
    assert model.coreset_.data.shape == (3, 4, 4)
    assert model.posterior_.network.name.startswith("convnet")
    assert np.allclose(model.coreset_.pixels().flatten(1).numpy(), x[picked(model)], atol=1e-5)
    assert model.predict(x).shape == (40,)
    with pytest.raises(AttarError, match="48 columns, which does not fit image_shape"):
        quick(image_shape=(1, 4, 4)).fit(x, y)


def test_methods_take_their_options() -> None:
    x, y = blobs()
    learnt = quick(method="dm", options={"strategy": "none", "batch": 8}, descent={"steps": 2}).fit(x, y).coreset_
    assert learnt.recipe.options["batch"] == 8
    assert learnt.recipe.descent["steps"] == 2
    assert learnt.indices is None
    named, own = quick(method="herding").fit(x, y), quick(method=Herding()).fit(x, y)
    assert picked(named) == picked(own)


def test_bad_parameters_are_refused_at_fit() -> None:
    x, y = blobs()
    for options, words in (
        ({"method": "herdin"}, "did you mean 'herding'"),
        ({"steps": 0}, "CoresetClassifier: steps"),
        ({"per_class": 0}, "per_class must be at least 1"),
        ({"draws": 0}, "draws must be at least 1"),
    ):
        with pytest.raises(AttarError, match=words):
            quick(**options).fit(x, y)
    with pytest.raises(AttarError, match="only 1 class"):
        quick().fit(x, np.zeros(len(x)))


def test_it_goes_where_estimators_go() -> None:
    x, y = blobs()
    assert cross_val_score(make_pipeline(MinMaxScaler(), quick(steps=100)), x, y, cv=3).min() > 0.9
    search = GridSearchCV(quick(), {"per_class": [1, 6]}, cv=2).fit(x, y)
    assert len(search.best_estimator_.coreset_) == 3 * search.best_params_["per_class"]
    assert clone(quick(method="herding", lr=0.1)).get_params()["lr"] == 0.1


def test_a_fitted_classifier_survives_pickling() -> None:
    x, y = blobs()
    model = quick(image_shape=(1, 1, 2)).fit(x, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(x) == model.predict_proba(x)).all()


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "attar.classifier")
    with pytest.raises(MissingExtra, match=r"pip install 'attar\[sklearn\]'"):
        _ = attar.CoresetClassifier
