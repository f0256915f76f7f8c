"""No network that a coreset is made with is the start of one that it is evaluated with."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

import attar
from attar.assess.converged import Store
from attar.assess.privacy import membership, through
from attar.assess.questions import Questions, assess
from attar.assess.validation import validation_score
from attar.cli import main
from attar.continual import cell
from attar.core import registry
from attar.core.streams import EVALUATION, evaluation, reduction, seed_of
from attar.data import Split
from attar.nets import Network
from attar.plan import needs_of
from attar.select.keep import digest
from tests.conformance import BUDGET, CONDENSERS, NETWORKS, SAMPLERS, SPLITS, options, trained
from tests.continual.sets import spec as continual_spec
from tests.continual.sets import split as continual_split
from tests.known import gaussians

pytestmark = pytest.mark.filterwarnings("ignore:The scoring network should reach")  # trainings are of two steps

KIND, NET = "features", NETWORKS["features"]
LARGE = Split(gaussians(30), gaussians(8, seed=1), gaussians(8, seed=2))  #: enough for every question
STARTS = ("real", "noise", "herding", "lcmat-s")
#: Among them those that an evaluation, or a scoring network, of seed 0 would have.
SEEDS = (0, 1, EVALUATION, 2**62, evaluation(0).initial_seed(), seed_of("scoring", 0))
SCORING = ("lcmat-s", "craig", "glister-val", "forgetting")  #: selectors whose scoring networks are trained
SHORT = replace(BUDGET, steps=2, batch=128)


class Starts:
    """The initial weights that networks were given: inside inference, fine-tuning and references, and elsewhere."""

    INFERRING = (attar.infer.__code__, cell._tuned.__code__, Store._make.__code__)
    PROBING = (Network.separate.func.__code__,)  # it asks for the kind of a network, and trains nothing

    def __init__(self) -> None:
        self.reduction, self.evaluation = set[str](), set[str]()

    def note(self, theta: Tensor) -> None:
        callers = set(_callers())
        if not callers.intersection(self.PROBING):
            (self.evaluation if callers.intersection(self.INFERRING) else self.reduction).add(digest(theta))


def _callers() -> Iterator[CodeType]:
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        yield frame.f_code


@pytest.fixture(scope="module", autouse=True)
def starts() -> Iterator[Starts]:
    """All of this file, so that every reduction is compared with every evaluation."""
    found, draw = Starts(), Network.init

    def init(network: Network, gen: Generator) -> Tensor:
        theta = draw(network, gen)
        found.note(theta)
        return theta

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "init", init)
        yield found


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "knn"])  # knn has no network
def test_every_sampler_starts_from_weights_of_its_own(name: str, starts: Starts) -> None:
    made = attar.reduce(LARGE, "uniform", per_class=2, network=NET, training=SHORT)
    short = {"warmup": 1, "thin": 1} if "thin" in registry.fields(registry.find(name).build) else {}
    sampler = registry.build(name, options(name, KIND) | short)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains this short do not mix
        for seed in SEEDS:
            attar.infer(made, sampler, seed=seed, draws=3)
    assert len(starts.evaluation) >= len(SEEDS)
    assert not starts.reduction & starts.evaluation


@pytest.mark.parametrize("name", [*CONDENSERS, *SCORING])
def test_a_reduction_shares_no_initial_weights_with_an_inference(name: str, starts: Starts) -> None:
    learns = name in CONDENSERS
    pairs = [(seed, STARTS[number % len(STARTS)]) for number, seed in enumerate(SEEDS)] if learns else []
    pairs += [(0, start) for start in STARTS] if learns else [(seed, "") for seed in SEEDS]
    for seed, start in pairs:
        attar.reduce(
            SPLITS[KIND],
            name,
            per_class=2,
            seed=seed,
            network=NET,
            options=options(name, KIND),
            descent={"steps": 2, "init": start} if learns else None,
            training=SHORT,
            experts=trained(KIND) if needs_of(name).experts else None,
        )
    assert not starts.reduction & starts.evaluation


def test_a_study_its_transfer_and_the_questions_share_none_with_the_reductions(starts: Starts, tmp_path: Path) -> None:
    study: dict[str, Any] = {
        "methods": ["dm", "vbpc", "lcmat-s"],
        "per_class": [2],
        "seeds": SEEDS[:3],
        "network": NET,
        "training": SHORT,
        "draws": 2,
        "evaluations": 2,
        "descent": {"dm": {"steps": 3, "init": "herding"}, "vbpc": {"steps": 3, "init": "herding"}},
        "transfer": [NET],
    }
    attar.compare(study, data=LARGE, folder=tmp_path)
    made = attar.Coreset.load(tmp_path / "coresets" / "dm-2-0.safetensors")
    assess(made, LARGE, Questions(distance=True, networks=(NET,), fairness=True), attar.infer(made, draws=1))
    attacked = through("dm", per_class=2, network=NET, training=SHORT, descent={"steps": 2, "init": "herding"})
    membership(attacked, LARGE, targets=24, shadows=2)
    validation_score(LARGE.val, attar.network(NET, LARGE.spec), BUDGET)(made.data)
    assert len(starts.reduction) > 10
    assert len(starts.evaluation) > 10
    assert not starts.reduction & starts.evaluation


def test_applications_and_the_command_line_share_none_with_the_reductions(starts: Starts, tmp_path: Path) -> None:
    for regime in ("memory", "finetune"):
        wanted = continual_spec(methods=("dm", "herding"), regime=regime, descent={"dm": {"steps": 2}})
        attar.continual(wanted, data=continual_split(), folder=tmp_path / regime)
    search = {"methods": ["dm"], "per_class": 2, "depths": (1,), "widths": (4, 8), "norms": "none", "full_steps": 4}
    attar.nas(
        {**search, "network": "convnet-d1w4", "training": SHORT, "descent": {"dm": {"steps": 2}}},
        data=SPLITS["images"],
        folder=tmp_path / "nas",
    )
    file = tmp_path / "c.safetensors"
    for words in (
        ["reduce", "digits", "-m", "dm", "-n", "1", "--steps", "2", "--init", "herding", "--network", "mlp-d1w8"],
        ["evaluate", str(file), "--seeds", "0,1", "--draws", "2", "--train-steps", "5"],
    ):
        with pytest.raises(SystemExit) as end:
            main([*words, "-o", str(file if words[0] == "reduce" else tmp_path / "a.json")])
        assert not end.value.code
    assert not starts.reduction & starts.evaluation


def test_the_classifier_shares_none(starts: Starts) -> None:
    x, y = LARGE.train.x.numpy(), LARGE.train.y.numpy()
    attar.CoresetClassifier("dm", 2, descent={"steps": 3}, network=NET, steps=5).fit(x, y)
    assert not starts.reduction & starts.evaluation


def test_no_seed_of_one_side_is_one_of_the_other() -> None:
    seeds = [*range(50), *(2**k + d for k in (31, 32, 40, 62) for d in (-1, 0, 1)), -1]
    seeds += [seed_of("inference", seed) for seed in seeds]
    low = 2**32 - 1  # all that a generator on the CPU uses
    reducing = {reduction(seed).initial_seed() & low for seed in seeds}
    inferring = {evaluation(seed, purpose=p).initial_seed() & low for seed in seeds for p in ("inference", "other")}
    assert len(inferring) == 2 * len(set(seeds))
    assert not reducing & inferring
    assert torch.equal(torch.rand(3, generator=reduction(7)), torch.rand(3, generator=Generator().manual_seed(7)))
