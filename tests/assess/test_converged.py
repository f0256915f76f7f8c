"""The full data trained to convergence: chosen on validation, kept for other studies, the same after a kill."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attar.assess import converged as module
from attar.assess.converged import Rung, Store, chosen, converged, ladder, pays
from attar.assess.metrics import score
from attar.assess.score import evaluate
from attar.core.cost import Cost
from attar.core.streams import EVALUATION
from attar.data import Split
from attar.nets import network
from attar.nets.train import Training
from attar.study import Run, StudySpec, compare
from attar.study.compared import distillation_sizes, how_long, reference
from tests.known import gaussians

SPLIT = Split(gaussians(24), gaussians(8, seed=1), gaussians(8, seed=2))
NETWORK = network("linear", SPLIT.spec)
BRIEF = Training(steps=2, batch=48, lr=0.05)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTAR_REFERENCES", str(tmp_path / "references"))
    return tmp_path / "references"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of every training, in order."""
    steps: list[int] = []
    real = module.train

    def counted(*given: object, **others: object) -> torch.Tensor:
        steps.append(given[2].steps)  # type: ignore[attr-defined]
        return real(*given, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "train", counted)
    return steps


def of(*accuracies: float, nll: float = 1.0) -> Callable[[int], Rung]:
    scores = iter(accuracies)
    return lambda steps: Rung(steps, next(scores), nll)


def test_the_number_of_steps_doubles_until_it_does_not_pay() -> None:
    found, rising = ladder(of(0.5, 0.6, 0.7, 0.7), 10, 10**9)
    assert not rising
    assert [rung.steps for rung in found] == [10, 20, 40, 80]
    assert chosen(found).steps == 40  # the fewest with the highest accuracy


def test_a_lower_loss_is_worth_it_too_and_a_trifle_is_not() -> None:
    before = [Rung(1, 0.9, 0.30), Rung(2, 0.8, 0.25)]
    assert pays(before, Rung(4, 0.5, 0.22))
    assert pays(before, Rung(4, 0.903, 0.9))
    assert not pays(before, Rung(4, 0.903, 0.9), least=0.01)
    assert not pays(before, Rung(4, 0.901, 0.24))


def test_the_limit_ends_the_search_but_one_doubling_is_always_tried() -> None:
    rungs, rising = ladder(of(0.1, 0.2, 0.3, 0.4), 10, 40)
    assert [rung.steps for rung in rungs] == [10, 20, 40]
    assert rising
    assert [rung.steps for rung in ladder(of(0.1, 0.2), 10, 5)[0]] == [10, 20]


def test_a_longer_training_is_chosen_where_the_budget_is_too_short() -> None:
    found = converged(SPLIT, NETWORK, BRIEF, draws=2, seed=0)
    assert found.steps > BRIEF.steps
    assert found.posterior.theta.shape == (2, NETWORK.size)
    short = replace(found.posterior, theta=Store.of(SPLIT.train, NETWORK, BRIEF).network(0, 0, BRIEF.steps)[0][None])
    assert evaluate(found.posterior, SPLIT.val).accuracy > evaluate(short, SPLIT.val).accuracy
    assert found.cost.wall > 0
    assert found.rungs[-1].steps <= 30 * len(SPLIT.train) // BRIEF.batch


def test_its_networks_have_random_numbers_of_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = list[int]()
    real = module.train

    def recorded(*given: Any) -> torch.Tensor:
        seeds.append(given[3].initial_seed())
        return real(*given)

    monkeypatch.setattr(module, "train", recorded)
    for seed in range(8):
        converged(SPLIT, NETWORK, BRIEF, draws=2, seed=seed)
    assert len(set(seeds)) == 16
    assert all(seed & EVALUATION for seed in seeds)


def test_test_data_has_no_say_in_the_choice() -> None:
    """Nor have validation labels a say in the networks themselves."""
    other = replace(SPLIT, test=replace(SPLIT.test, y=SPLIT.test.y.roll(1)))
    assert converged(other, NETWORK, BRIEF, 1, 0).rungs == converged(SPLIT, NETWORK, BRIEF, 1, 0).rungs


