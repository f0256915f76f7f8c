from dataclasses import replace

import pytest
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from attar.data import Data
from attar.nets import Network, network, objective
from attar.nets.objective import Objective
from tests.known import gaussians, generator, images

IMAGES = images(12)


def vectors(net: Network, count: int = 3) -> Tensor:
    gen = generator(7)
    return torch.stack([net.init(gen) for _ in range(count)])


def both_ways(
    monkeypatch: pytest.MonkeyPatch, made: Objective, theta: Tensor
) -> list[tuple[Tensor, Tensor, Tensor, Generator]]:
    """Gradients, values, values over all examples and the generator after, under vmap and one by one."""
    found = []
    for limit in (10**12, 0):
        monkeypatch.setattr(objective, "TOGETHER", limit)
        gen = generator(3)
        found.append((*made.gradient(theta, gen), made.value(theta), gen))
    return found


@pytest.mark.parametrize("name", ["convnet-d2w4", "mlp-d1w8", "lenet-sigmoid"])
@pytest.mark.parametrize(("batch", "augment"), [(99, "none"), (10, "none"), (10, "flip-crop")])
def test_vectors_that_go_together_and_one_by_one_see_and_find_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, batch: int, augment: str
) -> None:
    data = IMAGES if name != "lenet-sigmoid" else IMAGES.map(lambda x: nn.functional.interpolate(x, size=(16, 16)))
    net = network(name, data.shape, 3)
    weighted = replace(data, weights=torch.rand(len(data), generator=generator(1)))
    together, alone = both_ways(monkeypatch, Objective(net, weighted, batch, augment), vectors(net))
    for a, b in zip(together[:3], alone[:3], strict=True):
        assert a.shape == b.shape
        assert torch.allclose(a, b, atol=1e-5)
    assert torch.equal(together[3].get_state(), alone[3].get_state())


def test_the_same_path_gives_the_same_bits() -> None:
    net = network("convnet-d2w8", IMAGES.shape, 3)
    made = Objective(net, IMAGES, 10, "flip")
    a, b = (made.gradient(vectors(net), generator(3))[0] for _ in range(2))
    assert torch.equal(a, b)


class Counting(nn.Module):
    """A linear classifier that notes how many examples it sees at once."""

    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(6, 3), seen

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        logits: Tensor = self.layer(x)
        return logits


def test_a_batch_goes_through_in_parts_so_that_memory_does_not_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    data = gaussians(40)
    net = network(lambda: Counting(seen), data.shape, 3)
    whole = Objective(net, data, len(data))
    theta = vectors(net, 1)
    wanted, value, total = *whole.gradient(theta, generator()), whole.value(theta)
    monkeypatch.setattr(objective, "AT_ONCE", 3 * 16)  # three activations an example
    parts = Objective(net, data, len(data))
    seen.clear()
    found = *parts.gradient(theta, generator()), parts.value(theta)
    assert max(seen) <= 16
    for a, b in zip(found, (wanted, value, total), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_batch_norm_sees_its_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objective, "AT_ONCE", 1)
    net = network("convnet-d1w4-batch", IMAGES.shape, 3)
    theta = vectors(net, 1)
    found, _ = Objective(net, IMAGES, 99).gradient(theta, generator())
    wanted = torch.func.grad(lambda t: cross_entropy(net(t, IMAGES.x), IMAGES.y))(theta[0])
    assert torch.allclose(found[0], wanted, atol=1e-6)


def test_gradients_are_found_where_none_are_recorded() -> None:
    net = network("convnet-d1w4", IMAGES.shape, 3)
    made, theta = Objective(net, IMAGES, 99), vectors(net, 1)
    with torch.no_grad():
        inside, _ = made.gradient(theta, generator())
    assert torch.equal(inside, made.gradient(theta, generator())[0])


def test_the_data_stay_as_they_are() -> None:
    x = IMAGES.x.clone()
    net = network("convnet-d2w4-nonorm", IMAGES.shape, 3)  # whose activations work in place
    Objective(net, IMAGES, 99).gradient(vectors(net), generator())
    assert torch.equal(IMAGES.x, x)
    assert isinstance(IMAGES, Data)
