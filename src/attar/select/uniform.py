"""Uniform selection."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic.dataclasses import dataclass
from torch import Generator

from attar.core.method import Needs
from attar.core.registry import selector
from attar.select.contract import Selection, Selector
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
class Uniform(Selector):
    """A random subset; all subsets of the size are equally likely."""

    needs: ClassVar[Needs] = Needs(labels=False, network=False)

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        indices = torch.randperm(len(view), generator=gen, device=gen.device)[:size]
        return Selection(indices, torch.zeros(len(indices), device=gen.device))
