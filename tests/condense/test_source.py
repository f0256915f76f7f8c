import torch

from attar.condense.source import Pixels, start
from tests.truth import gaussians, generator, images


def test_pixels_learn_the_examples_and_nothing_else() -> None:
    data = images(2)
    source = Pixels(data)
    assert [name for name, _ in source.named_parameters()] == ["x"]
    made = source()
    assert made.x.requires_grad
    assert torch.equal(made.x, data.x)
    assert torch.equal(made.y, data.y)
    assert made.domain is data.domain


def test_pixels_are_a_copy_of_the_data_they_start_from() -> None:
    data = gaussians(2)
    before = data.x.clone()
    with torch.no_grad():
        Pixels(data).x.zero_()
    assert torch.equal(data.x, before)


def test_a_real_start_takes_examples_of_every_class_from_the_data() -> None:
    data = gaussians(8)
    first = start(data, 3, "real", generator())
    assert first.y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for x, y in zip(first.x, first.y, strict=True):
        assert bool((data.of_class(int(y)).x == x).all(1).any())


def test_a_start_from_noise_shows_nothing_of_the_data() -> None:
    noise, far = (start(data, 50, "noise", generator()) for data in (gaussians(50), gaussians(50, seed=1)))
    assert torch.equal(noise.x, far.x)
    assert torch.equal(noise.y, gaussians(50).y.sort().values)
    assert noise.x.mean().abs().item() < 0.1
    assert abs(noise.x.std().item() - 1) < 0.1
