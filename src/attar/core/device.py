"""Devices by name."""

from __future__ import annotations

import torch

from attar.core.errors import AttarError


def device_of(name: str | torch.device) -> torch.device:
    """The device of this name, or an error that says what to use instead."""
    try:
        probe = torch.zeros(1, device=name)
        probe.tolist()  # fails on devices that hold no values
        return probe.device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise AttarError(f"No device {str(name)!r} here ({reason}): use --device cpu, or device='cpu'.") from error
