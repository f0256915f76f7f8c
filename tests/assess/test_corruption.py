"""Every corruption keeps its promises, and does what its publication says, by hand or by another library."""

import colorsys
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from attar.assess import evaluate
from attar.assess.corruption import CORRUPTIONS, Corrupted, corrupt, corruption_table, table
from attar.assess.corruption.blur import smooth, streak, zoom
from attar.assess.corruption.dice import Dice, seeds
from attar.assess.corruption.spatter import FAR, _distance
from attar.assess.corruption.weather import plasma
from attar.core.errors import AttarError
from attar.data import Data, Spec
from attar.data.transform import Identity, Standard
from attar.infer import Draws
from attar.nets import network
from tests.known import gaussians, generator, images

NAMES = list(CORRUPTIONS)


def scenes(n: int = 4, channels: int = 3, h: int = 32, w: int = 32, seed: int = 0) -> Tensor:
    """Pictures with smooth parts, edges, and all shades."""
    gen = generator(seed)
    soft = F.interpolate(torch.rand(n, channels, 5, 5, generator=gen), (h, w), mode="bicubic")
    hard = F.interpolate(torch.rand(n, channels, 4, 4, generator=gen), (h, w), mode="nearest")
    shifts = torch.randint(8, (n, 2), generator=gen).tolist()  # so that edges lie anywhere
    hard = torch.stack([each.roll(shift, (1, 2)) for each, shift in zip(hard, shifts, strict=True)])
    return ((soft + hard) / 2).clamp(0, 1)


def dice(x: Tensor, seed: int = 0) -> Dice:
    return Dice(x, seeds(len(x), generator(seed)))


# What holds of all


@pytest.mark.parametrize(("name", "channels"), [(n, c) for n in NAMES for c in (1, 3) if c == 3 or n != "saturate"])
def test_images_stay_images_of_their_shape_and_type(name: str, channels: int) -> None:
    for h, w in ((8, 8), (11, 9), (32, 32), (40, 70)):
        x = scenes(2, channels, h, w)
        kept = x.clone()
        for severity in (1, 5):
            result = corrupt(x, name, severity, generator())
            assert result.shape == x.shape
            assert result.dtype == x.dtype
            assert float(result.min()) >= 0
            assert float(result.max()) <= 1
            assert torch.isfinite(result).all()
        assert not torch.equal(result, x)
        assert torch.equal(x, kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_double_image_gives_a_double_result_near_the_single_one(name: str) -> None:
    x = scenes(2)
    wide = corrupt(x.double(), name, 3, generator())
    assert wide.dtype == torch.float64
    assert (wide - corrupt(x, name, 3, generator())).abs().mean() < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_the_result_depends_on_the_generator_alone(name: str) -> None:
    x = scenes(5)
    state = torch.get_rng_state()
    first = corrupt(x, name, 4, generator(1))
    assert torch.equal(state, torch.get_rng_state())
    torch.rand(3, generator=torch.default_generator)
    assert torch.equal(first, corrupt(x, name, 4, generator(1)))
    if name in ("gaussian_noise", "snow", "fog", "motion_blur", "elastic_transform", "frost", "spatter", "glass_blur"):
        assert not torch.equal(first, corrupt(x, name, 4, generator(2)))


@pytest.mark.parametrize("name", NAMES)
def test_neither_chunks_nor_later_images_change_an_image(name: str) -> None:
    x = scenes(7)
    whole = corrupt(x, name, 5, generator())
    assert torch.allclose(corrupt(x, name, 5, generator(), chunk=2), whole, atol=1e-5)
    assert torch.allclose(corrupt(x[:3], name, 5, generator()), whole[:3], atol=1e-5)


#: The published constants themselves turn back: stronger shuffling under less blur, frost that also darkens, a weaker
#: affine map under stronger bends, less saturation and then more, water and then mud.
TURNS_BACK = {"glass_blur", "frost", "elastic_transform", "saturate", "spatter"}


@pytest.mark.parametrize("name", NAMES)
def test_severity_takes_images_further_away(name: str) -> None:
    x = scenes(64)
    far = [float((corrupt(x, name, s, generator()) - x).square().mean()) for s in range(1, 6)]
    assert far[0] > 0
    if name in TURNS_BACK:
        assert far != sorted(far)
    else:
        assert far == sorted(far)


# Noise


@pytest.mark.parametrize(("severity", "std"), list(enumerate((0.04, 0.06, 0.08, 0.09, 0.10), 1)))
def test_gaussian_noise_has_the_published_deviation(severity: int, std: float) -> None:
    x = torch.full((8, 3, 32, 32), 0.5)
    assert float((corrupt(x, "gaussian_noise", severity, generator()) - x).std()) == pytest.approx(std, rel=0.02)


def test_shot_noise_keeps_the_mean_and_its_variance_is_that_of_counts() -> None:
    x = torch.full((64, 1, 32, 32), 0.5)
    noisy = corrupt(x, "shot_noise", 3, generator())
    assert float(noisy.mean()) == pytest.approx(0.5, abs=0.001)
    assert float(noisy.var()) == pytest.approx(0.5 / 100, rel=0.03)
    assert torch.allclose((noisy * 100).round(), noisy * 100, atol=1e-4)


def test_impulse_noise_hits_the_published_share_with_black_and_white_alike() -> None:
    x = torch.full((64, 3, 32, 32), 0.5)
    noisy = corrupt(x, "impulse_noise", 5, generator())
    for value in (0, 1):
        assert float((noisy == value).float().mean()) == pytest.approx(0.035, rel=0.05)
    assert set(noisy.unique().tolist()) == {0, 0.5, 1}


def test_speckle_noise_grows_with_the_pixel() -> None:
    x = torch.tensor([0.0, 0.2, 0.4]).view(3, 1, 1, 1).expand(3, 1, 64, 64)
    std = (corrupt(x, "speckle_noise", 5, generator()) - x).std((1, 2, 3))
    assert std.tolist() == pytest.approx([0, 0.04, 0.08], rel=0.05)


# Blur


def test_gaussian_blur_is_scipy_s_and_keeps_the_mean_of_what_lies_inside() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = scenes(2)
    wanted = ndimage.gaussian_filter(x.numpy(), (0, 0, 0.8, 0.8), mode="nearest", truncate=4)
    assert torch.allclose(corrupt(x, "gaussian_blur", 4, generator()), torch.from_numpy(wanted), atol=1e-5)
    inside = F.pad(scenes(2, h=16, w=16), [8] * 4)
    assert float(corrupt(inside, "gaussian_blur", 5, generator()).mean()) == pytest.approx(float(inside.mean()))


def test_blur_grows_with_the_image_and_stays_on_small_ones() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    for side, sigma in ((8, 1), (32, 1), (64, 2)):
        x = scenes(1, 1, side, side)
        wanted = ndimage.gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="nearest", truncate=4)
        assert torch.allclose(corrupt(x, "gaussian_blur", 5, generator()), torch.from_numpy(wanted), atol=1e-5)


