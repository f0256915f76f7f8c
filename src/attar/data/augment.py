"""Differentiable siamese augmentation: the same random draw for real and synthetic images.

Zhao & Bilen, Dataset Condensation with Differentiable Siamese Augmentation, ICML 2021. The operations and ranges are
the published ones, and act on images as the network sees them, after scaling. ``blur``, ``perspective`` and
``elastic`` are additions that need kornia.

Every parameter has a fixed range, whatever the size of the image. Every operation takes parameters of shape ``(k, m)``:
``m = 1`` is one draw for the whole batch, ``m = n`` one draw per example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attar.core.errors import AttarError, require, unknown
from attar.data.spec import Image, Spec

DSA = "color-crop-cutout-flip-scale-rotate"  #: the paper's strategy for images that may be mirrored
MODES = ("one", "all")


@dataclass(frozen=True)
class Augmentation:
    """A random transformation that is already drawn: operations with their parameters, applied in order."""

    steps: tuple[tuple[str, tuple[float, ...]], ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Transform every image of ``x``, ``(n, c, h, w)``, in the same way."""
        _check([name for name, _ in self.steps], x)
        for name, values in self.steps:
            x = _apply(name, x, torch.tensor(values, dtype=torch.float64)[:, None])
        return x


def draw(strategy: str, gen: Generator, mode: str = "one") -> Augmentation:
    """Draw a transformation for whole batches.

    Args:
        strategy: Operations joined by hyphens, such as ``crop-flip``, or ``none``.
        gen: Random generator.
        mode: ``one`` picks a single operation at random; ``all`` applies all of them in the order given.
    """
    names = _names(strategy, mode)
    if names and mode == "one":
        names = [names[int(torch.randint(len(names), (1,), generator=gen, device=gen.device))]]
    return Augmentation(tuple((name, tuple(_draw(name, 1, gen)[:, 0].tolist())) for name in names))


def jitter(strategy: str, x: Tensor, gen: Generator, mode: str = "one") -> Tensor:
    """Augment every image independently, as in ordinary training; arguments as in ``draw``."""
    names = _names(strategy, mode)
    _check(names, x)
    if mode == "all" or not names or not len(x):
        for name in names:
            x = _apply(name, x, _draw(name, len(x), gen))
        return x
    pick = torch.randint(len(names), (len(x),), generator=gen, device=gen.device)
    members = [(pick == k).nonzero().flatten() for k in range(len(names))]
    parts = [_apply(a, x[m.to(x.device)], _draw(a, len(m), gen)) for a, m in zip(names, members, strict=True) if len(m)]
    return torch.cat(parts)[torch.cat(members).argsort().to(x.device)]


def resolve(strategy: str | None, spec: Spec, usual: str = DSA) -> str:
    """The given strategy; by default the ``usual`` one for images and none for other examples."""
    return strategy or (usual if isinstance(spec.element, Image) else "none")


def parse(strategy: str) -> list[str]:
    """The operations of a strategy, in order; an error if one is unknown or its package is not installed."""
    names = [name for name in strategy.split("-") if name != "none"]
    for name in names:
        if name not in _OPERATIONS:
            raise unknown("augmentation", name, (*_OPERATIONS, "none"))
        if _OPERATIONS[name].package:
            require(_OPERATIONS[name].package, "augment")
    return names


def _names(strategy: str, mode: str) -> list[str]:
    if mode not in MODES:
        raise unknown("augmentation mode", mode, MODES)
    # If one is picked at random, the order in which they are given must not matter.
    return sorted(parse(strategy)) if mode == "one" else parse(strategy)


def _check(names: list[str], x: Tensor) -> None:
    if names and x.ndim != 4:
        raise AttarError(
            f"Augmentation {'-'.join(names)!r} is for images (n, c, h, w) but the batch has shape {tuple(x.shape)}: "
            "use strategy 'none'."
        )


def _draw(name: str, m: int, gen: Generator) -> Tensor:
    low, high = torch.tensor(_OPERATIONS[name].ranges, dtype=torch.float32, device=gen.device).unsqueeze(2).unbind(1)
    return low + (high - low) * torch.rand(len(low), m, dtype=torch.float32, generator=gen, device=gen.device)


def _apply(name: str, x: Tensor, values: Tensor) -> Tensor:
    if not len(x):
        return x
    wide = torch.promote_types(x.dtype, torch.float32)  # half precision is too coarse for pixel coordinates
    return _OPERATIONS[name].apply(x.to(wide), values.to(wide).to(x.device)).to(x.dtype)


def _color(x: Tensor, values: Tensor) -> Tensor:
    """Brightness adds, saturation stretches about the pixel's gray, contrast stretches about the image's mean."""
    brightness, saturation, contrast = values[..., None, None, None].unbind()
    x = x + brightness
    gray = x.mean(1, keepdim=True)
    x = gray + saturation * (x - gray)
    mean = x.mean((1, 2, 3), keepdim=True)
    return mean + contrast * (x - mean)


def _crop(x: Tensor, values: Tensor) -> Tensor:
    """Move the window by whole pixels, at most an eighth of the side (at ±1) down and right; zeros come in."""
    n, c, h, w = x.shape
    rows, columns = (_window(size, value) for size, value in zip((h, w), values, strict=True))
    pixels = (rows[:, :, None] * (w + 2) + columns[:, None, :]).flatten(1)
    return F.pad(x, (1, 1, 1, 1)).flatten(2).gather(2, pixels[:, None].expand(n, c, -1)).reshape(x.shape)


