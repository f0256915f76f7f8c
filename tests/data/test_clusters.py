import pytest
import torch
from sklearn.cluster import KMeans

from attar.data.clusters import centres, nearest_of
from tests.known import gaussians, generator


def spread(x: torch.Tensor, means: torch.Tensor) -> float:
    return float((x - means[nearest_of(x, means)]).square().sum())


@pytest.mark.parametrize("k", [1, 3, 10])
def test_clusters_are_about_as_tight_as_those_of_scikit_learn(k: int) -> None:
    x = gaussians(50).x
    ours = min(spread(x, centres(x, k, generator(seed))) for seed in range(5))
    assert ours <= 1.05 * KMeans(k, n_init=5, random_state=0).fit(x.numpy()).inertia_


def test_one_cluster_is_the_mean_and_as_many_as_rows_are_the_rows() -> None:
    x = gaussians(4).x
    assert torch.allclose(centres(x, 1, generator())[0], x.mean(0), atol=1e-5)
    assert spread(x, centres(x, len(x), generator())) < 1e-6


def test_equal_rows_do_not_stop_it() -> None:
    assert torch.equal(centres(torch.ones(5, 2), 3, generator()), torch.ones(3, 2))
