"""What a plan decides before anything runs, and what it refuses."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attar
from attar import Training
from attar.condense.dm import DM
from attar.condense.driver import Step
from attar.core.errors import AttarError
from attar.data import Split
from attar.experts import Schedule, Trajectories
from attar.infer.ensemble import Ensemble
from attar.plan import needs_of
from attar.reduce import run
from attar.select.herding import Herding
from tests.conformance import REDUCERS
from tests.known import digits, gaussians, images

DATA = gaussians(8)
OF_EXPERTS = [name for name in REDUCERS if needs_of(name).experts]
of_experts = pytest.mark.parametrize("name", OF_EXPERTS)


def test_a_plan_has_every_default_filled_in() -> None:
    plan = attar.plan(images(4), "dc", per_class=2)
    assert plan.network.name == "convnet-d2w32"
    assert plan.descent == plan.method.descent_on(plan.network)  # type: ignore[union-attr]
    assert plan.training == Training()
    recipe = plan.recipe()
    assert recipe.options == {"batch": 256, "matches": None, "net_steps": None, "net_lr": 0.01}
    assert recipe.descent["steps"] == 1000
    assert attar.plan(DATA, "uniform", per_class=2).descent is None


def test_a_plan_changes_only_what_was_asked_of_the_method_s_own_settings() -> None:
    plan = attar.plan(DATA, "dm", per_class=1, descent={"steps": 7})
    assert plan.descent == replace(DM.descent, steps=7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "dmm"}, "Unknown method 'dmm': did you mean 'dm'"),
        ({"method": "ensemble"}, "Unknown method 'ensemble'"),
        ({"method": Ensemble()}, "Unknown method 'ensemble'"),
        ({"method": DATA}, "Data is not registered"),
        ({"method": Herding(), "options": {"batch": 3}}, "to the constructor of the method object"),
        ({"method": "uniform", "descent": {"steps": 3}}, "has no optimiser settings: leave out steps"),
        ({"method": "uniform", "options": {"batch": 3}}, "uniform takes no option 'batch'"),
        ({"method": "dm", "options": {"batch": 0}}, "dm: batch: "),
        ({"method": "dm", "descent": {"step": 3}}, "Unknown option of dm descent 'step': did you mean 'steps'"),
        ({"method": "dm", "descent": {"lr": -1.0}}, "dm descent: lr: "),
        ({"method": "uniform", "per_class": 0}, "per_class must be at least 1, got 0"),
        ({"method": "uniform", "per_class": 9}, "Class 'class 0' has 8 examples, but 9 per class were asked for"),
        ({"method": "dm", "network": "mpl"}, "Unknown network 'mpl': did you mean 'mlp'"),
        ({"method": "dm", "network": "convnet"}, "needs images"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_runs(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AttarError, match=message) as caught:
        attar.plan(DATA, **{"per_class": 1, **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["glister-val", "gradmatch-val"])
def test_the_validation_set_is_part_of_the_recipe_of_methods_that_look_at_it_and_of_no_other(method: str) -> None:
    splits = [Split(DATA, gaussians(4, seed=seed), gaussians(4, seed=7)) for seed in (1, 2)]
    looking, blind = (
        [attar.plan(split, name, per_class=1).recipe() for split in splits]
        for name in (method, method.removesuffix("-val"))
    )
    assert [recipe.validation for recipe in looking] == [split.val.fingerprint for split in splits]
    assert looking[0] != looking[1]
    assert blind[0] == blind[1]
    with pytest.raises(AttarError, match=f"^{method} needs a validation set: reduce a Split"):
        attar.plan(DATA, method, per_class=1)


def test_who_does_not_name_the_validation_set_is_not_shown_it() -> None:
    split = Split(DATA, gaussians(4, seed=1), gaussians(4, seed=7))
    assert attar.plan(split, "glister", per_class=1).validation is None
    assert attar.plan(split, "glister-val", per_class=1).validation is split.val


def test_a_typo_in_an_augmentation_is_found_before_anything_runs() -> None:
    with pytest.raises(AttarError, match=r"^dm: Unknown augmentation 'crp': did you mean 'crop'\?$"):
        attar.plan(digits(), "dm", per_class=1, options={"strategy": "crp"})
    with pytest.raises(ValueError, match="did you mean 'crop'"):
        Training(augment="crp")


def test_the_size_is_a_number_a_class_or_a_share_of_the_data() -> None:
    assert attar.plan(DATA, "uniform", fraction=0.5).per_class == 4
    assert attar.plan(DATA, "uniform", fraction=1.0).per_class == 8
    assert attar.plan(DATA, "uniform", fraction=1e-9).per_class == 1
    assert len(attar.reduce(DATA, "uniform", fraction=0.25)) == 6


@pytest.mark.parametrize("size", [{}, {"per_class": 1, "fraction": 0.5}])
def test_a_size_is_given_once(size: dict[str, Any]) -> None:
    with pytest.raises(AttarError, match="either as per_class or as fraction"):
        attar.plan(DATA, "uniform", **size)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_outside_the_data_is_refused(fraction: float) -> None:
    with pytest.raises(AttarError, match="fraction must lie between 0 and 1"):
        attar.plan(DATA, "uniform", fraction=fraction)


def test_everything_that_is_looked_at_is_moved_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    moved = Split.to

    def to(self: Split, device: torch.device | str) -> Split:
        asked.append(device)
        return moved(self, device)

    monkeypatch.setattr(Split, "to", to)
    split = Split(DATA, gaussians(4, seed=1), gaussians(4, seed=2))
    plan = attar.plan(split, "glister-val", per_class=1, device="cpu")
    assert asked == [torch.device("cpu")]
    assert plan.validation is not None
    assert plan.data.device == plan.validation.device == torch.device("cpu")


def test_the_forecast_of_memory_grows_with_what_takes_it() -> None:
    def memory(**changes: Any) -> int:
        usual = {"per_class": 1, "network": "convnet-d1w16", "options": {"batch": 8}}
        return attar.plan(digits(), "dm", **usual | changes).memory()

    memory()  # with what a process does once
    small = memory()
    assert small < memory(per_class=100)
    assert small < memory(network="convnet-d2w256")
    assert small < memory(options={"batch": 999})


@pytest.mark.parametrize("name", [name for name in REDUCERS if name not in OF_EXPERTS])
def test_every_method_can_be_rehearsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("core.forecast.ENOUGH", "condense.forecast.ENOUGH", "nets.rehearsal.BUDGET"):
        monkeypatch.setattr(f"attar.{place}", 0.0)
    data = Split(gaussians(50), gaussians(4, seed=1), gaussians(4, seed=2))
    plan = attar.plan(data, name, per_class=2, network="mlp-d1w4", training=Training(batch=16))
    assert plan.seconds() > 0
    assert plan.memory() >= data.train.x.nbytes


def test_an_estimate_of_time_changes_nothing() -> None:
    plans = [attar.plan(DATA, "dm", per_class=1, network="mlp-d1w4", descent={"steps": 3}) for _ in range(2)]
    plans[0].seconds()
    assert torch.equal(run(plans[0]).data.x, run(plans[1]).data.x)


class Quadratic(nn.Module):
    """A classifier whose logits are no linear layer's."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(3, 6))

    def forward(self, x: Tensor) -> Tensor:
        return -torch.cdist(x, self.centres)