def _window(size: int, value: Tensor) -> Tensor:
    """The source index of every pixel along one axis padded by 1, ``(m, size)``; every shift is equally likely."""
    most = int(0.125 * size + 0.5)
    shift = (value * (most + 0.5) + 0.5).floor().clamp(-most, most).long()
    return (torch.arange(size, device=value.device) + shift[:, None] + 1).clamp(0, size + 1)


def _cutout(x: Tensor, values: Tensor) -> Tensor:
    """Set a box of half the height and width to zero; its centre is anywhere in the image (0 to 1 along each axis)."""
    rows, columns = (_box(size, value) for size, value in zip(x.shape[2:], values, strict=True))
    return x.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0)


def _box(size: int, value: Tensor) -> Tensor:
    """Which pixels along one axis a box covers, ``(m, size)``; every centre is equally likely."""
    side = int(0.5 * size + 0.5)
    last = size - side % 2
    start = (value * (last + 1)).floor().clamp(0, last)[:, None] - side // 2
    pixel = torch.arange(size, device=value.device)
    return (pixel >= start) & (pixel < start + side)


def _flip(x: Tensor, values: Tensor) -> Tensor:
    """Mirror left and right where the value is below 1/2."""
    return torch.where(values[0, :, None, None, None] < 0.5, x.flip(3), x)


def _scale(x: Tensor, values: Tensor) -> Tensor:
    """Shrink by a factor along each axis; below 1 enlarges."""
    sx, sy = values.unbind()
    zero = torch.zeros_like(sx)
    return _affine(x, sx, zero, zero, sy)


def _rotate(x: Tensor, values: Tensor) -> Tensor:
    """Rotate anticlockwise, in degrees; in pixels, not in the unit square as published, so that no image is sheared."""
    angle, side = values[0].deg2rad(), x.shape[2] / x.shape[3]
    return _affine(x, angle.cos(), -angle.sin() * side, angle.sin() / side, angle.cos())


def _affine(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Read every pixel at (a u + b v, c u + d v), where (u, v) is its place between -1 and 1; zeros outside."""
    zero = torch.zeros_like(a)
    matrix = torch.stack([a, b, zero, c, d, zero], 1).reshape(-1, 2, 3)
    return _read(x, F.affine_grid(matrix, [len(matrix), 1, *x.shape[2:]], align_corners=False))


def _read(x: Tensor, grid: Tensor) -> Tensor:
    return F.grid_sample(x, grid.expand(len(x), -1, -1, -1), align_corners=False)


def _blur(x: Tensor, values: Tensor) -> Tensor:
    """Gaussian blur whose deviation is a share of each side."""
    filters = require("kornia.filters", "augment")
    sides = x.shape[2:]
    kernel = tuple(2 * int(3 * 0.04 * side + 1) + 1 for side in sides)  # three of the largest deviations
    out: Tensor = filters.gaussian_blur2d(x, kernel, values.T * values.new_tensor(sides), border_type="replicate")
    return out


def _perspective(x: Tensor, values: Tensor) -> Tensor:
    """Project the quadrilateral whose corners are the image's, moved by shares of the half sides."""
    geometry = require("kornia.geometry", "augment")
    square = values.new_tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]]).expand(values.shape[1], 4, 2)
    matrix = geometry.get_perspective_transform(square, square * (1 + values.T.reshape(-1, 4, 2)))
    points = geometry.transform_points(matrix, _places(x).reshape(1, -1, 2).expand(len(matrix), -1, 2))
    return _read(x, points.reshape(-1, *x.shape[2:], 2))


def _elastic(x: Tensor, values: Tensor) -> Tensor:
    """Shift pixels by up to a tenth of the half sides, along a smooth field interpolated from 4 x 4 vectors."""
    filters = require("kornia.filters", "augment")
    sides = tuple(x.shape[2:])
    field = F.interpolate(values.T.reshape(-1, 2, 4, 4), size=sides, mode="bilinear", align_corners=True)
    kernel, deviation = tuple(2 * (side // 8) + 1 for side in sides), tuple(side / 16 for side in sides)
    smooth = filters.gaussian_blur2d(field, kernel, deviation, border_type="replicate")
    return _read(x, _places(x) + 0.1 * smooth.permute(0, 2, 3, 1))


def _places(x: Tensor) -> Tensor:
    return F.affine_grid(torch.eye(2, 3).to(x)[None], [1, 1, *x.shape[2:]], align_corners=False)


@dataclass(frozen=True)
class _Operation:
    """A differentiable map of images and the uniform ranges of its parameters."""

    apply: Callable[[Tensor, Tensor], Tensor]
    ranges: tuple[tuple[float, float], ...]
    package: str = ""


_OPERATIONS = {
    "color": _Operation(_color, ((-0.5, 0.5), (0.0, 2.0), (0.5, 1.5))),
    "crop": _Operation(_crop, ((-1.0, 1.0),) * 2),
    "cutout": _Operation(_cutout, ((0.0, 1.0),) * 2),
    "flip": _Operation(_flip, ((0.0, 1.0),)),
    "scale": _Operation(_scale, ((1 / 1.2, 1.2),) * 2),
    "rotate": _Operation(_rotate, ((-15.0, 15.0),)),
    "blur": _Operation(_blur, ((0.005, 0.04),), "kornia"),
    "perspective": _Operation(_perspective, ((-0.2, 0.2),) * 8, "kornia"),
    "elastic": _Operation(_elastic, ((-1.0, 1.0),) * 32, "kornia"),
}