def test_a_mirrored_filter_is_scipy_s() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = scenes(1, 1, 8, 12)
    wanted = ndimage.gaussian_filter(x.numpy(), (0, 0, 3, 3), mode="reflect", truncate=3)
    assert torch.allclose(smooth(x, 3, truncate=3, mirror=True), torch.from_numpy(wanted), atol=1e-5)


def test_the_widest_defocus_averages_the_nine_pixels_around() -> None:
    x = scenes(1, 1)
    wanted = F.avg_pool2d(F.pad(x, [1] * 4, "reflect"), 3, 1)  # a radius of 1.5 holds the diagonal neighbours
    assert torch.allclose(corrupt(x, "defocus_blur", 5, generator()), wanted, atol=1e-3)


def test_a_streak_spreads_a_dot_along_its_angle_by_half_a_bell() -> None:
    dot = torch.zeros(2, 1, 15, 15)
    dot[:, :, 7, 7] = 1
    flat, upright = streak(dot, 3, 1.5, torch.tensor([0.0, 90.0]))[:, 0]
    weights = torch.exp(-torch.arange(7.0).square() / (2 * 1.5**2))
    wanted = torch.zeros(15, 15)
    wanted[7, 1:8] = (weights / weights.sum()).flip(0)
    assert torch.allclose(flat, wanted, atol=1e-6)
    assert torch.allclose(upright, wanted.T, atol=1e-6)


@pytest.mark.parametrize("by", [1.0, 1.06, 1.25, 2.25])
def test_zoom_is_scipy_s_on_the_middle(by: float) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = scenes(1, 1)
    kept = int(np.ceil(32 / by))
    first = (32 - kept) // 2
    grown = ndimage.zoom(x[0, 0, first : first + kept, first : first + kept].numpy(), by, order=1)
    trim = (len(grown) - 32) // 2
    wanted = torch.from_numpy(grown[trim : trim + 32, trim : trim + 32])
    assert torch.allclose(zoom(x, by)[0, 0], wanted, atol=1e-5)


