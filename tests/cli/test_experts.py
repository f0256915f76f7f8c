"""Training experts from the command line."""

import re
import signal
from pathlib import Path

import pytest

from attar.data import load
from attar.experts import Trajectories
from attar.nets import network
from tests.cli.conftest import Attar
from tests.known import HANG, python, wait_until

QUICK = ("--network", "mlp-d1w8", "--trajectories", "2", "--epochs", "2", "--batch", "128", "--workers", "1")


def test_experts_are_trained_once_and_found_again(
    attar: Attar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path))
    first = attar("experts", "digits", *QUICK)
    assert first.code == 0
    said = r"4 of 4 epochs of mlp-d1w8 \(610 parameters\) to train, 1 at once: about (a second|\d+ (seconds|minutes))"
    assert re.search(said, first.err)
    assert "2 trajectories × 2 epochs of mlp-d1w8, validation accuracy" in first.out
    (folder,) = tmp_path.iterdir()
    split = load("digits")
    Trajectories.open(folder).check(network("mlp-d1w8", split.shape, 10), split.train.fingerprint)
    again = attar("experts", "digits", *QUICK)
    assert (again.code, again.err) == (0, "")
    assert "trained before" in again.out


def test_the_training_is_what_the_flags_say(attar: Attar, tmp_path: Path) -> None:
    flags = ("--lr", "0.2", "--momentum", "0.5", "--augment", "flip", "--loss", "focal-1", "--dtype", "float16")
    assert attar("experts", "digits", *QUICK, *flags, "--every", "4", "-o", tmp_path / "e").code == 0
    said = Trajectories.open(tmp_path / "e").manifest
    assert (said.training.lr, said.training.momentum, said.training.batch) == (0.2, 0.5, 128)
    assert (said.training.augment, said.training.loss, said.dtype) == ("flip", "focal-1", "float16")
    assert said.every == 4
    # The command that it names makes the same store.
    words = said.command.split()[1:]
    done = attar(*words, "--workers", "1", "-o", tmp_path / "e")
    assert "trained before" in done.out


def test_another_request_for_a_folder_is_refused(attar: Attar, tmp_path: Path) -> None:
    attar("experts", "digits", *QUICK, "-o", tmp_path)
    done = attar("experts", "digits", *QUICK, "--lr", "0.5", "-o", tmp_path)
    assert done.code == 2
    assert "choose another folder" in done.err


def test_bad_values_are_one_sentence(attar: Attar, tmp_path: Path) -> None:
    for flags, sentence in (
        (("--momentum", "2"), "momentum: Input should be less than 1"),
        (("--loss", "hinge"), "Unknown loss 'hinge'"),
        (("--network", "convnut"), "Unknown network 'convnut'"),
        (("--trajectories", "0"), "experts: trajectories: Input should be greater than or equal to 1, got 0"),
        (("--dtype", "float8"), "dtype: Input should be 'float32' or 'float16'"),
    ):
        done = attar("experts", "digits", *flags, "-o", tmp_path)
        assert done.code == 2
        assert sentence in done.err
    assert list(tmp_path.iterdir()) == []


def test_images_are_resized_as_asked(attar: Attar, tmp_path: Path) -> None:
    assert attar("experts", "digits", *QUICK, "--resize", "4x5", "-o", tmp_path / "e").code == 0
    assert Trajectories.open(tmp_path / "e").manifest.shape == (1, 4, 5)


RUN = """
import sys
from attar.cli import main
sys.argv[1:] = ["experts", "digits", "--network", "mlp-d1w8", "--trajectories", "2", "--epochs", "100000",
                "--workers", "1", "--output", sys.argv[1]]
main()
"""


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    process = python(RUN, tmp_path)
    wait_until(lambda: process.poll() is not None or list(tmp_path.glob("trajectory-*.checkpoint")))
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=HANG)
    assert process.returncode == 130, error
    assert "To go on, run: attar experts digits --network mlp-d1w8 --trajectories 2 --epochs 100000" in error
    assert list(tmp_path.glob("trajectory-*.checkpoint"))


def test_without_a_terminal_progress_is_plain_lines(attar: Attar, tmp_path: Path) -> None:
    done = attar("experts", "digits", *QUICK, "--device", "cpu", "--val", "0.2", "-o", tmp_path)
    assert done.err.splitlines()[-1] == "training: 4 of 4 epochs"
    assert Trajectories.open(tmp_path).manifest.fingerprint == load("digits", val=0.2).train.fingerprint


def test_a_device_that_is_not_there_is_refused(attar: Attar, tmp_path: Path) -> None:
    done = attar("experts", "digits", *QUICK, "--device", "tpu9", "-o", tmp_path / "e")
    assert done.code == 2
    assert "use --device cpu" in done.err
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-n", 10**9), "trajectories of 1 epochs of mlp-d1w8 takes"),
        (("--epochs", 10**9), "A trajectory of 1,000,000,000 epochs of mlp-d1w8 with 610 parameters takes at least"),
    ],
)
def test_experts_that_the_machine_cannot_hold_are_refused_at_once(
    flags: tuple[object, ...], sentence: str, attar: Attar, tmp_path: Path
) -> None:
    done = attar("experts", "digits", "--network", "mlp-d1w8", *flags, "-o", tmp_path / "e")
    assert done.code == 2
    assert sentence in done.err
    assert "is free: ask for fewer" in done.err
    assert not (tmp_path / "e").exists()
