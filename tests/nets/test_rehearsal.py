"""Within a rehearsal trainings take a few steps and count the others."""

import pytest
import torch

from attar.nets import network
from attar.nets.rehearsal import BUDGET, LEAST, rehearsal
from attar.nets.train import Training, train
from tests.known import Clock, gaussians, generator

NET = network("linear", (6,), 3)


def test_all_steps_are_counted_and_few_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Clock(monkeypatch).train(BUDGET / 8, monkeypatch)
    with rehearsal() as found:
        train(NET, gaussians(), Training(steps=200), generator())
        assert len(taken) == 8
        train(NET, gaussians(), Training(steps=50), generator())  # the budget is spent
    assert len(taken) == 8 + LEAST
    assert found.taken == pytest.approx(BUDGET / 8 * len(taken))
    assert found.seconds == pytest.approx(BUDGET / 8 * 250)


def test_a_brief_rehearsal_takes_one_step_of_each_training(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Clock(monkeypatch).train(0.01, monkeypatch)
    with rehearsal(brief=True) as found:
        for _ in range(3):
            train(NET, gaussians(), Training(steps=40), generator())
    assert len(taken) == 3
    assert found.seconds == pytest.approx(0.01 * 120)


def test_trainings_outside_are_complete_also_after_an_error_in_a_rehearsal() -> None:
    def trained() -> torch.Tensor:
        return train(NET, gaussians(), Training(steps=20), generator())

    def fails() -> None:
        with rehearsal(brief=True):
            assert not torch.equal(trained(), before)
            raise ZeroDivisionError

    before = trained()
    with pytest.raises(ZeroDivisionError):
        fails()
    assert torch.equal(trained(), before)
