from dataclasses import replace

import pytest
import torch
from torch import Generator

from attar.core.errors import AttarError
from attar.nets import network
from attar.nets.train import Training, train
from attar.select.adaptive import Adaptive
from attar.select.balance import PerClass
from attar.select.contract import Selection
from attar.select.craig import CRAIG
from attar.select.view import View
from tests.known import gaussians, generator

DATA = gaussians(10)
NET = network("linear", DATA.shape, DATA.classes)
SHORT = Training(steps=12, batch=64)


class Remembering:
    """Select by the largest loss, and remember under which parameters."""

    def __init__(self) -> None:
        self.thetas: list[torch.Tensor] = []

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        self.thetas.append(view.theta)
        order = view.losses.argsort(descending=True)[:size]
        return Selection(order, view.losses[order], torch.arange(1.0, size + 1))


def view() -> View:
    return View(DATA, NET, SHORT, generator(2))


def test_every_selection_is_made_under_the_network_that_the_last_one_trained() -> None:
    method = Remembering()
    rounds = list(Adaptive(method, rounds=3).walk(view(), 5, generator(1)))
    gen = generator(1)
    theta = NET.init(gen)
    for used, found in zip(method.thetas, rounds, strict=True):
        assert torch.equal(used, theta)
        data = replace(DATA[found.selection.indices], weights=found.selection.weights)
        theta = train(NET, data, replace(SHORT, steps=4), gen, start=theta[None])[0]
        assert torch.equal(found.theta, theta)


def test_the_selection_is_that_of_the_last_round() -> None:
    *_, last = Adaptive(PerClass(CRAIG()), rounds=3).walk(view(), 2, generator(1))
    selection = Adaptive(PerClass(CRAIG()), rounds=3).select(view(), 2, generator(1))
    assert torch.equal(selection.indices, last.selection.indices)
    assert DATA.y[selection.indices].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_network_trained_on_selections_learns() -> None:
    first, *_, last = Adaptive(PerClass(CRAIG()), rounds=4).walk(view(), 2, generator(1))
    assert float(view().at(last.theta).losses.mean()) < float(view().at(first.theta).losses.mean())


def test_no_round_is_refused() -> None:
    with pytest.raises(AttarError, match="rounds must be at least 1"):
        Adaptive(CRAIG(), rounds=0)
