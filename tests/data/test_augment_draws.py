"""Which images share a draw, what can be differentiated, and what is refused."""

import sys
from importlib.util import find_spec

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attar.core.errors import AttarError, MissingExtra
from attar.data.augment import DSA, Augmentation, _apply, _draw, draw, jitter, parse

needs_kornia = pytest.mark.skipif(find_spec("kornia") is None, reason="kornia is absent: pip install 'attar[augment]'")
PUBLISHED = DSA.split("-")
EXTRA = [pytest.param(name, marks=needs_kornia) for name in ("blur", "perspective", "elastic")]
OPERATIONS = [*PUBLISHED, *EXTRA]


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def images(n: int = 4, c: int = 3, h: int = 8, w: int = 8, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(n, c, h, w, generator=generator(99), dtype=dtype)


# Who shares a draw.


@pytest.mark.parametrize("mode", ["one", "all"])
@pytest.mark.parametrize("strategy", ["none", *OPERATIONS, DSA])
def test_real_and_synthetic_share_the_transformation(strategy: str, mode: str) -> None:
    real, synthetic = images(5), images(2) * 2
    for seed in range(5):
        omega = draw(strategy, generator(seed), mode)
        together = omega(torch.cat([real, synthetic]))
        torch.testing.assert_close(together, torch.cat([omega(real), omega(synthetic)]))


@pytest.mark.parametrize("mode", ["one", "all"])
@pytest.mark.parametrize("strategy", ["none", *OPERATIONS, DSA])
def test_jitter_of_a_single_image_is_a_draw(strategy: str, mode: str) -> None:
    x = images(1)
    for seed in range(8):
        expected = draw(strategy, generator(seed), mode)(x)
        torch.testing.assert_close(jitter(strategy, x, generator(seed), mode), expected)


@pytest.mark.parametrize("name", OPERATIONS)
def test_per_example_parameters_transform_each_image_as_its_own_draw_would(name: str) -> None:
    x, values = images(5, h=9, w=12, dtype=torch.float64), _draw(name, 5, generator())
    alone = [Augmentation(((name, tuple(v)),))(x[i : i + 1]) for i, v in enumerate(values.T.tolist())]
    torch.testing.assert_close(_apply(name, x, values), torch.cat(alone))


def test_jitter_gives_every_copy_its_own_operation_and_keeps_places() -> None:
    x = (torch.arange(1.0, 65.0)[:, None, None, None] * 100).expand(64, 1, 8, 8)  # flat images, each with its value
    out = jitter("cutout-flip", x, generator())
    assert torch.equal(out.amax((1, 2, 3)), x.amax((1, 2, 3)))  # neither operation moves an image or its maximum
    cut = (out == 0).any(3).any(2).any(1)
    assert 16 < cut.sum() < 48
    assert len({tuple(image.flatten().tolist()) for image in (out[cut] == 0)}) > 8


def test_one_picks_every_operation_equally_often() -> None:
    gen = generator()
    picks = [draw(DSA, gen).steps for _ in range(3000)]
    assert all(len(steps) == 1 for steps in picks)
    counts = torch.tensor([sum(steps[0][0] == name for steps in picks) for name in PUBLISHED])
    assert counts.sum() == 3000
    assert (counts - 500).square().sum() / 500 < 25.7  # chi-square with 5 degrees of freedom, p = 1e-4


def test_parameters_stay_in_the_published_ranges_and_fill_them() -> None:
    ranges = {
        "color": [(-0.5, 0.5), (0.0, 2.0), (0.5, 1.5)],
        "scale": [(1 / 1.2, 1.2), (1 / 1.2, 1.2)],
        "rotate": [(-15.0, 15.0)],
        "flip": [(0.0, 1.0)],
    }
    for name, bounds in ranges.items():
        values = _draw(name, 4000, generator())
        for row, (low, high) in zip(values, bounds, strict=True):
            assert low - 1e-6 <= row.min() < low + 0.01 * (high - low)
            assert high - 0.01 * (high - low) < row.max() <= high + 1e-6


def test_all_applies_operations_as_written_and_one_ignores_their_order() -> None:
    assert [name for name, _ in draw("rotate-color-flip", generator(), "all").steps] == ["rotate", "color", "flip"]
    assert all(draw("crop-color-flip", generator(s)) == draw("flip-crop-color", generator(s)) for s in range(20))


def test_the_same_generator_state_gives_the_same_draw_and_the_global_one_is_not_read() -> None:
    x, state = images(), torch.get_rng_state()
    assert draw(DSA, generator(3), "all") == draw(DSA, generator(3), "all")
    assert draw(DSA, generator(3), "all") != draw(DSA, generator(4), "all")
    assert torch.equal(jitter(DSA, x, generator(3)), jitter(DSA, x, generator(3)))
    assert torch.equal(torch.get_rng_state(), state)


# What can be differentiated, and where it runs.


@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients_to_pixels_are_right_twice(name: str) -> None:
    x = images(2, 2, 5, 6, torch.float64).requires_grad_()
    omega = draw(name, generator(1))
    assert torch.autograd.gradcheck(omega, x)
    assert torch.autograd.gradgradcheck(omega, x, fast_mode=True)
    assert torch.autograd.gradcheck(lambda x: jitter(name, x, generator(1)), x)


@pytest.mark.parametrize("name", OPERATIONS)
def test_gradient_matching_reaches_pixels_through_the_network_gradient(name: str) -> None:
    weight = torch.randn(3, 2, 3, 3, generator=generator(5), dtype=torch.float64).requires_grad_()
    head = torch.randn(4, 3, generator=generator(6), dtype=torch.float64)
    labels, omega = torch.tensor([0, 3]), draw(name, generator(1))

    def gap(x: Tensor) -> Tensor:
        features = F.softplus(F.conv2d(omega(x), weight)).mean((2, 3))
        (grad,) = torch.autograd.grad(F.cross_entropy(features @ head.T, labels), weight, create_graph=True)
        return grad.square().sum()

    x = images(2, 2, 5, 6, torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(gap, x)


def test_networks_stacked_by_vmap_see_the_same_augmented_images() -> None:
    x, omega = images(3).requires_grad_(), draw(DSA, generator(), "all")
    weights = torch.randn(4, 5, 3, 3, 3, generator=generator(1))
    stacked = torch.func.vmap(lambda weight: F.conv2d(omega(x), weight))(weights)
    torch.testing.assert_close(stacked, torch.stack([F.conv2d(omega(x), weight) for weight in weights]))
    assert torch.autograd.grad(stacked.square().sum(), x)[0].abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_precision_keeps_its_type_and_agrees_with_single(name: str, dtype: torch.dtype) -> None:
    x, omega = images(), draw(name, generator(1))
    out = omega(x.to(dtype))
    assert out.dtype == dtype
    assert jitter(name, x.to(dtype), generator()).dtype == dtype
    torch.testing.assert_close(out.float(), omega(x), atol=0.06, rtol=0.02)


@pytest.mark.parametrize("strategy", [*OPERATIONS, DSA])
def test_odd_shapes_keep_their_shape_and_inputs_stay_untouched(strategy: str) -> None:
    for shape in ((3, 1, 1, 1), (2, 1, 3, 5), (0, 3, 8, 8), (1, 5, 7, 2)):
        x = torch.randn(shape, generator=generator())
        before = x.clone()
        assert draw(strategy, generator(), "all")(x).shape == x.shape
        assert jitter(strategy, x, generator()).shape == x.shape
        assert torch.equal(x, before)


# What is refused.


def test_feature_vectors_pass_only_under_none() -> None:
    x = torch.randn(4, 5, generator=generator())
    assert draw("none", generator())(x) is x
    assert jitter("none", x, generator()) is x
    with pytest.raises(AttarError, match="use strategy 'none'"):
        draw(DSA, generator())(x)
    with pytest.raises(AttarError, match="use strategy 'none'"):
        jitter("flip", x, generator(), "all")


def test_unknown_names_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(AttarError, match="Unknown augmentation 'colour': did you mean 'color'"):
        parse("flip-colour")
    with pytest.raises(AttarError, match="Unknown augmentation mode 'each'"):
        draw("flip", generator(), "each")


def test_without_kornia_only_its_own_operations_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kornia", None)  # python's way to say that a package cannot be imported
    assert draw(DSA, generator(), "all")(images()).isfinite().all()
    with pytest.raises(MissingExtra, match=r"attar\[augment\]"):
        parse("flip-blur")
