"""The other commands, one after the other as a user would."""

from dataclasses import replace
from pathlib import Path

import pytest

from attar import Coreset
from attar.assess.questions import Assessment
from attar.cli.judge import verdict
from attar.infer import infer
from attar.study import Study
from tests.cli.conftest import Attar
from tests.report.studies import study as made_up

FAST = ("--train-steps", "20", "--steps", "2", "--draws", "1", "--seeds", "0,1", "-n", "1")


@pytest.fixture(scope="module")
def coreset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import attar
    from attar.nets.train import Training

    path = tmp_path_factory.mktemp("coreset") / "u.safetensors"
    attar.reduce(attar.load("digits"), "uniform", per_class=2, training=Training(steps=30)).save(path)
    return path


def test_compare_writes_table_plot_and_report_and_runs_only_what_is_missing(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "dm", *FAST, "-o", tmp_path)
    done = attar(*words)
    assert done.code == 0
    for file in ("study.json", "table.csv", "accuracy.svg", "report.html"):
        assert (tmp_path / file).stat().st_size > 100
    study = Study.load(tmp_path / "study.json")
    assert [(method, size) for method, size in study.groups()] == [
        ("uniform", 1), ("herding", 1), ("dm", 1), ("full", None)
    ]  # fmt: skip
    assert study.command.startswith("attar compare digits")
    (tmp_path / "runs" / "dm-1-1.json").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert attar(*words).code == 0
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"dm-1-1.json"}
    scores = [run.test.accuracy for run in Study.load(tmp_path / "study.json").runs]
    assert scores == [run.test.accuracy for run in study.runs]  # the run that was done again gave the same
    other = attar("compare", "digits", "-m", "dm", *FAST, "--train-lr", "0.5", "-o", tmp_path)
    assert other.code == 2
    assert "other settings" in other.err


def test_compare_with_other_seeds_grows_the_study_and_says_so(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "uniform", "--no-baselines", "--train-steps", "2", "--draws", "1", "-n", "1")
    assert "earlier calls" not in attar(*words, "--seeds", "0,1", "-o", tmp_path).out
    done = attar(*words, "--seeds", "2", "-o", tmp_path)
    assert f"Runs of earlier calls in {tmp_path} are in it too: 2 (seeds 0, 1)." in done.out
    study = Study.load(tmp_path / "study.json")
    assert [run.seed for run in study.runs] == [0, 1, 2]
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 4
    assert study.command.count(" && attar compare") == 1


def test_compare_transfers_every_coreset_to_other_networks(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "uniform", "--no-baselines", "--train-steps", "2", "--draws", "1", "-n", "1")
    unknown = attar(*words, "--transfer", "mlp,resnet11", "-o", tmp_path)
    assert unknown.code == 2
    assert not (tmp_path / "study.json").exists()  # before anything ran
    done = attar(*words, "--seeds", "0,1", "--transfer", "mlp,linear", "-o", tmp_path)
    assert "test accuracy in % of other networks" in done.out
    assert len((tmp_path / "transfer.csv").read_text().splitlines()) == 3


def test_the_demo_s_winner_is_chosen_by_validation_and_told_by_test(tmp_path: Path) -> None:
    made = made_up(tmp_path, ["uniform", "dm", "bpc-cd", "full"], seeds=2)
    told = {"uniform": (0.4, 0.3), "dm": (0.5, 0.91), "bpc-cd": (0.8, 0.62), "full": (0.9, 0.97)}
    runs = [
        replace(
            run,
            method=run.method.replace("bpc-cd", "dc"),
            validation=replace(run.validation, accuracy=told[run.method][0]),
            test=replace(run.test, accuracy=told[run.method][1]),
        )
        for run in made.runs
    ]
    said = verdict(replace(made, runs=runs))
    assert said.startswith("Ten learnt digits (dc) tell 62% of unseen digits right, ten random ones 30%")
    assert said.endswith("all 3,000 training digits 97%.")


def test_report_from_a_study_and_from_a_coreset(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = attar("report", coreset, "-o", page, "--evaluations", "2", "--draws", "1")
    assert done.code == 0
    assert str(page.resolve()) in done.out
    assert "<svg" in page.read_text()
    (folder,) = (tmp_path / "r-files").iterdir()  # one for each coreset that was reported
    study = Study.load(folder / "study.json")
    assert [run.method for run in study.runs] == ["uniform", "uniform", "herding", "herding", "full", "full"]
    assert attar("report", folder, "-o", tmp_path / "again.html").code == 0
    assert attar("report", tmp_path / "nothing.json").code == 2


def test_evaluate_answers_every_question_and_the_report_shows_them(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    asked = ("--calibrate", "--distance", "--corruption", "--attack", "pgd", "--networks", "mlp,lenet", "--fairness")
    few = ("--seeds", "0", "--draws", "1", "--limit", "20", "--ood", "digits", "-o", answers)
    done = attar("evaluate", coreset, "digits", *asked, *few)
    assert done.code == 0
    for word in ("at temperature", "to the full data", "gaussian", "pgd", "mlp", "IOR", "AUROC"):
        assert word in done.out
    found = Assessment.load(answers)
    assert len(found.corruption) == 90
    assert found.attacks[0].robust <= found.attacks[0].clean
    assert found.detection["digits"] == pytest.approx(0.5)  # a set cannot be told from itself
    assert [row.network for row in found.transfer if row.accuracy is None] == ["lenet"]  # 8×8 is too small for it
    page = tmp_path / "r.html"
    assert attar("report", coreset, "-a", answers, "-o", page, "--evaluations", "1", "--draws", "1").code == 0
    assert "pgd" in page.read_text()


def test_what_a_coreset_file_says_never_names_a_place_outside(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    loaded = Coreset.load(coreset)
    evil = tmp_path / "a" / "b" / "evil.safetensors"
    replace(loaded, recipe=replace(loaded.recipe, method="../../../evil")).save(evil)
    done = attar("report", evil, "--data", "digits", "-o", tmp_path / "a" / "b" / "r.html")
    assert done.code == 2
    assert "Unknown method" in done.err
    assert sorted(path.name for path in tmp_path.rglob("*evil*")) == ["evil.safetensors"]


def test_an_experts_label_goes_from_inference_to_the_page(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    loaded, files = Coreset.load(coreset), [tmp_path / name for name in ("e.safetensors", "a.json", "r.html")]
    infer(loaded, draws=1, start="experts", experts=infer(loaded, draws=2).theta).save(files[0])
    attar("evaluate", files[0], "digits", "-o", files[1])
    attar("report", coreset, "-a", files[1], "-o", files[2], "--evaluations", "1", "--draws", "1")
    page = files[2].read_text()
    assert '<span class="label">started from full-data experts</span>' in page
    assert page.count("leaks what a coreset stands for") == 1  # of that posterior, and not of the study beside it


def test_a_wrong_setting_does_not_lock_the_folder(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "uniform", *FAST, "--no-baselines", "-o", tmp_path / "s")
    assert attar(*words, "--network", "nonsense").code == 2
    assert attar(*words).code == 0
