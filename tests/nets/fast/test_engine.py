import pytest
import torch
from torch.nn import functional as F

from attar.nets import fast, network
from attar.nets.objective import Objective
from tests.known import generator, images, slope

DATA = images(32)
NET = network("convnet-d2w64", DATA.shape, 3)  # 64 channels and 96 images: where fast convolutions gain


def test_the_switch_turns_everything_off_and_on_again() -> None:
    theta = NET.init(generator())
    quick = Objective(NET).gradient(theta, DATA)
    with fast.plain():
        assert not fast.enabled()
        plain = Objective(NET).gradient(theta, DATA)
    assert fast.enabled()
    assert torch.equal(plain, _autograd(theta))
    assert not torch.equal(quick, plain)  # the rounding tells them apart
    assert torch.allclose(quick, plain, atol=1e-5)
    assert torch.equal(quick, Objective(NET).gradient(theta, DATA))


def test_an_error_inside_does_not_leave_it_off() -> None:
    with pytest.raises(ValueError, match="inside"), fast.plain():
        raise ValueError("inside")
    assert fast.enabled()


def test_values_without_a_graph_are_those_with_one() -> None:
    theta = torch.stack([NET.init(generator(seed)) for seed in range(2)])
    with torch.no_grad():
        quick = Objective(NET).value(theta, DATA)
    assert torch.allclose(quick, Objective(NET).value(theta, DATA), atol=1e-5)


@pytest.mark.parametrize("name", ["mlp-d2w16", "convnet-d2w64", "resnet10", "linear"])
def test_gradients_are_those_of_plain_autograd(name: str) -> None:
    data = images(8).map(lambda x: F.interpolate(x, size=(16, 16)))
    net = network(name, (1, 16, 16), 3)
    theta = net.init(generator())
    found, wanted = Objective(net).gradient(theta, data), slope(net, theta, data)
    assert float((found - wanted).norm() / wanted.norm()) < 1e-4


def _autograd(theta: torch.Tensor) -> torch.Tensor:
    at = theta.clone().requires_grad_()
    (found,) = torch.autograd.grad(F.cross_entropy(NET(at, DATA.x), DATA.y), at)
    return found
