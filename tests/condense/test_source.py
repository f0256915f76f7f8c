import pytest
import torch

import attar
from attar.condense.dm import DM
from attar.condense.source import SURE, Frozen, Labels, Mosaic, Pixels, start
from attar.core.errors import AttarError
from attar.data import Data
from tests.known import gaussians, generator, images


def test_pixels_learn_the_examples_and_nothing_else() -> None:
    data = images(2)
    source = Pixels(data)
    assert [name for name, _ in source.named_parameters()] == ["x"]
    made = source()
    assert made.x.requires_grad
    assert torch.equal(made.x, data.x)
    assert torch.equal(made.y, data.y)
    assert made.spec is data.spec


def test_pixels_are_a_copy_of_the_data_they_start_from() -> None:
    data = gaussians(2)
    before = data.x.clone()
    with torch.no_grad():
        Pixels(data).x.zero_()
    assert torch.equal(data.x, before)


def test_a_real_start_takes_examples_of_every_class_from_the_data() -> None:
    data = gaussians(8)
    first = start(data, [3] * data.classes, "real", generator())
    assert first.y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for x, y in zip(first.x, first.y, strict=True):
        assert bool((data.of_class(int(y)).x == x).all(1).any())


def test_a_start_from_noise_shows_nothing_of_the_data() -> None:
    noise, far = (
        start(data, [50] * data.classes, "noise", generator()) for data in (gaussians(50), gaussians(50, seed=1))
    )
    assert torch.equal(noise.x, far.x)
    assert torch.equal(noise.y, gaussians(50).y.sort().values)
    assert noise.x.mean().abs().item() < 0.1
    assert abs(noise.x.std().item() - 1) < 0.1


def test_a_start_from_means_takes_those_of_parts_of_the_class() -> None:
    data = gaussians(12)
    for per_class in (1, 3):
        first = start(data, [per_class] * data.classes, "mean", generator())
        assert first.y.tolist() == [c for c in range(3) for _ in range(per_class)]
        assert len(first.x.unique(dim=0)) == 3 * per_class
        means = first.x.unflatten(0, (3, per_class)).mean(1)  # parts are equally large, so their means average
        assert torch.allclose(means, torch.stack([data.of_class(c).x.mean(0) for c in range(3)]), atol=1e-5)


def test_a_start_from_a_selection_method_takes_its_picks() -> None:
    data = gaussians(12)
    picked = attar.reduce(data, "herding", per_class=2, network="linear")
    method = DM(batch=4, strategy="none")
    learnt = attar.reduce(
        data, method, per_class=2, network="linear", descent={"steps": 1, "lr": 1e-9, "init": "herding"}
    )
    assert torch.allclose(learnt.data.x, picked.data.x, atol=1e-6)
    assert learnt.recipe.descent["init"] == "herding"


def test_an_unknown_start_gets_the_nearest() -> None:
    with pytest.raises(AttarError, match="Unknown start 'hreding': did you mean 'herding'"):
        attar.reduce(gaussians(4), "dm", per_class=1, network="linear", descent={"init": "hreding"})


@pytest.mark.parametrize("factor", [1, 2])
def test_soft_labels_start_nearly_sure_of_their_class_and_stay_probabilities_wherever_they_go(factor: int) -> None:
    data = images(4)
    source = Mosaic(data, "soft", factor=factor) if factor > 1 else Pixels(data, "soft")
    first = source().y.detach()
    assert torch.equal(first.argmax(1), data.y)
    assert torch.allclose(first.amax(1), torch.tensor(SURE + (1 - SURE) / data.classes))
    with torch.no_grad():
        source.y += 10 * torch.randn(source.y.shape, generator=generator())
    moved = source().y
    assert bool((moved >= 0).all())
    assert torch.allclose(moved.sum(1), torch.ones(len(data)))
    assert moved.requires_grad


def test_only_what_is_asked_is_a_parameter() -> None:
    data = gaussians(2)
    ways: list[tuple[Labels, bool, list[str]]] = [
        ("targets", True, ["x", "y"]),
        ("soft", False, ["y"]),
        ("hard", True, ["x"]),
    ]
    for labels, pixels, expected in ways:
        source = Pixels(data, labels, pixels=pixels)
        assert [name for name, _ in source.named_parameters()] == expected
        assert {"x", "y"} <= source.state_dict().keys()  # the rest is kept too


def test_a_frozen_share_is_noise_that_has_no_gradient() -> None:
    data = images(4)
    source = Frozen(data, share=0.25, gen=generator())
    made = source()
    (slope,) = torch.autograd.grad(made.x.square().sum(), source.x)
    still = (slope == 0).flatten(1)
    assert still.sum(1).tolist() == [16] * len(data)  # of 64 pixels
    assert len(still.unique(dim=0)) > 1  # not the same in every image
    assert torch.equal(made.x.flatten(1)[~still], data.x.flatten(1)[~still])
    assert not (made.x == data.x).flatten(1)[still].any()


def test_a_mosaic_stores_small_images_and_gives_them_at_full_size() -> None:
    # Images of one value each survive shrinking and stretching.
    y = torch.arange(2).repeat_interleave(4)
    data = Data(torch.arange(8.0)[:, None, None, None].expand(8, 3, 4, 6), y)
    source = Mosaic(data, factor=2)
    assert source.x.shape == (2, 3, 4, 6)
    assert source.x[0, 0, :, ::3].tolist() == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert torch.allclose(source().x, data.x)
    assert torch.equal(source().y, y)
    (slope,) = torch.autograd.grad(source().x[5].sum(), source.x)  # the second tile of the second image
    assert bool((slope[1, :, :2, 3:] > 0).all())
    assert slope.count_nonzero().item() == 3 * 2 * 3


def test_a_mosaic_of_images_that_cannot_be_cut_is_refused() -> None:
    for data in (gaussians(4), images(4)):
        with pytest.raises(AttarError, match="set factor to 1"):
            Mosaic(data, factor=3)


def test_an_unknown_kind_of_labels_is_refused() -> None:
    with pytest.raises(AttarError, match="Unknown kind of labels 'sotf': did you mean 'soft'"):
        Pixels(gaussians(2), "sotf")  # type: ignore[arg-type]
