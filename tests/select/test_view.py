import torch

from attar.nets import network
from attar.nets.train import Training, train
from attar.select.view import View
from tests.truth import gaussians, generator

DATA = gaussians(8)
NET = network("mlp-d1w5", DATA.shape, DATA.classes)
SHORT = Training(steps=10)


def view(chunk: int = 1024) -> View:
    return View(DATA, NET, SHORT, generator(2), chunk)


def test_features_are_what_the_last_layer_of_the_trained_network_sees() -> None:
    seen = view()
    theta = train(NET, DATA, SHORT, generator(2))[0]
    assert torch.equal(seen.theta, theta)
    assert torch.equal(seen.features, NET.features(theta, DATA.x))
    assert not seen.features.requires_grad


def test_features_do_not_depend_on_the_chunk() -> None:
    assert torch.allclose(view(5).features, view().features, atol=1e-6)


def test_what_is_not_asked_for_is_not_computed() -> None:
    seen = view()
    before = seen.gen.get_state()
    assert len(seen.part(torch.tensor([1, 2]))) == 2
    assert torch.equal(seen.gen.get_state(), before)


def test_the_network_is_trained_once() -> None:
    seen = view()
    first, after = seen.features, seen.gen.get_state()
    assert seen.features is first
    assert torch.equal(seen.part(torch.tensor([4])).features, first[[4]])
    assert torch.equal(seen.gen.get_state(), after)


def test_a_part_sees_its_examples_through_the_network_of_the_whole() -> None:
    seen = view()
    part = seen.part(torch.tensor([7, 3, 11]))
    assert torch.equal(part.theta, seen.theta)
    assert torch.equal(part.features, seen.features[[7, 3, 11]])
    assert torch.equal(part.data.x, DATA.x[[7, 3, 11]])
    inner = part.part(torch.tensor([2]))
    assert torch.equal(inner.features, seen.features[[11]])
