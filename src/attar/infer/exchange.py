"""Draws for other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attar.core.errors import AttarError, require
from attar.data import Data
from attar.nets import in_parts

if TYPE_CHECKING:
    from attar.infer.contract import Draws


@torch.no_grad()
def to_arviz(draws: Draws, data: Data | None) -> Any:
    """See ``Draws.to_arviz``."""
    arviz = require("arviz", "arviz")
    potential = draws.notes.get("trace", {}).get("potential", [])
    chains = len(potential) or 1  # draws that are no chain are independent, and stand in one
    each = len(draws.theta) // chains

    def shaped(values: Tensor) -> Any:
        """``(draws, ...)`` as ``(chain, draw, ...)``: in ``theta`` chains alternate."""
        return values[: each * chains].unflatten(0, (each, chains)).transpose(0, 1).cpu().numpy()

    groups: dict[str, Any] = {"posterior": {"theta": shaped(draws.theta)}}
    dims, names = {"theta": ["parameter"]}, {}
    if potential:
        groups["sample_stats"] = {"lp": -torch.tensor(potential)[:, :each].numpy()}
    if data is not None:
        if data.shape != tuple(draws.network.shape):
            raise AttarError(f"The posterior is for examples of shape {draws.network.shape}, got {data.shape}.")
        p = torch.stack([_probabilities(draws, draw, data.x) for draw in range(len(draws.theta))])
        true = data.hard.to(p.device)
        groups["posterior"]["p"] = shaped(p)
        groups["log_likelihood"] = {"y": shaped(p[:, torch.arange(len(data)), true].log())}
        groups["observed_data"] = {"y": true.cpu().numpy()}
        dims |= {"p": ["example", "class"], "y": ["example"]}
        names = {"class": list(draws.spec.target.names)}
    return arviz.from_dict(**groups, dims=dims, coords=names)


def _probabilities(draws: Draws, draw: int, x: Tensor) -> Tensor:
    parts = in_parts(draws.network, x.to(draws.theta.device), draws.chunk)
    return torch.cat([draws.logits(draw, part).double().softmax(1) for part in parts])
