"""`attar infer`: from a coreset to a posterior file."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attar import Coreset
from attar.core.errors import AttarError
from attar.core.files import read_tensors
from attar.infer import Draws, infer
from attar.nets.train import Training
from tests.cli.conftest import Attar
from tests.known import HANG, python


def test_a_learnt_step_size_and_an_experts_label_reach_the_command_line(
    attar: Attar, coreset: Path, tmp_path: Path
) -> None:
    learnt, file = replace(Coreset.load(coreset), step_size=0.3), tmp_path / "learnt.safetensors"
    learnt.save(file)
    attar("infer", file, "-o", tmp_path / "p.safetensors", "--draws", "1")
    assert torch.equal(Draws.load(tmp_path / "p.safetensors").theta, infer(learnt, draws=1).theta)
    experts = infer(learnt, draws=1, start="experts", experts=infer(learnt, draws=2).theta)
    experts.save(tmp_path / "e.safetensors")
    assert "[started from full-data experts]" in attar("evaluate", tmp_path / "e.safetensors", "digits").out


def test_a_sampler_has_its_own_options_and_a_seed_its_own_draws(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    def theta(*words: object) -> torch.Tensor:
        quick = ("-s", "sghmc", "--step", "0.01", "--chains", "2", "--warmup", "3", "--thin", "2", "--draws", "2")
        assert attar("infer", coreset, *quick, *words, "-o", tmp_path / "p.safetensors").code == 0
        return Draws.load(tmp_path / "p.safetensors").theta

    first = theta("--seed", "1")
    assert torch.equal(first, theta("--seed", "1"))
    assert not torch.equal(first, theta("--seed", "2"))
    assert not torch.equal(first, theta("--seed", "1", "--friction", "0.5"))


def test_five_networks_are_drawn_if_not_told_otherwise(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    done = attar("infer", coreset, "--train-steps", "1", "-o", tmp_path / "p.safetensors")
    assert done.out.startswith("5 draws of convnet-d1w8")


def test_bad_input_is_one_sentence(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    for words, says in (
        ((coreset, "--sampler", "sghmd"), "did you mean 'sghmc'?"),
        ((coreset, "--device", "tpu9"), "use --device cpu"),
        ((coreset, "--train-lr", "-1"), "greater than 0"),
        ((tmp_path / "none.safetensors",), "none.safetensors"),
    ):
        done = attar("infer", *words, "-o", tmp_path / "p.safetensors")
        assert done.code == 2
        assert says in done.err
    assert not (tmp_path / "p.safetensors").exists()


def test_a_sampler_that_the_coreset_was_not_made_for_needs_force(attar: Attar, tmp_path: Path) -> None:
    made, few = tmp_path / "v.safetensors", ("--draws", "1", "--train-steps", "3")
    small = ("-n", "1", "--steps", "2", "--validate", "0", "--network", "mlp-d1w8")
    assert attar("reduce", "digits", "-m", "vbpc", *small, "-o", made).code == 0
    for command in (("infer", made, "-o", tmp_path / "p.safetensors"), ("evaluate", made, "--seeds", "0")):
        refused = attar(*command, *few, "--sampler", "ensemble")
        assert refused.code == 2
        assert "ensemble drops its scale" in " ".join(refused.err.split())
        assert "or add --force" in " ".join(refused.err.split())
        assert attar(*command, *few, "--sampler", "ensemble", "--force").code == 0
    named, plain = tmp_path / "named.safetensors", tmp_path / "plain.safetensors"
    assert attar("infer", made, *few, "--sampler", "last-layer-vi", "-o", named).code == 0
    assert attar("infer", made, *few, "-o", plain).code == 0
    (ours, told), (theirs, said) = read_tensors(named), read_tensors(plain)
    assert told == said
    assert all(torch.equal(ours[key], theirs[key]) for key in ours.keys() | theirs.keys())


LONG = """
import sys
from attar.cli import main
sys.argv[1:] = ["infer", sys.argv[1], "--train-steps", "1000000", "--output", sys.argv[2]]
main()
"""


def test_a_signal_says_that_nothing_is_kept_and_how_to_start_again(coreset: Path, tmp_path: Path) -> None:
    process = python(LONG, coreset, tmp_path / "p.safetensors")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("ensemble: 5 draws")
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=HANG)
    assert process.returncode == 128 + signal.SIGTERM, error
    assert error.splitlines()[-1].startswith(f"Stopped; nothing is kept. To start again, run: attar infer {coreset}")
    assert not list(tmp_path.iterdir())


def test_more_draws_than_memory_holds_are_refused_before_the_work(attar: Attar, coreset: Path, tmp_path: Path) -> None:
    many = ("--draws", 10**8, "--network", "convnet-d3w128", "-o", tmp_path / "p.safetensors")
    done = attar("infer", coreset, *many)
    assert done.code == 2
    assert "draws of convnet-d3w128" in done.err
    assert "is free: ask for fewer draws, or for a smaller network." in done.err
    done = attar("compare", "digits", "-m", "uniform", "--draws", 10**8, "--network", "convnet-d3w128", "-o", tmp_path)
    assert done.code == 2
    assert "ask for fewer draws" in done.err
    assert not list(tmp_path.iterdir())


def test_a_file_that_asks_for_a_very_long_training_gets_less_unless_forced(
    attar: Attar, coreset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Coreset.load(coreset)
    recipe = replace(own.recipe, training=Training(steps=10**12), sampler="sghmc", sampler_options={"warmup": 10**9})
    file = tmp_path / "long.safetensors"
    replace(own, recipe=recipe).save(file)
    with pytest.warns(UserWarning, match="asks for steps = 1,000,000,000,000, warmup = 1,000,000,000: 100,0"):
        cut = Coreset.load(file).recipe
    assert (cut.training.steps, cut.sampler_options) == (100_000, {"warmup": 100_000})
    assert Coreset.load(file, force=True).recipe == recipe
    trained: list[int] = []

    def train(*arguments: Any, training: Training, **settings: Any) -> None:
        trained.append(training.steps)
        raise AttarError("far enough")

    monkeypatch.setattr("attar.cli.infer.infer_posterior", train)
    for words in ((), ("--force",), ("--train-steps", "7")):
        done = attar("infer", file, *words, "-o", tmp_path / "p.safetensors")
        assert ("warning: " in done.err) == ("--force" not in words)
    assert trained == [100_000, 10**12, 7]
