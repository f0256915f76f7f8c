"""Networks that read token sequences."""

from __future__ import annotations

from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, classifier


def embedding_bag(table: Tensor, classes: int, depth: int, width: int, activation: str) -> nn.Sequential:
    """The mean embedding, as in fastText (Joulin et al., EACL 2017), and ``depth`` hidden layers."""
    layers: list[nn.Module] = [Bag(table)]
    size = table.shape[1]
    for _ in range(depth):
        layers += [nn.Linear(size, width), ACTIVATIONS[activation]()]
        size = width
    return classifier(layers, size, classes)


class Bag(nn.Module):
    """The mean embedding of tokens ``(n, length)``, or of embeddings ``(n, length, dimension)`` that were learnt.

    The table is fixed, so that learnt embeddings mean the same to every network. Padding, whose embedding is zero, does
    not count.
    """

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        rows = x if x.is_floating_point() else self.table[x]
        counted = (rows != 0).any(-1).sum(-1, keepdim=True).clamp_min(1)
        return rows.sum(-2) / counted
