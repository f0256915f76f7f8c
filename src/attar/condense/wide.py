"""Kernels of infinitely wide ReLU networks, fully connected and convolutional, in float64.

The parameters are standard normal; a layer multiplies its weights by the root of ``WEIGHT`` over its number of inputs,
and its biases by the root of ``BIAS``. Kernels take examples (n, ...) and (m, ...) and give (n, m), differentiable in
both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad, unfold

from attar.core.errors import AttarError

WEIGHT, BIAS = 2.0, 0.01  # variances of the weights, times their number of inputs, and of the biases
ROUNDING = 1e-14  # of a cosine, times some
CHUNK, COLUMNS = 2**20, 64  # covariances at a time, pairs of images times positions; and images of the second argument

Kernel = Callable[[Tensor, Tensor], Tensor]  # examples (n, ...) and (m, ...) → (n, m) in float64, differentiable


def fully_connected(depth: int, tangent: bool, a: Tensor, b: Tensor) -> Tensor:
    r"""NNGP, or with ``tangent`` NTK, of a ReLU network with ``depth`` hidden layers.

    .. math:: \Sigma_0 = \sigma_w^2 \tfrac{x \cdot x'}{d} + \sigma_b^2, \quad
        \Sigma_{l+1} = \sigma_w^2 \sqrt{\Sigma_l(x, x) \Sigma_l(x', x')}\, \kappa_1(c_l) + \sigma_b^2, \quad
        \Theta_{l+1} = \Sigma_{l+1} + \sigma_w^2 \kappa_0(c_l)\, \Theta_l, \quad \Theta_0 = \Sigma_0

    with the cosine :math:`c_l` of :math:`\Sigma_l` and the arc-cosine kernels
    :math:`\kappa_0(c) = \tfrac{\pi - \arccos c}{2\pi}` and
    :math:`\kappa_1(c) = \tfrac{\sqrt{1 - c^2} + (\pi - \arccos c)\, c}{2\pi}`
    (Cho & Saul, NeurIPS 2009; Jacot, Gabriel & Hongler, NeurIPS 2018).
    """
    a, b = a.flatten(1).double(), b.flatten(1).double()
    share = WEIGHT / a.shape[1]
    nngp, left, right = share * a @ b.T + BIAS, share * a.square().sum(1) + BIAS, share * b.square().sum(1) + BIAS
    ntk = nngp
    for _ in range(depth):
        width = (left[:, None] * right).sqrt()
        kappa0, kappa1 = _kappas(nngp / width)
        nngp = WEIGHT * width * kappa1 + BIAS
        ntk = nngp + WEIGHT * kappa0 * ntk
        left, right = WEIGHT * left / 2 + BIAS, WEIGHT * right / 2 + BIAS
    return ntk if tangent else nngp


def convolutional(depth: int, tangent: bool, a: Tensor, b: Tensor) -> Tensor:
    r"""NNGP, or with ``tangent`` NTK, of a ReLU network with ``depth`` 3x3 convolutions and a linear layer, for images.

    The convolutions pad with zeros; nothing is pooled before the linear layer. So only covariances of equal positions
    p are needed. With the mean :math:`A` over the 3x3 positions around p, those outside the image being zero,

    .. math:: \Sigma_0 = \sigma_w^2 A\big[\tfrac{x_p \cdot x'_p}{C}\big] + \sigma_b^2, \quad
        \Sigma_{l+1} = \sigma_w^2 A\big[\sqrt{\Sigma_l(x, x) \Sigma_l(x', x')}\, \kappa_1(c_l)\big] + \sigma_b^2, \quad
        \Theta_{l+1} = \Sigma_{l+1} + \sigma_w^2 A\big[\kappa_0(c_l)\, \Theta_l\big], \quad \Theta_0 = \Sigma_0

    for each position, and the mean over all positions instead of A in the last layer (Novak et al., ICLR 2019; Arora et
    al., NeurIPS 2019). Pairs of images are computed in chunks, and again in the backward pass, so that memory does not
    grow with their number.
    """
    if a.ndim != 4 or b.ndim != 4:
        shape = tuple((b if a.ndim == 4 else a).shape[1:])
        raise AttarError(
            f"A kernel of convolutional networks needs images, not examples of shape {shape}: choose another, such as "
            f"{'ntk' if tangent else 'nngp'}{depth}."
        )
    out: Tensor = _InChunks.apply(partial(_pairs, depth, tangent), a.double(), b.double())  # type: ignore[no-untyped-call]
    return out


class _InChunks(torch.autograd.Function):
    """A kernel of images, some pairs at a time; the graph of a chunk exists only during its own backward pass."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, a: Tensor, b: Tensor) -> Tensor:
        ctx.kernel = kernel
        ctx.save_for_backward(a, b)
        rows, columns = _sizes(a, b)
        return torch.cat([torch.cat([kernel(x, y) for y in b.split(columns)], 1) for x in a.split(rows)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[None, Tensor, Tensor]:
        a, b = ctx.saved_tensors
        rows, columns = _sizes(a, b)
        totals = torch.zeros_like(a), torch.zeros_like(b)
        for x, of_x, row in zip(a.split(rows), totals[0].split(rows), slope.split(rows), strict=True):
            for y, of_y, part in zip(b.split(columns), totals[1].split(columns), row.split(columns, 1), strict=True):
                ends = x.detach().requires_grad_(), y.detach().requires_grad_()
                with torch.enable_grad():
                    slopes = torch.autograd.grad(ctx.kernel(*ends), ends, part)
                of_x += slopes[0]
                of_y += slopes[1]
        return None, *totals


def _sizes(a: Tensor, b: Tensor) -> tuple[int, int]:
    """Images of each argument in a chunk."""
    columns = min(len(b), COLUMNS)
    return max(1, CHUNK // (columns * a[0, 0].numel())), columns


def _pairs(depth: int, tangent: bool, a: Tensor, b: Tensor) -> Tensor:
    """The kernel of all pairs of images, at once."""
    x, y = _patches(a), _patches(b)
    left, right = _deviations(depth, x), _deviations(depth, y)
    units = x / left[0, ..., None], y / right[0, ..., None]
    found = [units[0] @ units[1].mT] * (2 if tangent else 1)  # Σ and Θ over both deviations, (height, width, n, m)
    for layer, (one, other) in enumerate(zip(left, right, strict=True)):
        scale = one[..., :, None] * other[..., None, :]
        if layer:
            found = [(WEIGHT * _mean(kernel) + BIAS) / scale for kernel in found]
        kappa0, kappa1 = _kappas(found[0])
        found = [scale * kappa1, *(scale * (kappa1 + kappa0 * theta) for theta in found[1:])]
    return WEIGHT * found[-1].mean((0, 1)) + BIAS


def _patches(images: Tensor) -> Tensor:
    r"""Vectors whose inner products are :math:`\Sigma_0`, ``(height, width, n, 9 channels + 1)``."""
    n, channels, height, width = images.shape
    patches = unfold(images, 3, padding=1).view(n, 9 * channels, height, width).permute(2, 3, 0, 1)
    return pad((WEIGHT / (9 * channels)) ** 0.5 * patches, (0, 1), value=BIAS**0.5)


def _deviations(depth: int, patches: Tensor) -> Tensor:
    """Standard deviations before each ReLU, ``(depth, height, width, n)``."""
    found = [patches.square().sum(-1)]
    while len(found) < depth:
        found.append(WEIGHT * _mean(found[-1] / 2) + BIAS)
    return torch.stack(found).sqrt()


def _mean(x: Tensor) -> Tensor:
    out: Tensor = _Mean.apply(x)  # type: ignore[no-untyped-call]
    return out


class _Mean(torch.autograd.Function):
    """The mean over the 3x3 positions around each, with zeros outside: a symmetric map, so its own derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        column = x / 9
        total = column.clone()
        total[1:] += column[:-1]
        total[:-1] += column[1:]
        column.copy_(total)
        total[:, 1:] += column[:, :-1]
        total[:, :-1] += column[:, 1:]
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _mean(gradients[0])


def _kappas(cosine: Tensor) -> tuple[Tensor, Tensor]:
    kappa0, kappa1 = _Kappas.apply(cosine)  # type: ignore[no-untyped-call]
    return kappa0, kappa1


class _Kappas(torch.autograd.Function):
    r"""The arc-cosine kernels of order 0 and 1; with :math:`\pi - \arccos c = \tfrac\pi2 + \arcsin c`, which is faster.

    For identical examples the cosine is one up to rounding, which the square root would amplify. The cosine is constant
    there, so the infinite derivative of order 0 is replaced by zero. That of order 1 is order 0, finite everywhere.
    """

    @staticmethod
    def forward(ctx: Any, cosine: Tensor) -> tuple[Tensor, Tensor]:
        c = cosine.masked_fill(cosine > 1 - ROUNDING, 1).clamp_min_(-1)
        kappa0 = c.asin().div_(2 * pi).add_(0.25)
        ctx.save_for_backward(cosine, kappa0)
        return kappa0, (1 - c.square()).sqrt_().div_(2 * pi).addcmul_(kappa0, c)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        cosine, kappa0 = ctx.saved_tensors
        order0, order1 = gradients
        root = (1 - cosine.square()).clamp_min(ROUNDING).sqrt()
        slope: Tensor = (order0 / (2 * pi * root)).masked_fill(cosine > 1 - ROUNDING, 0)
        return slope.addcmul(order1, kappa0)
