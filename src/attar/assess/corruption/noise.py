"""Noise, independent for every value."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.assess.corruption.dice import Dice


def gaussian_noise(x: Tensor, dice: Dice, std: float) -> Tensor:
    r""":math:`x + \sigma \epsilon`, like a sensor in low light."""
    return x + std * dice.normal(*x.shape[1:])


def shot_noise(x: Tensor, dice: Dice, photons: float) -> Tensor:
    r""":math:`\mathrm{Poisson}(k x) / k`: light counted in ``photons`` steps from black to white."""
    return dice.poisson(photons * x) / photons


def impulse_noise(x: Tensor, dice: Dice, share: float) -> Tensor:
    """A share of the values becomes black or white, each as likely as the other."""
    u = dice.uniform(0, 1, *x.shape[1:])
    return torch.where(u < share, (u < share / 2).to(x), x)


def speckle_noise(x: Tensor, dice: Dice, std: float) -> Tensor:
    r""":math:`x + x \sigma \epsilon`: the brighter, the noisier."""
    return x + x * std * dice.normal(*x.shape[1:])
