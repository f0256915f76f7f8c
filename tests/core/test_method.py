"""What every method says of itself: what it needs, and how it optimises."""

import pytest

import attar
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.method import STARTS, Descent, Inference, Method, Needs


def test_optimiser_settings_come_with_defaults_that_hold() -> None:
    descent = Descent()
    assert (descent.steps, descent.optimiser, descent.init) == (1000, "sgd", "real")
    assert descent.clip is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"lr": 0.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": float("inf")}, "lr"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"optimiser": "adm"}, "optimiser"),
        ({"schedule": "linear"}, "schedule"),
        ({"label_lr": 0.0}, "label_lr"),
        ({"scalar_lr": -1.0}, "scalar_lr"),
        ({"clip": 0.0}, "clip"),
        ({"clp": 1.0}, "did you mean 'clip'"),
        ({"init": "reel"}, "did you mean 'real'"),
        ({"init": "dm"}, "Unknown start 'dm'"),
    ],
)
def test_settings_that_cannot_be_run_are_refused_by_name(change: dict[str, object], message: str) -> None:
    with pytest.raises(AttarError, match=message) as caught:
        registry.make(Descent, change, "it")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("init", [*STARTS, *attar.methods("select")])
def test_a_run_may_start_from_what_any_selection_method_picks(init: str) -> None:
    assert Descent(init=init).init == init


def test_every_group_of_parameters_has_its_own_rate_and_others_that_of_the_examples() -> None:
    descent = Descent(lr=0.1, label_lr=0.02, scalar_lr=0.003)
    assert [descent.rate(group) for group in ("examples", "labels", "scalars", "generator")] == [0.1, 0.02, 0.003, 0.1]
    assert [Descent(lr=0.5).rate(group) for group in ("labels", "scalars")] == [0.5, 0.5]


def test_a_method_needs_labels_and_nothing_else_unless_it_says_so() -> None:
    assert Method.needs == Needs(experts=False, validation=False, labels=True, features=False)
    assert Method.descent is None
    assert Method().inference == Inference("ensemble", {}, {})
    assert Method().starts(7) == 7


@pytest.mark.parametrize("name", sorted(attar.methods(*registry.REDUCERS)))
def test_every_registered_reducer_is_one_and_says_what_it_needs(name: str) -> None:
    method = registry.build(name, {})
    assert isinstance(method, Method)
    assert isinstance(method.needs, Needs)
    learns = registry.find(name).family in ("condense", "bayes")
    assert (method.descent is not None) == learns
    assert method.needs.validation == name.endswith("-val")
    sampler = registry.find(method.inference.sampler, "infer")
    assert set(method.inference.options) <= set(registry.fields(sampler.build))
