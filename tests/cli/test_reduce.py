"""`attar reduce`: the flags, the recipe file, and what bad input says."""

import json
import os
import pty
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import attar as library
from attar import Coreset
from attar.condense.driver import Condensation
from attar.core import registry
from attar.core.errors import AttarError
from attar.core.lock import claimed
from attar.experts.manifest import Manifest
from attar.select.run import Decided
from tests.apart import Process
from tests.cli.conftest import MAIN, Attar, commands_with
from tests.known import HANG, python, wait_until

QUICK = ("--steps", "3", "--batch", "8", "--validate", "0")


def test_the_command_of_the_readme_works_as_typed(attar: Attar, tmp_path: Path) -> None:
    done = attar("reduce", "digits", "--method", "dc", "--per-class", "1", "-o", tmp_path / "d.safetensors", *QUICK)
    coreset = Coreset.load(tmp_path / "d.safetensors")
    assert done.code == 0
    assert "1,295 examples of digits → 10 by dc" in done.out
    assert coreset.data.hard.tolist() == list(range(10))
    assert coreset.recipe.options["batch"] == 8
    assert coreset.recipe.descent["steps"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.safetensors", "d.safetensors.cost"]  # no checkpoint


def test_a_recipe_file_does_the_same_as_flags_and_a_flag_beats_it(attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "dm.toml"
    recipe.write_text(
        'data = "digits"\nmethod = "dm"\nper_class = 2\nseed = 4\n[options]\nbatch = 8\n[descent]\nsteps = 3\n'
        "[training]\nlr = 0.2\n"
    )
    attar("reduce", "--recipe", recipe, "--validate", "0", "-o", tmp_path / "a.safetensors")
    flags = ("--per-class", "2", "--seed", "4", "--train-lr", "0.2", "-o", tmp_path / "b.safetensors")
    attar("reduce", "digits", "--method", "dm", *QUICK, *flags)
    attar("reduce", "-r", recipe, "--seed", "5", "--validate", "0", "-o", tmp_path / "c.safetensors")
    a, b, c = (Coreset.load(tmp_path / f"{name}.safetensors") for name in "abc")
    assert torch.equal(a.data.x, b.data.x)
    assert a.recipe.training.lr == b.recipe.training.lr == 0.2
    assert not torch.equal(a.data.x, c.data.x)
    assert c.recipe.seed == 5


def test_dry_run_prints_the_resolved_recipe_with_memory_and_writes_nothing(
    attar: Attar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = attar("reduce", "digits", "--method", "dc", "--dry-run")
    assert done.code == 0
    assert "'method': 'dc'" in done.out
    assert "'net_lr': 0.01" in done.out
    assert "estimated memory" in done.out
    assert re.search(r"estimated time: about (a second|\d+ (seconds|minutes|hours|days))", done.out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("method", "says"), [("uniform", "(cost: none)"), ("herding", "one forward pass of the data")])
def test_dry_run_of_a_selection_says_what_it_costs(method: str, says: str, attar: Attar) -> None:
    done = attar("reduce", "digits", "-m", method, "--network", "mlp-d1w8", "--dry-run")
    assert says in done.out.splitlines()[-1]


def test_an_acceleration_comes_from_the_flag_or_the_recipe(attar: Attar, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('data = "digits"\nmethod = "uniform"\naccelerate = "auto"\n')
    assert "'accelerate': 'auto'" in attar("reduce", "-r", tmp_path / "r.toml", "--dry-run").out
    done = attar("reduce", "-r", tmp_path / "r.toml", "--accelerate", "none", "--dry-run")
    assert "'accelerate': 'none'" in done.out
    assert attar("reduce", "digits", "-m", "uniform", "--accelerate", "float16").code == 2


def test_a_fraction_is_a_share_of_the_training_set(attar: Attar, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    assert attar("reduce", "digits", "-m", "uniform", "--fraction", "0.05", "-o", path).code == 0
    assert Coreset.load(path).recipe.per_class == 6  # of 1,295 in ten classes
    (tmp_path / "r.toml").write_text('data = "digits"\nmethod = "uniform"\nfraction = 0.05\n')
    attar("reduce", "-r", tmp_path / "r.toml", "-o", path)
    assert Coreset.load(path).recipe.per_class == 6
    attar("reduce", "-r", tmp_path / "r.toml", "-n", "2", "-o", path)
    assert Coreset.load(path).recipe.per_class == 2


def test_a_separate_test_file_and_a_validation_share_decide_what_is_reduced(attar: Attar, table: Path) -> None:
    path = table.with_suffix(".safetensors")
    words = ("reduce", table, "-m", "uniform", "--test", table, "-o", path)
    assert "36 examples of t → 2" in attar(*words).out
    assert "20 examples of t → 2" in attar(*words, "--val", "0.5").out
    recipe = table.with_suffix(".toml")
    recipe.write_text(f'data = "{table}"\nmethod = "uniform"\ntest = "{table}"\nval = 0.5\ntarget = "label"\n')
    assert "20 examples of t → 2" in attar("reduce", "-r", recipe, "-o", path).out


def test_help_of_a_method_shows_its_options_with_range_and_default(attar: Attar) -> None:
    text = attar("reduce", "--method", "dc", "--help").out
    assert "--net-lr" in text
    assert "--net-lr FLOAT" in text
    assert "[default: 0.01; > 0]" in text
    assert "--net-lr" not in attar("reduce", "--method", "uniform", "--help").out


@pytest.mark.parametrize("name", registry.methods())
def test_no_option_of_a_method_hides_another_flag(name: str) -> None:
    for command in commands_with(name):
        flags = [flag for param in command.params for flag in param.opts]
        assert len(flags) == len(set(flags)), command.name


def test_validation_scores_reach_the_log(attar: Attar, tmp_path: Path) -> None:
    words = ("--steps", "4", "--batch", "8", "--validate", "2", "--log", tmp_path / "log.jsonl")
    attar("reduce", "digits", "-m", "dm", *words, "-o", tmp_path / "d.safetensors")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert "validation" not in lines[0]
    assert 0 < lines[3]["validation"] <= 1


def test_the_default_output_names_data_method_and_size(
    attar: Attar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attar("reduce", "digits", "-m", "uniform", "-n", "3")
    assert len(Coreset.load("digits-uniform-3.safetensors")) == 30


BAD = {
    "unknown method": (("digits", "-m", "dcc"), "did you mean 'dc'?"),
    "unknown data": (("digitz", "-m", "dc"), "did you mean 'digits'?"),
    "missing file": (("no/such/file.npz", "-m", "dc"), "no/such/file.npz"),
    "unknown network": (("digits", "-m", "dc", "--network", "convnt"), "convnet"),
    "unknown scaling": (("digits", "-m", "dc", "--scaling", "standart"), "did you mean 'standard'?"),
    "out of range": (("digits", "-m", "dc", "--batch", "0"), "greater than or equal to 1"),
    "not a number": (("digits", "-m", "dc", "--lr", "fast"), "lr"),
    "too many per class": (("digits", "-m", "uniform", "-n", "5000"), "per class were asked for"),
    "none per class": (("digits", "-m", "uniform", "-n", "0"), "at least 1"),
    "a share above one": (("digits", "-m", "uniform", "--fraction", "2"), "between 0 and 1, got 2"),
    "two sizes": (("digits", "-m", "uniform", "--fraction", "0.1", "-n", "1"), "either as per_class or as fraction"),
    "a huge seed": (("digits", "-m", "uniform", "--seed", "9" * 20), "from 0 to 2^62"),
    "nothing like it": (("iris", "-m", "uniform"), "give a name (cifar10, "),
    "a test set twice": (("mnist.npz", "-m", "uniform", "--test", "t.npz"), "check the path"),
    "an empty device": (("digits", "-m", "uniform", "--device", "meta"), "--device cpu"),
    "no data": ((), "such as `attar reduce digits --per-class 10`"),
    "a base without a method": (("digits", "--base", "digits"), "name it with --method"),
    "no such device": (("digits", "-m", "uniform", "--device", "tpu9"), "--device cpu"),
    "another method's option": (("digits", "-m", "uniform", "--net-lr", "1"), "--net-lr"),
    "kinds of columns that are none": (("digits", "-m", "uniform", "--columns", "age=numeric"), "age"),
    "missing recipe": (("digits", "-r", "none.toml"), "none.toml"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_exit_code_2(
    words: tuple[str, ...], says: str, attar: Attar, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.safetensors"
    kept.write_bytes(b"here before")
    done = attar("reduce", *words, "-o", kept)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
    assert kept.read_bytes() == b"here before"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("metod = 'dc'", "did you mean 'method'?"),
        ("method = 'dc'\n[options]\nbtch = 3", "did you mean 'batch'?"),
        ("method = 'dc'\n[descent]\nstep = 3", "did you mean 'steps'?"),
        ("method = [", "is not TOML"),
        ("method = 'dc'\nper_class = 'many'", "per_class"),
    ],
)
def test_a_bad_recipe_names_the_key(text: str, says: str, attar: Attar, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(text)
    done = attar("reduce", "digits", "-r", recipe)
    assert done.code == 2
    assert says in done.err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from attar.cli import main

    with pytest.raises(AttarError, match="did you mean 'dc'"):
        main(["reduce", "digits", "--method", "dcc", "--debug"])


def long_run(folder: Path) -> list[str]:
    """Words of a command that makes a log in ``folder`` and does not end."""
    words = ["reduce", "digits", "-m", "dm", "--network", "convnet-d1w4", "--batch", "8", "--validate", "0"]
    return [*words, "--steps", "200000", "--log", str(folder / "log"), "-o", str(folder / "d.safetensors")]


def test_a_signal_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = long_run(tmp_path)
    process = python(MAIN, *words)
    wait_until(lambda: process.poll() is not None or (tmp_path / "log").exists())
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Stopped after step" in said
    assert f"To go on, run: attar {shlex.join(words)}" in said
    assert (tmp_path / "d.safetensors.checkpoint").exists()
    assert not (tmp_path / "d.safetensors").exists()


TAKEN = "import fcntl, os, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  #: a terminal of its own


def test_a_terminal_that_is_closed_saves_the_run(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = Process(TAKEN + MAIN, long_run(tmp_path), terminal=theirs)
    os.close(theirs)
    wait_until(lambda: os.read(ours, 65536) and (tmp_path / "log").exists())
    os.close(ours)
    assert process.wait(HANG) == 128 + signal.SIGHUP
    assert (tmp_path / "d.safetensors.checkpoint").exists()


def test_checkpoints_are_as_frequent_as_asked_for(
    attar: Attar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves: list[int] = []
    monkeypatch.setattr(Condensation, "save", lambda self, path: saves.append(self.number))
    for seconds, expected in ((0, [1, 2, 3]), (1000, [3])):
        saves.clear()
        path = tmp_path / f"{seconds}.safetensors"
        assert attar("reduce", "digits", "-m", "dm", *QUICK, "--checkpoint-every", seconds, "-o", path).code == 0
        assert saves == expected
    assert attar("reduce", "digits", "-m", "dm", *QUICK, "--checkpoint-every", "-1").code == 2


def test_a_coreset_loaded_from_the_cli_knows_its_cost(coreset: Path) -> None:
    assert Coreset.load(coreset).recipe.cost.wall > 0


def test_a_name_that_is_also_a_folder_is_said_aloud(
    attar: Attar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    done = attar("reduce", "digits", "-m", "uniform", "-o", tmp_path / "c.safetensors")
    assert done.code == 0
    assert "warning: 'digits' is loaded as the known data set of that name" in done.err


def test_without_a_terminal_the_last_step_is_a_plain_line(attar: Attar, tmp_path: Path) -> None:
    done = attar("reduce", "digits", "-m", "dm", *QUICK, "-o", tmp_path / "c.safetensors")
    assert re.search(r"^dm: 3 of 3 steps, loss [\d.]+$", done.err, flags=re.MULTILINE)


def test_a_coreset_of_skewed_classes_is_warned_of_and_warnings_are_printed(attar: Attar, tmp_path: Path) -> None:
    gen = torch.Generator().manual_seed(0)
    lines = [
        f"{float(x):.3f},{float(y):.3f},{'ab'[i % 5 == 0]}"
        for i, (x, y) in enumerate(torch.randn(200, 2, generator=gen))
    ]
    (tmp_path / "t.csv").write_text("x,y,kind\n" + "\n".join(lines) + "\n")
    how = ("--target", "kind", "--train-steps", 2, "-n", 2, "-o", tmp_path / "c.safetensors")
    done = attar("reduce", tmp_path / "t.csv", "--method", "craig", "--fit", "0.99", *how)
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert len(re.findall(r"warning: Classes have \d+ to \d+ examples, and equally many of each are kept", said)) == 1
    shared = attar("reduce", tmp_path / "t.csv", "--method", "uniform", "--budget", "minimum=1", *how, "-n", 5)
    assert shared.code == 0, shared.err
    assert "warning:" not in shared.err
    kept = library.Coreset.load(tmp_path / "c.safetensors").data.hard.bincount().tolist()
    assert kept == [8, 2]
    wrong = attar("reduce", tmp_path / "t.csv", "--method", "uniform", "--budget", "fair", *how)
    assert wrong.code == 2
    assert "Unknown budget 'fair'" in wrong.err
    assert "warning: The scoring network should reach a training accuracy of 100%" in said
    even = attar("reduce", "digits", "-m", "uniform", "-n", 1, "-o", tmp_path / "d.safetensors")
    assert "warning:" not in even.err


def refused_before_the_work(attar: Attar, monkeypatch: pytest.MonkeyPatch, *words: object) -> str:
    """What a command says that must not begin its work."""

    def work(*arguments: object, **settings: object) -> None:
        raise AssertionError("worked")

    monkeypatch.setattr("attar.cli.reduce.run", work)
    monkeypatch.setattr("attar.cli.infer.infer_posterior", work)
    monkeypatch.setattr("attar.cli.evaluate.infer", work)
    monkeypatch.setattr(Decided, "run", work)
    monkeypatch.setattr("attar.cli.report.study_coreset", work)
    done = attar(*words)
    assert done.code == 2, done.err
    return done.err


def test_an_output_that_cannot_be_written_or_is_in_use_is_found_before_the_work(
    attar: Attar, coreset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.csv").mkdir()
    for words in (
        ("reduce", "digits", "-m", "uniform"),
        ("select", "digits", "-m", "uniform", "-n", "1"),
        ("infer", coreset),
        ("evaluate", coreset, "digits"),
        ("report", coreset, "--data", "digits"),
    ):
        said = refused_before_the_work(attar, monkeypatch, *words, "-o", tmp_path / "folder.csv")
        assert "folder.csv is a folder: give the name of a file" in said
        with claimed(tmp_path / "new.csv"):
            said = refused_before_the_work(attar, monkeypatch, *words, "-o", tmp_path / "new.csv")
        assert f"new.csv is in use by process {os.getpid()} on" in said


def test_two_runs_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "state"
    short: dict[str, Any] = {"per_class": 1, "descent": {"steps": 1}, "checkpoint": path}
    with claimed(path), pytest.raises(AttarError, match=f"state is in use by process {os.getpid()}"):
        library.reduce("digits", "dm", **short)
    library.reduce("digits", "dm", **short)


def test_experts_come_from_the_folder_that_is_given(attar: Attar, tmp_path: Path) -> None:
    store, made, small = tmp_path / "store", tmp_path / "c.safetensors", ("--network", "mlp-d1w8")
    assert attar("experts", "digits", *small, "--trajectories", 1, "--epochs", 2, "-o", store).code == 0
    few = ("-n", 1, "--steps", 2, "--validate", 0, "--train-steps", 3)
    done = attar("reduce", "digits", "-m", "bpc-cd", "--experts", store, *small, *few, "-o", made)
    assert done.code == 0, done.err
    assert Coreset.load(made).recipe.experts == Manifest.load(store).identity