def test_glass_blur_copies_from_above_and_left_only() -> None:
    x = torch.arange(32 * 32).view(1, 1, 32, 32) / 1024
    moved = corrupt(x, "glass_blur", 1, generator())  # its filters are narrower than a pixel
    steps = ((x - moved) * 1024).round().long()
    assert set(steps.unique().tolist()) == {0, 1, 32, 33}
    assert not steps[:, :, :2].any()
    assert not steps[:, :, :, :2].any()


def test_one_colour_stays_one_colour_under_every_blur() -> None:
    x = torch.tensor([0.2, 0.5, 0.7]).view(1, 3, 1, 1).expand(2, 3, 16, 16)
    for name in ("gaussian_blur", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform"):
        assert torch.allclose(corrupt(x, name, 5, generator()), x, atol=1e-5)


# Weather


def test_brightness_adds_to_the_value_and_keeps_hue_and_saturation() -> None:
    x = scenes(1)
    x[:, :, 0, 0] = 0  # black has no hue, and turns gray
    result = corrupt(x, "brightness", 3, generator())
    for before, after in zip(x[0].flatten(1).T.tolist(), result[0].flatten(1).T.tolist(), strict=True):
        h, s, v = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb(h, s, min(v + 0.15, 1)), abs=1e-5)
    gray = torch.full((1, 1, 8, 8), 0.3)
    assert torch.allclose(corrupt(gray, "brightness", 3, generator()), torch.tensor(0.45))


def test_fog_on_a_white_image_only_darkens_and_on_a_black_one_is_none() -> None:
    white = torch.ones(2, 1, 16, 16)
    foggy = corrupt(white, "fog", 2, generator())
    assert float(foggy.max()) == pytest.approx(1)  # 1 + c at the thickest, over 1 + c
    assert float(foggy.min()) == pytest.approx(1 / 1.5)
    assert not corrupt(torch.zeros(2, 1, 16, 16), "fog", 2, generator()).any()


def test_plasma_fills_its_range_and_is_rougher_where_it_decays_less() -> None:
    like = torch.zeros(16, 1)
    smooth_map, rough = plasma(32, 3, dice(like)), plasma(32, 1.5, dice(like))
    for each in (smooth_map, rough):
        assert torch.allclose(each.amin((1, 2)), torch.zeros(16))
        assert torch.allclose(each.amax((1, 2)), torch.ones(16))
    assert rough.diff(dim=2).abs().mean() > 2 * smooth_map.diff(dim=2).abs().mean()


def test_snow_falls_from_both_sides_and_whitens() -> None:
    black = torch.zeros(8, 3, 32, 32)
    white = corrupt(black, "snow", 1, generator())
    assert float(white.min()) >= 0.05 * 0.5 - 1e-6  # (1 - 0.95)(1.5 * 0 + 0.5)
    assert torch.allclose(white, white.rot90(2, (2, 3)), atol=1e-6)
    assert torch.equal(white[:, 0], white[:, 2])


def test_frost_covers_black_with_bluish_ice_of_the_published_weight() -> None:
    ice = corrupt(torch.zeros(64, 3, 32, 32), "frost", 1, generator()) / 0.2
    red, green, blue = ice.mean((0, 2, 3)).tolist()
    assert red < green < blue
    assert (red + green + blue) / 3 == pytest.approx(0.625, abs=0.05)  # the middle of the photographs' 0.45 to 0.8
    assert float(ice.std((2, 3)).mean()) == pytest.approx(0.09, rel=0.1)


def test_mud_is_brown_and_water_turquoise() -> None:
    gray = torch.full((32, 3, 32, 32), 0.5)
    water = corrupt(gray, "spatter", 3, generator()) - gray
    assert float(water.min()) >= -1e-6
    assert torch.allclose(water[:, 1], water[:, 0] * 238 / 175, atol=1e-5)
    assert float(water.amax((1, 2, 3)).max()) == pytest.approx(0.5 * 238 / 255, abs=1e-3)
    mud = corrupt(gray, "spatter", 5, generator())
    brown = torch.tensor([63, 42, 20]).view(3, 1, 1) / 255
    hit = (mud - gray).abs().amax(1) > 0
    cover = (0.5 - mud[:, 0])[hit] / (0.5 - brown[0, 0, 0])
    assert 0 < float(hit.float().mean()) < 0.2
    assert float(cover.min()) >= 0.8 - 1e-5  # anything thinner is wiped off


