"""Non-negative least squares."""

from __future__ import annotations

import torch
from torch import Tensor


def nnls(gram: Tensor, target: Tensor, start: Tensor | None = None) -> Tensor:
    r"""The :math:`w \ge 0` that minimises :math:`\tfrac12 w^T G w - b^T w`, by the active set of Lawson and Hanson.

    Args:
        gram: A positive definite matrix G, ``(k, k)``.
        target: The vector b, ``(k,)``.
        start: A feasible w near the solution, to start from.
    """
    w = torch.zeros_like(target) if start is None else start.clone()
    passive = w > 0
    slack = 1e-12 * float(target.abs().max().clamp(min=torch.finfo(target.dtype).tiny))
    for _ in range(3 * len(target) + 1):  # each round lowers the objective; fewer are enough in practice
        w, passive = _descend(gram, target, w, passive)
        slope = (target - gram @ w).masked_fill(passive, -torch.inf)
        enters = int(slope.argmax())
        if float(slope[enters]) <= slack:
            break
        passive[enters] = True
    return w


def _descend(gram: Tensor, target: Tensor, w: Tensor, passive: Tensor) -> tuple[Tensor, Tensor]:
    """Minimise over the passive coordinates, and drop those that reach zero."""
    while bool(passive.any()):
        z = torch.zeros_like(w)
        z[passive] = torch.linalg.solve(gram[passive][:, passive], target[passive])
        crossing = passive & (z <= 0)
        if not bool(crossing.any()):
            return z, passive
        ratios = torch.where(crossing, w / (w - z).clamp(min=torch.finfo(w.dtype).tiny), torch.inf)
        leaves = ratios == ratios.min()  # at least one, so this ends
        w = torch.where(leaves, 0.0, (w + ratios.min() * (z - w)).clamp(min=0))
        passive = passive & ~leaves
    return torch.zeros_like(w), passive
