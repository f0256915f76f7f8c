from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from xml.etree import ElementTree

import pytest
import torch

from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.infer import infer
from attar.nets.train import Training
from attar.report import accuracy_chart, render, write
from attar.report.embed import script
from attar.report.page import SCRIPTS
from attar.report.rows import rows
from attar.study.cell import noted
from attar.study.results import Study
from tests.known import gaussians
from tests.report.reading import EVIL, scripts, section, text
from tests.report.studies import CLASSES, study


def digest(code: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def small(folder: Path) -> Study:
    return study(folder)


@pytest.fixture(scope="module")
def page(small: Study, folder: Path) -> str:
    return render(small, folder)


def test_every_score_is_the_mean_and_its_t_interval_over_seeds(small: Study, page: str) -> None:
    read = text(section(page, "scores"))
    for runs in small.groups().values():
        for name, scale, digits in (
            *((share, 100, 1) for share in ("accuracy", "balanced", "worst")),
            *(("nll", 1, 2), ("ece", 1, 3), ("brier", 1, 2)),
        ):
            values = [scale * getattr(run.test, name) for run in runs]
            assert f"{mean(values):.{digits}f} ± {4.302653 * stdev(values) / sqrt(3):.{digits}f}" in read


def test_the_summary_names_the_best_on_validation_and_its_test_score(small: Study, page: str) -> None:
    groups = {key: runs for key, runs in small.groups().items() if key[0] != "full"}
    best = max(groups, key=lambda key: mean(run.validation.accuracy for run in groups[key]))
    score = 100 * mean(run.test.accuracy for run in groups[best])
    summary = text(page.partition('class="summary"')[2].partition("</p>")[0])
    assert f"{best[0]} has the highest mean accuracy" in summary
    assert f"reach {score:.1f} ±" in summary
    assert "its 3,000 training examples were reduced to 6" in summary
    assert "random subset" in summary
    assert "full data" in summary


def test_choices_look_at_validation_and_never_at_test(small: Study, folder: Path) -> None:
    worst = [
        replace(run, test=replace(run.test, accuracy=0.01 if run.method == "dm" else run.test.accuracy))
        for run in small.runs
    ]
    table = rows(replace(small, runs=worst))
    assert [row.method for row in table if row.best] == ["dm"]


def test_the_three_honest_rows_are_marked(small: Study, page: str) -> None:
    scores = section(page, "scores")
    lines = {text(line).split()[0]: text(line) for line in re.findall(r"<tr.*?</tr>", scores, flags=re.DOTALL)[2:]}
    assert "random subset" in lines["uniform"]
    assert "best selection" in lines[small.best_selection(2) or ""]
    assert lines["full"].startswith("full data")
    assert sum("best on validation" in line for line in lines.values()) == 1


def test_an_order_is_told_only_with_five_seeds_and_an_interval_without_zero(folder: Path) -> None:
    made = study(folder, ("uniform",), seeds=5)
    low = [replace(run, validation=replace(run.validation, accuracy=0.0)) for run in made.runs]
    twins = [replace(run, method="twin", family="condense") for run in made.runs]

    def told(shift: float, seeds: int = 5) -> str:
        moved = [replace(run, test=replace(run.test, accuracy=run.test.accuracy + shift)) for run in twins]
        page = text(render(replace(made, runs=[*low[:seeds], *moved[:seeds]]), folder))
        return page.partition("For comparison:")[2].partition("(twin: ")[2].partition(")")[0] + page

    assert told(0.05).startswith("above, by 5.0 ± 0.0 points")
    assert told(-0.05).startswith("below, by 5.0 ± 0.0 points")
    assert told(0.0).startswith("not distinguishable")
    few = told(0.05, seeds=4)
    assert few.startswith("Attar report")  # no order beside the figures
    assert "too few seeds to say which is above another: it takes five seeds" in few
    assert "too few seeds" not in told(0.05)


def test_differences_to_a_random_subset_stand_beside_the_scores(folder: Path) -> None:
    made = study(folder, seeds=5)
    groups = made.groups()
    gaps = [
        100 * (a.test.accuracy - b.test.accuracy) for a, b in zip(groups["dm", 2], groups["uniform", 2], strict=True)
    ]
    read = text(section(render(made, folder), "scores"))
    assert f"{mean(gaps):+.1f} ± {2.776445 * stdev(gaps) / sqrt(5):.1f} above" in read


def test_the_accuracy_of_the_most_frequent_class_stands_with_the_scores(small: Study, folder: Path) -> None:
    assert "most frequent training class gives 33.3 %" in text(render(small, folder))


def test_one_seed_gives_no_error_and_says_so(folder: Path) -> None:
    read = text(render(study(folder, seeds=1), folder))
    assert " ± " not in read.replace("no ± is given", "")
    assert "Every row is one run" in read


def test_equal_seeds_have_an_error_of_zero_not_an_unknown_one(small: Study, folder: Path) -> None:
    first = small.runs[0]
    same = replace(small, runs=[first, replace(first, seed=1)])
    assert f"{100 * first.test.accuracy:.1f} ± 0.0" in text(render(same, folder))


def test_examples_are_shown_by_class_for_every_method(page: str) -> None:
    examples = section(page, "examples")
    assert examples.count("<img ") == 3 * len(CLASSES)
    assert len(re.findall(r'alt="[^"]*2 of class shoe"', examples)) == 3
    assert examples.count('src="data:image/png;base64,') == 3 * len(CLASSES)


def test_feature_vectors_are_shown_as_heat(tmp_path: Path) -> None:
    pool = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    made = study(tmp_path, pool=pool, labels=torch.arange(60) % 3)
    examples = section(render(made, tmp_path), "examples")
    assert "every column a feature" in text(examples)
    assert examples.count("<img ") == 3 * len(CLASSES)


def test_a_coreset_outside_the_folder_is_not_opened(tmp_path: Path) -> None:
    made = study(tmp_path / "study")
    outside = tmp_path / "outside.safetensors"
    (tmp_path / "study" / "dm-2-0.safetensors").rename(outside)
    runs = [replace(run, coreset=str(outside)) if run.method == "dm" else run for run in made.runs]
    read = text(render(replace(made, runs=runs), tmp_path / "study"))
    assert "outside.safetensors is not in the study’s folder" in read


def test_a_missing_or_broken_coreset_is_a_sentence(tmp_path: Path) -> None:
    made = study(tmp_path)
    (tmp_path / "dm-2-0.safetensors").unlink()
    (tmp_path / "uniform-2-0.safetensors").write_bytes(b"nothing")
    read = text(render(made, tmp_path))
    assert "The file dm-2-0.safetensors is not in the study’s folder" in read
    assert "The file uniform-2-0.safetensors is not a complete coreset" in read


def test_long_classes_and_many_classes_are_cut_and_the_page_says_so(tmp_path: Path) -> None:
    names = [f"class {i}" for i in range(25)]
    pool, labels = torch.rand(300, 3, 4, 4, generator=torch.Generator().manual_seed(0)), torch.arange(300) % 25
    made = study(tmp_path, ("uniform",), (12,), 1, names, pool, labels)
    examples = section(render(made, tmp_path), "examples")
    assert examples.count("<img ") == 20
    assert "The first 20 of 25 classes are shown." in examples
    assert "At most 10 examples per class are shown." in examples


def test_a_size_chart_appears_only_where_there_are_sizes(page: str, tmp_path: Path) -> None:
    sized = render(study(tmp_path, per_class=(1, 4)), tmp_path)
    assert "Test accuracy against size" in sized
    assert "Test accuracy against size" not in page
    assert "3,000 examples reduced to 3 and 12" in text(sized)


def test_the_size_chart_has_a_line_for_each_method_and_one_for_the_full_data(tmp_path: Path) -> None:
    scores = section(render(study(tmp_path, per_class=(1, 4)), tmp_path), "scores")
    (chart,) = [svg for svg in re.findall(r"<svg.*?</svg>", scores, re.DOTALL) if "against size" in svg]
    assert chart.count("<polyline") == 3
    assert chart.count('class="reference"') == 1
    assert ">full data</text>" in chart


def test_new_keys_of_the_study_and_the_machine_appear(small: Study, folder: Path) -> None:
    grown = replace(small, config={"sampler": "sghmc", "deep": {"er": 1}}, machine={"memory": "64 GB"})
    recipe = text(section(render(grown, folder), "recipe"))
    for pair in ("sampler sghmc", "deep.er 1", "memory 64 GB"):
        assert pair in recipe


def test_learning_curves_are_those_of_methods_that_learn(page: str) -> None:
    learning = section(page, "learning")
    assert learning.count("<svg") == 1
    assert learning.count("<polyline") == 3


def test_cost_stands_beside_that_of_the_full_data(page: str) -> None:
    cost = text(section(page, "cost"))
    assert "dm 6 12.5 24.0 400 3.2 6.5 500" in cost
    assert "full data 3,000 – – – 3.2 6.5 500" in cost


def test_the_recipe_the_command_and_the_protocol_are_there(small: Study, page: str) -> None:
    recipe, protocol = text(section(page, "recipe")), text(section(page, "protocol"))
    assert small.command in recipe
    for word in ("training.steps 300", "network convnet", f"torch {torch.__version__}", "threads", "fingerprint"):
        assert word in recipe
    assert "300 validation examples" in protocol
    assert "300 test examples are used once" in protocol
    assert "three coresets" in protocol


def test_a_start_from_experts_is_admitted_wherever_figures_are_read(small: Study, folder: Path, page: str) -> None:
    data = gaussians(4)
    experts = infer(data, draws=2, network="linear", training=Training(steps=1)).theta
    posterior = infer(data, draws=1, network="linear", training=Training(steps=1), start="experts", experts=experts)
    runs = [replace(run, notes=noted(posterior.notes) if run.method == "dm" else {}) for run in small.runs]
    study = replace(small, runs=runs)
    leaky = render(study, folder)
    assert leaky.count("leaks the full data") == 2
    assert 'dm <span class="label">started from full-data experts</span>' in section(leaky, "scores")
    assert leaky.count('<span class="label">') == leaky.count('>dm <span class="label">')  # and no other row
    assert "dm started from full-data experts" in accuracy_chart(study)
    labelled = [line for line in study.csv().splitlines() if line.endswith(",started from full-data experts")]
    assert [line.split(",")[0] for line in labelled] == ["dm"] * 3
    for clean in (page, accuracy_chart(small), small.csv()):
        assert "leaks" not in clean
        assert "started from" not in clean


def test_one_method_has_one_colour(small: Study) -> None:
    table = rows(small)
    assert len({row.colour for row in table}) == len({row.method for row in table})


def test_the_page_is_whole_and_reaches_for_nothing(page: str) -> None:
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", page)
    assert scripts(page) == [script(*SCRIPTS)]
    assert unescape(page).count(f"script-src '{digest(scripts(page)[0])}'") == 1
    assert "url(" not in page
    for drawing in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        assert ElementTree.fromstring(drawing).findtext("{http://www.w3.org/2000/svg}title")
    assert page.count("<h1>") == 1
    assert all("alt=" in image for image in re.findall(r"<img [^>]*>", page))
    assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", page))


def test_text_from_files_and_users_is_escaped(tmp_path: Path) -> None:
    made = study(tmp_path, classes=(EVIL, "b", "c"))
    runs = [replace(run, method=EVIL) if run.method == "dm" else run for run in made.runs]
    marked = {"name": EVIL, "classes": [EVIL, "b", "c"]}
    evil = replace(made, runs=runs, command=EVIL, config={EVIL: EVIL}, data=marked, machine={EVIL: EVIL})
    page = render(evil, tmp_path)
    assert page.count("<script") == 1
    assert scripts(page) == [script(*SCRIPTS)]
    assert text(page).count(EVIL) > 10


def test_a_study_without_runs_is_refused(small: Study, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="no runs"):
        render(replace(small, runs=[]), tmp_path)


def test_a_study_of_the_full_data_alone_still_has_a_page(small: Study, folder: Path) -> None:
    alone = replace(small, runs=[run for run in small.runs if run.method == "full"])
    assert "Only the full data was trained on" in render(alone, folder)


def test_reductions_without_full_data_still_have_a_page(small: Study, folder: Path) -> None:
    alone = replace(small, runs=[run for run in small.runs if run.method != "full"])
    read = text(render(alone, folder))
    assert "it was reduced to 6" in read
    assert "the full data, with the same training budget" not in read


def test_write_makes_the_file_and_a_saved_study_gives_the_same_page(small: Study, folder: Path, page: str) -> None:
    small.save(folder / "study.json")
    path = write(Study.load(folder / "study.json"), folder, folder / "report.html")
    assert path.read_text(encoding="utf-8") == page


def test_the_page_says_that_weighted_examples_count_by_their_weights(tmp_path: Path) -> None:
    made = study(tmp_path, methods=("uniform", "craig"), seeds=1)
    plain = text(section(render(made, tmp_path), "examples"))
    assert "weight" not in plain
    name = next(run.coreset for run in made.runs if run.method == "craig")
    assert name is not None
    coreset = Coreset.load(tmp_path / name)
    heavy = replace(coreset, data=replace(coreset.data, weights=torch.tensor([0.0, 6, 6, 6, 6, 12])))
    heavy.save(tmp_path / name)
    said = "Examples are weighted in training, from 0 to 2 times the mean; 1 of 6 have weight zero; they are worth "
    assert text(section(render(made, tmp_path), "examples")).count(said) == 1