def test_the_distance_to_a_drop_s_rim_is_scipy_s() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    rim = torch.rand(3, 1, 30, 40, generator=generator()) < 0.005
    wanted = np.stack([ndimage.distance_transform_edt(~each[0].numpy()) for each in rim])
    assert rim.flatten(1).any(1).all()
    assert torch.allclose(_distance(rim)[:, 0], torch.from_numpy(wanted).float().clamp(0, FAR), atol=1e-5)


# Digital


def test_contrast_keeps_the_mean_of_every_channel() -> None:
    x = scenes(3) * 0.5 + 0.25
    result = corrupt(x, "contrast", 4, generator())
    assert torch.allclose(result.mean((2, 3)), x.mean((2, 3)), atol=1e-5)
    assert torch.allclose(result.std((2, 3)), 0.3 * x.std((2, 3)), atol=1e-5)


@pytest.mark.parametrize(("severity", "by", "plus"), [(1, 0.3, 0), (3, 1.5, 0), (5, 2.5, 0.2)])
def test_saturate_changes_the_saturation_alone(severity: int, by: float, plus: float) -> None:
    x = scenes(1, h=16, w=16)
    x[:, :, 0] = 0.5  # a gray row
    result = corrupt(x, "saturate", severity, generator())
    for before, after in zip(x[0].flatten(1).T.tolist(), result[0].flatten(1).T.tolist(), strict=True):
        h, s, v = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb(h, min(s * by + plus, 1), v), abs=1e-4)


@pytest.mark.parametrize(("severity", "left"), [(1, 30), (5, 20)])
def test_pixelate_is_pillow_s_box_filter_and_back(severity: int, left: int) -> None:
    x = (255 * scenes(1, 1)).round() / 255
    pixels = Image.fromarray((255 * x[0, 0]).round().byte().numpy())
    small = pixels.resize((left, left), Image.Resampling.BOX).resize((32, 32), Image.Resampling.BOX)
    result = corrupt(x, "pixelate", severity, generator())[0, 0]
    assert torch.allclose(result, torch.from_numpy(np.array(small)) / 255, atol=1.5 / 255)


def test_pixelate_leaves_constant_blocks() -> None:
    result = corrupt(torch.rand(1, 1, 40, 40, generator=generator()), "pixelate", 4, generator())[0, 0]
    assert len(result.unique(dim=0)) == 30
    assert len(result.unique(dim=1).T) == 30


def test_jpeg_keeps_one_colour_and_loses_detail_with_quality() -> None:
    flat = torch.full((1, 3, 16, 16), 102 / 255)
    assert torch.allclose(corrupt(flat, "jpeg_compression", 5, generator()), flat, atol=1.5 / 255)
    gray = scenes(2, 1, 9, 11)
    assert corrupt(gray, "jpeg_compression", 1, generator()).shape == gray.shape


def test_elastic_moves_pixels_by_no_more_than_its_corners_and_bends_allow() -> None:
    ramp = torch.arange(32.0).expand(16, 1, 32, 32) / 31
    middle = (corrupt(ramp, "elastic_transform", 1, generator()) - ramp)[:, :, 12:21, 12:21] * 31
    assert 0.3 < float(middle.std()) < 2.56  # the three points about the middle move by up to 0.08 of the side


# Bad input


def test_errors_name_the_remedy() -> None:
    x = scenes(1)
    with pytest.raises(AttarError, match="did you mean 'gaussian_noise'"):
        corrupt(x, "gausian_noise", 1, generator())
    for severity in (0, 6):
        with pytest.raises(AttarError, match="from 1 to 5"):
            corrupt(x, "fog", severity, generator())
    for wrong in (x[0], x[:0], x[:, :2], x[:, :, :7], (255 * x).byte()):
        with pytest.raises(AttarError, match="8x8 or larger"):
            corrupt(wrong, "fog", 1, generator())
    for wrong in (x + 1, x - 1, x * float("nan")):
        with pytest.raises(AttarError, match=r"lie in \[0, 1\]"):
            corrupt(wrong, "fog", 1, generator())
    with pytest.raises(AttarError, match="these images are gray"):
        corrupt(x[:, :1], "saturate", 1, generator())


# The table


def posterior(data: Data) -> Draws:
    net, gen = network("mlp-d1w4", data.shape, data.classes), generator()
    return Draws(net, torch.stack([net.init(gen) for _ in range(2)]), data.spec)


