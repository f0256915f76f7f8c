from __future__ import annotations

import torch

from attar.report.principal import nearest, principal
from tests.known import generator


def test_axes_are_those_of_the_singular_value_decomposition() -> None:
    x = torch.randn(80, 20, generator=generator()) @ torch.diag(torch.linspace(5, 0.1, 20)) + 3
    found = principal(x, 3, generator(1))
    _, values, axes = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    assert torch.allclose((found.axes * axes[:3].T).sum(0).abs(), torch.ones(3), atol=1e-3)
    assert torch.allclose(found.shares, values[:3].square() / values.square().sum(), atol=1e-4)
    assert torch.allclose(found(x)[:, 0].abs(), ((x - x.mean(0)) @ axes[0]).abs(), atol=1e-2)
    assert bool((found.axes.gather(0, found.axes.abs().argmax(0)[None]) > 0).all())


def test_as_many_axes_as_there_are_and_no_variance_is_no_error() -> None:
    assert principal(torch.randn(9, 2, generator=generator()), 50, generator()).axes.shape == (2, 2)
    still = principal(torch.ones(5, 4), 2, generator())
    assert torch.equal(still(torch.ones(5, 4)), torch.zeros(5, 2))
    assert torch.equal(still.shares, torch.zeros(2))


def test_neighbours_by_hand_and_none_is_its_own() -> None:
    line = torch.tensor([[0.0], [1.0], [3.0], [3.0]])
    assert nearest(torch.tensor([[2.9]]), line, 2)[0].sort().values.tolist() == [2, 3]
    assert nearest(line, line, 1, own=True).flatten().tolist() == [1, 0, 3, 2]
    many = torch.randn(1500, 3, generator=generator())
    found = nearest(many, many, 5, own=True)  # in two parts
    assert not bool((found == torch.arange(1500)[:, None]).any())
