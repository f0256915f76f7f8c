"""Networks that read token sequences, or embeddings that were learnt in their place.

The table of embeddings is fixed, so that learnt embeddings mean the same to every network. Padding, whose embedding is
zero, has no influence.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attar.nets.layers import ACTIVATIONS, Width, classifier, widths

WIDTHS = (3, 4, 5)  #: words that a convolution of ``textconv`` sees at once


def embedding_bag(table: Tensor, classes: int, depth: int, width: Width, activation: str) -> nn.Sequential:
    """The mean embedding, as in fastText (Joulin et al., EACL 2017), and ``depth`` hidden layers."""
    layers: list[nn.Module] = [Bag(table)]
    size = table.shape[1]
    for units in widths(depth, width):
        layers += [nn.Linear(size, units), ACTIVATIONS[activation]()]
        size = units
    return classifier(layers, size, classes)


def textconv(table: Tensor, classes: int, width: int) -> nn.Sequential:
    """Convolutions over 3, 4 and 5 words, ``width`` of each, and their maximum over time (Kim, EMNLP 2014)."""
    return classifier([Windows(table, width)], len(WIDTHS) * width, classes)


def birnn(table: Tensor, classes: int, width: int) -> nn.Sequential:
    """The last states of two recurrent layers of ``width`` units, one from each end (Schuster & Paliwal, 1997)."""
    return classifier([Both(table, RNN, width)], 2 * width, classes)


def bilstm(table: Tensor, classes: int, width: int) -> nn.Sequential:
    """The last states of two LSTM layers of ``width`` units, one from each end (Graves & Schmidhuber, 2005)."""
    return classifier([Both(table, LSTM, width)], 2 * width, classes)


class Words(nn.Module):
    """A layer on the embeddings of tokens ``(n, length)``, or on embeddings ``(n, length, dimension)``."""

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def embedded(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings ``(n, length, dimension)`` and where they are words, ``(n, length)`` of zeros and ones."""
        rows = x if x.is_floating_point() else self.table[x]
        return rows, (rows != 0).any(-1).to(rows.dtype)


class Bag(Words):
    """The mean embedding."""

    def forward(self, x: Tensor) -> Tensor:
        rows, word = self.embedded(x)
        return rows.sum(-2) / word.sum(-1, keepdim=True).clamp_min(1)


class Windows(Words):
    r"""The largest response to any window of k words, :math:`\max_t \mathrm{relu}(W x_{t:t+k} + b)`.

    Windows may reach over both ends, so that texts can be shorter than k; those without a word do not count.
    """

    def __init__(self, table: Tensor, width: int) -> None:
        super().__init__(table)
        # A linear layer on windows takes half the time of a convolution here.
        self.responses = nn.ModuleList(nn.Linear(k * table.shape[1], width) for k in WIDTHS)

    def forward(self, x: Tensor) -> Tensor:
        rows, word = self.embedded(x)
        found = []
        for k, response in zip(WIDTHS, self.responses, strict=True):
            windows = F.pad(rows, (0, 0, k - 1, k - 1)).unfold(-2, k, 1).flatten(-2)
            counts = F.pad(word, (k - 1, k - 1)).unfold(-1, k, 1).amax(-1, keepdim=True)
            found.append((response(windows).relu() * counts).amax(-2))
        return torch.cat(found, -1)


class RNN(nn.Module):
    r"""A recurrent layer, :math:`h_t = \tanh(W x_t + b + U h_{t-1})`; padding keeps the state.

    By plain operations: those of ``nn.RNN`` and ``nn.LSTM`` know neither ``vmap`` nor double backward.
    """

    gates = 1

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.inputs = nn.Linear(size, self.gates * width)
        self.states = nn.Linear(width, self.gates * width, bias=False)

    def forward(self, rows: Tensor, word: Tensor) -> Tensor:
        """The state after the last word, ``(n, width)``."""
        given = self.inputs(rows)
        state = self.start(given[..., 0, : self.width])
        for t in range(rows.shape[-2]):
            keep, new = word[..., t, None], self.step(given[..., t, :], state)
            state = tuple(keep * after + (1 - keep) * before for after, before in zip(new, state, strict=True))
        return state[0]

    def start(self, like: Tensor) -> tuple[Tensor, ...]:
        """The state before the first word."""
        return (torch.zeros_like(like),)

    def step(self, given: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The state after a word."""
        return (torch.tanh(given + self.states(state[0])),)


class LSTM(RNN):
    r"""Long short-term memory (Hochreiter & Schmidhuber, 1997), with a forget gate that is open at first.

    .. math:: c_t = \sigma(f) c_{t-1} + \sigma(i) \tanh(g), \quad h_t = \sigma(o) \tanh(c_t), \quad
        (i, f, g, o) = W x_t + b + U h_{t-1}
    """

    gates = 4

    def __init__(self, size: int, width: int) -> None:
        super().__init__(size, width)
        with torch.no_grad():
            self.inputs.bias[width : 2 * width] += 1

    def start(self, like: Tensor) -> tuple[Tensor, ...]:
        return torch.zeros_like(like), torch.zeros_like(like)

    def step(self, given: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        take, keep, new, show = (given + self.states(state[0])).chunk(4, -1)
        memory = keep.sigmoid() * state[1] + take.sigmoid() * new.tanh()
        return show.sigmoid() * memory.tanh(), memory


class Both(Words):
    """A recurrent layer from each end."""

    def __init__(self, table: Tensor, layer: type[RNN], width: int) -> None:
        super().__init__(table)
        self.forwards, self.backwards = layer(table.shape[1], width), layer(table.shape[1], width)

    def forward(self, x: Tensor) -> Tensor:
        rows, word = self.embedded(x)
        return torch.cat([self.forwards(rows, word), self.backwards(rows.flip(-2), word.flip(-1))], -1)
