import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch

from attar.assess import Scores
from attar.assess.metrics import mean_and_error, score
from attar.assess.statistics import t_quantile
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.report.rows import rows
from attar.report.words import protocol
from attar.study import Run, Study
from tests.known import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def scores(right: int) -> Scores:
    """Sure predictions of ten examples, so many of them right."""
    return score(torch.eye(2)[[1] * right + [0] * (10 - right)], torch.ones(10).long())


def run(method: str, family: str, seed: int, validation: int = 5, test: int = 5, per_class: int | None = 1) -> Run:
    costs = Cost(1, 2, 3), Cost(4, 5, 6)
    return Run(method, family, per_class, seed, 10, scores(validation), scores(test), *costs, [(1, 0.5), (2, 0.25)])


def study(*runs: Run) -> Study:
    return Study(
        "attar compare", {"draws": 3, "nested": {"a": [1, None]}}, {"name": "d", "classes": ["a", "b"]}, [*runs]
    )


MANY = study(
    run("uniform", "select", 0, validation=4),
    run("uniform", "select", 1, validation=6),
    run("herding", "select", 0, validation=6, test=1),
    run("herding", "select", 1, validation=7, test=1),
    run("dm", "condense", 0, validation=9),
    run("full", "full", 0, validation=10, per_class=None),
)


def test_a_study_comes_back_from_its_file(tmp_path: Path) -> None:
    MANY.save(tmp_path / "study.json")
    assert Study.load(tmp_path / "study.json") == MANY


def test_a_study_knows_the_folder_it_was_read_from_whatever_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    replace(MANY, folder=Path("elsewhere")).save(path)
    assert "elsewhere" not in path.read_text()
    assert Study.load(path).folder == tmp_path
    path.write_text(json.dumps({**json.loads(path.read_text()), "folder": "/etc"}))
    assert Study.load(path).folder == tmp_path


def test_a_study_shows_means_and_intervals_by_method_and_size_on_a_screen() -> None:
    lines = repr(MANY).splitlines()
    assert lines[0].startswith("Study of d (")
    assert lines[1].split() == ["method", "n", "accuracy", "balanced", "worst", "NLL", "ECE", "Brier"]
    assert [line.split()[0] for line in lines[2:6]] == ["uniform", "herding", "dm", "full"]
    assert "50.0±0.0" in lines[2]
    assert "±" not in lines[4]  # one seed has no interval
    assert lines[5].split()[1] == "all"
    assert lines[6] == "mean over seeds (1 to 2); ± is half the width of the 95 % t-interval"
    assert lines[8] == "always answering the most frequent training class: 100.0 %"
    assert max(map(len, lines)) <= 80
    spread = study(run("dm", "condense", 0, test=4), run("dm", "condense", 1, test=6))
    assert f"50.0±{t_quantile(1) * 10:.1f}" in repr(spread)
    many = study(*(run(f"method-{k}", "select", 0) for k in range(90)))
    assert len(repr(many).splitlines()) <= 45
    assert "… and 51 more rows: see .groups() or .csv()" in repr(many).splitlines()


def test_the_majority_class_is_that_of_the_training_set_and_in_older_files_that_of_the_validation_set() -> None:
    one = run("dm", "condense", 0)
    skewed = replace(one.test, confusion=[[3, 0], [1, 6]])
    made = study(replace(one, test=skewed))
    assert made.majority == 0.7  # validation has class 1 alone
    assert replace(made, data={**made.data, "majority": 0}).majority == 0.3
    line = made.csv().splitlines()
    assert dict(zip(line[0].split(","), line[1].split(","), strict=True))["majority"] == "0.7"


def test_temperature_and_rhat_of_chains_stand_beside_their_scores() -> None:
    def walked(seed: int, **notes: float) -> Run:
        return replace(run("dm", "condense", seed), notes={"temperature": 0.001, "sampler": "sghmc", **notes})

    made = study(walked(0, rhat=1.02), walked(1, rhat=1.3), run("uniform", "select", 0))
    assert repr(made).splitlines()[-1] == "dm 1: tempered posterior, T = 0.001, R-hat 1.30"  # the worst of the row
    lines = [line.split(",") for line in made.csv().splitlines()]
    table = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    assert [(row["temperature"], row["rhat"]) for row in table] == [("0.001", "1.02"), ("0.001", "1.3"), ("", "")]
    assert "Chains: dm 1: tempered posterior, T = 0.001, R-hat 1.30." in protocol(made, rows(made))
    unjudged = study(walked(0), walked(1, rhat=1.0))
    assert repr(unjudged).splitlines()[-1].endswith("R-hat not judged")


COMMITTED = sorted(path.with_name("study.json") for path in RESULTS.glob("*/table.csv"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_every_committed_study_can_be_read(path: Path) -> None:
    made = Study.load(path)
    assert len(made.csv().splitlines()) == len(path.with_name("table.csv").read_text().splitlines())
    assert len(repr(made).splitlines()) > 3


def test_the_studies_of_the_documentation_are_committed() -> None:
    names = {"digits", "pseudo_coresets", "temperature", "condensers", "table5", "lcmatc_rho"}
    assert {path.parent.name for path in COMMITTED} == names


def test_a_study_says_what_it_ran_on() -> None:
    assert MANY.versions["torch"] == torch.__version__
    assert MANY.versions["attar"]
    assert MANY.machine["threads"] == str(torch.get_num_threads())


def test_runs_of_one_method_and_size_form_a_group_over_seeds() -> None:
    groups = MANY.groups()
    assert {key: [r.seed for r in runs] for key, runs in groups.items()} == {
        ("uniform", 1): [0, 1],
        ("herding", 1): [0, 1],
        ("dm", 1): [0],
        ("full", None): [0],
    }


def test_the_best_selection_is_chosen_on_validation_among_selections_alone() -> None:
    assert MANY.best_selection(1) == "herding"  # though it is the worst on test
    assert MANY.best_selection(2) is None


def test_mean_and_standard_error() -> None:
    assert mean_and_error([1, 2, 3, 4]) == pytest.approx((2.5, sqrt(5 / 3) / 2))
    assert mean_and_error([0.5]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "attar-study-9"),
        (("surprise",), 1),
        (("runs",), {}),
        (("runs", 0, "seed"), "zero"),
        (("runs", 0, "test", "accuracy"), None),
        (("runs", 0, "surprise"), 1),
    ],
)
def test_a_file_that_is_no_study_is_refused(place: tuple[str | int, ...], value: object, tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    MANY.save(path)
    content: Any = json.loads(path.read_text())
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(AttarError, match=rf"is not a study \({'.'.join(map(str, place))}.*: make it again") as caught:
        Study.load(path)
    assert "\n" not in str(caught.value)


def test_a_number_that_is_not_finite_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    bad = study(run("dm", "condense", 0))
    bad.runs[0].curve.append((3, float("nan")))
    with pytest.raises(AttarError, match="finite"):
        bad.save(path)
    assert not path.exists()
    MANY.save(path)
    path.write_text(path.read_text().replace("0.25", "NaN"))
    with pytest.raises(AttarError, match="is not JSON"):
        Study.load(path)


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}"])
def test_other_json_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(AttarError, match="is not a study"):
        Study.load(tmp_path / "study.json")
