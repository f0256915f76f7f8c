from dataclasses import replace

import torch

from attar.data import Data, Spec
from attar.data.merge import merge

CATS = Data(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1]), spec=Spec.of((2,), ("cat", "dog")))
DOGS = Data(torch.tensor([[5.0, 6.0]]), torch.tensor([0]), spec=Spec.of((2,), ("dog",)))


def test_classes_are_joined_by_name_and_examples_stay_in_order() -> None:
    both = merge([DOGS, CATS])
    assert both.spec.target.names == ("dog", "cat")
    assert both.y.tolist() == [0, 1, 0]
    assert both.x.tolist() == [[5.0, 6.0], [1.0, 2.0], [3.0, 4.0]]
    assert both.weights is None


def test_hard_labels_become_soft_beside_soft_ones() -> None:
    unsure = replace(CATS, y=torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    assert merge([unsure, DOGS]).y.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]


def test_examples_without_weights_count_once_beside_weighted_ones() -> None:
    weights = merge([replace(CATS, weights=torch.tensor([2.0, 0.5])), DOGS]).weights
    assert weights is not None
    assert weights.tolist() == [2.0, 0.5, 1.0]


def test_rows_and_keys_are_kept_where_all_parts_come_from_one_source() -> None:
    cats = replace(CATS, rows=torch.tensor([7, 2]), keys={7: "c.png", 2: "d.png"})
    dogs = replace(DOGS, rows=torch.tensor([5]), keys=("a", "b", "c", "d", "e", "f"))
    assert merge([cats, dogs], one_source=True).names == ["c.png", "d.png", "f"]
    assert merge([cats, dogs]).rows is None
    assert merge([cats, replace(dogs, keys=None)], one_source=True).names == [7, 2, 5]
    assert merge([cats, DOGS], one_source=True).rows is None
