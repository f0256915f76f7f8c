"""Loss functions by name; each gives one value per example."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attar.core.errors import AttarError, unknown
from attar.data.data import soft

Loss = Callable[[Tensor, Tensor], Tensor]  # logits (n, classes) and labels, hard or soft → (n,)
NAMES = ("cross-entropy", "focal", "multi-margin", "squared")


def losses(name: str) -> Loss:
    r"""The loss of this name, for hard labels and for soft ones :math:`y`, with :math:`p` the softmax of logits
    :math:`z` and C classes.

    ``cross-entropy``
        :math:`-\sum_c y_c \log p_c`
    ``focal`` or ``focal-γ``
        :math:`-\sum_c y_c (1 - p_c)^\gamma \log p_c` with γ = 2 if not said (Lin et al., ICCV 2017)
    ``multi-margin``
        :math:`\tfrac1C \sum_c y_c \sum_{j \ne c} \max(0, 1 - z_c + z_j)`
    ``squared``
        :math:`\tfrac12 \|z - (y - \tfrac1C)\|^2`, the Gaussian likelihood of centred labels
    """
    kind, _, value = name.partition("-") if name.startswith("focal") else (name, "", "")
    if kind not in NAMES:
        raise unknown("loss", name, NAMES)
    return {
        "cross-entropy": _cross_entropy,
        "focal": _focal(_gamma(value)),
        "multi-margin": _multi_margin,
        "squared": _squared,
    }[kind]


def targets(y: Tensor, classes: int) -> Tensor:
    """Regression targets, ``(n, classes)`` in float64: labels minus 1/classes, hard ones as one-hot."""
    return soft(y, classes).double() - 1 / classes


def _gamma(text: str) -> float:
    try:
        gamma = float(text or 2)
    except ValueError:
        gamma = -1.0
    if not (isfinite(gamma) and gamma >= 0):
        raise AttarError(f"The focal loss has a number from 0 up after its name, as in focal-2, got focal-{text}.")
    return gamma


def _cross_entropy(z: Tensor, y: Tensor) -> Tensor:
    return cross_entropy(z, y, reduction="none")


def _focal(gamma: float) -> Loss:
    def focal(z: Tensor, y: Tensor) -> Tensor:
        log_p = z.log_softmax(-1)
        each = -((1 - log_p.exp()).clamp_min(0) ** gamma) * log_p
        return _of_class(each, y)

    return focal


def _multi_margin(z: Tensor, y: Tensor) -> Tensor:
    gaps = (1 - z.unsqueeze(-1) + z.unsqueeze(-2)).clamp_min(0)  # [c, j] is max(0, 1 - z_c + z_j)
    classes = z.shape[-1]
    others = 1 - torch.eye(classes, dtype=z.dtype, device=z.device)
    return _of_class((gaps * others).sum(-1) / classes, y)


def _squared(z: Tensor, y: Tensor) -> Tensor:
    return (z - targets(y, z.shape[-1]).to(z)).square().sum(-1) / 2


def _of_class(each: Tensor, y: Tensor) -> Tensor:
    return (each * y).sum(-1) if y.ndim == each.ndim else each.gather(-1, y.unsqueeze(-1)).squeeze(-1)
