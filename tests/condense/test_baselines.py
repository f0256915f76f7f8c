"""The baselines of dataset distillation that have a closed form."""

import torch

import attar
from attar.data.clusters import centres, nearest_of
from tests.known import gaussians, generator

DATA = gaussians(16)


def test_one_centre_and_one_average_per_class_are_the_class_means() -> None:
    means = torch.stack([DATA.x[DATA.y == c].mean(0) for c in range(3)])
    for name in ("k-means-centres", "average-real"):
        assert torch.allclose(attar.reduce(DATA, name, per_class=1).data.x, means, atol=1e-5)


def test_several_averages_are_those_of_parts_of_the_class() -> None:
    made = attar.reduce(DATA, "average-real", per_class=2).data
    for c in range(3):
        assert torch.allclose(made.x[made.y == c].mean(0), DATA.x[DATA.y == c].mean(0), atol=1e-5)


def test_centres_are_closer_to_their_class_than_random_examples() -> None:
    made, random = (attar.reduce(DATA, name, per_class=3).data for name in ("k-means-centres", "uniform"))

    def spread(points: attar.Data) -> float:
        apart = [DATA.x[DATA.y == c] - points.x[points.y == c][nearest(c, points)] for c in range(3)]
        return float(torch.cat(apart).square().sum())

    def nearest(c: int, points: attar.Data) -> torch.Tensor:
        return nearest_of(DATA.x[DATA.y == c], points.x[points.y == c])

    assert spread(made) < spread(random)
    assert len(centres(DATA.x, 3, generator())) == 3
