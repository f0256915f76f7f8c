import pytest
import torch
from torch import Tensor

from attar.data import Data
from attar.nets import network
from attar.nets.train import Training
from attar.select.herding import Herding
from attar.select.keep import SelectionWarning
from attar.select.uniform import Uniform
from attar.select.view import View
from tests.known import generator


def view(x: Tensor) -> View:
    """Under softmax regression the features are the inputs."""
    data = Data(x, torch.arange(len(x)) % 2)
    return View(data, network("linear", data.shape, 2), Training(steps=1), generator())


def brute_force(x: Tensor, size: int) -> list[int]:
    """The definition, word by word: the candidate that brings the mean of the picks nearest to the mean of all."""
    picks: list[int] = []
    for _ in range(size):
        free = [i for i in range(len(x)) if i not in picks]
        picks.append(min(free, key=lambda i: float((x.mean(0) - x[[*picks, i]].mean(0)).norm())))
    return picks


def test_a_case_worked_by_hand() -> None:
    # The mean is 4. Nearest: 3 (left 1). With 3, the mean of two is best with 6 (4.5, left 0.5; 0 gives 1.5, 9 gives
    # 6). With both, 0 gives 3 (left 1), 2 gives 11/3 (left 1/3), 9 gives 6. Then 0 gives 11/4 (left 5/4), 9 gives 5.
    x = torch.tensor([[0.0], [9.0], [3.0], [6.0], [2.0]])
    selection = Herding().select(view(x), 5, generator())
    assert selection.indices.tolist() == [2, 3, 4, 1, 0]
    assert selection.scores.tolist() == pytest.approx([1, 0.5, 1 / 3, 1, 0], abs=1e-6)


def test_the_first_pick_is_the_nearest_to_the_mean_and_never_the_farthest() -> None:
    x = torch.tensor([[0.0, 1.0], [100.0, 0.0], [-100.0, 0.0], [0.0, -50.0]])
    assert Herding().select(view(x), 1, generator()).indices.tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_picks_are_those_of_the_definition(seed: int) -> None:
    x = torch.randn(30, 4, generator=generator(seed)).exp()  # skewed, so that a wrong sign shows
    selection = Herding().select(view(x), 12, generator())
    assert selection.indices.tolist() == brute_force(x.double(), 12)


def test_scores_are_the_distances_left_between_the_means() -> None:
    x = torch.randn(40, 3, generator=generator(1))
    selection = Herding().select(view(x), 10, generator())
    left = [float((x.mean(0) - x[selection.indices[: k + 1]].mean(0)).norm()) for k in range(10)]
    assert selection.scores.tolist() == pytest.approx(left, abs=1e-5)


def test_the_mean_is_far_closer_than_that_of_a_random_subset() -> None:
    x = torch.randn(400, 8, generator=generator(2)).exp()
    herded = x[Herding().select(view(x), 20, generator()).indices].mean(0)
    random = [x[Uniform().select(view(x), 20, generator(s)).indices].mean(0) for s in range(20)]
    errors = [float((x.mean(0) - mean).norm()) for mean in random]
    assert float((x.mean(0) - herded).norm()) < min(errors) / 3


def test_picks_stay_exact_far_from_the_origin() -> None:
    x = torch.randn(30, 4, generator=generator(3))
    near = Herding().select(view(x), 8, generator()).indices
    far = Herding().select(view(x + 1000), 8, generator()).indices
    assert near.tolist() == far.tolist()  # float32 products of numbers near 1e6 would mix them up


def test_no_more_are_picked_than_there_are() -> None:
    x = torch.randn(4, 2, generator=generator())
    assert sorted(Herding().select(view(x), 9, generator()).indices.tolist()) == [0, 1, 2, 3]


def test_equal_examples_are_picked_one_after_another() -> None:
    with pytest.warns(SelectionWarning, match="the same features"):
        selection = Herding().select(view(torch.ones(5, 2)), 5, generator())
    assert selection.indices.tolist() == [0, 1, 2, 3, 4]
    assert selection.scores.tolist() == [0] * 5


def test_copies_count_as_often_as_they_are_there() -> None:
    # The mean of 0, 0, 0 and 4 is 1: with three picks, 0 and 0 and 4 miss it by 1/3, and no other three come nearer.
    selection = Herding().select(view(torch.tensor([[0.0], [0.0], [0.0], [4.0]])), 3, generator())
    assert sorted(selection.indices.tolist()) == [0, 1, 3]
    assert float(selection.scores[-1]) == pytest.approx(1 / 3)
