import pytest
import torch
from torch import Generator

from attar.core.errors import AttarError
from attar.data import Data, Spec
from attar.nets import network
from attar.nets.train import Training
from attar.select.balance import PerClass
from attar.select.contract import Selection, Selector
from attar.select.optimised_real import OptimisedReal
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import generator

LABELS = torch.tensor([1, 0, 0, 1, 2, 0, 2, 2, 1, 0])


class Smallest(Selector):
    """Take the smallest first numbers; weigh each by its place."""

    def __init__(self, weighted: bool = False) -> None:
        self.weighted = weighted

    def select(self, view: View, size: int, gen: Generator) -> Selection:
        order = view.data.x[:, 0].argsort()[:size]
        return Selection(order, view.data.x[order, 0], torch.arange(1.0, size + 1) if self.weighted else None)


def view() -> View:
    x = torch.tensor([5.0, 9, 1, 4, 7, 0, 6, 8, 3, 2])[:, None]
    spec = Spec.of((2,), "abc", name="few")
    return View(Data(x, LABELS, spec=spec), network("linear", (1,), 3), Training(steps=2), generator())


def test_every_class_gives_its_own_best_as_places_in_the_whole_data() -> None:
    selection = PerClass(Smallest()).select(view(), 2, generator())
    assert selection.indices.tolist() == [5, 2, 8, 3, 6, 4]
    assert selection.scores.tolist() == [0, 1, 3, 4, 6, 7]
    assert selection.weights is None
    assert LABELS[selection.indices].tolist() == [0, 0, 1, 1, 2, 2]


def test_weights_are_kept_in_the_same_order() -> None:
    selection = PerClass(Smallest(weighted=True)).select(view(), 3, generator())
    assert selection.weights is not None
    assert selection.weights.tolist() == [1, 2, 3] * 3


def test_a_class_with_too_few_is_named() -> None:
    with pytest.raises(AttarError, match="Class 'b' has 3 examples, but 4 per class were asked for: ask for fewer"):
        PerClass(Smallest()).select(view(), 4, generator())


def test_soft_labels_count_as_their_likeliest_class() -> None:
    hard = view()
    soft = View(
        Data(hard.data.x, torch.eye(3)[LABELS] * 0.6 + 0.1, spec=hard.data.spec),
        hard.network,
        hard.training,
        generator(),
    )
    picks = [PerClass(Smallest()).select(v, 2, generator()).indices.tolist() for v in (hard, soft)]
    assert picks[0] == picks[1]


def test_classes_may_have_shares_of_their_own() -> None:
    selection = PerClass(Smallest()).share(view(), [1, 3, 2], generator())
    assert selection.indices.tolist() == [5, 8, 3, 0, 6, 4]


@pytest.mark.parametrize("size", [0, 5])
@pytest.mark.parametrize("method", [Smallest(), OptimisedReal(tries=1, steps=1)], ids=["by class", "together"])
def test_a_share_that_a_class_cannot_give_is_refused(method: Selector, size: int) -> None:
    with pytest.raises(AttarError, match=f"Class 0 has 4 examples, but {size} were asked for"):
        PerClass(method).share(view(), [size, 1, 1], generator())


def test_without_labels_there_is_no_class_balance() -> None:
    with pytest.raises(AttarError, match="This needs labels"):
        PerClass(Smallest()).select(from_embeddings(torch.randn(9, 2, generator=generator())), 1, generator())
