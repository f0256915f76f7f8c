"""A cosine classifier in place of the last linear layer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

SCALE = 10.0  #: initial scale; the published code has 1, around which the prior of samplers would hold it
TINY = 1e-6  #: added to squared norms, so that a vector of zeros has derivatives


def unit(rows: Tensor) -> Tensor:
    """Every row divided by its norm."""
    return rows * (rows.square().sum(-1, keepdim=True) + TINY).rsqrt()


class Unit(nn.Module):
    """Features of norm one."""

    def forward(self, x: Tensor) -> Tensor:
        return unit(x)


class Cosine(nn.Module):
    r"""The last layer of LUCIR (Hou et al., Learning a Unified Classifier Incrementally via Rebalancing, CVPR 2019).

    .. math:: f_c(x) = s \, \frac{w_c}{\|w_c\|} \cdot \phi(x)

    on features :math:`\phi` of norm one, with one learnt scale :math:`s = 10 g`. All classes have weights of one norm,
    so that those with more data do not outweigh the others.

    Args:
        features: Number of features.
        classes: Number of logits.
    """

    bias = None  # like a linear layer without one

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, features) * features**-0.5)
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, scaled(self.weight, self.gain))


def scaled(weight: Tensor, gain: Tensor) -> Tensor:
    """The matrix ``(classes, h)`` that maps features of norm one to logits."""
    return SCALE * gain * unit(weight)


def with_cosine(build: Callable[[], nn.Module]) -> nn.Module:
    """A new module whose last layer, ``head``, is a cosine classifier."""
    module = build()
    head = cast(nn.Linear, module.head)
    last = Cosine(head.in_features, head.out_features)
    module.head = nn.Sequential(OrderedDict(unit=Unit(), cosine=last))
    return module
