"""Two protocols: one budget for all, or every method by the rule of its public code, with a label where it matters."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attar.core.errors import AttarError, Diverged
from attar.data import Split
from attar.data.augment import DSA
from attar.nets.train import Training, rate
from attar.report import report
from attar.study import Study, StudySpec, compare
from attar.study.cross import Crossings
from attar.study.prepare import rules_of
from attar.study.protocol import PROTOCOLS, RULES, SELECTION, Evaluation, steps_of_epoch
from tests.known import gaussians, images

PUBLISHED = {"protocol": "published", "baselines": False, "seeds": 0, "per_class": 1}
TINY = {"network": "linear", "training": {"steps": 6}, "evaluations": 2}


@pytest.fixture(scope="module")
def split() -> Split:
    return Split(images(20, seed=1), images(6, seed=2), images(6, seed=3))


def rule(name: str, split: Split, size: int = 10, **changes: Any) -> Evaluation:
    """The evaluation of a method by the protocol published on the network that the protocol has."""
    spec = StudySpec.of({**PUBLISHED, "methods": [name], **changes})
    filled = replace(spec, network=spec.network or PROTOCOLS["published"].network)
    return rules_of(filled, split, [(name, size)])[name, size]


@pytest.mark.parametrize(
    ("name", "epochs", "networks", "augment"),
    [("dc", 300, 20, "none"), ("dsa", 1000, 20, DSA), ("dm", 1000, 20, DSA), ("cafe", 600, 20, "none")],
)
def test_a_rule_has_the_epochs_of_the_public_code(
    name: str, epochs: int, networks: int, augment: str, split: Split
) -> None:
    found = rule(name, split)
    assert found.training == Training(epochs, 256, "sgd", 0.01, 0.9, 5e-4, "step", augment)
    assert (found.evaluations, found.draws, found.best, found.label) == (networks, 1, "none", "")


def test_epochs_become_steps_by_the_size_of_the_coreset(split: Split) -> None:
    assert [steps_of_epoch(size, 256) for size in (1, 256, 257, 512, 513)] == [1, 1, 2, 2, 3]
    assert rule("dm", split, 100).training.steps == 1000 * 2  # three classes of a hundred in batches of 256
    assert rule("dm", split, 100, training={"batch": 100}).training.steps == 1000 * 3
    assert rule("dm", split, 100, training={"steps": 7}).training.steps == 7


def test_augmentation_changes_the_epochs_where_the_public_code_has_it_so(split: Split) -> None:
    assert rule("cafe", split, options={"cafe": {"strategy": DSA}}).training.steps == 1000
    assert rule("bpc-cd", split, options={"bpc-cd": {"strategy": "none"}}).training.steps == 1000


def test_the_learning_rate_falls_to_a_tenth_after_half_of_the_steps() -> None:
    assert [rate(0.01, "step", step, 4) for step in range(4)] == [0.01, 0.01, 0.001, 0.001]


def test_only_rules_with_a_public_choice_let_the_test_set_choose() -> None:
    assert {name for name, found in RULES.items() if found.best == "coreset"} == {"mtt", "bpc-cd"}
    assert not [name for name, found in RULES.items() if found.best == "epoch"]
    assert SELECTION.best == "epoch"
    assert all(found.source for found in RULES.values())


def test_a_chain_is_shorter_for_one_example_per_class(split: Split) -> None:
    one, ten = rule("bpc-fkl", split, 1), rule("bpc-fkl", split, 10)
    assert (one.sampler, one.draws, one.options["warmup"]) == ("sghmc", 10, 50)
    assert (ten.sampler, ten.draws, ten.options["warmup"]) == ("sghmc", 50, 250)


def test_settings_override_the_rule_one_by_one_and_are_named(split: Split) -> None:
    found = rule("dm", split, network="linear", training={"lr": 0.05}, draws=5)  # both are defaults of honest
    assert found.training == replace(rule("dm", split).training, lr=0.05)
    assert found.draws == 5
    assert found.label == "not as published: network, draws, lr"
    assert rule("dm", split, training={"lr": 0.01}, draws=1).label == ""
    assert rule("dc", split, descent={"dc": {"init": "real"}}).label == "not as published: init"
    assert rule("mtt", split, sampler="sghmc").best == "none"


def test_an_evaluation_comes_back_from_json(split: Split) -> None:
    found = rule("bpc-w", split)
    assert Evaluation.of(found.plain()) == found._replace(options=dict(found.options))


def test_a_learnt_learning_rate_is_used_unless_one_is_given(split: Split) -> None:
    assert rule("mtt", split).trained(0.3).lr == 0.3
    assert rule("mtt", split).trained(None).lr == 0.01
    assert rule("mtt", split, training={"lr": 0.2}).trained(0.3).lr == 0.2
    assert rule("bpc-w", split).trained(0.0).lr == 0.01  # chains do not use it
    with pytest.raises(Diverged, match="scalar_lr"):
        rule("mtt", split).trained(0.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"protocol": "publishd"}, "Unknown protocol 'publishd': did you mean 'published'?"),
        ({"protocol": "published", "given": ["drws"]}, "Unknown setting 'drws': did you mean 'draws'?"),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(AttarError) as caught:
        StudySpec.of(fields)
    assert str(caught.value) == f"the study: {said}"


@pytest.mark.parametrize(
    ("name", "why"),
    [("vbpc", "made for last-layer-vi"), ("kip", "kernel regression"), ("average-real", "not on record")],
)
def test_a_method_without_a_rule_is_refused_before_anything_runs(
    name: str, why: str, split: Split, tmp_path: Path
) -> None:
    with pytest.raises(
        AttarError, match=f"{name} cannot follow the protocol published, because .*{why}.*: leave it out"
    ):
        compare({**PUBLISHED, "methods": [name]}, data=split, folder=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_published_protocol_is_for_images(tmp_path: Path) -> None:
    vectors = Split(gaussians(8, seed=1), gaussians(4, seed=2), gaussians(4, seed=3))
    with pytest.raises(AttarError, match="is for images"):
        compare({**PUBLISHED, "methods": ["dm"]}, data=vectors, folder=tmp_path)


@pytest.fixture(scope="module")
def study(split: Split, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("published")
    values = {**PUBLISHED, **TINY, "methods": ["uniform", "dc"], "descent": {"dc": {"steps": 2}}}
    return compare(values, data=split, folder=folder)


def test_every_figure_of_a_published_study_says_its_protocol_and_its_label(study: Study, tmp_path: Path) -> None:
    assert study.config["protocol"] == study.protocol == "published"
    lines = list(csv.DictReader(io.StringIO(study.csv())))
    assert {line["protocol"] for line in lines} == {"published"}
    label = "best of 6 epochs by test accuracy, as published; not as published: network, evaluations, steps"
    assert {line["label"] for line in lines if line["method"] == "uniform"} == {label}
    assert {line["label"] for line in lines if line["method"] == "dc"} == {
        "not as published: network, evaluations, steps"
    }
    assert "protocol published" in repr(study)
    assert f"{label}: uniform (1)" in repr(study)
    page = report(study, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Protocol published" in page
    assert label in page
    assert "the test set chose the best of several" in page
    assert "test examples are used once" not in page
    assert Study.load(Path(str(study.folder)) / "study.json").runs == study.runs


def test_the_test_set_chooses_nothing_under_the_honest_protocol(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the test set was used for a choice")

    for name in ("best_epoch", "the_best", "tried"):
        monkeypatch.setattr(f"attar.study.cell.{name}", refuse)
    values = {**PUBLISHED, **TINY, "methods": ["uniform", "dc"], "descent": {"dc": {"steps": 2}}}
    honest = compare({**values, "protocol": "honest"}, data=split, folder=tmp_path / "honest")
    assert not [run for run in honest.runs if run.notes.get("label")]
    with pytest.raises(AssertionError, match="used for a choice"):
        compare(values, data=split, folder=tmp_path / "published")


def test_a_folder_of_one_protocol_is_not_extended_by_the_other(study: Study, split: Split) -> None:
    values = {**PUBLISHED, **TINY, "methods": ["uniform"], "protocol": "honest"}
    with pytest.raises(AttarError, match="other settings"):
        compare(values, data=split, folder=Path(str(study.folder)))


def test_other_networks_are_trained_by_the_same_rule(split: Split, tmp_path: Path) -> None:
    values = {**PUBLISHED, **TINY, "methods": ["dc"], "descent": {"dc": {"steps": 2}}, "transfer": ["linear"]}
    study = compare(values, data=split, folder=tmp_path)
    crossed = Crossings.load(tmp_path)
    assert crossed is not None
    (cell,) = crossed.cells
    assert cell.found.accuracy == pytest.approx(sum(run.test.accuracy for run in study.runs) / 2)


@pytest.mark.filterwarnings("ignore::attar.infer.diagnose.MixingWarning")
def test_a_pseudo_coreset_is_evaluated_by_the_chains_of_its_rule(split: Split, tmp_path: Path) -> None:
    options = {"bpc-rkl": {"batch": 4, "net_steps": 1}}
    values = {**PUBLISHED, "methods": ["bpc-rkl"], "network": "linear", "evaluations": 1, "options": options}
    (run,) = compare({**values, "descent": {"bpc-rkl": {"steps": 1}}}, data=split, folder=tmp_path).runs
    assert run.notes["sampler"] == "sghmc"
    assert run.notes["evaluation"]["options"]["warmup"] == 50
    assert run.notes["label"] == "not as published: network, evaluations"
