import pytest
import torch

from attar.nets import in_parts, network, passes
from tests.known import generator

X = torch.randn(20, 1, 8, 8, generator=generator())


def sizes(name: str, most: int | None = None) -> list[int]:
    return [len(part) for part in in_parts(network(name, (1, 8, 8), 3), X, most)]


def test_parts_are_the_examples_in_their_order() -> None:
    assert torch.equal(torch.cat(in_parts(network("convnet-d1w4", (1, 8, 8), 3), X, 7)), X)


def test_few_examples_go_through_together_unless_fewer_are_asked_for() -> None:
    assert sizes("convnet-d1w4") == [20]
    assert sizes("convnet-d1w4", 8) == [8, 8, 4]
    assert sizes("convnet-d1w4", 1024) == [20]


def test_the_activations_of_a_part_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network("convnet-d1w4", (1, 8, 8), 3)
    monkeypatch.setattr(passes, "FORWARD", 6 * net.activations + 1)
    assert sizes("convnet-d1w4") == [6, 6, 6, 2]
    assert sizes("convnet-d1w4", 5) == [5, 5, 5, 5]
    monkeypatch.setattr(passes, "FORWARD", 1)
    assert sizes("convnet-d1w4") == [1] * 20


def test_a_batch_that_batch_norm_sees_as_a_whole_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FORWARD", 1)
    assert sizes("convnet-d1w4-batch") == [20]
    assert sizes("convnet-d1w4-batch", 8) == [8, 8, 4]


def test_other_devices_take_as_many_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FORWARD", 1)
    parts = in_parts(network("convnet-d1w4", (1, 8, 8), 3), X.to("meta"), 8)
    assert [len(part) for part in parts] == [8, 8, 4]
    assert {part.device.type for part in parts} == {"meta"}


def test_no_example_is_one_empty_part() -> None:
    assert [len(part) for part in in_parts(network("convnet-d1w4", (1, 8, 8), 3), X[:0])] == [0]
