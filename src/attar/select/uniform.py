"""Uniform selection."""

from __future__ import annotations

import torch
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.registry import selector
from attar.select.contract import Selection
from attar.select.view import View


@selector(
    "uniform",
    about="a random subset",
    choose="the baseline to beat",
    takes="0 s",
    paper="the baseline of every paper: a random subset",
    cost="none",
)
@dataclass(frozen=True)
class Uniform:
    """Every subset of the asked size is as likely as any other."""

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        indices = torch.randperm(len(view), generator=gen, device=gen.device)[:size]
        return Selection(indices, torch.zeros(len(indices), device=gen.device))
