"""`attar compare`: flags and recipes build one study, which grows and is never mixed."""

import json
import os
import signal
from pathlib import Path

from attar.core.lock import owned
from attar.study import Study, StudySpec
from tests.cli.conftest import Attar
from tests.known import HANG, python, wait_until

FAST = ("--train-steps", "20", "--steps", "2", "--draws", "1", "--seeds", "0,1", "-n", "1", "--no-converged")
TINY = ("--no-baselines", "--train-steps", "2", "--draws", "1", "-n", "1")


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
    assert f"The results include 2 earlier runs in {tmp_path} (seeds 0, 1)." in done.out
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


def test_a_wrong_setting_does_not_lock_the_folder(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "uniform", *FAST, "--no-baselines", "-o", tmp_path / "s")
    assert attar(*words, "--network", "nonsense").code == 2
    assert attar(*words).code == 0


def test_a_recipe_needs_no_method_flag_and_flags_take_precedence(attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "study.toml"
    recipe.write_text(
        'data = "digits"\nmethods = ["mine", "uniform"]\nper_class = [2]\nseeds = [4]\nnetwork = "linear"\ndraws = 2\n'
        'baselines = false\ntraining = { steps = 3, lr = 0.1 }\nsampler = "laplace"\n'
        'sampler_options = { precision = 3.0 }\n[variants]\nmine = "dm"\n[options]\nmine = { batch = 4 }\n'
        "[descent]\nmine = { steps = 2, lr = 0.5 }\n"
    )
    assert attar("compare", "--recipe", recipe, "-o", tmp_path / "s").code == 0
    study = Study.load(tmp_path / "s" / "study.json")
    assert {(run.method, run.per_class, run.seed) for run in study.runs} == {("mine", 2, 4), ("uniform", 2, 4)}
    spec = StudySpec.read(recipe).plain()
    assert {name: study.config[name] for name in spec if name in study.config} == {
        name: spec[name] for name in spec if name in study.config
    }
    flags = ("-n", "1", "--seeds", "0,1", "--draws", "1", "--steps", "1", "--train-steps", "1", "--precision", "5")
    words = ("compare", "--recipe", recipe, *flags, "--sampler", "laplace", "--val", "0.3", "--scaling", "none")
    assert attar(*words, "--methods", "mine", "-o", tmp_path / "t").code == 0
    other = Study.load(tmp_path / "t" / "study.json")
    assert {(run.method, run.per_class, run.seed) for run in other.runs} == {("mine", 1, 0), ("mine", 1, 1)}
    assert other.config["training"]["steps"] == 1
    assert other.config["training"]["lr"] == 0.1
    assert other.config["sampler_options"]["precision"] == 5
    assert other.config["descent"] == {"mine": {"steps": 1, "lr": 0.5}}
    assert other.config["options"] == {"mine": {"batch": 4}}
    clean = {"imbalance": 1.0, "flip": 0.0}
    assert other.config["loading"] == {"target": None, "scaling": "none", "val": 0.3, "test": 0.2, "seed": 0, **clean}


def test_a_mistake_in_a_recipe_is_one_sentence(attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "study.toml"
    recipe.write_text('data = "digits"\nmethod = "dm"\n')
    done = attar("compare", "--recipe", recipe, "-o", tmp_path / "s")
    assert done.code == 2
    assert "did you mean 'methods'?" in done.err
    assert not (tmp_path / "s").exists()
    assert "Give the data to compare on" in attar("compare", "-m", "dm").err
    assert "such as 1,10" in attar("compare", "digits", "-n", "one").err
    assert "either as --per-class or as --fraction" in attar("compare", "digits", "-n", "1", "--fraction", "0.1").err


def test_sizes_are_shares_of_the_training_data(attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "study.toml"
    recipe.write_text('data = "digits"\nmethods = ["uniform"]\nper_class = [3]\nbaselines = false\n')
    words = ("compare", "--recipe", recipe, "--network", "linear", "--train-steps", "1", "--seeds", "0", "--draws", "1")
    assert attar(*words, "--fraction", "0.01,0.02", "-o", tmp_path / "s").code == 0
    study = Study.load(tmp_path / "s" / "study.json")
    train = study.data["train"]
    assert sorted(run.per_class for run in study.runs if run.per_class) == [
        round(0.01 * train / 10),
        round(0.02 * train / 10),
    ]
    again = attar(*words, "--per-class", "1", "-o", tmp_path / "s")  # the same folder: nothing to run
    assert again.code == 0
    assert "The results include 1 earlier runs" in again.out


def test_a_separate_test_file_is_tested_on(attar: Attar, tmp_path: Path) -> None:
    rows = [f"{k % 9},{k % 7},{'xy'[k % 2]}\n" for k in range(60)]
    (tmp_path / "a.csv").write_text("a,b,kind\n" + "".join(rows))
    (tmp_path / "b.csv").write_text("a,b,kind\n" + "".join(rows[:14]))
    words = ("--target", "kind", "--test", tmp_path / "b.csv", "-m", "uniform", "--seeds", "0", *TINY)
    assert attar("compare", tmp_path / "a.csv", *words, "-o", tmp_path / "s").code == 0
    data = Study.load(tmp_path / "s" / "study.json").data
    assert (data["train"], data["val"], data["test"]) == (54, 6, 14)
    assert str(tmp_path) not in json.dumps(Study.load(tmp_path / "s" / "study.json").config)
    page = (tmp_path / "s" / "report.html").read_text()
    assert page.count(str(tmp_path)) == page.count(str(tmp_path / "a.csv")) + page.count(str(tmp_path / "b.csv")) + 1


def test_without_a_terminal_every_finished_run_is_a_line(attar: Attar, tmp_path: Path) -> None:
    done = attar("compare", "digits", "-m", "uniform,dm", "--seeds", "0", "--steps", "2", *TINY, "-o", tmp_path)
    lines = [line for line in done.err.splitlines() if " on validation" in line]
    assert [line.rpartition(": ")[0] for line in lines] == ["runs: 1 of 2, uniform-1-0", "runs: 2 of 2, dm-1-0"]
    assert "steps: 2 of 2 steps, loss " in done.err
    again = attar("compare", "digits", "-m", "uniform,dm", "--seeds", "0", "--steps", "2", *TINY, "-o", tmp_path)
    assert [line[:20] for line in again.err.splitlines() if " on validation" in line] == [line[:20] for line in lines]


def test_a_device_that_is_not_there_is_refused(attar: Attar, tmp_path: Path) -> None:
    for words in (("compare", "digits"), ("demo",)):
        done = attar(*words, "--device", "cuda:9", "-o", tmp_path / "s")
        assert done.code == 2
        assert "use --device cpu" in done.err
    assert attar("compare", "digits", "-m", "uniform", "--device", "cpu:0", *TINY, "-o", tmp_path / "s").code == 0


LONG = """
import sys
from attar.cli import main
if __name__ == "__main__":
    sys.argv[1:] = ["compare", "digits", "-m", "dm", "-n", "1", "--seeds", "0,1", "--steps", "100000", "--no-baselines",
                    "--checkpoint-every", "9999", "--workers", "2", "--output", sys.argv[1]]
    main()
"""


def test_a_signal_to_a_comparison_lets_its_workers_save_and_leaves_none_behind(tmp_path: Path) -> None:
    process = python(LONG, tmp_path)
    wait_until(lambda: process.poll() is not None or len(list(tmp_path.glob("logs/*.jsonl"))) == 2)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=HANG)  # the pipes stay open as long as any worker has them
    assert process.returncode == 128 + signal.SIGTERM, error
    assert "To go on, run: attar compare digits -m dm" in error
    assert sorted(path.name for path in tmp_path.glob("checkpoints/*")) == ["dm-1-0.safetensors", "dm-1-1.safetensors"]


def test_a_folder_in_use_is_refused_and_any_name_of_a_folder_will_do(attar: Attar, tmp_path: Path) -> None:
    words = ("compare", "digits", "-m", "uniform", "--seeds", "0", *TINY, "-o")
    with owned(tmp_path):
        done = attar(*words, tmp_path)
    assert done.code == 2
    assert f"{tmp_path} is in use by process {os.getpid()}" in done.err
    strange = tmp_path / "caf\udce9 it's"  # bytes that are not UTF-8
    done = attar(*words, strange)
    assert done.code == 0, done.err
    assert "$'" in Study.load(strange / "study.json").command
    (tmp_path / "file").touch()
    assert "is a file: give the name of a folder" in attar(*words, tmp_path / "file").err
