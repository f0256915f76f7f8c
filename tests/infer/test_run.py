from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import attar
from attar import Coreset, Training
from attar.core.errors import AttarError
from attar.core.streams import evaluation
from attar.infer import Draws
from attar.infer.ensemble import Ensemble
from attar.infer.last_layer_vi import LastLayerVI
from attar.infer.run import what_is_lost
from attar.nets.train import train
from tests.known import gaussians

DATA = gaussians(8)
BUDGET = Training(steps=6, lr=0.2)
MADE = attar.reduce(DATA, "uniform", per_class=2, network="mlp-d1w5", training=BUDGET)


def infer(data: Any = MADE, **options: Any) -> Draws:
    posterior = attar.infer(data, **{"draws": 2, **options})
    assert isinstance(posterior, Draws)
    return posterior


def test_a_coreset_brings_its_network_and_its_training() -> None:
    posterior = infer(seed=3)
    assert posterior.network.name == "mlp-d1w5"
    assert torch.equal(posterior.theta, train(posterior.network, MADE.data, BUDGET, evaluation(3), 2))


def test_network_and_training_can_be_set() -> None:
    other = Training(steps=2)
    posterior = infer(network="linear", training=other)
    assert torch.equal(posterior.theta, train(posterior.network, MADE.data, other, evaluation(0), 2))
    own = infer(network=lambda: nn.Sequential(nn.Linear(6, 3)), training=other)
    assert own.network.name == "custom:Sequential"


def test_a_learnt_step_size_is_the_learning_rate() -> None:
    learnt = infer(replace(MADE, step_size=0.01))
    expected = train(learnt.network, MADE.data, replace(BUDGET, lr=0.01), evaluation(0), 2)
    assert torch.equal(learnt.theta, expected)


def test_the_recommended_sampler_keeps_what_was_learnt_for_it_when_it_is_named() -> None:
    learnt = attar.reduce(
        DATA, "vbpc", per_class=1, network="mlp-d1w5", training=BUDGET, options={"gamma": 7.0}, descent={"steps": 2}
    )
    assert learnt.recipe.sampler == "last-layer-vi"
    named, plain = infer(learnt, sampler="last-layer-vi"), infer(learnt)
    assert named.notes["options"] == plain.notes["options"]
    assert named.notes["options"]["scale"] == learnt.recipe.sampler_options["scale"] != 10.0
    assert torch.equal(named.theta, plain.theta)
    other = infer(learnt, sampler="last-layer-vi", options={"gamma": 3.0})
    assert other.notes["options"] == {**plain.notes["options"], "gamma": 3.0}


def test_weights_of_a_coreset_are_used() -> None:
    weighted = replace(MADE, data=replace(MADE.data, weights=torch.tensor([9.0, 1, 1, 1, 1, 1])))
    assert not torch.equal(infer(weighted).theta, infer().theta)


def test_any_data_will_do() -> None:
    assert infer(DATA, training=BUDGET).network.name == "mlp-d2w128"
    assert isinstance(MADE, Coreset)


def test_a_sampler_by_name_and_by_object_give_the_same_bits() -> None:
    assert torch.equal(infer(sampler="ensemble").theta, infer(sampler=Ensemble()).theta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"sampler": "ensembel"}, "Unknown sampler 'ensembel': did you mean 'ensemble'"),
        ({"sampler": "dm"}, "Unknown sampler 'dm'"),
        ({"options": {"steps": 3}}, "ensemble takes no option 'steps'"),
        ({"sampler": Ensemble(), "options": {"steps": 3}}, "to the constructor of the sampler object"),
        ({"network": "mpl"}, "Unknown network 'mpl'"),
    ],
)
def test_what_cannot_be_inferred_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AttarError, match=message):
        infer(**arguments)


def test_a_coreset_of_a_module_of_one_s_own_asks_for_that_module() -> None:
    own = replace(MADE, recipe=replace(MADE.recipe, network="custom:Mine"))
    with pytest.raises(AttarError, match="pass the function that builds it"):
        infer(own)


def test_another_sampler_than_a_coreset_was_made_for_warns_of_what_is_lost() -> None:
    learnt = attar.reduce(DATA, "vbpc", per_class=1, network="mlp-d1w5", training=BUDGET, descent={"steps": 2})
    for sampler in ("ensemble", Ensemble()):
        with pytest.warns(
            UserWarning, match=r"made for the sampler last-layer-vi, and ensemble drops its .*scale"
        ) as one:
            infer(learnt, sampler=sampler)
        assert len(one) == 1
    assert infer(sampler="laplace").notes["sampler"] == "laplace"  # a coreset made for no sampler loses nothing


def test_an_object_of_the_recommended_sampler_keeps_what_was_learnt_and_it_does_not_set() -> None:
    recorded = {"scale": 4.0, "rho": 100.0, "gamma": 5.0}
    learnt = replace(MADE, recipe=replace(MADE.recipe, sampler="last-layer-vi", sampler_options=recorded))
    plain, given = infer(learnt), infer(learnt, sampler=LastLayerVI())
    assert given.notes == plain.notes
    assert torch.equal(given.theta, plain.theta)
    other = infer(learnt, sampler=LastLayerVI(gamma=7.0)).notes["options"]
    assert {name: other[name] for name in recorded} == {**recorded, "gamma": 7.0}
    with pytest.raises(AttarError, match="to the constructor of the sampler object"):
        infer(learnt, sampler=LastLayerVI(), options={"rho": 2.0})


def test_a_learnt_step_size_is_lost_where_no_network_is_trained() -> None:
    stepped = replace(MADE, step_size=0.05)
    with pytest.warns(UserWarning, match="made with a learnt step size, and knn ignores it: leave the sampler out"):
        infer(stepped, sampler="knn")
    assert "sghmc ignores it" in what_is_lost(stepped, "sghmc")
    for sampler in ("ensemble", "laplace"):  # which train at that rate
        assert not torch.equal(infer(stepped, sampler=sampler).theta, infer(sampler=sampler).theta)
