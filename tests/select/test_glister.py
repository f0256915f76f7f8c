import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attar.select.balance import PerClass
from attar.select.glister import Glister, GlisterVal, OneStep
from attar.select.keep import SelectionWarning
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import generator
from tests.select.seen import cloud, exact


def loss(view: View, shift: Tensor) -> Tensor:
    """The loss on a view after the last layer went by ``shift``."""
    with_one = torch.cat([view.features, torch.ones(len(view), 1).to(view.features)], 1)
    return cross_entropy(view.logits + with_one @ shift.T, view.y)


def stepped(view: View, judge: View, picks: Tensor, step: float) -> tuple[float, Tensor]:
    """Loss and gradient where the last layer is after gradient steps on the picks."""
    shift = (-step * view.gradients[picks].sum()).requires_grad_()
    value = loss(judge, shift)
    return float(value.detach()), torch.autograd.grad(value, shift)[0]


def test_gains_are_first_order_losses_at_the_layer_that_the_picks_have_moved() -> None:
    view, judge = exact(12), exact(9)
    one = OneStep(view, judge, eta=0.5)
    picks: list[int] = []
    for i in (3, 7, 3):
        _, slope = stepped(view, judge, torch.tensor(picks, dtype=torch.int64), one.step)
        assert torch.allclose(one.gain(torch.arange(12)), one.step * view.gradients.dot(slope), atol=1e-12)
        one.add(i)
        picks.append(i)


def test_the_slope_is_renewed_after_every_pick() -> None:
    # Two examples pull the same way and a third another way. By the first slope alone the twins are the best two; once
    # one twin is taken with a long step, its direction is served, and the third is taken.
    x = torch.tensor([[3.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    view = from_embeddings(x, torch.tensor([0, 0, 1]), torch.zeros(3, 2))
    static = OneStep(view, view, eta=5.0).gain(torch.arange(3)).argsort(descending=True, stable=True)
    assert static.tolist() == [0, 1, 2]
    assert Glister(eta=5.0).select(view, 3, generator()).indices.tolist() == [0, 2, 1]


def test_with_class_balance_picks_are_judged_by_all_classes() -> None:
    # The first example of class 0 looks like those of class 1. A step on it helps its own class most, and harms the
    # other more; a step on the second example of class 0 helps the one and leaves the other alone.
    x = torch.tensor([[3.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 0.1]])
    view = from_embeddings(x, torch.tensor([0, 0, 1, 1]), torch.zeros(4, 2))
    assert Glister().select(view.of_class(0), 1, generator()).indices.tolist() == [0]
    assert PerClass(Glister()).select(view, 1, generator()).indices.tolist() == [1, 2]


def test_fewer_picks_of_each_class_are_the_first_of_more() -> None:
    view = cloud()
    few, many = (PerClass(Glister()).select(view, size, generator()).indices for size in (2, 4))
    assert many.reshape(3, 4)[:, :2].flatten().tolist() == few.tolist()
    assert view.y[many].tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_a_case_of_glister_val_worked_by_hand() -> None:
    # All features are 1. Two examples are of class 0 and one of class 1, as is the only one held out; nothing is known
    # yet, so gradients are ±(½, −½) ⊗ [1, 1]. With η = ½ the step is ¼. On the example of class 1 it lowers the
    # held-out loss by ¼·1 and moves the logits there by (−¼, ¼), so its residual falls from ½ to σ(−½).
    view = from_embeddings(torch.ones(3, 1), torch.tensor([0, 0, 1]), torch.zeros(3, 2), validation=_held_out())
    with pytest.warns(SelectionWarning, match="Every example has the same features"):
        selection = GlisterVal(eta=0.5).select(view, 2, generator())
    assert selection.indices.tolist() == [2, 0]
    assert selection.scores.tolist() == pytest.approx([0.25, -0.25 * 2 / (1 + math.exp(0.5))])
    assert Glister(eta=0.5).select(view, 1, generator()).indices.tolist() == [0]  # the data itself is mostly class 0


def _held_out() -> View:
    return from_embeddings(torch.ones(1, 1), torch.tensor([1]), torch.zeros(1, 2))


@pytest.mark.parametrize("validation", [False, True])
def test_a_step_on_the_picks_lowers_the_judge_s_loss_more_than_one_on_a_random_subset(validation: bool) -> None:
    view = cloud(200)
    judge, method = (view.validation, GlisterVal()) if validation else (view, Glister())
    step = OneStep(view, judge, method.eta).step
    ours, _ = stepped(view, judge, method.select(view, 10, generator()).indices, step)
    random = [stepped(view, judge, torch.randperm(200, generator=generator(s))[:10], step)[0] for s in range(20)]
    assert ours < min(random)
