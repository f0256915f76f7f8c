import pytest
import torch
from torch import Tensor, nn
from torch.func import jvp, vmap

from attar.nets.layers import Halve
from tests.known import generator, new_python


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 1, 2, 6), (4, 2, 7, 5)])
def test_halving_is_average_pooling_and_drops_an_odd_row_or_column(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=generator(), requires_grad=True)
    ours, theirs = Halve(shape[-1])(x), nn.AvgPool2d(2)(x)
    weights = torch.randn(theirs.shape, generator=generator(1))
    (a,), (b,) = (torch.autograd.grad((y * weights).sum(), x) for y in (ours, theirs))
    assert torch.allclose(ours, theirs, atol=1e-6)
    assert torch.allclose(a, b, atol=1e-6)


def test_halving_works_under_vmap_and_keeps_the_dtype() -> None:
    x = torch.randn(3, 2, 1, 4, 4, generator=generator(), dtype=torch.float64)
    halved: Tensor = vmap(Halve(4))(x)
    assert halved.dtype == torch.float64
    assert torch.allclose(halved[1], nn.AvgPool2d(2)(x[1]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # of torch.func.jvp itself
def test_halving_can_be_differentiated_twice_and_forward() -> None:
    halve, x = Halve(4), torch.randn(2, 1, 5, 4, generator=generator(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: halve(x) ** 3, x)
    direction = torch.randn(x.shape, generator=generator(1), dtype=torch.float64)
    _, along = jvp(halve, (x,), (direction,))
    assert torch.allclose(along, halve(direction))


BUILD = """
import sys, attar
network, before = attar.network, set(sys.modules)
network("convnet", (1, 28, 28), 10)
print(len(set(sys.modules) - before))
"""


def test_the_first_network_imports_no_more_than_a_few_modules() -> None:
    out, err = new_python(BUILD).communicate(timeout=300)
    assert not err
    assert int(out) < 20  # torch.eye on the meta device brings 800
