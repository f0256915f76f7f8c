"""Modules that behave otherwise in half precision. Other processes import them, so they have a file of their own."""

from __future__ import annotations

import os
import signal

import torch
from torch import Tensor, nn


class Odd(nn.Linear):
    """A linear layer, unless autocast is on."""

    def forward(self, x: Tensor) -> Tensor:
        return self.odd(super().forward(x)) if torch.is_autocast_enabled("cpu") else super().forward(x)

    def odd(self, logits: Tensor) -> Tensor:
        raise NotImplementedError("no half precision here")


class Deadly(Odd):
    """Dies as a processor without the instructions lets it."""

    def odd(self, logits: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGILL)
        return logits


class Wrong(Odd):
    """Wrong by more than rounding."""

    def odd(self, logits: Tensor) -> Tensor:
        return 1.2 * logits


def failing() -> nn.Module:
    return Odd(6, 3)


def deadly() -> nn.Module:
    return Deadly(6, 3)


def wrong() -> nn.Module:
    return Wrong(6, 3)