def test_what_was_trained_is_used_again_by_more_draws_and_told_with_its_cost(trained: list[int]) -> None:
    first = converged(SPLIT, NETWORK, BRIEF, draws=1, seed=0)
    before = len(trained)
    again = converged(SPLIT, NETWORK, BRIEF, draws=1, seed=0)
    assert len(trained) == before
    assert torch.equal(first.posterior.theta, again.posterior.theta)
    assert again.cost == first.cost
    more = converged(SPLIT, NETWORK, BRIEF, draws=3, seed=0)
    assert trained[before:] == [first.steps] * 2
    assert torch.equal(more.posterior.theta[:1], first.posterior.theta)
    assert len({tuple(row.tolist()) for row in more.posterior.theta}) == 3


def test_other_data_networks_settings_and_seeds_do_not_mix(trained: list[int]) -> None:
    converged(SPLIT, NETWORK, BRIEF, 1, 0)
    for split, training, seed in (
        (SPLIT, replace(BRIEF, lr=0.03), 0),
        (replace(SPLIT, train=gaussians(24, seed=5)), BRIEF, 0),
        (SPLIT, BRIEF, 1),
    ):
        before = len(trained)
        converged(split, NETWORK, training, 1, seed)
        assert len(trained) > before + 1


def test_after_a_kill_only_what_is_missing_is_trained_and_ends_in_the_same_bits(
    place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = converged(SPLIT, NETWORK, BRIEF, draws=2, seed=0)
    files = sorted(place.rglob("*.safetensors"))
    for path in files[::2]:
        path.unlink()
    before = len(trained)
    again = converged(SPLIT, NETWORK, BRIEF, draws=2, seed=0)
    assert len(trained) - before == len(files[::2])
    assert torch.equal(again.posterior.theta, whole.posterior.theta)
    assert again.rungs == whole.rungs


@pytest.mark.parametrize("harm", ["cut", "other"])
def test_a_damaged_network_is_set_aside_and_trained_again(place: Path, harm: str) -> None:
    whole = converged(SPLIT, NETWORK, BRIEF, 1, 0)
    paths = sorted(place.rglob("0-0-*.safetensors"))
    content = bytearray(paths[0].read_bytes())
    content[-1] ^= 1
    paths[0].write_bytes(bytes(content) if harm == "other" else bytes(content[:-5]))
    with pytest.warns(UserWarning, match="trained again"):
        again = converged(SPLIT, NETWORK, BRIEF, 1, 0)
    assert torch.equal(again.posterior.theta, whole.posterior.theta)
    assert paths[0].with_name(f"{paths[0].name}.unreadable-1").exists()


def test_a_study_is_measured_against_it_and_says_so(tmp_path: Path) -> None:
    spec = StudySpec(methods=(), per_class=2, seeds=(0, 1), network="linear", training=BRIEF, draws=1)
    study = compare(spec, data=SPLIT, folder=tmp_path / "s")
    assert reference(study) == "full-converged"
    assert "of the accuracy of full-converged" in distillation_sizes(study)
    runs = study.groups()["full-converged", None]
    assert [run.seed for run in runs] == [0, 1]
    assert all(run.family == "full" and run.infer_cost.wall > 0 for run in runs)
    assert "chosen on validation" in how_long(runs)
    left_out = compare(replace(spec, converged=False), data=SPLIT, folder=tmp_path / "t")
    assert reference(left_out) == "full"
    assert "of the accuracy of full)" in distillation_sizes(left_out)
    grown = compare(spec, data=SPLIT, folder=tmp_path / "t")
    assert grown.groups()["full-converged", None] == runs  # to the bit, with the cost of the first training


def test_a_search_that_the_limit_ended_is_told() -> None:
    run = study_run(steps=300)
    assert "might still gain" not in how_long([run, study_run(steps=600)])
    assert "for 300 to 600 steps" in how_long([run, study_run(steps=600)])
    assert "might still gain" in how_long([run, study_run(steps=300, rising=True)])


def study_run(**notes: object) -> Run:
    sure = score(torch.eye(2), torch.arange(2))
    return Run("full-converged", "full", None, 0, 9, sure, sure, Cost(), Cost(), notes=dict(notes))
