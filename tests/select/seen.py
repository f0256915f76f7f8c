"""Views whose every number is given, so that answers can be worked out by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from attar.data import Data
from attar.nets import network
from attar.nets.train import Training
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import generator


def line(*h: float) -> View:
    """Examples of class 0 on a line, under a network that has no idea: every gradient is (−½, ½) ⊗ [h, 1]."""
    return from_embeddings(torch.tensor(h)[:, None], torch.zeros(len(h), dtype=torch.int64), torch.zeros(len(h), 2))


def cloud(n: int = 60, size: int = 5, classes: int = 3, seed: int = 0) -> View:
    """Skewed features with logits and labels that fit them so so, and half as many examples for validation."""
    gen = generator(seed)
    x = torch.randn(n + n // 2, size, generator=gen).exp()
    logits = x @ torch.randn(size, classes, generator=gen) / 2
    y = (logits + torch.randn(logits.shape, generator=gen)).argmax(1)
    y[: 2 * classes] = torch.arange(classes).repeat(2)
    y[n : n + classes] = torch.arange(classes)
    held = from_embeddings(x[n:], y[n:], logits[n:])
    return from_embeddings(x[:n], y[:n], logits[:n], validation=held)


def shuffled(view: View, order: Tensor) -> View:
    """The same examples in another order."""
    new = from_embeddings(view.features[order], view.y[order], view.logits[order], validation=view.validation)
    assert len(new) == len(view)
    return new


def exact(n: int = 7, size: int = 4, classes: int = 3, bias: bool = True) -> View:
    """A view in float64 through an untrained network with one hidden layer."""
    gen = generator(3)
    data = Data(torch.randn(n, size, generator=gen, dtype=torch.float64), torch.arange(n) % classes)
    net = network("mlp-d1w5" if bias else lambda: _plain(size, classes), data.shape, classes)
    theta = net.init(gen).double()
    return View(data, net, Training(), gen, theta=theta)


def _plain(size: int, classes: int) -> torch.nn.Module:
    layers = torch.nn.Linear(size, 5), torch.nn.Tanh(), torch.nn.Linear(5, classes, bias=False)
    return torch.nn.Sequential(*layers)
