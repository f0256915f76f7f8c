"""Building blocks of the architectures: norms, activations, pooling and the last linear layer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from attar.core.errors import AttarError


def _grouped(channels: int) -> nn.Module:
    if channels % 4:
        raise AttarError(f"Group norm has 4 groups, got a width of {channels}: choose a width that 4 divides.")
    return nn.GroupNorm(4, channels)


#: Instance norm is group norm with one channel per group. Layer norm has one scale per channel, so that the number of
#: parameters does not depend on the image. Batch norm uses the current batch and keeps no running statistics.
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": nn.Identity,
    "batch": lambda channels: nn.BatchNorm2d(channels, track_running_stats=False),
    "layer": lambda channels: nn.GroupNorm(1, channels),
    "instance": lambda channels: nn.GroupNorm(channels, channels),
    "group": _grouped,
}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "leakyrelu": lambda: nn.LeakyReLU(0.01),
}
#: By the width of the feature map.
POOLS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda width: nn.Identity(),
    "max": lambda width: nn.MaxPool2d(2),
    "avg": lambda width: Halve(width),
}
#: Initial weights of linear and convolution layers; their biases are then zero.
INITS: dict[str, Callable[[Tensor], Tensor]] = {
    "xavier": nn.init.xavier_normal_,
    "he": lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
}


def initialised(build: Callable[[], nn.Module], init: str) -> nn.Module:
    """A new module with initial weights of this name."""
    module = build()
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d):
            INITS[init](part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module


class Halve(nn.Module):
    """``nn.AvgPool2d(2)`` by sums of rows and columns, which is several times as fast on a CPU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = width // 2
        # Neither a parameter nor a buffer. torch.eye would import 800 modules on the meta device, where sizes are
        # computed.
        self.mean = torch.eye(self.out, device="cpu").repeat_interleave(2, 1).repeat(1, 2) / 4

    def forward(self, x: Tensor) -> Tensor:
        even = x[..., : x.shape[-2] // 2 * 2, : 2 * self.out]
        return cast(Tensor, _Quarter.apply(even, self.mean.to(x)))  # type: ignore[no-untyped-call]


class _Quarter(torch.autograd.Function):
    """The mean of every 2x2 square; ``mean`` maps two rows, one after the other, to it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, mean: Tensor) -> Tensor:
        rows = x[..., ::2, :] + x[..., 1::2, :]
        return (rows[..., ::2] + rows[..., 1::2]) / 4

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (mean,) = ctx.saved_tensors
        return (grad @ mean).unflatten(-1, (2, -1)).flatten(-3, -2), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return cast(Tensor, _Quarter.apply(tangent, *ctx.saved_tensors))  # type: ignore[no-untyped-call]


Width = int | tuple[int, ...]  # of all layers, or of each


def widths(depth: int, width: Width) -> tuple[int, ...]:
    """The width of every layer."""
    return (width,) * depth if isinstance(width, int) else width


class Block(NamedTuple):
    """Width and kernel size of a convolution, and whether pooling follows."""

    width: int
    kernel: int = 3
    pools: bool = True


def image(name: str, shape: Sequence[int], smallest: int) -> tuple[int, int, int]:
    """Channels, height and width; an error if the examples are not images, or too small for the architecture."""
    if len(shape) != 3:
        raise AttarError(
            f"{name} needs images (channels, height, width), got examples of shape {tuple(shape)}: use mlp."
        )
    channels, height, width = shape
    if min(height, width) < smallest:
        raise AttarError(
            f"{name} needs images of at least {smallest}x{smallest}, got {height}x{width}: "
            "use convnet for images from 2x2, or mlp."
        )
    return channels, height, width


def stack(
    shape: tuple[int, int, int], blocks: Sequence[Block], norm: str, activation: str, pool: str, classes: int
) -> nn.Sequential:
    """Blocks of convolution, norm, activation and pooling, then one linear layer on the flattened features."""
    channels, *sides = shape
    # The convolutions keep the map's sides, except that the first makes 28 to 31 pixels 32 or 33: so a 3x3 convolution
    # pads 28x28 images by 3, as the published code of gradient matching does, and they pool as often as 32x32 images.
    extra = [max(0, (33 - side) // 2) if side >= 28 else 0 for side in sides]
    height, width = (side + 2 * more for side, more in zip(sides, extra, strict=True))
    layers: list[nn.Module] = []
    for index, block in enumerate(blocks):
        pad = (block.kernel // 2 + extra[0], block.kernel // 2 + extra[1])
        convolution = nn.Conv2d(channels, block.width, block.kernel, padding=pad)
        active = ACTIVATIONS[activation]()
        if isinstance(active, nn.ReLU):
            active.inplace = True  # nothing else reads the input, so in place saves a pass through memory
        layers += [convolution, NORMS[norm](block.width), active]
        # Instance norm of a 1x1 map is constant, so only the last block may pool down to one.
        smallest = 2 if index == len(blocks) - 1 else 4
        if block.pools and pool != "none" and min(height, width) >= smallest:
            layers.append(POOLS[pool](width))
            height, width = height // 2, width // 2
        channels, extra = block.width, [0, 0]
    return classifier(layers, channels * height * width, classes)


def with_ones(inputs: Tensor, columns: int) -> Tensor:
    """Inputs ``(..., d)`` of a layer, padded with ones to ``columns``: one column of ones if the layer has a bias."""
    return torch.cat([inputs, inputs.new_ones(*inputs.shape[:-1], columns - inputs.shape[-1])], -1)


def classifier(body: Iterable[nn.Module], features: int, classes: int) -> nn.Sequential:
    """The body, a flattening layer and one linear layer."""
    parts = OrderedDict(body=nn.Sequential(*body, nn.Flatten()), head=nn.Linear(features, classes))
    return nn.Sequential(parts)


class SideBySide(nn.Module):
    """The features of several bodies that see the same examples."""

    def __init__(self, bodies: Iterable[nn.Module]) -> None:
        super().__init__()
        self.bodies = nn.ModuleList(bodies)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([body(x) for body in self.bodies], 1)


def side_by_side(stacks: Sequence[nn.Sequential], classes: int) -> nn.Sequential:
    """One network of several that :func:`classifier` made: their bodies, and one linear layer on all features."""
    if len(stacks) == 1:
        return stacks[0]
    features = sum(cast(nn.Linear, each.head).in_features for each in stacks)
    body = SideBySide(cast(nn.Module, each.body) for each in stacks)
    return nn.Sequential(OrderedDict(body=body, head=nn.Linear(features, classes)))