@pytest.mark.parametrize("name", REDUCERS)
def test_methods_that_look_at_features_refuse_a_network_without_a_linear_head_before_they_run(name: str) -> None:
    split = Split(DATA, gaussians(4, seed=1), gaussians(4, seed=2))
    needs = attar.methods()[name].build.needs
    if needs.features or needs.linear:
        with pytest.raises(AttarError, match="Quadratic"):
            attar.plan(split, name, per_class=1, network=Quadratic)
    elif not needs_of(name).experts:
        assert attar.plan(split, name, per_class=1, network=Quadratic).network.name == "custom:Quadratic"


@pytest.mark.parametrize("name", REDUCERS)
def test_methods_that_need_a_linear_last_layer_refuse_a_cosine_classifier_and_others_take_it(name: str) -> None:
    split = Split(DATA, gaussians(4, seed=1), gaussians(4, seed=2))
    if attar.methods()[name].build.needs.linear:
        with pytest.raises(AttarError, match=r"linear-cosine is a cosine classifier.* without -cosine\.$"):
            attar.plan(split, name, per_class=1, network="linear-cosine")
    elif not needs_of(name).experts:
        assert attar.plan(split, name, per_class=1, network="linear-cosine").network.name == "linear-cosine"


def test_the_recipe_says_where_data_came_from_if_that_was_a_name_or_a_path(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    path = tmp_path / "mine.csv"
    rows = [",".join([*map(str, row), f"kind {label}"]) for row, label in zip(x, y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,kind", *rows]))
    for data, source in (("digits", "digits"), (digits(), "digits")):
        origin = attar.plan(data, "uniform", per_class=1).recipe().origin
        assert origin is not None
        assert (origin.source, origin.target) == (source, None)
    table = attar.load(path, target="kind", val=0.2, test=0.3, seed=4, scaling="zca")
    origin = attar.reduce(table, "uniform", per_class=1).recipe.origin
    assert origin is not None
    assert (origin.source, origin.target) == (str(path.resolve()), "kind")
    again = attar.load(
        origin.source,
        target=origin.target,
        val=origin.val,
        test=origin.test,
        seed=origin.seed,
        scaling=origin.scaling,
    )
    assert again.train.fingerprint == table.train.fingerprint
    for arrays in ((x, y), attar.load((x, y)), table.train):
        assert attar.plan(arrays, "uniform", per_class=1).recipe().origin is None


def losses(steps: Iterable[Step], into: list[float]) -> Iterator[Step]:
    for step in steps:
        into.append(step.loss)
        yield step


def test_learning_goes_on_from_a_coreset() -> None:
    half: dict[str, Any] = {"per_class": 1, "network": "linear", "options": {"batch": 99}, "descent": {"steps": 15}}
    fresh: list[float] = []
    first = attar.reduce(DATA, "kip", **half, observers=[lambda steps: losses(steps, fresh)])
    further: list[float] = []
    second = attar.reduce(DATA, "kip", **half, start=first, observers=[lambda steps: losses(steps, further)])
    # This objective draws nothing: it is the same function of the examples whenever it is asked.
    assert fresh[-1] > further[0] > further[-1]
    assert second.recipe.start == first.data.fingerprint
    assert first.recipe.start is None
    assert not torch.equal(first.data.x, second.data.x)


def test_a_coreset_to_go_on_from_takes_the_transform_of_the_data() -> None:
    plain, scaled = attar.load((DATA.x, DATA.y), scaling="none"), attar.load((DATA.x, DATA.y))
    start = attar.reduce(plain, "dm", per_class=1, network="linear", descent={"steps": 1})
    plan = attar.plan(scaled, "dm", per_class=1, network="linear", start=start)
    assert plan.start is not None
    assert torch.allclose(plan.start.x, scaled.spec.transform.apply(start.pixels()), atol=1e-5)
    assert torch.equal(plan.condensation().first.x, plan.start.x)


def test_a_coreset_that_is_none_of_this_data_is_not_gone_on_from() -> None:
    start = attar.reduce(images(4), "uniform", per_class=1)
    with pytest.raises(AttarError, match="start from a coreset of this data"):
        attar.plan(DATA, "dm", per_class=1, start=start)
    with pytest.raises(AttarError, match="uniform selects examples: leave out start"):
        attar.plan(images(4), "uniform", per_class=1, start=start)


def test_what_observers_and_checkpoints_take_is_not_the_method_s_cost(tmp_path: Path) -> None:
    slept = 0.0

    def rest(steps: Iterable[Step]) -> Iterator[Step]:
        nonlocal slept
        for step in steps:
            begin = time.perf_counter()
            time.sleep(0.2)
            slept += time.perf_counter() - begin
            yield step

    plan = attar.plan(DATA, "dm", per_class=1, network="linear", descent={"steps": 5})
    begin = time.perf_counter()
    coreset = run(plan, [rest], tmp_path / "state", every=1)
    whole = time.perf_counter() - begin
    assert slept >= 5 * 0.2
    assert 0 < coreset.recipe.cost.wall <= whole - slept


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    budget = Training(batch=16, lr=0.05, schedule="constant")
    return attar.experts(DATA, "mlp-d1w8", Schedule(1, 4, budget), folder=tmp_path_factory.mktemp("experts"))


@of_experts
def test_without_experts_the_error_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path))
    with pytest.raises(AttarError, match=r"attar experts gaussians --network mlp-d1w8.*takes about"):
        attar.plan(DATA, name, per_class=1, network="mlp-d1w8")


@of_experts
def test_experts_of_another_network_or_data_are_refused(name: str, experts: Trajectories) -> None:
    with pytest.raises(AttarError, match="mlp-d1w8"):
        attar.plan(DATA, name, per_class=1, network="mlp-d1w16", experts=experts)
    with pytest.raises(AttarError, match="fingerprint"):
        attar.plan(gaussians(8, seed=1), name, per_class=1, network="mlp-d1w8", experts=experts)


@of_experts
def test_epochs_that_are_not_there_are_refused_before_a_step(name: str, experts: Trajectories) -> None:
    plan = attar.plan(DATA, name, per_class=1, network="mlp-d1w8", experts=experts, options={"max_epoch": 5})
    with pytest.raises(AttarError, match="epoch"):
        plan.condensation()


@of_experts
def test_experts_may_be_given_by_their_folder_and_are_named_in_the_recipe(name: str, experts: Trajectories) -> None:
    plan = attar.plan(DATA, name, per_class=1, network="mlp-d1w8", experts=experts.folder)
    assert plan.recipe().experts == experts.manifest.identity


PRETRAINED = {"dd", "sldd", "tdd"}  # which may start from experts


@pytest.mark.parametrize("name", sorted(set(REDUCERS) - set(OF_EXPERTS) - PRETRAINED))
def test_methods_without_experts_refuse_them(name: str, experts: Trajectories) -> None:
    with pytest.raises(AttarError, match=f"{name} uses no experts"):
        attar.plan(DATA, name, per_class=1, network="mlp-d1w8", experts=experts)


@pytest.mark.parametrize(
    ("name", "power", "rate"), [("dm", 0.7, 1.0), ("dc", 0.6, 0.1), ("dsa", 0.6, 0.1), ("cafe", 0.9, 0.1)]
)
def test_published_learning_rates_are_scaled_to_the_width(name: str, power: float, rate: float) -> None:
    data = images(4)
    factors = {"convnet-d2w32": 4.0, "convnet-d2w128": 1.0, "convnet-d2w8x32": 4.0, "mlp-d1w8": 1.0}
    for network, times in factors.items():
        plan = attar.plan(data, name, per_class=1, network=network)
        assert plan.recipe().descent["lr"] == pytest.approx(rate * times**power, rel=5e-3)
    given = attar.plan(data, name, per_class=1, network="convnet-d2w32", descent={"lr": 0.3})
    assert given.recipe().descent["lr"] == 0.3
    assert attar.plan(data, "lcmat-c", per_class=1, network="convnet-d2w32").recipe().descent["lr"] == 0.1
