r"""3x3 convolutions with a quarter of the multiplications, for training on the CPU.

A 4x4 tile of the output costs 36 products of transformed numbers instead of 144 (Winograd's F(4x4, 3x3); Lavin & Gray,
Fast Algorithms for Convolutional Neural Networks, CVPR 2016):

.. math:: Y = A^\top [(G g G^\top) \odot (B^\top d B)] A

summed over channels, which makes 36 matrix products. The transforms of all tiles of a row or column are matrix products
too: a band matrix holds tiles, overlap and zero padding. Results differ from direct convolution by rounding only.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHANNELS = 64  #: with fewer, transforming the images costs as much as it saves
TILES = 64  #: with fewer, transforming the kernel does
TILE = 4

_B = [
    [4, 0, -5, 0, 1, 0],
    [0, -4, -4, 1, 1, 0],
    [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0],
    [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
]
_A = [[1, 0, 0, 0], [1, 1, 1, 1], [1, -1, 1, -1], [1, 2, 4, 8], [1, -2, 4, -8], [0, 0, 0, 1]]
_G = torch.tensor(
    [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], dtype=torch.float64
) / torch.tensor([[24.0]], dtype=torch.float64)
_KERNEL = torch.einsum("xj,yi->xyij", _G, _G).reshape(36, 9).float()


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``conv2d(x, weight, bias, padding=1)`` for a 3x3 kernel and sides that 4 divides."""
    outside, inside = weight.shape[:2]
    kernel = (_KERNEL @ weight.flatten(2).permute(2, 1, 0).reshape(9, -1)).view(36, inside, outside)
    return cast(Tensor, _Convolution.apply(x, kernel, bias))  # type: ignore[no-untyped-call]


def gains(x: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int) -> bool:
    """Whether ``convolve`` can replace ``conv2d`` with these arguments and is faster."""
    ones = all(value in (1, (1, 1)) for value in (stride, padding, dilation, groups))
    fits = x.ndim == 4 and x.shape[2] % TILE == 0 and x.shape[3] % TILE == 0
    large = fits and min(weight.shape[:2]) >= CHANNELS and len(x) * x.shape[2] * x.shape[3] >= TILES * TILE**2
    return (
        ones
        and weight.shape[2:] == (3, 3)
        and large
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
    )


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
        tiles = _spread(x, _into)
        ctx.save_for_backward(tiles if ctx.needs_input_grad[1] else None, kernel)
        ctx.shape = x.shape
        y = _gather(tiles @ kernel, _out_of, (len(x), kernel.shape[2], *x.shape[2:]))
        return y if bias is None else y.add_(bias[:, None, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        tiles, kernel = ctx.saved_tensors
        spread = _spread(grad, _out_of)
        of_x = _gather(spread @ kernel.mT, _into, ctx.shape) if ctx.needs_input_grad[0] else None
        of_kernel = tiles.mT @ spread if ctx.needs_input_grad[1] else None
        return of_x, of_kernel, grad.sum((0, 2, 3)) if ctx.needs_input_grad[2] else None


def _spread(x: Tensor, transform: Any) -> Tensor:
    """Transform every tile: ``(n, c, h, w)`` → ``(36, tiles × n, c)``."""
    n, c, h, w = x.shape
    down, across = transform(h), transform(w)
    rows = torch.bmm(across.expand(h, -1, -1), x.reshape(n * c, h, w).permute(1, 2, 0))  # (h, 6 × tiles, n × c)
    return torch.bmm(down.expand(6, -1, -1), rows.view(h, 6, -1).transpose(0, 1)).view(36, -1, c)


def _gather(tiles: Tensor, transform: Any, shape: tuple[int, ...]) -> Tensor:
    """The transpose of ``_spread``: ``(36, tiles × n, c)`` → ``shape``, which is ``(n, c, h, w)``."""
    n, c, h, w = shape
    down, across = transform(h), transform(w)
    columns = tiles.view(6, len(down), -1)
    rows = tiles.new_empty(h, 6, columns.shape[2])
    for k in range(6):  # written directly into strided memory; a batched product would need a copy
        torch.mm(down.mT, columns[k], out=rows[:, k])
    rows, y = rows.view(h, len(across), n * c), tiles.new_empty(n, c, h, w)
    for row in range(h):
        torch.mm(rows[row].mT, across, out=y.view(n * c, h, w)[:, row])
    return y  # no view, which an in-place activation after the convolution could not work on


@cache
def _into(side: int) -> Tensor:
    r""":math:`B^\top` for every tile of a line, ``(6 × tiles, side)``; the padding's columns are left out."""
    return _band(torch.tensor(_B), side + 2)[:, 1:-1].contiguous()


@cache
def _out_of(side: int) -> Tensor:
    """A for every tile of a line, ``(6 × tiles, side)``."""
    return _band(torch.tensor(_A), side)


def _band(block: Tensor, length: int) -> Tensor:
    height, width = block.shape
    count = (length - width) // TILE + 1
    band = torch.zeros(height, count, length)
    for tile in range(count):
        band[:, tile, TILE * tile : TILE * tile + width] = block
    return band.view(height * count, length)
