from __future__ import annotations

import torch

from attar.assess.answers import answers


def test_the_worst_and_the_most_uncertain_answers_by_hand() -> None:
    p = torch.tensor([[0.9, 0.05, 0.03, 0.02], [0.25] * 4, [0.02, 0.97, 0.005, 0.005], [0.4, 0.3, 0.2, 0.1]])
    found = answers(p, torch.tensor([0, 1, 3, 0]), count=2)
    assert [answer.place for answer in found.worst] == [2, 1]
    assert [answer.place for answer in found.uncertain] == [1, 3]
    assert found.worst[0].chances == [(1, 0.97), (0, 0.02), (2, 0.005), (3, 0.005)]  # the true class comes along
    assert found.uncertain[1].chances == [(0, 0.4), (1, 0.3), (2, 0.2)]
    assert found.worst[0].label == 3


def test_fewer_examples_than_asked_for_are_all_told() -> None:
    found = answers(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert len(found.worst) == len(found.uncertain) == 1
