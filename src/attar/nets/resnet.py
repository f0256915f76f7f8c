"""Residual networks for small images: ResNet-10, ResNet-18, ResNet-32 of CIFAR and the wide WRN-16-8."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, NORMS, classifier, image


def resnet(shape: Sequence[int], classes: int, blocks: int, norm: str, activation: str) -> nn.Sequential:
    """Four stages of ``blocks`` residual blocks, behind a 3x3 stem (He et al., CVPR 2016)."""
    channels, *_ = image("resnet", shape, smallest=9)  # 8x8 would end in a 1x1 map, which instance norm makes constant
    layers: list[nn.Module] = [_conv3(channels, 64), NORMS[norm](64), ACTIVATIONS[activation]()]
    inside = 64
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(blocks):
            layers.append(Residual(inside, width, 2 if stage > 0 and block == 0 else 1, norm, activation))
            inside = width
    return classifier([*layers, nn.AdaptiveAvgPool2d(1)], inside, classes)


def resnet32(shape: Sequence[int], classes: int, norm: str, activation: str) -> nn.Sequential:
    """Three stages of five narrow blocks, with shortcuts that have no parameters (He et al., CVPR 2016, 4.2)."""
    channels, *_ = image("resnet32", shape, smallest=5)  # a smaller image would end in a 1x1 map
    layers: list[nn.Module] = [_conv3(channels, 16), NORMS[norm](16), ACTIVATIONS[activation]()]
    inside = 16
    for width in (16, 32, 64):
        for _ in range(5):
            layers.append(Residual(inside, width, width // inside, norm, activation, projects=False))
            inside = width
    return classifier([*layers, nn.AdaptiveAvgPool2d(1)], inside, classes)


def wrn(shape: Sequence[int], classes: int, norm: str, activation: str) -> nn.Sequential:
    """WRN-16-8: three stages of two wide pre-activation blocks (Zagoruyko & Komodakis, BMVC 2016)."""
    channels, *_ = image("wrn-16-8", shape, smallest=5)  # a smaller image would end in a 1x1 map
    layers: list[nn.Module] = [_conv3(channels, 16)]
    inside = 16
    for stage, width in enumerate((128, 256, 512)):
        for block in range(2):
            layers.append(PreResidual(inside, width, 2 if stage > 0 and block == 0 else 1, norm, activation))
            inside = width
    layers += [NORMS[norm](inside), ACTIVATIONS[activation](), nn.AdaptiveAvgPool2d(1)]
    return classifier(layers, inside, classes)


class Residual(nn.Module):
    r"""A block that learns what to add to its input.

    .. math:: y = \sigma(N(C(\sigma(N(C(x))))) + S(x))

    with convolution C, norm N, activation σ, and a shortcut S that is the identity where the shape stays the same.
    Elsewhere it is a 1x1 convolution, or, if it does not project, every second pixel and channels of zeros.
    """

    def __init__(self, inside: int, width: int, stride: int, norm: str, activation: str, projects: bool = True) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            _conv3(inside, width, stride),
            NORMS[norm](width),
            ACTIVATIONS[activation](),
            _conv3(width, width),
            NORMS[norm](width),
        )
        same = stride == 1 and inside == width
        project: list[nn.Module] = []
        if not same:
            learnt = [nn.Conv2d(inside, width, 1, stride, bias=False), NORMS[norm](width)]
            project = learnt if projects else [Thinned(width - inside, stride)]
        self.shortcut = nn.Sequential(*project)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.activation(self.branch(x) + self.shortcut(x))
        return y


class Thinned(nn.Module):
    """Every ``stride``-th pixel, with ``more`` channels of zeros around the others."""

    def __init__(self, more: int, stride: int) -> None:
        super().__init__()
        self.more, self.stride = more, stride

    def forward(self, x: Tensor) -> Tensor:
        before = self.more // 2
        return F.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.more - before))


class PreResidual(nn.Module):
    r"""A residual block with norm and activation in front of its convolutions.

    .. math:: y = C(\sigma(N(C(a)))) + S, \quad a = \sigma(N(x))

    where the shortcut S is x, or a 1x1 convolution of a where the shape changes.
    """

    def __init__(self, inside: int, width: int, stride: int, norm: str, activation: str) -> None:
        super().__init__()
        self.first = nn.Sequential(NORMS[norm](inside), ACTIVATIONS[activation]())
        self.branch = nn.Sequential(
            _conv3(inside, width, stride), NORMS[norm](width), ACTIVATIONS[activation](), _conv3(width, width)
        )
        same = stride == 1 and inside == width
        self.project = None if same else nn.Conv2d(inside, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        y: Tensor = self.branch(a) + (x if self.project is None else self.project(a))
        return y


def _conv3(inside: int, width: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, width, 3, stride, padding=1, bias=False)