def test_the_table_corrupts_pixels_and_scales_them_as_the_posterior_does() -> None:
    data, judge = images(8), posterior(images(8))
    raw = data.spec.stored(data.x).clamp(0, 1)
    (row,) = corruption_table(judge, data, names=["gaussian_noise"], severities=[4], seed=3)
    noisy = corrupt(raw, "gaussian_noise", 4, generator(3))
    scores = evaluate(judge, replace(data, x=judge.spec.transform.apply(noisy)))
    assert row == Corrupted("gaussian_noise", 4, scores.accuracy, scores.nll, len(data))
    for scaling in (Identity(), Standard.fit(5 * raw + 1)):  # the same images, stored otherwise
        other = Data(scaling.apply(raw), data.y, spec=replace(data.spec, transform=scaling))
        (again,) = corruption_table(judge, other, names=["gaussian_noise"], severities=[4], seed=3)
        assert again.nll == pytest.approx(row.nll, rel=1e-4)


def test_the_table_has_all_that_applies_and_repeats_itself() -> None:
    gray, colour = images(2), images(2, channels=3)
    rows = corruption_table(posterior(gray), gray, severities=(1, 5), seed=1)
    assert {row.name for row in rows} == set(NAMES) - {"saturate"}
    assert len(rows) == 2 * (len(NAMES) - 1)
    assert rows == corruption_table(posterior(gray), gray, severities=(1, 5), seed=1)
    assert {row.name for row in corruption_table(posterior(colour), colour, severities=[2])} == set(NAMES)


def test_the_table_does_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(8)
    whole = corruption_table(posterior(data), data, names=["snow", "elastic_transform"])
    monkeypatch.setattr(table, "CHUNK", 5)
    for one, other in zip(
        whole, corruption_table(posterior(data), data, names=["snow", "elastic_transform"]), strict=True
    ):
        assert one.nll == pytest.approx(other.nll, rel=1e-4)


def test_a_limit_takes_that_many_at_random() -> None:
    data = images(8)
    in_order = replace(data[data.y.argsort()], spec=replace(data.spec, name="rows"))
    (row,) = corruption_table(posterior(data), in_order, names=["contrast"], severities=[1], limit=5, seed=2)
    assert row.accuracy * 5 == pytest.approx(round(row.accuracy * 5))
    nlls = {
        corruption_table(posterior(data), in_order, names=["contrast"], severities=[1], limit=5, seed=s)[0].nll
        for s in range(3)
    }
    assert len(nlls) == 3


def test_features_and_pixels_on_another_scale_are_refused() -> None:
    features = gaussians(4)
    bytes_ = replace(images(2), x=255 * torch.rand(6, 1, 8, 8, generator=generator()), spec=Spec.of((1, 8, 8), 3))
    for data in (features, bytes_):
        with pytest.raises(AttarError, match=r"images with pixels in \[0, 1\]"):
            corruption_table(posterior(images(2)), data, names=["fog"])


# Against another implementation, with its constants of severity 3, which are those of larger images

PACKAGE: dict[str, tuple[float, ...]] = {
    "gaussian_noise": (0.18,),
    "shot_noise": (12,),
    "impulse_noise": (0.09,),
    "speckle_noise": (0.35,),
    "gaussian_blur": (3,),
    "defocus_blur": (6, 0.5),
    "motion_blur": (15, 8),
    "snow": (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    "fog": (2.5, 1.7),
    "brightness": (0.3,),
    "contrast": (0.2,),
    "pixelate": (0.4,),
    "jpeg_compression": (15,),
    "saturate": (2, 0),
    "spatter": (0.65, 0.3, 2, 0.68, 0.5, False),
}


@pytest.fixture(scope="module")
def package() -> ModuleType:
    with warnings.catch_warnings(action="ignore"):
        found: ModuleType = pytest.importorskip("imagecorruptions", reason="imagecorruptions is not installed")
    return found


@pytest.mark.parametrize("name", PACKAGE)
def test_statistics_are_those_of_imagecorruptions(name: str, package: ModuleType) -> None:
    pixels = (255 * scenes(96)).round().byte()
    x = pixels / 255
    np.random.seed(0)  # the package knows no other
    theirs_of: Callable[..., np.ndarray] = package.corrupt
    try:
        with warnings.catch_warnings(action="ignore"):
            made = [theirs_of(p.permute(1, 2, 0).numpy(), severity=3, corruption_name=name) for p in pixels]
    except (AttributeError, TypeError) as error:
        pytest.skip(f"imagecorruptions does not run {name} with the packages installed: {error}")
    theirs = torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2) / 255 - x
    ours = CORRUPTIONS[name].apply(x, dice(x), *PACKAGE[name]).clamp(0, 1) - x
    assert float(ours.mean()) == pytest.approx(float(theirs.mean()), abs=0.02)
    assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.2 if name == "spatter" else 0.1)
