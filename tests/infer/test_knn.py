import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

import attar
from attar.core.errors import AttarError
from attar.data import Data
from attar.infer import Draws
from tests.known import gaussians

DATA = gaussians(16)


@pytest.mark.parametrize("k", [1, 5])
def test_it_predicts_like_scikit_learn(k: int) -> None:
    posterior = attar.infer(DATA, "knn", options={"k": k})
    theirs = KNeighborsClassifier(k).fit(DATA.x.numpy(), DATA.y.numpy())
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(3)) * 3
    wanted = (theirs.predict_proba(x.numpy()) * k + 1 / 3) / (k + 1)
    assert np.allclose(posterior.predict(x).numpy(), wanted, atol=1e-5)


def test_soft_labels_vote_for_a_class_that_no_example_stands_for() -> None:
    x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]])
    posterior = attar.infer(Data(x, y), "knn", options={"k": 2})
    assert int(posterior.predict(torch.zeros(1, 1)).argmax()) == 1


def test_it_is_saved_and_read_like_any_posterior(tmp_path_factory: pytest.TempPathFactory) -> None:
    posterior = attar.infer(DATA, "knn", options={"k": 3})
    path = tmp_path_factory.mktemp("knn") / "posterior.safetensors"
    posterior.save(path)
    assert torch.equal(Draws.load(path).predict(DATA.x), posterior.predict(DATA.x))


def test_it_does_not_read_texts() -> None:
    with pytest.raises(AttarError, match="does not read texts"):
        attar.infer((["a b", "b c"] * 6, [0, 1] * 6), "knn")
