import pytest
import torch

from attar.data import Data, Spec


def made(n: int = 12, weights: bool = True) -> Data:
    x = torch.arange(2.0 * n).reshape(n, 2)
    return Data(
        x, torch.arange(n) % 3, torch.arange(n) / n if weights else None, Spec.of(x.shape[1:], "abc", name="toy")
    )


def gen(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("index", [slice(2, 5), torch.tensor([7, 0, 3]), torch.arange(12) % 2 == 0])
def test_slices_keep_examples_labels_weights_and_spec_together(index: torch.Tensor | slice) -> None:
    data = made()
    part = data[index]
    rows = (part.x[:, 0] / 2).long()
    assert torch.equal(rows, torch.arange(12)[index])
    assert torch.equal(part.y, rows % 3)
    assert data.weights is not None
    assert part.weights is not None
    assert torch.equal(part.weights, data.weights[rows])
    assert part.spec is data.spec


def test_lengths_that_differ_are_refused() -> None:
    for y, weights in ((torch.zeros(3).long(), None), (torch.zeros(4).long(), torch.ones(3))):
        with pytest.raises(ValueError, match="same length"):
            Data(torch.zeros(4, 2), y, weights)


def test_sample_draws_without_replacement_by_the_generator_alone() -> None:
    data = made()
    drawn = data.sample(5, gen())
    assert len(set(drawn.x[:, 0].tolist())) == 5
    torch.manual_seed(99)
    assert torch.equal(drawn.x, data.sample(5, gen()).x)
    assert sorted(data.sample(50, gen()).x[:, 0].tolist()) == data.x[:, 0].tolist()


def test_sample_per_class_goes_class_by_class() -> None:
    assert made().sample_per_class(2, gen()).y.tolist() == [0, 0, 1, 1, 2, 2]


def test_classes_come_from_the_domain_or_from_the_labels() -> None:
    assert made().classes == 3
    assert Data(torch.zeros(4, 2), torch.tensor([0, 4, 1, 1])).classes == 5
    assert Data(torch.zeros(4, 2), torch.ones(4, 7) / 7).classes == 7


def test_hard_labels_are_the_likeliest_of_soft_ones() -> None:
    soft = Data(torch.zeros(2, 2), torch.tensor([[0.2, 0.8], [0.9, 0.1]]))
    assert soft.hard.tolist() == [1, 0]
    assert len(soft.of_class(1)) == 1
    assert made().of_class(2).y.tolist() == [2] * 4


def test_map_changes_examples_only() -> None:
    doubled = made().map(lambda x: x * 2)
    assert torch.equal(doubled.x, made().x * 2)
    assert torch.equal(doubled.y, made().y)
    assert doubled.shape == (2,)


def test_fingerprint_tells_any_change_apart() -> None:
    data = made()
    assert data.fingerprint == made().fingerprint == data.to("cpu").fingerprint
    others = (
        data.map(lambda x: x + 1e-6),
        data.map(lambda x: x.double()),
        data.map(lambda x: x.reshape(12, 2, 1, 1)),
        made(weights=False),
        Data(data.x, data.y.flip(0), data.weights),
        data[:0],
    )
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)


def test_examples_of_every_precision_have_a_fingerprint_of_their_own() -> None:
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    assert len({Data(torch.ones(2, 3, dtype=kind), torch.tensor([0, 1])).fingerprint for kind in kinds}) == len(kinds)
