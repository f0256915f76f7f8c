"""Methods that score each example alone."""

from collections.abc import Iterator
from dataclasses import replace
from math import log

import pytest
import torch
from torch import Tensor

from attar.core.errors import AttarError
from attar.nets import network
from attar.nets.train import Training, train
from attar.select import keep
from attar.select.contract import Selector
from attar.select.el2n import EL2N
from attar.select.entropy import Entropy
from attar.select.forgetting import Forgetting
from attar.select.grand import GraNd
from attar.select.least_confidence import LeastConfidence
from attar.select.margin import Margin
from attar.select.ranking import highest
from attar.select.sources import from_embeddings
from attar.select.view import View
from tests.known import gaussians, generator

P = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.9, 0.1, 0.0]])


def certain(p: Tensor) -> View:
    """Predictions that are given, and no labels, which none of these methods needs."""
    return from_embeddings(torch.arange(float(len(p)))[:, None], logits=p.clamp(min=1e-30).log())


@pytest.mark.parametrize(
    ("method", "order", "scores"),
    [
        (LeastConfidence(), [2, 0, 1, 3], [0.6, 0.5, 0.5, 0.1]),
        (Margin(), [1, 2, 0, 3], [1.0, 0.9, 0.75, 0.2]),
        (Entropy(), [2, 0, 1, 3], [1.0889, 1.5 * log(2), log(2), 0.3251]),
    ],
)
def test_cases_worked_by_hand(method: Selector, order: list[int], scores: list[float]) -> None:
    selection = method.select(certain(P), 4, generator())
    assert selection.indices.tolist() == order
    assert selection.scores.tolist() == pytest.approx(scores, abs=1e-4)


def test_a_margin_needs_two_classes() -> None:
    with pytest.raises(AttarError, match="at least two classes"):
        Margin().select(certain(torch.ones(3, 1)), 1, generator())


def test_ties_go_to_the_lowest_index_or_to_chance() -> None:
    scores = torch.tensor([1.0, 2, 1, 2, 1, 1])
    assert highest(scores, 4).indices.tolist() == [1, 3, 0, 2]
    drawn = {tuple(highest(scores, 4, generator(s)).indices.tolist()) for s in range(40)}
    assert len(drawn) > 10
    assert all(set(picks[:2]) == {1, 3} for picks in drawn)


DATA = gaussians(12)
NET = network("mlp-d1w8", DATA.shape, DATA.classes)
SHORT = Training(steps=12, batch=8, lr=0.3)


def view() -> View:
    return View(DATA, NET, SHORT, generator(4))


def early(networks: int, steps: int) -> list[View]:
    short = replace(SHORT, steps=steps, schedule="constant")
    thetas = train(NET, DATA, short, keep.stream(generator(4), "early"), networks)
    return [View(DATA, NET, SHORT, generator(), theta=theta) for theta in thetas]


def test_el2n_is_the_mean_error_over_networks_that_were_trained_shortly() -> None:
    errors = torch.stack([(v.logits.softmax(1) - torch.eye(3)[DATA.y]).norm(dim=1) for v in early(4, 3)]).mean(0)
    selection = EL2N(networks=4, epochs=3 * 8 / 36).select(view(), 36, generator())
    assert torch.allclose(selection.scores, errors[selection.indices], atol=1e-6)
    assert bool((selection.scores.diff() <= 0).all())


def test_grand_is_the_mean_norm_of_the_last_layer_s_gradient() -> None:
    def norms(seen: View) -> Tensor:
        return torch.stack(
            [
                (r[:, None] * torch.cat([h, torch.ones(1)])).norm()
                for r, h in zip(seen.residuals, seen.features, strict=True)
            ]
        )

    expected = torch.stack([norms(v) for v in early(4, 3)]).mean(0)
    selection = GraNd(networks=4, epochs=3 * 8 / 36).select(view(), 36, generator())
    assert torch.allclose(selection.scores, expected[selection.indices], atol=1e-5)
    assert bool((selection.scores.diff() <= 0).all())


def test_a_wrong_label_is_found_early() -> None:
    wrong = 5
    y = DATA.y.clone()
    y[wrong] = (y[wrong] + 1) % 3
    mislabelled = View(replace(DATA, y=y), NET, SHORT, generator(4))
    for method in (EL2N(), GraNd()):
        assert method.select(mislabelled, 1, generator()).indices.tolist() == [wrong]


def test_forgetting_counts_falls_from_right_to_wrong() -> None:
    class Told(View):
        """One example a column: always right, forgotten once, twice, never right, right at last."""

        def along(self, looks: int):  # type: ignore[no-untyped-def]
            right = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 0, 1]]).bool()
            assert looks == len(right)
            for row in right:
                wrong = from_embeddings(torch.eye(5), logits=torch.eye(2)[(~row).long()])
                yield wrong

    told = Told(replace(gaussians(5, 1, 5), y=torch.zeros(5, dtype=torch.int64)), NET, SHORT, generator())
    selection = Forgetting(looks=4, never_learnt="first").select(told, 5, generator())
    assert selection.indices[:3].tolist() == [3, 2, 1]
    assert set(selection.indices[3:].tolist()) == {0, 4}
    assert selection.scores.tolist() == [4, 2, 1, 0, 0]
    usual = Forgetting(looks=4).select(told, 5, generator())  # what was never learnt was never forgotten
    assert usual.indices[:2].tolist() == [2, 1]
    assert usual.scores.tolist() == [2, 1, 0, 0, 0]


@pytest.mark.parametrize("method", [EL2N(networks=2), GraNd(networks=2)])
def test_early_is_one_pass_through_the_data(method: EL2N | GraNd, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    real = View.early

    def early(self: View, networks: int, steps: int) -> Iterator[View]:
        asked.append((networks, steps))
        return real(self, networks, steps)

    monkeypatch.setattr(View, "early", early)
    method.select(view(), 2, generator())
    replace(method, epochs=0.01).select(view(), 2, generator())
    assert asked == [(2, 4), (2, 1)]  # 36 examples in batches of 8 are 4.5 steps


def test_forgetting_looks_at_one_training_that_goes_on_as_if_nobody_looked() -> None:
    looks = list(view().along(4))
    assert len(looks) == 4
    for number, look in enumerate(looks, 1):
        unseen = replace(SHORT, steps=3 * number, schedule="constant")
        assert torch.equal(look.theta, train(NET, DATA, unseen, keep.stream(generator(4), "along"))[0])


def test_scores_over_several_networks_are_computed_once_for_all_parts() -> None:
    whole, calls = view(), []

    class Counting(EL2N):
        def _errors(self, seen: View) -> Tensor:
            calls.append(1)
            return super()._errors(seen)

    method = Counting(networks=1, epochs=0.1)
    for c in range(3):
        method.select(whole.of_class(c), 2, generator())
    assert len(calls) == 1


@pytest.mark.parametrize("method", [EL2N(), GraNd(), Forgetting()])
def test_methods_that_train_need_a_network_to_train(method: Selector) -> None:
    trained = View(DATA, NET, SHORT, generator(), theta=NET.init(generator()))
    with pytest.raises(AttarError, match="trains its own networks: give View an untrained network"):
        method.select(trained, 2, generator())
