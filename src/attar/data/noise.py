"""Gaussian noise."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def normal(like: Tensor, gen: Generator) -> Tensor:
    """Independent standard normal numbers in the shape of a tensor, of its dtype and on its device."""
    return torch.randn(like.shape, generator=gen, device=gen.device, dtype=like.dtype).to(like.device)
