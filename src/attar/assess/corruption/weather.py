"""Weather: random layers over every image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attar.assess.corruption.blur import enlargement, streak, zoom
from attar.assess.corruption.dice import Dice

LUMA = (0.299, 0.587, 0.114)  #: shares of red, green and blue in brightness


def snow(
    x: Tensor, dice: Dice, mean: float, std: float, size: float, least: float, radius: float, sigma: float, keep: float
) -> Tensor:
    """Flakes in flight over an image that is whitened."""
    scale = enlargement(x)
    flakes = zoom(mean + std * dice.normal(1, *x.shape[2:]), size * scale)
    flakes = torch.where(flakes < least, 0, flakes).clamp(0, 1)
    flakes = streak(flakes, round(radius * scale), sigma * scale, dice.uniform(-135, -45))
    white = torch.maximum(x, 1.5 * luminance(x) + 0.5)
    return keep * x + (1 - keep) * white + flakes + flakes.rot90(2, (2, 3))


def frost(x: Tensor, dice: Dice, keep: float, cover: float) -> Tensor:
    """Ice needles over the image.

    The original lays crops of five photographs over the image, which cannot be shipped. This draws needles along two
    directions instead, with the photographs' range of brightness, blue tint, deviation and grain.
    """
    scale = enlargement(x)
    needles = torch.zeros_like(x[:, :1])
    for _ in range(2):
        grain = zoom(dice.normal(1, *x.shape[2:]), scale)
        needles += streak(grain, round(3 * scale), scale, dice.uniform(0, 360))
    needles = 0.09 * needles / needles.std((2, 3), keepdim=True).clamp_min(1e-6)
    ice = dice.uniform(0.45, 0.8, 1, 1, 1) + needles
    return keep * x + cover * (ice + colour(x, -0.07, 0.01, 0.06)).clamp(0, 1)


def fog(x: Tensor, dice: Dice, thick: float, decay: float) -> Tensor:
    """A plasma fractal over the image, which loses as much contrast as the fog adds light."""
    h, w = x.shape[2:]
    most = x.amax((1, 2, 3), keepdim=True)
    haze = plasma(1 << (max(h, w) - 1).bit_length(), decay, dice)[:, None, :h, :w]
    return (x + thick * haze) * most / (most + thick)


def brightness(x: Tensor, dice: Dice, by: float) -> Tensor:
    """Add to the value of HSV, :math:`v = max(r, g, b)`; hue and saturation stay."""
    value = x.amax(1, keepdim=True)
    lifted = (value + by).clamp(0, 1)
    return torch.where(value > 0, x * lifted / value.clamp_min(torch.finfo(x.dtype).tiny), lifted)


def plasma(size: int, decay: float, dice: Dice) -> Tensor:
    """Square maps in [0, 1], ``(n, size, size)``, by the diamond-square algorithm; ``size`` is a power of two."""
    field, step, wobble = dice.uniform(0, 0, size, size), size, 100.0

    def near(total: Tensor) -> Tensor:
        return total / 4 + wobble**2 * dice.uniform(-1, 1, *total.shape[1:])

    while step >= 2:
        half = step // 2
        corners, centres = field[:, ::step, ::step], field[:, half::step, half::step]
        rows = corners + corners.roll(-1, 1)
        centres.copy_(near(rows + rows.roll(-1, 2)))
        field[:, ::step, half::step] = near(centres + centres.roll(1, 1) + corners + corners.roll(-1, 2))
        field[:, half::step, ::step] = near(centres + centres.roll(1, 2) + rows)
        step, wobble = half, wobble / decay
    low, high = field.amin((1, 2), keepdim=True), field.amax((1, 2), keepdim=True)
    return (field - low) / (high - low)


def luminance(x: Tensor) -> Tensor:
    """Brightness of gray or RGB images, ``(n, 1, h, w)``."""
    return x if x.shape[1] == 1 else F.conv2d(x, x.new_tensor(LUMA).view(1, 3, 1, 1))


def colour(x: Tensor, red: float, green: float, blue: float) -> Tensor:
    """A colour as the images have them: three channels, or its brightness."""
    rgb = x.new_tensor([red, green, blue]).view(1, 3, 1, 1)
    return rgb if x.shape[1] == 3 else luminance(rgb)
