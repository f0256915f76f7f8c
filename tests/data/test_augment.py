"""What each operation of an augmentation does to pixels, by hand-worked cases."""

from importlib.util import find_spec

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attar.data.augment import Augmentation, jitter

needs_kornia = pytest.mark.skipif(find_spec("kornia") is None, reason="kornia is absent: pip install 'attar[augment]'")


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def images(n: int = 4, c: int = 3, h: int = 8, w: int = 8, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(n, c, h, w, generator=generator(99), dtype=dtype)


def by_hand(name: str, *values: float) -> Augmentation:
    return Augmentation(((name, values),))


def test_flip_reverses_columns_below_one_half_and_else_does_nothing() -> None:
    x = torch.tensor([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]])
    assert by_hand("flip", 0.49)(x).tolist() == [[[[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]]]
    assert torch.equal(by_hand("flip", 0.5)(x), x)


@pytest.mark.parametrize(("vertical", "horizontal", "down", "right"), [(1, 0, 2, 0), (-1, 1, -2, 3), (0, 0, 0, 0)])
def test_crop_moves_the_window_and_brings_in_zeros(vertical: int, horizontal: int, down: int, right: int) -> None:
    x = images(h=16, w=24)  # an eighth of the sides: 2 and 3 pixels
    padded = F.pad(x, (3, 3, 2, 2))
    assert torch.equal(by_hand("crop", vertical, horizontal)(x), padded[:, :, 2 + down :, 3 + right :][:, :, :16, :24])


def test_every_shift_of_a_crop_is_equally_likely() -> None:
    x = torch.zeros(20000, 1, 16, 16)
    x[:, :, 8, 8] = 1
    where = jitter("crop", x, generator()).flatten(1).argmax(1)
    rows, columns = (where // 16).bincount(minlength=16), (where % 16).bincount(minlength=16)
    for count in (rows, columns):
        assert count[6:11].sum() == 20000
        assert (count[6:11] / 20000 - 1 / 5).abs().max() < 0.015  # five standard deviations


def test_cutout_blanks_half_the_sides_about_the_centre_drawn() -> None:
    expected = torch.ones(1, 1, 8, 12)
    expected[:, :, 2:6, 3:9] = 0  # centre 4 of 0..8 and 6 of 0..12
    assert torch.equal(by_hand("cutout", 0.5, 0.5)(torch.ones(1, 1, 8, 12)), expected)


def test_cutout_at_a_corner_keeps_only_the_part_inside() -> None:
    for corner, rows in ((0.0, slice(0, 2)), (1.0, slice(6, 8))):
        out = by_hand("cutout", corner, corner)(torch.ones(2, 3, 8, 8))
        assert out[:, :, rows, rows].sum() == 0
        assert out.sum() == 2 * 3 * (64 - 4)


def test_cutout_of_an_odd_side_is_centred_on_a_pixel() -> None:
    for centre, blank in ((0.0, {0, 1}), (0.5, {2, 3, 4}), (1.0, {4, 5})):  # side 3 of 6
        out = by_hand("cutout", centre, 0.5)(torch.ones(1, 1, 6, 6))
        assert set((out[0, 0] == 0).any(1).nonzero().flatten().tolist()) == blank


def test_brightness_adds_a_constant() -> None:
    x = images(dtype=torch.float64)
    torch.testing.assert_close(by_hand("color", 0.3, 1.0, 1.0)(x), x + 0.3)


def test_saturation_leaves_gray_images_and_the_gray_of_every_image() -> None:
    x = images(dtype=torch.float64)
    gray = x.mean(1, keepdim=True)
    torch.testing.assert_close(by_hand("color", 0.0, 1.7, 1.0)(gray.expand_as(x)), gray.expand_as(x))
    torch.testing.assert_close(by_hand("color", 0.0, 0.0, 1.0)(x), gray.expand_as(x))


def test_contrast_keeps_the_mean_of_every_image_and_scales_its_deviation() -> None:
    x = images(dtype=torch.float64)
    out = by_hand("color", 0.0, 1.0, 0.6)(x)
    torch.testing.assert_close(out.mean((1, 2, 3)), x.mean((1, 2, 3)))
    torch.testing.assert_close(out.std((1, 2, 3)), 0.6 * x.std((1, 2, 3)))


@pytest.mark.parametrize(
    "still",
    [
        by_hand("scale", 1.0, 1.0),
        by_hand("rotate", 0.0),
        by_hand("color", 0.0, 1.0, 1.0),
        pytest.param(by_hand("perspective", *[0.0] * 8), marks=needs_kornia),
        pytest.param(by_hand("elastic", *[0.0] * 32), marks=needs_kornia),
    ],
    ids=lambda still: still.steps[0][0],
)
def test_parameters_at_rest_are_the_identity(still: Augmentation) -> None:
    x = images(h=7, w=10, dtype=torch.float64)
    torch.testing.assert_close(still(x), x)


def test_scaling_by_two_averages_neighbours_into_the_middle_half() -> None:
    x = images(dtype=torch.float64)
    out = by_hand("scale", 2.0, 2.0)(x)
    torch.testing.assert_close(out[:, :, 2:6, 2:6], F.avg_pool2d(x, 2))
    assert out[:, :, :2].abs().sum() + out[:, :, :, 6:].abs().sum() == 0


def test_scale_names_the_horizontal_factor_first() -> None:
    x = torch.ones(1, 1, 8, 8, dtype=torch.float64)
    out = by_hand("scale", 2.0, 1.0)(x)
    assert out[0, 0, 0].tolist() == [0, 0, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("turns", [-1, 1, 2])
def test_rotating_by_right_angles_is_rot90(turns: int) -> None:
    x = images(h=9, w=9, dtype=torch.float64)
    torch.testing.assert_close(by_hand("rotate", 90.0 * turns)(x), torch.rot90(x, turns, (2, 3)))


def test_rotating_a_wide_image_does_not_shear_it() -> None:
    x = images(h=6, w=10, dtype=torch.float64)
    inner = x[:, :, :, 2:8]  # a right angle takes the central square to itself
    torch.testing.assert_close(by_hand("rotate", 90.0)(x)[:, :, :, 2:8], torch.rot90(inner, 1, (2, 3)))


@needs_kornia
def test_perspective_of_equal_corners_is_a_scale() -> None:
    x = images(dtype=torch.float64)
    torch.testing.assert_close(by_hand("perspective", *[0.15] * 8)(x), by_hand("scale", 1.15, 1.15)(x))


@needs_kornia
def test_blur_keeps_constants_and_mixes_neighbours() -> None:
    x = images(dtype=torch.float64)
    out = by_hand("blur", 0.04)(x)
    assert out.std() < 0.99 * x.std()
    torch.testing.assert_close(by_hand("blur", 0.04)(torch.full_like(x, 3.0)), torch.full_like(x, 3.0))


@needs_kornia
def test_elastic_of_equal_arrows_is_a_shift() -> None:
    x = images(h=20, w=20, dtype=torch.float64)
    out = by_hand("elastic", *[1.0] * 16, *[0.0] * 16)(x)  # a tenth of the half side: one pixel, read from the right
    torch.testing.assert_close(out, F.pad(x, (0, 1))[..., 1:])


@needs_kornia
def test_kornia_agrees_on_rotation_flip_and_brightness() -> None:
    import kornia

    x = images(h=11, w=7, dtype=torch.float64)
    turned = kornia.geometry.rotate(x, torch.tensor([12.0], dtype=x.dtype), align_corners=True)
    torch.testing.assert_close(by_hand("rotate", 12.0)(x), turned)
    torch.testing.assert_close(by_hand("flip", 0.0)(x), kornia.geometry.hflip(x))
    brighter = kornia.enhance.adjust_brightness(x, 0.25, clip_output=False)
    torch.testing.assert_close(by_hand("color", 0.25, 1.0, 1.0)(x), brighter)
