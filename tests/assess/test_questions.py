"""Every question is put with the posterior's own sampler and options, and the coreset's own settings."""

from dataclasses import replace
from functools import cache
from typing import Any

import attar
from attar import Coreset, Split, Training
from attar.assess.converged import converged
from attar.assess.distance import distance, distillation_ratio
from attar.assess.fairness import fair
from attar.assess.privacy import membership, through
from attar.assess.questions import Assessment, Questions, assess
from attar.assess.score import evaluate, predictions
from attar.assess.transfer import transfer
from attar.core.streams import seed_of
from tests.known import gaussians

DATA = gaussians(250, seed=1)
SPLIT = Split(DATA[:660], DATA[660:690], DATA[690:])
BUDGET = Training(steps=7, lr=0.2)
LAPLACE: dict[str, Any] = {"sampler": "laplace", "options": {"precision": 0.3}}


@cache
def made() -> Coreset:
    return attar.reduce(
        SPLIT,
        "dm",
        per_class=2,
        network="mlp-d1w5",
        training=BUDGET,
        options={"batch": 8},
        descent={"steps": 3, "lr": 2.0},
    )


@cache
def asked() -> Assessment:
    posterior = attar.infer(made(), draws=2, seed=4, **LAPLACE)
    return assess(made(), SPLIT, Questions(networks=("linear",), fairness=True, privacy=True), posterior)


def scores(options: dict[str, Any]) -> tuple[float | None, list[float]]:
    """NLL of a transfer and accuracies of fairness, asked directly."""
    same: dict[str, Any] = {"draws": 2, "training": BUDGET, "sampler": "laplace", "options": options}
    (row,) = transfer(made(), SPLIT, ["linear"], seeds=[4], **same)
    found = fair(made(), SPLIT, seeds=[4, 5, 6], **same)
    return row.nll, [*found.own.coreset, *found.own.random, *found.full]


def test_transfer_and_fairness_use_the_sampler_with_its_options() -> None:
    answers = asked()
    assert answers.fairness is not None
    own = answers.fairness.own
    (row,) = answers.transfer
    assert (row.nll, [*own.coreset, *own.random, *answers.fairness.full]) == scores({"precision": 0.3})
    other = scores({"precision": 0.01})
    assert row.nll != other[0]
    assert [*own.coreset, *own.random, *answers.fairness.full] != other[1]
    assert row.seeds == 1


def test_the_distance_is_to_full_data_of_other_seeds_with_their_own_distance_as_a_floor() -> None:
    posterior = attar.infer(made(), draws=2, seed=4)
    answers = assess(made(), SPLIT, Questions(distance=True), posterior)
    full = [attar.infer(SPLIT.train, draws=2, seed=s, network="mlp-d1w5", training=BUDGET) for s in _full_seeds(4)]
    ours, theirs, others = (predictions(each, SPLIT.test) for each in (posterior, *full))
    assert answers.distance == distance(ours, theirs)
    assert answers.floor == distance(theirs, others)
    assert answers.floor.total_variation > 0  # two seeds, not one posterior twice
    same = attar.infer(SPLIT.train, draws=2, seed=4, network="mlp-d1w5", training=BUDGET)
    assert answers.distance != distance(ours, predictions(same, SPLIT.test))


def test_the_ratio_is_to_the_full_data_trained_to_convergence_unless_that_is_left_out() -> None:
    brief = Training(steps=1, lr=0.02)  # far too short for the full data
    coreset = replace(made(), recipe=replace(made().recipe, training=brief))
    posterior = attar.infer(made(), draws=2, seed=4)
    found, left_out = (
        assess(coreset, SPLIT, Questions(distance=True, converged=asked), posterior) for asked in (True, False)
    )
    ours = evaluate(posterior, SPLIT.test).accuracy
    top = converged(SPLIT, posterior.network, brief, 2, coreset.recipe.seed)
    full = attar.infer(SPLIT.train, draws=2, seed=_full_seeds(4)[0], network="mlp-d1w5", training=brief)
    assert (found.converged, left_out.converged) == (True, False)
    assert found.ratio == distillation_ratio(ours, evaluate(top.posterior, SPLIT.test).accuracy)
    assert left_out.ratio == distillation_ratio(ours, evaluate(full, SPLIT.test).accuracy)
    assert found.ratio != left_out.ratio
    assert replace(found, ratio=left_out.ratio, converged=False) == left_out


def test_nearest_neighbours_are_compared_with_the_network_of_the_coreset() -> None:
    votes = attar.infer(made(), "knn")
    found = assess(made(), SPLIT, Questions(distance=True), votes)
    top = converged(SPLIT, attar.network("mlp-d1w5", SPLIT.spec), BUDGET, 1, made().recipe.seed)
    accuracies = evaluate(votes, SPLIT.test).accuracy, evaluate(top.posterior, SPLIT.test).accuracy
    assert found.ratio == distillation_ratio(*accuracies)


def _full_seeds(seed: int) -> list[int]:
    return [seed_of("full", seed, number) for number in (0, 1)]


def test_membership_is_asked_of_coresets_made_as_this_one_was() -> None:
    settings: dict[str, Any] = {
        "per_class": 2,
        "draws": 2,
        "network": "mlp-d1w5",
        "training": BUDGET,
        "options": {"batch": 8},
        "descent": {"steps": 3, "lr": 2.0},
        "sampler": "laplace",
        "sampler_options": {"precision": 0.3},
    }
    assert asked().membership == membership(through("dm", **settings), SPLIT, seed=4)
    for name, value in (
        ("per_class", 1),
        ("network", "linear"),
        ("training", Training(steps=1)),
        ("descent", {"steps": 1}),
        ("sampler_options", {"precision": 1e-3}),
    ):
        assert asked().membership != membership(through("dm", **settings | {name: value}), SPLIT, seed=4), name
